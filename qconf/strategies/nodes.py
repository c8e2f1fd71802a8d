"""Strategies for nodes of several types: whether queues may use GPU nodes, and whether jobs have nodes alone.

`gpu-nodes-open` and `gpu-nodes-closed` answer the first question of a site with GPU nodes without a search.
`nodes-shared` and `nodes-exclusive` show the cost of exclusive nodes; run times stay as in the log, although jobs that
share a node may slow each other down.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parsim.model.formula import of_requests
from parsim.prepare.chunks import has_place
from qconf.config import QueueConfig, SiteConfig
from qconf.evaluation.period import NotApplicableError, TrainingSet
from qconf.strategies.base import Options, Proposal, Strategy


def without_gpus(training: TrainingSet) -> NDArray[np.bool_]:
    """Mark the queues of the base that have jobs but none with GPUs, shape (Q,); none if no job uses GPUs."""
    workload, queues = training.workload, len(training.base.queues)
    takes = of_requests(workload.requests)[0, workload.request] > 0
    jobs, with_gpus = (np.bincount(workload.queue[rows], minlength=queues) for rows in (slice(None), takes))
    found: NDArray[np.bool_] = (jobs > 0) & (with_gpus == 0) & bool(with_gpus.any())
    return found


def gives_nodes_alone(config: SiteConfig) -> list[bool]:
    """Return whether each type of nodes, then each queue, gives jobs nodes alone."""
    return [*(each.exclusive for each in config.nodes), *(queue.exclusive for queue in config.queues)]


def given_whole(config: SiteConfig, *, exclusive: bool) -> SiteConfig:
    """Return the site with all jobs alone on their nodes, or with only those that request it."""
    changed = {"exclusive": True, "kept_per_gpu": 0} if exclusive else {"exclusive": False}
    nodes = tuple(each.model_copy(update=changed) for each in config.nodes)
    return config.with_each(lambda _: {"exclusive": False}, nodes=nodes)


def off_and_on_gpu_nodes(config: SiteConfig, queue: QueueConfig) -> tuple[QueueConfig, QueueConfig] | None:
    """Return a queue without GPU nodes, and with all; None if it has no others, or the site has no GPU nodes."""
    own = queue.nodes or tuple(each.name for each in config.nodes)
    with_gpus = {each.name for each in config.nodes if each.gpus}
    plain = tuple(name for name in own if name not in with_gpus)
    every = tuple(each.name for each in config.nodes if each.name in {*plain, *with_gpus})
    if not plain or not with_gpus:
        return None
    all_of_them = None if len(every) == len(config.nodes) else every
    return queue.model_copy(update={"nodes": plain}), queue.model_copy(update={"nodes": all_of_them})


class _OfNodes(Strategy):
    """One of two ways to use nodes; compared by default only at sites that have a choice."""

    any_nodes = True
    default = False
    tune_default = False

    def __init__(self, name: str, position: int, *, second: bool) -> None:
        self.name, self.position, self.second = name, position, second


class GpuNodes(_OfNodes):
    """The base with all GPU nodes, or none, for queues in which no job uses GPUs."""

    def is_baseline_of(self, base: SiteConfig) -> bool:
        """Whether it is always compared at this site: some queue could use GPU nodes and others."""
        return any(off_and_on_gpu_nodes(base, queue) is not None for queue in base.queues)

    def propose(self, training: TrainingSet, options: Options) -> Proposal:
        """Open GPU nodes to queues without GPU jobs if `second`, else close them."""
        del options
        base, queues = training.base, []
        if base.mode != "shared" or not self.is_baseline_of(base):
            raise NotApplicableError("no queue may use GPU nodes and others")
        for queue, plain in zip(base.queues, without_gpus(training), strict=True):
            both = off_and_on_gpu_nodes(base, queue) if plain else None
            queues.append(queue if both is None else both[self.second])
        config = base.replace(queues=tuple(queues))
        outside = ~has_place(config.system(), training.workload)
        if outside.any():
            raise NotApplicableError(f"{int(outside.sum())} jobs fit on no other nodes")
        return Proposal(config)


class Sharing(_OfNodes):
    """The base with jobs alone on all nodes, or with jobs that share them."""

    def is_baseline_of(self, base: SiteConfig) -> bool:
        """Whether it is always compared at this site: some type of nodes or some queue gives jobs nodes alone."""
        return any(gives_nodes_alone(base))

    def propose(self, training: TrainingSet, options: Options) -> Proposal:
        """Give all jobs whole nodes if `second`, else let jobs share them."""
        del options
        if not training.base.nodes:
            raise NotApplicableError("the site has no types of nodes")
        return Proposal(given_whole(training.base, exclusive=self.second))


STRATEGIES = (
    GpuNodes("gpu-nodes-open", 4, second=True),
    GpuNodes("gpu-nodes-closed", 5, second=False),
    Sharing("nodes-shared", 6, second=False),
    Sharing("nodes-exclusive", 7, second=True),
)
