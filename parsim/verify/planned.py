"""Judge the schedules of planning disciplines: derive every pass from the schedule, plan it, and compare.

Shares no code with `parsim.planning` but the description of a discipline: plans lie in lists that are cut
by bisection, a search goes once over them with one candidate, and scores are exact.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from fractions import Fraction

from parsim.planning import Policy
from parsim.schedule import Schedule
from parsim.system import Queue, System
from parsim.verify.columns import check_capacity, check_times
from parsim.verify.idle import Idle, by_instant
from parsim.verify.violation import Violation
from parsim.workload import Workload

ORDERS = ("fcfs", "sjf", "ljf")


def check_planned(workload: Workload, cores: int, policy: Policy, schedule: Schedule) -> list[Violation]:
    """Judge a schedule of `workload` on one machine of `cores` under a planning discipline.

    First whole columns: times and capacity. If they are right, each pass is planned anew for those who wait
    in the schedule, beside those who run in it, and the jobs planned for that instant must be those that
    start at it. No promise of conservative backfilling may be broken.

    Parameters
    ----------
    workload : Workload
    cores : int
    policy : Policy
    schedule : Schedule

    Returns
    -------
    list of Violation
        Empty if all is right. Passes are judged up to the first that is wrong.
    """
    queues = 1 + int(workload.queue.max(initial=0))
    system = System(cores, (Queue(),) * queues)
    found = check_times(workload, system, schedule) or check_capacity(schedule, (cores,))
    return found or _Judge(workload, cores, policy, schedule).violations()


class _Judge:
    """Who runs and who waits, from the schedule alone; the policy in use and the promises, from the rules."""

    def __init__(self, workload: Workload, cores: int, policy: Policy, schedule: Schedule) -> None:
        self.machine, self.policy = cores, policy
        self.submit: list[int] = workload.submit.tolist()
        self.cores: list[int] = workload.cores.tolist()
        self.walltime: list[int] = workload.walltime.tolist()
        self.start: list[int] = schedule.start.tolist()
        self.end: list[int] = schedule.end.tolist()
        self.order: str = policy.order
        self.waiting: list[tuple[int, int]] = []  # (submit, job), ascending
        self.running: set[int] = set()
        self.promise: dict[int, int] = {}
        self.idle = Idle(min(self.submit, default=0), cores)

    def violations(self) -> list[Violation]:
        keeps = self.policy.kind == "conservative"
        submitted, started, ended = (by_instant(column) for column in (self.submit, self.start, self.end))
        passes = set(submitted) | set(ended) | (set(started) if keeps else set())
        for now in sorted(passes | set(started)):
            due = set(started.get(now, ()))
            if now not in passes:
                job = min(due)
                return [Violation("event", job, now, "starts where no job is submitted and none ends")]
            left = ended.get(now, [])
            self.running.difference_update(left)
            new = submitted.get(now, [])
            for job in new:
                insort(self.waiting, (now, job))
            planned = {}
            if keeps:
                planned = self._promised(now, left, new)
            elif self.waiting:
                planned = self._planned(now, bool(new))
            found = list(self._compare(now, planned, due))
            if found:
                return found
            self.waiting = [(submit, job) for submit, job in self.waiting if job not in due]
            self.running |= due
        return []

    def _compare(self, now: int, planned: dict[int, int], due: set[int]) -> Iterator[Violation]:
        for job, begin in planned.items():
            if begin == now and job not in due:
                yield Violation("waiting", job, now, f"is planned for now under {self.order}, starts later")
            elif begin < now:
                yield Violation("waiting", job, now, f"was promised {begin}")
            elif begin > now and job in due:
                yield Violation("order", job, now, f"starts, but is planned for {begin} under {self.order}")

    def _plan(self, now: int, order: str) -> dict[int, int]:
        """Plan the waiting jobs in an order."""
        idle = Idle(now, self.machine)
        for job in self.running:
            idle.add(now, self.start[job] + self.walltime[job], -self.cores[job])
        jobs = [job for _, job in self.waiting]
        if order != "fcfs":
            jobs.sort(key=lambda job: self.walltime[job] * (1 if order == "sjf" else -1))  # stable
        planned = {}
        for job in jobs:
            planned[job] = idle.earliest(self.cores[job], self.walltime[job])
            idle.add(planned[job], planned[job] + self.walltime[job], -self.cores[job])
        return planned

    def _planned(self, now: int, submission: bool) -> dict[int, int]:
        """Decide where a decision is due, and return the plan in force."""
        policy, waiting = self.policy, self.waiting
        due = len(waiting) >= policy.least and (submission or policy.when == "full")
        if due and policy.kind == "bounds":
            asked, n = sum(self.walltime[job] for _, job in waiting), len(waiting)
            above = (asked > policy.lower * n) + (asked > policy.upper * n)
            self.order = ("sjf", "fcfs", "ljf")[above]
        if not due or policy.kind != "self-tuning":
            return self._plan(now, self.order)
        plans = {order: self._plan(now, order) for order in ORDERS}
        before = self.order
        scores = {order: self._score(plan) for order, plan in plans.items()}
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
        ends = {job: begin + self.walltime[job] for job, begin in planned.items()}
        if metric == "makespan":
            return max(ends.values())
        total: int | Fraction = 0
        for job, end in ends.items():
            response, cores, walltime = end - self.submit[job], self.cores[job], self.walltime[job]
            if metric == "art":
                total += response
            elif metric in {"art_ww", "sld_wa"}:  # slowdown times core-seconds is response times cores
                total += response * cores
            elif metric == "art_wa":
                total += response * cores * walltime
            else:
                total += Fraction(response * (cores if metric == "sld_ww" else 1), walltime)
        return total

    def _promised(self, now: int, ended: list[int], new: list[int]) -> dict[int, int]:
        """Give back what ended early, let old promises come nearer, and promise the new jobs a start."""
        self.idle.forget(now)
        early = False
        for job in ended:
            expected = self.start[job] + self.walltime[job]
            if expected > now:
                early = True
                self.idle.add(now, expected, self.cores[job])
        for _, job in self.waiting:
            if job in new or (early and self.promise[job] > now):
                if job not in new:
                    begin = self.promise[job]
                    self.idle.add(begin, begin + self.walltime[job], self.cores[job])
                begin = self.idle.earliest(self.cores[job], self.walltime[job])
                self.idle.add(begin, begin + self.walltime[job], -self.cores[job])
                self.promise[job] = begin
        return {job: self.promise[job] for _, job in self.waiting}
