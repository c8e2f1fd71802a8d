"""The pool with the best log score: divisions along the carving sequence, and thresholds, on the simulator.

A batch system moves a job into the pool for good, and there the job loses its turn: jobs that were submitted later
start on its partition's cores before it does, so that it may wait far longer than it would have in its partition. The
pool is therefore sought by a score in which the longest wait counts, under the paper's limit on what a queue may lose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parsim import System, Workload, simulate
from parsim.model.system import Pool
from qconf.evaluation.evaluator import MeanWaits
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import TrainingSet
from qconf.evaluation.score import FLOORS, log_ratios, weights
from qconf.parallel import parallel_map
from qconf.strategies.partitioning.carving import CarvingSequence, with_pool
from qconf.strategies.partitioning.sizes import Sizes

DIVISIONS = 24  # of the machine: the least pool has a 24th of it
TAIL = np.array([1.0, 1.0, 2.0])  # factors of the score's weights: the longest wait is what a pool endangers


@dataclass(frozen=True, eq=False)
class Measured:
    """A division of the machine on a training set, each epoch from an empty machine."""

    sizes: Sizes  #: of the partitions: cores, shape (Q,)
    waits: MeanWaits
    #: Means over the epochs of mean wait (seconds) and bounded slowdown; longest wait (seconds), shape (3,).
    scored: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Best:
    """The best division with one threshold."""

    tau: float
    divisions: int
    left_out: int  #: divisions that make the jobs of a queue wait too long
    score: float = 0.0  #: against no pool: -0.1 is a tenth less mean wait, all else equal
    found: Measured | None = None  #: None where all are left out


def measure(training: TrainingSet, workloads: Sequence[Workload], system: System) -> Measured:
    """Simulate the epochs of a training set, with routed jobs; means are weighted as the site wants."""
    longest, total = 0, sum(weight for weight, _ in training.epochs)
    queues, means = np.zeros(len(system.queues)), np.zeros(2)
    for (weight, epoch), jobs in zip(training.epochs, workloads, strict=True):
        outcome = Outcome(epoch, simulate(jobs, epoch.dedicated(system), epoch.begun(system)))
        per_job = np.ones(len(jobs)) if epoch.weight is None else epoch.weight
        counts = np.bincount(jobs.queue, per_job, len(system.queues))
        sums = np.bincount(jobs.queue, per_job * outcome.wait, len(system.queues))
        queues += weight * sums / np.where(counts > 0, counts, 1)
        means += weight * outcome.means()
        longest = max(longest, int(outcome.wait.max()))
    sizes = np.array([queue.partition for queue in system.queues], dtype=np.int64)
    return Measured(sizes, MeanWaits(float(means[0]), queues), np.array([*(means / total), longest]))


def divisions(sequence: CarvingSequence) -> list[Sizes]:
    """Return all divisions along a sequence, without the first, which has no pool."""
    found: list[Sizes] = []
    while sequence.next() is not None:
        found.append(sequence.sizes.copy())
    return found


def search(
    training: TrainingSet,
    workloads: Sequence[Workload],
    system: System,
    pools: Sequence[Pool],
    candidates: Sequence[Sizes],
    *,
    degradation: float,
    objective: str,
    workers: int,
) -> list[Best]:
    """Find the best of the divisions for each of `pools`, which differ in their threshold.

    A division in which the mean wait of a queue is more than `degradation` (0.3 is 30 %) above that without a pool is
    left out, as in the paper; a minute is added to both, so that a queue that hardly waits does not decide.
    """
    without = measure(training, workloads, system)
    most = (1 + degradation) * (without.waits.queues + FLOORS[0])

    def one(pool: Pool, sizes: Sizes) -> Measured:
        return measure(training, workloads, with_pool(system, sizes, pool))

    def score(measured: Measured) -> float:
        return float((log_ratios(measured.scored, without.scored) * TAIL * weights(objective)).sum())

    measured = parallel_map(workers, one, [(pool, sizes) for pool in pools for sizes in candidates])
    found = []
    for i, pool in enumerate(pools):
        tried = measured[i * len(candidates) : (i + 1) * len(candidates)]
        allowed = [each for each in tried if (each.waits.queues + FLOORS[0] <= most).all()]
        best = min(allowed, key=score, default=None)
        left_out = len(tried) - len(allowed)
        found.append(Best(pool.threshold, len(tried), left_out, 0.0 if best is None else score(best), best))
    return found
