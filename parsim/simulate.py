"""The public simulator: checks, packs, calls a kernel, unpacks."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from parsim.kernels import layout as at
from parsim.kernels import order as orders
from parsim.kernels.easy import easy
from parsim.kernels.machine import run
from parsim.schedule import SPREAD, Schedule
from parsim.system import ORDERS, System
from parsim.workload import MAX_DURATION, Workload

NEVER = int(at.NEVER)


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
        start, part = np.empty(0, np.int64), np.empty(0, np.int32)
        shares: dict[int, NDArray[np.int64]] = {}
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
    state = _pack(workload, system)
    run(*state)
    start, place = state.start, state.fate[:, at.PLACE]
    if start.min() < 0:
        stuck = np.flatnonzero(start < 0)
        raise RuntimeError(f"{stuck.size} jobs never started, the first is job {stuck[0]}: a defect of the simulator")
    start += workload.submit[0]
    if not state.settings[at.SPREAD]:
        return start, place.copy(), {}
    shares = {int(job): state.shares[-1 - place[job]].copy() for job in np.flatnonzero(place < 0)}
    return start, np.maximum(place, SPREAD), shares


def _eligible(workload: Workload, system: System, homes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Instant from which each job may enter the pool, from the first submit on; exact, rule 15."""
    pool = system.pool
    if pool is None or not system.pool_cores:
        return np.empty(0, dtype=np.int64)
    eligible = np.full(len(workload), NEVER, dtype=np.int64)
    may = homes < len(system.queues)
    if pool.placement == "pool":
        may &= workload.cores <= pool.cores
    for q, queue in enumerate(system.queues):
        members = np.flatnonzero(may & (workload.queue == q))
        if not members.size:
            continue
        ratio = Fraction(repr(float(pool.threshold))) / Fraction(repr(float(queue.priority)))
        bound = np.minimum(workload.walltime[members], queue.walltime[1])
        eligible[members] = workload.submit[members] - workload.submit[0] + _ceil_times(ratio, bound)
    return eligible


def _ceil_times(ratio: Fraction, seconds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Round ``ratio * seconds`` up, exactly; beyond any instant that can occur it is cut off."""
    if ratio.numerator <= 2**31 and ratio.denominator <= 2**62:
        return np.minimum(-(-(seconds * ratio.numerator) // ratio.denominator), 2 * MAX_DURATION)
    distinct, inverse = np.unique(seconds, return_inverse=True)
    products = [-(-(ratio.numerator * int(second)) // ratio.denominator) for second in distinct]
    return np.array([min(product, 2 * MAX_DURATION) for product in products], dtype=np.int64)[inverse]


def _pack(workload: Workload, system: System) -> at.State:
    """Lay out everything that the event loop reads and writes."""
    n = len(workload)
    part_cores = np.asarray(system.part_cores)
    homes = _homes(workload, system)
    eligible = _eligible(workload, system, homes)
    settings = _pack_settings(workload, system)
    users, user = _number_users(workload, system)

    jobs = np.empty((n, 8), dtype=np.int32)
    at.fill_jobs(
        jobs,
        workload.submit,
        workload.cores,
        workload.effective_runtime,
        workload.walltime,
        workload.queue,
        user,
        homes,
    )
    may_enter = int((eligible < NEVER).sum())
    entries = np.bincount(homes, minlength=part_cores.size + 1)
    entries[-2] += may_enter  # these may stand in the pool's list as well
    total = int(entries.sum()) + at.BLOCK
    most = np.minimum(part_cores, n) + 1
    parts = np.zeros((part_cores.size + 1, 20), dtype=np.int64)
    parts[:-1, at.CAPACITY] = parts[:-1, at.FREE] = part_cores
    parts[1:, at.OFFSET] = np.cumsum(entries)[:-1]
    parts[1:, at.FIRST_RUNNING] = np.cumsum(most)
    parts[:, at.HEAD] = -1
    parts[:, at.FIRST_STARVING] = NEVER

    spread = 1 + int(entries[-1]) + (may_enter + int(entries[-2]) if settings[at.COMBINED] else 0)
    starves = bool(settings[at.STARVES])
    ends = np.cumsum(np.bincount(workload.queue, minlength=len(system.queues)))
    code, constants, columns, depth = _pack_formula(workload, system)
    held = np.zeros((n if settings[at.TRACK_HELD] else 0, 2), dtype=np.int64)
    held[:, at.HELD_SINCE] = -1
    return at.State(
        jobs=jobs,
        start=np.full(n, -1, dtype=np.int64),
        fate=np.empty((n, 3), dtype=np.int32),
        eligible=eligible,
        held=held,
        queues=_pack_queues(system),
        parts=parts,
        settings=settings,
        w_job=np.zeros(total, dtype=np.int32),
        w_cores=np.zeros(total, dtype=np.int32),
        w_time=np.zeros(total, dtype=np.int32),
        w_group=np.zeros(total, dtype=np.int32),
        value=np.empty(total, dtype=np.float64),
        origin=np.empty(total, dtype=np.float64),
        slope=np.empty(total, dtype=np.float64),
        pick=np.empty(int(entries.max()), dtype=np.int32),
        expected=np.empty(int(most.sum()), dtype=np.int64),
        held_cores=np.empty(int(most.sum()), dtype=np.int64),
        ends=np.empty(min(n, system.cores) + 1, dtype=np.int64),
        wakes=np.empty(may_enter + 1, dtype=np.int64),
        used_by=np.zeros((max(1, users * len(system.queues)), 2), dtype=np.int64),
        shares=np.empty((spread, part_cores.size), dtype=np.int64),
        code=code,
        constants=constants,
        columns=columns,
        scratch=np.empty((1 + depth, orders.CHUNK)),
        by_queue=np.argsort(workload.queue, kind="stable").astype(np.int32) if starves else np.empty(0, np.int32),
        cursors=np.stack([np.concatenate([[0], ends[:-1]]), ends], axis=1),
        usable=np.zeros(part_cores.size, dtype=np.bool_),
        idle=np.zeros(part_cores.size, dtype=np.int64),
    )


def _pack_settings(workload: Workload, system: System) -> NDArray[np.int64]:
    pool = system.pool if system.mode == "hybrid" else None
    formula = system.formula
    settings = np.zeros(17, dtype=np.int64)
    settings[at.BACKFILL] = system.backfill
    settings[at.ORDER] = orders.FORMULA if formula is not None else ORDERS.index(system.order)
    settings[at.COMBINED] = pool is not None and pool.placement == "combined"
    settings[at.STARVING_FIRST] = pool is not None and pool.starving_first
    settings[at.MOVE] = pool is not None and pool.entry == "move"
    settings[at.LIMITS] = system.has_limits
    settings[at.USER_LIMITS] = any(queue.max_user_run or queue.max_user_cores for queue in system.queues)
    settings[at.TRACK_HELD] = system.has_limits and formula is not None and formula.uses_eligible_time
    settings[at.STARVES] = any(queue.starvation is not None for queue in system.queues)
    settings[at.BITS] = _bits(workload)
    settings[at.LONE] = system.mode == "shared"
    return settings


def _number_users(workload: Workload, system: System) -> tuple[int, NDArray[np.int64]]:
    """How many users to keep account of, and their numbers: as given, unless these leave large gaps."""
    users = int(workload.user.max()) + 1 if system.has_limits else 0
    if users <= len(workload):
        return users, workload.user
    present, user = np.unique(workload.user, return_inverse=True)
    return present.size, user - int(present[0] < 0)


def _pack_queues(system: System) -> NDArray[np.int64]:
    ranks = sorted({queue.priority for queue in system.queues})
    table = np.zeros((len(system.queues), 10), dtype=np.int64)
    for row, queue, weight in zip(table, system.queues, _whole_priorities(system), strict=True):
        row[at.STARVATION] = NEVER if queue.starvation is None else queue.starvation
        row[at.RANK] = ranks.index(queue.priority)
        row[at.MAX_WALLTIME] = queue.walltime[1]
        row[at.WEIGHT] = weight
        for column, limit in (
            (at.MAX_RUN, queue.max_run),
            (at.MAX_RUN_CORES, queue.max_run_cores),
            (at.MAX_USER_RUN, queue.max_user_run),
            (at.MAX_USER_CORES, queue.max_user_cores),
        ):
            row[column] = NEVER if limit is None else limit
    return table


def _pack_formula(
    workload: Workload, system: System
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], int]:
    """Program, constants, columns and depth of the stack."""
    formula = system.formula
    if formula is None:
        return np.empty((0, 2), np.int64), np.empty(0), np.empty((0, 0)), 0
    priority = np.array([queue.priority for queue in system.queues], dtype=np.float64)[workload.queue]
    base = np.stack([priority, workload.walltime, workload.cores, np.zeros(len(workload))])
    return formula.code, formula.constants, formula.columns(base), formula.depth


def _whole_priorities(system: System) -> list[int]:
    """Priorities as whole numbers in proportion; rounded where the exact ones would leave 62 bits."""
    exact = [Fraction(repr(float(queue.priority))) for queue in system.queues]
    scale = math.lcm(*(value.denominator for value in exact))
    whole = [int(value * scale) for value in exact]
    common = math.gcd(*whole)
    whole = [value // common for value in whole]
    if max(whole) >= 2**62:
        whole = [max(1, int(value * 2**61 / max(exact))) for value in exact]
    return whole
