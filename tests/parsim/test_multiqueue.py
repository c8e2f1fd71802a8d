"""Multiple-queue backfilling: one class is EASY, limits of queues play no part, classes ascend."""

from __future__ import annotations

from random import Random

from parsim import Queue, System, Workload, simulate
from tests import generate


def test_one_class_is_easy() -> None:
    for seed in range(100):
        workload, cores, _ = generate.multiqueue(Random(seed))
        one = simulate(workload, System(cores, mode="multiqueue", class_limits=()))
        assert one.start.tolist() == simulate(workload, System.single(cores)).start.tolist(), seed


def test_limits_of_queues_play_no_part() -> None:
    workload = Workload([0, 0], [2, 2], [5, 5], [5, 5])
    assert simulate(workload, System(4, [Queue(max_run=1, max_run_cores=1)], "multiqueue")).start.tolist() == [0, 0]
