"""Search for the pool with the best log score: divisions of the carving sequence, and thresholds, simulated.

A batch system moves a job into the pool for good, and the job loses its turn: later jobs start on its partition's cores
before it, so it may wait far longer than in its partition. The score therefore includes the longest wait; the paper's
limit on a queue's longer wait applies too.
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

DIVISIONS = 24  # the least pool has the machine divided by this
TAIL = np.array([1.0, 1.0, 2.0])  # factors on the score's weights: a pool endangers the longest wait most


@dataclass(frozen=True, eq=False)
class Measured:
    """The waits of a division of the machine on a training set, each epoch from an empty machine."""

    sizes: Sizes  #: cores of the partitions, shape (Q,)
    waits: MeanWaits
    #: Mean wait (s) and mean bounded slowdown, weighted over the epochs, and longest wait (s), shape (3,).
    scored: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Best:
    """The best division for one threshold."""

    tau: float
    divisions: int
    left_out: int  #: number of divisions in which the jobs of a queue wait too long
    score: float = 0.0  #: log score against no pool: -0.1 is a tenth less mean wait, all else equal
    found: Measured | None = None  #: None if all are left out


def measure(training: TrainingSet, workloads: Sequence[Workload], system: System) -> Measured:
    """Simulate a system on the epochs of a training set; means have the site's weights."""
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
    """Return the partition sizes after each chunk of a sequence."""
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
    """Find the best of the candidate divisions for each of `pools`, which differ in their threshold.

    A division is left out if the mean wait of a queue is more than `degradation` (0.3 is 30 %) above that without a
    pool, as in the paper. A minute is added to both, so that a queue that hardly waits does not decide.
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
