"""Multiple-queue backfilling of the reference simulator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from parsim.model.state import State
from parsim.model.system import System
from parsim.model.workload import Workload
from parsim.naive.simulator import (
    Block,
    NaiveSchedule,
    downtimes,
    earliest,
    fits,
    on_machine,
    runs_at,
    simulate_by,
    started_before,
    to_the_end,
)


def simulate_multiqueue(
    workload: Workload, cores: int, limits: tuple[int, ...], state: State | None = None
) -> NaiveSchedule:
    """Simulate multiple-queue backfilling; ``limits`` (walltimes) separate the len(limits) + 1 classes.

    References
    ----------
    Lawson and Smirni, JSSPP 2002.
    """
    system = System(cores, mode="multiqueue", class_limits=limits)
    return simulate_by(lambda _, __, *of: to_the_end(Multiqueue(*of)), workload, system, state)


class Multiqueue:
    """A machine with classes of walltime; the first waiting job of each class, its pivot, is planned."""

    def __init__(self, workload: Workload, system: System, state: State | None = None) -> None:
        self.machine, self.limits, cores = system.cores, system.class_limits, system.cores
        self.workload = workload
        self.n = len(workload)
        self.submit = self.submitted = [int(x) for x in workload.submit]
        self.cores = [int(x) for x in workload.cores]
        self.walltime = [int(x) for x in workload.walltime]
        self.runtime = [min(int(r), w) for r, w in zip(workload.runtime, self.walltime, strict=True)]
        self.job_class = [sum(limit < w for limit in self.limits) for w in self.walltime]
        self.cores_on = [{0: width} for width in self.cores]
        self.start = [0] * self.n
        self.began = started_before(workload, state)
        for j, instant in self.began.items():
            self.start[j] = instant
        self.waiting: list[int] = []
        self.running = runs_at(workload, state)
        self.windows = downtimes(System.single(cores), state)
        self.begin = min(self.submit, default=0) if state is None else state.begin
        self.now = self.begin - 1
        self.begun: list[int] = []  # jobs started in this pass, in order
        self.plans: list[tuple[int, Block]] = []  # of the waiting pivots, in order of submit
        self.ahead: dict[int, list[int]] = {}  # started job -> the pivots submitted before it

    def block(self, j: int, begin: float) -> Block:
        return Block(0, begin, begin + self.walltime[j], self.cores[j])

    def taken(self) -> list[Block]:
        """Return the blocks of running jobs and windows."""
        known = [d for d in self.windows if d.known_from <= self.now < d.end]
        out = [Block(0, d.begin, d.known_end, d.cores_of[0]) for d in known]
        return [self.block(k, self.start[k]) for k in self.running] + out

    def pivots(self) -> list[int]:
        """Return the first waiting job of each class, in order of submit."""
        first: dict[int, int] = {}
        for j in sorted(self.waiting, key=lambda j: (self.submit[j], j)):
            first.setdefault(self.job_class[j], j)
        return sorted(first.values(), key=lambda j: (self.submit[j], j))

    def plan_pivots(self) -> list[tuple[int, Block]]:
        plans: list[tuple[int, Block]] = []
        for j in self.pivots():
            blocks = self.taken() + [b for _, b in plans]
            begin = earliest(self.machine, blocks, self.cores[j], self.now, self.walltime[j])
            plans.append((j, self.block(j, begin)))
        return plans

    def start_job(self, j: int) -> None:
        self.start[j] = self.now
        self.ahead[j] = [k for k in self.pivots() if (self.submit[k], k) < (self.submit[j], j)]
        self.waiting.remove(j)
        self.running.append(j)
        self.begun.append(j)

    def idle(self) -> int:
        return self.machine - sum(self.cores[k] for k in self.running)

    def passes(self) -> Iterator[None]:
        """Simulate pass by pass: yield after each, with its instant in `now`."""
        pending = [j for j in range(self.n) if j not in self.began]
        pending.sort(key=lambda j: (self.submit[j], j), reverse=True)
        while pending or self.running or self.waiting:
            instants = [self.start[k] + self.runtime[k] for k in self.running]
            instants += [max(self.begin, self.submit[j]) for j in pending[-1:]]
            instants += [t for d in self.windows for t in (d.known_from, d.end) if t > self.now]
            self.now = min(instants)
            self.running = [k for k in self.running if self.start[k] + self.runtime[k] > self.now]
            while pending and self.submit[pending[-1]] <= self.now:
                self.waiting.append(pending.pop())
            self.begun, self.plans = [], []
            if self.idle():  # else no job can start
                self.one_pass()
            yield

    def one_pass(self) -> None:
        self.plans = self.plan_pivots()
        while any(b.begin == self.now for _, b in self.plans):
            self.start_job(next(j for j, b in self.plans if b.begin == self.now))
            self.plans = self.plan_pivots()
        pivots = {j for j, _ in self.plans}
        others = [j for j in self.waiting if j not in pivots]
        for j in sorted(others, key=lambda j: (self.job_class[j], self.submit[j], j)):
            if self.cores[j] <= self.idle():
                blocks = self.taken() + [b for _, b in self.plans]
                if fits(self.machine, blocks, self.cores[j], self.now, self.walltime[j]):
                    self.start_job(j)

    def schedule(self) -> NaiveSchedule:
        return on_machine(self.workload, self.start)

    def obstacle(self, j: int, rows: Sequence[int]) -> tuple[str, str]:
        """Return the kind and text of the reason that j waits; messages number job k as ``rows[k]``."""
        if self.cores[j] > self.idle():
            return "capacity", f"{self.idle()} cores are idle"
        plans = " and ".join(f"job {rows[k]} at {b.begin}" for k, b in self.plans)
        return "head job", f"the first of their classes are planned: {plans}"
