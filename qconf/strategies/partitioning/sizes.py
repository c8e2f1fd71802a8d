"""Partition sizes on the grid: where they may lie, how a share becomes a size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qconf.config import SiteConfig
from qconf.errors import QconfError
from qconf.evaluation.period import TrainingSet, cached

Sizes = NDArray[np.int64]


class NotApplicableError(QconfError):
    """A strategy has nothing to say about this history; the message says why."""


@dataclass(frozen=True, eq=False)
class PartitionSpace:
    """The machine to be divided, in grid units (nodes, or cores), among the queues that own a partition.

    Attributes
    ----------
    queues : ndarray(int64), shape (k,)
        Their indices in the base configuration.
    total : int
        Units of the machine.
    widest : ndarray(int64), shape (k,)
        Least units of each: its widest job of the history, or what its narrowest may ask for.
    unit : int
        Cores of a unit.
    kept : tuple of (int, int)
        Queues whose partition the configuration marks as fixed, and its cores: not divided.
    """

    queues: NDArray[np.int64]
    total: int
    widest: NDArray[np.int64]
    unit: int
    kept: tuple[tuple[int, int], ...] = ()

    def cores(self, units: Sizes, count: int) -> list[int]:
        """Return partition sizes in cores for all `count` queues of the base configuration."""
        sizes = np.zeros(count, dtype=np.int64)
        for queue, size in self.kept:
            sizes[queue] = size
        sizes[self.queues] = units * self.unit
        return [int(size) for size in sizes]


@cached
def partition_space(training: TrainingSet) -> PartitionSpace:
    """Return what there is to divide.

    Raises
    ------
    NotApplicableError
        There is no job, no queue owns a partition, or the widest jobs of the queues do not fit side by side.
    """
    if not len(training):
        raise NotApplicableError("there is no job to learn from")
    base, unit = training.base, training.base.grid
    owning = [i for i, q in enumerate(base.queues) if not q.reservation]
    kept = tuple((i, base.queues[i].partition) for i in owning if fixed_partition(base, i))
    queues = np.array([i for i in owning if i not in dict(kept)], dtype=np.int64)
    if not owning:
        raise NotApplicableError("every queue starts by advance reservation: there is no partition to size")
    if not queues.size:
        raise NotApplicableError("every partition is marked as fixed: there is none to size")
    least = np.array([training.period.widest[i] or base.queues[i].cores[0] for i in queues])
    widest = -(-least // unit)
    free = base.machine.cores - sum(size for _, size in kept)
    total = free // unit
    if widest.sum() > total:
        raise NotApplicableError(
            f"the widest jobs of the queues need {int(widest.sum() * unit)} of {free} cores together: "
            "no partitions can hold them"
        )
    return PartitionSpace(queues, total, widest, unit, kept)


def data_warnings(training: TrainingSet, space: PartitionSpace) -> list[str]:
    """Say what the history is too poor for."""
    notes = []
    if len(training.epochs) < len(training.weights):
        notes.append(f"only {len(training.epochs)} of {len(training.weights)} epochs have jobs: the others say nothing")
    idle = [training.base.queues[q].name for q in space.queues if not (training.workload.queue == q).any()]
    if idle:
        notes.append(f"no job in {', '.join(idle)}: room for one of the narrowest is kept")
    if space.queues.size == 1:
        notes.append("one queue owns a partition: it gets the whole machine")
    return notes


def fixed_partition(base: SiteConfig, index: int) -> bool:
    """Tell whether a queue has a partition that the configuration marks as fixed."""
    return base.mode != "shared" and base.is_fixed(f"queues[{index}].partition")


def apportion(shares: NDArray[np.float64], total: int, least: Sizes) -> Sizes:
    """Round shares (that need not add up to anything) to whole units that sum to `total`, none below `least`.

    Those whose share is below their least get it; the others divide the rest in proportion (largest remainders).
    """
    shares = np.maximum(np.asarray(shares, dtype=np.float64), 0)
    if shares.sum() <= 0:
        shares = np.ones_like(shares)
    raised = np.zeros(shares.size, dtype=np.bool_)
    while True:
        left = total - int(least[raised].sum())
        weight = np.where(raised, 0.0, shares)
        ideal = np.where(raised, least, left * weight / weight.sum() if weight.sum() > 0 else 0)
        below = ~raised & (ideal < least)
        if not below.any():
            break
        raised |= below
    sizes = np.where(raised, least, np.floor(ideal + 1e-9)).astype(np.int64)
    spare = total - int(sizes.sum())
    order = np.lexsort((np.arange(shares.size), -(ideal - sizes)))
    for i in range(spare):
        sizes[order[i % shares.size]] += 1
    return sizes


def proportional(training: TrainingSet, space: PartitionSpace) -> Sizes:
    """Units in proportion to each queue's core-seconds, none below its widest job (paper, equation 7)."""
    return apportion(training.period.core_seconds[space.queues], space.total, space.widest)
