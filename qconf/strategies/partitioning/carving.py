"""A common pool carved out of partitions, chunk by chunk.

References
----------
Kondameedi and Vadhiyar, CCGrid 2017, section III.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from parsim import System, Workload
from parsim.places import Wanted, distinct_requests
from parsim.placing import fits
from parsim.system import Pool
from qconf.evaluation.evaluator import CachedEvaluator, MeanWaits
from qconf.parallel import parallel_map
from qconf.strategies.partitioning.sizes import Sizes

AHEAD = 4  # steps per worker that are simulated before it is known whether earlier ones are refused
NEVER = 1e300  # a priority factor that no job has
Measurement = Callable[[list[Sizes]], list[MeanWaits]]


@dataclass(frozen=True)
class Stop:
    """A part (None: all of them) that gives no more chunks, the chunk at which it stopped, and the waits."""

    step: int
    part: int | None
    wait: float
    original: float


@dataclass(eq=False)
class Carving:
    """State of a carving."""

    sizes: Sizes  # of the parts, shape (parts,); the pool has the rest
    waits: MeanWaits  # after the last chunk
    steps: int = 0  # chunks moved so far
    stops: list[Stop] = field(default_factory=list)
    #: Step, cores of the pool, overall wait: at the first step, the second, the fourth, ...
    trace: list[tuple[int, int, float]] = field(default_factory=list)


class CarvingSequence:
    """Chunks in the paper's order: in rounds over the queues, by the size that partitions have when a round begins.

    A queue is passed over while its widest job would fit neither its remaining partition nor the pool. `sizes` are
    those of the parts that give chunks: the partitions, in cores.
    """

    def __init__(
        self, sizes: Sizes, widest: Sizes, chunk: int, movable: NDArray[np.bool_] | None = None, *, pooled: bool
    ) -> None:
        self.sizes = sizes.copy()
        self.active: NDArray[np.bool_] = (sizes > 0) & (True if movable is None else movable)
        self.chunks = np.full_like(sizes, chunk)
        self.cores = np.ones_like(sizes)  # of one of what sizes count
        self.total = int(sizes.sum())
        self._widest = widest
        self._pooled = pooled
        self._left: list[int] = []
        self._idle = 0  # parts passed over since the last chunk

    def copy(self) -> CarvingSequence:
        """Return an independent copy that continues from here."""
        other = copy(self)
        other.sizes, other.active, other._left = self.sizes.copy(), self.active.copy(), self._left.copy()
        return other

    def queue(self, part: int) -> int:
        """Return the queue that has this part."""
        return part

    def pool(self, sizes: Sizes) -> int:
        """Return the cores of the pool beside parts of these sizes."""
        return self.total - int((sizes * self.cores).sum())

    def next(self) -> int | None:
        """Move the next chunk; return the part that it came from, None if none can give one."""
        while self._idle <= int(self.active.sum()):
            if not self._left:
                order = np.argsort(self.sizes * self.cores, kind="stable")
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
        after[part] = max(0, int(self.sizes[part] - self.chunks[part]))
        if not self._holds(self.queue(part), after):
            return False
        self.sizes = after
        return True

    def _holds(self, queue: int, sizes: Sizes) -> bool:
        """Return whether its partition, or the pool, holds the widest job of a queue."""
        return bool(self._widest[queue] <= max(int(sizes[queue]), self.pool(sizes) if self._pooled else 0))

    def refuse(self, part: int, before: int) -> None:
        """Give back the last chunk; this part gives no more."""
        self.sizes[part] = before
        self.active[part] = False


class TypedSequence(CarvingSequence):
    """Chunks of nodes of several types: a part is what a partition has of one type, in nodes (`nodes_of`).

    A part is passed over while a job of its queue would have a place on neither the remaining partition nor the pool.
    """

    def __init__(
        self,
        system: System,
        workloads: Sequence[Workload],
        chunks: Sizes,
        movable: NDArray[np.bool_],
        *,
        pooled: bool,
    ) -> None:
        types, queues = system.node_types, len(system.queues)
        sizes = nodes_of(system)
        super().__init__(sizes, sizes, 1, movable, pooled=pooled)
        self.chunks = np.tile(chunks, queues)
        self.cores = np.tile([each.cores for each in types], queues)
        self.total = int((sizes * self.cores).sum())
        self._system = system
        self._wanted: list[set[Wanted]] = [set() for _ in range(queues)]
        for jobs in workloads:
            of, distinct = distinct_requests(system, jobs)
            for q, number in set(zip(jobs.queue.tolist(), of.tolist(), strict=True)):
                self._wanted[q].add(distinct[number])

    def queue(self, part: int) -> int:
        """Return the queue that has this part."""
        return part // len(self._system.node_types)

    def _holds(self, queue: int, sizes: Sizes) -> bool:
        owned = with_pool(self._system, sizes, Pool()).owned_types
        parts = [owned[queue], *([owned[-1]] if self._pooled else [])]
        return all(any(fits(self._system, types, wanted) for types in parts) for wanted in self._wanted[queue])


def nodes_of(system: System) -> Sizes:
    """Return the nodes of each type of the partition of each queue, queue by queue; shape (queues * types,)."""
    owned = system.owned_nodes[: len(system.queues)]
    return np.array([its.get(each.name, 0) for its in owned for each in system.node_types], dtype=np.int64)


def by_queue(types: Sequence[str], sizes: Sizes) -> list[dict[str, int]]:
    """Return what `nodes_of` returns as nodes by the name of their type, of each queue."""
    rows = sizes.reshape(-1, len(types)).tolist()
    return [{name: count for name, count in zip(types, row, strict=True) if count} for row in rows]


def rest(counts: dict[str, int], owned: Sequence[dict[str, int]]) -> dict[str, int]:
    """Return the nodes of each type that are left for the pool."""
    left = {name: count - sum(its.get(name, 0) for its in owned) for name, count in counts.items()}
    return {name: count for name, count in left.items() if count}


def with_pool(system: System, sizes: Sizes, pool: Pool) -> System:
    """Return `system` with these partitions, in cores or as `nodes_of` has them, and a pool of the rest."""
    if system.node_types:
        owned = by_queue([each.name for each in system.node_types], sizes)
        cores = {each.name: each.cores for each in system.node_types}
        left = rest({each.name: each.nodes for each in system.node_types}, owned)
        held = [sum(cores[name] * count for name, count in its.items()) for its in (*owned, left)]
        queues = tuple(
            replace(queue, partition=size, partition_nodes=its)
            for queue, size, its in zip(system.queues, held, owned, strict=False)
        )
        return replace(system, mode="hybrid", queues=queues, pool=replace(pool, cores=held[-1], nodes=left))
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
        if system.node_types:
            return evaluator.simulate(workloads, with_pool(system, sizes, Pool(threshold=NEVER)))
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
        while len(planned) < ahead and (part := guess.next()) is not None:
            planned.append((part, guess.sizes.copy()))
        if not planned:
            return done
        for (part, sizes), waits in zip(planned, measured([sizes for _, sizes in planned]), strict=True):
            before, queue = int(sequence.sizes[part]), sequence.queue(part)
            sequence.next()
            if waits.overall > most * original.overall:
                done.stops.append(Stop(done.steps + 1, None, waits.overall, original.overall))
                return done
            if waits.queues[queue] > most * original.queues[queue]:
                wait, first = float(waits.queues[queue]), float(original.queues[queue])
                done.stops.append(Stop(done.steps + 1, part, wait, first))
                sequence.refuse(part, before)
                break
            done.sizes, done.waits, done.steps = sizes, waits, done.steps + 1
            if done.steps & (done.steps - 1) == 0:
                done.trace.append((done.steps, sequence.pool(sizes), waits.overall))
