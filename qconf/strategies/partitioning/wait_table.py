"""Mean waits of every queue at sizes of its partition, which the exact search adds up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from parsim import Workload
from parsim.metrics.tabulate import waits_by_size
from qconf.evaluation.period import TrainingSet, cached
from qconf.parallel import parallel_map
from qconf.strategies.partitioning.sizes import PartitionSpace, Sizes

PIECES = 16  # pieces into which the sizes of one queue are cut for the workers


class WaitTable:
    """For each queue of the partition space, its part of the weighted mean wait at each size in nodes, seconds.

    A size is simulated when it is first needed. Reserved jobs, limits and starvation are ignored: with them the
    table is an estimate. So it is where groups of users have weights: every job of a queue counts with their mean.
    """

    def __init__(self, training: TrainingSet, space: PartitionSpace, workers: int = 1) -> None:
        self.space, self.workers = space, workers
        self.waits = partial(waits_by_size, backfill=training.base.backfill)
        self.own = list(_own(training, space))  # and not the training set, which keeps the table
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
    """Yield the jobs of each queue on each epoch, and what a second that one of them waits adds to the mean."""
    for weight, epoch in training.epochs:
        w, weights = epoch.workload, np.ones(len(epoch)) if epoch.weight is None else epoch.weight
        counted = float(weights[np.isin(w.queue, space.queues)].sum())
        for k, q in enumerate(space.queues):
            mine = w.queue == q
            if mine.any():
                yield k, w.take(mine), weight * float(weights[mine].mean()) / counted


@cached
def tabulate(training: TrainingSet, space: PartitionSpace, workers: int = 1) -> WaitTable:
    """Return the table of a training set, of which nothing is simulated yet."""
    return WaitTable(training, space, workers)
