"""What is compared where nodes are of several types: which of them queues may use, and whether jobs have them alone.

`gpu-nodes-open` and `gpu-nodes-closed` answer the first question of a site with GPU nodes without any search.
`nodes-shared` and `nodes-exclusive` show what nodes of their own cost the jobs; run times stay as the log has them,
though jobs that share a node may slow each other down.
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
    """Mark the queues of the base that have jobs, none of which takes GPUs; none if no job does; shape (Q,)."""
    workload, queues = training.workload, len(training.base.queues)
    takes = of_requests(workload.requests)[0, workload.request] > 0
    jobs, with_gpus = (np.bincount(workload.queue[rows], minlength=queues) for rows in (slice(None), takes))
    found: NDArray[np.bool_] = (jobs > 0) & (with_gpus == 0) & bool(with_gpus.any())
    return found


def alone(config: SiteConfig) -> list[bool]:
    """Return whether jobs have nodes alone because of each type of nodes and each queue."""
    return [*(each.exclusive for each in config.nodes), *(queue.exclusive for queue in config.queues)]


def given_whole(config: SiteConfig, *, exclusive: bool) -> SiteConfig:
    """Return a site on which every job has its nodes alone, or none has but those that ask for it."""
    changed = {"exclusive": True, "kept_per_gpu": 0} if exclusive else {"exclusive": False}
    nodes = tuple(each.model_copy(update=changed) for each in config.nodes)
    return config.with_each(lambda _: {"exclusive": False}, nodes=nodes)


def both_ways(config: SiteConfig, queue: QueueConfig) -> tuple[QueueConfig, QueueConfig] | None:
    """Return a queue that may use no GPU nodes, and one that may use all of them; None if there are only such nodes."""
    own = queue.nodes or tuple(each.name for each in config.nodes)
    with_gpus = {each.name for each in config.nodes if each.gpus}
    plain = tuple(name for name in own if name not in with_gpus)
    every = tuple(each.name for each in config.nodes if each.name in {*plain, *with_gpus})
    if not plain or not with_gpus:
        return None
    all_of_them = None if len(every) == len(config.nodes) else every
    return queue.model_copy(update={"nodes": plain}), queue.model_copy(update={"nodes": all_of_them})


class _OfNodes(Strategy):
    """One of two ways to use nodes; always compared where a site has them, and nowhere else unless it is named."""

    any_nodes = True
    default = False
    tune_default = False

    def __init__(self, name: str, position: int, *, second: bool) -> None:
        self.name, self.position, self.second = name, position, second


class GpuNodes(_OfNodes):
    """The base with other nodes for the queues in which no job takes GPUs."""

    def is_baseline_of(self, base: SiteConfig) -> bool:
        """Whether the site has GPU nodes and others, which a queue may use."""
        return any(both_ways(base, queue) is not None for queue in base.queues)

    def propose(self, training: TrainingSet, options: Options) -> Proposal:
        """Let these queues use GPU nodes, or not."""
        del options
        base, queues = training.base, []
        if base.mode != "shared" or not self.is_baseline_of(base):
            raise NotApplicableError("no queue may use GPU nodes and others")
        for queue, plain in zip(base.queues, without_gpus(training), strict=True):
            both = both_ways(base, queue) if plain else None
            queues.append(queue if both is None else both[self.second])
        config = base.replace(queues=tuple(queues))
        outside = ~has_place(config.system(), training.workload)
        if outside.any():
            raise NotApplicableError(f"{int(outside.sum())} jobs fit on no other nodes")
        return Proposal(config)


class Sharing(_OfNodes):
    """The base with all nodes given whole, or none."""

    def is_baseline_of(self, base: SiteConfig) -> bool:
        """Whether jobs have some nodes alone because of what nodes or queues are."""
        return any(alone(base))

    def propose(self, training: TrainingSet, options: Options) -> Proposal:
        """Give nodes whole, or let jobs share them."""
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
