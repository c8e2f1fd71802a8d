"""How long a simulation may last: the keys of the kernels hold so many seconds, and a job."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from parsim import Queue, System, Workload, plan, simulate
from parsim.metrics.tabulate import waits_by_size
from parsim.model.workload import MAX_DURATION
from parsim.prepare import columns as prepared
from parsim.prepare.columns import prepare

JOBS = 2**15 + 200  #: whose keys have 16 bits for the job, and 46 for the seconds
LATEST = 2**46 - 2**31  #: last instant at which one of them may start
ONE_CORE = Queue(name="a")

RUNS: dict[str, Callable[[Workload], object]] = {
    "easy": lambda jobs: simulate(jobs, System(1, [ONE_CORE])),
    "fcfs": lambda jobs: simulate(jobs, System(1, [ONE_CORE], backfill=False)),
    "formula": lambda jobs: simulate(jobs, System(1, [ONE_CORE], order="eligible_time")),
    "limits": lambda jobs: simulate(jobs, System(1, [Queue(name="a", max_run=1)])),
    "partitions": lambda jobs: simulate(jobs, System(1, [Queue(name="a", partition=1, max_run=1)], "partitioned")),
    "top job": lambda jobs: simulate(jobs, System(1, [Queue(name="a", max_run=1)], held_jobs="reserve")),
    "multiqueue": lambda jobs: simulate(jobs, System(1, [ONE_CORE], "multiqueue")),
    "planned-fcfs": lambda jobs: plan(jobs, 1, "planned-fcfs"),
    "conservative": lambda jobs: plan(jobs, 1, "conservative"),
    "sizes": lambda jobs: waits_by_size(jobs, [1]),
}

#: It looks at every waiting job.
SLOW = {"top job"}
CASES = [pytest.param(run, id=name, marks=[pytest.mark.slow] * (name in SLOW)) for name, run in RUNS.items()]


def one_after_another(last_start: int) -> Workload:
    """Return jobs that fill one core from 0 on; the last one starts at this instant."""
    runtime = np.ones(JOBS, dtype=np.int64)
    long = (last_start - JOBS) // (MAX_DURATION - 1)
    runtime[:long] = MAX_DURATION
    runtime[long] += last_start - int(runtime[:-1].sum())
    assert 1 <= runtime[long] <= MAX_DURATION
    return Workload(np.zeros(JOBS), np.ones(JOBS), runtime, runtime)


@pytest.mark.parametrize("run", CASES)
def test_the_last_job_may_start_at_the_last_instant(run: Callable[[Workload], object]) -> None:
    jobs = one_after_another(LATEST)
    found = run(jobs)
    start = getattr(getattr(found, "schedule", found), "start", None)
    if start is not None:
        assert start.max() == LATEST


@pytest.mark.parametrize("run", CASES)
def test_beyond_it_is_a_clear_message(run: Callable[[Workload], object]) -> None:
    with pytest.raises(
        ValueError, match=r"1 of 32968 jobs do not start within 70368744177664 seconds \(2229851 years\)"
    ):
        run(one_after_another(LATEST + 1))


def test_run_times_may_add_up_to_more_than_a_key_holds() -> None:
    runtime = np.full(JOBS, MAX_DURATION)
    schedule = simulate(Workload(np.zeros(JOBS), np.ones(JOBS), runtime, runtime), System(JOBS, [ONE_CORE]))
    assert int(runtime.sum()) > 2**46
    assert schedule.start.max() == 0


def test_more_jobs_than_a_key_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "MOST_JOBS", 3)
    prepare(Workload([0] * 3, [1] * 3, [1] * 3, [1] * 3)).bits  # noqa: B018
    with pytest.raises(ValueError, match="4 jobs are more than the 3 of one simulation"):
        simulate(Workload([0] * 4, [1] * 4, [1] * 4, [1] * 4), System(1))
