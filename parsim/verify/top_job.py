"""Replay of a schedule of a shared machine that plans limits, or the cores of particular nodes, for its head job.

The numbered rules are those of ``docs/reference/simulator.md``. Nodes that are not told apart are one node.
"""

from __future__ import annotations

from dataclasses import dataclass

from parsim.system import LIMITS, System
from parsim.verify.beginning import Beginning
from parsim.verify.lists import ListReplay
from parsim.verify.rules import Jobs
from parsim.verify.violation import Discrepancy, Violation


@dataclass(slots=True)
class Promise:
    """What holds at the shadow time of the head job."""

    instant: int
    beside: list[int]  #: cores of each node that are left then
    later: list[int]  #: the head job, and the running jobs that are expected to run past that instant


class TopJobReplay(ListReplay):
    """A replay in which the one head job has a shadow time that limits decide too, and cores of its own nodes."""

    def __init__(self, jobs: Jobs, system: System, beginning: Beginning | None = None) -> None:
        super().__init__(jobs, system, beginning)
        size = system.cores_per_node if system.reserves_nodes else system.cores
        whole, rest = divmod(system.cores, size)
        self.idle = [size] * whole + [rest] * (rest > 0)
        self.taken: dict[int, list[tuple[int, int]]] = {}  #: (node, cores) of each running job
        self.promise: Promise | None = None

    def _resume(self, job: int) -> None:
        super()._resume(job)
        named = {} if self.beginning is None else self.beginning.state.nodes.get(self.jobs.row[job], {})
        self.taken[job] = list(named.items()) or self._first_nodes(self.idle, self.jobs.cores[job])
        for node, here in self.taken[job]:
            self.idle[node] -= here

    def _end(self, job: int) -> None:
        super()._end(job)
        for node, cores in self.taken.pop(job):
            self.idle[node] += cores

    def _begin(self, job: int) -> None:
        end = self.now + self.jobs.walltime[job]
        cores, most = self.jobs.cores[job], self._startable(end)
        self.taken[job] = self._first_nodes(most if sum(most) >= cores else self.idle, cores)
        for node, here in self.taken[job]:
            self.idle[node] -= here
            if self.promise is not None and end > self.promise.instant:
                self.promise.beside[node] -= here
        if self.promise is not None and end > self.promise.instant:
            self.promise.later.append(job)
        super()._begin(job)

    def _check_pass(self) -> list[Violation]:
        self.promise = None
        return super()._check_pass()

    def _startable(self, end: int) -> list[int]:
        """Cores of each node that a job which would end then may take now (rules 23 and 24)."""
        if self.promise is None or end <= self.promise.instant:
            return self.idle
        return list(map(min, self.idle, self.promise.beside))

    @staticmethod
    def _first_nodes(most: list[int], cores: int) -> list[tuple[int, int]]:
        """Rule 23: of each node as many as may be taken, the first ones first."""
        taken = []
        for node, here in enumerate(most):
            if not cores:
                break
            if here > 0:
                taken.append((node, min(here, cores)))
                cores -= taken[-1][1]
        return taken

    def _held(self, job: int) -> str:
        """Rule 22, in place of rule 4 where limits are planned."""
        held = super()._held(job)
        promise, end = self.promise, self.now + self.jobs.walltime[job]
        if held or promise is None or end <= promise.instant or not self.system.plans_limits:
            return held
        return self._above([job, *promise.later])

    def _above(self, together: list[int]) -> str:
        """Return the first of `LIMITS` of the first job that these jobs would be above; empty if none."""
        jobs, job = self.jobs, together[0]
        mates = [other for other in together if jobs.queue[other] == jobs.queue[job]]
        own = [other for other in mates if jobs.user[other] == jobs.user[job]] if jobs.user[job] >= 0 else []
        used = [len(mates), sum(jobs.cores[k] for k in mates), len(own), sum(jobs.cores[k] for k in own)]
        above = zip(LIMITS, self.limits[jobs.queue[job]], used, strict=True)
        return next((name for name, most, amount in above if most is not None and amount > most), "")

    def _visit_list(self, index: int) -> None:
        """Rules 3 and 20."""
        jobs, partition, plans_limits = self.jobs, self.partitions[index], self.system.plans_limits
        if not (partition.idle or self.tracked):
            return  # no job can start
        ordered = self.lists[index].ordered(self.now)
        for at, job in enumerate(ordered, start=1):
            cores, has_head_job = jobs.cores[job], partition.head_job >= 0
            if has_head_job and cores > partition.idle and not self.tracked:
                continue
            held = bool(self._held(job))
            if held:
                self._pass_over(job, (index,))
                if self.tracked:
                    self.held_before.append(job)
            elif cores <= sum(self._startable(self.now + jobs.walltime[job])):
                self._must_start_on(job, ((index, cores),), ordered[at:])
                continue
            elif job in self.due:
                rule = "capacity" if cores > partition.idle else "head job"
                raise Discrepancy(rule, job, f"may not start on {partition.name} now")
            waits_long_enough = self.now - jobs.submit[job] >= self.system.reservation_delay
            if not has_head_job and (plans_limits or not held) and waits_long_enough:
                partition.head_job = job
                self.promise = self._plan(job)
                if not plans_limits:
                    self.head_jobs.add(job)
                if not self.system.backfill:
                    break

    def _plan(self, job: int) -> Promise:
        """Rules 21 and 24: when the head job may start, and what is left besides."""
        jobs = self.jobs
        ends = {other: jobs.start[other] + jobs.walltime[other] for other in self.taken}
        later = sorted(ends, key=ends.__getitem__, reverse=True)  # the next to end is the last
        idle, instant = self.idle.copy(), self.now
        while sum(idle) < jobs.cores[job] or (self.system.plans_limits and self._above([job, *later])):
            instant = ends[later[-1]]
            while later and ends[later[-1]] == instant:
                for node, cores in self.taken[later.pop()]:
                    idle[node] += cores
        for node, cores in self._first_nodes(idle, jobs.cores[job]):
            idle[node] -= cores
        return Promise(instant, idle, [*later, job])
