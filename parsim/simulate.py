"""The public simulator: checks, packs, calls a kernel, unpacks."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from parsim.kernels import machine
from parsim.kernels import order as orders
from parsim.kernels.easy import easy
from parsim.schedule import SPREAD, Schedule
from parsim.system import ORDERS, UNLIMITED, System
from parsim.workload import MAX_DURATION, Workload

NEVER = int(machine.NEVER)


def simulate(workload: Workload, system: System) -> Schedule:
    """Decide when and where each job would have started.

    Parameters
    ----------
    workload : Workload
        In any order; ties of submit go by position.
    system : System

    Returns
    -------
    Schedule
        Columns aligned with the workload.

    Raises
    ------
    ValueError
        A job that no place of the system can ever hold, or whose queue it lacks.

    References
    ----------
    Mu'alem and Feitelson, IEEE TPDS 12(6), 2001; Kondameedi and Vadhiyar, CCGrid 2017, section III.
    """
    _check(workload, system)
    n = len(workload)
    submit = workload.submit
    rows = None
    if n > 1 and (submit[1:] < submit[:-1]).any():
        rows = np.argsort(submit, kind="stable")
        workload = workload.take(rows)
    if n == 0:
        start, part, shares = np.empty(0, np.int64), np.empty(0, np.int32), {}
    elif _plain(workload, system):
        start, part, shares = _simulate_plain(workload, system)
    else:
        start, part, shares = _simulate_machine(workload, system)
    if rows is not None:
        start, part = _scatter(start, rows), _scatter(part, rows)
        shares = {int(rows[job]): row for job, row in shares.items()}
        workload = workload.take(_inverse(rows))
    return Schedule(
        submit=workload.submit,
        start=start,
        end=start + workload.effective_runtime,
        cores=workload.cores,
        part=part,
        shares=shares,
        part_names=system.part_names,
    )


def _inverse(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    return _scatter(np.arange(rows.size), rows)


def _scatter(values: NDArray[np.generic], rows: NDArray[np.int64]) -> NDArray:  # type: ignore[type-arg]
    out = np.empty_like(values)
    out[rows] = values
    return out


def _check(workload: Workload, system: System) -> None:
    """Refuse, before a kernel runs, every job that could never start."""
    if len(workload) == 0:
        return
    if int(workload.queue.max()) >= len(system.queues):
        job = int(np.argmax(workload.queue))
        raise ValueError(f"queue[{job}]: {workload.queue[job]}, but the system has {len(system.queues)} queues")
    if int(workload.cores.max()) > system.cores:
        job = int(np.argmax(workload.cores))
        raise ValueError(f"cores[{job}]: {workload.cores[job]} is wider than the machine of {system.cores} cores")
    for i, queue in enumerate(system.queues):
        for name, limit, concerned in (
            ("max_run_cores", queue.max_run_cores, workload.queue == i),
            ("max_user_cores", queue.max_user_cores, (workload.queue == i) & (workload.user >= 0)),
        ):
            if limit is not None:
                never = np.flatnonzero(concerned & (workload.cores > limit))
                if never.size:
                    raise ValueError(
                        f"cores[{never[0]}]: {workload.cores[never[0]]} is above queues[{i}].{name} = {limit}; "
                        "the job could never start"
                    )


def _bits(workload: Workload) -> int:
    """Low bits of a key that hold a job; the high ones must hold every instant that can occur."""
    bits = max(1, (len(workload) - 1).bit_length())
    latest = int(workload.submit[-1] - workload.submit[0]) + int(workload.effective_runtime.sum()) + MAX_DURATION
    if latest >= 1 << (62 - bits):
        raise ValueError(f"{len(workload)} jobs of {latest} seconds in all: too long for one simulation")
    return bits


def _homes(workload: Workload, system: System) -> NDArray[np.int64]:
    """Part that each job calls home; ``len(parts)`` is the reserved list."""
    parts = np.asarray(system.part_cores)
    if system.mode == "shared":
        return np.zeros(len(workload), dtype=np.int64)
    pool = len(parts) - 1
    elsewhere = np.where(workload.cores <= parts[pool], pool, pool + 1)
    return np.where(workload.cores <= parts[workload.queue], workload.queue, elsewhere)


def _plain(workload: Workload, system: System) -> bool:
    """Whether every list is alone on its cores and keeps the order of submission: the fast kernel's case.

    Starvation changes nothing then: the starving are those submitted first.
    """
    if system.order != "fcfs" or system.pool_cores or system.has_limits:
        return False
    if system.mode == "shared":
        return len({queue.priority for queue in system.queues}) == 1 and (
            len({queue.starvation for queue in system.queues}) == 1
        )
    return bool((workload.cores <= np.asarray(system.part_cores)[workload.queue]).all())


def plain_jobs(workload: Workload) -> NDArray[np.int32]:
    """Pack submit (from 0), cores, runtime and walltime for `parsim.kernels.easy`, shape (n, 4)."""
    jobs = np.empty((len(workload), 4), dtype=np.int32)
    jobs[:, 0] = workload.submit - workload.submit[0] if len(workload) else 0
    jobs[:, 1] = workload.cores
    jobs[:, 2] = workload.effective_runtime
    jobs[:, 3] = workload.walltime
    return jobs


Outcome = tuple[NDArray[np.int64], NDArray[np.int32], dict[int, NDArray[np.int64]]]


def _simulate_plain(workload: Workload, system: System) -> Outcome:
    bits = _bits(workload)
    start = np.empty(len(workload), dtype=np.int64)
    jobs = plain_jobs(workload)
    if system.mode == "shared":
        easy(jobs, system.cores, system.backfill, bits, start)
        part = np.zeros(len(workload), dtype=np.int32)
    else:
        part = workload.queue.astype(np.int32)
        for q, queue in enumerate(system.queues):
            members = np.flatnonzero(workload.queue == q)
            if members.size:
                own = np.empty(members.size, dtype=np.int64)
                easy(jobs[members], queue.partition, system.backfill, bits, own)
                start[members] = own
    start += workload.submit[0]
    return start, part, {}


def _simulate_machine(workload: Workload, system: System) -> Outcome:
    n = len(workload)
    state = _pack(workload, system)
    ranking = _pack_ranking(workload, system)
    starves = bool(state.settings[machine.STARVES])
    by_queue = np.argsort(workload.queue, kind="stable").astype(np.int32) if starves else np.empty(0, np.int32)
    cursors = np.zeros((len(system.queues), 2), dtype=np.int64)
    if starves:
        ends = np.cumsum(np.bincount(workload.queue, minlength=len(system.queues)))
        cursors[1:, 0], cursors[:, 1] = ends[:-1], ends
    machine.run(state, ranking, by_queue, cursors)
    if (state.start < 0).any():
        stuck = np.flatnonzero(state.start < 0)
        raise RuntimeError(f"{stuck.size} jobs never started, the first is job {stuck[0]}: a defect of the simulator")
    spread = np.flatnonzero(state.place < 0)
    shares = {int(job): state.shares[-1 - state.place[job]].copy() for job in spread}
    part = np.where(state.place < 0, SPREAD, state.place).astype(np.int32)
    if n:
        state.start[:] += workload.submit[0]
    return state.start, part, shares


def _eligible(workload: Workload, system: System, homes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Instant from which each job may enter the pool, from the first submit on; exact, rule 15."""
    eligible = np.full(len(workload), NEVER, dtype=np.int64)
    pool = system.pool
    if pool is None or not system.pool_cores:
        return eligible
    may = homes < len(system.queues)
    if pool.placement == "pool":
        may &= workload.cores <= pool.cores
    for q, queue in enumerate(system.queues):
        members = np.flatnonzero(may & (workload.queue == q))
        if not members.size:
            continue
        ratio = Fraction(repr(float(pool.threshold))) / Fraction(repr(float(queue.priority)))
        bound = np.minimum(workload.walltime[members], queue.walltime[1])
        distinct, inverse = np.unique(bound, return_inverse=True)
        delay = [min(-((-ratio.numerator * int(w)) // ratio.denominator), MAX_DURATION * 2) for w in distinct]
        eligible[members] = workload.submit[members] - workload.submit[0] + np.array(delay, dtype=np.int64)[inverse]
    return eligible


def _pack(workload: Workload, system: System) -> machine.State:
    """Lay out everything that the kernel reads and writes."""
    n = len(workload)
    part_cores = system.part_cores
    parts, queues = len(part_cores), len(system.queues)
    homes = _homes(workload, system)
    eligible = _eligible(workload, system, homes)

    jobs = np.empty((n, 8), dtype=np.int64)
    jobs[:, machine.SUBMIT] = workload.submit - workload.submit[0]
    jobs[:, machine.CORES] = workload.cores
    jobs[:, machine.RUNTIME] = workload.effective_runtime
    jobs[:, machine.WALLTIME] = workload.walltime
    jobs[:, machine.QUEUE] = workload.queue
    jobs[:, machine.USER] = workload.user
    jobs[:, machine.HOME] = homes
    jobs[:, machine.ELIGIBLE] = eligible

    formula = system.formula
    order = orders.FORMULA if formula is not None else ORDERS.index(system.order)
    pool = system.pool if system.mode == "hybrid" else None
    settings = np.zeros(10, dtype=np.int64)
    settings[machine.BACKFILL] = system.backfill
    settings[machine.ORDER] = order
    settings[machine.COMBINED] = pool is not None and pool.placement == "combined"
    settings[machine.STARVING_FIRST] = pool is not None and pool.starving_first
    settings[machine.MOVE] = pool is not None and pool.entry == "move"
    settings[machine.LIMITS] = system.has_limits
    settings[machine.TRACK_HELD] = system.has_limits and formula is not None and formula.uses_eligible_time
    settings[machine.STARVES] = any(queue.starvation is not None for queue in system.queues)
    settings[machine.BITS] = _bits(workload)
    settings[machine.LONE] = system.mode == "shared"

    users = int(workload.user.max()) + 1 if system.has_limits else 0
    if users > n:  # any numbers will do for users: count them from 0
        present, jobs[:, machine.USER] = np.unique(workload.user, return_inverse=True)
        jobs[:, machine.USER] -= int(present[0] < 0)
        users = present.size

    entries = np.bincount(homes, minlength=parts + 1)
    entries[parts - 1] += int((eligible < NEVER).sum())  # these may stand in the pool's list as well
    lists = np.zeros((parts + 1, 3), dtype=np.int64)
    lists[1:, machine.OFFSET] = np.cumsum(entries)[:-1]
    room = int(entries.sum())

    state_parts = np.zeros((parts, 13), dtype=np.int64)
    state_parts[:, machine.CAPACITY] = state_parts[:, machine.FREE] = part_cores
    most = np.minimum(np.asarray(part_cores), n) + 1
    state_parts[1:, machine.FIRST_RUNNING] = np.cumsum(most)[:-1]

    spread = int((homes == parts).sum()) + (int((eligible < NEVER).sum()) if settings[machine.COMBINED] else 0)
    if settings[machine.COMBINED]:
        spread += int((homes == parts - 1).sum())
    tracked = n if settings[machine.TRACK_HELD] or order == orders.FORMULA else 0
    held = np.zeros((2, tracked), dtype=np.int64)
    held[0] = -1
    return machine.State(
        jobs=jobs,
        queues=_pack_queues(system),
        settings=settings,
        lists=lists,
        waiting=np.empty((3, room), dtype=np.int32),
        value=np.empty(room, dtype=np.float64),
        parts=state_parts,
        expected=np.empty(int(most.sum()), dtype=np.int64),
        held_cores=np.empty(int(most.sum()), dtype=np.int64),
        ends=np.empty(min(n, system.cores) + 1, dtype=np.int64),
        wakes=np.empty(int((eligible < NEVER).sum()) + 1, dtype=np.int64),
        counts=np.zeros(4, dtype=np.int64),
        used=np.zeros((queues, 2), dtype=np.int64),
        used_by=np.zeros((max(1, users * queues), 2), dtype=np.int64),
        is_head=np.zeros(n, dtype=np.bool_),
        heads=np.full(parts + 1, -1, dtype=np.int64),
        held=held,
        start=np.full(n, -1, dtype=np.int64),
        place=np.zeros(n, dtype=np.int32),
        shares=np.empty((spread + 1, parts), dtype=np.int64),
        how=np.zeros(n, dtype=np.int8),
        cause=np.full(n, -1, dtype=np.int32),
    )


def _pack_queues(system: System) -> NDArray[np.int64]:
    ranks = sorted({queue.priority for queue in system.queues})
    table = np.empty((len(system.queues), 7), dtype=np.int64)
    for row, queue in zip(table, system.queues, strict=True):
        row[machine.STARVATION] = NEVER if queue.starvation is None else queue.starvation
        row[machine.RANK] = ranks.index(queue.priority)
        row[machine.MAX_WALLTIME] = queue.walltime[1]
        for column, limit in (
            (machine.MAX_RUN, queue.max_run),
            (machine.MAX_RUN_CORES, queue.max_run_cores),
            (machine.MAX_USER_RUN, queue.max_user_run),
            (machine.MAX_USER_CORES, queue.max_user_cores),
        ):
            row[column] = UNLIMITED * 2 if limit is None else limit
    return table


_NOTHING = np.empty((0, 2), dtype=np.int64)


def _pack_ranking(workload: Workload, system: System) -> machine.Ranking:
    priority = np.array([queue.priority for queue in system.queues], dtype=np.float64)
    formula = system.formula
    if formula is None:
        code, constants, columns, depth = _NOTHING, np.empty(0), np.empty((0, 0)), 1
    else:
        base = np.zeros((4, len(workload)))
        base[0], base[1], base[2] = priority[workload.queue], workload.walltime, workload.cores
        code, constants, columns, depth = formula.code, formula.constants, formula.columns(base), formula.depth
    return machine.Ranking(
        priority=priority,
        code=code,
        constants=constants,
        columns=columns,
        stack=np.empty((depth, orders.CHUNK)),
        eligible=np.empty(orders.CHUNK),
    )
