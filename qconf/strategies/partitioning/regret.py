"""The distance of a division from the best one, by an exact search.

Queues on their own partitions do not interact, so the weighted mean wait is a sum of one term per queue, which depends
on the queue's size only. All terms are tabulated, then dynamic programming divides the machine. With too many sizes,
only every n-th is tabulated, then more around the best division, until all around it are. With reserved jobs, limits,
or an order other than fcfs the table is an estimate, and a local search on the simulator continues from its best
division.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from parsim import Workload
from parsim.metrics.tabulate import waits_by_size
from qconf.evaluation.evaluator import CachedEvaluator
from qconf.evaluation.period import TrainingSet, cached
from qconf.parallel import parallel_map
from qconf.strategies.base import Step, step
from qconf.strategies.partitioning.bounds import grid
from qconf.strategies.partitioning.descent import descend
from qconf.strategies.partitioning.divide import (
    Grid,
    best_division,
    best_proportional_division,
    nearly_best_proportional_division,
)
from qconf.strategies.partitioning.feasible import Feasible
from qconf.strategies.partitioning.sizes import PartitionSpace, Sizes, fixed_partition, proportional

LONGEST_SEARCH = 60  # most simulations of a local search
MOST_SIZES = 2048  # most tabulated sizes of a queue at once
MOST_WORK = 1e7  # most jobs times tabulated sizes at once, unless the window needs more sizes
GEOMETRIC = 256  # most sizes of a queue in the search for a first division within bounds
WINDOW = 2  # steps on each side of a division that the next grid covers
FINER = 8  # ratio of the steps of two successive grids
PIECES = 16  # pieces of a queue's sizes, for the workers


class WaitTable:
    """The contribution of each queue to the weighted mean wait at each size in nodes, seconds.

    A size is simulated when it is first needed. Reserved jobs, limits and starvation are ignored, which makes the table
    an estimate; so do weights of user groups, since all jobs of a queue count with the mean weight.
    """

    def __init__(self, training: TrainingSet, space: PartitionSpace, workers: int = 1) -> None:
        self.space, self.workers = space, workers
        self.waits = partial(waits_by_size, backfill=training.base.backfill)
        self.own = list(_own(training, space))  # not the training set itself, whose cache keeps this table
        self.known: list[dict[int, float]] = [{} for _ in space.queues]  # seconds by nodes

    def columns(self, sizes: Sequence[Sizes]) -> list[NDArray[np.float64]]:
        """Return the costs of each queue at its `sizes`, which ascend; infinite below its widest job."""
        tasks, where = [], []
        new = []
        for known, wanted, widest in zip(self.known, sizes, self.space.widest, strict=True):
            new.append(np.array([size for size in wanted.tolist() if size >= widest and size not in known], np.int64))
            known.update(dict.fromkeys(new[-1].tolist(), 0.0))
        for k, own, scale in self.own:
            for some in (new[k][piece::PIECES] for piece in range(PIECES)):
                if some.size:
                    tasks.append((own, some * self.space.node))
                    where.append((k, some, scale))
        for (k, some, scale), (waits, _) in zip(where, parallel_map(self.workers, self.waits, tasks), strict=True):
            for size, cost in zip(some.tolist(), (scale * waits).tolist(), strict=True):
                self.known[k][size] += cost
        return [
            np.array([known.get(size, np.inf) for size in wanted.tolist()])
            for known, wanted in zip(self.known, sizes, strict=True)
        ]


def _own(training: TrainingSet, space: PartitionSpace) -> Iterator[tuple[int, Workload, float]]:
    """Yield (queue, jobs, weight) by epoch: the weight of a second of one job's wait in the mean."""
    for weight, epoch in training.epochs:
        w, weights = epoch.workload, np.ones(len(epoch)) if epoch.weight is None else epoch.weight
        counted = float(weights[np.isin(w.queue, space.queues)].sum())
        for k, q in enumerate(space.queues):
            mine = w.queue == q
            if mine.any():
                yield k, w.take(mine), weight * float(weights[mine].mean()) / counted


@cached
def tabulate(training: TrainingSet, space: PartitionSpace, workers: int = 1) -> WaitTable:
    """Return the table of a training set, still empty."""
    return WaitTable(training, space, workers)


@dataclass(frozen=True, eq=False)
class Optimum:
    """The best division by the simulator, and by the table alone; weighted mean waits in seconds."""

    nodes: Sizes
    wait: float
    tabulated_nodes: Sizes
    tabulated: float  # wait of `tabulated_nodes` by the table; equals `wait` without doubts
    doubts: str  # why `nodes` may not be optimal, or is the free optimum; empty if proven
    simulations: int  # simulations of the local search, without those that chose its start


@step
class RegretStep(Step):
    """The distance of a division from the best ones."""

    title: ClassVar[str] = "regret"
    weighted_wait: float
    constrained_optimum: float
    above_constrained_percent: float
    free_optimum: float
    above_free_percent: float
    proven: bool


@dataclass(frozen=True)
class Regret:
    """The weighted mean wait of a division (seconds), and those of the best ones."""

    wait: float
    constrained: float  # of the best division under dp-nlp's constraints
    free: float  # of the best division without constraints
    proven: bool  # whether these are optima, or only the best divisions found

    @property
    def to_constrained(self) -> float:
        """Fraction above the constrained optimum: 0.05 is 5 %; below 0 only outside the constraints."""
        return self._above(self.constrained)

    @property
    def to_free(self) -> float:
        """Fraction above the free optimum: 0.05 is 5 %."""
        return self._above(self.free)

    def _above(self, best: float) -> float:
        return self.wait / best - 1 if best > 0 else 0.0 if self.wait <= 0 else np.inf

    def step(self) -> RegretStep:
        """Return the step of a strategy's log."""
        return RegretStep(
            weighted_wait=round(self.wait, 1),
            constrained_optimum=round(self.constrained, 1),
            above_constrained_percent=round(100 * self.to_constrained, 2) + 0.0,  # no -0.0
            free_optimum=round(self.free, 1),
            above_free_percent=round(100 * self.to_free, 2) + 0.0,
            proven=self.proven,
        )


def regret(training: TrainingSet, space: PartitionSpace, bounds: Feasible, nodes: Sizes, workers: int = 1) -> Regret:
    """Compare a division with the best ones for the same training set, free and under dp-nlp's bounds."""
    evaluator = CachedEvaluator(training, workers)
    wait = evaluator.measure(space.configured(training.base, nodes)).overall
    free = optimum(training, space, None, workers)
    best = optimum(training, space, bounds, workers)
    if not (best.doubts or free.doubts):
        return Regret(wait, best.wait, free.wait, proven=True)
    # The optimum is not proven: a better division replaces it.
    constrained = min(best.wait, wait) if bounds.keeps(nodes) else best.wait
    return Regret(wait, constrained, min(free.wait, constrained, wait), proven=False)


@cached
def optimum(training: TrainingSet, space: PartitionSpace, bounds: Feasible | None, workers: int = 1) -> Optimum:
    """Return the best division, free or under dp-nlp's bounds.

    If no division keeps the bounds, it is the free one, and `doubts` has the reason.
    """
    evaluator = CachedEvaluator(training, workers)

    def wait(division: Sizes) -> float:
        return evaluator.measure(space.configured(training.base, division)).overall

    def within(division: Sizes) -> bool:
        return bool((division >= space.widest).all()) and (bounds is None or bounds.keeps(division))

    def searched(start: Sizes) -> tuple[Sizes, float, int]:
        return descend(wait, start, within, step=max(1, space.total // 16), most=LONGEST_SEARCH)

    pp = proportional(space)
    if bounds is not None and bounds.one_sided:  # the table's search needs the two-sided constraint
        nodes, found, tried = searched(pp if bounds.middle is None else bounds.middle)
        return Optimum(nodes, found, nodes, found, "proportions are one-sided", tried)
    tabulated, least, coarse = solve(training, space, bounds, workers)
    estimate = estimated(training)
    if tabulated is None:
        free = optimum(training, space, None, workers)
        return replace(free, doubts=", ".join(filter(None, (estimate, "no division keeps the constraints"))))
    if not estimate:
        return Optimum(tabulated, least, tabulated, least, coarse, 0)
    nodes, found, tried = searched(min([tabulated, *filter(within, [pp])], key=wait))
    return Optimum(nodes, found, tabulated, least, ", ".join(filter(None, (estimate, coarse))), tried)


def solve(
    training: TrainingSet, space: PartitionSpace, bounds: Feasible | None = None, workers: int = 1
) -> tuple[Sizes | None, float, str]:
    """Return the best division by the table, free or under dp-nlp's bounds, its wait, and why it may not be optimal.

    The first grid of sizes contains a division within the bounds, each later one the best of the grid before.
    """
    table = tabulate(training, space, workers)
    most = space.widest + (space.total - int(space.widest.sum()))
    reach = int(most[0] - space.widest[0]) if space.queues.size > 1 else 0  # a single queue gets the whole machine
    sizes = int(np.clip(MOST_WORK // len(training), 2 * WINDOW * FINER, MOST_SIZES))
    unit = -(-(reach + 1) // sizes)
    doubts = "" if unit == 1 else f"one size in {unit} is tabulated, and each only around the best of them"
    nodes = proportional(space)
    if unit > 1 and bounds is not None:
        nodes = _start(table, space, bounds, most, nodes, min(sizes, GEOMETRIC))
    while True:
        grid = Grid.around(nodes, unit, np.maximum(nodes - reach, space.widest), np.minimum(nodes + reach, most))
        cost = table.columns(grid.sizes)
        if bounds is None:
            found, wait = best_division(cost, np.zeros_like(nodes), grid.count - 1, grid.total)
            found, complete = None if found is None else grid.nodes(found), True
        else:
            found, wait, complete = best_proportional_division(
                cost, grid, bounds.low, bounds.share, bounds.slack, tolerance=1
            )
        if not complete:
            doubts = doubts or "not all ratios of sizes are tried"
        if found is None or unit == 1:
            return found, wait, doubts if wait else ""  # a wait of 0 is optimal
        nodes, reach, unit = found, WINDOW * unit, -(-unit // FINER)


def _start(table: WaitTable, space: PartitionSpace, bounds: Feasible, most: Sizes, nodes: Sizes, count: int) -> Sizes:
    """Return a division within the bounds, near the best of `count` sizes in geometric progression, or else `nodes`."""
    within = bounds.middle
    if within is None:
        return nodes
    if not 0 < bounds.slack < 1 or (bounds.share > 0).sum() < 2:
        return within
    sizes = [grid(low, high, count) for low, high in zip(space.widest, most, strict=True)]
    found = nearly_best_proportional_division(
        sizes, table.columns(sizes), bounds.low, space.total, bounds.share, bounds.slack, within.astype(np.float64)
    )
    rounded = bounds.rounded(found)
    return within if rounded is None else rounded


def estimated(training: TrainingSet) -> str:
    """Return why the table is not exact; empty if it is."""
    reasons = []
    if any(training.base.queues[q].reservation for q in np.unique(training.workload.queue)):
        reasons.append("jobs start by advance reservation")
    if training.base.system().has_limits:
        reasons.append("limits hold jobs")
    if training.period.outages:
        reasons.append("cores are out of service for a while")
    if training.base.shortpools:
        reasons.append("cores are kept for short jobs")
    if any(fixed_partition(training.base, i) for i, q in enumerate(training.base.queues) if not q.reservation):
        reasons.append("some partitions are fixed")
    if any(target.group is not None and target.weight not in (None, 1) for target in training.base.targets):
        reasons.append("groups of users have weights")
    if training.base.order != "fcfs":
        reasons.append(f"the order is {training.base.order}")
    return ", ".join(reasons)
