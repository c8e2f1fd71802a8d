"""Replay of a schedule in which jobs are backfilled as Slurm does, on nodes of several types.

The numbered rules are those of ``docs/reference/simulator.md``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parsim.system import System
from parsim.verify.beginning import Beginning
from parsim.verify.node_types import Place
from parsim.verify.rules import Jobs
from parsim.verify.typed_windows import TypedWindowsReplay
from parsim.verify.violation import Discrepancy

Sums = NDArray[np.int64]  #: of each resource of each type, of the one partition


class TypedHeadJobsReplay(TypedWindowsReplay):
    """A replay in which the plans of all head jobs count together, and nodes of their types stay idle (rule 80)."""

    def __init__(self, jobs: Jobs, system: System, beginning: Beginning | None = None) -> None:
        super().__init__(jobs, system, beginning)
        self.plans: dict[int, tuple[int, int, Sums]] = {}  #: head job -> from, to, what it takes
        self.keeps: dict[int, Sums] = {}  #: what stays idle for it
        self.node = np.zeros_like(self.machines.all)
        amounts = {each.name: {"cores": each.cores, **dict(each.resources)} for each in system.node_types}
        self.node[0] = [amounts[name].get(resource, 0) for name, resource in self.machines.names]
        self.type = [name for name, _ in self.machines.names]

    def _of_types(self, takes: Sums) -> NDArray[np.bool_]:
        """Mark the totals of the types that a place takes something of."""
        types = {self.type[k] for k in np.flatnonzero(takes[0])}
        return np.array([name in types for name in self.type], dtype=np.bool_)

    def _left(self, job: int, moment: int) -> Sums:
        """Return what the expected ends, the windows and the plans leave at a moment."""
        left = self._left_at(job, moment)
        for begin, end, takes in self.plans.values():
            if begin <= moment < end:
                left = left - takes
        return np.maximum(left, 0)

    def _fits(self, job: int, takes: Sums, begin: int, last: int) -> bool:
        """Whether it is left from `begin` to `last`, both included; there is less where a plan or a window begins."""
        moments = [begin, *(other for other, _, _ in self.plans.values() if begin < other <= last)]
        moments += self._begins(begin, last)
        return all(bool((takes <= self._left(job, moment)).all()) for moment in moments)

    def _leaves_kept(self, job: int, takes: Sums, end: int) -> bool:
        """Whether a job that ends then leaves, of the types that it takes of, what stays idle for head jobs."""
        own, idle = self._of_types(takes), np.maximum(self._left_at(job, self.now), 0)
        for begin, _, _ in self.plans.values():
            if begin <= end:
                beside = [self.keeps[k] for k, plan in self.plans.items() if plan[0] <= begin < plan[1]]
                if ((takes + sum(beside)) > idle)[0][own].any():
                    return False
        return True

    def _place(self, job: int, partition: int) -> Place | None:
        if self.jobs.cores[job] > self.partitions[partition].idle:
            return None
        end = self.now + self.jobs.walltime[job]
        fitting = (
            place
            for on, place in zip(self.partition_of[job], self.places[job], strict=True)
            if on == partition and self._fits(job, place[1], self.now, end) and self._leaves_kept(job, place[1], end)
        )
        return next(fitting, None)

    def _go_over(self, index: int, ordered: list[int]) -> None:
        jobs = self.jobs
        self.plans, self.keeps = {}, {}
        has_head_job: set[int] = set()
        for at, job in self._turns(index, ordered):
            place, queue = self._place(job, index), jobs.queue[job]
            if place is not None:
                if job in self.due and self.chosen[job] != place[0]:
                    raise Discrepancy("placement", job, f"starts at place {self.chosen[job]}, but may at {place[0]}")
                self._must_start_on(job, ((index, jobs.cores[job]),), ordered[at:])
                own = self._of_types(place[1])
                for k, (begin, _, _) in self.plans.items():
                    if begin > self.now + jobs.walltime[job]:
                        self.keeps[k][0][own] = 0
            elif job in self.due:
                raise Discrepancy("head job" if self.plans else "capacity", job, "may not start now")
            elif (
                queue not in has_head_job
                and self.now - jobs.submit[job] >= self.system.reservation_delay
                and self._plan_for(job)
            ):
                has_head_job.add(queue)

    def _plan_for(self, job: int) -> bool:
        """Plan a head job at the earliest instant at which it has a place; whether there is one (rule 31)."""
        length = self.jobs.walltime[job]
        ends = {*self._ends()} | {end for _, end, _ in self.plans.values()}
        for begin in sorted({self.now, *(end for end in ends if end > self.now)}):
            for _, takes in self.places[job]:
                if self._fits(job, takes, begin, begin + length - 1):
                    self.plans[job] = (begin, begin + length, takes)
                    self.keeps[job] = self.node * self._of_types(takes)
                    return True
        if self._known():
            return False
        raise Discrepancy("head job", job, "has no place though nothing runs")
