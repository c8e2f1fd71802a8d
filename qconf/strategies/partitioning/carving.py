"""Carving of a common pool out of partitions, chunk by chunk.

References
----------
Kondameedi and Vadhiyar, CCGrid 2017, section III.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from parsim import Queue, System, Workload
from parsim.model.system import Pool
from qconf.evaluation.evaluator import CachedEvaluator, MeanWaits
from qconf.parallel import parallel_map
from qconf.strategies.partitioning.sizes import Sizes

AHEAD = 4  # steps per worker that are simulated ahead, as if no earlier one were refused
Measurement = Callable[[list[Sizes]], list[MeanWaits]]


@dataclass(frozen=True)
class Stop:
    """A partition that gives no more chunks (None: all), the step at which it stopped, and the waits."""

    step: int
    part: int | None
    wait: float
    original: float


@dataclass(eq=False)
class Carving:
    """The state of a carving."""

    sizes: Sizes  # cores of the partitions, shape (Q,); the pool has the rest
    waits: MeanWaits  # waits after the last chunk
    steps: int = 0  # chunks moved so far
    stops: list[Stop] = field(default_factory=list)
    #: (step, cores of the pool, overall wait) at steps 1, 2, 4, ...
    trace: list[tuple[int, int, float]] = field(default_factory=list)


class CarvingSequence:
    """The paper's order of chunks: in rounds over the queues, by partition size at the begin of the round.

    A queue is skipped while its widest job would fit neither its remaining partition nor the pool. `sizes` are the
    partitions' cores.
    """

    def __init__(
        self, sizes: Sizes, widest: Sizes, chunk: int, movable: NDArray[np.bool_] | None = None, *, pooled: bool
    ) -> None:
        self.sizes = sizes.copy()
        self.active: NDArray[np.bool_] = (sizes > 0) & (True if movable is None else movable)
        self.chunk = chunk
        self.total = int(sizes.sum())
        self._widest = widest
        self._pooled = pooled
        self._left: list[int] = []
        self._idle = 0  # parts passed over since the last chunk

    def copy(self) -> CarvingSequence:
        """Return an independent copy that continues from here."""
        return deepcopy(self)

    def pool(self, sizes: Sizes) -> int:
        """Return the cores of the pool beside partitions of these sizes."""
        return self.total - int(sizes.sum())

    def next(self) -> int | None:
        """Move the next chunk; return the index of its partition, None if none can give one."""
        while self._idle <= int(self.active.sum()):
            if not self._left:
                order = np.argsort(self.sizes, kind="stable")
                self._left = [int(part) for part in order if self.active[part]]
            if not self._left:
                return None
            part = self._left.pop(0)
            if self._give(part):
                self._idle = 0
                return part
            self._idle += 1
        return None

    def _give(self, part: int) -> bool:
        if not self.active[part] or not self.sizes[part]:
            return False
        after = self.sizes.copy()
        after[part] = max(0, int(self.sizes[part] - self.chunk))
        if self._widest[part] > max(int(after[part]), self.pool(after) if self._pooled else 0):
            return False
        self.sizes = after
        return True

    def refuse(self, part: int, before: int) -> None:
        """Undo the last chunk, and take no more from this partition."""
        self.sizes[part] = before
        self.active[part] = False


def with_pool(system: System, sizes: Sizes, pool: Pool) -> System:
    """Return `system` with partitions of these sizes and a pool of the remaining cores."""
    common = replace(pool, cores=system.cores - int(sizes.sum()))
    return replace(system, mode="hybrid", queues=_sized(system, sizes), pool=common)


def _sized(system: System, sizes: Sizes) -> tuple[Queue, ...]:
    return tuple(replace(q, partition=int(size)) for q, size in zip(system.queues, sizes, strict=True))


def measurement(
    evaluator: CachedEvaluator, workloads: list[Workload], system: System, pool: Pool | None
) -> Measurement:
    """Return a function that simulates divisions of `system`, with the pool in use or, for None, its cores idle."""

    def one(sizes: Sizes) -> MeanWaits:
        if pool is not None:
            return evaluator.simulate(workloads, with_pool(system, sizes, pool))
        left = int(sizes.sum())
        if any(int(jobs.cores.max()) > left for jobs in workloads):  # a reserved job could never start
            return MeanWaits(np.inf, np.full(len(sizes), np.inf))
        alone = replace(system, cores=left, mode="partitioned", queues=_sized(system, sizes), pool=None)
        return evaluator.simulate(workloads, alone)

    return lambda divisions: parallel_map(evaluator.workers, one, [(sizes,) for sizes in divisions])


def carve(
    sequence: CarvingSequence, original: MeanWaits, degradation: float, measured: Measurement, ahead: int
) -> Carving:
    """Move chunks until no queue can give one.

    A queue stops before the chunk that would raise its mean wait by more than `degradation` (0.3 is 30 %) over the
    original. The carving ends before the chunk that would raise the overall mean wait by as much. `ahead` steps are
    simulated at once, as if none were refused; this does not change the result.
    """
    done = Carving(sequence.sizes.copy(), original)
    most = 1 + degradation
    while True:
        guess = sequence.copy()
        planned: list[tuple[int, Sizes]] = []
        while len(planned) < ahead and (part := guess.next()) is not None:
            planned.append((part, guess.sizes.copy()))
        if not planned:
            return done
        for (part, sizes), waits in zip(planned, measured([sizes for _, sizes in planned]), strict=True):
            before = int(sequence.sizes[part])
            sequence.next()
            if waits.overall > most * original.overall:
                done.stops.append(Stop(done.steps + 1, None, waits.overall, original.overall))
                return done
            if waits.queues[part] > most * original.queues[part]:
                wait, first = float(waits.queues[part]), float(original.queues[part])
                done.stops.append(Stop(done.steps + 1, part, wait, first))
                sequence.refuse(part, before)
                break
            done.sizes, done.waits, done.steps = sizes, waits, done.steps + 1
            if done.steps & (done.steps - 1) == 0:
                done.trace.append((done.steps, sequence.pool(sizes), waits.overall))
