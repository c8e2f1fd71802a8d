"""The verifier of waiting lists and of multiple-queue backfilling: right schedules pass, every other is found wrong."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from parsim import simulate
from parsim.model.system import Pool, Queue, System
from parsim.model.throttles import Throttle
from parsim.model.workload import Workload
from parsim.verify import VerificationError, assert_schedule, check_schedule
from tests import fuzz, generate
from tests.beside import REFERENCE
from tests.parsim.schedules import jobs, schedule, violations


def hybrid(pool=2, **settings):
    queues = [Queue("a", partition=2, walltime=(0, 100)), Queue("b", partition=2)]
    return System(4 + pool, queues, "hybrid", pool=Pool(pool, **settings))


def two(of_a=None, order="fcfs", **settings):
    return System(4, [Queue("a", **(of_a or {})), Queue("b")], order=order, **settings)


def classes(*limits, cores=4):
    return System(cores, mode="multiqueue", class_limits=limits)


# One list on one set of cores: A runs until 10, H waits for all cores, then S and L could pass it.
MACHINE, FCFS, SHORT = System.single(4), System.single(4, backfill=False), classes(5)
WAITING = jobs((0, 3, 10), (1, 4, 5), (2, 1, 8), (3, 1, 9))
PASSED = jobs((0, 3, 10), (1, 4, 5), (3, 1, 9))
TWICE = jobs((0, 4, 5), (2, 4, 5))
ORDERED = jobs((0, 4, 5), (1, 4, 9), (2, 4, 3))
WFP3 = jobs((0, 4, 30), (0, 1, 30), (0, 4, 30))
RANKED = jobs((0, 4, 5), (1, 4, 5, 5, 0), (2, 4, 5, 5, 1))
LOW = System(4, [Queue("low", priority=1, starvation=None), Queue("high", priority=2)])
STARVING = System(4, [Queue("low", priority=1, starvation=4), Queue("high", priority=2)])
HELD = {"of_a": {"max_run": 1}}
NODES = jobs((0, 1, 2, 2), (0, 3, 10, 10), (3, 2, 5, 5), (4, 1, 50, 50))
HEADS = jobs((0, 2, 4, 4), (0, 1, 10, 10), (1, 4, 5, 5), (2, 3, 5, 5, 1), (2, 1, 8, 8, 1))
# Of multiple queues: job 0 leaves one core idle until 10. Then job 1, the pivot of the long class, takes all; job 2,
# that of the short class, comes after it at 20. Of the last two, job 4 ends before 10 and may pass; job 3 would not.
CROWD = jobs((0, 3, 10), (1, 4, 10), (2, 4, 5), (3, 1, 8), (3, 1, 4))
EDGE = jobs((0, 3, 10), (1, 4, 9), (2, 4, 5), (3, 1, 7), (3, 1, 5))  # the pivot of its class, unless the limit is 4


@pytest.mark.parametrize(
    ("what", "workload", "system", "starts", "expected"),
    [
        ("right", WAITING, MACHINE, [0, 10, 2, 15], []),
        ("before its submission", WAITING, MACHINE, [0, 10, 1, 15], [("submit", 2, 1)]),
        ("late", jobs((0, 1, 5), (2, 1, 5)), MACHINE, [0, 5], [("waiting", 1, 2)]),
        ("late behind another", TWICE, MACHINE, [0, 6], [("waiting", 1, 5)]),
        ("in the second of an end", TWICE, MACHINE, [0, 5], []),
        ("at no event", PASSED, MACHINE, [0, 13, 4], [("event", 2, 4)]),
        ("overlap", WAITING, MACHINE, [0, 9, 2, 15], [("capacity", 1, 9)]),
        ("two on one core", WAITING, MACHINE, [0, 12, 2, 3], ("capacity", 3, 3)),
        ("delays the head job", PASSED, MACHINE, [0, 12, 3], ("head job", 2, 3)),
        ("ends at the shadow", jobs((0, 3, 10), (1, 4, 5), (3, 1, 7)), MACHINE, [0, 10, 3], []),
        ("left at the shadow", jobs((0, 3, 10), (1, 4, 5), (3, 1, 7)), MACHINE, [0, 10, 15], [("waiting", 2, 3)]),
        ("extra cores", jobs((0, 2, 10), (0, 1, 10), (1, 3, 5), (3, 1, 50)), MACHINE, [0, 0, 10, 3], []),
        ("extra", jobs((0, 2, 10), (0, 1, 10), (1, 3, 5), (3, 1, 50)), MACHINE, [0, 0, 10, 10], [("waiting", 3, 3)]),
        ("extra once", jobs((0, 2, 10), (1, 3, 5), (3, 1, 50), (3, 1, 50)), MACHINE, [0, 10, 3, 15], []),
        ("twice", jobs((0, 2, 10), (1, 3, 5), (3, 1, 50), (3, 1, 50)), MACHINE, [0, 53, 3, 3], ("head job", 3, 3)),
        ("by estimates", jobs((0, 3, 10), (1, 4, 5), (3, 1, 9, 2)), MACHINE, [0, 10, 15], []),
        ("by run times", jobs((0, 3, 10), (1, 4, 5), (3, 1, 9, 2)), MACHINE, [0, 10, 3], [("head job", 2, 3)]),
        ("no backfilling", jobs((0, 3, 10), (1, 4, 5), (2, 1, 8)), FCFS, [0, 10, 15], []),
        ("passes without", jobs((0, 3, 10), (1, 4, 5), (2, 1, 8)), FCFS, [0, 10, 2], [("order", 2, 2)]),
        ("fcfs", ORDERED, MACHINE, [0, 5, 14], []),
        ("another order", ORDERED, MACHINE, [0, 8, 5], ("order", 1, 5)),
        ("sjf", ORDERED, System.single(4, "sjf"), [0, 8, 5], []),
        ("ljf", ORDERED, System.single(4, "ljf"), [0, 5, 14], []),
        ("formula", ORDERED, System.single(4, "-walltime"), [0, 8, 5], []),
        # At 30 the ratios are 30 / 30 and 20 / 20.
        ("lxf", jobs((0, 4, 30), (0, 4, 30), (10, 4, 20)), System.single(4, "lxf"), [0, 30, 60], []),
        ("wfp3 together", WFP3, System.single(4, "wfp3"), [0, 30, 30], ("capacity", 2, 30)),
        ("wfp3", WFP3, System.single(4, "wfp3"), [0, 60, 30], []),
        ("priority", RANKED, LOW, [0, 10, 5], []),
        ("no priority", RANKED, LOW, [0, 5, 10], ("order", 2, 5)),
        ("starvation", RANKED, STARVING, [0, 5, 10], []),
        ("no starvation", RANKED, STARVING, [0, 10, 5], ("order", 1, 5)),
        *(
            row
            for wait, expected in (([0, 9, 14, 2], []), ([0, 9, 2, 2], [("limit", 2, 2)]))
            for row in [
                ("the limit of a head job", jobs((0, 1, 9), (1, 4, 5), (2, 1, 3), (2, 1, 3, 3, 1)),
                 two({"max_run": 2}), wait, expected)
            ]
        ),
        ("a held job is no head job", jobs((0, 1, 9), (1, 4, 5), (2, 3, 30, 30, 1)), two(**HELD), [0, 32, 2], []),
        # At 6 the first of a ends. Its second was held from 0 on: b, submitted at 1, has waited for longer.
        *(
            ("eligible time", jobs((0, 2, 6, 6, 0), (0, 4, 5, 5, 0), (1, 4, 5, 5, 1)),
             two(**HELD, order="eligible_time"), wait, expected)
            for wait, expected in (([0, 11, 6], []), ([0, 6, 11], ("order", 2, 6)))
        ),
        *(
            ("a held head job", jobs((0, 2, 10, 10, 0), (1, 1, 5, 5, 0), (2, 2, 20, 20, 1), (3, 2, 5, 5, 1)),
             two(**HELD, held_jobs="reserve"), wait, expected)
            for wait, expected in (([0, 10, 2, 15], []), ([0, 10, 11, 3], ("waiting", 2, 2)))
        ),
        *(
            ("a wide one", jobs((0, 2, 10, 10, 0), (1, 3, 5, 5, 0), (2, 2, 20, 20, 1)),
             two(**HELD, held_jobs="reserve"), wait, expected)
            for wait, expected in (([0, 10, 15], []), ([0, 22, 2], [("head job", 2, 2)]))
        ),
        ("its nodes", NODES, System(4, reserve="nodes"), [0, 0, 10, 10], []),
        ("its nodes taken", NODES, System(4, reserve="nodes"), [0, 0, 10, 4], [("head job", 3, 4)]),
        ("no nodes", NODES, System(4), [0, 0, 10, 4], []),
        *(
            ("head jobs of queues", HEADS, System(4, [Queue("a", priority=2), Queue("b")], reserve="queues"), wait,
             expected)
            for wait, expected in (
                ([0, 0, 10, 4, 15], []),
                ([0, 0, 10, 15, 2], ("head job", 4, 2)),
                ([0, 0, 11, 5, 16], ("waiting", 3, 4)),
            )
        ),
        *(
            ("throttle", jobs((0, 2, 5, 5, 0, 7), (1, 1, 5, 5, 0, 7), (1, 1, 5, 5, 0, 8)),
             System(4, throttles=[Throttle(each="user", max_run_cores=2)]), wait, expected)
            for wait, expected in (([0, 5, 1], []), ([0, 1, 1], [("limit", 1, 1)]))
        ),
        ("pivots", CROWD, SHORT, [0, 10, 20, 25, 3], []),
        ("fits beside the pivots", CROWD, SHORT, [0, 10, 20, 25, 25], ("waiting", 4, 3)),
        ("a shorter class first", CROWD, SHORT, [0, 11, 21, 3, 26], ("order", 4, 3)),
        ("columns first", CROWD, SHORT, [0, 9, 20, 25, 3], [("capacity", 1, 9)]),
        ("of pivots too", CROWD, SHORT, [0, 10, 20, 25, 2], [("submit", 4, 2)]),
        ("delays its pivot", jobs((0, 3, 10), (1, 4, 10), (3, 1, 8)), SHORT, [0, 11, 3], [("head job", 2, 3)]),
        # Jobs 2 and 3 are of the short class, job 1 of the long, during which one of the short could end.
        *(
            ("another pivot", jobs((0, 3, 10), (1, 4, 20), (8, 4, 4), (8, 1, 4)), SHORT, wait, expected)
            for wait, expected in (([0, 10, 30, 34], []), ([0, 12, 32, 8], ("head job", 3, 8)))
        ),
        ("after pivots", jobs((0, 3, 10), (1, 4, 20), (8, 1, 4)), SHORT, [0, 10, 30], []),
        ("pivot before pivot", jobs((0, 3, 10), (1, 4, 20), (8, 1, 4)), SHORT, [0, 12, 8], ("head job", 2, 8)),
        ("idle cores of a class", jobs((0, 2, 3), (0, 2, 3)), SHORT, [0, 0], []),
        ("serve another", jobs((0, 2, 3), (0, 2, 3)), SHORT, [0, 3], [("waiting", 1, 0)]),
        # Behind a pivot in each class, job 3 (long) and job 4 (short) want the one idle core until 10.
        *(
            ("shortest first", jobs((0, 3, 20), (1, 4, 20), (1, 4, 5), (2, 1, 6), (2, 1, 5)), SHORT, wait, expected)
            for wait, expected in (([0, 20, 40, 7, 2], []), ([0, 20, 40, 2, 8], ("order", 4, 2)))
        ),
        ("at a limit of classes", EDGE, SHORT, [0, 10, 19, 3, 24], ("order", 4, 3)),
        ("above it", EDGE, classes(4), [0, 10, 19, 3, 24], []),
        ("classes by estimates", jobs((0, 3, 10), (1, 4, 9), (3, 1, 8, 2)), SHORT, [0, 10, 19], []),
        ("by run times", jobs((0, 3, 10), (1, 4, 9), (3, 1, 8, 2)), SHORT, [0, 10, 3], [("head job", 2, 3)]),
        ("classes at no event", TWICE, SHORT, [0, 6], [("waiting", 1, 5)]),
        *(("no job at all", Workload([], [], [], []), system, [], []) for system in (MACHINE, SHORT)),
    ],
)  # fmt: skip
def test_starts(what, workload, system, starts, expected):
    """All violations are those listed, or the first is."""
    found = violations(workload, system, starts)
    assert (found == expected) if isinstance(expected, list) else (found[0] == expected), what


@pytest.mark.parametrize(
    ("limit", "second"),
    [({"max_run": 1}, 9), ({"max_run_cores": 2}, 9), ({"max_user_run": 1}, -1), ({"max_user_cores": 2}, 7)],
)
def test_limit_exceeded(limit, second):
    workload = jobs((0, 2, 5, 5, 0, 7), (1, 1, 5, 5, 0, 7), (1, 1, 5, 5, 1, 7))
    assert violations(workload, two(limit), [0, 5, 1]) == []
    assert violations(workload, two(limit), [0, 1, 1]) == [("limit", 1, 1)]
    other = replace(workload, user=[7, second, 7])
    expected = [] if limit.keys() == {"max_user_run"} else [("limit", 1, 1)]
    assert violations(other, two(limit), [0, 1, 1]) == expected


SPLIT = System(6, [Queue("a", partition=4), Queue("b", partition=2), Queue("wide", reservation=True)], "partitioned")
SMALL = System(6, (Queue("a", partition=4, starvation=3), *SPLIT.queues[1:]), "partitioned")
LARGE = System(10, [Queue("a", partition=4), Queue("b", partition=6), Queue("wide", reservation=True)], "partitioned")
BOTH = {"a": 4, "b": 2}
EACH = jobs((0, 1, 5, 5, 0), (0, 1, 5, 5, 1))
RESERVED = jobs((0, 4, 10, 10, 0), (1, 6, 5, 5, 2), (2, 1, 8, 8, 1), (2, 1, 9, 9, 1))
# At 3 the last would leave either enough: the head job from 5 to 15, the reservation from 10 on.
TOGETHER = jobs((0, 2, 5, 5, 0), (0, 1, 10, 10, 0), (0, 6, 10, 10, 1), (1, 5, 5, 5, 2), (2, 2, 10), (3, 1, 20))
STARVED = jobs((0, 3, 10, 10, 0), (1, 4, 5, 5, 0), (2, 6, 5, 5, 2))
# The second may enter the pool when it has waited longer than half of its walltime: at 6, its wake-up.
ENTERS = jobs((0, 2, 20, 20, 0), (0, 2, 10, 10, 0))
COMBINED = jobs((0, 1, 20, 20, 0), (0, 2, 10, 10, 0), (0, 1, 20, 20, 1), (0, 2, 20, 20, 1))
FACTORS = jobs((0, 2, 40, 40, 0), (0, 2, 40, 40, 1), (0, 2, 10, 10, 0), (0, 2, 12, 12, 0), (0, 2, 4, 4, 1))


@pytest.mark.parametrize(
    ("workload", "system", "starts", "where", "expected"),
    [
        (EACH, SPLIT, [0, 0], "a b", []),
        (EACH, SPLIT, [0, 0], "a a", [("placement", 1, 0)]),
        (EACH, SPLIT, [0, 0], "a wide", ("capacity", 1, 0)),
        (jobs((0, 6, 5, 5, 2)), SPLIT, [0], [BOTH], []),
        (jobs((0, 6, 5, 5, 2)), SPLIT, [0], [{"a": 4, "b": 1}], [("placement", 0, 0)]),
        (jobs((0, 4, 5, 5, 0), (1, 1, 5, 5, 0)), SPLIT, [0, 5], "a a", []),
        (jobs((0, 4, 5, 5, 0), (1, 1, 5, 5, 0)), SPLIT, [0, 1], "a a", [("capacity", 1, 1)]),
        # floor(5 * 4 / 6) = 3, floor(5 * 2 / 6) = 1, one more where most is free
        (jobs((0, 5, 5, 5, 2)), SPLIT, [0], [{"a": 4, "b": 1}], []),
        (jobs((0, 5, 5, 5, 2)), SPLIT, [0], [{"a": 3, "b": 2}], [("shares", 0, 0)]),
        (RESERVED, SPLIT, [0, 10, 2, 15], ["a", BOTH, "b", "b"], []),
        (RESERVED, SPLIT, [0, 11, 2, 2], ["a", BOTH, "b", "b"], ("reservation", 3, 2)),
        (RESERVED, SPLIT, [0, 10, 15, 15], ["a", BOTH, "b", "b"], ("waiting", 2, 2)),
        (TOGETHER, LARGE, [0, 0, 0, 10, 5, 10], ["a", "a", "b", {"a": 1, "b": 4}, "a", "a"], []),
        (TOGETHER, LARGE, [0, 0, 0, 10, 5, 3], ["a", "a", "b", {"a": 1, "b": 4}, "a", "a"], ("head job", 5, 3)),
        (STARVED, SMALL, [0, 10, 15], ["a", "a", BOTH], []),
        (STARVED, SMALL, [0, 15, 10], ["a", "a", BOTH], ("reservation", 2, 10)),
        (ENTERS, hybrid(), [0, 6], "a pool", []),
        (ENTERS, hybrid(), [0, 5], "a pool", [("pool", 1, 5)]),
        (ENTERS, hybrid(), [0, 20], "a a", [("waiting", 1, 6)]),
        (ENTERS, hybrid(entry="move"), [0, 20], "a a", [("placement", 1, 20)]),
        # A job wider than the pool never enters it.
        (ENTERS, hybrid(pool=1), [0, 20], "a a", []),
        (ENTERS, hybrid(pool=1, placement="combined"), [0, 20], "a a", []),
        *(
            (COMBINED, hybrid(pool=1, placement=how, threshold=1), [0, 11, 0, 20], ["a", {"a": 1, "pool": 1}, "b", "b"],
             expected)
            for how, expected in (("combined", []), ("pool", [("pool", 1, 11)]))
        ),
        (FACTORS, hybrid(), [0, 0, 7, 17, 3], "a b pool pool pool", []),
        (FACTORS, hybrid(), [0, 0, 19, 7, 3], "a b pool pool pool", ("order", 2, 7)),
    ],
)  # fmt: skip
def test_places(workload, system, starts, where, expected):
    each = where.split() if isinstance(where, str) else where
    found = violations(workload, system, starts, [{it: 1} if isinstance(it, str) else it for it in each])
    assert (found == expected) if isinstance(expected, list) else (found[0] == expected)


def rules(workload, system, wrong):
    return [found.rule for found in check_schedule(workload, system, wrong)]


def test_columns_that_are_not_those_of_the_jobs():
    right = schedule(WAITING, MACHINE, [0, 10, 2, 15])
    assert rules(WAITING, MACHINE, replace(right, end=right.end + np.array([0, 0, 1, 0]))) == ["end"]
    killed = schedule(jobs((0, 1, 10, 20)), MACHINE, [0])
    assert killed.end.tolist() == [10]
    assert rules(jobs((0, 1, 10, 20)), MACHINE, killed) == []
    assert rules(jobs((0, 1, 10, 20)), MACHINE, replace(killed, end=np.array([20])))[0] == "end"
    for workload, wrong in (
        (WAITING, replace(right, cores=right.cores - 1)),
        (WAITING, replace(right, partition_names=("pool",))),
        (WAITING.take([0, 1]), right),
        (replace(WAITING, queue=[0, 0, 1, 0]), right),
    ):
        assert rules(workload, MACHINE, wrong)[0] == "job"
    wide = jobs((0, 6, 5, 5, 2))
    lost = replace(schedule(wide, SPLIT, [0], [BOTH]), shares={})
    assert rules(wide, SPLIT, lost)[0] == "placement"
    assert rules(wide, SPLIT, replace(lost, partition=np.array([7], dtype=np.int32)))[0] == "placement"


def test_raises_with_the_findings():
    wrong = schedule(WAITING, MACHINE, [0, 10, 1, 15])
    with pytest.raises(VerificationError, match=r"\[submit\] job 2 at 1: .*before") as caught:
        assert_schedule(WAITING, MACHINE, wrong)
    assert [violation.job for violation in caught.value.violations] == [2]
    assert_schedule(WAITING, MACHINE, schedule(WAITING, MACHINE, [0, 10, 2, 15]))
    many = jobs(*[(9, 1, 1)] * 20)
    with pytest.raises(VerificationError, match="and 10 more"):
        assert_schedule(many, MACHINE, schedule(many, MACHINE, [0] * 20))


@pytest.mark.parametrize(
    ("workload", "starts", "message"),
    [
        (WAITING, [0, 10, 15, 15], "[waiting] job 2 at 2: must start on 1 cores of machine, and waits"),
        (PASSED, [0, 12, 3], "[head job] job 2 at 3: starts, and must wait: job 1 is planned at 10"),
    ],
)
def test_the_message_says_what_had_to_be(workload, starts, message):
    (found,) = check_schedule(workload, MACHINE, schedule(workload, MACHINE, starts))
    assert str(found) == message


def test_broken_schedules_of_classes_are_wrong():
    assert [seed for seed in range(200) if fuzz.unnoticed("multiqueue", seed)] == []


def test_other_classes_make_another_schedule():
    """Unless both give the same, the schedule of one set of classes is wrong under another."""
    differing = 0
    for seed in range(150):
        workload, cores, own = generate.multiqueue(Random(seed))
        right = fuzz.case("multiqueue", seed).reference()
        for limits in ((), (3,), (2, 5, 20)):
            other = classes(*limits, cores=cores)
            same = (simulate(workload, other).start == right.start).all()
            assert bool(check_schedule(workload, other, right)) != same, (seed, own, limits)
            differing += not same
    assert differing > 20


@pytest.mark.parametrize(("name", "cores"), [("KTH-SP2", 100), ("SDSC-SP2", 128)])
def test_start_of_a_trace_is_right(name, cores):
    path = REFERENCE / f"{name}_easy.csv.gz"
    if not path.exists():
        pytest.skip(f"no cleaned jobs beside the project: {path.name}")
    workload = replace(fuzz.trace(name).take(slice(1000)), queue=None)
    system = classes(100, 1000, 10_000, cores=cores)
    right = simulate(workload, system)
    assert check_schedule(workload, system, right) == []
    for job in np.flatnonzero(right.wait > 0)[::20].tolist():
        start = right.start.copy()
        start[job] -= 1
        assert check_schedule(workload, system, schedule(workload, system, start)), job
