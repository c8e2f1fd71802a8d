"""How many chunks of nodes a configuration lets one job have, of those that jobs ask for in a queue."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from parsim import Workload
from parsim.model.node_types import MEMORY, Chunk, NodeType, is_cores_alone
from parsim.prepare.node_types import copies_on
from qconf.config import KEPT, QueueConfig, SiteConfig
from qconf.evaluation.period import admission_keys, cached
from qconf.history.chunks import with_kept_cores


class TooMany(NamedTuple):
    """A queue, and the most chunks of a kind that one of its jobs can ever have."""

    queue: QueueConfig
    most: int
    chunk: Chunk

    def __str__(self) -> str:
        """Say which jobs would never start."""
        more = f"more than {self.most} chunks" if self.most else "chunks"
        return f"jobs of {self.queue.name} that ask for {more} of {_text(self.chunk)} would never start"

    def cores(self, config: SiteConfig) -> int:
        """Return the cores of the widest job whose nodes have no more such chunks."""
        types = _of_queue(self.queue, config.system().node_types)
        on = [(each.cores, copies) for each in types if (copies := copies_on(each, self.chunk))]
        return min((cores * (self.most // copies) for cores, copies in on), default=0)


def too_many(
    base: SiteConfig, other: SiteConfig, jobs: Workload, takers: Collection[tuple[QueueConfig, QueueConfig]]
) -> Iterator[TooMany]:
    """Yield which chunks jobs of a queue would wait for forever under `other`, and not under the base.

    A log shows what chunks the jobs of a queue consist of, and its queue how wide they may be: looked at are jobs of as
    many of each as the widest job that it admits has on nodes that it fills. Where several queues take such jobs one
    that can start them is enough. The `jobs` are in the queues of the base; `takers` are queues of the base, each with
    one of `other` that takes some of its jobs.
    """
    if not base.nodes or (admission_keys(base), base.reserve) == (admission_keys(other), other.reserve):
        return
    found = _kinds(jobs)
    before, after = (_under(config, found) for config in (base, other))
    named = set()
    for old, new in takers:
        longest = min(old.walltime[1], new.walltime[1])
        beside = [each for its, each in takers if its == old and each.walltime[0] < longest <= each.walltime[1]]
        for (q, _), was, now in zip(found, before, after, strict=True):
            if base.queues[q] != old or new.name in named:
                continue
            wanted = _widest(base, old, was, min(base.widest(old), base.reach(old), other.widest(new)))
            most = max((_most(other, queue, now) for queue in beside), default=0)
            if most < wanted:
                named.add(new.name)
                yield TooMany(new, most, was)


@cached
def _kinds(jobs: Workload) -> list[tuple[int, Chunk]]:
    """Return each queue, and each chunk that some job in it asks for, but for those of plain cores."""
    pairs = np.unique(np.stack((jobs.queue, jobs.request), axis=1)[jobs.request >= 0], axis=0)
    wanted = ((q, chunk) for q, number in pairs.tolist() for chunk in jobs.requests[number])
    return list(dict.fromkeys((q, replace(chunk, count=1)) for q, chunk in wanted if not is_cores_alone((chunk,))))


def _under(config: SiteConfig, found: list[tuple[int, Chunk]]) -> list[Chunk]:
    """Return the chunks with the cores that a configuration lets those without GPUs have."""
    cores = np.array([chunk.cores for _, chunk in found], dtype=np.int64)
    _, of_jobs = with_kept_cores(np.arange(cores.size), cores, [(chunk,) for _, chunk in found], config)
    return [request[0] for request in of_jobs]


def _of_queue(queue: QueueConfig, types: Iterable[NodeType]) -> list[NodeType]:
    """Return the types of nodes that a queue may use."""
    return [each for each in types if not queue.nodes or each.name in queue.nodes]


def _widest(config: SiteConfig, queue: QueueConfig, chunk: Chunk, cores: int) -> int:
    """Return how many chunks the widest job has that a queue may start: of so many cores, or on as many nodes."""
    types = _of_queue(queue, config.system().node_types)
    on_nodes = max((-(-cores // each.cores) * copies_on(each, chunk) for each in types), default=0)
    return min(_most(config, queue, chunk), on_nodes, *([cores // chunk.cores] if chunk.cores else []))


def _most(config: SiteConfig, queue: QueueConfig, chunk: Chunk) -> int:
    """Return how many chunks of a kind a job of a queue can ever have, by its nodes and by limits."""
    system = config.system()
    owned = system.owned_types
    parts = {0} if system.is_whole else {config.names.index(queue.name), len(owned) - 1}
    add = sum if system.places_chunks else max  # by totals all chunks of a kind are on one type
    most = max(
        add([0, *(each.nodes * copies_on(each, chunk) for each in _of_queue(queue, owned[part]))]) for part in parts
    )
    if chunk.cores:
        most = min(most, config.reach(queue) // chunk.cores)
    for throttle in config.throttles:
        if throttle.queue in {None, queue.name} and not throttle.name and not throttle.of_qos:
            limits = {"cores": throttle.max_run_cores, **throttle.max_run_resources}
            counts = (limit // chunk.amount(name) for name, limit in limits.items() if limit and chunk.amount(name))
            most = min([most, *counts])
    return most


def _text(chunk: Chunk) -> str:
    amounts = [
        f"{amount / 1024:g} GiB memory" if name == MEMORY else f"{amount} {name}"
        for name, amount in (("cores", chunk.cores), *dict(chunk.resources).items())
        if amount and name != KEPT
    ]
    return ", ".join([*amounts, *sorted(chunk.features)])
