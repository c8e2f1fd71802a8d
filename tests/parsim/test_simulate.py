"""The simulator against naive.py, the independent references, and transformations that must not matter."""

from __future__ import annotations

import dataclasses
import itertools
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest

from parsim import Pool, Queue, System, Window, Workload, naive, simulate
from parsim.model.workload import BOUNDS
from parsim.verify import check_schedule
from tests import generate
from tests.beside import REFERENCE

DISCIPLINES = generate.TESTED


REFERENCES = {
    "KTH-SP2_easy": System.single(100),
    "KTH-SP2_fcfs": System.single(100, backfill=False),
    "SDSC-SP2_easy": System.single(128),
    "SDSC-SP2_fcfs": System.single(128, backfill=False),
    "HPC2N_easy": System.single(240),
    "SDSC-SP2_partitioned": System(
        128,
        [Queue(name="a", partition=24), Queue(name="b", partition=32), Queue(name="c", partition=72)],
        "partitioned",
    ),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_every_start_equals_the_independent_reference(name: str) -> None:
    path = REFERENCE / f"{name}.csv.gz"
    if not path.exists():
        pytest.skip(f"no reference schedules beside the project: {path.name}")
    table = pd.read_csv(path)
    queue = table["partition"] if "partition" in table else np.zeros(len(table))
    workload = Workload(table["submit"], table["cores"], table["runtime"], table["walltime"], queue=queue)
    schedule = simulate(workload, REFERENCES[name])
    assert (schedule.start == table["start"].to_numpy()).all()
    # The general event loop gives the same: a running limit that no job reaches keeps it off the fast kernel.
    queues = [dataclasses.replace(queue, max_run=10**9) for queue in REFERENCES[name].queues]
    general = simulate(workload, dataclasses.replace(REFERENCES[name], queues=queues))
    assert (general.start == schedule.start).all()


def shifted(workload: Workload, system: System) -> tuple[Workload, System]:
    later = 12345 * max(1, system.priority_calc_period)
    return dataclasses.replace(workload, submit=workload.submit + later), generate.at_another_time(system, 1, later)


def scaled(workload: Workload, system: System) -> tuple[Workload, System]:
    queues = [
        dataclasses.replace(
            q,
            walltime=(q.walltime[0] * 7, min(q.walltime[1] * 7, 2**31 - 1)),
            starvation=None if q.starvation is None else q.starvation * 7,
        )
        for q in system.queues
    ]
    throttles = [
        t if t.max_run_core_seconds is None else dataclasses.replace(t, max_run_core_seconds=t.max_run_core_seconds * 7)
        for t in system.throttles
    ]
    times = {name: getattr(workload, name) * 7 for name in ("submit", "runtime", "walltime")}
    changed = {"reserve_after": system.reserve_after * 7, "class_limits": [limit * 7 for limit in system.class_limits]}
    slow = dataclasses.replace(system, queues=queues, throttles=throttles, **changed)
    return dataclasses.replace(workload, **times), generate.at_another_time(slow, 7, 0)


def has_seconds_of_its_own(system: System) -> bool:
    """Whether numbers of seconds stand in its rules: in formulas, use, eligibility rounded up, the second after."""
    keeps_out = any((throttle.max_eligible, throttle.max_queued) != (None, None) for throttle in system.throttles)
    later = keeps_out or system.has_tiers
    return system.formula is not None or system.pool is not None or system.is_fair or later


def renamed(workload: Workload, system: System) -> tuple[Workload, System]:
    queues = [dataclasses.replace(q, name=f"other{i}") for i, q in enumerate(system.queues)]
    return workload, dataclasses.replace(system, queues=queues)


def with_unused_queue(workload: Workload, system: System) -> tuple[Workload, System]:
    pool = len(system.queues)  # its partition, which is one later then
    windows = [dataclasses.replace(w, partition=pool + 1) if w.partition == pool else w for w in system.windows]
    queues = [*system.queues, Queue(name="unused", starvation=5)]
    return workload, dataclasses.replace(system, queues=queues, windows=windows)


@pytest.mark.parametrize("discipline", ["easy", "qos-all", "typed-all"])
def test_jobs_that_are_chosen_are_as_if_they_were_checked_again(discipline: str) -> None:
    for seed in range(30):
        workload, _ = DISCIPLINES[discipline](Random(seed))
        numbers = np.random.default_rng(seed)
        for rows in (slice(None, None, -1), slice(2), numbers.integers(0, len(workload), 5), workload.cores > 3):
            columns = {name: getattr(workload, name)[rows] for name in BOUNDS}
            chosen, checked = workload.take(rows), dataclasses.replace(workload, **columns)
            for field in dataclasses.fields(Workload):
                one, other = getattr(chosen, field.name), getattr(checked, field.name)
                assert np.array_equal(one, other) if field.name in BOUNDS else one is other or one == other
            assert not any(getattr(chosen, name).flags.writeable for name in BOUNDS)
            assert all(getattr(chosen, name).flags.c_contiguous for name in BOUNDS)


def doubled(workload: Workload, system: System) -> tuple[Workload, System]:
    """All that there is, and all that is asked for, twice."""

    def twice(record: Any) -> Any:
        names = {field.name for field in dataclasses.fields(record)} & AMOUNTS
        names -= {"cores"} if isinstance(record, Queue) else set()  # those that a queue is for play no part
        return dataclasses.replace(record, **{name: _twice(getattr(record, name)) for name in names})

    queues = [twice(queue) for queue in system.queues]
    pool = system.pool and twice(system.pool)
    types, throttles, windows = (map(twice, each) for each in (system.node_types, system.throttles, system.windows))
    requests = [tuple(map(twice, request)) for request in workload.requests]
    changed = {"queues": queues, "pool": pool, "throttles": [*throttles], "windows": [*windows], "node_types": [*types]}
    changed |= {"cores": 2 * system.cores, "cores_per_node": 2 * system.cores_per_node}
    large = dataclasses.replace(system, **changed)
    return dataclasses.replace(workload, cores=workload.cores * 2, requests=requests), large


#: What counts cores, or other things that there are so many of.
AMOUNTS = {
    "cores", "cores_per_node", "partition", "resources",
    "max_run_cores", "max_user_cores", "max_run_core_seconds", "max_run_resources",
}  # fmt: skip


def _twice(amount: Any) -> Any:
    if isinstance(amount, tuple):  # of resources by name
        return {name: 2 * each for name, each in amount}
    return amount and 2 * amount


def has_shares(workload: Workload, system: System) -> bool:
    """Whether several partitions give cores: to a job that none can hold, or to windows (rule "cores of a window")."""
    parts = system.partition_cores
    widest = np.array([max(cores, system.pool_cores) for cores in parts])[workload.queue % len(parts)]
    return not system.is_whole and (bool(system.windows) or bool((workload.cores > widest).any()))


def counts_cores_by_one(workload: Workload, system: System) -> bool:
    """Whether numbers of cores stand in its rules: in formulas, shares, and copies of one core."""
    ones = any(chunk.cores == 1 for request in workload.requests for chunk in request)
    alone = bool(system.node_types) and (system.reserve == "queue_nodes" or ones)
    return system.formula is not None or has_shares(workload, system) or alone


def with_closed_nodes(workload: Workload, system: System) -> tuple[Workload, System]:
    """Nodes more that are out of service, behind those of a shared machine; else in a queue without jobs."""
    more = 2 * system.cores_per_node
    if not system.is_whole:
        queues = [*system.queues, Queue(name="unused", partition=more)]
        return workload, dataclasses.replace(system, cores=system.cores + more, queues=queues)
    begin = min(workload.submit.tolist())
    closed = Window(begin, begin + 2**40, more)
    return workload, dataclasses.replace(system, cores=system.cores + more, windows=[closed])


def may_have_closed_nodes(workload: Workload, system: System) -> bool:
    """Whether nodes out of service, or of no job, are as if they were not there."""
    by_kind = system.node_types or system.windows or system.has_tiers or system.reserves_nothing
    return system.cores % system.cores_per_node == 0 and not (by_kind or has_shares(workload, system))


def in_another_order(workload: Workload, seed: int, *, queues_apart: bool = False) -> np.ndarray:
    """Return lines of a workload shuffled, those of one submit (and queue, where these are apart) in their order."""
    rows = np.stack((workload.submit, workload.queue * queues_apart))
    _, group = np.unique(rows, axis=1, return_inverse=True)
    return np.argsort(np.random.default_rng(seed).random(len(workload))[group.reshape(-1)], kind="stable")


def has_queues_apart(workload: Workload, system: System) -> bool:
    """Whether no job of a queue matters to those of another: each has cores of its own."""
    together = system.throttles or system.is_fair or system.windows or "active_jobs" in system.order
    return system.mode == "partitioned" and not (together or has_shares(workload, system))


def of_classes(rng: Random) -> generate.Case:
    """Return a case of multiple-queue backfilling."""
    workload, cores, limits = generate.multiqueue(rng)
    return workload, System(cores, mode="multiqueue", class_limits=limits)


@pytest.mark.parametrize("discipline", [*DISCIPLINES, "multiqueue"])
def test_what_must_not_matter_does_not(discipline: str) -> None:
    for seed in range(2000, 2005):
        workload, system = {**DISCIPLINES, "multiqueue": of_classes}[discipline](Random(seed))
        found = simulate(workload, system)
        for change in (shifted, renamed, with_unused_queue):
            assert (simulate(*change(workload, system)).wait == found.wait).all(), (seed, change)
        if not has_seconds_of_its_own(system):
            assert (simulate(*scaled(workload, system)).wait == found.wait * 7).all(), seed
        if not counts_cores_by_one(workload, system):
            assert (simulate(*doubled(workload, system)).wait == found.wait).all(), seed
        if may_have_closed_nodes(workload, system):
            assert (simulate(*with_closed_nodes(workload, system)).wait == found.wait).all(), seed
        order = in_another_order(workload, seed, queues_apart=has_queues_apart(workload, system))
        assert (simulate(workload.take(order), system).start == found.start[order]).all(), seed


#: Settings that change no start, the disciplines and how many cases of each.
CHANGE_NOTHING = {
    "a pool of nothing": (["reservations-all"], 300, lambda _: {"mode": "hybrid", "pool": Pool(cores=0)}),
    "a node as large as the machine": (
        *(["shared-all", "reserve-after-all"], 100),
        lambda system: {"reserve": "nodes", "cores_per_node": system.cores},
    ),
    "held jobs without limits": (["shared", "partitioned", "hybrid-plain"], 30, lambda _: {"held_jobs": "reserve"}),
    "head jobs of queues without backfilling": (["fcfs"], 30, lambda _: {"reserve": "queues"}),
}


@pytest.mark.parametrize("what", CHANGE_NOTHING)
def test_what_has_no_effect_changes_no_start(what: str) -> None:
    disciplines, seeds, changes = CHANGE_NOTHING[what]
    for discipline, seed in itertools.product(disciplines, range(seeds)):
        workload, system = DISCIPLINES[discipline](Random(seed))
        other = dataclasses.replace(system, **changes(system))
        assert (simulate(workload, other).start == simulate(workload, system).start).all(), (discipline, seed)


def test_pool_of_everything_is_the_shared_machine_by_priority_factor() -> None:
    for seed in range(300):
        workload, system = DISCIPLINES["shared"](Random(seed))
        queues = [dataclasses.replace(q, priority=1 + i, partition=0) for i, q in enumerate(system.queues)]
        hybrid = System(system.cores, queues, mode="hybrid", pool=Pool(cores=system.cores, threshold=0.0))
        shared = System(system.cores, queues, order="queue_priority * eligible_time / walltime")
        one, other = simulate(workload, hybrid), simulate(workload, shared)
        if all(w <= q.walltime[1] for w, q in zip(workload.walltime, [queues[i] for i in workload.queue], strict=True)):
            assert (one.start == other.start).all(), seed


LIVELY = (
    "(eligible_time + walltime) / max(walltime, 1) ** 2 * ncpus ** -0.15 * (1 + (eligible_time / 90) ** 2)",
    "(1 + (eligible_time / (1.5 * max(walltime, 1))) ** 2.5 * (ncpus / 4) ** 0.8) / max(walltime, 1) ** 0.6",
    "min(eligible_time, 40) * ncpus",  # many are equal
    "-ncpus",
)


@pytest.mark.parametrize("formula", LIVELY)
@pytest.mark.parametrize("backfill", [True, False])
def test_formulas_in_long_lists_as_in_the_general_event_loop(formula: str, backfill: bool) -> None:
    """It simulates a partition of all the cores; hundreds of jobs wait, with limits that hold none, some and most."""
    rng = np.random.default_rng(3)
    submit = np.sort(rng.integers(0, 100, 600))
    cores, walltime = rng.choice([1, 1, 1, 2, 5, 30], 600), rng.integers(1, 200, 600)
    user = rng.integers(-1, 9, 600)
    jobs = Workload(submit, cores, rng.integers(1, walltime + 1), walltime, user=user)
    free = Queue(name="all", partition=30)
    rare = dataclasses.replace(free, starvation=150, max_run=600, max_user_cores=30)
    often = dataclasses.replace(rare, max_run=12, max_user_run=3)
    starts = []
    for queue in (free, rare, often):
        shared = System(cores=30, queues=[queue], order=formula, backfill=backfill)
        found = simulate(jobs, shared)
        assert (found.start == simulate(jobs, dataclasses.replace(shared, mode="partitioned")).start).all()
        starts.append(found.start.tolist())
    assert starts[1] != starts[2]
    few = jobs.take(slice(150))  # the verifier asks the reference simulator
    assert not check_schedule(few, shared, simulate(few, shared))


@pytest.mark.parametrize(("backfill", "starts"), [(False, [0, 0, 0, 5, 105]), (True, [0, 0, 0, 5, 105])])
def test_formulas_on_the_widest_machine(backfill: bool, starts: list[int]) -> None:
    widest = 2**31 - 1
    jobs = Workload([0, 0, 0, 5, 6], [10, 20, 30, 40, widest], [100] * 5, [100] * 5)
    assert simulate(jobs, System.single(widest, "eligible_time", backfill=backfill)).start.tolist() == starts
    jobs = Workload([0, 1, 2, 3], [10, widest, widest, 40], [100, 50, 20, 100], [100, 50, 20, 100])
    expected = naive.simulate(jobs, System.single(widest, "eligible_time", backfill=backfill)).start
    assert simulate(jobs, System.single(widest, "eligible_time", backfill=backfill)).start.tolist() == list(expected)


def test_one_list_on_the_whole_machine_whatever_it_is_called() -> None:
    for seed in range(300):
        workload, system = DISCIPLINES["easy"](Random(seed))
        starts = simulate(workload, System.single(system.cores)).start
        for other in (
            System(system.cores, [Queue(partition=system.cores)], mode="partitioned"),
            System(system.cores, [Queue(max_run=10**6)]),
            System(system.cores, mode="multiqueue", class_limits=()),
        ):
            assert (simulate(workload, other).start == starts).all(), (other, seed)


def test_limits_of_queues_play_no_part_where_classes_go_by_walltime() -> None:
    workload = Workload([0, 0], [2, 2], [5, 5], [5, 5])
    assert simulate(workload, System(4, [Queue(max_run=1, max_run_cores=1)], "multiqueue")).start.tolist() == [0, 0]


def small(**changes: object) -> Workload:
    columns: dict[str, object] = {"submit": [0, 1], "cores": [2, 1], "runtime": [5, 5], "walltime": [5, 9]} | changes
    return Workload(**columns)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cores": [0, 1]}, "cores"),
        ({"runtime": [5, -1]}, "runtime"),
        ({"walltime": [0, 1]}, "walltime"),
        ({"submit": [0.5, 1]}, "submit"),
        ({"submit": [float("nan"), 1]}, "submit"),
        ({"submit": [0, 2**40]}, "submit"),
        ({"submit": np.array([2**63 + 5, 2**63 + 5], np.uint64)}, r"submit\[0\]: 9223372036854775813 is outside"),
        ({"submit": [1e300, 1e300]}, r"submit\[0\]: 1e\+300 is outside"),
        ({"submit": [2**70, 2**70]}, r"submit\[0\]: 1180591620717411303424 is outside"),
        ({"submit": [2**63 - 10, 2**63 - 10]}, r"submit\[0\]: 9223372036854775798 is outside"),
        ({"cores": [1]}, "cores"),
        ({"queue": [0, -1]}, "queue"),
        ({"user": [0, -2]}, "user"),
        ({"submit": [[0, 1]]}, "submit"),
    ],
)
def test_a_workload_that_cannot_be_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small(**changes)


@pytest.mark.parametrize("first", [-(2**61), 2**61 - 1])
def test_the_clock_may_begin_as_far_from_0_as_is_allowed(first: int) -> None:
    system, now = System.single(2), simulate(small(), System.single(2))
    jobs = small(submit=[first, first + 1])
    far = simulate(jobs, system)
    assert (far.end - first).tolist() == now.end.tolist()
    assert not check_schedule(jobs, system, far)


@pytest.mark.parametrize("mode", ["shared", "partitioned", "hybrid", "multiqueue"])
@pytest.mark.parametrize("value", [1.5, float("nan"), float("inf"), 2**62, "1"])
@pytest.mark.parametrize(
    "name",
    ["partition", "starvation", "max_run", "max_run_cores", "max_user_run", "max_user_cores", "walltime", "cores"],
)
def test_what_is_no_whole_number_is_refused_in_every_mode(name: str, value: object, mode: str) -> None:
    queue = Queue(**{name: (1, value) if name in {"cores", "walltime"} else value})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=rf"queues\[1\].{name}: .* is not a whole number"):
        System(4, [Queue(partition=4), queue], mode, pool=Pool(0))  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [1.5, float("nan"), float("inf"), 2**62, "1"])
def test_what_is_no_whole_number_is_refused_of_the_machine(value: object) -> None:
    with pytest.raises(ValueError, match=r"^cores: .* whole number"):
        System(value)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^pool.cores: .* whole number"):
        System(4, [Queue(partition=4)], "hybrid", pool=Pool(value))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^class_limits: .* whole number"):
        System(4, mode="multiqueue", class_limits=(value,))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("workload", "system", "message"),
    [
        (small(cores=[5, 1]), System.single(4), "wider than the machine"),
        (small(cores=[5, 1]), System(4, mode="multiqueue"), r"cores\[0\]: 5 is wider than the machine"),
        (small(cores=[1, 5]), System(4, [Queue(partition=4)], "partitioned"), r"cores\[1\]: 5 is wider"),
        (small(cores=[5, 1]), System(4, [Queue(partition=2)], "hybrid", pool=Pool(2)), r"cores\[0\]: 5 is wider"),
        (small(queue=[0, 1]), System.single(4), "queue"),
        (small(queue=[0, 2**31 - 1]), System.single(4), r"queue\[1\]: 2147483647, but the system has 1 queues"),
        (small(queue=[0, 1]), System(4, mode="multiqueue"), r"queue\[1\]: 1, but the system has 1 queues"),
        (small(), System(4, [Queue(max_run_cores=1)]), "max_run_cores"),
        (small(user=[0, 0]), System(4, [Queue(max_user_cores=1)]), "max_user_cores"),
    ],
)
def test_a_job_that_could_never_start_is_refused_before_the_kernel_runs(
    workload: Workload, system: System, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        simulate(workload, system)


@pytest.mark.parametrize(
    "formula", ["1 / 0", "eligible_time / 0", "log(-ncpus)", "walltime ** 999", "1e308 * 10 - 1e308 * 10", "10 ** 400"]
)
def test_a_formula_without_a_value_goes_by_submission(formula: str) -> None:
    """Rule "undefined operations": its value is 0 for all, neither NaN nor infinity reaches a comparison."""
    workload = small(submit=[0, 1, 1], cores=[4, 4, 4], runtime=[5, 5, 5], walltime=[5, 9, 6])
    assert simulate(workload, System.single(4, formula)).start.tolist() == [0, 5, 10]


@pytest.mark.parametrize(("period", "first"), [(0, 1), (50, 1), (60, 2), (80, 2), (100, 1)])
def test_priorities_stand_still_between_the_instants_of_a_period(period: int, first: int) -> None:
    # Job 0 ends at 100. As of then job 1 has 39 and job 2 has 30, as of 80 they have 19 and 20, as of 60 0 and 20.
    workload = Workload(submit=[0, 61, 90], cores=[1, 1, 1], runtime=[100, 50, 10], walltime=[100, 50, 10])
    order = "eligible_time + (20 if walltime <= 10 else 0)"
    system = dataclasses.replace(System.single(1, order), priority_calc_period=period)
    assert simulate(workload, system).start[first] == 100


def test_no_jobs() -> None:
    empty = Workload([], [], [], [])
    assert len(simulate(empty, System.single(4))) == 0
    assert len(simulate(empty, System(4, [Queue(partition=2)], mode="hybrid", pool=Pool(2)))) == 0
    assert len(simulate(empty, System(4, mode="multiqueue"))) == 0


def test_a_queue_may_be_called_as_the_pool_is() -> None:
    jobs = Workload([0, 0], [2, 2], [5, 5], [5, 5], queue=[0, 1])
    system = System(6, [Queue("pool", partition=2), Queue("b", partition=2)], "hybrid", pool=Pool(2, threshold=0.0))
    assert system.partition_names == ("pool", "b", "common pool")
    assert simulate(jobs, system).start.tolist() == [0, 0]
