"""Check the schedules of planning disciplines: plan every pass from the schedule alone, and compare.

Shares no code with `parsim.planning` but the description of a discipline: plans lie in lists that are cut
by bisection, a search goes once over them with one candidate, and scores are exact.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from parsim.planning import Policy
from parsim.schedule import Schedule
from parsim.state import State
from parsim.system import Queue, System
from parsim.verify.beginning import FOR_EVER, Beginning, Outage, parts
from parsim.verify.columns import check_begun, check_capacity, check_times
from parsim.verify.idle import Idle
from parsim.verify.replay import Columns, Replay
from parsim.verify.violation import Violation
from parsim.workload import Workload

ORDERS = ("fcfs", "sjf", "ljf")


def check_planned(
    workload: Workload, cores: int, policy: Policy, schedule: Schedule, state: State | None = None
) -> list[Violation]:
    """Check a schedule of `workload` on one machine of `cores` under a planning discipline.

    First whole columns: times and capacity. If they are right, each pass plans the jobs that wait in the
    schedule beside those that run in it, and the jobs planned for that instant must be those that start at
    it. No promise of conservative backfilling may be broken.

    Parameters
    ----------
    workload : Workload
    cores : int
        Of the machine.
    policy : Policy
    schedule : Schedule
    state : State, optional
        The one that it began with.

    Returns
    -------
    list of Violation
        Empty if all is right. Passes are checked up to the first that is wrong.

    References
    ----------
    Streit, HiPC 2001 and JSSPP 2004; Mu'alem and Feitelson, IEEE TPDS 12(6), 2001 (conservative backfilling).
    """
    queues = 1 + int(workload.queue.max(initial=0))
    system = System(cores, (Queue(),) * queues)
    found = check_times(workload, system, schedule)
    if found:
        return found
    beginning = None
    rows = np.arange(len(workload))
    if state is not None:
        found = check_begun(schedule, state)
        if found:
            return found
        part = list(parts(workload, system, schedule, state.without_queues()))[-1]
        rows, workload, schedule, beginning = part.rows, part.workload, part.schedule, part.beginning
    found = check_capacity(schedule, (cores,))
    found = found or next(filter(None, _PlanReplay(workload, cores, policy, schedule, beginning).instants()), [])
    return [violation.at(rows) for violation in found]


class _PlanReplay(Replay):
    """Running and waiting jobs from the schedule alone; the policy in use and the promises from the rules."""

    def __init__(
        self, workload: Workload, cores: int, policy: Policy, schedule: Schedule, beginning: Beginning | None = None
    ) -> None:
        super().__init__(Columns(workload, schedule), beginning)
        self.machine, self.policy = cores, policy
        self.conservative = policy.kind == "conservative"
        self.order: str = policy.order
        self.waiting: list[int] = []  # ascending
        self.running: set[int] = set()
        self.new: set[int] = set()  # submitted since the last pass
        self.early: list[int] = []  # ended since the last pass, before their walltimes
        self.promise: dict[int, int] = {}
        self.idle = Idle(self.now, cores)
        self.out: list[Outage] = []

    def _events(self) -> Iterator[tuple[int, int, int]]:
        yield from super()._events()
        if self.conservative:  # a pass takes place where a promised start comes
            yield from ((instant, 2, job) for job, instant in enumerate(self.jobs.start))

    def _resume(self, job: int) -> None:
        self.running.add(job)
        end = self.jobs.start[job] + self.jobs.walltime[job]
        self.idle.add(self.now, end, -self.jobs.cores[job])

    def _happen(self, kind: int, job: int) -> None:
        if kind == 0:
            self.running.remove(job)
            if self.jobs.start[job] + self.jobs.walltime[job] > self.now:
                self.early.append(job)
        elif kind == 1:
            insort(self.waiting, job)
            self.new.add(job)

    def _begin(self, job: int) -> None:
        self.waiting.remove(job)
        self.running.add(job)

    def _check_pass(self) -> list[Violation]:
        planned: dict[int, int] = {}
        if self.conservative:
            planned = self._promised()
        elif self.waiting:
            planned = self._planned()
        self.new, self.early = set(), []
        return list(self._compare(planned))

    def _compare(self, planned: dict[int, int]) -> Iterator[Violation]:
        for job, begin in planned.items():
            if begin == self.now and job not in self.due:
                yield self._violation("waiting", job, f"is planned for now under {self.order}, starts later")
            elif begin < self.now:
                yield self._violation("waiting", job, f"was promised {begin}")
            elif begin > self.now and job in self.due:
                yield self._violation("order", job, f"starts, but is planned for {begin} under {self.order}")

    def _reserve(self, idle: Idle, job: int) -> int:
        """Take the cores of `job` from `idle` at its earliest start, and return that."""
        cores, walltime = self.jobs.cores[job], self.jobs.walltime[job]
        begin = idle.earliest(cores, walltime)
        idle.add(begin, begin + walltime, -cores)
        return begin

    def _plan(self, order: str) -> dict[int, int]:
        """Plan the waiting jobs in an order."""
        idle, jobs = Idle(self.now, self.machine), self.jobs
        for job in self.running:
            idle.add(self.now, jobs.start[job] + jobs.walltime[job], -jobs.cores[job])
        for outage in self._known():
            idle.add(outage.begin, outage.known_end, -outage.cores[0])
        sign = {"fcfs": 0, "sjf": 1, "ljf": -1}[order]
        return {
            job: self._reserve(idle, job) for job in sorted(self.waiting, key=lambda job: sign * jobs.walltime[job])
        }

    def _planned(self) -> dict[int, int]:
        """Decide where a decision is due, and return the plan in force."""
        policy, waiting = self.policy, self.waiting
        decides = len(waiting) >= policy.least and (bool(self.new) or policy.when == "full")
        if decides and policy.kind == "bounds":
            total, n = sum(self.jobs.walltime[job] for job in waiting), len(waiting)
            above = (total > policy.lower * n) + (total > policy.upper * n)
            self.order = ("sjf", "fcfs", "ljf")[above]
        if not decides or policy.kind != "self-tuning":
            return self._plan(self.order)
        plans = {order: self._plan(order) for order in ORDERS}
        before = self.order
        made = [plans[order] for order in (before if policy.what_if == "standing" else "fcfs", "sjf", "ljf")]
        counted = [job for job in waiting if max(plan[job] for plan in made) < FOR_EVER]  # rule 32
        scores = {order: self._score({job: plan[job] for job in counted}) for order, plan in plans.items()}
        if policy.what_if == "standing":
            scores["fcfs"] = scores[before]
        best = min(scores.values())
        preference: Sequence[str] = ORDERS
        if policy.decider != "simple":
            preference = (before, *preference)
        if policy.decider == "preferred":
            preference = (policy.preferred, *preference)
        self.order = next(order for order in preference if scores[order] == best)
        if policy.what_if == "standing" and self.order != before:
            return plans["ljf"]
        return plans[self.order]

    def _score(self, planned: dict[int, int]) -> int | Fraction:
        """Score a plan exactly; what divides the score of every plan of a pass is left out."""
        metric = self.policy.metric
        ends = {job: begin + self.jobs.walltime[job] for job, begin in planned.items()}
        if metric == "makespan":
            return max(ends.values(), default=0)
        total: int | Fraction = 0
        for job, end in ends.items():
            response, cores, walltime = end - self.jobs.submit[job], self.jobs.cores[job], self.jobs.walltime[job]
            if metric == "art":
                total += response
            elif metric in {"art_ww", "sld_wa"}:  # slowdown times core-seconds is response times cores
                total += response * cores
            elif metric == "art_wa":
                total += response * cores * walltime
            else:
                total += Fraction(response * (cores if metric == "sld_ww" else 1), walltime)
        return total

    def _promised(self) -> dict[int, int]:
        """Give back the cores of early ends, let old promises come nearer, and promise the new jobs a start."""
        jobs, now = self.jobs, self.now
        self.idle.forget(now)
        for job in self.early:
            self.idle.add(now, jobs.start[job] + jobs.walltime[job], jobs.cores[job])
        known = self._known()
        ended = [outage for outage in self.out if outage not in known and outage.known_end > now]
        added = [outage for outage in known if outage not in self.out]
        self.out = known
        for outage in ended:
            self.idle.add(now, outage.known_end, outage.cores[0])
        for outage in added:
            self.idle.add(outage.begin, outage.known_end, -outage.cores[0])
        if ended or added:  # rule 32
            for job in self.waiting:
                if job not in self.new:
                    self.idle.add(self.promise[job], self.promise[job] + jobs.walltime[job], jobs.cores[job])
            self.new.update(self.waiting)
        for job in self.waiting:
            if job not in self.new and self.early and self.promise[job] > now:
                begin = self.promise[job]
                self.idle.add(begin, begin + jobs.walltime[job], jobs.cores[job])
            elif job not in self.new:
                continue
            self.promise[job] = self._reserve(self.idle, job)
        return {job: self.promise[job] for job in self.waiting}
