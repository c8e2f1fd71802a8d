"""Find an order and ranges of queues with which routing by size sends most jobs of a log to their own queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from qconf.config import QueueConfig

STRAYS = (0.0, 0.01, 0.05, 0.2)  #: fractions of a queue's jobs first cut at each edge of its range, as strays
EXACT = 10  #: up to this many queues, all orders are searched
ROUNDS = 9  #: most rounds of fitting a queue's cores and walltimes in turn
MOST = 32  #: with more queues, the given order is kept

Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Sizes(NamedTuple):
    """The U distinct sizes of jobs, and each of the Q queues' jobs of that size."""

    cores: Counts  #: shape (U,)
    walltime: Counts  #: seconds, 0 if unknown; shape (U,)
    jobs: Counts  #: shape (Q, U)

    @classmethod
    def of(cls, table: pd.DataFrame, names: Sequence[str]) -> Sizes:
        """Count the jobs of a `Records` table, in queues of these names."""
        jobs = table.assign(
            walltime=table["walltime"].clip(lower=0), queue=pd.Index(names).get_indexer(pd.Index(table["queue"]))
        )
        found = jobs.groupby(["cores", "walltime", "queue"], observed=True).size().unstack("queue", fill_value=0)
        found = found.reindex(columns=range(len(names)), fill_value=0)
        cores, walltime = (found.index.get_level_values(i).to_numpy() for i in (0, 1))
        return cls(cores, walltime, found.to_numpy(dtype=np.int64).T)

    def admitted(self, queues: Sequence[QueueConfig]) -> Mask:
        """Mark the sizes that each queue admits, shape (Q, U)."""
        return np.array([queue.admits(self.cores, self.walltime) for queue in queues])


def arranged(queues: Sequence[QueueConfig], sizes: Sizes) -> list[QueueConfig]:
    """Return the queues in routing order, with ranges fitted to their jobs.

    The score is the number of jobs that the route sends to their own queue, plus the number that their own queue
    admits. So a range excludes jobs at its edges only if more jobs find their queue; some queue admits every job.
    A minimum walltime is set only if it raises the score. Ties go to the order nearest to that of `queues`.
    """
    if not 1 < len(queues) <= MOST:
        return list(queues)
    outer = [_spanning(queue, own, sizes) for queue, own in zip(queues, sizes.jobs, strict=True)]
    starts = (
        _Arrangement(_without_strays(outer, sizes, share), outer, sizes)
        for share in STRAYS[: None if len(queues) <= EXACT else 2]
    )
    found = max((start.refitted() for start in starts), key=lambda each: each.score)
    for i, queue in enumerate(found.queues):
        if queue.walltime[0] > 0:
            wider = found.replaced(i, queue.model_copy(update={"walltime": (0, queue.walltime[1])}))
            found = wider if wider.score >= found.score else found
    return [found.queues[i] for i in found.order]


def _without_strays(outer: Sequence[QueueConfig], sizes: Sizes, share: float) -> list[QueueConfig]:
    """Narrow every range by a share of its jobs at each edge, but keep jobs that no queue would admit."""
    narrow = [_spanning(queue, jobs, sizes, share) for queue, jobs in zip(outer, sizes.jobs, strict=True)]
    admitted = sizes.admitted(narrow)
    lost = ~admitted.any(axis=0)
    kept = np.where(admitted | lost, sizes.jobs, 0)
    return [
        _spanning(queue, jobs, sizes) if jobs[lost].any() else inner
        for queue, inner, jobs in zip(outer, narrow, kept, strict=True)
    ]


def _spanning(queue: QueueConfig, jobs: Counts, sizes: Sizes, stray: float = 0.0) -> QueueConfig:
    """Narrow a queue's ranges to `jobs`, less a share at each edge; walltimes down to the next shorter of any job."""
    known = np.where(sizes.walltime > 0, jobs, 0)
    change = {"cores": _edges(sizes.cores, jobs, stray)}
    if known.any():
        short, long = _edges(sizes.walltime, known, stray)
        above = int(sizes.walltime[sizes.walltime < short].max(initial=0))
        change["walltime"] = (above, long if long < sizes.walltime[known > 0].max() else queue.walltime[1])
    return queue.model_copy(update=change)


def _edges(values: Counts, jobs: Counts, stray: float) -> tuple[int, int]:
    order = np.argsort(values, kind="stable")
    total = np.cumsum(jobs[order])
    first, last = np.searchsorted(total, stray * total[-1], "right"), np.searchsorted(total, (1 - stray) * total[-1])
    return int(values[order[first]]), int(values[order[last]])


class _Arrangement:
    """Queues with given ranges, in the best order for them, and the score."""

    def __init__(self, queues: Sequence[QueueConfig], outer: Sequence[QueueConfig], sizes: Sizes) -> None:
        self.queues, self.outer, self.sizes = queues, outer, sizes
        self.admitted = sizes.admitted(queues)
        self.own = np.where(self.admitted, sizes.jobs, 0)
        bits = np.uint64(1) << np.arange(len(queues), dtype=np.uint64)
        masks = (self.admitted * bits[:, None]).sum(axis=0, dtype=np.uint64)
        self.masks, kind = np.unique(masks, return_inverse=True)
        self.kinds = np.array([np.bincount(kind, own, self.masks.size) for own in self.own])  # by the set admitting
        self.order = self._best_order() if len(queues) <= EXACT else self._good_order()
        routed = sum(int(self.own[i, reach].sum()) for i, reach in zip(self.order, self._reaching(), strict=True))
        self.score = routed + int(self.own.sum())

    def _best_order(self) -> list[int]:
        """Find the best order by dynamic programming over the set of queues already placed."""
        count = len(self.queues)
        everything = (1 << count) - 1
        value, choice = np.zeros(everything + 1), np.zeros(everything + 1, dtype=np.int64)
        for before in range(everything - 1, -1, -1):
            gains = self.kinds[:, (self.masks & np.uint64(before)) == 0].sum(axis=1)
            total = [-1.0 if before >> i & 1 else gains[i] + value[before | 1 << i] for i in range(count)]
            choice[before] = np.argmax(total)
            value[before] = max(total)
        order: list[int] = []
        before = 0
        while before != everything:
            order.append(int(choice[before]))
            before |= 1 << order[-1]
        return order

    def _good_order(self) -> list[int]:
        """Place next the queue that admits the fewest jobs of the remaining ones; lossless if such an order exists."""
        takes = self.admitted.astype(np.int64) @ self.own.T  # [i, j]: jobs of queue j that queue i admits
        left, order = list(range(len(self.queues))), []
        while left:
            others = takes[np.ix_(left, left)].sum(axis=1) - takes[left, left]
            order.append(left.pop(int(np.argmin(others))))
        return order

    def _reaching(self) -> Iterator[Mask]:
        """Yield for each queue, in routing order, the mask of sizes that no earlier queue admits."""
        free = np.ones(self.sizes.cores.size, dtype=np.bool_)
        for i in self.order:
            yield free
            free = free & ~self.admitted[i]

    def refitted(self) -> _Arrangement:
        """Refit one queue at a time until the score no longer rises."""
        found = self
        while better := next((each for each in found.neighbours() if each.score > found.score), None):
            found = better
        return found

    def neighbours(self) -> Iterator[_Arrangement]:
        """Yield arrangements with one queue refitted, at its place or as the first of the route."""
        everything = np.ones(self.sizes.cores.size, dtype=np.bool_)
        for i, reach in zip(self.order, list(self._reaching()), strict=True):
            at = self.order.index(i)
            places = [(reach, self.order[at + 1 :]), (everything, [other for other in self.order if other != i])]
            for place in places if len(self.order) <= EXACT else places[:1]:
                queue = self._fitted(i, *place)
                if queue != self.queues[i]:
                    yield self.replaced(i, queue)

    def replaced(self, i: int, queue: QueueConfig) -> _Arrangement:
        return _Arrangement([*self.queues[:i], queue, *self.queues[i + 1 :]], self.outer, self.sizes)

    def _fitted(self, i: int, reach: Mask, after: Sequence[int]) -> QueueConfig:
        """Find the queue's ranges with the highest score, alternating walltimes and cores until both are stable."""
        otherwise = np.zeros(reach.size, dtype=np.int64)  # jobs routed right if this queue does not admit them
        free = reach.copy()
        for other in after:
            otherwise += np.where(free, self.own[other], 0)
            free &= ~self.admitted[other]
        worth = self.sizes.jobs[i] * (1 + reach) - otherwise
        alone = ~np.delete(self.admitted, i, axis=0).any(axis=0)
        worth[alone] = 2 * self.sizes.jobs.sum() + 1  # no other queue admits them
        queue = self.queues[i]
        for _ in range(ROUNDS):
            before = queue
            queue = self._best_walltimes(queue, self.outer[i], worth)
            queue = self._best_cores(queue, self.outer[i], worth)
            if queue == before:
                break
        return queue

    def _best_walltimes(self, queue: QueueConfig, outer: QueueConfig, worth: Counts) -> QueueConfig:
        wide = queue.model_copy(update={"walltime": outer.walltime})
        inside = wide.admits(self.sizes.cores, self.sizes.walltime) & (self.sizes.walltime > 0)
        values, first, last = _best_stretch(self.sizes.walltime[inside], worth[inside])
        above = int(values[first - 1]) if first else outer.walltime[0]
        upto = int(values[last]) if last < values.size - 1 else outer.walltime[1]
        return queue.model_copy(update={"walltime": (above, upto)})

    def _best_cores(self, queue: QueueConfig, outer: QueueConfig, worth: Counts) -> QueueConfig:
        wide = queue.model_copy(update={"cores": outer.cores})
        inside = wide.admits(self.sizes.cores, self.sizes.walltime)
        values, first, last = _best_stretch(self.sizes.cores[inside], worth[inside])
        least = int(values[first]) if first else outer.cores[0]
        most = int(values[last]) if last < values.size - 1 else outer.cores[1]
        return queue.model_copy(update={"cores": (least, most)})


def _best_stretch(values: Counts, worth: Counts) -> tuple[Counts, int, int]:
    """Return the sorted distinct values, and the indices of the first and last of the range with the highest worth."""
    distinct, which = np.unique(values, return_inverse=True)
    if distinct.size < 2:
        return distinct, 0, distinct.size - 1
    total = np.concatenate(([0], np.cumsum(np.bincount(which, worth))))
    gain = total[1:] - np.minimum.accumulate(total[:-1])
    last = int(gain.size - 1 - np.argmax(gain[::-1]))
    return distinct, int(np.argmin(total[: last + 1])), last
