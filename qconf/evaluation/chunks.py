"""How many chunks of a kind one job may have under a configuration, for the kinds of chunks that jobs request."""

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
    """A queue, a kind of chunk that its jobs request, and the most such chunks that one of its jobs can ever have."""

    queue: QueueConfig
    most: int
    chunk: Chunk

    def __str__(self) -> str:
        """Say which jobs would never start."""
        more = f"more than {self.most} chunks" if self.most else "chunks"
        return f"jobs of {self.queue.name} that ask for {more} of {_text(self.chunk)} would never start"

    def cores(self, config: SiteConfig) -> int:
        """Return the largest size in cores at which a job on whole nodes has at most `most` such chunks."""
        types = _of_queue(self.queue, config.system().node_types)
        on = [(each.cores, copies) for each in types if (copies := copies_on(each, self.chunk))]
        return min((cores * (self.most // copies) for cores, copies in on), default=0)


def too_many(
    base: SiteConfig, other: SiteConfig, jobs: Workload, takers: Collection[tuple[QueueConfig, QueueConfig]]
) -> Iterator[TooMany]:
    """Yield chunks that jobs of a queue may request in numbers that start under the base and never under `other`.

    The log shows which kinds of chunks the jobs of a queue request; the queue's limits show how wide a job may be. The
    widest admitted job, made of one kind of chunk, is tested: one of the queues that admit the job must be able to
    start it. The `jobs` are in the queues of the base; `takers` pairs these with queues of `other` that admit some of
    their jobs.
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
    """Return (queue, chunk of count 1) for each kind of chunk that a job requests, plain cores left out."""
    pairs = np.unique(np.stack((jobs.queue, jobs.request), axis=1)[jobs.request >= 0], axis=0)
    wanted = ((q, chunk) for q, number in pairs.tolist() for chunk in jobs.requests[number])
    return list(dict.fromkeys((q, replace(chunk, count=1)) for q, chunk in wanted if not is_cores_alone((chunk,))))


def _under(config: SiteConfig, found: list[tuple[int, Chunk]]) -> list[Chunk]:
    """Return the chunks with their cores reduced to those that a configuration leaves to chunks without GPUs."""
    cores = np.array([chunk.cores for _, chunk in found], dtype=np.int64)
    _, of_jobs = with_kept_cores(np.arange(cores.size), cores, [(chunk,) for _, chunk in found], config)
    return [request[0] for request in of_jobs]


def _of_queue(queue: QueueConfig, types: Iterable[NodeType]) -> list[NodeType]:
    """Return the types of nodes that a queue may use."""
    return [each for each in types if not queue.nodes or each.name in queue.nodes]


def _widest(config: SiteConfig, queue: QueueConfig, chunk: Chunk, cores: int) -> int:
    """Return how many such chunks the widest job of a queue has, of `cores` cores or on as many whole nodes."""
    types = _of_queue(queue, config.system().node_types)
    on_nodes = max((-(-cores // each.cores) * copies_on(each, chunk) for each in types), default=0)
    return min(_most(config, queue, chunk), on_nodes, *([cores // chunk.cores] if chunk.cores else []))


def _most(config: SiteConfig, queue: QueueConfig, chunk: Chunk) -> int:
    """Return how many such chunks one job of a queue can ever have, by the queue's nodes and by limits."""
    system = config.system()
    owned = system.owned_types
    parts = {0} if system.is_whole else {config.names.index(queue.name), len(owned) - 1}
    add = sum if system.places_chunks else max  # without placement all chunks of a kind are on one type
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
