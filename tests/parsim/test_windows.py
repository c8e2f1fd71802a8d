"""Windows of a system: cores that are kept for short jobs at given times (rule "windows of a walltime")."""

from __future__ import annotations

import numpy as np
import pytest

from parsim import UNSTARTED, Queue, State, System, Window, Workload, explain, simulate
from parsim.explain import Reason
from tests.parsim import schedules


def starts(submit, cores, walltime, windows, *, runtime=None, state=None, **system):
    jobs = Workload(submit, cores, walltime if runtime is None else runtime, walltime)
    return schedules.starts(jobs, System(10, windows=windows, **system), state)


@pytest.mark.parametrize("reserve", ["cores", "nodes"])
def test_a_shortpool_is_for_short_jobs_alone(reserve):
    pool = [Window(10, 100, 4, walltime=20)]
    # The first would run into it. The second finds its cores beside it, the third ends in time, the last is short.
    assert starts([0, 0, 0, 0], [7, 6, 4, 2], [50, 50, 10, 20], pool, reserve=reserve) == [100, 0, 0, 10]


def test_busy_cores_are_found_by_who_ends_in_time():
    pool = [Window(10, 100, 4, walltime=20)]
    assert starts([0, 0], [10, 4], [10, 15], pool) == [0, 10]


def test_short_jobs_that_run_count_for_the_shortpool():
    pool = [Window(10, 100, 4, walltime=20)]
    # It runs past the begin on four cores. In the pass in which it starts four more are kept, at the next event none.
    assert starts([0, 0, 5], [4, 3, 1], [20, 50, 1], pool) == [0, 5, 5]


def test_one_that_lasts_longer_than_each_gap_waits_for_the_last_to_end():
    row = [Window(begin, begin + 10, 4, walltime=5) for begin in range(0, 100, 20)]
    assert starts([0, 0], [7, 7], [11, 10], row) == [90, 10]


def test_a_state_has_windows_beside():
    row = [Window(10, 20, 4, walltime=5)]
    down = State(0, [UNSTARTED] * 2, windows=[Window(20, 50)])
    assert starts([0, 0], [7, 7], [20, 5], row, state=down) == [50, 0]


def test_the_machine_of_a_reservation_has_none():
    jobs = Workload([0, 0], [4, 4], [15, 15], [15, 15], queue=[0, 1])
    system = System(10, [Queue("a"), Queue("b")], windows=[Window(10, 60, walltime=1)])
    state = State(0, [UNSTARTED] * 2, windows=[Window(0, 50, 4, queue=1)])
    assert simulate(jobs, system, state).start.tolist() == [60, 0]


def test_no_job_no_schedule():
    none = np.empty(0, dtype=np.int64)
    assert len(simulate(Workload(none, none, none, none), System(4, windows=[Window(0, 5, walltime=1)]))) == 0


def test_its_reasons_name_the_cores_that_are_kept():
    jobs, pool = Workload([0, 20], [6, 4], [50, 50], [50, 50]), [Window(10, 100, 4, walltime=20)]
    system = System(10, windows=pool)
    reasons = explain(jobs, system, simulate(jobs, system), 1)
    assert reasons[0] == Reason(20, 50, "heads the list of machine, waits for 4 cores")
    behind = Workload([0, 20, 20], [6, 5, 3], [50, 50, 90], [50, 50, 90])
    reasons = explain(behind, system, simulate(behind, system), 2)
    assert reasons[0].text == "4 cores of machine are kept for other jobs"
