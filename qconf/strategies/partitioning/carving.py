"""A common pool carved out of partitions, chunk by chunk.

References
----------
Kondameedi and Vadhiyar, CCGrid 2017, section III.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from parsim import System, Workload
from parsim.system import Pool
from qconf.evaluation.evaluator import CachedEvaluator, MeanWaits
from qconf.parallel import parallel_map
from qconf.strategies.partitioning.sizes import Sizes

AHEAD = 4  # steps per worker that are simulated before it is known whether earlier ones are refused
Measurement = Callable[[list[Sizes]], list[MeanWaits]]


@dataclass(frozen=True)
class Stop:
    """A queue (None: all of them) that gives no more chunks, the chunk at which it stopped, and the waits."""

    step: int
    queue: int | None
    wait: float
    original: float


@dataclass(eq=False)
class Carving:
    """State of a carving."""

    sizes: Sizes  # cores of the partitions, shape (Q,); the pool has the others
    waits: MeanWaits  # after the last chunk
    steps: int = 0  # chunks moved so far
    stops: list[Stop] = field(default_factory=list)
    #: Step, cores of the pool, overall wait: at the first step, the second, the fourth, ...
    trace: list[tuple[int, int, float]] = field(default_factory=list)


class CarvingSequence:
    """Chunks in the paper's order: in rounds over the queues, by the size that partitions have when a round begins.

    A queue is passed over while its widest job would fit neither its remaining partition nor the pool.
    """

    def __init__(
        self, sizes: Sizes, widest: Sizes, chunk: int, movable: NDArray[np.bool_] | None = None, *, pooled: bool
    ) -> None:
        self.sizes = sizes.copy()
        self.active: NDArray[np.bool_] = (sizes > 0) & (True if movable is None else movable)
        self.total = int(sizes.sum())
        self._widest = widest
        self._chunk = chunk
        self._pooled = pooled
        self._left: list[int] = []
        self._idle = 0  # queues passed over since the last chunk

    def copy(self) -> CarvingSequence:
        """Return an independent copy that continues from here."""
        other = CarvingSequence(self.sizes, self._widest, self._chunk, pooled=self._pooled)
        other.active, other.total = self.active.copy(), self.total
        other._left, other._idle = self._left.copy(), self._idle
        return other

    def next(self) -> int | None:
        """Move the next chunk; return the queue that it came from, None if no queue can give one."""
        while self._idle <= int(self.active.sum()):
            if not self._left:
                self._left = [int(q) for q in np.argsort(self.sizes, kind="stable") if self.active[q]]
            if not self._left:
                return None
            queue = self._left.pop(0)
            if self._give(queue):
                self._idle = 0
                return queue
            self._idle += 1
        return None

    def _give(self, queue: int) -> bool:
        if not self.active[queue] or not self.sizes[queue]:
            return False
        left = max(0, int(self.sizes[queue]) - self._chunk)
        pool = self.total - int(self.sizes.sum()) + int(self.sizes[queue]) - left
        if self._widest[queue] > max(left, pool if self._pooled else 0):
            return False
        self.sizes[queue] = left
        return True

    def refuse(self, queue: int, before: int) -> None:
        """Give back the last chunk; this queue gives no more."""
        self.sizes[queue] = before
        self.active[queue] = False


def with_pool(system: System, sizes: Sizes, pool: Pool) -> System:
    """Return `system` with these partitions, and a pool of the remaining cores."""
    queues = tuple(replace(q, partition=int(size)) for q, size in zip(system.queues, sizes, strict=True))
    common = replace(pool, cores=system.cores - int(sizes.sum()))
    return replace(system, mode="hybrid", queues=queues, pool=common)


def measurement(
    evaluator: CachedEvaluator, workloads: list[Workload], system: System, pool: Pool | None
) -> Measurement:
    """Return a function that simulates divisions of `system`: with the pool in use, or (None) with its cores idle."""

    def one(sizes: Sizes) -> MeanWaits:
        if pool is not None:
            return evaluator.simulate(workloads, with_pool(system, sizes, pool))
        queues = tuple(replace(q, partition=int(size)) for q, size in zip(system.queues, sizes, strict=True))
        left = int(sizes.sum())
        if any(int(jobs.cores.max()) > left for jobs in workloads):  # a reserved job could never start
            return MeanWaits(np.inf, np.full(len(sizes), np.inf))
        return evaluator.simulate(workloads, replace(system, cores=left, mode="partitioned", queues=queues, pool=None))

    return lambda divisions: parallel_map(evaluator.workers, one, [(sizes,) for sizes in divisions])


def carve(
    sequence: CarvingSequence, original: MeanWaits, degradation: float, measured: Measurement, ahead: int
) -> Carving:
    """Move chunks until no queue can give one.

    A queue stops at the chunk that would raise its mean wait by more than `degradation` (0.3 is 30 %) above the
    original. The carving ends at the chunk that would raise the overall mean wait by as much.
    `ahead` steps are simulated at once, as if none were refused; the result does not depend on it.
    """
    done = Carving(sequence.sizes.copy(), original)
    most = 1 + degradation
    while True:
        guess = sequence.copy()
        planned: list[tuple[int, Sizes]] = []
        while len(planned) < ahead and (queue := guess.next()) is not None:
            planned.append((queue, guess.sizes.copy()))
        if not planned:
            return done
        for (queue, sizes), waits in zip(planned, measured([sizes for _, sizes in planned]), strict=True):
            before = int(sequence.sizes[queue])
            sequence.next()
            if waits.overall > most * original.overall:
                done.stops.append(Stop(done.steps + 1, None, waits.overall, original.overall))
                return done
            if waits.queues[queue] > most * original.queues[queue]:
                wait, first = float(waits.queues[queue]), float(original.queues[queue])
                done.stops.append(Stop(done.steps + 1, queue, wait, first))
                sequence.refuse(queue, before)
                break
            done.sizes, done.waits, done.steps = sizes, waits, done.steps + 1
            if done.steps & (done.steps - 1) == 0:
                done.trace.append((done.steps, sequence.total - int(sizes.sum()), waits.overall))
