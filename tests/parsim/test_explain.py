"""Why jobs started when they did: small schedules, in words."""

from itertools import pairwise
from random import Random

import pytest

from parsim import Pool, Queue, System, Workload, explain, simulate
from parsim.planning.plan import plan
from tests import generate


def reasons(workload: Workload, system: System, job: int) -> list[str]:
    return [str(reason) for reason in explain(workload, system, simulate(workload, system), job)]


def test_it_ran_at_once() -> None:
    assert reasons(Workload([5], [2], [9], [9]), System.single(4), 0) == [
        "5: starts on machine as soon as it is submitted, in turn"
    ]


def test_it_waited_for_cores_and_behind_another() -> None:
    workload = Workload([0, 1, 2], [3, 4, 2], [10, 10, 10], [10, 10, 10])
    assert reasons(workload, System.single(4), 1) == [
        "1 to 10: heads the list of machine, waits for 4 cores",
        "10: starts on machine, in turn",
    ]
    assert reasons(workload, System.single(4), 2) == [
        "2 to 10: behind job 1, the head job of machine",
        "10 to 20: heads the list of machine, waits for 2 cores",
        "20: starts on machine, in turn",
    ]


def test_it_was_backfilled() -> None:
    workload = Workload([0, 1, 2], [3, 4, 1], [10, 10, 5], [10, 10, 5])
    assert reasons(workload, System.single(4), 2) == [
        "2: starts on machine as soon as it is submitted, backfilled before job 1, which it does not delay"
    ]


def test_nothing_was_reserved_for_it_yet() -> None:
    workload = Workload([0, 1, 2], [3, 4, 1], [10, 10, 100], [10, 10, 100])
    system = System(4, reserve_after=5)
    assert reasons(workload, system, 1) == [
        "1 to 10: waits for 4 cores, reserved for it from 6 on at the earliest",
        "10 to 102: heads the list of machine, waits for 4 cores",
        "102: starts on machine, in turn",
    ]
    assert reasons(workload, system, 2) == ["2: starts on machine as soon as it is submitted, in turn"]


def test_a_limit_held_it() -> None:
    workload = Workload([0, 1], [1, 1], [10, 10], [10, 10])
    assert reasons(workload, System(4, [Queue(name="short", max_run=1)]), 1) == [
        "1 to 10: held by max_run = 1 of queue short",
        "10: starts on machine, in turn",
    ]


def test_a_limit_held_the_head_job() -> None:
    workload = Workload([0, 1, 2, 2], [1, 1, 2, 2], [10, 10, 20, 8], [10, 10, 20, 8], [0, 0, 1, 1])
    system = System(2, [Queue(name="short", max_run=1), Queue(name="long")], held_jobs="reserve")
    assert reasons(workload, system, 1) == [
        "1 to 10: held by max_run = 1 of queue short, with cores reserved for it",
        "10: starts on machine, in turn",
    ]
    assert reasons(workload, system, 2)[0] == "2 to 10: behind job 1, the head job of machine"


def test_two_queues_have_a_head_job_each() -> None:
    rows = [(0, 2, 4, 0), (0, 1, 10, 0), (1, 4, 5, 0), (2, 3, 5, 1), (2, 1, 8, 1), (2, 1, 1, 1)]
    submit, cores, seconds, queue = zip(*rows, strict=True)
    workload = Workload(submit, cores, seconds, seconds, queue)
    system = System(4, [Queue(name="a", priority=2), Queue(name="b")], reserve="queues")
    assert reasons(workload, system, 3)[0] == "2 to 4: the first of queue b that waits for cores, for 3 cores"
    assert reasons(workload, system, 4)[0] == "2 to 4: behind jobs 2 and 3, the head jobs of their queues"
    assert reasons(workload, system, 5)[0].endswith("backfilled before jobs 2 and 3, which it does not delay")


def test_its_nodes_are_those_of_the_head_job() -> None:
    workload = Workload([0, 0, 3, 4], [1, 3, 2, 1], [2, 10, 5, 50], [2, 10, 5, 50])
    assert reasons(workload, System(4, reserve="nodes"), 3) == [
        "4 to 10: behind job 2, the head job of machine",
        "10: starts on machine, in turn",
    ]


def test_it_entered_the_pool() -> None:
    workload = Workload([0, 0, 0], [2, 2, 2], [20, 30, 20], [20, 30, 20])
    system = System(4, [Queue(name="a", partition=2, priority=2)], "hybrid", pool=Pool(2, threshold=1))
    # The first job takes the partition at 0, the third the pool when it has waited longer than half of its 20 s,
    # before the second, which has to wait longer than half of its 30 s.
    assert reasons(workload, system, 2) == [
        "0 to 11: behind job 1, the head job of a",
        "11: starts on pool, from the pool's list with priority factor 1.1, in turn",
    ]
    assert reasons(workload, system, 1)[-1] == "20: starts on a, in turn"


def test_an_advance_reservation() -> None:
    workload = Workload([0, 1], [1, 4], [10, 5], [10, 5], queue=[0, 1])
    queues = [Queue(name="a", partition=4), Queue(name="wide", reservation=True)]
    system = System(8, [*queues, Queue(name="b", partition=4)], "partitioned")
    assert reasons(Workload([0, 1], [1, 8], [10, 5], [10, 5], queue=[0, 1]), system, 1) == [
        "1 to 10: holds a reservation of 8 cores over several partitions",
        "10: starts on a and b, by advance reservation",
    ]
    assert reasons(workload, system, 1)[-1] == "1: starts on a and b as soon as it is submitted, by advance reservation"


def covers_the_wait(workload: Workload, system: System, jobs: range) -> None:
    schedule = simulate(workload, system)
    for job in jobs:
        *waits, start = explain(workload, system, schedule, job)
        assert start.begin == start.end == schedule.start[job]
        assert bool(waits) == (schedule.start[job] > schedule.submit[job])
        if waits:
            assert (waits[0].begin, waits[-1].end) == (workload.submit[job], schedule.start[job])
            assert all(one.end == other.begin for one, other in pairwise(waits))


@pytest.mark.parametrize("discipline", generate.TESTED)
def test_reasons_cover_the_wait(discipline: str) -> None:
    for seed in range(4):
        workload, system = generate.DISCIPLINES[discipline](Random(seed))
        covers_the_wait(workload, system, range(seed % 5, len(workload), 5))  # a fifth of them


# Job 0 leaves one core of four until 10. Job 1 is the first of the long class, job 2 of the short one.
CLASSES = Workload([0, 1, 2, 3, 3], [3, 4, 4, 1, 1], [10, 10, 5, 8, 4], [10, 10, 5, 8, 4])
BY_CLASS = System(4, mode="multiqueue", class_limits=(5,))


def test_classes() -> None:
    at_once = " as soon as it is submitted, of class"
    assert reasons(CLASSES, BY_CLASS, 0) == [f"0: starts on machine{at_once} 2 (above 5 s), in turn"]
    assert reasons(CLASSES, BY_CLASS, 1) == [
        "1 to 10: the first of class 2 (above 5 s), waits for 4 cores",
        "10: starts on machine, of class 2 (above 5 s), in turn",
    ]
    assert reasons(CLASSES, BY_CLASS, 3) == [
        "3 to 7: behind job 1, the first of class 2 (above 5 s), waits for 1 core",
        "7 to 10: behind job 1, the first of class 2 (above 5 s), which it would delay",
        "10 to 25: the first of class 2 (above 5 s), waits for 1 core",
        "25: starts on machine, of class 2 (above 5 s), in turn",
    ]
    assert reasons(CLASSES, BY_CLASS, 4) == [
        f"3: starts on machine{at_once} 1 (up to 5 s), backfilled before jobs 1 and 2, which it does not delay"
    ]


def test_classes_and_what_a_start_would_delay() -> None:
    ahead = ([0, 1], [3, 4], [10, 10], [10, 10])
    own, other = (
        Workload(*(a + b for a, b in zip(ahead, more, strict=True)))
        for more in (([3], [1], [8], [8]), ([8], [1], [4], [4]))
    )
    assert (
        reasons(own, BY_CLASS, 2)[0] == "3 to 10: behind job 1, the first of class 2 (above 5 s), which it would delay"
    )
    assert reasons(other, BY_CLASS, 2)[0] == (
        "8 to 10: the first of class 1 (up to 5 s), would delay job 1, the first of class 2 (above 5 s)"
    )
    four = System(4, mode="multiqueue", class_limits=(3, 6, 9))
    assert "of class 2 (above 3 up to 6 s)" in reasons(other, four, 2)[0]


def test_reasons_by_class_cover_the_wait() -> None:
    for seed in range(60):
        workload, cores, limits = generate.multiqueue(Random(seed))
        covers_the_wait(workload, System(cores, mode="multiqueue", class_limits=limits), range(len(workload)))


def test_jobs_go_by_the_names_given() -> None:
    workload = Workload([0, 1, 2], [3, 4, 1], [10, 10, 5], [10, 10, 5])
    system = System.single(4)
    *_, start = explain(workload, system, simulate(workload, system), 2, names=["a.pbs", "b.pbs", "c.pbs"])
    assert "before job b.pbs," in start.text
    *_, start = explain(CLASSES, BY_CLASS, simulate(CLASSES, BY_CLASS), 4, names=list("abcde"))
    assert "before jobs b and c," in start.text


def test_there_is_no_such_job() -> None:
    for job in (-1, 1):
        with pytest.raises(ValueError, match="job"):
            reasons(Workload([5], [2], [9], [9]), System.single(4), job)


def test_a_schedule_of_another_system_is_refused() -> None:
    workload = Workload([0, 1, 2, 3], [3, 4, 2, 1], [10, 10, 3, 2], [10, 10, 3, 2])
    right = System.single(4)
    for other, job in (
        (simulate(workload, System.single(5)), 1),
        (simulate(workload, System.single(4, backfill=False)), 3),
        (plan(workload, 4, "planned-sjf").schedule, 2),
    ):
        with pytest.raises(ValueError, match="schedule: not one of this workload and system"):
            explain(workload, right, other, job)
    both = Workload([0, 1, 2, 2], [3, 4, 1, 1], [20, 20, 6, 5], [20, 20, 6, 5])
    with pytest.raises(ValueError, match="schedule: not one of this"):
        explain(both, BY_CLASS, simulate(both, right), 2)
    split = System(4, [Queue("a", partition=4), Queue("b", partition=0)], "partitioned")
    with pytest.raises(ValueError, match="schedule: not one of this"):
        explain(workload, split, simulate(workload, right), 1)


def test_a_head_job_of_a_partition_that_holds_nodes_is_named() -> None:
    queues = [Queue(name="a", partition=2), Queue(name="b", partition=1)]
    system = System(3, queues, mode="partitioned", reserve="nodes")
    workload = Workload([0, 1, 2], [1, 2, 1], [10, 10, 20], [10, 10, 20], queue=[0, 0, 0])
    schedule = simulate(workload, system)
    assert "behind job 1, the head job of a" in explain(workload, system, schedule, 2)[0].text
    assert "heads the list of a" in explain(workload, system, schedule, 1)[0].text
