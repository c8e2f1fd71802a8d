"""Which nodes the queues of a site with GPU nodes may use, and whether jobs have nodes alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parsim.model.formula import of_requests
from qconf.config import QueueConfig, SiteConfig
from qconf.evaluation.period import TrainingSet


def without_gpus(training: TrainingSet) -> NDArray[np.bool_]:
    """Mark the queues of the base that have jobs, none of which takes GPUs; none if no job does; shape (Q,)."""
    workload, queues = training.workload, len(training.base.queues)
    takes = of_requests(workload.requests)[0, workload.request] > 0
    jobs, with_gpus = (np.bincount(workload.queue[rows], minlength=queues) for rows in (slice(None), takes))
    found: NDArray[np.bool_] = (jobs > 0) & (with_gpus == 0) & bool(with_gpus.any())
    return found


def some_alone(config: SiteConfig) -> bool:
    """Whether some jobs have nodes alone because of what nodes or queues are."""
    return any(alone(config))


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
