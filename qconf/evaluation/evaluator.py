"""Mean waits of many configurations on one training set, with each queue's simulation cached.

Partitions that no reservation spans do not interact: a queue whose jobs and partition stay the same has the same waits.
So only the queues that a candidate changes are simulated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from parsim import System, Workload, simulate
from parsim.model.workload import MAX_CORES, MAX_DURATION
from parsim.prepare.chunks import has_place
from qconf.config import SiteConfig
from qconf.evaluation.period import Runtimes, TrainingSet
from qconf.parallel import parallel_map

Sums = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MeanWaits:
    """Mean waits of a configuration over the epochs of a training set."""

    overall: float  #: weighted sum of the epochs' mean waits, seconds, as `TrainingSet.weighted_wait` returns it
    queues: NDArray[np.float64]  #: the same over the jobs of each queue, 0 without jobs, shape (Q,)


class CachedEvaluator:
    """Simulates configurations on one training set; the number of `workers`, threads, does not change results."""

    def __init__(self, training: TrainingSet, workers: int = 1) -> None:
        self.training = training
        self.workers = workers
        self._known: dict[object, float] = {}

    def workloads(self, config: SiteConfig, runtimes: Runtimes | None = None) -> list[Workload]:
        """Return the jobs of each epoch, routed by `config` and actual `runtimes`. Raises `UnroutableError`."""
        return [epoch.routed(config, runtimes) for _, epoch in self.training.epochs]

    def measure(self, config: SiteConfig, runtimes: Runtimes | None = None) -> MeanWaits:
        """Simulate one configuration on every epoch, with jobs routed as by `workloads`."""
        return self.simulate(self.workloads(config, runtimes), config.system())

    def measure_all(self, candidates: Sequence[tuple[SiteConfig, Runtimes | None]]) -> list[MeanWaits]:
        """Simulate configurations in parallel; one `MeanWaits` for each."""
        return parallel_map(self.workers, self.measure, candidates)

    def by_epoch(self, config: SiteConfig) -> NDArray[np.float64]:
        """Return each queue's contribution to each epoch's mean wait, seconds, shape (epochs, Q)."""
        system = config.system()
        means = []
        for e, (_, epoch) in enumerate(self.training.epochs):
            jobs = epoch.routed(config)
            counts = np.bincount(jobs.queue, epoch.weight, len(system.queues))
            means.append(self._sums(e, jobs, epoch.dedicated(system)) / counts.sum())
        return np.array(means)

    def simulate(self, workloads: Sequence[Workload], system: System) -> MeanWaits:
        """Simulate a system on every epoch; `workloads` has the routed jobs of each."""
        overall, queues = 0.0, np.zeros(len(system.queues))
        for e, ((weight, epoch), jobs) in enumerate(zip(self.training.epochs, workloads, strict=True)):
            sums = self._sums(e, jobs, epoch.dedicated(system))
            counts = np.bincount(jobs.queue, epoch.weight, len(system.queues))
            overall += weight * float(sums.sum() / counts.sum())
            queues += weight * sums / np.where(counts > 0, counts, 1)
        return MeanWaits(overall, queues)

    def _sums(self, e: int, jobs: Workload, system: System) -> Sums:
        """Return the weighted sum of the waits of each queue in epoch `e`, shape (Q,)."""
        epoch = self.training.epochs[e][1]
        weight, state = epoch.weight, epoch.begun(system)
        if state is not None or not _independent(jobs, system):
            waits = simulate(jobs, system, state).wait
            weighted = waits.astype(np.float64) if weight is None else weight * waits
            return np.asarray(np.bincount(jobs.queue, weighted, len(system.queues)), dtype=np.float64)
        out = np.zeros(len(system.queues))
        for q in range(len(system.queues)):
            members = np.flatnonzero(jobs.queue == q)
            if members.size:
                one = single_partition(system, q)
                key = (e, one.queues[0], system.order, system.backfill, members.tobytes())
                if key not in self._known:
                    own = replace(jobs.take(members), queue=np.zeros(members.size, dtype=np.int64))
                    waits = simulate(own, one).wait
                    self._known[key] = float((waits if weight is None else weight[members] * waits).sum())
                out[q] = self._known[key]
        return out


def single_partition(system: System, q: int) -> System:
    """Return a system with the partition of queue `q` as the whole machine, and a single queue that admits all jobs."""
    queue = replace(system.queues[q], name="all", cores=(1, MAX_CORES), walltime=(0, MAX_DURATION))
    owned = dict(queue.partition_nodes)
    types = [replace(each, nodes=owned[each.name]) for each in system.node_types if owned.get(each.name)]
    if queue.node_types is not None:
        queue = replace(queue, node_types=[name for name in queue.node_types if owned.get(name)])
    return replace(system, cores=queue.partition, mode="partitioned", queues=(queue,), node_types=types)


def _independent(jobs: Workload, system: System) -> bool:
    """Return whether every job runs on its queue's own partition, so that queues do not interact."""
    if system.mode != "partitioned" or jobs.has_needs or system.windows or system.throttles or system.is_fair:
        return False
    held = np.asarray([queue.partition for queue in system.queues])[jobs.queue]
    return bool((jobs.cores <= held).all()) and bool(has_place(system, jobs).all() if system.node_types else True)
