"""What a recommendation changes, in lines that a person reads."""

from qconf.report.changes import told
from qconf.tuning.corrections import Correction
from qconf.tuning.formulas import Order
from tests.qconf.report import small


def test_a_found_order_is_told_as_a_formula_and_in_words():
    base = small.site()
    formula = Order(patience=15).formula(base.machine.cores)
    lines = list(told(base, base.replace(order=formula)))
    assert [where for where, _ in lines] == [
        "all queues",
        "all queues",
        *base.names,
    ]  # whose priorities no longer count
    assert formula in lines[0][1]
    assert lines[1][1].startswith("this order is: short and narrow jobs first")
    other = [line for where, line in told(base, base.replace(order="eligible_time / 2")) if where == "all queues"]
    assert len(other) == 1  # some other formula: nobody knows what it means
    assert list(told(base, base)) == []


def test_a_corrected_order_is_told_by_what_it_prefers():
    base = small.site(order="eligible_time / 2 + queue_priority")
    lines = list(told(base, base.replace(order=Correction(-0.5, 1.0).formula(base.order))))
    assert lines[1] == (
        "all queues",
        "this order is: the present one times max(walltime, 1) ** 0.5 * ncpus ** -1",
    )
