"""Packs a prepared workload and a system into the arrays of the kernels."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from parsim.engine import order as orders
from parsim.engine import simulation as kernel
from parsim.engine.lists.alike import NO_JOB
from parsim.engine.lists.homes import find_eligible, find_homes
from parsim.engine.plans.placed_head_jobs import PlacedHeadJobs
from parsim.engine.plans.queue_head_jobs import HeadJobs
from parsim.engine.plans.rows import PROMISE, ROWS, Plans
from parsim.engine.preempt.preempting import INTERRUPTION, KEEPS, LOSES, PREEMPTIONS, RETURNS, STAYS, Preempting
from parsim.engine.resources.chunks import Placing
from parsim.engine.resources.node_types import NodeTypes
from parsim.engine.resources.nodes import NO_SHARE, SHARE, Nodes
from parsim.engine.resources.typed_windows import TypedWindows
from parsim.engine.resources.windows import WINDOW, Outages
from parsim.model.fairshare import FAIRSHARE
from parsim.model.system import ORDERS, System
from parsim.model.workload import MAX_DURATION, Column, Workload
from parsim.planning.clock import AT, Clock
from parsim.prepare.charges import decimal
from parsim.prepare.chunks import unplaced
from parsim.prepare.columns import Prepared, Table
from parsim.prepare.needs import fresh
from parsim.prepare.node_types import resources_of, untaken
from parsim.prepare.order import NEVER, NO_LINES, keeps_turns, lines_of, pack_alike, pack_formula
from parsim.prepare.state import layout

MOST = 2**31 - 1
_NO_NODES = np.empty((0, 3), dtype=np.int64)
_NO_OUTAGES = Outages(np.empty(0, dtype=WINDOW), np.empty((0, 1), dtype=np.int64), np.empty(0, dtype=np.int64))
LATEST = 2 * MAX_DURATION  #: 136 years after its submit; a job that is eligible later is taken to be so then

#: Looks at entries of waiting lists that a loop has for each submitted job. When they are used up it gives up, and a
#: loop for deep queues takes over, which looks at the first of jobs alike only, but takes longer for each.
LOOKS = 1000
OF_ONE_LIST = 0.25  #: times as many where the kernel of one list takes over
OF_LINES = 0.5  #: times as many where the loop over lines of jobs alike takes over
OF_BLOCKS = 64  #: times as many where a list is scanned in vectors, and jobs are not alike
FEW = 4  #: average number of jobs in a line from which on the loop over lines is faster
AHEAD = 2000  #: jobs whose looks the loop has in advance, so that the first burst does not decide


def most_looks(times: float = 1) -> tuple[int, int]:
    """Return the looks at waiting entries that a loop has at first and that each job adds: `times` the usual ones."""
    looks = math.floor(times * LOOKS)
    return AHEAD * looks, looks


def has_few_lines(line: NDArray[np.int32]) -> bool:
    """Whether jobs with these line numbers have at least FEW jobs in a line on average; `line` has shape (n,)."""
    return FEW * (int(line.max(initial=-1)) + 1) <= line.size


def pack(
    prepared: Prepared,
    system: System,
    *,
    beside: Literal["top jobs", "head jobs"] | None = None,
    gives_up: bool = False,
    lines: bool = False,
    one_list: bool = False,
    interruptions: int = 0,
) -> kernel.Simulation:
    """Lay out everything that the event loop reads and writes.

    `beside` names the plans of the simulation. With `gives_up` the loop gives up in deep queues, if the loop over lines
    of jobs alike can take over and lines are few, or with `one_list` the kernel of one list. With `lines` lists have
    only the first of jobs alike, on the same conditions. The loop gives up once more than `interruptions` occur.
    """
    n = len(prepared.workload)
    cores = np.array(system.partition_cores, dtype=np.int64)
    formula, fair = pack_formula(prepared, system)
    settings = _pack_settings(prepared, system)
    if gives_up or lines:
        may_have = not settings["track_held"] and _exempt(prepared).size == 0
        may_have = may_have and keeps_turns(prepared, system, formula.columns)
        if may_have and not one_list:
            may_have = has_few_lines(pack_alike(prepared, system, formula.columns))
        gives_up, lines = gives_up and may_have, lines and may_have
    settings["alike"] = lines
    alike = lines_of(prepared, system) if lines else NO_LINES
    jobs = prepared.queued_jobs()
    entries = np.zeros(cores.size + 1, dtype=np.int64)
    find_homes(jobs, cores, system.mode == "shared", entries)
    node_types, placing = _pack_node_types(prepared, system)
    most = np.minimum(cores, n) + 1
    if system.node_types and not system.is_whole:  # rule "home by type"
        jobs["home"] = jobs["queue"]
        entries[:] = np.bincount(jobs["home"], minlength=entries.size)
        most[:] = min(system.cores, n) + 1
    eligible_at, may_enter = _eligible(jobs, system)
    entries[-2] += may_enter  # these may stand in the pool's list as well
    listed = int(entries.sum()) + kernel.BLOCK
    running = prepared.first
    spanning = 1 + running + int(entries[-1]) + (int(may_enter + entries[-2]) if settings["combined"] else 0)
    held = np.zeros(n if settings["track_held"] else 0, dtype=kernel.HELD)
    held["since"] = -1
    shares = np.empty((spanning, cores.size), dtype=np.int64)
    placement = np.empty(n, dtype=np.int32)
    if prepared.begun is not None:
        shares[:running] = prepared.begun.shares
        spans = (prepared.begun.shares > 0).sum(axis=1) > 1
        placement[:running] = np.where(spans, -1 - np.arange(running), prepared.begun.shares.argmax(axis=1))
    progress = np.zeros(1, dtype=kernel.PROGRESS)[0]
    progress["spanning"] = running
    progress["now"] = -1
    windows = _pack_typed_windows(prepared, system, int(most.sum()))
    times = OF_ONE_LIST if one_list else OF_LINES
    settings["looks"] = most_looks(times)[1]
    progress["looks"] = most_looks(times)[0] if gives_up else NEVER
    return kernel.Simulation(
        jobs=jobs,
        start=prepared.unstarted(),
        placement=placement,
        shares=shares,
        eligible_at=eligible_at,
        held=held,
        queues=_pack_queues(prepared, system),
        by_queue=prepared.by_queue if settings["starvation"] else np.empty(0, np.int32),
        partitions=_pack_partitions(cores, entries, most),
        settings=settings,
        progress=progress,
        waiting=kernel.Waiting(*np.zeros((5, listed), dtype=np.int32), *np.zeros((3, listed))),
        candidates=np.empty(int(entries.max()), dtype=np.int32),
        running=None if beside == "top jobs" else kernel.Running(*np.empty((2, int(most.sum())), np.int64)),
        ends=np.empty(min(n, system.cores + prepared.first) + 1, dtype=np.int64),  # more than fit may run at first
        wake_ups=np.empty(may_enter + 1, dtype=np.int64),
        formula=formula,
        usable=np.zeros(cores.size, dtype=np.bool_),
        idle=np.zeros(cores.size, dtype=np.int64),
        alike=alike._replace(first=np.full_like(alike.first, NO_JOB)),
        fair=fair,
        gates=prepared.gates(system).counting(system),
        submit_keys=_submit_keys(prepared, system),
        needs=fresh(prepared.needs),
        node_types=node_types,
        placing=placing,
        preempting=_pack_preempting(prepared, system, interruptions) if system.has_tiers else None,
        windows=windows,
        plain=_NONE if windows is None and beside is None else None,
        outages=pack_windows(prepared),
    )


def _submit_keys(prepared: Prepared, system: System) -> Column:
    """Return the key of each job that sorts jobs by submission; empty where their numbers do."""
    if not (system.has_tiers or system.keeps_out):
        return np.empty(0, dtype=np.int64)
    submit: Column = prepared.workload.submit - prepared.base
    return (submit << prepared.bits) | prepared.position


def _pack_typed_windows(prepared: Prepared, system: System, running: int) -> TypedWindows | None:
    """Return the windows on nodes of several types for EASY, with at most so many running jobs; else None."""
    if not (system.node_types and prepared.has_windows) or system.reserves_for_queues or system.reserves_for_many:
        return None
    windows, totals = pack_windows(prepared).windows.size, len(system.node_types) * len(resources_of(system.node_types))
    shape = (0, 0) if system.places_chunks else (running + 2 * windows + 8, totals)
    return TypedWindows(
        exempt=_exempt(prepared),
        takes=np.zeros((windows, shape[1]), dtype=np.int64),
        times=np.empty(shape[0], dtype=np.int64),
        free=np.empty(shape[0] * shape[1], dtype=np.int64),
    )


def _exempt(prepared: Prepared) -> NDArray[np.bool_]:
    """Return for which jobs the windows of each group are, shape (G, n); G is 0 where no window is for some jobs."""
    exempt = None if prepared.begun is None else prepared.begun.exempt
    return np.empty((0, len(prepared.workload)), dtype=np.bool_) if exempt is None else exempt


def plans_limits(prepared: Prepared, system: System) -> bool:
    """Whether a job that its limits or a quota hold may be a head job."""
    return system.plans_limits or (system.held_jobs == "reserve" and bool(prepared.workload.quotas))


def pack_head_jobs(
    prepared: Prepared, system: System, state: kernel.Simulation
) -> tuple[HeadJobs | None, PlacedHeadJobs | None]:
    """Return empty plans of head jobs of queues or lists, or of those that hold whole nodes; the other is None."""
    if system.places_chunks:
        return None, _pack_placed_head_jobs(prepared, system, state.placing)
    return _pack_head_jobs(prepared, system, state), None


def _pack_placed_head_jobs(prepared: Prepared, system: System, placing: Placing) -> PlacedHeadJobs:
    queues = len(system.queues)
    begin, end = np.full((2, queues), NEVER, dtype=np.int64)
    return PlacedHeadJobs(
        begin=begin,
        end=end,
        holds=np.zeros((queues, placing.type.size), dtype=np.bool_),
        beside=np.zeros((queues, *placing.idle_in_all.shape), dtype=np.int64),
        whole=placing.idle.copy(),
        visits=np.zeros(1, dtype=np.int64),
        unplaced=np.zeros((2, placing.failed.shape[1]), dtype=np.int64),
        failed=np.zeros((2, placing.failed.shape[1]), dtype=np.int64),
        exempt=_exempt(prepared),
    )


def _pack_preempting(prepared: Prepared, system: System, interruptions: int) -> Preempting:
    """Return the tiers of the queues, with room for so many interruptions."""
    n, tiers = len(prepared.workload), sorted({queue.tier for queue in system.queues})
    kinds = {"off": STAYS, "requeue": LOSES, "suspend": RETURNS, "checkpoint": KEEPS}
    most = min(n, system.cores)
    return Preempting(
        tier=np.array([tiers.index(queue.tier) for queue in system.queues], dtype=np.int64),
        kind=np.array([kinds[queue.preempted] for queue in system.queues], dtype=np.int64),
        cores=np.zeros(len(tiers), dtype=np.int64),
        first=np.full(n, -1, dtype=np.int64),
        last=np.full(n, -1, dtype=np.int64),
        interruptions=np.zeros(interruptions, dtype=INTERRUPTION),
        taken=np.zeros(most, dtype=np.int32),
        back=np.zeros(most, dtype=np.int32),
        progress=kernel.one(PREEMPTIONS, interruptions=0, back=0, at=-2, most=0),
    )


def _pack_node_types(prepared: Prepared, system: System) -> tuple[NodeTypes | None, Placing | None]:
    """Return places on types of nodes, and chunks on nodes; None for those that are not simulated."""
    types, placing = prepared.node_types(system), prepared.placing(system)
    if placing is not None:
        named = _NO_NODES if prepared.begun is None else prepared.begun.on_nodes
        placing = unplaced(placing, named, windows=prepared.has_windows, returns=system.has_tiers)
    return None if types is None else untaken(types, returns=system.has_tiers), placing


_NONE = np.empty(0, dtype=np.int32)


def _pack_partitions(cores: Column, entries: Column, most: Column) -> Table:
    """Return partitions, pool and reserved list, with `entries` in each list and at most `most` running jobs."""
    table = np.zeros(cores.size + 1, dtype=kernel.PARTITION)
    table["cores"][:-1] = table["free"][:-1] = cores
    table["first"][1:] = np.cumsum(entries)[:-1]
    table["first_running"][1:] = np.cumsum(most)
    table["head_job"] = table["waits_first"] = -1
    table["first_starving"] = NEVER
    return table


def _eligible(jobs: Table, system: System) -> tuple[Column, int]:
    """Return the instants at which jobs may enter the pool, and the number of these jobs (rule "pool eligibility")."""
    pool = system.pool
    if pool is None or not system.pool_cores:
        return np.empty(0, dtype=np.int64), 0
    eligible_at = np.full(len(jobs), NEVER, dtype=np.int64)
    ratios = [_ratio(pool.threshold, queue.priority) for queue in system.queues]
    exact = [(r.numerator, r.denominator) if _is_small(r) else (0, 0) for r in ratios]
    bounds = np.array([queue.walltime[1] for queue in system.queues], dtype=np.int64)
    widest = MOST if pool.placement == "combined" else pool.cores
    fractions = np.array(exact, dtype=np.int64)
    may_enter = find_eligible(jobs, bounds, fractions, len(system.queues), widest, LATEST, eligible_at)
    for q in (q for q, ratio in enumerate(ratios) if not _is_small(ratio)):
        for job in np.flatnonzero((eligible_at < NEVER) & (jobs["queue"] == q)).tolist():
            seconds = min(int(jobs["walltime"][job]), int(bounds[q]))
            eligible_at[job] = int(jobs["submit"][job]) + min(math.floor(ratios[q] * seconds) + 1, LATEST)
    return eligible_at, int(may_enter)


@lru_cache(maxsize=4096)
def _ratio(threshold: float, priority: float) -> Fraction:
    """Return the exact quotient of two decimal numbers."""
    return decimal(threshold) / decimal(priority)


def _is_small(ratio: Fraction) -> bool:
    """Whether the product of a ratio and any duration is an int64."""
    return ratio.numerator <= 2**31 and ratio.denominator <= 2**61


def _pack_settings(prepared: Prepared, system: System) -> np.void:
    """Return the record of settings: those that are not computed here are attributes of the system or the jobs."""
    pool = system.pool if system.mode == "hybrid" else None
    formula = system.formula
    has_limits = system.has_limits or prepared.workload.has_needs
    named = orders.FAIRSHARE if system.order == FAIRSHARE else ORDERS.index(system.order) if formula is None else 0
    computed = {
        "order": orders.FORMULA if formula is not None else named,
        "calc_phase": prepared.base % max(system.calc_period, 1),
        "single_list": system.mode == "shared",
        "reserves": not system.reserves_nothing,
        "plans_limits": plans_limits(prepared, system),
        "by_nodes": system.reserves_nodes,
        "starvation": any(queue.starvation is not None for queue in system.queues),
        "limits": has_limits,
        "wide_limits": _has_wide_limits(prepared, system),
        "track_held": has_limits and formula is not None and formula.uses_eligible_time,
        "combined": pool is not None and pool.placement == "combined",
        "move": pool is not None and pool.entry == "move",
        "starving_first": pool is not None and pool.starving_first,
        "alike": False,
        "looks": LOOKS,
    }
    others = [name for name in kernel.SETTINGS.names or () if name not in computed]
    given = {name: getattr(system if hasattr(System, name) else prepared, name) for name in others}
    return kernel.one(kernel.SETTINGS, **computed, **given)


def _pack_queues(prepared: Prepared, system: System) -> Table:
    table = np.zeros(len(system.queues), dtype=kernel.QUEUE)
    ranks = sorted({queue.priority for queue in system.queues})
    table["rank"] = [ranks.index(queue.priority) for queue in system.queues]
    table["weight"] = _weights(tuple(queue.priority for queue in system.queues))
    table["max_walltime"] = [queue.walltime[1] for queue in system.queues]
    table["starvation"] = [NEVER if queue.starvation is None else queue.starvation for queue in system.queues]
    count = prepared.per_queue[0]
    table["end"] = len(prepared.workload)  # of the queues after the last that has jobs
    table["end"][: count.size] = count.cumsum()
    table["next_starving"][1:] = table["end"][:-1]
    return table


def _pack_head_jobs(prepared: Prepared, system: System, state: kernel.Simulation) -> HeadJobs:
    """Return empty plans of head jobs, with room for the instants of running jobs, windows and plans."""
    n, rows = len(prepared.workload), len(system.queues) if system.mode == "shared" else 1
    depth = n if system.reservation_depth is None else system.reservation_depth
    depth = depth if system.reserves_for_many else 0
    types, names = system.node_types, resources_of(system.node_types)
    node = np.full((1, 1), system.cores_per_node, dtype=np.int64)
    amounts = prepared.workload.cores.reshape(-1, 1)
    if state.node_types is not None:
        amounts = state.node_types.amounts
        node = np.zeros((len(types), amounts.shape[1]), dtype=np.int64)
        for t, each in enumerate(types):
            node[t, t * len(names) : (t + 1) * len(names)] = [each.amount(name) for name in names]
    most = 2 * (int(state.running.keys.size) + min(n, rows + depth) + state.outages.windows.size) + 4
    begin, end = np.empty((2, rows), dtype=np.int64)
    return HeadJobs(
        begin=begin,
        end=end,
        keeps=np.empty((rows, node.shape[1]), dtype=np.int64),
        node=node,
        depth=np.int64(depth),
        count=np.zeros(1, dtype=np.int64),
        out=np.zeros(node.shape[1], dtype=np.int64),
        exempt=_exempt(prepared),
        takes=np.zeros((state.outages.windows.size, node.shape[1]), dtype=np.int64),
        amounts=amounts,
        times=np.empty(most, dtype=np.int64),
        free=np.empty(most * node.shape[1], dtype=np.int64),
    )


def pack_plans(prepared: Prepared, system: System) -> Plans:
    """Return nodes, one for each partition unless `System.reserves_nodes`, empty plans of head jobs, and windows."""
    nodes = layout(system, by_node=system.reserves_nodes)
    begun = prepared.begun
    windows = 0 if begun is None else begun.windows.size
    n, parts, idle = len(prepared.workload), len(nodes.first) - 1, np.array(nodes.sizes, dtype=np.int32)
    most = min(n, system.cores) + 1
    shares = np.empty(min(system.cores, n * idle.size), dtype=SHARE)
    shares["next"] = np.arange(1, shares.size + 1)
    promises = np.zeros(parts + 1 + windows, dtype=PROMISE)
    promises["job"] = -1
    first_node = np.array(nodes.first, dtype=np.int64)
    taken = np.zeros((ROWS + windows, idle.size), dtype=np.int32)
    takes = np.zeros((ROWS + windows, parts), dtype=np.int64)
    if begun is not None:
        taken[ROWS:] = begun.taken
        for q, (first, last) in enumerate(pairwise(nodes.first)):
            takes[ROWS:, q] = begun.taken[:, first:last].sum(axis=1)
    return Plans(
        nodes=Nodes(first_node, idle, np.full(n, NO_SHARE), shares, np.zeros(1, dtype=np.int64)),
        running=kernel.Running(np.empty(most, np.int64), np.empty(most, np.int64)),
        promises=promises,
        near=np.zeros(2, dtype=np.int64),
        taken=taken,
        extra=np.zeros_like(taken),
        takes=takes,
        leaves=np.zeros_like(takes),
        later=np.empty_like(idle),
        left=np.empty_like(idle),
        begun=_NO_NODES if begun is None else begun.on_nodes,
        outages=pack_windows(prepared),
        loose=np.zeros(1, dtype=np.bool_),
        exempt=_exempt(prepared),
    )


def pack_windows(prepared: Prepared) -> Outages:
    """Return the windows of a state for the kernels."""
    begun = prepared.begun
    return _NO_OUTAGES if begun is None else Outages(begun.windows, begun.taken, begun.instants)


def pack_clock(prepared: Prepared, cores: int) -> Clock:
    """Return the clock of a planning kernel on a machine of so many cores."""
    running = min(len(prepared.workload), cores)
    return Clock(
        jobs=prepared.jobs,
        start=prepared.unstarted(),
        ends=np.empty(running + 1, dtype=np.int64),
        bits=prepared.bits,
        begin=prepared.begin,
        machine=cores,
        outages=pack_windows(prepared),
        at=kernel.one(AT, now=prepared.begin - 1, before=0, arriving=prepared.first, running=0, passed=0),
    )


def pack_classes(workload: Workload, system: System) -> tuple[Column, Table]:
    """Return the class of each job by its walltime (rule "classes by walltime"), and records of empty classes."""
    limits = np.array(system.class_limits, dtype=np.int64)
    job_class = np.searchsorted(limits, workload.walltime)
    classes = np.zeros(limits.size + 1, dtype=kernel.CLASS)
    classes["first"][1:] = np.bincount(job_class, minlength=classes.size).cumsum()[:-1]
    classes["last"] = classes["first"]
    return job_class, classes


def _has_wide_limits(prepared: Prepared, system: System) -> bool:
    """Whether a job may become able to start though no job of its list has ended: as quotas or throttles ease."""
    works = any(throttle.max_run_core_seconds is not None for throttle in system.throttles)
    several = bool(system.throttles) or system.exempts_from_queues
    if system.places_chunks and any(len(request) > 1 for request in prepared.workload.requests):
        return True  # a job of several chunks may fit only where less is idle
    return works or prepared.workload.has_needs or (system.mode != "shared" and several)


@lru_cache(maxsize=1024)
def _weights(priorities: tuple[float, ...]) -> list[int]:
    """Return whole numbers in proportion to priorities; rounded if the exact ones do not fit 62 bits."""
    exact = [decimal(priority) for priority in priorities]
    scale = math.lcm(*(value.denominator for value in exact))
    whole = [int(value * scale) for value in exact]
    common = math.gcd(*whole)
    whole = [value // common for value in whole]
    if max(whole) >= 2**62:
        whole = [max(1, int(value * 2**61 / max(exact))) for value in exact]
    return whole
