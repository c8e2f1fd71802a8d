"""Partition sizes in nodes: the partition space, and proportional division."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qconf.config import SiteConfig
from qconf.evaluation.period import NotApplicableError, TrainingSet, cached

Sizes = NDArray[np.int64]
SHORT = (
    "the widest jobs that the queues admit do not fit the machine at once: partitions hold the widest submitted, and "
    "limits are lowered to what partitions hold"
)


@dataclass(frozen=True, eq=False)
class PartitionSpace:
    """The nodes (of one core, unless nodes are whole) to be divided among the queues that own a partition."""

    queues: NDArray[np.int64]  # indices of the queues in the base configuration, shape (k,)
    total: int  # nodes to divide
    widest: NDArray[np.int64]  # least size of each partition: nodes of its widest job, submitted or admitted
    node: int  # cores of a node
    work: NDArray[np.float64]  # core-seconds of each queue, shape (k,)
    kept: tuple[tuple[int, int], ...] = ()  # (queue, cores) of fixed partitions, which are not divided
    rounding: str = "remainders"  # see `apportion`
    note: str = ""  # why partitions are too small for all admitted jobs, although that was wanted

    def cores(self, nodes: Sizes, count: int) -> list[int]:
        """Return partition sizes in cores for all `count` queues of the base configuration."""
        sizes = np.zeros(count, dtype=np.int64)
        for queue, size in self.kept:
            sizes[queue] = size
        sizes[self.queues] = nodes * self.node
        return [int(size) for size in sizes]

    def configured(self, base: SiteConfig, nodes: Sizes) -> SiteConfig:
        """Return the base with partitions of these sizes."""
        return base.with_partitions(self.cores(nodes, len(base.queues)))

    def nodes(self, config: SiteConfig) -> Sizes:
        """Return the partition sizes of a configuration with the base's queues, in nodes, shape (k,)."""
        return np.array([config.queues[i].partition for i in self.queues], dtype=np.int64) // self.node

    def present(self, base: SiteConfig) -> Sizes | None:
        """Return the base's own division; None if it has none, or one too small for the widest jobs."""
        nodes = self.nodes(base)
        return nodes if base.mode == "partitioned" and (nodes >= self.widest).all() else None


@cached
def partition_space(training: TrainingSet, least_size: str = "job", rounding: str = "remainders") -> PartitionSpace:
    """Return the partition space of a training set.

    With the `least_size` ``queue`` a partition holds the widest job that its queue admits and can start, if these fit
    the machine at once. Otherwise a queue whose limit may be lowered only needs to hold its widest submitted job.
    Raises NotApplicableError without jobs or partitions to size, with types of nodes or tiers, or if jobs do not fit.
    """
    if not len(training):
        raise NotApplicableError("there is no job to train on")
    if training.base.nodes:  # `auto` gets here
        raise NotApplicableError("nodes are of several types: partitions of all alike do not divide them")
    base, node = training.base, training.base.grid
    if base.has_tiers:
        raise NotApplicableError("queues have different tiers: their jobs preempt others on a shared machine only")
    owning = [i for i, q in enumerate(base.queues) if not q.reservation]
    kept = tuple((i, base.queues[i].partition) for i in owning if fixed_partition(base, i))
    queues = np.array([i for i in owning if i not in dict(kept)], dtype=np.int64)
    if not owning:
        raise NotApplicableError("every queue starts by advance reservation: there is no partition to size")
    if not queues.size:
        raise NotApplicableError("every partition is marked as fixed: there is none to size")
    own = [base.queues[i] for i in queues]
    submitted = np.array([training.period.widest[i] or base.queues[i].cores[0] for i in queues])
    admitted = np.array([min(base.widest(queue), base.reach(queue)) for queue in own])
    lowerable = [not training.period.is_fixed(f"queues.{queue.name}.cores") for queue in own]
    free = base.machine.cores - sum(size for _, size in kept)
    total = free // node
    widest = np.maximum(-(-submitted // node), -(-admitted // node))
    if least_size != "queue" or int(widest.sum()) > total:
        widest = np.where(lowerable, -(-submitted // node), widest)
    if widest.sum() > total:
        each = ", ".join(f"{queue.name} {size * node}" for queue, size in zip(own, widest, strict=True))
        raise NotApplicableError(
            f"the widest jobs of the queues need {int(widest.sum() * node)} of {free} cores together ({each}): "
            "no partitions can hold them"
        )
    work = training.period.core_seconds[queues]
    short = least_size == "queue" and (widest * node < admitted).any()
    return PartitionSpace(queues, total, widest, node, work, kept, rounding, SHORT if short else "")


def data_warnings(training: TrainingSet, space: PartitionSpace) -> list[str]:
    """Return warnings: epochs or queues without jobs, the note of `space`, a single queue."""
    notes = []
    if len(training.epochs) < len(training.weights):
        notes.append(
            f"only {len(training.epochs)} of {len(training.weights)} epochs have jobs: the others do not count"
        )
    idle = [training.base.queues[q].name for q in space.queues if not (training.workload.queue == q).any()]
    if idle:
        notes.append(f"no job in {', '.join(idle)}: the least size is that of the narrowest job admitted")
    if space.note:
        notes.append(space.note)
    if space.queues.size == 1:
        notes.append("one queue owns a partition: it gets the whole machine")
    return notes


def fixed_partition(base: SiteConfig, index: int) -> bool:
    """Return whether the configuration fixes a queue's partition."""
    return base.mode != "shared" and base.is_fixed(f"queues[{index}].partition")


def apportion(shares: NDArray[np.float64], total: int, least: Sizes, rounding: str = "remainders") -> Sizes:
    """Divide `total` whole nodes in proportion to `shares` (of any sum), each at least its `least`.

    The nodes that are left after rounding down go to the largest remainders, or (``down``) to the largest size.
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
    free_nodes = total - int(sizes.sum())
    if rounding == "down":
        sizes[int(np.argmax(sizes))] += free_nodes
        return sizes
    order = np.lexsort((np.arange(shares.size), -(ideal - sizes)))
    for i in range(free_nodes):
        sizes[order[i % shares.size]] += 1
    return sizes


def proportional(space: PartitionSpace) -> Sizes:
    """Return nodes in proportion to each queue's core-seconds, none below its widest job (equation 7, section IV.A)."""
    return apportion(space.work, space.total, space.widest, space.rounding)
