"""What never changes about a job: its home, when it starves, when it may enter the pool, where it may run."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import floor, lcm

from parsim.schedule import SPANNING, Schedule
from parsim.system import System
from parsim.verify.places import partitions_of
from parsim.verify.replay import Columns
from parsim.verify.throttles import Limited
from parsim.verify.violation import Violation
from parsim.workload import Workload

NEVER = 2**62  #: an instant that does not come
RESERVED = -1  #: home of the jobs that start by advance reservation


def reserves_for_queues(workload: Workload, system: System) -> bool:
    """Whether rule 28 or 45 holds, and the home of no job is `RESERVED`."""
    planned = system.reserves_for_queues or system.reserves_for_many
    if not planned or system.mode == "shared":
        return planned
    partitions = [max(queue.partition, system.pool_cores) for queue in system.queues]
    return all(c <= partitions[q] for c, q in zip(workload.cores.tolist(), workload.queue.tolist(), strict=True))


ALL = -1  #: stands for all users of a queue

Placement = tuple[tuple[int, int], ...]  #: (partition, cores) of each partition that a job uses


def decimal(number: float) -> Fraction:
    """Return the decimal number that was written, exactly."""
    return Fraction(repr(float(number)))


def _placement(schedule: Schedule, row: int) -> Placement:
    if schedule.partition[row] != SPANNING:
        return ((int(schedule.partition[row]), int(schedule.cores[row])),)
    return tuple((partition, int(n)) for partition, n in enumerate(schedule.shares[row]) if n)


class Jobs(Columns):
    """Columns by (submit, position), and what the rules of waiting lists say of each job.

    Attributes
    ----------
    home : list of int
        Partition, or `RESERVED` (rule 9, before any move).
    starve, eligible : list of int
        Instants, `NEVER` for a job that does not starve or has no eligibility instant; a job whose home is
        the pool has none.
    placement : list of Placement
        The schedule's.
    """

    def __init__(self, workload: Workload, system: System, schedule: Schedule) -> None:
        super().__init__(workload, schedule)
        self.system, self.workload, self.schedule = system, workload, schedule
        self.pool = -1 if system.mode == "shared" else len(system.queues)
        most = [queue.walltime[1] for queue in system.queues]
        self.short_walltime: list[int] = [min(w, most[q]) for w, q in zip(self.walltime, self.queue, strict=True)]
        scale = lcm(*(decimal(queue.priority).denominator for queue in system.queues))
        self.weight = [int(decimal(queue.priority) * scale) for queue in system.queues]
        periods = [queue.starvation for queue in system.queues]
        self.starve = [
            NEVER if (period := periods[q]) is None else s + period
            for s, q in zip(self.submit, self.queue, strict=True)
        ]
        self.may_run_on: list[set[int]] = []  #: of each row, where nodes are of several types
        if system.node_types and self.pool >= 0:
            self.may_run_on = partitions_of(workload, system)
        self.home = [self._home(job) for job in range(len(self.row))]
        self.eligible = [self._eligible(job) for job in range(len(self.row))]
        self.placement = [_placement(schedule, row) for row in self.row]
        self.throttles = Limited(system, workload, self) if system.throttles else None

    def takes(self, job: int) -> tuple[float, float]:
        """Rule 68: GPUs and KiB of memory that all chunks of a job take together."""
        found = {"gpus": 0, "memory": 0}
        number = int(self.workload.request[self.row[job]])
        for chunk in self.workload.requests[number] if number >= 0 else ():
            for name, amount in dict(chunk.resources).items():
                if name in found:
                    found[name] += chunk.count * amount
        return float(found["gpus"]), 1024.0 * found["memory"]

    def _home(self, job: int) -> int:
        if self.pool < 0:
            return 0
        if self.may_run_on:  # rule 77
            return self.queue[job] if self._has_place(job, self.queue[job]) else self.pool
        if self.cores[job] <= self.system.partition_cores[self.queue[job]]:
            return self.queue[job]
        return self.pool if self.cores[job] <= self.system.pool_cores else RESERVED

    def _has_place(self, job: int, partition: int) -> bool:
        return partition in self.may_run_on[self.row[job]]

    def _eligible(self, job: int) -> int:
        """Rule 15: the instant e of a job whose home is a partition."""
        pool = self.system.pool
        if pool is None or not self.system.pool_cores or self.home[job] in (self.pool, RESERVED):
            return NEVER
        if pool.placement == "pool" and self.cores[job] > pool.cores:
            return NEVER
        if self.may_run_on and not self._has_place(job, self.pool):
            return NEVER
        share = decimal(pool.threshold) / decimal(self.system.queues[self.queue[job]].priority)
        wait = share * self.short_walltime[job]
        return self.submit[job] + (floor(wait) + 1 if share else 0)

    def moves(self, job: int) -> bool:
        """Whether `job` leaves its partition's list at its eligibility instant, for good (rule 16)."""
        pool = self.system.pool
        return (
            pool is not None
            and pool.entry == "move"
            and self.eligible[job] < NEVER
            and (self.cores[job] <= pool.cores or self.system.takes_own_nodes)
        )

    def misplaced(self) -> Iterator[Violation]:
        """Yield the jobs that run where they never may."""
        for job, placement in enumerate(self.placement):
            problem = self._misplaced(job, {partition for partition, _ in placement})
            if problem:
                yield Violation(problem[0], self.row[job], self.start[job], problem[1])

    def _misplaced(self, job: int, partitions: set[int]) -> tuple[str, str] | None:
        home, pool = self.home[job], self.pool
        moved = self._moved_by_start(job) and not self.system.takes_own_nodes  # rule 26
        if home == RESERVED or (home != pool and partitions == {home} and not moved):
            return None
        names = " and ".join(self.system.partition_names[partition] for partition in sorted(partitions))
        if home == pool:
            allowed = partitions == {pool} or (partitions == {self.queue[job], pool} and self._combines())
            return None if allowed else ("placement", f"may run in the pool, but runs on {names}")
        if pool not in partitions or not self.system.pool_cores:
            return "placement", f"may not run on {names}"
        if self.start[job] < self.eligible[job]:
            when = "never" if self.eligible[job] == NEVER else f"from {self.eligible[job]} on"
            return "pool", f"enters the pool, where it is eligible {when}"
        if partitions == {pool} or (partitions == {home, pool} and self._combines()):
            return None
        return "placement", f"may not run on {names}"

    def _moved_by_start(self, job: int) -> bool:
        return self.start[job] >= self.eligible[job] and self.moves(job)

    def _combines(self) -> bool:
        return self.system.pool is not None and self.system.pool.placement == "combined"
