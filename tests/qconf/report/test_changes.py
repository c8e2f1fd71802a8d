"""What a recommendation changes, in lines that a person reads."""

from qconf.report.changes import told
from qconf.strategies.auto.orders import general
from tests.qconf.report import small


def for_all(base, config):
    return [line for where, line in told(base, config) if where == "all queues"]


def test_the_general_order_is_told_in_words_too():
    base = small.site()
    formula = general(base.machine.cores)
    for order in (formula, f"queue_priority * {formula}"):
        lines = for_all(base, base.replace(order=order))
        assert order in lines[0]
        assert lines[1].startswith("this order is: short and narrow jobs first; ")
        assert len(lines) == 2
    assert len(for_all(base, base.replace(order="eligible_time / 2"))) == 1  # nobody knows what that means
    assert len(for_all(base, base.replace(order=general(base.machine.cores + 8)))) == 1
    assert list(told(base, base)) == []


def test_a_wait_before_reservations_is_told():
    base = small.site()
    late = base.replace(mode="shared", pool=None, reserve_after=86400)
    lines = for_all(late.replace(reserve_after=0), late)
    assert lines[0] == "backfill: EASY -> EASY, a reservation after 24h"
    assert lines[1].startswith("cores are reserved for a job that does not fit only when it has waited 24h")
    assert for_all(late, late.replace(reserve_after=0))[1].startswith("cores are reserved at once")
