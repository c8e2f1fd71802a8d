"""Several head jobs of a list: rule "reservation depth"."""

from __future__ import annotations

from parsim import Queue, System, Workload, explain, simulate
from parsim.verify import assert_schedule

# 6 of 8 cores run to 10; then jobs of 8, of 3 and of 2 cores wait. The last one fits now: with one reservation it may
# run past 20, when the wide job ends; with two it would delay the job of 7.
JOBS = Workload([0, 1, 2, 3], [6, 8, 7, 2], [10, 10, 10, 30], [10, 10, 10, 30])


def starts(depth: int | None, jobs: Workload = JOBS, **more: object) -> list[int]:
    system = System(8, reservation_depth=depth, **more)
    schedule = simulate(jobs, system)
    assert_schedule(jobs, system, schedule)
    return schedule.start.tolist()


def test_the_second_job_is_delayed_only_where_it_has_no_reservation():
    short = Workload([0, 1, 2, 3], [4, 6, 7, 2], [10, 10, 10, 25], [10, 10, 10, 25])
    assert starts(1, short) == [0, 10, 28, 3]
    assert starts(2, short) == [0, 10, 20, 30]
    assert starts(None, short) == [0, 10, 20, 30]


def test_all_is_conservative_where_run_times_are_as_requested():
    from parsim import plan

    jobs = Workload([0, 1, 1, 2, 3, 4], [5, 8, 2, 4, 3, 1], [9, 5, 4, 12, 8, 30], [9, 5, 4, 12, 8, 30])
    assert starts(None, jobs) == plan(jobs, 8, "conservative").schedule.start.tolist()


def test_limits_count_running_jobs_alone():
    jobs = Workload([0, 1, 2], [6, 6, 2], [10, 10, 5], [10, 10, 5])
    assert starts(2, jobs, queues=[Queue(max_run=2)]) == [0, 10, 2]


def test_the_explanation_has_the_instant_from_which_cores_are_reserved():
    system = System(8, reservation_depth=2)
    first, *_ = explain(JOBS, system, simulate(JOBS, system), 2)
    assert first.text == "has 7 cores reserved from 20 on"
