"""Derive a configuration for a history without one: a queue per queue name, on one shared machine.

Its queues get an order and ranges with which routing by size sends most jobs of the log to their own queue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from parsim.model.workload import MAX_DURATION
from qconf.config import MachineConfig, QueueConfig, SiteConfig, route
from qconf.config.routing import Column, Mask
from qconf.errors import InputError
from qconf.history.chunks import GPUS
from qconf.history.names import alike, legal_names, renamed
from qconf.history.records import Records, most_at_once

GUESSED = 2.0  # if this many times the machine's cores ran at once, its size can only be a guess
NAMELESS = "all"  #: queue of the jobs that name none


def derive_config(records: Records, cores: int | None = None) -> SiteConfig:
    """Return the plainest configuration that takes every job: one shared machine, fcfs-easy, no limits.

    A queue's ranges span its jobs, narrowed and ordered by `arranged`; it has no walltime maximum if one of its jobs
    has no walltime. Without `cores`, the machine has the size in the log's header, else the most cores that ran at
    once. Raises `InputError` if the machine's size is unknown or no job is usable on it.
    """
    size = cores or records.machine_cores or most_at_once(records.table)
    if not size and len(records.table):
        raise InputError("the size of the machine is unknown", file=records.first_file, fix="give it with --cores")
    table = records.table
    lacks = _lacks(table) | {f"more than {size} cores": table["cores"] > size}
    usable = table.loc[~np.any(list(lacks.values()), axis=0), ["queue", "cores", "walltime"]]
    if usable.empty:
        counts = records.reasons | {what: int(rows.sum()) for what, rows in lacks.items()}
        raise records.no_job(records.read, counts, records.dropped)
    legal = legal_names(records.queue_names)
    nameless = NAMELESS
    while nameless in legal.values():
        nameless += "-"
    queues = [
        QueueConfig(
            name=legal.get(str(name), nameless),
            cores=(int(jobs["cores"].min()), int(jobs["cores"].max())),
            walltime=(0, int(jobs["walltime"].max()) if (jobs["walltime"] > 0).all() else MAX_DURATION),
        )
        for name, jobs in usable.groupby("queue", sort=False, observed=True)
    ]
    queues.sort(key=lambda queue: (queue.cores[1], queue.walltime[1], queue.name))
    known = {legal.get(name, nameless): name for name in usable["queue"].unique().tolist()}
    queues = arranged(queues, Sizes.of(usable, [known[queue.name] for queue in queues]))
    node = min(records.cores_per_node or 1, size)
    machine = MachineConfig(name="derived", cores=size, cores_per_node=node, whole_nodes=node > 1 and not size % node)
    return SiteConfig.build(machine=machine, queues=tuple(queues))


def check_size(records: Records, base: SiteConfig) -> None:
    """Raise InputError if twice the cores of `base` or more ran at once in the log."""
    cores, most = base.machine.cores, most_at_once(records.table)
    if most >= GUESSED * cores:
        raise InputError(
            f"{most} cores ran at once in the log",
            file=records.first_file,
            field="machine.cores",
            value=cores,
            fix=f"write the machine's size into the configuration, {most} cores or more",
        )


def remarks(records: Records, config: SiteConfig) -> list[str]:
    """List remarks on a derived configuration: renamed queues, and jobs too wide, with GPUs or routed elsewhere."""
    table, size = records.table, config.machine.cores
    legal = legal_names(records.queue_names)
    found = [renamed(name, new) for name, new in legal.items() if name != new and new in config.names]
    found += alike(legal)
    wide = table[~np.any(list(_lacks(table).values()), axis=0) & (table["cores"] > size)]
    if len(wide):
        counts = wide["queue"].value_counts(sort=False)
        queues = ", ".join(f"{count} of {legal.get(str(name), 'no queue')}" for name, count in counts.items())
        found.append(f"jobs wider than the machine of {size} cores are left out: {queues}")
    if gpus := sum(bool(GPUS.search(text)) for text in table["needs"].tolist()):
        found.append(
            f"{gpus} jobs had GPUs: cores alone are counted; init from what the batch system holds writes nodes: with "
            "theirs, or write them yourself"
        )
    usable = table[~np.any(list(_lacks(table).values()), axis=0) & (table["cores"] <= size)]
    return [*found, *_routed_elsewhere(usable, legal, config)]


def _routed_elsewhere(jobs: pd.DataFrame, legal: Mapping[str, str], config: SiteConfig) -> Iterator[str]:
    """Count for each queue the jobs that a route by size sends elsewhere, and those outside its ranges."""
    admitted = [queue.admits(jobs["cores"].to_numpy(), jobs["walltime"].to_numpy()) for queue in config.queues]
    sent = route(np.full(len(jobs), -1, dtype=np.int64), admitted)
    nameless = next((name for name in config.names if name not in legal.values()), NAMELESS)
    names = [legal.get(name, nameless) for name in jobs["queue"].tolist()]
    went = pd.Index(config.names).get_indexer(pd.Index(names))
    for i, name in enumerate(config.names):
        mine = went == i
        others = Counter(config.names[other] for other in sent[mine & (sent != i)].tolist())
        if others:
            where = ", ".join(f"{count} to {other}" for other, count in others.most_common())
            yield f"{name}: by their size alone {others.total()} of its {mine.sum()} jobs go elsewhere, {where}"
        if outside := int((mine & ~admitted[i]).sum()):
            yield f"{name}: {outside} of its {mine.sum()} jobs are outside its ranges, to take fewer of others"


def _lacks(table: pd.DataFrame) -> dict[str, pd.Series[bool]]:
    """Return the masks of jobs that no machine could run, by reason."""
    return {
        "no submit time": table["submit"] < 0,
        "no cores": table["cores"] < 1,
        "no run time": table["runtime"] <= 0,
    }


STRAYS = (0.0, 0.01, 0.05, 0.2)  #: fractions of a queue's jobs first cut at each edge of its range, as strays
EXACT = 10  #: up to this many queues, all orders are searched
ROUNDS = 9  #: most rounds of fitting a queue's cores and walltimes in turn
MOST = 32  #: with more queues, the given order is kept


class Sizes(NamedTuple):
    """The U distinct sizes of jobs, and each of the Q queues' jobs of that size."""

    cores: Column  #: shape (U,)
    walltime: Column  #: seconds, 0 if unknown; shape (U,)
    jobs: Column  #: shape (Q, U)

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


def _spanning(queue: QueueConfig, jobs: Column, sizes: Sizes, stray: float = 0.0) -> QueueConfig:
    """Narrow a queue's ranges to `jobs`, less a share at each edge; walltimes down to the next shorter of any job."""
    known = np.where(sizes.walltime > 0, jobs, 0)
    change = {"cores": _edges(sizes.cores, jobs, stray)}
    if known.any():
        short, long = _edges(sizes.walltime, known, stray)
        above = int(sizes.walltime[sizes.walltime < short].max(initial=0))
        change["walltime"] = (above, long if long < sizes.walltime[known > 0].max() else queue.walltime[1])
    return queue.model_copy(update=change)


def _edges(values: Column, jobs: Column, stray: float) -> tuple[int, int]:
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
            queue = self._best(queue, "walltime", self.outer[i].walltime, worth)
            queue = self._best(queue, "cores", self.outer[i].cores, worth)
            if queue == before:
                break
        return queue

    def _best(self, queue: QueueConfig, of: str, outer: tuple[int, int], worth: Column) -> QueueConfig:
        """Return the queue with its most worthy range of cores or walltimes (`of`) within `outer`."""
        wide, sizes = queue.model_copy(update={of: outer}), getattr(self.sizes, of)
        inside = wide.admits(self.sizes.cores, self.sizes.walltime) & (sizes > 0)
        values, first, last = _best_stretch(sizes[inside], worth[inside])
        least = int(values[first - (of == "walltime")]) if first else outer[0]  # walltimes are above their minimum
        most = int(values[last]) if last < values.size - 1 else outer[1]
        return queue.model_copy(update={of: (least, most)})


def _best_stretch(values: Column, worth: Column) -> tuple[Column, int, int]:
    """Return the sorted distinct values, and the indices of the first and last of the range with the highest worth."""
    distinct, which = np.unique(values, return_inverse=True)
    if distinct.size < 2:
        return distinct, 0, distinct.size - 1
    total = np.concatenate(([0], np.cumsum(np.bincount(which, worth))))
    gain = total[1:] - np.minimum.accumulate(total[:-1])
    last = int(gain.size - 1 - np.argmax(gain[::-1]))
    return distinct, int(np.argmin(total[: last + 1])), last
