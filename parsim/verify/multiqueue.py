"""Replay of a schedule of multiple-queue backfilling.

References
----------
Lawson and Smirni, JSSPP 2002.
"""

from __future__ import annotations

from bisect import bisect_left

from parsim.schedule import Schedule
from parsim.system import System
from parsim.verify.beginning import Beginning, Outage
from parsim.verify.idle import Idle
from parsim.verify.replay import Columns, Replay
from parsim.verify.violation import Discrepancy, Violation
from parsim.workload import Workload


class ClassReplay(Replay):
    """A replay in which jobs wait by class of walltime.

    Attributes
    ----------
    lists : list of list of int
        Waiting jobs of each class, ascending; the first of each is its pivot.
    idle : Idle
        Cores that the running jobs leave.
    beside : Idle
        Cores that the pivots leave, too.
    pivots : list of (int, int)
        In order of submit, the pivots and their planned starts in this pass.
    """

    def __init__(
        self, workload: Workload, system: System, schedule: Schedule, beginning: Beginning | None = None
    ) -> None:
        super().__init__(Columns(workload, schedule), beginning)
        self.class_limits = system.class_limits
        self.job_class = [bisect_left(self.class_limits, walltime) for walltime in self.jobs.walltime]
        self.lists: list[list[int]] = [[] for _ in range(len(self.class_limits) + 1)]
        self.idle = self.beside = Idle(self.now, system.cores)
        self.pivots: list[tuple[int, int]] = []
        self.out: list[Outage] = []

    def _resume(self, job: int) -> None:
        jobs = self.jobs
        self.idle.add(self.now, jobs.start[job] + jobs.walltime[job], -jobs.cores[job])

    def _happen(self, kind: int, job: int) -> None:
        if kind:
            self.lists[self.job_class[job]].append(job)
        else:
            self.idle.add(self.now, self.jobs.start[job] + self.jobs.walltime[job], self.jobs.cores[job])

    def _begin(self, job: int) -> None:
        self.due.discard(job)
        self.lists[self.job_class[job]].remove(job)
        self.idle.add(self.now, self.now + self.jobs.walltime[job], -self.jobs.cores[job])

    def _check_pass(self) -> list[Violation]:
        self.idle.forget(self.now)
        self._note_windows()
        if self.idle.cores[0] <= 0:
            return [self._violation("capacity", job, "starts, and no core is idle") for job in sorted(self.due)]
        try:
            self._plan_pivots()
            self._backfill()
        except Discrepancy as wrong:
            return [self._violation(wrong.rule, wrong.job, wrong.message)]
        return []

    def _note_windows(self) -> None:
        """Take what has become known out of service, and give back what has ended sooner than was known."""
        known = self._known()
        for outage in self.out:
            if outage not in known:
                self.idle.add(self.now, outage.known_end, outage.cores.get(0, 0))
        for outage in known:
            if outage not in self.out:
                self.idle.add(outage.begin, outage.known_end, -outage.cores.get(0, 0))
        self.out = known

    def _plan_pivots(self) -> None:
        """Plan by submit, each at its earliest start beside those before it; after a start, plan all again."""
        planning = True
        while planning:
            planning = False
            self.beside, self.pivots = self.idle.copy(), []
            for job in sorted(waiting[0] for waiting in self.lists if waiting):
                instant = self.beside.earliest(self.jobs.cores[job], self.jobs.walltime[job])
                if instant == self.now:
                    self._must_start(job, sorted(self.due))
                    planning = True
                    break
                self._may_not_start(job)
                self.beside.add(instant, instant + self.jobs.walltime[job], -self.jobs.cores[job])
                self.pivots.append((job, instant))

    def _backfill(self) -> None:
        """Start the other jobs that fit now, shortest class first."""
        for waiting in self.lists:
            for job in waiting[1:]:
                cores, walltime = self.jobs.cores[job], self.jobs.walltime[job]
                if cores <= self.beside.cores[0] and self.beside.fits(cores, walltime):
                    self._must_start(job, sorted(self.due))
                    self.beside.add(self.now, self.now + walltime, -cores)
                else:
                    self._may_not_start(job)

    def _may_not_start(self, job: int) -> None:
        """Raise if `job` starts now; as its cores are idle, the pivots are what it would delay."""
        if job in self.due:
            rows = [self.jobs.row[pivot] for pivot, _ in self.pivots]
            raise Discrepancy("head job", job, f"would delay one of {rows}, the first of their classes")
