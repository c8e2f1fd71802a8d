"""Multiple-queue backfilling against the reference, EASY, and schedules worked out by hand."""

from random import Random

import pytest

from parsim import Queue, System, Workload, simulate
from parsim.naive.multiqueue import simulate_multiqueue
from parsim.verify import check_schedule
from tests import generate


def run(workload: Workload, cores: int, limits: tuple[int, ...]) -> list[int]:
    return simulate(workload, System(cores, mode="multiqueue", class_limits=limits)).start.tolist()


def test_equals_naive() -> None:
    for seed in range(500):
        workload, cores, limits = generate.multiqueue(Random(seed))
        assert run(workload, cores, limits) == simulate_multiqueue(workload, cores, limits).start, seed


def test_one_class_is_easy() -> None:
    for seed in range(500):
        workload, cores, _ = generate.multiqueue(Random(seed))
        assert run(workload, cores, ()) == simulate(workload, System.single(cores)).start.tolist(), seed


def test_the_check_finds_no_violation() -> None:
    for seed in range(200):
        workload, cores, limits = generate.multiqueue(Random(seed))
        system = System(cores, mode="multiqueue", class_limits=limits)
        assert check_schedule(workload, system, simulate(workload, system)) == []


def test_pivot_of_a_class_keeps_its_instant() -> None:
    # One core is left until the second job, of all four, at 10. The third is the pivot of the short class and starts
    # at 20; of the last two the shorter fits before 10, the longer does not: it would delay the second.
    columns = [(0, 3, 10), (1, 4, 10), (2, 4, 5), (3, 1, 8), (3, 1, 4)]
    submit, cores, walltime = zip(*columns, strict=True)
    assert run(Workload(submit, cores, walltime, walltime), 4, (5,)) == [0, 10, 20, 25, 3]


def test_limits_of_queues_play_no_part() -> None:
    workload = Workload([0, 0], [2, 2], [5, 5], [5, 5])
    assert simulate(workload, System(4, [Queue(max_run=1, max_run_cores=1)], "multiqueue")).start.tolist() == [0, 0]


@pytest.mark.parametrize("limits", [(0, 5), (5, 5), (7, 3), (-1,)])
def test_classes_that_do_not_ascend_are_refused(limits: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="class_limits"):
        System(4, mode="multiqueue", class_limits=limits)
