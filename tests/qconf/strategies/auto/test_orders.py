"""The general orders: formulas, and how they age by the longest wait that a site has seen."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsim import System, Workload, simulate
from parsim.naive.formula import formula_value
from qconf.strategies.auto.families import LEAST, General, ageing, usual_longest

HOUR, DAY = 3600, 86400


def test_a_job_of_ten_hours_on_an_eighth_of_the_machine_counts_twice_after_the_usual_wait():
    text = (
        "(1 + (eligible_time / (54000 * (max(walltime, 1) / 36000) ** 0.8)) ** 2.5 * (ncpus / 12.5) ** 1.2)"
        " / (max(walltime, 1) * ncpus ** 0.7)"
    )
    assert General(usual=15).formula(100) == text
    assert General(usual=15, share=1.0).formula(100, 16 * HOUR) == f"{text} * (1 + (eligible_time / 57600) ** 5)"

    def value(eligible_time, walltime, ncpus):
        return formula_value(text, eligible_time=eligible_time, walltime=walltime, ncpus=ncpus)

    assert value(54000, 36000, 12.5) == pytest.approx(2 * value(0, 36000, 12.5))
    assert value(54000 * 0.1**0.8, 3600, 12.5) == pytest.approx(2 * value(0, 3600, 12.5))  # the shorter the sooner
    assert value(54000, 36000, 25) > 3 * value(0, 36000, 25)  # the wider the sooner
    assert value(0, 3600, 10) == pytest.approx(10 * value(0, 36000, 10))
    assert value(0, 3600, 20) == pytest.approx(value(0, 3600, 10) / 2**0.7)


@given(st.floats(0.1, 2), st.floats(0, 1e7))
def test_ageing_is_near_a_share_of_the_longest_wait_and_half_a_day_at_least(share, longest):
    found = ageing(share, longest)
    assert found % HOUR == 0
    assert found >= LEAST
    assert found == pytest.approx(max(share * longest, LEAST), rel=0.13)
    assert ageing(share, 1.01 * longest) >= found


def test_the_longest_wait_of_few_known_days_is_scaled_to_half_a_year():
    known = {days: usual_longest(1000.0, days) for days in (0, 1, 10, 30, 90, 180, 700)}
    assert known[180] == known[700] == 1000.0
    assert known[30] / known[90] == pytest.approx(3**0.37)
    assert known[10] == pytest.approx(1000 * 18**0.37)
    assert known[0] == known[1] == known[10]


def test_short_narrow_and_long_waiting_jobs_go_first():
    """Three jobs wait for one that has the whole machine."""
    submit, cores, walltime = [0, 10, 10, 10], [8, 8, 8, 4], [1000, 5000, 500, 5000]
    jobs = Workload(submit, cores, walltime, walltime)

    def turns(order):
        return np.argsort(simulate(jobs, System.single(8, order=order.formula(8, DAY))).start, kind="stable").tolist()

    assert turns(General()) == [0, 2, 3, 1]
    late = Workload([0, 10, 400_000], [8, 8, 8], [400_100, 50_000, 500], [400_100, 50_000, 500])
    for longest, first in ((1000 * DAY, 2), (HOUR, 1)):
        start = simulate(late, System.single(8, order=General(usual=1000).formula(8, longest))).start
        assert start[first] < start[3 - first]
