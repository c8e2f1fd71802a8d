"""The slow, obvious simulator that everything fast is compared with.

It shares nothing with `parsim` but the dataclasses of its input. Every pass forgets all but the running and the
waiting jobs, ratios are fractions, and instants are found by trying candidates and looking at every moment of
the interval. The numbered rules are those of ``docs/reference/simulator.md``.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from parsim.system import System
from parsim.workload import Workload

NAMED_ORDERS = ("fcfs", "sjf", "ljf", "lxf", "wfp3")
RESERVED = -1  # home of the jobs that start by advance reservation


@dataclass
class NaiveSchedule:
    """Start of every job, and its cores on each partition, in the workload's row order."""

    start: list[int]
    placement: list[dict[str, int]]


def on_machine(workload: Workload, start: list[int]) -> NaiveSchedule:
    """Return a schedule on a machine that is not divided."""
    return NaiveSchedule(start, [{"machine": int(cores)} for cores in workload.cores])


class Block(NamedTuple):
    """Cores of one partition that are taken throughout [begin, end)."""

    partition: int
    begin: int
    end: int
    cores: int


class TopJob(NamedTuple):
    """The head job of a shared machine that plans limits or nodes."""

    job: int
    shadow: int
    cores_of: list[int]  # what it holds of each node


class Running(NamedTuple):
    job: int
    start: int
    cores_on: dict[int, int]  # partition -> cores


def exact(number: float) -> Fraction:
    """Return the decimal number that was written, not its binary neighbour."""
    return Fraction(repr(float(number)))


# --- formulas


class UndefinedError(Exception):
    """An operation of a formula has no value."""


def _defined(function: Callable[..., float], *arguments: float) -> float:
    try:
        value = function(*arguments)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise UndefinedError from None
    if not math.isfinite(value):
        raise UndefinedError
    return value


def power(x: float, y: float) -> float:
    """Return x to the y; a square is a product, and the power 2.5 one with a square root."""
    if y == 2.5:
        return x * x * math.sqrt(x)
    return x * x if y == 2 else math.pow(x, y)


BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: power,
}
COMPARE = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
FUNCTIONS = {
    "min": lambda *values: min(values),
    "max": lambda *values: max(values),
    "abs": abs,
    "pow": power,
    "log": math.log,
    "sqrt": math.sqrt,
    "floor": lambda value: float(math.floor(value)),
}


def _value(node: ast.AST, names: dict[str, float]) -> float:
    match node:
        case ast.Constant(value=bool()):
            raise ValueError("a formula has no True and False")
        case ast.Constant(value=int() | float() as number):
            return _defined(float, number)
        case ast.Name(id=name):
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand, names)
        case ast.BinOp(left=left, op=op, right=right):
            return _defined(BINARY[type(op)], _value(left, names), _value(right, names))
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            values = [_value(operand, names) for operand in (left, *comparators)]
            pairs = zip(ops, values, values[1:], strict=False)
            return float(all(COMPARE[type(op)](a, b) for op, a, b in pairs))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _value(body if _value(test, names) else orelse, names)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return _defined(FUNCTIONS[name], *(_value(argument, names) for argument in args))
    raise ValueError(f"a formula has no {type(node).__name__}")


def formula_value(formula: str, **names: float) -> float:
    """Evaluate ``formula`` in float64; 0 where an operation on the branches taken is undefined (rule 8)."""
    tree = ast.parse(formula.strip(), mode="eval").body
    try:
        return _value(tree, {name: float(value) for name, value in names.items()})
    except UndefinedError:
        return 0.0


# --- partitions


def free_at(capacity: int, blocks: list[Block], moment: int) -> int:
    return capacity - sum(b.cores for b in blocks if b.begin <= moment < b.end)


def fits(capacity: int, blocks: list[Block], cores: int, begin: int, walltime: int) -> bool:
    """Whether ``cores`` of a partition are free throughout [begin, begin + walltime) beside its ``blocks``.

    Free cores fall only where a block begins, so these are the moments to look at.
    """
    moments = [begin, *(b.begin for b in blocks if begin < b.begin < begin + walltime)]
    return all(free_at(capacity, blocks, moment) >= cores for moment in moments)


def earliest(capacity: int, blocks: list[Block], cores: int, now: int, walltime: int) -> int:
    """Return the first instant from ``now`` on at which it fits: now, or the end of a block."""
    candidates = sorted({now} | {b.end for b in blocks if b.end > now})
    return next(t for t in candidates if fits(capacity, blocks, cores, t, walltime))


# --- simulator


class _Simulation:
    def __init__(self, workload: Workload, system: System) -> None:
        self.system = system
        self.n = len(workload)
        self.submit = [int(x) for x in workload.submit]
        self.cores = [int(x) for x in workload.cores]
        self.walltime = [int(x) for x in workload.walltime]
        self.runtime = [min(int(r), w) for r, w in zip(workload.runtime, self.walltime, strict=True)]
        self.queue_index = [int(x) for x in workload.queue]
        self.user = [int(x) for x in workload.user]

        self.capacity = list(system.partition_cores)
        self.shared = system.mode == "shared"
        self.pool = len(self.capacity) - 1  # partition number of the pool, meaningless on a shared machine
        self.pool_cores = system.pool_cores
        self.plans_limits = self.shared and system.held_jobs == "reserve"
        self.by_nodes = self.shared and system.reserve == "nodes"
        size = system.cores_per_node
        self.nodes = (
            [min(size, system.cores - first) for first in range(0, system.cores, size)] if self.by_nodes else []
        )
        self.combined = self.pool_cores > 0 and system.pool.placement == "combined"
        self.move = self.pool_cores > 0 and system.pool.entry == "move"

        self.now = 0
        self.waiting: set[int] = set()
        self.running: list[Running] = []
        self.moved: set[int] = set()  # jobs that left their partition's list for the pool
        self.eligible_time = [0] * self.n
        self.held_in_last_pass: set[int] = set()
        self.last_pass: int | None = None
        self.start = [0] * self.n
        self.cores_on: list[dict[int, int]] = [{} for _ in range(self.n)]
        self.nodes_of: dict[int, list[int]] = {}  # running job -> its cores of each node

        # What one pass finds, forgotten before the next.
        self.head_jobs: set[int] = set()
        self.head_job_of: dict[int, tuple[int, Block]] = {}  # partition -> (its head job, that job's block)
        self.reservation: list[Block] = []
        self.top_job: TopJob | None = None

    # --- job by job

    def queue(self, j: int):
        return self.system.queues[self.queue_index[j]]

    def home(self, j: int) -> int:
        """Rule 9."""
        if self.shared:
            return 0
        if j in self.moved:
            return self.pool
        if self.cores[j] <= self.queue(j).partition:
            return self.queue_index[j]
        if self.cores[j] <= self.pool_cores:
            return self.pool
        return RESERVED

    def starving_from(self, j: int) -> int | None:
        period = self.queue(j).starvation
        return None if period is None else self.submit[j] + period

    def starves(self, j: int) -> bool:
        instant = self.starving_from(j)
        return instant is not None and self.now >= instant

    def capped_walltime(self, j: int) -> int:
        return min(self.walltime[j], self.queue(j).walltime[1])

    def eligible_from(self, j: int) -> int | None:
        """Rule 15: e of a job whose home is a partition and that the pool may take, else None."""
        if self.shared or self.pool_cores == 0 or self.cores[j] > self.queue(j).partition:
            return None
        if self.cores[j] > self.pool_cores and not self.combined:
            return None
        wait = exact(self.system.pool.threshold) / exact(self.queue(j).priority) * self.capped_walltime(j)
        return self.submit[j] + math.ceil(wait)

    def eligible(self, j: int) -> bool:
        if self.home(j) == self.pool:
            return True
        instant = self.eligible_from(j)
        return instant is not None and self.now >= instant

    def held(self, j: int) -> bool:
        """Rules 4 and 22."""
        running = [r.job for r in self.running]
        if not self.plans_limits:
            return self.above_limits(j, running + [h for h in self.head_jobs if h != j])
        if self.above_limits(j, running):
            return True
        if not self.runs_past(j):
            return False
        return self.above_limits(j, [*self.running_after(self.top_job.shadow), self.top_job.job])

    def expected_end(self, r: Running) -> int:
        return r.start + self.walltime[r.job]

    def running_after(self, instant: int) -> list[int]:
        return [r.job for r in self.running if self.expected_end(r) > instant]

    def above_limits(self, j: int, others: list[int]) -> bool:
        """Whether j beside these others would be above a limit that concerns j."""
        queue = self.queue(j)
        same_queue = [k for k in others if self.queue_index[k] == self.queue_index[j]]
        if queue.max_run is not None and len(same_queue) + 1 > queue.max_run:
            return True
        if (
            queue.max_run_cores is not None
            and sum(self.cores[k] for k in same_queue) + self.cores[j] > queue.max_run_cores
        ):
            return True
        if self.user[j] == -1:
            return False
        own = [k for k in same_queue if self.user[k] == self.user[j]]
        if queue.max_user_run is not None and len(own) + 1 > queue.max_user_run:
            return True
        return (
            queue.max_user_cores is not None and sum(self.cores[k] for k in own) + self.cores[j] > queue.max_user_cores
        )

    # --- orders

    def list_key(self, j: int) -> tuple:
        """Rule 6: what comes first has the least key."""
        order, w, wait = self.system.order, self.walltime[j], self.now - self.submit[j]
        if order not in NAMED_ORDERS:
            value = formula_value(
                order,
                queue_priority=self.queue(j).priority,
                eligible_time=self.eligible_time[j],
                walltime=w,
                ncpus=self.cores[j],
                job_priority=0,
            )
            return (-value, self.submit[j], j)
        if self.starves(j):
            return (0, self.submit[j], j)
        by_order = {
            "fcfs": lambda: 0,
            "sjf": lambda: w,
            "ljf": lambda: -w,
            "lxf": lambda: -Fraction(wait + w, w),
            "wfp3": lambda: -(Fraction(wait, w) ** 3) * self.cores[j],
        }[order]()
        return (1, -self.queue(j).priority, by_order, self.submit[j], j)

    def pool_key(self, j: int) -> tuple:
        """Rule 7."""
        if self.system.pool.starving_first and self.starves(j):
            return (0, self.submit[j], j)
        factor = Fraction(self.now - self.submit[j], self.capped_walltime(j)) * exact(self.queue(j).priority)
        return (1, -factor, self.submit[j], j)

    # --- event loop

    def run(self) -> None:
        pending = sorted(range(self.n), key=lambda j: (self.submit[j], j), reverse=True)
        while pending or self.waiting or self.running:
            instants = [r.start + self.runtime[r.job] for r in self.running]
            instants += [self.submit[j] for j in pending[-1:]]
            for j in self.waiting:
                wake_ups = (self.starving_from(j), self.eligible_from(j))
                instants += [t for t in wake_ups if t is not None and t > self.now]
            if not instants:
                raise RuntimeError(f"jobs {sorted(self.waiting)} wait for ever")
            self.now = min(instants)
            self.running = [r for r in self.running if r.start + self.runtime[r.job] > self.now]
            while pending and self.submit[pending[-1]] == self.now:
                self.waiting.add(pending.pop())
            self.one_pass()

    def one_pass(self) -> None:
        for j in self.waiting:  # rule 5
            if self.submit[j] < self.now and j not in self.held_in_last_pass:
                self.eligible_time[j] += self.now - self.last_pass
        self.last_pass = self.now
        self.held_in_last_pass = set()
        self.head_jobs, self.head_job_of, self.reservation = set(), {}, []
        self.top_job = None

        if self.plans_limits or self.by_nodes:
            self.visit_planning(sorted(self.waiting, key=self.list_key))
            return
        if self.shared:
            self.visit(0, sorted(self.waiting, key=self.list_key))
            return
        if self.move:  # rule 16
            self.moved |= {j for j in self.waiting if self.cores[j] <= self.pool_cores and self.eligible(j)}
        self.visit_reserved()
        for partition in range(self.pool):
            self.visit(partition, sorted((j for j in self.waiting if self.home(j) == partition), key=self.list_key))
        if self.pool_cores:
            self.visit(self.pool, sorted((j for j in self.waiting if self.eligible(j)), key=self.pool_key))

    def begin(self, j: int, cores_on: dict[int, int]) -> None:
        self.waiting.remove(j)
        self.head_jobs.discard(j)
        self.start[j] = self.now
        self.cores_on[j] = cores_on
        self.running.append(Running(j, self.now, cores_on))

    def expected(self, partition: int) -> list[Block]:
        """Return what the running jobs hold of a partition, until the ends that their walltimes promise."""
        on_partition = [r for r in self.running if partition in r.cores_on]
        return [Block(partition, r.start, self.expected_end(r), r.cores_on[partition]) for r in on_partition]

    def promised(self, partition: int) -> list[Block]:
        """Return what the running jobs and the standing reservation hold of a partition."""
        return self.expected(partition) + [block for block in self.reservation if block.partition == partition]

    # --- lists

    def visit(self, partition: int, jobs: list[int]) -> None:
        """Rule 3: go once over the list of a partition."""
        found = False
        for j in jobs:
            if self.held(j):
                if self.home(j) == partition:
                    self.held_in_last_pass.add(j)
                continue
            cores_on = self.placement(partition, j)
            if cores_on is not None:
                self.begin(j, cores_on)
            elif not found and self.cores[j] <= self.capacity[partition] and self.may_be_head_job(j):
                found = True
                c, w = self.cores[j], self.walltime[j]
                instant = earliest(self.capacity[partition], self.promised(partition), c, self.now, w)  # rule 12
                self.head_jobs.add(j)
                self.head_job_of[partition] = (j, Block(partition, instant, instant + w, c))
                if not self.system.backfill:
                    break

    def visit_planning(self, jobs: list[int]) -> None:
        """Rules 20 to 24: go once over the list of a shared machine that plans limits or nodes."""
        for j in jobs:
            held = self.held(j)
            if held:
                self.held_in_last_pass.add(j)
            may_take = self.idle_nodes(self.now)
            if self.runs_past(j):  # rule 24
                later = zip(self.idle_nodes(self.top_job.shadow), self.top_job.cores_of, strict=True)
                may_take = [min(now, then - its) for now, (then, its) in zip(may_take, later, strict=True)]
            if not held and sum(may_take) >= self.cores[j]:
                self.nodes_of[j] = self.take(may_take, self.cores[j])
                self.begin(j, {0: self.cores[j]})
            elif self.top_job is None and (self.plans_limits or not held) and self.may_be_head_job(j):
                instants = [self.expected_end(r) for r in self.running]
                shadow = min(t for t in instants if self.may_start_at(t, j))
                self.top_job = TopJob(j, shadow, self.take(self.idle_nodes(shadow), self.cores[j]))
                self.head_jobs.add(j)
                if not self.system.backfill:
                    break

    def may_start_at(self, instant: int, j: int) -> bool:
        """Rule 21."""
        held = self.plans_limits and self.above_limits(j, self.running_after(instant))
        return not held and sum(self.idle_nodes(instant)) >= self.cores[j]

    def runs_past(self, j: int) -> bool:
        return self.top_job is not None and self.now + self.walltime[j] > self.top_job.shadow

    def idle_nodes(self, instant: int) -> list[int]:
        """Return the cores of each node that are idle then by the expected ends; without nodes, of the machine."""
        if not self.by_nodes:
            return [self.capacity[0] - sum(self.cores[k] for k in self.running_after(instant))]
        taken = [self.nodes_of[k] for k in self.running_after(instant)]
        return [size - sum(cores[node] for cores in taken) for node, size in enumerate(self.nodes)]

    def take(self, most: list[int], cores: int) -> list[int]:
        """Rule 23: from the first node on, of each as many as may be taken."""
        taken = []
        for here in most:
            taken.append(min(here, cores - sum(taken)))
        return taken

    def may_be_head_job(self, j: int) -> bool:
        """Whether j has waited for the reservation delay of a shared machine."""
        delayed = self.shared and self.system.backfill
        return not delayed or self.now >= self.submit[j] + self.system.reserve_after

    def may_start(self, partition: int, j: int, cores: int) -> bool:
        """Rules 11 and 12: now, beside the reservation and, unless j is it, the head job that still waits."""
        head_jobs = [self.head_job_of[partition]] if partition in self.head_job_of else []
        blocks = self.promised(partition) + [b for k, b in head_jobs if k != j and k in self.waiting]
        return fits(self.capacity[partition], blocks, cores, self.now, self.walltime[j])

    def placement(self, partition: int, j: int) -> dict[int, int] | None:
        """Return the partitions on which j may start now, at its turn in the list of ``partition``."""
        c = self.cores[j]
        if self.may_start(partition, j, c):
            return {partition: c}
        if self.shared or partition != self.pool or not self.combined:
            return None
        own = self.queue_index[j]  # rule 17
        most = max((n for n in range(1, c) if self.may_start(own, j, n)), default=0)
        if most >= 1 and self.may_start(self.pool, j, c - most):
            return {own: most, self.pool: c - most}
        return None

    # --- reservations

    def visit_reserved(self) -> None:
        for g in sorted((j for j in self.waiting if self.home(j) == RESERVED), key=lambda j: (self.submit[j], j)):
            if self.held(g):
                self.held_in_last_pass.add(g)
                continue
            blockers = [j for j in self.waiting if self.starves(j) and (self.submit[j], j) < (self.submit[g], g)]
            closed = {self.home(j) for j in blockers}
            usable = [partition for partition in range(len(self.capacity)) if partition not in closed]  # rule 10
            if sum(self.capacity[partition] for partition in usable) < self.cores[g]:
                return  # rule 14
            instant, shares = self.divide(g, usable)
            if instant == self.now:
                self.begin(g, shares)
                continue
            end = instant + self.walltime[g]
            self.reservation = [Block(partition, instant, end, cores) for partition, cores in shares.items()]
            self.head_jobs.add(g)
            return

    def divide(self, g: int, usable: list[int]) -> tuple[int, dict[int, int]]:
        """Rule 13: T of the head job of the reserved list, and its shares that are not 0."""
        need = self.cores[g]
        blocks = {partition: self.expected(partition) for partition in usable}
        for instant in sorted({self.now} | {b.end for partition in usable for b in blocks[partition]}):
            free = {partition: free_at(self.capacity[partition], blocks[partition], instant) for partition in usable}
            if sum(free.values()) >= need:
                break
        shares = {partition: need * free[partition] // sum(free.values()) for partition in usable}
        by_free = sorted(usable, key=lambda partition: (-free[partition], partition))  # the pool has the largest number
        for partition in by_free[: need - sum(shares.values())]:
            shares[partition] += 1
        return instant, {partition: cores for partition, cores in shares.items() if cores}


def simulate(workload: Workload, system: System) -> NaiveSchedule:
    """Simulate a shared, partitioned or hybrid machine."""
    simulation = _Simulation(workload, system)
    simulation.run()
    names = system.partition_names
    return NaiveSchedule(
        start=simulation.start,
        placement=[{names[partition]: n for partition, n in cores_on.items()} for cores_on in simulation.cores_on],
    )


# --- multiple-queue backfilling


def simulate_multiqueue(workload: Workload, cores: int, limits: tuple[int, ...]) -> NaiveSchedule:
    """Simulate multiple-queue backfilling, with len(limits) + 1 classes that meet at ``limits``.

    References
    ----------
    Lawson and Smirni, JSSPP 2002.
    """
    n = len(workload)
    submit = [int(x) for x in workload.submit]
    width = [int(x) for x in workload.cores]
    walltime = [int(x) for x in workload.walltime]
    runtime = [min(int(r), w) for r, w in zip(workload.runtime, walltime, strict=True)]
    job_class = [sum(limit < w for limit in limits) for w in walltime]
    start = [0] * n
    pending = sorted(range(n), key=lambda j: (submit[j], j), reverse=True)
    waiting: list[int] = []
    running: list[int] = []

    def block(j: int, begin: int) -> Block:
        return Block(0, begin, begin + walltime[j], width[j])

    def planned_pivots(now: int) -> list[tuple[int, Block]]:
        first: dict[int, int] = {}
        for j in sorted(waiting, key=lambda j: (submit[j], j)):
            first.setdefault(job_class[j], j)
        plans: list[tuple[int, Block]] = []
        for j in sorted(first.values(), key=lambda j: (submit[j], j)):
            blocks = [block(k, start[k]) for k in running] + [b for _, b in plans]
            plans.append((j, block(j, earliest(cores, blocks, width[j], now, walltime[j]))))
        return plans

    def begin_job(j: int, now: int) -> None:
        start[j] = now
        waiting.remove(j)
        running.append(j)

    while pending or running:
        instants = [start[k] + runtime[k] for k in running] + [submit[j] for j in pending[-1:]]
        now = min(instants)
        running = [k for k in running if start[k] + runtime[k] > now]
        while pending and submit[pending[-1]] == now:
            waiting.append(pending.pop())

        plans = planned_pivots(now)
        while any(b.begin == now for _, b in plans):
            begin_job(next(j for j, b in plans if b.begin == now), now)
            plans = planned_pivots(now)
        pivots = {j for j, _ in plans}
        others = [j for j in waiting if j not in pivots]
        for j in sorted(others, key=lambda j: (job_class[j], submit[j], j)):
            blocks = [block(k, start[k]) for k in running] + [b for _, b in plans]
            if fits(cores, blocks, width[j], now, walltime[j]):
                begin_job(j, now)
    return on_machine(workload, start)
