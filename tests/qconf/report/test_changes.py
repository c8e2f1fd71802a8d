"""What a recommendation changes, in lines that a person reads."""

from qconf.report.changes import told
from qconf.tuning.corrections import Correction
from tests.qconf.report import small


def test_a_corrected_order_is_told_by_what_it_is_multiplied_with():
    base = small.site(order="eligible_time / 2 + queue_priority")
    lines = list(told(base, base.replace(order=Correction(-0.5, 1.0).formula(base.order))))
    assert lines[1] == (
        "all queues",
        "this order is: the present one times max(walltime, 1) ** 0.5 * ncpus ** -1",
    )
    assert len(list(told(base, base.replace(order="eligible_time")))) == len(lines) - 1 + len(base.names)
    assert list(told(base, base)) == []
