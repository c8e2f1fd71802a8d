"""Backfilling as Slurm does it, on schedules that can be followed by hand (rule "head jobs of queues")."""

import pytest

from parsim import Queue, System, Workload, simulate
from parsim.verify import check_schedule

ONE = [Queue(name="a")]
TWO = [Queue(name="a", priority=2), Queue(name="b")]


@pytest.mark.parametrize(
    ("cores", "jobs", "expected"),
    [
        # The third would end just as the plan of the second begins, and is in its way; the fourth ends before.
        (4, [(3, 10), (4, 10), (1, 10), (1, 9)], [0, 10, 20, 0]),
        # The three cores of the first will do for the second, but one idle node stays idle for it.
        (5, [(3, 10), (3, 10), (1, 20), (1, 20)], [0, 10, 0, 10]),
        # Who ends before that may use this node; then none stays idle, and the last may start beside it.
        (5, [(3, 10), (3, 10), (1, 9), (1, 20)], [0, 10, 0, 0]),
    ],
)
def test_one_queue(cores: int, jobs: list[tuple[int, int]], expected: list[int]) -> None:
    width, length = zip(*jobs, strict=True)
    workload = Workload([0] * len(jobs), width, length, length)
    system = System(cores, ONE, reserve="queues")
    schedule = simulate(workload, system)
    assert schedule.start.tolist() == expected
    assert check_schedule(workload, system, schedule) == []


def test_each_queue_has_a_head_job() -> None:
    """Jobs 1 and 2 have one plan each: job 3 would end as that of job 2, the later one, begins."""
    workload = Workload([0] * 4, [3, 4, 4, 1], [10, 5, 5, 15], [10, 5, 5, 15], queue=[0, 0, 1, 1])
    system = System(4, TWO, reserve="queues")
    assert simulate(workload, system).start.tolist() == [0, 10, 15, 20]
    workload = Workload([0] * 4, [3, 3, 3, 1], [10, 5, 5, 30], [10, 5, 5, 30], queue=[0, 0, 1, 1])
    assert simulate(workload, System(5, TWO, reserve="queues")).start.tolist() == [0, 10, 15, 0]
