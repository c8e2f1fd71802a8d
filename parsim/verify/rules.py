"""What never changes about a job: its home, when it starves, when it may enter the pool, where it may sit."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, lcm

import numpy as np

from parsim.schedule import SPREAD, Schedule
from parsim.system import System
from parsim.verify.violation import Violation
from parsim.workload import Workload

NEVER = 2**62  #: an instant that does not come
RESERVED = -1  #: home of the jobs that start by advance reservation

Placement = tuple[tuple[int, int], ...]  #: (part, cores) of each part that a job uses


def decimal(number: float) -> Fraction:
    """Return the decimal number that was written, exactly."""
    return Fraction(repr(float(number)))


class Jobs:
    """Columns as lists, by (submit, position): job 0 was submitted first.

    Attributes
    ----------
    row : list of int
        Position in the workload.
    home : list of int
        Part, or `RESERVED` (rule 9, before any move).
    starve, eligible : list of int
        Instants, `NEVER` for a job that does not starve or has no eligibility instant; a job whose home is
        the pool has none.
    place : list of Placement
        What the schedule says.
    """

    def __init__(self, workload: Workload, system: System, schedule: Schedule) -> None:
        self.system = system
        self.pool = -1 if system.mode == "shared" else len(system.queues)
        order = np.argsort(workload.submit, kind="stable")
        self.row: list[int] = order.tolist()
        self.submit: list[int] = workload.submit[order].tolist()
        self.cores: list[int] = workload.cores[order].tolist()
        self.walltime: list[int] = workload.walltime[order].tolist()
        self.queue: list[int] = workload.queue[order].tolist()
        self.user: list[int] = workload.user[order].tolist()
        self.start: list[int] = schedule.start[order].tolist()
        self.end: list[int] = schedule.end[order].tolist()
        most = [queue.walltime[1] for queue in system.queues]
        self.short_walltime: list[int] = [min(w, most[q]) for w, q in zip(self.walltime, self.queue, strict=True)]
        scale = lcm(*(decimal(queue.priority).denominator for queue in system.queues))
        self.weight = [int(decimal(queue.priority) * scale) for queue in system.queues]
        periods = [queue.starvation for queue in system.queues]
        self.starve = [
            NEVER if (period := periods[q]) is None else s + period
            for s, q in zip(self.submit, self.queue, strict=True)
        ]
        self.home = [self._home(job) for job in range(len(order))]
        self.eligible = [self._eligible(job) for job in range(len(order))]
        self.place = [self._place(schedule, row) for row in self.row]

    def _home(self, job: int) -> int:
        if self.pool < 0:
            return 0
        if self.cores[job] <= self.system.part_cores[self.queue[job]]:
            return self.queue[job]
        return self.pool if self.cores[job] <= self.system.pool_cores else RESERVED

    def _eligible(self, job: int) -> int:
        """Rule 15: the instant e of a job whose home is a partition."""
        pool = self.system.pool
        if pool is None or not self.system.pool_cores or self.home[job] in (self.pool, RESERVED):
            return NEVER
        if pool.placement == "pool" and self.cores[job] > pool.cores:
            return NEVER
        share = decimal(pool.threshold) / decimal(self.system.queues[self.queue[job]].priority)
        wait = share * self.short_walltime[job]
        return self.submit[job] + ceil(wait)

    def _place(self, schedule: Schedule, row: int) -> Placement:
        if schedule.part[row] != SPREAD:
            return ((int(schedule.part[row]), int(schedule.cores[row])),)
        return tuple((part, int(n)) for part, n in enumerate(schedule.shares[row]) if n)

    def moves(self, job: int) -> bool:
        """Whether `job` leaves its partition's list at its eligibility instant, for good (rule 16)."""
        pool = self.system.pool
        return (
            pool is not None and pool.entry == "move" and self.eligible[job] < NEVER and self.cores[job] <= pool.cores
        )

    def misplaced(self) -> Iterator[Violation]:
        """Yield the jobs that sit where they never may."""
        for job, place in enumerate(self.place):
            problem = self._misplaced(job, {part for part, _ in place})
            if problem:
                yield Violation(problem[0], self.row[job], self.start[job], problem[1])

    def _misplaced(self, job: int, parts: set[int]) -> tuple[str, str] | None:
        home, pool = self.home[job], self.pool
        if home == RESERVED or (home != pool and parts == {home} and not self._moved_by_start(job)):
            return None
        names = " and ".join(self.system.part_names[part] for part in sorted(parts))
        if home == pool:
            allowed = parts == {pool} or (parts == {self.queue[job], pool} and self._combines())
            return None if allowed else ("placement", f"may sit in the pool, but sits on {names}")
        if pool not in parts or not self.system.pool_cores:
            return "placement", f"may not sit on {names}"
        if self.start[job] < self.eligible[job]:
            when = "never" if self.eligible[job] == NEVER else f"from {self.eligible[job]} on"
            return "pool", f"enters the pool, where it is eligible {when}"
        if parts == {pool} or (parts == {home, pool} and self._combines()):
            return None
        return "placement", f"may not sit on {names}"

    def _moved_by_start(self, job: int) -> bool:
        return self.start[job] >= self.eligible[job] and self.moves(job)

    def _combines(self) -> bool:
        return self.system.pool is not None and self.system.pool.placement == "combined"
