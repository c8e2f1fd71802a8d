"""Replay of a schedule on nodes of several types, by their totals, while some are out of service or kept for some jobs.

The numbered rules are those of ``docs/reference/simulator.md``.
"""

from __future__ import annotations

import numpy as np

from parsim.system import System
from parsim.verify.beginning import Beginning, Outage
from parsim.verify.node_types import Head, Place, TypedReplay
from parsim.verify.places import Sums
from parsim.verify.rules import Jobs


class TypedWindowsReplay(TypedReplay):
    """A replay in which a job has a place only beside the windows, throughout its walltime (rule 82)."""

    def __init__(self, jobs: Jobs, system: System, beginning: Beginning | None = None) -> None:
        super().__init__(jobs, system, beginning)
        outages = [] if beginning is None else beginning.outages
        nodes = [
            self._on(p, self.machines.of[p].node(each.name))
            for p, its in enumerate(system.owned_nodes)
            for each in system.node_types
            for _ in range(its.get(each.name, 0))
        ]
        nothing = np.zeros_like(self.idle)
        #: The windows, each with all that its nodes have.
        self.closed = [(outage, sum((nodes[node] for node in outage.cores), nothing)) for outage in outages]
        self.promised: dict[int, Sums] = {}  #: head job -> what it is planned to take

    def _known_windows(self) -> list[tuple[Outage, Sums]]:
        return [(outage, takes) for outage, takes in self.closed if outage.known_from <= self.now < outage.end]

    def _lost(self, job: int, moment: int) -> Sums:
        """Rules 33 and 82: what the windows take then that a job may not use."""
        jobs, lost = self.jobs, np.zeros_like(self.idle)
        for outage, takes in self._known_windows():
            if outage.begin <= moment < outage.known_end and not outage.is_for(jobs.user[job], jobs.walltime[job]):
                left = takes
                for other, (end, its) in self.on.items():
                    ran = jobs.start[other] < self.now and end > max(self.now, outage.begin)
                    if ran and outage.is_for(jobs.user[other], jobs.walltime[other]):
                        left = np.maximum(left - its, 0)
                lost += left
        return lost

    def _left_at(self, job: int, moment: int) -> Sums:
        """Return what the expected ends and the windows leave to a job."""
        return self._idle_at(moment) - self._lost(job, moment)

    def _begins(self, begin: int, last: int) -> list[int]:
        """Return when windows begin behind one instant, and up to another."""
        return [outage.begin for outage, _ in self._known_windows() if begin < outage.begin <= last]

    def _at(self, job: int, partition: int, begin: int, head: Head | None) -> Place | None:
        """Return the first place of a job that is left from an instant on, throughout its walltime."""
        last = begin + self.jobs.walltime[job] - 1
        moments = self._begins(begin, last)
        if head is not None and begin < head.time <= last:
            moments.append(head.time)
        least = self._left_at(job, begin)
        for moment in moments:
            left = self._left_at(job, moment)
            if head is not None and head.time <= moment < head.time + self.jobs.walltime[head.job]:
                left -= self.promised[head.job]
            least = np.minimum(least, left)
        return self._in(job, partition, np.maximum(least, 0))

    def _fits_beside_windows(self, job: int, partition: int, begin: int) -> bool:
        return self._at(job, partition, begin, None) is not None

    def _place(self, job: int, partition: int) -> Place | None:
        if self.jobs.cores[job] > self.partitions[partition].idle:
            return None
        return self._at(job, partition, self.now, self.heads.get(partition))

    def _plan(self, job: int, partition: int) -> Head | None:
        for instant in self._ends():
            place = self._at(job, partition, instant, None)
            if place is not None:
                self.promised[job] = place[1]
                return Head(job, instant, np.zeros_like(self.idle))
        return None  # rule 31
