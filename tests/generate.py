"""Random small machines and workloads with many coincidences; a `Generator` maps a `random.Random` to a case.

Every generated job can start at some time, so every simulation ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import numpy as np

from parsim.model.fairshare import Fairshare, Share
from parsim.model.needs import Quota
from parsim.model.node_types import Chunk, NodeType, Request
from parsim.model.qos import ALL_LIMITS, EXEMPTIONS, QOS
from parsim.model.schedule import SPANNING, Interruptions, Schedule
from parsim.model.state import UNSTARTED, State, Window
from parsim.model.system import Pool, Queue, System
from parsim.model.throttles import Throttle
from parsim.model.workload import MAX_DURATION, Workload
from parsim.naive.node_types import best_nodes, can_run, first_nodes, idle, places
from parsim.planning import plan as planning
from parsim.planning.plan import Policy

Case = tuple[Workload, System]
Generator = Callable[[Random], Case]

ORDERS = ("fcfs", "sjf", "ljf", "lxf", "wfp3")
FAIR_FORMULAS = (
    "fairshare_perc",
    "fairshare_factor",
    "fair_share",
    "-fairshare_tree_usage * queue_priority",
    "fairshare_target",
    "fair_share * eligible_time / walltime",
    "fairshare_factor * 100 + eligible_time",
    "eligible_time + fairshare_target / 10 - ncpus",
    "(0.3 + fairshare_factor) * (eligible_time + walltime) / walltime ** 1.3",
    "1 / fairshare_tree_usage",
    "ncpus if fair_share > 0.5 else eligible_time",
    "fairshare_perc - fairshare_tree_usage",
)
QOS_FORMULAS = (
    "qos_priority",
    "qos_target_factor",
    "qos_priority + qos_target_factor",
    "queue_priority * (eligible_time + qos_priority)",
    "100 * qos_target_factor + eligible_time / walltime",
    "log(1 + qos_target_factor) - walltime / 10",
    "qos_target_factor * ncpus if qos_target > 2 else qos_priority",
    "-qos_target_factor * eligible_time",
    "qos_target - (eligible_time + walltime) / walltime",
    "1 / qos_target + eligible_time",
    "min(qos_target_factor, 1) ** 2 + fair_share",
)
REQUEST_FORMULAS = (
    "ngpus",
    "-mem",
    "eligible_time - 3 * ngpus",
    "(1 + ngpus) ** 2 * eligible_time / walltime",
    "1 / ngpus + eligible_time",
    "ngpus / ncpus - mem / 4096",
    "eligible_time if mem > 1024 else ncpus",
)
ACTIVE_FORMULAS = (
    "-active_jobs",
    "active_jobs",
    "eligible_time - 7 * active_jobs",
    "eligible_time / (1 + active_jobs)",
    "queue_priority if active_jobs < 2 else -walltime",
    "fair_share - active_jobs / 10",
)
# Priorities and thresholds whose quotients sometimes round across a second in floating point.
PRIORITIES = (1, 2, 0.1, 0.3, 0.7, 2.5, 40, 60, 100, 1 / 3)
THRESHOLDS = (0, 0.05, 0.1, 0.1, 0.3, 0.5, 1, 1.1, 20, 40)
FORMULAS = (
    "queue_priority * eligible_time / walltime",
    "queue_priority * (1 + eligible_time / max(walltime, 1))",
    "floor(min(eligible_time, 9) / 3 + ncpus / 4)",
    "queue_priority * ncpus + (1e9 if eligible_time > 8 else 0)",
    "eligible_time",
    "-walltime",
    "job_priority + ncpus",
    "min(ncpus, walltime, eligible_time)",
    "abs(eligible_time - 6) * queue_priority",
    "pow(ncpus, 2) - eligible_time",
    "(eligible_time / 7) ** 2 if ncpus < 3 else (eligible_time / 7) * (eligible_time / 7)",
    # Undefined for some jobs at some instants, in the branches that are evaluated.
    "ncpus / (walltime - 5)",
    "log(eligible_time) + ncpus",
    "sqrt(eligible_time - 3) - walltime",
    "(ncpus - 4) ** 0.5",
    "walltime ** 300",
    "pow(ncpus - 2, -1)",
    "ncpus if walltime > 5 else 1 / (eligible_time - 2)",
    "1 / eligible_time if eligible_time > 0 else -ncpus",
    "(5 if 1 / (ncpus - 1) > 0.3 else 7) * walltime",
)


def formula(rng: Random, depth: int = 3) -> str:
    """Return a random formula of operations with the same float64 result on every processor."""
    if depth == 0 or rng.random() < 0.15:
        names = ("queue_priority", "eligible_time", "walltime", "ncpus", "job_priority", "0", "1", "2.5", "7", "1e9")
        return rng.choice(names)
    kind = rng.choice(("binary", "binary", "binary", "negative", "call", "if"))
    if kind == "binary":
        return f"({formula(rng, depth - 1)} {rng.choice('+-*/')} {formula(rng, depth - 1)})"
    if kind == "negative":
        return f"(-{formula(rng, depth - 1)})"
    if kind == "call":
        name, count = rng.choice((("abs", 1), ("floor", 1), ("sqrt", 1), ("min", 2), ("max", 2), ("min", 3)))
        return f"{name}({', '.join(formula(rng, depth - 1) for _ in range(count))})"
    yes, left, right, no = (formula(rng, depth - 1) for _ in range(4))
    return f"({yes} if {left} {rng.choice(('<', '<=', '>', '>=', '==', '!='))} {right} else {no})"


def divide(rng: Random, total: int, count: int, least: int = 0) -> list[int]:
    """Return ``count`` random partition sizes of at least ``least`` cores that sum to ``total``."""
    rest = total - least * count
    cuts = sorted(rng.randint(0, rest) for _ in range(count - 1))
    return [least + high - low for low, high in zip([0, *cuts], [*cuts, rest], strict=True)]


def queue(rng: Random, index: int, cores: int, *, limits: bool, starvation: bool, priorities: bool = True) -> Queue:
    """Return a random queue number `index` without a partition, on a machine of ``cores``."""

    def sometimes(value: int, chance: float) -> int | None:
        return value if rng.random() < chance else None

    return Queue(
        name=f"q{index}",
        priority=rng.choice(PRIORITIES) if priorities else 1,
        walltime=(0, rng.choice((MAX_DURATION, MAX_DURATION, 20, 10, 4))),
        starvation=sometimes(rng.choice((0, 1, 3, 5, 10, 20)), 0.6) if starvation else None,
        max_run=sometimes(rng.randint(1, 3), 0.4) if limits else None,
        max_run_cores=sometimes(rng.randint(rng.choice((1, cores // 2 + 1)), cores), 0.3) if limits else None,
        max_user_run=sometimes(rng.randint(1, 2), 0.3) if limits else None,
        max_user_cores=sometimes(rng.randint(rng.choice((1, cores // 2 + 1)), cores), 0.3) if limits else None,
    )


def system(
    rng: Random,
    mode: str = "shared",
    *,
    limits: bool = False,
    starvation: bool = False,
    reservation: bool = False,
    placement: str | None = None,
    entry: str | None = None,
    starving_first: bool | None = None,
    reserve: str = "cores",
    **settings: Any,
) -> System:
    """Return a machine of 1 to 16 cores; arguments that are None are random, `settings` are fields of `System`.

    Without `reservation`, no partition of a partitioned machine is empty.
    """
    cores = rng.choice((1, 2, 3, 4, 6, 8, 8, 10, 12, 16, 16))
    count = rng.randint(1, min(4, cores))
    queues = [queue(rng, i, cores, limits=limits, starvation=starvation) for i in range(count)]
    pool = None
    if mode == "partitioned":
        sizes = divide(rng, cores, count, least=0 if reservation else 1)
    elif mode == "hybrid":
        sizes = divide(rng, cores, count + 1)
        extreme = rng.random()
        if extreme < 0.1:  # only the pool
            sizes = [0] * count + [cores]
        elif extreme < 0.2:  # no pool
            sizes = [*divide(rng, cores, count), 0]
        pool = Pool(
            cores=sizes.pop(),
            threshold=rng.choice(THRESHOLDS),
            placement=placement or rng.choice(("pool", "combined")),
            entry=entry or rng.choice(("either", "move")),
            starving_first=rng.random() < 0.3 if starving_first is None else starving_first,
        )
    else:
        sizes = [rng.choice((0, 1))] * count  # has no effect
    for i, size in enumerate(sizes):
        wide = reservation and size == 0 and mode != "shared" and rng.random() < 0.7
        queues[i] = replace(queues[i], partition=size, reservation=wide)
    size = 1 if reserve == "cores" else rng.choice((1, 1, 2, 3, 4))
    return System(cores, queues, mode, pool=pool, reserve=reserve, cores_per_node=size, **settings)


def workload(rng: Random, machine: System, *, jobs: int | None = None, fit_partition: bool = False) -> Workload:
    """Return 1 to 40 jobs that ``machine`` can run, many of them submitted at the same instants.

    With `fit_partition`, no job is wider than its queue's partition, so none needs an advance reservation.
    """
    n = rng.choice((1, 2, 3, 5, 8, 13, 20, 30, 40)) if jobs is None else jobs
    step = rng.choice((1, 1, 1, 5))  # a coarse clock gives more ties
    latest = rng.choice((0, 5, 15, 30, 60))
    longest = rng.choice((3, 10, 30))
    origin = rng.choice((0, 0, 0, -7, 1_000_000_000))
    edges = [1, machine.cores, machine.cores // 2, machine.cores // 2 + 1]
    for size in machine.partition_cores:
        edges += [size, size + 1, size - 1]
    rows = []
    for _ in range(n):
        q = rng.randrange(len(machine.queues))
        here = machine.queues[q]
        user = rng.choice((-1, 0, 0, 1, 2))
        widest = min(machine.cores, here.max_run_cores or machine.cores)
        if user != -1:
            widest = min(widest, here.max_user_cores or widest)
        if fit_partition:
            widest = min(widest, here.partition)
        cores = rng.choice(edges) if rng.random() < 0.6 else rng.randint(1, machine.cores)
        walltime = step * rng.randint(1, longest)
        runtime = rng.choice((walltime, walltime, 1, rng.randint(1, walltime), rng.randint(1, walltime), walltime + 3))
        submit = origin + step * rng.randint(0, latest)
        rows.append((submit, max(1, min(cores, widest)), runtime, walltime, q, user))
    if rng.random() < 0.8:
        rows.sort(key=lambda row: row[0])
    return Workload(*zip(*rows, strict=True))


def _single(rng: Random, order: str = "fcfs", *, backfill: bool = True) -> Case:
    machine = System.single(rng.choice((1, 2, 4, 8, 12, 16)), order, backfill=backfill)
    return workload(rng, machine), machine


def _random(mode: str, **settings: object) -> Generator:
    """Return a generator of cases; a setting that is a function of rng is drawn for every case."""
    fit_partition = mode == "partitioned" and not settings.get("reservation")

    def generator(rng: Random) -> Case:
        chosen = {name: value(rng) if callable(value) else value for name, value in settings.items()}
        machine = system(rng, mode, **chosen)
        return workload(rng, machine, fit_partition=fit_partition), machine

    return generator


def _many_nodes(mode: str, **settings: object) -> Generator:
    """Return a generator of cases with up to 480 nodes: cores of the machine times 30, those of jobs nearly so."""
    generator = _random(mode, reserve="nodes", **settings)

    def of_many(rng: Random) -> Case:
        jobs, machine = generator(rng)
        queues = [
            replace(
                queue,
                partition=30 * queue.partition,
                max_run_cores=queue.max_run_cores and 30 * queue.max_run_cores,
                max_user_cores=queue.max_user_cores and 30 * queue.max_user_cores,
            )
            for queue in machine.queues
        ]
        pool = machine.pool and replace(machine.pool, cores=30 * machine.pool.cores)
        cores = np.array([30 * here - rng.choice((0, rng.randint(0, 29))) for here in jobs.cores])
        return replace(jobs, cores=cores), replace(machine, cores=30 * machine.cores, queues=queues, pool=pool)

    return of_many


def changed(change: Callable[..., Case], generator: Generator) -> Generator:
    """Return a generator that applies a change to each case of another generator."""
    return lambda rng: change(rng, *generator(rng))


def _alike(mode: str, **settings: object) -> Generator:
    return changed(lambda rng, jobs, machine: (few_kinds(rng, jobs), machine), _random(mode, **settings))


def few_kinds(rng: Random, jobs: Workload) -> Workload:
    """Return the jobs with at most four kinds of demands; submits and run times stay."""
    row = np.array([rng.randrange(min(4, len(jobs))) for _ in range(len(jobs))])
    names = ("cores", "walltime", "queue", "user", "request")
    return replace(jobs, **{name: getattr(jobs, name)[row] for name in names})


def fairshare(rng: Random) -> Fairshare:
    """Return fair-share settings, in most cases with a random tree over the users of `workload`."""
    names = ["0", "1", "2", "3", "a", "b"]
    rng.shuffle(names)
    groups = [name for name in ("g", "h", "i") if rng.random() < 0.5]
    shares = [
        Share(name, rng.choice((0, 1, 2, 10, 60)), rng.choice(["", *groups[:i]]), *_target(rng))
        for i, name in enumerate(groups)
    ]
    shares += [
        Share(name, rng.choice((0, 1, 1, 3, 7)), rng.choice(["", *groups]), *_target(rng))
        for name in names[: rng.randint(0, 4)]
    ]
    rng.shuffle(shares)
    return Fairshare(
        shares=shares if rng.random() < 0.75 else (),
        decay_time=rng.choice((1, 3, 7, 20, 86400)),
        decay_factor=rng.choice((0.5, 0.5, 0.9, 0.1, 0, 1)),
        fair_share=rng.choice(("classic", "tree")),
        unknown_shares=rng.choice((0, 1, 10)),
    )


def charged(rng: Random, jobs: Workload, machine: System) -> Case:
    """Return the case with random charges for cores, GPUs and memory."""

    def weights() -> dict[str, float]:
        names = rng.sample(("cores", "gpus", "memory", "absent"), rng.randint(1, 3))
        return {name: rng.choice((0, 1, 1, 2.5, 0.1, 1 / 3, 40)) for name in names}

    queues = [replace(queue, charges=weights()) if rng.random() < 0.3 else queue for queue in machine.queues]
    tree = replace(machine.fairshare, charges=weights() if _coin(rng) else {}, charged=rng.choice(("sum", "max")))
    qos = [replace(each, usage_factor=rng.choice((0, 0.5, 1, 1, 3))) for each in machine.qos]
    return jobs, replace(machine, queues=queues, fairshare=tree, qos=qos)


def throttled(rng: Random, jobs: Workload, machine: System, *, entering: bool = False) -> Case:
    """Return the case with throttles that let every job start; with `entering`, also limits of the lists."""
    groups = [rng.choice((-1, 0, 0, 1)) for _ in range(4)]
    by_user = rng.random() < 0.7
    group = [groups[user] if by_user else rng.choice((-1, 0, 1)) for user in jobs.user.tolist()]
    jobs = replace(jobs, group=group, group_names=("staff",), user_names=("ann", "bob"))
    found: dict[tuple[str, str, int | None], Throttle] = {}
    for _ in range(rng.choice((1, 1, 2, 4))):
        each = rng.choice(("", "user", "user", "group"))
        names = {"": ("",), "user": ("", "", "ann", "2"), "group": ("", "", "staff", "1")}
        queue = rng.choice((None, None, rng.randrange(len(machine.queues))))
        limits = _running_limits(rng, jobs, machine)
        if entering:
            limits = {"max_eligible": rng.randint(1, 4), "max_queued": rng.randint(1, 6)} | (
                limits if _coin(rng) else {}
            )
        chosen = rng.sample([*limits], rng.choice((1, 1, 2)))
        throttle = Throttle(each, rng.choice(names[each]), queue, **{name: limits[name] for name in chosen})
        found[throttle.each, throttle.name, throttle.queue] = throttle
    return jobs, replace(machine, throttles=[*found.values()])


def _running_limits(rng: Random, jobs: Workload, machine: System) -> dict[str, int]:
    """Return limits on running jobs that let every job start."""
    widest, work = int(jobs.cores.max()), int((jobs.cores * jobs.walltime).max())
    return {
        "max_run": rng.randint(1, 4),
        "max_run_cores": rng.randint(widest, max(widest, machine.cores)),
        "max_run_core_seconds": work + rng.randint(0, 2 * work),
    }


def of_qos(rng: Random, jobs: Workload, machine: System) -> Case:
    """Return the case with a QOS of the jobs, exemptions and, often, limits of QOS."""
    qos = [rng.choice((-1, 0, 0, 1, 2)) for _ in range(len(jobs))]
    names = ("gold", "silver", "2")
    classes = []
    for name in (*names, "absent"):
        exempt: tuple[str, ...] = tuple(rng.sample(EXEMPTIONS, rng.choice((0, 1, 1, 3))))
        exempt = rng.choice(((), exempt, exempt, (ALL_LIMITS,)))
        if rng.random() < 0.8:
            target = rng.choice((None, 1, 1.1, 1.5, 2, 3.7, 20))
            classes.append(QOS(name, rng.choice((0, 1, 1, 2.5, -3, 100)), target, exempt))
    free = {each.name for each in classes if ALL_LIMITS in each.exempt}
    if machine.mode == "shared":  # jobs that are exempt from limits may be wide
        wide = {k: rng.randint(1, machine.cores) for k, of in enumerate(qos) if of >= 0 and names[of] in free}
        cores = [wide.get(k, here) if _coin(rng) else here for k, here in enumerate(jobs.cores.tolist())]
        jobs = replace(jobs, cores=cores)
    jobs = replace(jobs, qos=qos, qos_names=names[:2])
    found = {(t.each, t.name, t.queue, t.qos): t for t in machine.throttles}
    for throttle in [_throttle_of_qos(rng, jobs, machine) for _ in range(rng.choice((0, 1, 1, 2, 4)))]:
        found[throttle.each, throttle.name, throttle.queue, throttle.qos] = throttle
    return jobs, replace(machine, qos=classes, throttles=[*found.values()])


def _throttle_of_qos(rng: Random, jobs: Workload, machine: System) -> Throttle:
    """Return a throttle of each QOS or of one that lets every job start."""
    limits = _running_limits(rng, jobs, machine)
    if machine.keeps_out or rng.random() < 0.1:
        limits |= {"max_eligible": rng.randint(1, 4), "max_queued": rng.randint(1, 6)}
    each, name, qos = rng.choice(
        (
            *(("qos", "", ""), ("qos", "gold", ""), ("qos", "2", "")),
            *(("", "", "gold"), ("user", "", "gold"), ("user", "2", "silver"), ("group", "", "2")),
        )
    )
    queue = rng.choice((None, None, rng.randrange(len(machine.queues))))
    chosen = rng.sample([*limits], rng.choice((1, 1, 2)))
    return Throttle(each, name, queue, qos=qos, **{field: limits[field] for field in chosen})


def shortpooled(rng: Random, jobs: Workload, machine: System) -> Case:
    """Return the case with periodic windows for short jobs, sometimes for users or for no job."""
    found: list[Window] = []
    for _ in range(rng.choice((1, 1, 2))):
        period = rng.choice((3, 10, 20, 40))
        first = int(jobs.submit.min()) + rng.randint(-period, 2 * period)
        length = rng.randint(1, period if rng.random() < 0.8 else 2 * period)
        cores = rng.choice((None, rng.randint(1, machine.cores), rng.randint(1, machine.cores)))
        partition = rng.choice((None, None, rng.randrange(len(machine.partition_cores))))
        short = rng.choice((1, 2, 5, 10, int(rng.choice(jobs.walltime.tolist()))))
        users = tuple(rng.sample(range(3), rng.choice((1, 2))))
        of = rng.choices([((), short), (users, None), ((), None)], (0.8, 0.1, 0.1))[0]
        begins = range(first, first + period * rng.choice((1, 2, 5, 12)), period)
        found += [Window(begin, begin + length, cores, partition, users=of[0], walltime=of[1]) for begin in begins]
    rng.shuffle(found)
    return jobs, replace(machine, windows=found)


def at_another_time(machine: System, factor: int, later: int) -> System:
    """Return the machine with the times of its windows multiplied by `factor`, then shifted by `later` seconds."""
    windows = [
        replace(
            each,
            begin=factor * each.begin + later,
            end=factor * each.end + later,
            walltime=None if each.walltime is None else factor * each.walltime,
        )
        for each in machine.windows
    ]
    return replace(machine, windows=windows)


def typed(rng: Random, jobs: Workload, machine: System, *, alone: bool = False) -> Case:
    """Return the case with types of nodes and requests that fit; with `alone`, some exclusive and some scattered."""
    left, types = machine.cores, []
    while left:
        size = rng.randint(1, left) if len(types) == 2 or rng.random() < 0.7 else left
        size = left if len(types) == 2 else size
        nodes = rng.choice([n for n in (1, 2, 3, 4, size) if size % n == 0])
        resources = {name: rng.randint(0, 4) for name in ("gpus", "memory") if rng.random() < 0.6}
        features = frozenset(name for name in ("new", "big") if rng.random() < 0.4)
        exclusive = alone and rng.random() < 0.4
        types.append(NodeType(f"type{len(types)}", nodes, size // nodes, resources, features, exclusive))
        left -= size
    names = [each.name for each in types]
    chosen = [rng.sample(names, rng.randint(1, len(names))) if rng.random() < 0.4 else None for _ in machine.queues]
    queues = [replace(queue, node_types=names) for queue, names in zip(machine.queues, chosen, strict=True)]
    queues = [replace(queue, exclusive=alone and rng.random() < 0.15) for queue in queues]
    divided = replace(machine, queues=queues, node_types=types)
    request, requests = [], []
    for queue, cores in zip(jobs.queue.tolist(), jobs.cores.tolist(), strict=True):
        chunks = _chunks(rng, cores)
        if alone:
            exclusive = queues[queue].exclusive or rng.random() < 0.2
            chunks = tuple(replace(each, exclusive=exclusive, scattered=rng.random() < 0.3) for each in chunks)
        has_place = rng.random() < 0.8 and bool(places(divided, queue, chunks, cores))
        request.append(len(requests) if has_place else -1)
        requests += [chunks] if has_place else []
        if not has_place and not places(divided, queue, None, cores):
            queues[queue] = replace(queues[queue], node_types=None)
    return replace(jobs, request=request, requests=requests), replace(divided, queues=queues)


def owned(rng: Random, jobs: Workload, machine: System, *, alone: bool = False, reserve: str = "cores") -> Case:
    """Return the case with types of nodes on a partitioned machine, and requests that fit."""
    jobs, of_types = typed(rng, jobs, replace(machine, mode="shared"), alone=alone)
    if reserve == "queue_nodes":
        of_types = replace(of_types, node_types=_weighing(rng, of_types))
    queues = list(of_types.queues)
    whose = rng.sample(range(len(queues)), rng.randint(1, len(queues)))
    nodes = [{} for _ in queues]
    for each in of_types.node_types:
        for _ in range(each.nodes):
            owner = nodes[rng.choice(whose)]
            owner[each.name] = owner.get(each.name, 0) + 1
    size = {each.name: each.cores for each in of_types.node_types}
    sizes = [sum(count * size[name] for name, count in its.items()) for its in nodes]
    queues = [
        replace(queue, partition=cores, partition_nodes=its, reservation=False)
        for queue, cores, its in zip(queues, sizes, nodes, strict=True)
    ]
    divided = replace(of_types, mode="partitioned", queues=queues, reserve=reserve)

    def can_have(queue: int, request: Request | None, cores: int) -> bool:
        alone = queues[queue].exclusive and request is None
        return can_run(divided, queue, (Chunk(cores, 1, exclusive=True),) if alone else request, cores)

    cores, request, queue_of = jobs.cores.copy(), jobs.request.copy(), jobs.queue.copy()
    for job, (queue, number) in enumerate(zip(jobs.queue.tolist(), jobs.request.tolist(), strict=True)):
        wanted = jobs.requests[number] if number >= 0 else None
        if not can_have(queue, wanted, int(cores[job])):
            request[job] = -1
            cores[job] = next((c for c in range(int(cores[job]), 0, -1) if can_have(queue, None, c)), int(cores[job]))
        if not can_have(queue, wanted if request[job] >= 0 else None, int(cores[job])):
            cores[job] = 1
            at = next((q for q in range(len(queues)) if nodes[q] and can_have(q, None, 1)), queue)
            queue_of[job] = at
            queues[at] = replace(queues[at], node_types=queues[at].node_types if at != queue else None)
            divided = replace(divided, queues=queues)
            if not can_have(at, None, 1):
                return owned(rng, jobs, machine, alone=alone, reserve=reserve)
    return replace(jobs, cores=cores, request=request, queue=queue_of), divided


def closed(rng: Random, jobs: Workload, machine: System, *, kept: bool = False) -> Case:
    """Return a case of several types of nodes with windows."""
    begin, count = int(jobs.submit.min()), rng.choice((1, 1, 2, 4))
    return jobs, replace(machine, windows=[closure(rng, jobs, machine, begin, kept=kept) for _ in range(count)])


def closure(rng: Random, jobs: Workload, machine: System, begin: int, *, kept: bool = False) -> Window:
    """Return a window of types of nodes: out of service, or reserved for some jobs.

    With head jobs of queues it is reserved for users and short jobs only if `kept`.
    """
    count = sum(each.nodes for each in machine.node_types)
    some = {each.name: rng.randint(1, each.nodes) for each in machine.node_types if _coin(rng)}
    nodes = rng.sample(range(count), rng.randint(1, count)) if rng.random() < 0.4 else ()
    short = int(rng.choice(jobs.walltime.tolist()))
    users = tuple(rng.sample(range(3), rng.choice((1, 2))))
    for_queue = rng.randrange(len(machine.queues))
    kinds = [((), None, None), (users, None, None), ((), short, None), ((), None, for_queue)]
    of = rng.choices(kinds, (0.6, 0.2, 0.1, 0.1))[0]
    plain = window(rng, begin, machine)
    of = ((), None, of[2]) if machine.reserves_for_queues and not kept else of
    return replace(plain, cores=None, queue=of[2], nodes=nodes, users=of[0], walltime=of[1], node_types=some)


def placed(rng: Random, jobs: Workload, machine: System, *, alone: bool = False) -> Case:
    """Return a case of `typed` whose chunks are placed on single nodes, first fit."""
    jobs, machine = typed(rng, jobs, machine, alone=alone)
    return _holding_jobs(jobs, replace(machine, reserve="nodes"), first_nodes)


def best_placed(rng: Random, jobs: Workload, machine: System) -> Case:
    """Return a case of `typed` whose chunks are placed on single nodes, best fit, with weights of nodes."""
    jobs, machine = typed(rng, jobs, replace(machine, reserve="cores"), alone=rng.random() < 0.5)
    types = _weighing(rng, machine)
    return _holding_jobs(jobs, replace(machine, reserve="queue_nodes", node_types=types), best_nodes)


def _weighing(rng: Random, machine: System) -> list[NodeType]:
    return [replace(each, weight=rng.choice((1, 1, 2, 3))) for each in machine.node_types]


def _holding_jobs(jobs: Workload, machine: System, nodes: Callable[..., Sequence[object]]) -> Case:
    """Replace the requests that `nodes` (first_nodes or best_nodes) cannot place on idle nodes by cores alone."""
    queues, request = list(machine.queues), jobs.request.copy()
    rows = zip(jobs.queue.tolist(), request.tolist(), jobs.cores.tolist(), strict=True)
    for row, (queue, number, cores) in enumerate(rows):
        if number >= 0 and None in nodes(machine, queue, jobs.requests[number], cores, idle(machine)):
            request[row] = -1
            if None in nodes(machine, queue, None, cores, idle(machine)):
                queues[queue] = replace(queues[queue], node_types=None)
    return replace(jobs, request=request), replace(machine, queues=queues)


def _chunks(rng: Random, cores: int) -> tuple[Chunk, ...]:
    """Return random chunks with `cores` cores in total, of one or two kinds."""
    first = cores if cores == 1 or rng.random() < 0.6 else rng.randint(1, cores - 1)
    found = []
    for part in (first, cores - first):
        for count in [rng.choice([n for n in (1, 2, 3, part) if part % n == 0])] if part else ():
            resources = {name: rng.randint(0, 2) for name in ("gpus", "memory") if rng.random() < 0.4}
            features = [name for name in ("new", "big") if rng.random() < 0.15]
            features = ["big|new"] if len(features) == 2 else features
            found.append(Chunk(count, part // count, resources, frozenset(features)))
    if rng.random() < 0.1:
        found.append(Chunk(rng.randint(1, 2), 0, {rng.choice(("gpus", "memory")): 1}))
    return tuple(found)


def resource_limited(rng: Random, jobs: Workload, machine: System) -> Case:
    """Return the case with limits on resources of chunks that let every job start.

    If the machine has no types of nodes, its jobs get requests too.
    """
    if not machine.node_types:
        requests = [_chunks(rng, cores) for cores in jobs.cores.tolist()]
        request = [number if rng.random() < 0.8 else -1 for number in range(len(requests))]
        jobs = replace(jobs, request=request, requests=requests)
    there = [dict(each.resources) for each in machine.node_types] or [{"gpus": 9, "memory": 9}]
    most = {name: int(jobs.amount(name).max()) for name in sorted({name for each in there for name in each})}
    jobs, other = throttled(rng, jobs, machine)
    found = {(t.each, t.name, t.queue, t.qos): t for t in machine.throttles}
    for throttle in other.throttles:
        limits = {name: max(1, least + rng.choice((0, 0, 1, 3))) for name, least in most.items() if rng.random() < 0.8}
        if limits:
            key = throttle.each, throttle.name, throttle.queue, throttle.qos
            kept = rng.choice((throttle, Throttle(*key[:3])))
            found[key] = replace(found.get(key, kept), max_run_resources=limits)
    return jobs, replace(machine, throttles=[*found.values()])


def tiered(rng: Random, machine: System) -> System:
    """Return the machine with random tiers of the queues; jobs of a higher tier may preempt others."""
    kinds = ("suspend", "suspend", "checkpoint", "requeue", "requeue", "off")
    queues = [replace(queue, tier=rng.randint(0, 2), preempted=rng.choice(kinds)) for queue in machine.queues]
    return replace(machine, queues=queues)


def _tiered(generator: Generator) -> Generator:
    """Return a generator of another's cases with at least two queues, with tiers."""

    def of_tiers(rng: Random, jobs: Workload, machine: System) -> Case:
        while len(machine.queues) < 2:
            jobs, machine = generator(rng)
        machine = tiered(rng, machine)
        later = [machine.queues[queue].tier * rng.randint(0, 15) for queue in jobs.queue.tolist()]
        return replace(jobs, submit=jobs.submit + later), machine

    return changed(of_tiers, generator)


def estimated(rng: Random, jobs: Workload, machine: System) -> Case:
    """Return the case with predicted run times of some jobs, which a formula may read."""
    estimate = [rng.choice((0, 1, 3, 8, walltime, 2 * walltime)) for walltime in jobs.walltime.tolist()]
    return replace(jobs, estimate=estimate), machine


def _narrow(rng: Random, jobs: Workload, machine: System) -> Case:
    most = [rng.choice((1, 1, 2, 3, machine.cores)) for _ in range(len(jobs))]
    return replace(jobs, cores=np.minimum(jobs.cores, most)), machine


def _throttled(generator: Generator, *, entering: bool = False) -> Generator:
    return changed(partial(throttled, entering=entering), generator)


def _typed(
    generator: Generator, *, alike: bool = False, by: Callable[[Random, Workload, System], Case] = typed
) -> Generator:
    of_types = changed(by, generator)
    return changed(lambda rng, jobs, machine: (few_kinds(rng, jobs), machine), of_types) if alike else of_types


_charged, _of_qos, _shortpool, _closed, _resource_limited, _estimated = (
    partial(changed, each) for each in (charged, of_qos, shortpooled, closed, resource_limited, estimated)
)
_kept = partial(changed, partial(closed, kept=True))


def _target(rng: Random) -> tuple[float | None, str]:
    return rng.choice((None, 0, 10, 33.3, 100)), rng.choice(("target", "floor", "ceiling"))


def _fair(mode: str, **settings: object) -> Generator:
    """Return a generator of cases with fair-share settings."""
    of_shares = lambda rng, jobs, machine: (jobs, replace(machine, fairshare=fairshare(rng)))  # noqa: E731
    return changed(of_shares, _random(mode, **settings))


def one_of(values: Sequence[Any]) -> Callable[[Random], Any]:
    """Return a function of rng that chooses one of the values."""
    return lambda rng: rng.choice(values)


_fair_formula, _active, _qos_formula, _request_formula, _order = map(
    one_of, (FAIR_FORMULAS, ACTIVE_FORMULAS, QOS_FORMULAS, REQUEST_FORMULAS, ORDERS)
)
_late = one_of((1, 2, 3, 5, 10, 20, 100))
_depth = one_of((2, 2, 3, 5, None))
_period = one_of((1, 2, 3, 5, 7, 20, 60))
_held_jobs = one_of(("pass", "reserve", "reserve"))
_reserve = one_of(("cores", "nodes"))
_any_reserve = one_of(("cores", "queues", "nothing"))
_any_or_nothing = one_of(("cores", "nothing"))


def often(chance: float) -> Callable[[Random], bool]:
    """Return a function of rng that is true with this probability."""
    return lambda rng: rng.random() < chance


_coin, _mostly = often(0.5), often(0.8)


def _soon(rng: Random) -> int:
    return rng.choice((0, 0, _late(rng)))


def _formula(rng: Random) -> str:
    return rng.choice(FORMULAS) if _coin(rng) else formula(rng)


def _any_order(rng: Random) -> str:
    return _order(rng) if rng.random() < 0.7 else _formula(rng)


def _fair_order(rng: Random) -> str:
    return "fairshare" if _coin(rng) else _fair_formula(rng)


def _qos_order(rng: Random) -> str:
    return _qos_formula(rng) if rng.random() < 0.7 else _any_order(rng)


def _estimate_formula(rng: Random) -> str:
    text = rng.choice((rng.choice(FORMULAS), formula(rng), "eligible_time / walltime", "estimate - walltime"))
    return text.replace("walltime", "estimate", rng.choice((-1, 1)))


EVERYTHING = {"limits": _coin, "starvation": _coin, "order": _any_order, "backfill": often(0.85)}
BY_SHARES = EVERYTHING | {"order": _fair_order}
BY_QOS = EVERYTHING | {"order": _qos_order}
BY_ACTIVE = EVERYTHING | {"order": _active}
BY_ESTIMATE = EVERYTHING | {"order": _estimate_formula, "reserve_after": _soon}
PERIODIC = {"priority_calc_period": _period, "reserve_after": _soon, "backfill": often(0.85)}
TOP_JOBS = {"held_jobs": _held_jobs, "reserve": _reserve}
HYBRID = {"reservation": True, "limits": _coin, "starvation": _coin, "order": _any_order}
MAYBE_RESERVED = HYBRID | {"reservation": _coin}
MOVING = {"placement": "pool", "entry": "move"}

#: Base generators of families of disciplines, by the end of the discipline's name.
BASES = {
    "": _random("shared"),
    "formula": _random("shared", order=_formula, limits=_coin, reserve_after=_soon),
    "limits": _random("shared", limits=True, order=_any_order),
    "all": _random("shared", reserve_after=_soon, **EVERYTHING),
    "alike": _alike("shared", reserve_after=_soon, **EVERYTHING),
    "divided": _random("partitioned", reservation=_coin, **EVERYTHING),
    "partitioned": _random("partitioned", reservation=_coin, **EVERYTHING),
    "hybrid": _random("hybrid", reservation=_coin, **EVERYTHING),
    "alike-hybrid": _alike("hybrid", reservation=_coin, **EVERYTHING),
    "queues": _random("shared", reserve="queues", **EVERYTHING),
    "queues-hybrid": _random("hybrid", reserve="queues", **MOVING, **EVERYTHING),
    "nothing": _random("shared", reserve="nothing", reserve_after=_soon, **EVERYTHING),
    "depth": _random("shared", reservation_depth=_depth, **EVERYTHING),
    "top-jobs": _random("shared", reserve_after=_soon, **TOP_JOBS, **EVERYTHING),
    "hybrid-top-jobs": _random("hybrid", reservation=_coin, **TOP_JOBS, **EVERYTHING),
}
BASES["throttled"] = _throttled(BASES["all"], entering=True)
_ONE_LIST, _SOME_LIMITS = _random("shared", **EVERYTHING), _random("shared", limits=_coin)
_DIVIDED = _random("partitioned", **EVERYTHING)
_DEEP = _random("shared", reservation_depth=_depth, reserve_after=_soon, **EVERYTHING)
_QUEUES = _typed(_random("shared", reserve="queues", reserve_after=_soon, **EVERYTHING), by=partial(typed, alone=True))


def family(name: str, change: Callable[[Generator], Generator], *ends: str) -> dict[str, Generator]:
    """Return disciplines "NAME-END": the generators of `BASES` for these ends, each with a change."""
    return {f"{name}-{end}".removesuffix("-"): change(BASES[end]) for end in ends}


_entering, _placed = partial(_throttled, entering=True), partial(_typed, by=placed)

#: Generators of (workload, system) by discipline, for `make test`.
TESTED: dict[str, Generator] = {
    "easy": _single,
    "fcfs": lambda rng: _single(rng, backfill=False),
    "single-orders": lambda rng: _single(rng, _order(rng)),
    "single-formula": lambda rng: _single(rng, _formula(rng), backfill=_mostly(rng)),
    "partitioned": _random("partitioned"),
    "partitioned-all": _DIVIDED,
    "shared": BASES[""],
    "shared-starvation": _random("shared", starvation=True),
    "shared-limits": _random("shared", limits=True, starvation=_coin),
    "shared-orders": _random("shared", order=_order, starvation=_coin),
    "shared-formula": _random("shared", order=_formula, limits=_coin, starvation=_coin),
    "shared-all": _ONE_LIST,
    "formula-limits": _random("shared", order=_formula, limits=True, starvation=_coin),
    "reserve-after": _random("shared", reserve_after=_late),
    "reserve-after-formula": _random("shared", reserve_after=_late, order=_formula),
    "reserve-after-limits": _random("shared", reserve_after=_late, limits=True, order=_any_order),
    "reserve-after-formula-limits": _random("shared", reserve_after=_late, order=_formula, limits=True),
    "reserve-after-all": _random("shared", reserve_after=_late, **EVERYTHING),
    "held-reserve": _random("shared", held_jobs="reserve", limits=True),
    "held-reserve-formula": _random("shared", held_jobs="reserve", limits=True, order=_formula),
    "nodes": _random("shared", reserve="nodes"),
    "nodes-limits": _random("shared", reserve="nodes", limits=True, order=_any_order),
    "nodes-held-reserve": _random("shared", reserve="nodes", held_jobs="reserve", limits=True, reserve_after=_soon),
    "nodes-all": _random("shared", held_jobs=_held_jobs, reserve=_reserve, reserve_after=_soon, **EVERYTHING),
    "queues": _random("shared", reserve="queues"),
    "queues-partitioned": _random("partitioned", reserve="queues", **EVERYTHING),
    "queues-hybrid": BASES["queues-hybrid"],
    "queues-limits": _random("shared", reserve="queues", limits=True, order=_any_order),
    "queues-formula-limits": _random("shared", reserve="queues", limits=True, order=_formula, reserve_after=_soon),
    "queues-all": _random("shared", reserve="queues", reserve_after=_soon, **EVERYTHING),
    "alike-queues": _alike("shared", reserve="queues", reserve_after=_soon, **EVERYTHING),
    "alike-queues-hybrid": _alike("hybrid", reserve="queues", **MOVING, **EVERYTHING),
    "alike": BASES["alike"],
    "alike-formula": _alike("shared", order=_formula, limits=_coin, reserve_after=_soon),
    "alike-hybrid": _alike("hybrid", reservation=_coin, limits=_coin, starvation=_coin),
    "alike-hybrid-all": BASES["alike-hybrid"],
    "alike-combined": _alike("hybrid", placement="combined", reservation=_coin, starvation=_coin, limits=_coin),
    "alike-partitioned": _alike("partitioned", reservation=_coin, reserve_after=_soon, **EVERYTHING),
    "reservations": _random("partitioned", reservation=True),
    "reservations-starvation": _random("partitioned", reservation=True, starvation=True),
    "reservations-all": _random("partitioned", reservation=True, **EVERYTHING),
    "hybrid-plain": _random("hybrid", placement="pool", entry="either"),
    "hybrid-pool": _random("hybrid", placement="pool", entry="either", **HYBRID),
    "hybrid-move": _random("hybrid", **MOVING, **HYBRID),
    "hybrid-combined": _random("hybrid", placement="combined", entry="either", **HYBRID),
    "hybrid-combined-move": _random("hybrid", placement="combined", entry="move", **HYBRID),
    "hybrid-limits": _random("hybrid", reservation=_coin, limits=True),
    "hybrid-starving": _random("hybrid", reservation=_coin, starvation=True, starving_first=True),
    "hybrid-formula": _random("hybrid", reservation=_coin, limits=True, order=_formula),
    "hybrid-all": _random("hybrid", reservation=True, reserve_after=_late, **EVERYTHING),
    "partitioned-nodes": _random("partitioned", reserve="nodes"),
    "partitioned-held-reserve": _random("partitioned", held_jobs="reserve", limits=True),
    "partitioned-top-jobs": _random("partitioned", reservation=_coin, **TOP_JOBS, **EVERYTHING),
    "hybrid-nodes": _random("hybrid", reserve="nodes", **MOVING),
    "hybrid-held-reserve": _random("hybrid", held_jobs="reserve", reservation=_coin, limits=True),
    "hybrid-combined-nodes": _random("hybrid", reserve="nodes", placement="combined", **HYBRID),
    "hybrid-combined-held-reserve": _random(
        "hybrid", held_jobs="reserve", placement="combined", reservation=True, limits=True, starvation=_coin
    ),
    "hybrid-top-jobs": BASES["hybrid-top-jobs"],
    "fairshare": _fair("shared", order="fairshare", backfill=_mostly),
    "fairshare-formula": _fair("shared", order=_fair_formula, backfill=_mostly),
    "fairshare-starvation": _fair("shared", order="fairshare", starvation=True, limits=_coin),
    "fairshare-all": _fair("shared", reserve_after=_soon, **BY_SHARES),
    "fairshare-top-jobs": _fair("shared", **TOP_JOBS, **BY_SHARES),
    "fairshare-queues": _fair("shared", reserve="queues", **BY_SHARES),
    "fairshare-divided": _fair("partitioned", reservation=_coin, **BY_SHARES),
    "fairshare-hybrid": _fair("hybrid", **MAYBE_RESERVED | {"order": _fair_order}),
    "charged": _charged(_fair("shared", order=_fair_order)),
    "charged-hybrid": _charged(_fair("hybrid", **MAYBE_RESERVED | {"order": _fair_order})),
    "charged-qos": _charged(_of_qos(_fair("shared", **BY_SHARES))),
    "active": _random("shared", order=_active, backfill=_mostly),
    "active-all": _random("shared", reserve_after=_soon, **BY_ACTIVE),
    "nothing": _random("shared", reserve="nothing", reserve_after=_soon),
    "nothing-limits": _random("shared", reserve="nothing", reserve_after=_soon, limits=True, order=_any_order),
    "nothing-all": BASES["nothing"],
    "nothing-alike": _alike("shared", reserve="nothing", reserve_after=_late, **EVERYTHING),
    "throttled": _throttled(_SOME_LIMITS),
    **family(
        *("throttled", _throttled, "formula", "all", "alike", "divided", "hybrid", "alike-hybrid"),
        *("queues", "queues-hybrid", "nothing", "hybrid-top-jobs"),
    ),
    "throttled-held-reserve": _throttled(_random("partitioned", held_jobs="reserve", **EVERYTHING)),
    "entering": _entering(_SOME_LIMITS),
    "entering-formula": _entering(_random("shared", order=_formula, limits=_coin)),
    "entering-nothing": _entering(_random("shared", reserve="nothing", **EVERYTHING)),
    "entering-top-jobs": _entering(_random("shared", **TOP_JOBS, **EVERYTHING)),
    **family("entering", _entering, "all", "divided", "hybrid", "queues", "queues-hybrid", "hybrid-top-jobs"),
    "depth": _random("shared", reservation_depth=_depth),
    "depth-limits": _random("shared", reservation_depth=_depth, limits=True, order=_any_order),
    "depth-all": _random("shared", reservation_depth=_depth, reserve_after=_soon, **EVERYTHING),
    "depth-partitioned": _random("partitioned", reservation_depth=_depth, **EVERYTHING),
    "depth-hybrid": _random("hybrid", reservation_depth=_depth, **MOVING, **EVERYTHING),
    "depth-throttled": _entering(BASES["depth"]),
    "shortpool": _shortpool(_random("shared", reserve_after=_soon)),
    "shortpool-all": _shortpool(_random("shared", reserve=_any_or_nothing, reserve_after=_soon, **EVERYTHING)),
    **family("shortpool", _shortpool, "alike", "hybrid-top-jobs"),
    "period": _random("shared", order=_formula, starvation=_coin, **PERIODIC),
    "period-limits": _random("shared", order=_formula, limits=True, **PERIODIC),
    "period-queues": _random("shared", reserve="queues", order=_formula, limits=_coin, **PERIODIC),
    "period-top-jobs": _random("shared", order=_formula, limits=_coin, **TOP_JOBS, **PERIODIC),
    "period-hybrid": _random("hybrid", reservation=_coin, order=_formula, limits=_coin, **PERIODIC),
    "period-alike": _alike("shared", order=_formula, reserve=_any_reserve, **PERIODIC),
    "qos": _of_qos(_random("shared", order=_qos_order, starvation=_coin)),
    "qos-limits": _of_qos(_throttled(_random("shared", limits=True, order=_any_order, reserve_after=_soon))),
    "qos-all": _of_qos(_random("shared", reserve_after=_soon, **BY_QOS)),
    "qos-alike-hybrid": _of_qos(_alike("hybrid", reservation=_coin, **BY_QOS)),
    "qos-entering": _of_qos(_entering(_random("shared", **BY_QOS))),
    "qos-queues": _of_qos(_random("shared", reserve="queues", **BY_QOS)),
    "qos-hybrid-top-jobs": _of_qos(_throttled(_random("hybrid", reservation=_coin, **TOP_JOBS, **BY_QOS))),
    "typed-requests": _typed(_random("shared", order=_request_formula, limits=_coin, reserve_after=_soon)),
    "typed-alike": _typed(BASES["all"], alike=True),
    "typed-alone": _typed(BASES["all"], by=partial(typed, alone=True)),
    **family("typed", _typed, "all", "throttled"),
    "placed-all": _placed(BASES["all"]),
    "placed-alone": _typed(BASES["all"], by=partial(placed, alone=True)),
    "placed-alike": _placed(BASES["all"], alike=True),
    "preempt": _tiered(BASES[""]),
    "preempt-formula": _tiered(_random("shared", order=_formula, starvation=_coin)),
    "preempt-limits": _tiered(_random("shared", limits=True, starvation=_coin, order=_any_order)),
    "preempt-throttled": _tiered(_throttled(BASES["all"])),
    "preempt-entering": _tiered(BASES["throttled"]),
    "preempt-qos": _tiered(_of_qos(_random("shared", reserve_after=_soon, **BY_QOS))),
    "resources-typed": _resource_limited(_typed(BASES["all"])),
    "estimate-all": _estimated(_random("shared", **BY_ESTIMATE)),
    "estimate-alike": _estimated(_alike("shared", **BY_ESTIMATE)),
    "many-nodes": _many_nodes("shared", held_jobs=_held_jobs, **EVERYTHING),
    "hybrid-many-nodes": _many_nodes("hybrid", held_jobs=_held_jobs, reservation=_coin, **EVERYTHING),
}
#: More disciplines, for ``python -m tests.fuzz``; each combines features of those above.
SELDOM: dict[str, Generator] = {
    "charged-typed": _charged(_typed(_fair("shared", reserve_after=_soon, **BY_SHARES))),
    "charged-preempt": _tiered(_charged(_fair("shared", **BY_SHARES))),
    "active-hybrid": _random("hybrid", **MAYBE_RESERVED | {"order": _active}),
    "active-queues": _random("shared", reserve="queues", **BY_ACTIVE),
    "active-top-jobs": _random("hybrid", reservation=_coin, **TOP_JOBS, **BY_ACTIVE),
    "active-preempt": _tiered(_random("shared", reserve_after=_soon, **BY_ACTIVE)),
    "throttled-top-jobs": _throttled(BASES["top-jobs"]),
    "shortpool-fcfs": _shortpool(_random("shared", backfill=False, order=_any_order)),
    "shortpool-formula": _shortpool(_random("shared", order=_formula, limits=_coin, starvation=_coin)),
    **family(
        "shortpool", _shortpool, "limits", "partitioned", "hybrid", "top-jobs", "queues", "queues-hybrid", "depth"
    ),
    "shortpool-fairshare": _shortpool(_fair("shared", reserve_after=_soon, **BY_SHARES)),
    "shortpool-throttled": _shortpool(_throttled(_random("shared", limits=_coin, order=_any_order))),
    "shortpool-entering": _shortpool(_entering(_SOME_LIMITS)),
    "qos-formula": _of_qos(_random("shared", order=_qos_formula, limits=_coin, reserve_after=_soon)),
    "qos-alike": _of_qos(_alike("shared", reserve_after=_soon, **BY_QOS)),
    "qos-divided": _of_qos(_random("partitioned", reservation=_coin, **BY_QOS)),
    "qos-hybrid": _of_qos(_random("hybrid", reservation=_coin, **BY_QOS)),
    "qos-nothing": _of_qos(_random("shared", reserve="nothing", reserve_after=_soon, **BY_QOS)),
    "qos-depth": _of_qos(_random("shared", reservation_depth=_depth, reserve_after=_soon, **BY_QOS)),
    "qos-top-jobs": _of_qos(_random("shared", **TOP_JOBS, **BY_QOS)),
    "qos-period": _of_qos(_random("shared", order=_qos_formula, limits=_coin, **PERIODIC)),
    **family("typed", _typed, "", "formula", "limits"),
    "typed-queues": _QUEUES,
    "owned": _typed(_random("partitioned"), by=owned),
    "owned-all": _typed(_DIVIDED, by=owned),
    "owned-nodes": _typed(_DIVIDED, by=partial(owned, reserve="nodes")),
    "owned-queues": _typed(_entering(_DIVIDED), by=partial(owned, alone=True, reserve="queues")),
    "owned-queue-nodes": _typed(_DIVIDED, by=partial(owned, alone=True, reserve="queue_nodes")),
    "owned-depth": _typed(_random("partitioned", reservation_depth=_depth, **EVERYTHING), by=owned),
    "depth-typed": _typed(_DEEP, by=partial(typed, alone=True)),
    "nothing-typed": _typed(BASES["nothing"], by=partial(typed, alone=True)),
    "nothing-preempt": _tiered(BASES["nothing"]),
    "kept-queues": _kept(_QUEUES),
    "kept-depth": _kept(_typed(_DEEP, by=partial(typed, alone=True))),
    "kept-owned-queues": _kept(_typed(_DIVIDED, by=partial(owned, reserve="queues"))),
    "kept-queue-nodes": _kept(_typed(BASES["all"], by=best_placed)),
    "kept-owned-queue-nodes": _kept(_typed(_DIVIDED, by=partial(owned, alone=True, reserve="queue_nodes"))),
    "closed": _closed(_typed(BASES[""])),
    "closed-all": _closed(_typed(BASES["all"], by=partial(typed, alone=True))),
    "closed-limits": _closed(_typed(BASES["limits"])),
    "closed-throttled": _closed(_typed(_entering(_ONE_LIST))),
    "closed-divided": _closed(_typed(_DIVIDED, by=partial(owned, alone=True))),
    "closed-resources": _closed(_resource_limited(_typed(_ONE_LIST))),
    "closed-queues": _closed(_QUEUES),
    "closed-nodes": _closed(_placed(BASES[""])),
    "closed-nodes-all": _closed(_typed(BASES["all"], by=partial(placed, alone=True))),
    "closed-nodes-limits": _closed(_placed(BASES["limits"])),
    "closed-nodes-divided": _closed(_typed(_DIVIDED, by=partial(owned, alone=True, reserve="nodes"))),
    "closed-queue-nodes": _closed(_typed(BASES["all"], by=best_placed)),
    "queue-nodes": _typed(BASES["all"], by=best_placed),
    "queue-nodes-alike": _typed(BASES["all"], alike=True, by=best_placed),
    "queue-nodes-throttled": _typed(BASES["throttled"], by=best_placed),
    **family("placed", _placed, "", "formula", "throttled"),
    "placed-narrow": _placed(changed(_narrow, _random("shared", order=_any_order))),
    "preempt-formula-limits": _tiered(_random("shared", order=_formula, limits=True, reserve_after=_soon)),
    "preempt-fairshare": _tiered(_fair("shared", **BY_SHARES)),
    "preempt-typed": _typed(_tiered(BASES["all"])),
    "preempt-typed-alone": _typed(_tiered(BASES["throttled"]), by=partial(typed, alone=True)),
    "preempt-nodes": _placed(_tiered(BASES["all"])),
    "preempt-nodes-alone": _typed(_tiered(BASES["throttled"]), by=partial(placed, alone=True)),
    "preempt-alike": _tiered(BASES["alike"]),
    "preempt-period": _tiered(_random("shared", order=_formula, limits=_coin, **PERIODIC)),
    "resources": _resource_limited(_SOME_LIMITS),
    **family("resources", _resource_limited, "alike", "hybrid", "queues", "depth"),
    "resources-top-jobs": _resource_limited(BASES["hybrid-top-jobs"]),
    "resources-preempt": _tiered(_resource_limited(BASES["all"])),
    "resources-qos": _resource_limited(_of_qos(_random("shared", reserve_after=_soon, **BY_QOS))),
    "resources-placed": _resource_limited(_placed(BASES["all"])),
    "estimate": _estimated(_random("shared", order=_estimate_formula, reserve_after=_soon)),
    "estimate-qos": _estimated(_of_qos(_alike("shared", **BY_ESTIMATE))),
    "estimate-hybrid": _estimated(_random("hybrid", reservation=_coin, **BY_ESTIMATE)),
    "estimate-typed": _estimated(_typed(_random("shared", **BY_ESTIMATE), alike=True)),
    "estimate-preempt": _estimated(_tiered(_random("shared", **BY_ESTIMATE))),
}
DISCIPLINES = TESTED | SELDOM  #: all of `parsim.simulate`


def multiqueue(rng: Random) -> tuple[Workload, int, tuple[int, ...]]:
    """Return (workload, cores, class limits) for multiple-queue backfilling."""
    machine = System.single(rng.choice((1, 2, 4, 8, 12, 16)))
    return workload(rng, machine), machine.cores, rng.choice(((), (3,), (5, 10), (2, 5, 20)))


def planned(rng: Random) -> tuple[Workload, int, Policy]:
    """Return (workload, cores, policy) for a planning discipline, with few cores and instants, rows in random order."""
    cores = rng.choice((1, 2, 3, 5, 8, 16, 20))
    gap, limit = rng.choice((1, 3, 10)), rng.choice((4, 12, 60))
    submit, width, walltime, runtime = [], [], [], []
    now = rng.choice((0, 7, 10**9))
    for _ in range(rng.randint(1, 25)):
        now += rng.randint(0, gap)
        submit.append(now)
        width.append(rng.randint(1, cores) if rng.random() < 0.7 else 1)
        walltime.append(rng.randint(1, limit))
        runtime.append(walltime[-1] if rng.random() < 0.3 else rng.randint(1, limit + 3))
    rng.shuffle(submit)
    return Workload(submit, width, runtime, walltime), cores, _policy(rng)


def _policy(rng: Random) -> Policy:
    kind = rng.choice(("fixed", "conservative", "bounds", "self-tuning", "self-tuning", "self-tuning"))
    lower = rng.randint(0, 10)
    return Policy(
        kind,
        "fcfs" if kind == "conservative" else rng.choice(planning.ORDERS),
        lower,
        lower + rng.randint(0, 6),
        rng.choice((1, 1, 2, 5)),
        rng.choice(planning.DECIDERS),
        rng.choice(planning.ORDERS),
        rng.choice(("half", "full")),
        rng.choice(planning.METRICS),
        rng.choice(("each", "each", "standing")),
    )


def needing(rng: Random, jobs: Workload) -> Workload:
    """Return the jobs with random dependencies and quotas."""
    n = len(jobs)
    turn = rng.sample(range(n), n) if rng.random() < 0.3 else sorted(range(n), key=lambda j: jobs.submit[j])
    after = [
        (turn[k], rng.choice(turn[:k]))
        for k in range(1, n)
        for _ in range(rng.choice((1, 1, 2)))
        if rng.random() < rng.choice((0.1, 0.5))
    ]
    return replace(jobs, after=after, quotas=[_quota(rng, jobs, f"quota {k}") for k in range(rng.randint(0, 3))])


def _quota(rng: Random, jobs: Workload, name: str) -> Quota:
    rows = rng.sample(range(len(jobs)), rng.randint(1, len(jobs)))
    first, last = int(jobs.submit.min()) - 5, int(jobs.submit.max()) + 60
    instants = sorted({rng.randint(first, last) for _ in range(rng.choice((0, 0, 1, 2, 4)))})
    changes = [(instant, rng.randint(0, 4)) for instant in instants]
    if changes:
        changes[-1] = (instants[-1], rng.randint(1, 4))
    most = changes[-1][1] if changes else rng.randint(1, 4)
    return Quota(name, rng.randint(0, 4) if changes else most, rows, [rng.randint(1, most) for _ in rows], changes)


def state(rng: Random, jobs: Workload, machine: System, *, windows: bool = True) -> State:
    """Return a random initial state: jobs that already run or ended, and with `windows` cores out of service."""
    submit, length = jobs.submit.tolist(), jobs.effective_runtime.tolist()
    begin = rng.choice((min(submit), rng.choice(submit), rng.randint(min(submit) - 2, max(submit) + 20)))
    start, left = [UNSTARTED] * len(jobs), machine.cores
    for j in range(len(jobs)):
        if submit[j] < begin and rng.random() < 0.7:
            instant = rng.randint(submit[j], begin - 1)
            runs = instant + length[j] > begin
            if not runs or jobs.cores[j] <= left:
                start[j] = instant
                left -= int(jobs.cores[j]) if runs else 0
    windows = windows and not machine.has_tiers and (not machine.node_types or bool(machine.windows))
    nodes = named_nodes(rng, jobs, machine, start, begin) if machine.places_chunks else {}
    found = [
        closure(rng, jobs, machine, begin) if machine.node_types else window(rng, begin, machine)
        for _ in range(rng.randint(0, 3) * windows)
    ]
    return State(begin, start, nodes=nodes, windows=found)


def named_nodes(
    rng: Random, jobs: Workload, machine: System, start: list[int], begin: int
) -> dict[int, dict[int, int]]:
    """Return nodes for some of the jobs that run when a state begins; the jobs may not fit there."""
    count, found = sum(each.nodes for each in machine.node_types), {}
    for j, instant in enumerate(start):
        if instant < begin and rng.random() < 0.4:
            found[j] = {node: rng.randint(0, 8) for node in rng.sample(range(count), rng.randint(1, min(count, 3)))}
    return found


def window(rng: Random, begin: int, machine: System) -> Window:
    """Return a random window: cores out of service, or reserved for a queue or users."""
    first = begin + rng.choice((0, 0, rng.randint(-10, 60)))
    count = sum(-(-cores // machine.cores_per_node) for cores in machine.partition_cores)
    by_nodes = rng.random() < 0.3
    separate = machine.mode != "multiqueue" and not (machine.reserves_for_queues or machine.reserves_for_many)
    users = tuple(rng.sample(range(3), rng.choice((1, 2)))) if separate else ()
    return Window(
        first,
        first + rng.randint(1, rng.choice((5, 20, 60))),
        rng.choice((None, rng.randint(1, machine.cores), rng.randint(1, machine.cores))),
        rng.choice((None, rng.randrange(len(machine.partition_cores)))),
        rng.sample(range(count), rng.randint(1, count)) if by_nodes else (),
        rng.choice((None, None, first, first - 5, first + 2)),
        rng.random() < 0.7,
        *rng.choices([(None, ()), (rng.randrange(len(machine.queues)), ()), (None, users)], (0.7, 0.15, 0.15))[0],
    )


def broken(rng: Random, right: Schedule, begin: int | None = None) -> Schedule:
    """Return a schedule that differs from ``right`` in the start of one or two jobs, one placement or one interruption.

    Placements of jobs that ended by the `begin` of a state are not changed, since they have no effect.
    """
    if right.interruptions.job.size and _coin(rng):
        return _interrupted_otherwise(rng, right)
    instants = sorted({*right.end.tolist(), *right.submit.tolist()})
    while True:
        start, partition, shares = right.start.copy(), right.partition.copy(), dict(right.shares)
        job, other = rng.randrange(len(right)), rng.randrange(len(right))
        kind = rng.choice(("moved", "moved", "exchanged", "placed"))
        if kind == "placed" and begin is not None and right.end[job] <= begin:
            continue
        if kind == "moved":
            start[job] = rng.choice((start[job] - 1, start[job] + 1, rng.choice(instants)))
        elif kind == "exchanged":
            start[[job, other]] = start[[other, job]]
        elif partition[job] == SPANNING and rng.random() < 0.5:
            giving = rng.choice(np.flatnonzero(shares[job]).tolist())
            shares[job] = shares[job].copy()
            shares[job][giving] -= 1
            shares[job][rng.choice([p for p in range(len(right.partition_names)) if p != giving])] += 1
        else:
            partition[job] = rng.randrange(len(right.partition_names))
        shared_out = any((shares[row] != right.shares[row]).any() for row in shares)
        if shared_out or (start != right.start).any() or (partition != right.partition).any():
            end = start + (right.end - right.start)
            return replace(right, start=start, end=end, partition=partition, shares=shares)


def _interrupted_otherwise(rng: Random, right: Schedule) -> Schedule:
    """Return a schedule that differs in one interruption, and in its job's end, so that the run time is unchanged."""
    job, begin, end, loses, place = (column.copy() for column in right.interruptions)
    k = rng.randrange(job.size)
    if place.size and rng.random() < 0.2:
        place[k] += rng.choice((-1, 1))
        return replace(right, interruptions=right.interruptions._replace(place=place))
    earlier, later = rng.choice([(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b])
    begin[k] += earlier
    end[k] += later
    ends = right.end.copy()
    last = not loses[k] or begin[k] == begin[job == job[k]].max()
    ends[job[k]] += (later - (0 if loses[k] else earlier)) if last else 0
    return replace(right, end=ends, interruptions=Interruptions(job, begin, end, loses, place))
