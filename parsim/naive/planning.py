"""Reference planner, slow and obvious: the oracle for the tests of `parsim.plan`.

It shares only the dataclasses of its input with `parsim`. Plans are one profile of idle cores, scores are the metrics
as exact fractions, orders are sorts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from parsim.model.state import State
from parsim.model.system import System
from parsim.model.workload import Workload
from parsim.naive.profile import Profile
from parsim.naive.simulator import downtimes, runs_at, started_before
from parsim.planning.plan import Policy

ORDERS = ("fcfs", "sjf", "ljf")


@dataclass
class NaiveRun:
    """Start of every job in row order; each decision as (order before, orders of lowest score, chosen order)."""

    start: list[int]
    decisions: list[tuple[str, tuple[str, ...], str]] = field(default_factory=list)
    started_under: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ORDERS, 0))
    seconds: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ORDERS, 0))
    promised: dict[int, int] = field(default_factory=dict)
    promises: list[tuple[int, int]] = field(default_factory=list)


class NaivePlanner:
    """A planning scheduler during a simulation."""

    def __init__(self, workload: Workload, cores: int, policy: Policy, state: State | None = None) -> None:
        self.machine, self.policy = cores, policy
        self.submit = [int(x) for x in workload.submit]
        self.cores = [int(x) for x in workload.cores]
        self.walltime = [int(x) for x in workload.walltime]
        self.length = [min(int(r), int(w)) for r, w in zip(workload.runtime, workload.walltime, strict=True)]
        self.n = len(self.submit)
        self.began = started_before(workload, state)
        self.start = dict(self.began)
        self.running = runs_at(workload, state)
        self.downtimes = downtimes(System.single(cores), state)
        self.begin = min(self.submit, default=0) if state is None else state.begin
        self.run = NaiveRun([])
        self.order = policy.order
        self.now = self.begin - 1
        self.waiting: list[int] = []
        self.begun: list[int] = []  # jobs started in this pass
        self.planned: dict[int, int] = {}  # waiting job -> its planned start
        self.cores_on = [{0: cores} for cores in self.cores]

    def beside_running(self, now: int) -> Profile:
        """Return the idle cores over time beside running jobs and known windows."""
        idle = Profile(now, self.machine)
        for job in self.running:
            self.book(idle, job, self.start[job])
        for d in self.downtimes:
            if d.known_from <= now < d.end:
                idle.add(d.begin, d.known_end, -d.cores_of[0])
        return idle

    def book(self, idle: Profile, job: int, begin: float, sign: int = -1) -> None:
        idle.add(begin, begin + self.walltime[job], sign * self.cores[job])

    def take_earliest(self, idle: Profile, job: int) -> float:
        return idle.take_earliest(self.cores[job], self.walltime[job])

    def sort(self, jobs: list[int], order: str) -> list[int]:
        if order == "fcfs":
            return sorted(jobs, key=lambda j: (self.submit[j], j))
        sign = 1 if order == "sjf" else -1
        return sorted(jobs, key=lambda j: (sign * self.walltime[j], self.submit[j], j))

    def plan(self, now: int, jobs: list[int]) -> dict[int, int]:
        idle = self.beside_running(now)
        return {job: self.take_earliest(idle, job) for job in jobs}

    def score(self, planned: dict[int, int]) -> Fraction:
        jobs = list(planned)
        if not jobs:
            return Fraction(0)
        end = {j: planned[j] + self.walltime[j] for j in jobs}
        metric = self.policy.metric
        if metric == "makespan":
            return Fraction(max(end.values()))
        response = {j: Fraction(end[j] - self.submit[j]) for j in jobs}
        value = response
        if metric.startswith("sld"):
            value = {j: response[j] / self.walltime[j] for j in jobs}
        weight = {j: Fraction(1) for j in jobs}
        if metric.endswith("_wa"):
            weight = {j: Fraction(self.cores[j] * self.walltime[j]) for j in jobs}
        if metric.endswith("_ww"):
            weight = {j: Fraction(self.cores[j]) for j in jobs}
        return sum((value[j] * weight[j] for j in jobs), Fraction(0)) / sum(weight.values())

    def decide(self, now: int) -> dict[int, int]:
        """Choose the order, and return the plan to follow until the next event."""
        before = self.order
        standing = self.policy.what_if == "standing"
        plans = {order: self.plan(now, self.sort(self.waiting, order)) for order in ORDERS}
        made = [order for order in ORDERS if not (standing and order == "fcfs" and before != "fcfs")]
        # rule "planning round windows"
        counted = [j for j in self.waiting if all(plans[order][j] < math.inf for order in made)]
        scores = {order: self.score({j: plans[order][j] for j in counted}) for order in made}
        if standing:
            scores["fcfs"] = scores[before]
        least = tuple(order for order in ORDERS if scores[order] == min(scores.values()))
        chosen = least[0]
        if self.policy.decider != "simple" and before in least:
            chosen = before
        if self.policy.decider == "preferred" and self.policy.preferred in least:
            chosen = self.policy.preferred
        self.run.decisions.append((before, least, chosen))
        self.order = chosen
        return plans["ljf"] if standing and chosen != before else plans[chosen]

    def replan(self, now: int, submitted: bool) -> dict[int, int]:
        decides = len(self.waiting) >= self.policy.least and (submitted or self.policy.when == "full")
        if self.policy.kind == "self-tuning" and decides:
            return self.decide(now)
        if self.policy.kind == "bounds" and decides:
            mean = Fraction(sum(self.walltime[j] for j in self.waiting), len(self.waiting))
            before = self.order
            if mean <= self.policy.lower:
                self.order = "sjf"
            elif mean <= self.policy.upper:
                self.order = "fcfs"
            else:
                self.order = "ljf"
            self.run.decisions.append((before, (), self.order))
        return self.plan(now, self.sort(self.waiting, self.order))

    def keep(self, now: int, new: list[int], early: bool, known: bool) -> dict[int, int]:
        """Conservative backfilling: return the promised starts, which only move earlier."""
        promised = self.run.promised
        if known:  # rule "planning round windows"
            for job in self.waiting:
                promised.pop(job, None)
            new, early = self.waiting, False
        old = [j for j in self.sort(self.waiting, "fcfs") if j not in new]
        if not (new or early):
            return {j: promised[j] for j in self.waiting}
        idle = self.beside_running(now)
        for job in old:
            self.book(idle, job, promised[job])
        for job in old if early else []:
            self.book(idle, job, promised[job], 1)
            promised[job] = self.take_earliest(idle, job)
            self.run.promises.append((job, promised[job]))
        for job in self.sort(new, "fcfs"):
            promised[job] = self.take_earliest(idle, job)
            self.run.promises.append((job, promised[job]))
        return {j: promised[j] for j in self.waiting}

    def passes(self) -> Iterator[None]:
        """Simulate pass by pass: yield after each, with its instant in `now`."""
        conservative = self.policy.kind == "conservative"
        before = self.begin
        arrive = [max(submit, self.begin) for submit in self.submit]
        pending = sorted((j for j in range(self.n) if j not in self.start), key=lambda j: arrive[j], reverse=True)
        while pending or self.waiting or self.running:
            instants = [self.start[j] + self.length[j] for j in self.running]
            instants += [arrive[j] for j in pending[-1:]]
            instants += [t for d in self.downtimes for t in (d.known_from, d.end) if t > self.now]
            instants += [self.run.promised[j] for j in self.waiting] if conservative else []
            last, self.now = self.now, min(instants)
            now = self.now
            self.run.seconds[self.order] += now - before
            before = now
            ended = [j for j in self.running if self.start[j] + self.length[j] == now]
            self.running = [j for j in self.running if self.start[j] + self.length[j] > now]
            new = []
            while pending and arrive[pending[-1]] <= now:
                new.append(pending.pop())
            self.waiting += new
            self.begun, self.planned = [], {}
            if self.waiting:
                if conservative:
                    early = any(self.length[j] < self.walltime[j] for j in ended)
                    known = any(last < d.known_from <= now < d.end for d in self.downtimes)
                    known |= any(d.known_from <= last < d.end <= now and d.known_end > now for d in self.downtimes)
                    self.planned = self.keep(now, new, early, known)
                else:
                    self.planned = self.replan(now, bool(new))
                self.begun = [j for j in self.waiting if self.planned[j] == now]
                for job in self.begun:
                    self.waiting.remove(job)
                    self.start[job] = now
                    self.running.append(job)
                    self.run.started_under[self.order] += 1
            yield

    def obstacle(self, j: int, rows: Sequence[int]) -> tuple[str, str]:
        """Return the kind and text of the reason that j waits; `rows` is not used here."""
        del rows
        return "order", f"is planned for {self.planned[j]} under {self.order}"

    def simulate(self) -> NaiveRun:
        for _ in self.passes():
            pass
        self.run.start = [self.start[j] for j in range(self.n)]
        return self.run


def naive_plan(workload: Workload, cores: int, policy: Policy, state: State | None = None) -> NaiveRun:
    return NaivePlanner(workload, cores, policy, state).simulate()
