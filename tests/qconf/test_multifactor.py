"""Orders that are sums, as Slurm's priority is: written as formulas, and read back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsim.naive.formula import formula_value
from qconf.config.multifactor import MAX_AGE, Multifactor

STEPS = st.lists(st.integers(1, 10_000), unique=True, max_size=6)


@given(STEPS, STEPS, STEPS, STEPS, STEPS, st.integers(1, 10**8), st.booleans(), st.integers(0, 10**6))
def test_what_is_written_is_read_back(minutes, points, cores, worths, seconds, max_age, tiers, weight):
    classes = zip((60 * each for each in sorted(minutes)), sorted(points, reverse=True), strict=False)
    sizes = zip(sorted(cores), sorted(worths, reverse=True), strict=False)
    expected = tuple(zip(sorted(seconds), sorted(worths, reverse=True), strict=False))
    order = Multifactor(tuple(classes), max_age, tiers, tuple(sizes), weight, expected=expected)
    assert Multifactor.of(order.formula) == order
    assert Multifactor.of(f" {order.formula.replace(' + (', '+  ( ')}") == order  # blanks make no difference


@pytest.mark.parametrize(
    "order",
    [
        "fcfs",
        "lxf",
        "eligible_time / walltime",
        "min(eligible_time, 3600) * 2",
        "min(eligible_time, 3600) + ncpus",
        "min(eligible_time, 3600) + queue_priority",  # no whole number of points before it
        "min(eligible_time, 3600) + (5 if ncpus <= 8 else 7 if ncpus <= 16 else 0)",  # wider jobs first
        "4294967295 * queue_priority + min(eligible_time, 3600)",
        "min(eligible_time, 3600) + (5 if walltime <= 90 else 0)",  # no whole minutes
        "min(eligible_time, 3600) + (5 if walltime <= 60 else 7 if walltime <= 120 else 0)",  # longer jobs first
        "min(eligible_time, 3600) + (5 if walltime <= 120 else 3 if walltime <= 60 else 0)",
        "min(eligible_time, 4294967295) + (5 if walltime <= 60 else 0)",  # more than 32 bits
        "min(eligible_time, 0)",
        "min(eligible_time, 3600) + (",
    ],
)
def test_what_slurm_cannot_express_is_none(order):
    assert Multifactor.of(order) is None


@pytest.mark.parametrize(
    ("order", "same"),
    [
        ("min(eligible_time, 3600) + 5 * queue_priority", "5 * queue_priority + min(eligible_time, 3600)"),
        (
            "9 * qos_priority + (5 if ncpus <= 8 else 0) + ((7 if walltime <= 60 else 0) + min(eligible_time, 3600))",
            "min(eligible_time, 3600) + (7 if walltime <= 60 else 0) + (5 if ncpus <= 8 else 0) + 9 * qos_priority",
        ),
    ],
)
def test_the_terms_of_a_sum_may_come_in_any_order(order, same):
    assert Multifactor.of(order).formula == same


@pytest.mark.parametrize(
    "order", ["min(eligible_time, 3600) - 5 * queue_priority", "5 * queue_priority + " * 2 + "min(eligible_time, 3600)"]
)
def test_other_signs_and_terms_twice_are_no_sum_of_slurm(order):
    assert Multifactor.of(order) is None


def test_points_are_seconds_of_waiting():
    order = Multifactor(((900, 7200), (3600, 3000)), tiers=True)
    assert order.most == 7200
    assert [order.nice(walltime, 1) for walltime in (1, 900, 901, 3600, 9999)] == [0, 0, 4200, 4200, 7200]
    sized = Multifactor(((900, 7200),), sizes=((8, 100),), weight=50)
    assert sized.most == 7300
    assert [sized.nice(walltime, cores) for walltime, cores in ((1, 8), (1, 9), (901, 8), (901, 9))] == [
        0,
        100,
        7200,
        7300,
    ]
    assert formula_value(sized.formula, walltime=1, ncpus=9, eligible_time=0, queue_priority=3) == 7200 + 150

    def value(walltime, waited, priority=1):
        return formula_value(order.formula, walltime=walltime, eligible_time=waited, queue_priority=priority)

    assert value(9999, 7200) == value(900, 0)
    assert value(9999, 2 * MAX_AGE) == value(9999, MAX_AGE)
    assert value(9999, 0, priority=2) > value(1, MAX_AGE)
    found = np.array([value(each, 0) for each in (1, 1000, 4000)])
    assert (np.diff(found) == [-4200, -3000]).all()
