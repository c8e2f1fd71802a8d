"""Replay of a schedule of multiple-queue backfilling: each pass planned from the schedule's past, against its starts.

References
----------
Lawson and Smirni, JSSPP 2002.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from parsim.schedule import Schedule
from parsim.system import System
from parsim.verify.idle import Idle, by_instant
from parsim.verify.violation import Discrepancy, Violation
from parsim.workload import Workload


class ClassReplay:
    """The machine as the schedule has it, instant by instant; jobs are numbered by (submit, position).

    Attributes
    ----------
    lines : list of list of int
        Waiting jobs of each class, ascending; the first of each is its pivot.
    idle : Idle
        Beside the running jobs alone.
    pivots : list of (int, int)
        In order of submit, the pivots and the instants that this pass promised them.
    due : set of int
        Jobs that the schedule starts at this instant, and that have not yet.
    """

    def __init__(self, workload: Workload, system: System, schedule: Schedule) -> None:
        order = np.argsort(workload.submit, kind="stable")
        self.row: list[int] = order.tolist()
        self.submit: list[int] = workload.submit[order].tolist()
        self.cores: list[int] = workload.cores[order].tolist()
        self.walltime: list[int] = workload.walltime[order].tolist()
        self.start: list[int] = schedule.start[order].tolist()
        self.end: list[int] = schedule.end[order].tolist()
        self.class_limits = system.class_limits
        self.job_class = [bisect_left(self.class_limits, walltime) for walltime in self.walltime]
        self.lines: list[list[int]] = [[] for _ in range(len(self.class_limits) + 1)]
        self.now = min(self.submit, default=0)
        self.idle = Idle(self.now, system.cores)
        self.beside = self.idle  #: and beside the pivots
        self.pivots: list[tuple[int, int]] = []
        self.due: set[int] = set()

    def run(self) -> list[Violation]:
        """Go over all instants; return what is wrong, in order of time."""
        found: list[Violation] = []
        ended, submitted, started = (by_instant(column) for column in (self.end, self.submit, self.start))
        events = ended.keys() | submitted.keys()
        for now in sorted(events | started.keys()):
            self.now = now
            self.idle.forget(now)
            for job in ended.get(now, ()):
                self.idle.add(now, self.start[job] + self.walltime[job], self.cores[job])
            for job in submitted.get(now, ()):
                self.lines[self.job_class[job]].append(job)
            self.due = set(started.get(now, ()))
            if now in events:
                found += self._judge()
            else:
                found += [self._violation("event", job, "starts where no event is") for job in sorted(self.due)]
            for job in sorted(self.due):
                self._start(job)
        return found

    def _judge(self) -> list[Violation]:
        if not self.idle.cores[0]:
            return []  # nobody can start, and the columns say that nobody does
        try:
            self._plan_pivots()
            self._backfill()
        except Discrepancy as wrong:
            return [self._violation(wrong.rule, wrong.job, wrong.message)]
        return []

    def _violation(self, rule: str, job: int, message: str) -> Violation:
        return Violation(rule, self.row[job], self.now, message)

    def _plan_pivots(self) -> None:
        """Plan by submit, each at its earliest instant beside those before it; whenever one starts, all anew."""
        planning = True
        while planning:
            planning = False
            self.beside, self.pivots = self.idle.copy(), []
            for job in sorted(line[0] for line in self.lines if line):
                instant = self.beside.earliest(self.cores[job], self.walltime[job])
                if instant == self.now:
                    self._demand(job)
                    planning = True
                    break
                self._refuse(job)
                self.beside.add(instant, instant + self.walltime[job], -self.cores[job])
                self.pivots.append((job, instant))

    def _backfill(self) -> None:
        """Start the other jobs that fit now, shortest class first."""
        for line in self.lines:
            for job in line[1:]:
                cores, walltime = self.cores[job], self.walltime[job]
                if cores <= self.beside.cores[0] and self.beside.fits(cores, walltime):
                    self._demand(job)
                    self.beside.add(self.now, self.now + walltime, -cores)
                else:
                    self._refuse(job)

    def _demand(self, job: int) -> None:
        """`job` has to start now, before all others that are due."""
        if job in self.due:
            self._start(job)
        elif self.due:
            rows = [self.row[other] for other in sorted(self.due)]
            raise Discrepancy("order", job, f"must start before {rows}")
        else:
            raise Discrepancy("waiting", job, "must start, and waits")

    def _refuse(self, job: int) -> None:
        """`job` may not start now; as its cores are idle, the pivots are what it would delay."""
        if job in self.due:
            rows = [self.row[pivot] for pivot, _ in self.pivots]
            raise Discrepancy("head", job, f"would delay one of {rows}, the first of their classes")

    def _start(self, job: int) -> None:
        self.due.discard(job)
        self.lines[self.job_class[job]].remove(job)
        self.idle.add(self.now, self.now + self.walltime[job], -self.cores[job])
