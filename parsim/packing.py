"""From the columns of a workload and the fields of a system to the arrays of the kernels.

What depends on the workload alone is computed once and kept as long as the workload lives: a search simulates
the same jobs on thousands of systems.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from parsim.kernels import layout as at
from parsim.kernels import order as orders
from parsim.system import ORDERS, Queue, System
from parsim.workload import MAX_DURATION, Workload

NEVER = int(at.NEVER)
MOST = 2**31 - 1
LATEST = 2 * MAX_DURATION  #: 136 years after its submit; a job that is eligible later is taken to be so then


@dataclass(frozen=True, eq=False)
class Prepared:
    """What the kernels need of a workload, whatever the system.

    Attributes
    ----------
    workload : Workload
        Ascending by submit.
    rows : ndarray(int64), shape (n,), or None
        Where each job stood before, None if in the same place.
    """

    workload: Workload
    rows: NDArray[np.int64] | None

    @cached_property
    def runtime(self) -> NDArray[np.int64]:
        """Seconds that each job occupies its cores."""
        return self.workload.effective_runtime

    @cached_property
    def bits(self) -> int:
        """Low bits of a key that hold a job; the high ones must hold every instant that can occur."""
        n, submit = len(self.workload), self.workload.submit
        bits = max(1, (n - 1).bit_length())
        latest = int(submit[-1] - submit[0]) + int(self.runtime.sum()) + MAX_DURATION if n else 0
        if latest >= 1 << (62 - bits):
            raise ValueError(f"{n} jobs of {latest} seconds in all: too long for one simulation")
        return bits

    @cached_property
    def plain(self) -> NDArray[np.int32]:
        """Submit (from 0), cores, runtime and walltime for the kernels of one list, shape (n, 4)."""
        w = self.workload
        jobs = np.empty((len(w), 4), dtype=np.int32)
        jobs[:, at.SUBMIT] = w.submit - w.submit[:1]
        jobs[:, at.CORES] = w.cores
        jobs[:, at.RUNTIME] = self.runtime
        jobs[:, at.WALLTIME] = w.walltime
        return jobs

    @cached_property
    def jobs(self) -> NDArray[np.int32]:
        """`State.jobs` without the homes."""
        jobs = np.zeros((len(self.workload), at.JOB_COLUMNS), dtype=np.int32)
        jobs[:, :4] = self.plain
        jobs[:, at.QUEUE] = self.workload.queue
        jobs[:, at.USER] = self.users[1]
        return jobs

    @cached_property
    def users(self) -> tuple[int, NDArray[np.int64]]:
        """How many users to keep account of, and their numbers: as given, unless these leave large gaps."""
        user = self.workload.user
        users = int(user.max(initial=-1)) + 1
        if users <= len(user):
            return users, user
        present, number = np.unique(user, return_inverse=True)
        return present.size, number - int(present[0] < 0)

    @cached_property
    def queues(self) -> int:
        """How many queues a system must have at least."""
        return int(self.workload.queue.max(initial=-1)) + 1

    @cached_property
    def per_queue(self) -> NDArray[np.int64]:
        """Number of jobs, most cores of a job, most cores of a job that has a user; shape (3, `queues`)."""
        w = self.workload
        table = np.zeros((3, self.queues), dtype=np.int64)
        table[0] = np.bincount(w.queue, minlength=self.queues)
        np.maximum.at(table[1], w.queue, w.cores)
        np.maximum.at(table[2], w.queue, np.where(w.user >= 0, w.cores, 0))
        return table

    @cached_property
    def by_queue(self) -> NDArray[np.int32]:
        """Jobs grouped by queue, in order within it."""
        return np.argsort(self.workload.queue, kind="stable").astype(np.int32)


_prepared: WeakKeyDictionary[Workload, Prepared] = WeakKeyDictionary()


def prepare(workload: Workload) -> Prepared:
    """Return what the kernels need of `workload`, computed at its first simulation."""
    found = _prepared.get(workload)
    if found is None:
        rows = None
        ordered = copy(workload)  # shares the columns; the key itself must be able to die
        if len(workload) > 1 and (workload.submit[1:] < workload.submit[:-1]).any():
            rows = np.argsort(workload.submit, kind="stable")
            ordered = workload.take(rows)
        found = _prepared[workload] = Prepared(ordered, rows)
    return found


Ranks = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]


def rank(jobs: NDArray[np.int32], queue: NDArray[np.int64], queues: Sequence[Queue], order: str, bits: int) -> Ranks:
    """Rank the jobs of one list by the priority of their queues, a constant order and their submission (rule 6).

    Returns the `rank`, `ranked` and `wakes` of `parsim.kernels.easy`.
    """
    n = len(jobs)
    numbers = np.arange(n, dtype=np.int32)
    ranked = numbers
    if order != "fcfs":
        walltime = jobs[:, at.WALLTIME]
        ranked = np.argsort(walltime if order == "sjf" else -walltime, kind="stable").astype(np.int32)
    greatest = sorted({queue.priority for queue in queues}, reverse=True)
    if len(greatest) > 1:
        group = np.array([greatest.index(queue.priority) for queue in queues], dtype=np.int16)
        ranked = ranked[np.argsort(group[queue[ranked]], kind="stable")]
    places = numbers
    if ranked is not numbers:
        places = np.empty_like(ranked)
        places[ranked] = numbers
    periods = [NEVER if queue.starvation is None else queue.starvation for queue in queues]
    if min(periods) == NEVER or (ranked is numbers and len(set(periods)) == 1):  # the starving go first already
        return places, ranked, np.empty(0, dtype=np.int64)
    latest = 1 << (62 - bits)  # so long no job waits
    period = np.minimum(np.array(periods, dtype=np.int64), latest)[queue]
    instant = jobs[:, at.SUBMIT] + period
    wakes = ((instant << bits) | numbers)[(period > 0) & (instant < latest)]
    wakes.sort()
    return np.where(period == 0, numbers - np.int32(n), places), ranked, wakes


def pack(prepared: Prepared, system: System) -> at.State:
    """Lay out everything that the event loop reads and writes."""
    workload = prepared.workload
    n = len(workload)
    part_cores = np.array(system.partition_cores, dtype=np.int64)
    settings = _pack_settings(prepared, system)
    users = prepared.users[0] if settings[at.LIMITS] else 0
    jobs = prepared.jobs.copy()
    entries = np.zeros(part_cores.size + 1, dtype=np.int64)
    at.find_homes(jobs, part_cores, system.mode == "shared", entries)
    eligible, may_enter = _eligible(jobs, system)
    entries[-2] += may_enter  # these may stand in the pool's list as well
    total = int(entries.sum()) + at.BLOCK
    most = np.minimum(part_cores, n) + 1
    parts = np.zeros((part_cores.size + 1, at.PART_COLUMNS), dtype=np.int64)
    parts[:-1, at.CAPACITY] = parts[:-1, at.FREE] = part_cores
    parts[1:, at.OFFSET] = np.cumsum(entries)[:-1]
    parts[1:, at.FIRST_RUNNING] = np.cumsum(most)
    parts[:, at.HEAD] = -1
    parts[:, at.FIRST_STARVING] = NEVER

    spread = 1 + int(entries[-1]) + (may_enter + int(entries[-2]) if settings[at.COMBINED] else 0)
    starves = bool(settings[at.STARVES])
    ends = np.zeros(len(system.queues) + 1, dtype=np.int64)
    count = prepared.per_queue[0]
    ends[1 : count.size + 1] = count
    ends = ends.cumsum()
    code, constants, columns, depth = pack_formula(workload, system)
    held = np.zeros((n if settings[at.TRACK_HELD] else 0, at.HELD_COLUMNS), dtype=np.int64)
    held[:, at.HELD_SINCE] = -1
    return at.State(
        jobs=jobs,
        start=np.full(n, -1, dtype=np.int64),
        place=np.empty(n, dtype=np.int32),
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
        by_queue=prepared.by_queue if starves else np.empty(0, np.int32),
        cursors=np.stack([ends[:-1], ends[1:]], axis=1),
        usable=np.zeros(part_cores.size, dtype=np.bool_),
        idle=np.zeros(part_cores.size, dtype=np.int64),
    )


def _eligible(jobs: NDArray[np.int32], system: System) -> tuple[NDArray[np.int64], int]:
    """Instant from which each job may enter the pool, counted from the first submit; how many ever may (rule 15)."""
    pool = system.pool
    if pool is None or not system.pool_cores:
        return np.empty(0, dtype=np.int64), 0
    eligible = np.full(len(jobs), NEVER, dtype=np.int64)
    ratios = [_ratio(pool.threshold, queue.priority) for queue in system.queues]
    exact = [(r.numerator, r.denominator) if _is_small(r) else (0, 0) for r in ratios]
    bounds = np.array([queue.walltime[1] for queue in system.queues], dtype=np.int64)
    widest = MOST if pool.placement == "combined" else pool.cores
    fractions = np.array(exact, dtype=np.int64)
    may_enter = at.find_eligible(jobs, bounds, fractions, len(system.queues), widest, LATEST, eligible)
    for q in (q for q, ratio in enumerate(ratios) if not _is_small(ratio)):
        for job in np.flatnonzero((eligible < NEVER) & (jobs[:, at.QUEUE] == q)).tolist():
            seconds = min(int(jobs[job, at.WALLTIME]), int(bounds[q]))
            eligible[job] = int(jobs[job, at.SUBMIT]) + min(math.ceil(ratios[q] * seconds), LATEST)
    return eligible, int(may_enter)


@lru_cache(maxsize=4096)
def _ratio(threshold: float, priority: float) -> Fraction:
    """Quotient of the decimal numbers that were written."""
    return _decimal(threshold) / _decimal(priority)


def _decimal(number: float) -> Fraction:
    return Fraction(repr(float(number)))


def _is_small(ratio: Fraction) -> bool:
    """Whether its product with any duration is an int64."""
    return ratio.numerator <= 2**31 and ratio.denominator <= 2**61


def _pack_settings(prepared: Prepared, system: System) -> NDArray[np.int64]:
    pool = system.pool if system.mode == "hybrid" else None
    formula = system.formula
    settings = np.zeros(at.SETTINGS, dtype=np.int64)
    settings[at.BACKFILL] = system.backfill
    settings[at.ORDER] = orders.FORMULA if formula is not None else ORDERS.index(system.order)
    settings[at.COMBINED] = pool is not None and pool.placement == "combined"
    settings[at.STARVING_FIRST] = pool is not None and pool.starving_first
    settings[at.MOVE] = pool is not None and pool.entry == "move"
    settings[at.LIMITS] = system.has_limits
    settings[at.USER_LIMITS] = any(queue.max_user_run or queue.max_user_cores for queue in system.queues)
    settings[at.TRACK_HELD] = system.has_limits and formula is not None and formula.uses_eligible_time
    settings[at.STARVES] = any(queue.starvation is not None for queue in system.queues)
    settings[at.BITS] = prepared.bits
    settings[at.LONE] = system.mode == "shared"
    settings[at.RESERVE_AFTER] = system.reservation_delay
    return settings


def _pack_queues(system: System) -> NDArray[np.int64]:
    ranks = sorted({queue.priority for queue in system.queues})
    table = np.zeros((len(system.queues), at.QUEUE_COLUMNS), dtype=np.int64)
    weights = _weights(tuple(queue.priority for queue in system.queues))
    for row, queue, weight in zip(table, system.queues, weights, strict=True):
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


def pack_formula(
    workload: Workload, system: System
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], int]:
    """Program, constants, columns and depth of the stack."""
    formula = system.formula
    if formula is None:
        return np.empty((0, 2), np.int64), np.empty(0), np.empty((0, 0)), 0
    priority = np.array([queue.priority for queue in system.queues], dtype=np.float64)[workload.queue]
    base = np.stack([priority, workload.walltime, workload.cores, np.zeros(len(workload))])
    return formula.code, formula.constants, formula.columns(base), formula.depth


@lru_cache(maxsize=1024)
def _weights(priorities: tuple[float, ...]) -> list[int]:
    """Priorities as whole numbers in proportion; rounded where the exact ones would leave 62 bits."""
    exact = [_decimal(priority) for priority in priorities]
    scale = math.lcm(*(value.denominator for value in exact))
    whole = [int(value * scale) for value in exact]
    common = math.gcd(*whole)
    whole = [value // common for value in whole]
    if max(whole) >= 2**62:
        whole = [max(1, int(value * 2**61 / max(exact))) for value in exact]
    return whole
