"""Head jobs other than the one of EASY, by hand: several of a list, one of each queue, none until a job starves."""

from __future__ import annotations

import pytest

from parsim import Queue, System, Workload, explain, plan, simulate
from tests.parsim.schedules import starts


def at_once(cores: list[int], seconds: list[int], queue: list[int] | None = None) -> Workload:
    return Workload([0] * len(cores), cores, seconds, seconds, queue)


# --- Several of a list: rule "reservation depth".

# 6 of 8 cores run to 10; then jobs of 8, of 3 and of 2 cores wait. The last one fits now: with one reservation it may
# run past 20, when the wide job ends; with two it would delay the job of 7.
JOBS = Workload([0, 1, 2, 3], [6, 8, 7, 2], [10, 10, 10, 30], [10, 10, 10, 30])


@pytest.mark.parametrize(("depth", "expected"), [(1, [0, 10, 28, 3]), (2, [0, 10, 20, 30]), (None, [0, 10, 20, 30])])
def test_the_second_job_is_delayed_only_where_it_has_no_reservation(depth: int | None, expected: list[int]) -> None:
    short = Workload([0, 1, 2, 3], [4, 6, 7, 2], [10, 10, 10, 25], [10, 10, 10, 25])
    assert starts(short, System(8, reservation_depth=depth)) == expected


def test_all_is_conservative_where_run_times_are_as_requested() -> None:
    jobs = Workload([0, 1, 1, 2, 3, 4], [5, 8, 2, 4, 3, 1], [9, 5, 4, 12, 8, 30], [9, 5, 4, 12, 8, 30])
    expected = plan(jobs, 8, "conservative").schedule.start.tolist()
    assert starts(jobs, System(8, reservation_depth=None)) == expected


def test_limits_count_running_jobs_alone() -> None:
    jobs = Workload([0, 1, 2], [6, 6, 2], [10, 10, 5], [10, 10, 5])
    assert starts(jobs, System(8, [Queue(max_run=2)], reservation_depth=2)) == [0, 10, 2]


def test_the_explanation_has_the_instant_from_which_cores_are_reserved() -> None:
    system = System(8, reservation_depth=2)
    first, *_ = explain(JOBS, system, simulate(JOBS, system), 2)
    assert first.text == "has 7 cores reserved from 20 on"


# --- One of each queue, as Slurm has them: rule "head jobs of queues".


@pytest.mark.parametrize(
    ("cores", "width", "length", "expected"),
    [
        # The third would end just as the plan of the second begins, and is in its way; the fourth ends before.
        (4, [3, 4, 1, 1], [10, 10, 10, 9], [0, 10, 20, 0]),
        # The three cores of the first will do for the second, but one idle node stays idle for it.
        (5, [3, 3, 1, 1], [10, 10, 20, 20], [0, 10, 0, 10]),
        # Who ends before that may use this node; then none stays idle, and the last may start beside it.
        (5, [3, 3, 1, 1], [10, 10, 9, 20], [0, 10, 0, 0]),
    ],
)
def test_one_queue(cores: int, width: list[int], length: list[int], expected: list[int]) -> None:
    assert starts(at_once(width, length), System(cores, [Queue(name="a")], reserve="queues")) == expected


def test_each_queue_has_a_head_job() -> None:
    """Jobs 1 and 2 have one plan each: job 3 would end as that of job 2, the later one, begins."""
    two = [Queue(name="a", priority=2), Queue(name="b")]
    jobs = at_once([3, 4, 4, 1], [10, 5, 5, 15], [0, 0, 1, 1])
    assert starts(jobs, System(4, two, reserve="queues")) == [0, 10, 15, 20]
    jobs = at_once([3, 3, 3, 1], [10, 5, 5, 30], [0, 0, 1, 1])
    assert starts(jobs, System(5, two, reserve="queues")) == [0, 10, 15, 0]


# --- None: list scheduling and PBS's first FIFO scheduler.

# On four cores a wide job waits behind one of three; of two narrow ones the second comes when it has waited long.
FIFO = Workload([0, 1, 2, 30], [3, 4, 1, 1], [100, 10, 50, 100], [100, 10, 50, 100])


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (0, [0, 100, 110, 110]),  # the first that does not fit stops the list at once, as without backfilling
        (20, [0, 100, 2, 110]),  # it has been the first for 51 seconds when the second narrow job could start
        (51, [0, 100, 2, 110]),
        (52, [0, 152, 2, 52]),
        (10**6, [0, 152, 2, 52]),  # nothing ever stops it
    ],
)
def test_what_fits_starts_until_a_job_starves(after: int, expected: list[int]) -> None:
    assert starts(FIFO, System(4, reserve="nothing", reserve_after=after)) == expected


@pytest.mark.parametrize(("after", "expected"), [(16, [0, 0, 10, 75, 25]), (15, [0, 0, 10, 60, 65])])
def test_a_job_is_the_first_from_when_the_one_before_it_has_started(after: int, expected: list[int]) -> None:
    # The job of four cores is the first of the list from second 10 on, not from its submission in second 2.
    jobs = Workload([0, 0, 1, 2, 25], [1, 3, 3, 4, 1], [60, 10, 10, 5, 50], [60, 10, 10, 5, 50])
    assert starts(jobs, System(4, reserve="nothing", reserve_after=after)) == expected


def test_it_has_no_effect_without_backfilling() -> None:
    plain = starts(FIFO, System(4, backfill=False))
    assert starts(FIFO, System(4, backfill=False, reserve="nothing", reserve_after=99)) == plain


@pytest.mark.parametrize(
    ("job", "reason"),
    [(1, "the first of the list since 1, waits for 4 cores"), (3, "behind job 1, the first of the list since 1")],
)
def test_why_jobs_wait_is_said(job: int, reason: str) -> None:
    system = System(4, reserve="nothing", reserve_after=20)
    assert explain(FIFO, system, simulate(FIFO, system), job)[0].text == reason
