"""Why jobs started when they did: small schedules, told in words."""

import doctest
import sys
from itertools import pairwise
from random import Random

import pytest

from parsim import Pool, Queue, System, Workload, explain, simulate
from tests import generate


def told(workload: Workload, system: System, job: int) -> list[str]:
    return [str(reason) for reason in explain(workload, system, simulate(workload, system), job)]


def test_examples_of_the_docstring() -> None:
    assert doctest.testmod(sys.modules["parsim.explain"]).failed == 0


def test_it_ran_at_once() -> None:
    assert told(Workload([5], [2], [9], [9]), System.single(4), 0) == [
        "5: starts on machine as soon as it is submitted, in turn"
    ]


def test_it_waited_for_cores_and_behind_another() -> None:
    workload = Workload([0, 1, 2], [3, 4, 2], [10, 10, 10], [10, 10, 10])
    assert told(workload, System.single(4), 1) == [
        "1 to 10: heads the list of machine, waits for 4 cores",
        "10: starts on machine, in turn",
    ]
    assert told(workload, System.single(4), 2) == [
        "2 to 10: behind job 1, the head of machine",
        "10 to 20: heads the list of machine, waits for 2 cores",
        "20: starts on machine, in turn",
    ]


def test_it_was_backfilled() -> None:
    workload = Workload([0, 1, 2], [3, 4, 1], [10, 10, 5], [10, 10, 5])
    assert told(workload, System.single(4), 2) == [
        "2: starts on machine as soon as it is submitted, backfilled before job 1, which it does not delay"
    ]


def test_a_limit_held_it() -> None:
    workload = Workload([0, 1], [1, 1], [10, 10], [10, 10])
    assert told(workload, System(4, [Queue(name="short", max_run=1)]), 1) == [
        "1 to 10: held by max_run = 1 of queue short",
        "10: starts on machine, in turn",
    ]


def test_it_entered_the_pool() -> None:
    workload = Workload([0, 0, 0], [2, 2, 2], [20, 30, 20], [20, 30, 20])
    system = System(4, [Queue(name="a", partition=2, priority=2)], "hybrid", pool=Pool(2, threshold=1))
    # The first job takes the partition at 0, the third the pool after half of its 20 s,
    # before the second, which has to wait half of its 30 s.
    assert told(workload, system, 2) == [
        "0 to 10: behind job 1, the head of a",
        "10: starts on pool, from the pool's list with priority factor 1, in turn",
    ]
    assert told(workload, system, 1)[-1] == "20: starts on a, in turn"


def test_an_advance_reservation() -> None:
    workload = Workload([0, 1], [1, 4], [10, 5], [10, 5], queue=[0, 1])
    queues = [Queue(name="a", partition=4), Queue(name="wide", reservation=True)]
    system = System(8, [*queues, Queue(name="b", partition=4)], "partitioned")
    assert told(Workload([0, 1], [1, 8], [10, 5], [10, 5], queue=[0, 1]), system, 1) == [
        "1 to 10: holds a reservation of 8 cores over several parts",
        "10: starts on a and b, by advance reservation",
    ]
    assert told(workload, system, 1)[-1] == "1: starts on a and b as soon as it is submitted, by advance reservation"


@pytest.mark.parametrize("discipline", generate.disciplines())
def test_reasons_cover_the_wait(discipline: str) -> None:
    for seed in range(25):
        workload, system = generate.disciplines()[discipline](Random(seed))
        schedule = simulate(workload, system)
        for job in range(len(workload)):
            *waits, start = explain(workload, system, schedule, job)
            assert start.begin == start.end == schedule.start[job]
            assert bool(waits) == (schedule.wait[job] > 0)
            if waits:
                assert (waits[0].begin, waits[-1].end) == (workload.submit[job], schedule.start[job])
                assert all(one.end == other.begin for one, other in pairwise(waits))


def test_there_is_no_such_job() -> None:
    with pytest.raises(ValueError, match="job"):
        told(Workload([5], [2], [9], [9]), System.single(4), 1)
    with pytest.raises(ValueError, match="mode"):
        told(Workload([5], [2], [9], [9]), System(4, mode="multiqueue"), 0)
