"""The slow, obvious planner that `parsim.plan` is compared with.

It shares nothing with `parsim` but the dataclasses of its input. What is planned is a list of blocks, scores are the
metrics themselves, as fractions, and the orders are made by sorting.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from parsim.naive.simulator import Block, downtimes, earliest, runs_at, started_before
from parsim.planning import Policy
from parsim.state import State
from parsim.system import System
from parsim.workload import Workload

ORDERS = ("fcfs", "sjf", "ljf")


@dataclass
class NaiveRun:
    """Start of every job in row order; each decision: order before, orders of least score, choice."""

    start: list[int]
    decisions: list[tuple[str, tuple[str, ...], str]] = field(default_factory=list)
    started_under: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ORDERS, 0))
    seconds: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ORDERS, 0))
    promised: dict[int, int] = field(default_factory=dict)
    promises: list[tuple[int, int]] = field(default_factory=list)


class NaivePlanner:
    def __init__(self, workload: Workload, cores: int, policy: Policy, state: State | None = None) -> None:
        self.machine, self.policy = cores, policy
        self.submit = [int(x) for x in workload.submit]
        self.cores = [int(x) for x in workload.cores]
        self.walltime = [int(x) for x in workload.walltime]
        self.length = [min(int(r), int(w)) for r, w in zip(workload.runtime, workload.walltime, strict=True)]
        self.n = len(self.submit)
        self.start = started_before(workload, state)
        self.running = runs_at(workload, state)
        self.downtimes = downtimes(System.single(cores), state)
        self.begin = min(self.submit, default=0) if state is None else state.begin
        self.run = NaiveRun([])
        self.order = policy.order

    def earliest(self, now: int, job: int, booked: list[Block]) -> int:
        return earliest(self.machine, booked, self.cores[job], now, self.walltime[job])

    def out_of_service(self, now: int) -> list[Block]:
        known = [d for d in self.downtimes if d.known_from <= now < d.end]
        return [Block(0, d.begin, d.known_end, d.cores_of[0]) for d in known]

    def booking(self, job: int, begin: int) -> Block:
        return Block(0, begin, begin + self.walltime[job], self.cores[job])

    def sort(self, jobs: list[int], order: str) -> list[int]:
        if order == "fcfs":
            return sorted(jobs, key=lambda j: (self.submit[j], j))
        sign = 1 if order == "sjf" else -1
        return sorted(jobs, key=lambda j: (sign * self.walltime[j], self.submit[j], j))

    def plan(self, now: int, jobs: list[int]) -> dict[int, int]:
        booked = [self.booking(j, self.start[j]) for j in self.running] + self.out_of_service(now)
        planned = {}
        for job in jobs:
            planned[job] = self.earliest(now, job, booked)
            booked.append(self.booking(job, planned[job]))
        return planned

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
        """Choose the order, and return the plan that is in force until the next event."""
        before = self.order
        standing = self.policy.what_if == "standing"
        plans = {order: self.plan(now, self.sort(self.waiting, order)) for order in ORDERS}
        made = [plans[order] for order in ORDERS if not (standing and order == "fcfs" and before != "fcfs")]
        counted = [j for j in self.waiting if all(plan[j] < math.inf for plan in made)]  # rule 32
        scores = {order: self.score({j: plans[order][j] for j in counted}) for order in ORDERS}
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
        """Conservative backfilling: promises, which may only come nearer."""
        promised = self.run.promised
        if known:  # rule 32
            for job in self.waiting:
                promised.pop(job, None)
            new, early = self.waiting, False
        old = [j for j in self.sort(self.waiting, "fcfs") if j not in new]
        for job in old if early else []:
            others = [self.booking(j, self.start[j]) for j in self.running] + self.out_of_service(now)
            others += [self.booking(j, promised[j]) for j in old if j != job]
            promised[job] = self.earliest(now, job, others)
            self.run.promises.append((job, promised[job]))
        for job in self.sort(new, "fcfs"):
            others = [self.booking(j, self.start[j]) for j in self.running] + self.out_of_service(now)
            others += [self.booking(j, promised[j]) for j in self.waiting if j in promised]
            promised[job] = self.earliest(now, job, others)
            self.run.promises.append((job, promised[job]))
        return {j: promised[j] for j in self.waiting}

    def simulate(self) -> NaiveRun:
        self.waiting: list[int] = []
        conservative = self.policy.kind == "conservative"
        before = self.begin
        arrive = [max(submit, self.begin) for submit in self.submit]
        now = self.begin - 1
        while len(self.start) < self.n or self.running:
            instants = [self.start[j] + self.length[j] for j in self.running]
            instants += [arrive[j] for j in range(self.n) if j not in self.start and j not in self.waiting]
            instants += [t for d in self.downtimes for t in (d.known_from, d.end) if t > now]
            instants += [self.run.promised[j] for j in self.waiting] if conservative else []
            last, now = now, min(instants)
            self.run.seconds[self.order] += now - before
            before = now
            ended = [j for j in self.running if self.start[j] + self.length[j] == now]
            self.running = [j for j in self.running if j not in ended]
            new = [j for j in range(self.n) if arrive[j] <= now and j not in self.waiting and j not in self.start]
            self.waiting += new
            if not self.waiting:
                continue
            if conservative:
                early = any(self.length[j] < self.walltime[j] for j in ended)
                known = any(last < d.known_from <= now < d.end for d in self.downtimes)
                known |= any(d.known_from <= last < d.end <= now and d.known_end > now for d in self.downtimes)
                planned = self.keep(now, new, early, known)
            else:
                planned = self.replan(now, bool(new))
            for job in [j for j in self.waiting if planned[j] == now]:
                self.waiting.remove(job)
                self.start[job] = now
                self.running.append(job)
                self.run.started_under[self.order] += 1
        self.run.start = [self.start[j] for j in range(self.n)]
        return self.run


def naive_plan(workload: Workload, cores: int, policy: Policy, state: State | None = None) -> NaiveRun:
    return NaivePlanner(workload, cores, policy, state).simulate()
