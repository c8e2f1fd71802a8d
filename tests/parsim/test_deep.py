"""Queues deep in jobs: only what may start, and of jobs alike the first, is looked at, and every start is the same."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from parsim import Pool, Queue, Quota, Schedule, System, Workload, naive, plan, simulate
from parsim.engine import beside_plans, candidates, head_candidates, visit
from parsim.engine.events import events
from parsim.engine.fast import listed
from parsim.engine.fast.time_dependent import time_dependent
from parsim.engine.fast.values import PASS, SCANNED
from parsim.metrics.tabulate import waits_by_size
from parsim.prepare import one_list, packing
from parsim.prepare import order as ordering
from parsim.prepare.columns import Depth, Prepared, prepare
from parsim.verify import check_schedule
from tests import generate
from tests.benchmarks import deep

CORES = 64
ALL = 10**9  #: looks a job, so many that no kernel gives up
module = importlib.import_module("parsim.simulate")


@pytest.fixture(autouse=True)
def _no_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every queue is deep at the first event."""
    monkeypatch.setattr(packing, "LOOKS", -1)
    monkeypatch.setattr(one_list, "MANY", 0)


def with_looks(looks: int, monkeypatch: pytest.MonkeyPatch, workload: Workload, system: System) -> Schedule:
    """Simulate with so many looks at waiting jobs, a job, until a queue is deep."""
    with monkeypatch.context() as patch:
        patch.setattr(packing, "LOOKS", looks)
        patch.setattr(one_list, "MANY", ALL if looks == ALL else 30)
        return simulate(copy(workload), system)  # of which it is not known yet whether its queues are deep


def same(one: Schedule, other: Schedule) -> bool:
    return one.start.tolist() == other.start.tolist() and all(
        one.placement(job) == other.placement(job) for job in range(len(one))
    )


ORDERS = (
    "eligible_time",
    "(eligible_time + walltime) / max(walltime, 1)",
    "queue_priority * (1 + eligible_time) / max(walltime, 1) ** 2 * ncpus ** -0.3",
    "min(eligible_time, 30) + 5 * queue_priority - walltime / 20",
    "floor(eligible_time / 20) - 3 * ncpus",
)


def bursts_under_limits(rng: Random) -> tuple[Workload, System]:
    """Return jobs of a few shapes in bursts, and queues with limits under an order of eligible times."""
    cores, queues = rng.choice((4, 8, 16)), rng.randint(1, 3)
    shapes = [(rng.randint(1, rng.choice((cores, cores // 2))), rng.choice((10, 20, 30, 60))) for _ in range(3)]
    jobs: list[tuple[int, int, int, int, int, int]] = []
    submit = 0
    while len(jobs) < 60:
        submit += rng.choice((0, 1, 3, 10, 40))
        (width, walltime), queue, user = rng.choice(shapes), rng.randrange(queues), rng.randrange(2)
        for _ in range(rng.choice((1, 2, 5, 10))):
            jobs.append((submit, width, rng.choice((1, walltime // 3, walltime)), walltime, queue, user))
            submit += rng.choice((0, 0, 1, 2))
    limits = [
        Queue(
            name=f"q{q}",
            priority=rng.randint(1, 2),
            max_run=rng.choice((None, rng.randint(1, 4))),
            max_run_cores=rng.choice((None, rng.randint(max(width for width, _ in shapes), cores))),
            max_user_run=rng.choice((None, None, rng.randint(1, 3))),
        )
        for q in range(queues)
    ]
    fields = ("submit", "cores", "runtime", "walltime", "queue", "user")
    workload = Workload(**dict(zip(fields, map(list, zip(*jobs, strict=True)), strict=True)))
    return workload, System(cores, limits, order=rng.choice(ORDERS), reserve_after=rng.choice((0, 0, 15, 60)))


@pytest.mark.parametrize("many", [0, ALL])
def test_jobs_alike_that_limits_hold_for_unequal_times_equal_naive(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those behind a job that starts are held, the first of their line before it is not."""
    monkeypatch.setattr(one_list, "MANY", many)
    cases = [bursts_under_limits(Random(seed)) for seed in range(40)]
    wrong = [case for case in cases if simulate(*case).start.tolist() != list(naive.simulate(*case).start)]
    assert wrong == []


@pytest.mark.parametrize("depth", [2, 5])
def test_several_of_jobs_alike_are_planned(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "LOOKS", -1)
    for workload, system in (bursts_under_limits(Random(seed)) for seed in range(40)):
        several = replace(system, reservation_depth=depth)
        assert simulate(workload, several).start.tolist() == list(naive.simulate(workload, several).start)


def systems() -> Iterator[tuple[str, System]]:
    """Yield the systems of the benchmark that simulate a list, or several, and a few more of each kind."""
    for name, run in deep.disciplines(CORES).items():
        system = getattr(run, "keywords", {}).get("system")
        if system is None:
            continue
        yield name, system
        if system.mode == "hybrid" and system.pool is not None:
            queues = [replace(queue, starvation=20_000, max_run=9, max_user_cores=40) for queue in system.queues]
            yield (
                f"{name}, everything",
                replace(system, queues=queues, order="wfp3", pool=replace(system.pool, starving_first=True)),
            )
    limits = [Queue(name=name, max_run=6, starvation=30_000, priority=1 + i) for i, name in enumerate("abcd")]
    yield "ljf, limits", System(CORES, limits, order="ljf")
    yield "wfp3", System(CORES, limits, order="wfp3")
    yield "reserve after", System(CORES, limits, reserve_after=3600)
    yield "no backfilling", System(CORES, limits, backfill=False)
    yield "nothing reserved, limits", System(CORES, limits, reserve="nothing", reserve_after=7200)


@pytest.mark.parametrize(("name", "system"), [*systems()])
def test_bursts_of_jobs_alike_start_as_before(name: str, system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = deep.bursts(600, CORES)
    before = with_looks(ALL, monkeypatch, workload, system)
    assert same(simulate(workload, system), before)
    assert same(with_looks(20, monkeypatch, workload, system), before)
    few = deep.bursts(150, CORES)  # the verifier asks the reference simulator
    assert check_schedule(few, system, simulate(few, system)) == []


@pytest.mark.parametrize(("name", "system"), [*systems()])
def test_jobs_that_all_differ_start_as_before(name: str, system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many wait that what they need is kept of each block, and so few in the end that it is not."""
    workload = deep.distinct(2000, CORES, load=9)
    before = with_looks(ALL, monkeypatch, workload, system)
    assert (before.start > workload.submit[-1]).sum() > 600
    assert same(simulate(workload, system), before)
    few = deep.distinct(120, CORES)
    assert check_schedule(few, system, simulate(few, system)) == []


HEADS = [f"head jobs{more}" for more in ("", ", lxf", ", limits", ", hybrid")]


@pytest.mark.parametrize("turns", [1, ALL])
@pytest.mark.parametrize("name", ["hybrid", "hybrid combined", "node by node", "planned limits", "depth 10", *HEADS])
@pytest.mark.usefixtures("interpreted")
def test_chosen_jobs_start_as_in_naive(name: str, turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every list is so long that what may start, and the first that may be head jobs, are chosen from it."""
    for changed in (beside_plans, candidates, head_candidates, visit):
        monkeypatch.setattr(changed, "BLOCK", 1)
    monkeypatch.setattr(beside_plans, "MANY", 0)
    monkeypatch.setattr(beside_plans, "TURNS", turns)
    system = getattr(deep.disciplines(CORES // 2)[name], "keywords", {})["system"]
    cases = [deep.distinct(60, CORES // 2, load=4, seed=seed) for seed in range(3)]
    wrong = [case for case in cases if simulate(case, system).start.tolist() != naive.simulate(case, system).start]
    assert wrong == []


@pytest.mark.parametrize("name", ["easy", "sjf", "lxf", "formula", "limits", "lxf, limits", "nothing reserved"])
def test_a_pass_scans_few_jobs_however_many_wait(name: str) -> None:
    scanned = []
    for jobs in (4000, 16_000):
        system = getattr(deep.disciplines()[name], "keywords", {})["system"]
        state = one_list.pack_one_list(prepare(deep.distinct(jobs)), system)
        time_dependent(state)
        scanned.append(state.epoch.clock[SCANNED] / state.epoch.clock[PASS])
    assert 0 < scanned[1] < 3 * scanned[0] < 1500


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("many", [0, 20])
def test_users_have_blocks_of_their_own_where_many_wait(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for constant, value in (("MANY", many), ("DEEP", 2), ("SHALLOW", 1)):
        monkeypatch.setattr(listed, constant, value)
    workload, system = (
        deep.distinct(200, CORES, load=9),
        System(CORES, [Queue(name=name) for name in "abcd"], order="fairshare"),
    )
    assert simulate(workload, system).start.tolist() == list(naive.simulate(workload, system).start)


def test_a_visit_that_reads_more_than_is_stored_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(deep, "COUNTS", tmp_path / "counts.json")
    assert deep.count(["easy"], write=True) == deep.count(["easy"]) == []
    stored = json.loads(deep.COUNTS.read_text())
    reads = stored["easy"]["alike"][1]
    stored["easy"]["alike"][1] = round(reads / 1.1, 1)
    deep.COUNTS.write_text(json.dumps(stored))
    less = stored["easy"]["alike"][1]
    assert deep.count(["easy"]) == [f"easy, alike, 320 jobs: a visit reads {reads} elements; {less} are stored"]
    assert [line[:16] for line in deep.count(["fcfs"])] == ["fcfs, alike, 80 ", "fcfs, alike, 320"] + 2 * [
        "fcfs, all differ"
    ]


@pytest.mark.parametrize(
    ("system", "kernel"),
    [
        (System(CORES, [Queue(name=name) for name in "abcd"], order="sjf"), "time_dependent"),
        (System(CORES, [Queue(name=name, max_run=9) for name in "abcd"]), "time_dependent"),
        (System(CORES, [Queue(name=name, max_run=9) for name in "abcd"], order="wfp3"), "events"),
    ],
)
def test_a_kernel_gives_up_once_it_has_looked_at_too_many_jobs(
    system: System, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    called = getattr(module, kernel)
    monkeypatch.setattr(module, kernel, lambda *arguments: calls.append(1) or called(*arguments))
    workload = deep.bursts(1200, CORES)
    with_looks(ALL, monkeypatch, workload, system)
    without = len(calls)
    with_looks(5, monkeypatch, workload, system)
    assert len(calls) == 2 * without + 1


@pytest.mark.parametrize(
    ("kernel", "system"),
    [
        ("easy", System(CORES)),
        ("easy", System(CORES, [Queue(partition=CORES)], "partitioned")),
        ("events", System(CORES, [Queue(partition=CORES, max_run=400)], "partitioned")),
        ("events", System(CORES, [Queue(partition=CORES // 2)], "hybrid", pool=Pool(CORES // 2))),
        ("events", System(CORES, [Queue(max_run=400)], reserve="queues")),
        ("events", System(CORES, [Queue(max_run=400)], reserve="nodes", cores_per_node=16)),
        ("events", System(CORES, [Queue(max_run=400)], reservation_depth=3)),
    ],
)
def test_what_gave_up_is_left_out_the_next_times(kernel: str, system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried at the first of ten times, the third and the sixth; once the queue is not deep, each time."""
    workload, gave_up = deep.bursts(1200, CORES), []
    workload = replace(workload, queue=np.zeros_like(workload.queue))
    called = getattr(module, kernel)

    def recording(*arguments: Any) -> None:
        called(*arguments)
        gave_up.append(arguments[-1].min() < 0 if kernel == "easy" else arguments[0].progress["looks"] < 0)

    monkeypatch.setattr(module, kernel, recording)
    monkeypatch.setattr(packing, "LOOKS", 1)
    monkeypatch.setattr(packing, "AHEAD", 1)
    first = simulate(workload, system)
    assert all(same(simulate(workload, system), first) for _ in range(9))
    assert sum(gave_up) == 3
    monkeypatch.setattr(packing, "LOOKS", ALL)
    before = len(gave_up)
    assert all(same(simulate(workload, system), first) for _ in range(4))
    assert sum(gave_up) == 3
    assert len(gave_up) == before + 4


def test_what_gave_up_is_left_out_twice_as_often_each_time_until_it_does_not() -> None:
    depth, tried = Depth(), []
    for time in range(24):
        if not depth.expected():
            tried.append(time)
            depth.found(deep=time not in {10, 11})
    assert tried == [0, 2, 5, 10, 11, 12, 14, 17, 22]


def test_it_is_known_of_each_queue_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "LOOKS", 1)
    monkeypatch.setattr(packing, "AHEAD", 1)
    jobs = deep.bursts(1200, CORES)
    jobs = replace(jobs, queue=np.where(np.arange(1200) < 1190, 0, 1))
    half = [Queue(name="deep", partition=CORES), Queue(name="few", partition=CORES)]
    simulate(jobs, System(2 * CORES, half, "partitioned"))
    depths = prepare(jobs).depths
    assert [depths["one list", "fcfs", queue].expected() for queue in (0, 1)] == [True, False]


def test_what_is_known_of_one_system_changes_no_start_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = deep.bursts(400, CORES)
    known = [system for _, system in systems()]
    starts = [with_looks(ALL, monkeypatch, workload, system) for system in known]
    monkeypatch.setattr(packing, "AHEAD", 0)
    rng = Random(7)
    for looks in (0, 1, 5) * 4:
        monkeypatch.setattr(packing, "LOOKS", looks)
        for at in rng.sample(range(len(known)), len(known)):
            assert same(simulate(workload, known[at]), starts[at]), known[at]


def test_a_job_passes_one_like_it_where_a_head_job_gives_its_partition_back() -> None:
    """Jobs 4 and 5 are alike; between their turns in the pool's list is that of 6, the head job of their partition.

    At 1000 six cores of the pool become idle, and job 3 is its head job: until 1300 all six may be taken, from then on
    one. Job 4 needs two cores of its partition, all promised to job 6, which then starts in the pool; so job 5 may
    have four of them.
    """
    workload = Workload(
        submit=[0, 0, 0, 10, 100, 300, 500],
        cores=[1, 4, 6, 9, 5, 5, 5],
        runtime=[1100, 1300, 1000, 100, 400, 400, 250],
        walltime=[1100, 1300, 1000, 100, 400, 400, 250],
        queue=[0, 1, 1, 1, 0, 0, 0],
    )
    queues = [Queue(name="a", partition=5), Queue(name="b")]
    system = System(15, queues, "hybrid", order="sjf", pool=Pool(10, threshold=1.5, placement="combined"))
    schedule = simulate(workload, system)
    assert schedule.start[4] > schedule.start[5] == schedule.start[6] == 1000
    assert schedule.start.tolist() == naive.simulate(workload, system).start


@pytest.mark.parametrize("backfill", [True, False])
@pytest.mark.parametrize("looks", [-1, 1, ALL])
def test_many_sizes_where_the_queue_is_deep_on_the_first(
    monkeypatch: pytest.MonkeyPatch, looks: int, backfill: bool
) -> None:
    workload, sizes = deep.bursts(2000, CORES), [CORES, 2 * CORES, 3 * CORES, 10**6, 2 * 10**6]
    workload = replace(workload, after=[[1, 0]], quotas=[Quota("one at a time", 1, range(50), [1] * 50)])
    monkeypatch.setattr(packing, "LOOKS", looks)
    waits, spans = waits_by_size(workload, sizes, backfill=backfill)
    alone = replace(workload.without_needs(), queue=np.zeros_like(workload.queue))
    for size, wait, span in zip(sizes, waits.tolist(), spans.tolist(), strict=True):
        schedule = with_looks(ALL, monkeypatch, alone, System(size, backfill=backfill))
        assert (wait, span) == (schedule.wait.sum(), schedule.end.max() - workload.submit.min())


def test_a_kernel_gives_up_at_the_same_event_whatever_comes_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or long simulations would lose more time than short ones before they change over."""
    monkeypatch.setattr(packing, "LOOKS", 1)
    workload = deep.bursts(12_000, CORES)
    system = System(CORES, [Queue(name=name, max_run=9) for name in "abcd"])
    submitted = []
    for jobs in (6000, 12_000):
        state = packing.pack(prepare(workload.take(np.arange(jobs))), system, gives_up=True)
        events(state, None, None, None)
        submitted.append(int(state.progress["submitted"]))
    assert 0 < submitted[0] == submitted[1] < 6000


def test_jobs_that_may_pass_each_other_are_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    queues = [Queue(name=name, partition=CORES // 4, max_run=4) for name in "abcd"]
    workload = deep.bursts(300, CORES)
    for order in ("-eligible_time", "eligible_time / walltime"):  # it falls; limits hold one job longer than another
        system = System(CORES, queues, "partitioned", order=order)
        assert packing.pack(prepare(workload), system, gives_up=True).progress["looks"] == ordering.NEVER
    system = System(CORES, queues, "partitioned", order="-walltime")
    assert packing.pack(prepare(workload), system, gives_up=True).progress["looks"] < 0


def test_plans_of_bursts_are_those_of_jobs_that_are_never_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = deep.bursts(800, CORES)
    for policy in ("planned-fcfs", "planned-sjf", "planned-ljf", "dynp-bounds", "conservative"):
        alike = plan(workload, CORES, policy)
        with monkeypatch.context() as patch:
            patch.setattr(Prepared, "alike", lambda prepared: prepared.own_numbers)
            alone = plan(replace(workload), CORES, policy)
        assert alike.schedule.start.tolist() == alone.schedule.start.tolist()
        assert alike.cases.tolist() == alone.cases.tolist()


def test_jobs_are_numbered_by_what_decides_about_them() -> None:
    rng = Random(0)
    workload, _ = generate.DISCIPLINES["alike"](rng)
    prepared = prepare(workload)
    w = prepared.workload
    kinds = {}
    for kind, number in zip(
        zip(w.cores.tolist(), w.walltime.tolist(), w.queue.tolist(), w.user.tolist(), strict=True),
        prepared.alike("queue", "user").tolist(),
        strict=True,
    ):
        assert kinds.setdefault(kind, number) == number
    assert len(set(kinds.values())) == len(kinds)
    lines = prepared.lines("queue", "user")
    assert (lines.members[lines.place] == np.arange(len(w))).all()
    for line, end in enumerate(lines.end.tolist()):
        begin = lines.end[line - 1] if line else 0
        assert lines.members[begin:end].tolist() == np.flatnonzero(lines.line == line).tolist()
