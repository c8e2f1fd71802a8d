"""The public simulator: checks a workload, chooses the kernel of the discipline, packs, runs, unpacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.events import events
from parsim.engine.fast.easy import easy
from parsim.engine.fast.time_dependent import time_dependent
from parsim.engine.gates.counters import EXEMPT_AMOUNT, EXEMPT_WORK
from parsim.engine.plans.rows import Plans
from parsim.engine.simulation import NEVER, Simulation
from parsim.model.needs import ready_times
from parsim.model.node_types import Demands
from parsim.model.schedule import NO_INTERRUPTIONS, SPANNING, Interruptions, NodesAt, Schedule
from parsim.model.state import UNSTARTED, State
from parsim.model.system import Queue, System
from parsim.model.throttles import RESOURCES
from parsim.model.workload import Column, Workload
from parsim.planning.multiqueue import multiqueue
from parsim.prepare.chunks import demands as placed_demands
from parsim.prepare.columns import Depth, Prepared, check_started, prepare, prepare_from, refuse_needs
from parsim.prepare.node_types import demands
from parsim.prepare.one_list import pack_one_list
from parsim.prepare.order import is_formula, rank
from parsim.prepare.packing import (
    OF_BLOCKS,
    has_few_lines,
    most_looks,
    pack,
    pack_classes,
    pack_clock,
    pack_head_jobs,
    pack_plans,
    plans_limits,
)
from parsim.prepare.reservations import place, reservations
from parsim.prepare.state import held_on_nodes


def simulate(workload: Workload, system: System, state: State | None = None) -> Schedule:
    """Decide when and where each job would have started.

    Parameters
    ----------
    workload : Workload
        In any order; ties of submit go by position.
    system : System
    state : State, optional
        Running jobs and cores out of service; by default the machine is empty at the first submission.

    Returns
    -------
    Schedule
        Columns aligned with the workload.

    Raises
    ------
    ValueError
        A job that could never start, or whose queue the system lacks; more than 2**28 jobs; n jobs that take more than
        2**62 / n seconds from the first submission on, n rounded up to a power of two; a state that does not fit the
        workload and the system.

    References
    ----------
    Mu'alem and Feitelson, IEEE TPDS 12(6), 2001; Kondameedi and Vadhiyar, CCGrid 2017, sections II to IV.A;
    Lawson and Smirni, JSSPP 2002.
    """
    if system.windows and len(workload):
        state = State.with_windows_of(system, workload, state)
    if state is not None:
        return simulate_from(workload, replace(system, windows=()), state)
    prepared = prepare(workload)
    _check(prepared, system)
    outcome = run(prepared, system)
    start, end = outcome.start, outcome.end
    end = prepared.restore(start + prepared.runtime if end is None else end)
    shares = outcome.shares
    return Schedule(
        submit=ready_times(workload.submit, end, workload.after),
        start=prepared.restore(start),
        end=end,
        cores=workload.cores,
        partition=prepared.restore(outcome.partition),
        shares=shares if prepared.rows is None else {int(prepared.rows[job]): row for job, row in shares.items()},
        partition_names=system.partition_names,
        place=prepared.restore(outcome.place) if system.node_types and not system.places_chunks else None,
        interruptions=_of_rows(outcome.interruptions, prepared.rows),
        demands=_demands(prepared, system, outcome),
        node=prepared.restore(outcome.node) if system.places_chunks else None,
        nodes_at=_nodes_function(prepared, system, prepared.rows),
    )


def _nodes_function(prepared: Prepared, system: System, rows: NDArray[np.int64] | None) -> NodesAt | None:
    """Return `Schedule.nodes_at` for the jobs at these rows of the schedule; None where nodes are not told apart."""
    apart = system.reserves_nodes or system.places_chunks
    return partial(_nodes_at, prepared, system, rows) if apart else None


def _nodes_at(
    prepared: Prepared, system: System, rows: NDArray[np.int64] | None, instant: int
) -> Mapping[int, dict[int, int]]:
    """Simulate until an instant; return the cores on each node of the jobs that run then, by row."""
    if not len(prepared.workload):
        return {}
    held = run(replace(prepared, until=instant - prepared.base), system).held
    return held if rows is None else {int(rows[job]): nodes for job, nodes in held.items()}


def _demands(
    prepared: Prepared, system: System, outcome: Outcome, rows: NDArray[np.int64] | None = None, n: int = 0
) -> Demands | None:
    """Return `Schedule.demands`. If only `rows` of n jobs were simulated, the others get a place that takes nothing."""
    types, found = prepared.node_types(system), outcome.demands
    if types is not None:
        found = demands(system, types, outcome.place)
    if found is None:
        return None
    of, taken = prepared.restore(found.of), prepared.restore(found.taken)
    if rows is None or rows.size == n:
        return found._replace(of=of, taken=taken)
    nothing = len(found.amounts)
    every = np.full(n, found.first.size - 1, dtype=np.int32), np.full(n, nothing)
    for whole, part in zip(every, (of, taken), strict=True):
        whole[rows] = part
    amounts = np.concatenate((found.amounts, np.zeros((1, *found.there.shape), dtype=np.int64)))
    partition = None if found.partition is None else np.append(found.partition, 0)
    first = np.append(found.first, nothing + 1)
    return found._replace(of=every[0], taken=every[1], first=first, amounts=amounts, partition=partition)


def _of_rows(interruptions: Interruptions, rows: NDArray[np.int64] | None) -> Interruptions:
    """Return interruptions with rows of the schedule in place of job numbers."""
    return interruptions if rows is None else interruptions._replace(job=rows[interruptions.job])


def simulate_from(workload: Workload, system: System, state: State) -> Schedule:
    """Simulate from a state, which is checked first (rules of "state")."""
    problems = [f"{path}: {message}" for path, message in state.problems(workload, system)]
    if problems:
        raise ValueError("state: " + "; ".join(problems))
    start = state.start.copy()
    partition = np.where(workload.queue < len(system.partition_cores), workload.queue, 0).astype(np.int32)
    if system.is_whole:
        partition[:] = 0
    shares: dict[int, Column] = {}
    ended = (start < state.begin) & (start + workload.effective_runtime <= state.begin)
    workload = as_at(workload, state)
    submit = workload.submit.copy()
    rest = ~ended
    at = np.zeros(len(workload), dtype=np.int64) if system.node_types and not system.places_chunks else None
    node = np.full(len(workload), -1, dtype=np.int64) if system.places_chunks else None
    apart = np.zeros(len(workload), dtype=np.int64)  # on which machine each job was simulated
    for own in reservations(workload, system, state):
        prepared = prepare_from(workload.take(own.rows), own.system, own.state)
        outcome = run(prepared, own.system)
        begun = prepared.restore(outcome.start)
        inside = own.rows[begun < own.end]
        for column, found in ((at, outcome.place), (node, outcome.node)):
            if column is not None and found.size:
                column[inside] = prepared.restore(found)[begun < own.end]
        start[inside] = begun[begun < own.end]
        rest[inside] = False
        apart[inside] = 1 + own.queue
        waits = np.flatnonzero((workload.queue == own.queue) & rest & (start >= state.begin))
        submit[waits] = np.maximum(submit[waits], own.end)
        for row in inside.tolist():
            placed = place(own, state, system, max(state.begin, int(start[row])), int(workload.cores[row]))
            _put(row, placed, partition, shares, len(system.partition_cores))
    rows = np.flatnonzero(rest)
    jobs = replace(workload, submit=submit).take(rows)
    prepared = prepare_from(jobs, system, state.take(rows))
    _check(prepared, system)
    outcome = run(prepared, system)
    start[rows] = prepared.restore(outcome.start)
    partition[rows] = prepared.restore(outcome.partition)
    of = rows if prepared.rows is None else rows[prepared.rows]
    shares |= {int(of[job]): row for job, row in outcome.shares.items()}
    end = start + workload.effective_runtime
    if at is not None:
        at[rows] = prepared.restore(outcome.place)
    if node is not None:
        node[rows] = prepared.restore(outcome.node)
    if outcome.end is not None:
        end[rows] = prepared.restore(outcome.end)
    together = workload.after[(apart[workload.after] == apart[workload.after[:, :1]]).all(axis=1)]
    return Schedule(
        submit=ready_times(workload.submit, end, together),
        start=start,
        end=end,
        cores=workload.cores,
        partition=partition,
        shares=shares,
        partition_names=system.partition_names,
        place=at,
        interruptions=_of_rows(outcome.interruptions, of),
        demands=_demands(prepared, system, outcome, rows, len(workload)),
        node=node,
        nodes_at=_nodes_function(prepared, system, of),
    )


def as_at(workload: Workload, state: State) -> Workload:
    """Return the workload with dependencies that ended before a state moved into `submit` ("dependencies of jobs")."""
    after = workload.after
    if not after.size:
        return workload
    end = state.start + workload.effective_runtime
    after = after[state.start[after[:, 0]] >= state.begin]
    ended = (state.start < state.begin) & (end <= state.begin)
    met = ended[after[:, 1]]
    return replace(workload, submit=ready_times(workload.submit, end, after[met]), after=after[~met])


def _put(row: int, placed: dict[int, int], partition: NDArray[np.int32], shares: dict[int, Column], count: int) -> None:
    """Write the cores of a job on each of `count` partitions into `partition` or `shares`."""
    if len(placed) == 1:
        partition[row] = next(iter(placed))
        return
    partition[row] = SPANNING
    shares[row] = np.array([placed.get(p, 0) for p in range(count)], dtype=np.int64)


def run(prepared: Prepared, system: System) -> Outcome:
    """Simulate with the first of `DISCIPLINES` that applies; instants are those of the workload."""
    if not len(prepared.workload):
        return Outcome(np.empty(0, np.int64), np.empty(0, np.int32), {}, np.empty(0, np.int64))
    discipline = next(each for each in DISCIPLINES if each.applies(prepared, system))
    outcome = discipline.run(prepared, system)
    if outcome.end is None:
        return outcome._replace(start=outcome.start + prepared.base)
    stops = outcome.interruptions
    moved = stops._replace(begin=stops.begin + prepared.base, end=stops.end + prepared.base)
    start, end = outcome.start + prepared.base, outcome.end + prepared.base
    return outcome._replace(start=start, end=end, interruptions=moved)


def _check(prepared: Prepared, system: System) -> None:
    """Raise ValueError, before a kernel runs, if a job could never start."""
    if prepared.queues > len(system.queues):
        job = int(np.argmax(prepared.workload.queue))
        raise ValueError(f"{_named('queue', job, prepared)}, but the system has {len(system.queues)} queues")
    if system.mode == "multiqueue":
        refuse_needs(prepared.workload, "multiple-queue backfilling")
    count, widest, widest_of_users = prepared.per_queue
    if count.size and widest.max() > system.cores:
        job = int(np.argmax(prepared.workload.cores))
        raise ValueError(f"{_named('cores', job, prepared)} is wider than the machine of {system.cores} cores")
    for i, queue in enumerate(
        () if system.mode == "multiqueue" or system.exempts_from_queues else system.queues[: count.size]
    ):
        for name, limit, most in (
            ("max_run_cores", queue.max_run_cores, widest[i]),
            ("max_user_cores", queue.max_user_cores, widest_of_users[i]),
        ):
            if limit is not None and most > limit:
                w = prepared.workload
                concerned = (w.queue == i) & (w.cores > limit) & ((w.user >= 0) | (name == "max_run_cores"))
                job = int(np.argmax(concerned))
                raise ValueError(
                    f"{_named('cores', job, prepared)} is above queues[{i}].{name} = {limit}; the job could never start"
                )
    if len(prepared.workload) and system.mode != "multiqueue" and (system.throttles or system.exempts_from_queues):
        _check_throttles(prepared, system)
    types = prepared.placing(system) or prepared.node_types(system)
    if types is None:
        return
    never = np.flatnonzero(types.first[types.of] == types.first[types.of + 1])
    if never.size:
        row = int(never[0])
        raise ValueError(
            f"{_named('request', row, prepared)} has no place on the nodes of its queue; it could never start"
        )


def _check_throttles(prepared: Prepared, system: System) -> None:
    """Raise ValueError if throttles never let a job start."""
    w = prepared.workload
    layout = prepared.gates(system)
    gates = layout.counting(system)
    exempt = gates.exempt if gates.exempt.size else np.zeros_like(gates.rows)
    for limits, column, amount, bits in zip(layout.limits, gates.rows.T, gates.amounts.T, exempt.T, strict=True):
        if not limits:
            continue
        of = gates.each[column]
        for field, bit, used in (
            ("max_run_amount", EXEMPT_AMOUNT, amount),
            ("max_run_work", EXEMPT_WORK, amount * w.walltime),
        ):
            over = (column >= 0) & (used > of[field]) & (bits & bit == 0)
            if over.any():
                job = int(np.argmax(over))
                resource = limits["max_run_amount"].removeprefix(f"{RESOURCES}.")
                takes = "" if resource == "max_run_cores" else f" with {amount[job]} {resource}"
                raise ValueError(
                    f"{_named('cores', job, prepared)}{takes} for {w.walltime[job]} s is above {limits[field]} = "
                    f"{of[field][job]} of throttles; the job could never start"
                )


def _named(column: str, job: int, prepared: Prepared) -> str:
    """Return "column[row]: value" for a message, with the row in the workload as given."""
    row = job if prepared.rows is None else int(prepared.rows[job])
    return f"{column}[{row}]: {getattr(prepared.workload, column)[job]}"


class Outcome(NamedTuple):
    """The result of a discipline, for the jobs of `Prepared.workload`."""

    start: Column  # seconds from the first submit
    partition: NDArray[np.int32]
    shares: dict[int, Column]
    place: Column = np.empty(0, np.int64)  # as `Schedule.place` has it
    interruptions: Interruptions = NO_INTERRUPTIONS
    end: Column | None = None  # where jobs are preempted; else None: start plus run time
    node: Column = np.empty(0, np.int64)  # as `Schedule.node` has it
    demands: Demands | None = None  # where chunks are placed
    held: Mapping[int, dict[int, int]] = MappingProxyType({})  # cores on nodes of the jobs that run at `Prepared.until`


class Discipline(NamedTuple):
    """How some systems are simulated: `applies` tells which, `run` packs the arrays of a kernel and calls it."""

    name: str
    applies: Callable[[Prepared, System], bool]
    run: Callable[[Prepared, System], Outcome]


CONSTANT = ("fcfs", "sjf", "ljf")  #: orders in which no waiting job passes another, unless it starves


def _constant(system: System) -> str:
    """Return a constant order's name, else an empty text: one key for the thousands of formulas of a search."""
    return system.order if system.order in CONSTANT else ""


def _is_constant_order(prepared: Prepared, system: System) -> bool:
    """Whether each list has cores of its own, and a constant order without limits."""
    if prepared.begun is not None and not (system.mode == "shared" or prepared.begun.runs_at_home(prepared.workload)):
        return False
    if (
        system.node_types
        or system.order not in CONSTANT
        or system.pool_cores
        or system.has_limits
        or prepared.workload.has_needs
    ):
        return False
    if system.reservation_delay or system.reserves_nothing:
        return False
    if system.mode == "shared":
        return True
    widest = prepared.per_queue[1]
    return bool((widest <= np.array(system.partition_cores[: widest.size])).all())


def _run_constant_order(prepared: Prepared, system: System) -> Outcome:
    if system.mode == "shared":
        depth = prepared.depths["one list", system.order]
        if not depth.expected():
            start = _run_easy(prepared, slice(None), system.queues, system.cores, system)
            if not depth.found(deep=start.min() < 0):
                return _on_one_partition(start)
        return run_lines(prepared, system)
    queue = prepared.workload.queue
    start = np.empty(queue.size, dtype=np.int64)
    for q, its in enumerate(system.queues):
        members = np.flatnonzero(queue == q)
        if members.size:
            depth = prepared.depths["one list", system.order, q]
            if not depth.expected():
                start[members] = _run_easy(prepared, members, (its,), its.partition, system)
                if not depth.found(deep=start[members].min() < 0):
                    continue
            one_list = System(its.partition, (its,), order=system.order, backfill=system.backfill)
            own = _of_members(prepared, members, one_list)
            start[members] = run_lines(own, one_list).start + own.base - prepared.base
    return Outcome(start, queue.astype(np.int32), {})


def _of_members(prepared: Prepared, members: NDArray[np.intp], one_list: System) -> Prepared:
    """Return the members of one list as a prepared workload of one queue."""
    jobs = replace(prepared.workload.take(members), queue=np.zeros_like(members))
    if prepared.begun is None:
        return prepare(jobs)
    start = np.where(members < prepared.first, prepared.unstarted()[members] + prepared.base, UNSTARTED)
    return prepare_from(jobs, one_list, State(prepared.base + prepared.begin, start))


def _run_easy(
    prepared: Prepared, members: slice | NDArray[np.intp], queues: Sequence[Queue], cores: int, system: System
) -> Column:
    """Simulate the list of these members alone on so many cores; return starts, -1 where the loop gave up."""
    jobs, bits = prepared.jobs[members], prepared.bits
    queue = prepared.workload.queue if len(queues) > 1 else np.zeros(jobs.size, dtype=np.int64)
    start = prepared.unstarted()[members] if prepared.first else np.empty(jobs.size, dtype=np.int64)
    first = prepared.first if isinstance(members, slice) else int(np.searchsorted(members, prepared.first))
    ranks = rank(jobs, queue, queues, system.order, bits, prepared.begin)
    for times in (1, OF_BLOCKS):
        easy(jobs, first, prepared.begin, cores, system.backfill, bits, *ranks, *most_looks(times), start)
        if start.min(initial=0) >= 0 or has_few_lines(prepared.alike("queue")):
            break
    return start


def _is_time_dependent(prepared: Prepared, system: System) -> bool:
    """Whether one list goes by a formula and, if limits hold jobs, is visited to its end (rule "visit of a list")."""
    if prepared.workload.has_needs or system.calc_period:
        return False
    return _is_one_list(system) and is_formula(prepared, system)


def _is_one_list(system: System) -> bool:
    if system.reserves_nothing and system.stops_time:  # behind the end of a visit none is held (rule "eligible time")
        return False
    if system.throttles or system.exempts_from_queues or system.node_types:
        return False
    return system.mode == "shared" and (system.backfill or not system.has_limits)


def run_lines(prepared: Prepared, system: System) -> Outcome:
    """Simulate one list with an entry for each line of jobs alike: by a formula, or by any order where it is deep."""
    state = pack_one_list(prepared, system)
    time_dependent(state)
    check_started(prepared, state.start)
    return _on_one_partition(state.start)


def _run_multiqueue(prepared: Prepared, system: System) -> Outcome:
    clock = pack_clock(prepared, system.cores)
    multiqueue(clock, prepared.alike(), *pack_classes(prepared.workload, system))
    check_started(prepared, clock.start)
    return _on_one_partition(clock.start)


def _on_one_partition(start: Column) -> Outcome:
    return Outcome(start, np.zeros(start.size, dtype=np.int32), {})


NO_HEAD_JOBS = None, None  #: the arguments of `events` without head jobs of queues, of cores or of whole nodes


def _reserves_for_queues(prepared: Prepared, system: System) -> bool:
    """Whether each queue has a head job, or a list several; not if jobs are reserved over partitions ("home list")."""
    planned = system.reserves_for_queues or system.reserves_for_many
    if not planned or system.mode == "shared":
        return planned
    widest = prepared.per_queue[1]
    return bool((widest <= np.maximum(system.partition_cores[: widest.size], system.pool_cores)).all())


def _run_queue_head_jobs(prepared: Prepared, system: System) -> Outcome:
    def run(*, gives_up: bool = False, lines: bool = system.places_chunks) -> Simulation:
        state = pack(prepared, system, beside="head jobs", gives_up=gives_up, lines=lines)
        events(state, None, *pack_head_jobs(prepared, system, state))
        return state

    plain = not system.node_types and system.reservation_depth is not None  # lines of jobs alike are as good
    depth = prepared.depths["head jobs", system.mode, _constant(system)]
    return _outcome(prepared, system, _or_by_lines(depth, run) if plain else run())


def _or_by_lines(depth: Depth, run: Callable[..., Simulation]) -> Simulation:
    """Run the loop over every waiting job or, where the queue is deep, over the first of each line of jobs alike."""
    if not depth.expected():
        state = run(gives_up=True)
        if not depth.found(deep=state.progress["looks"] < 0):
            return state
    return run(lines=True)


def _run_top_job(prepared: Prepared, system: System) -> Outcome:
    plans = []

    def run(**of_lists: bool) -> Simulation:
        state = pack(prepared, system, beside="top jobs", **of_lists)
        plans.append(pack_plans(prepared, system))
        events(state, plans[-1], *NO_HEAD_JOBS)
        return state

    plain = (
        system.mode == "shared" and not prepared.has_windows
    )  # no plan is withdrawn: lines of jobs alike are as good
    state = _or_by_lines(prepared.depths["top jobs", _constant(system)], run) if plain else run()
    return _outcome(prepared, system, state, plans[-1])


def _run_with_tiers(prepared: Prepared, system: System) -> Outcome:
    """Simulate queues of different tiers; repeat with more room for interruptions if there are too many."""
    room = max(1024, len(prepared.workload))
    while True:
        state = pack(prepared, system, interruptions=room)
        events(state, None, *NO_HEAD_JOBS)
        found = int(state.preempting.progress["interruptions"])
        if found <= room:
            break
        room *= 4
    outcome = _outcome(prepared, system, state)
    table = state.preempting.interruptions[:found]
    job = table["job"]
    loses = np.array([queue.preempted == "requeue" for queue in system.queues])[prepared.workload.queue[job]]
    return outcome._replace(
        start=state.preempting.first,
        end=outcome.start + state.jobs["runtime"],
        interruptions=Interruptions(
            job.copy(),
            table["begin"].copy(),
            table["end"].copy(),
            loses,
            table["place"][: found if system.node_types else 0].copy(),
        ),
    )


def _run_general(prepared: Prepared, system: System) -> Outcome:
    depth = prepared.depths["general", system.mode, _constant(system)]
    deep = not prepared.has_windows and depth.expected()
    one_list = _is_one_list(system) and system.order in CONSTANT and not prepared.workload.has_needs
    if not deep:
        state = pack(prepared, system, gives_up=not prepared.has_windows, one_list=one_list)
        events(state, None, *NO_HEAD_JOBS)
        deep = depth.found(deep=state.progress["looks"] < 0)
    if deep:
        if one_list:
            return run_lines(prepared, system)
        state = pack(prepared, system, lines=True)
        events(state, None, *NO_HEAD_JOBS)
    return _outcome(prepared, system, state)


def _outcome(prepared: Prepared, system: System, state: Simulation, plans: Plans | None = None) -> Outcome:
    start, placement = state.start, state.placement
    if prepared.until < NEVER:
        return Outcome(start, placement, {}, held=held_on_nodes(state.placing, plans))
    if start.min() < 0:
        if state.progress["running"]:
            check_started(prepared, start)
        never = np.flatnonzero(start < 0)
        raise RuntimeError(f"{never.size} jobs never started, the first is job {never[0]}: a defect of the simulator")
    if state.node_types is not None:
        types = state.node_types
        return Outcome(start, placement, {}, types.taken - types.first[types.of])
    if state.placing is not None:
        took = placed_demands(system, state.placing, placement)
        return Outcome(start, placement, {}, node=state.placing.node, demands=took)
    if not state.progress["spanning"]:
        return Outcome(start, placement, {})
    spanning = np.flatnonzero(placement < 0)
    shares = dict(zip(spanning.tolist(), state.shares[-1 - placement[spanning]], strict=True))
    return Outcome(start, np.maximum(placement, SPANNING), shares)


#: The first that applies simulates a system; the general event loop takes every one but ``multiqueue``.
DISCIPLINES = (
    Discipline("multiple queues", lambda _, system: system.mode == "multiqueue", _run_multiqueue),
    Discipline("head jobs of queues", _reserves_for_queues, _run_queue_head_jobs),
    Discipline("windows", lambda prepared, system: prepared.has_windows and not system.node_types, _run_top_job),
    Discipline(
        "top jobs",
        lambda prepared, system: system.plans_top_job or plans_limits(prepared, system),
        _run_top_job,
    ),
    Discipline("tiers", lambda _, system: system.has_tiers, _run_with_tiers),
    Discipline("constant order", _is_constant_order, _run_constant_order),
    Discipline("time-dependent priority", _is_time_dependent, run_lines),
    Discipline("general", lambda *_: True, _run_general),
)
