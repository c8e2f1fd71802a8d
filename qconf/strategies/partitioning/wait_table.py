"""Mean waits of every queue at every size of its partition, which the exact search adds up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parsim.tabulate import waits_by_size
from qconf.evaluation.period import TrainingSet, cached
from qconf.parallel import parallel_map
from qconf.strategies.partitioning.sizes import PartitionSpace

PIECES = 16  # pieces into which the sizes of one queue are cut for the workers


@dataclass(frozen=True, eq=False)
class WaitTable:
    """For each queue of the partition space, its part of the weighted mean wait by nodes, shape (total + 1,)."""

    cost: tuple[NDArray[np.float64], ...]  # infinite below `widest`

    def __call__(self, nodes: NDArray[np.int64]) -> float:
        """Return the weighted mean wait of a division, seconds."""
        return float(sum(column[size] for column, size in zip(self.cost, nodes, strict=True)))


@cached
def tabulate(training: TrainingSet, space: PartitionSpace, workers: int = 1) -> WaitTable:
    """Simulate every queue of every epoch alone at every size that it can have.

    Reserved jobs, limits and starvation are ignored: with them the table is an estimate. So it is where groups of users
    have weights: every job of a queue counts with their mean.
    """
    free_nodes = space.total - int(space.widest.sum())
    tasks, where = [], []
    for weight, epoch in training.epochs:
        w, weights = epoch.workload, np.ones(len(epoch)) if epoch.weight is None else epoch.weight
        counted = float(weights[np.isin(w.queue, space.queues)].sum())
        for k, q in enumerate(space.queues):
            mine = w.queue == q
            own = w.take(mine)
            sizes = np.arange(space.widest[k], space.widest[k] + free_nodes + 1)
            if not len(own):
                continue
            for piece in range(PIECES):
                tasks.append((own, sizes[piece::PIECES] * space.node, training.base.backfill))
                where.append((k, sizes[piece::PIECES], weight * float(weights[mine].mean()) / counted))
    cost = [np.full(space.total + 1, np.inf) for _ in space.queues]
    for k, column in enumerate(cost):
        column[space.widest[k] :] = 0.0
    for (k, sizes, scale), (waits, _) in zip(where, parallel_map(workers, _waits, tasks), strict=True):
        cost[k][sizes] += scale * waits
    return WaitTable(tuple(cost))


def _waits(own: object, sizes: NDArray[np.int64], backfill: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return waits_by_size(own, sizes, backfill=backfill)  # type: ignore[arg-type]
