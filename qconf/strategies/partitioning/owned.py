"""Partitions of nodes of several types: each is divided by itself, in proportion to what jobs have of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim import System, Workload
from parsim.model.node_types import NodeType
from parsim.prepare.chunks import fits, has_place
from parsim.prepare.node_types import Wanted, distinct_requests, places, resources_of
from qconf.config import ConfigError, SiteConfig
from qconf.evaluation.period import NotApplicableError, TrainingSet
from qconf.strategies.base import Proposal, Step, step
from qconf.strategies.partitioning.readings import PartitionOptions
from qconf.strategies.partitioning.sizes import (
    SHORT,
    apportion,
    fixed_partition,
    least_sizes,
    may_lower,
    startable,
)
from qconf.strategies.shared import whole

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@step
class ProportionalOfAType(Step):
    """Nodes of one type for each partition, from the node-hours of jobs on it."""

    type_: str
    queues: list[str]
    node_hours: list[float]
    widest: list[int]
    nodes: list[int]


class Demand(NamedTuple):
    """What the jobs of each queue have of each type of nodes.

    Attributes
    ----------
    node_seconds : ndarray(float64), shape (Q, T)
        At the first place of each job (rule 58): the largest share of a resource that it takes, in nodes, times its run
        time.
    widest : ndarray(int64), shape (Q, T)
        Nodes of the type that hold the widest job; without jobs, those of the narrowest that the queue admits.
    usable : ndarray(bool), shape (Q, T)
        Whether a job has a place on nodes of the type at all; without jobs, where `widest` is not 0.
    """

    node_seconds: Floats
    widest: Counts
    usable: NDArray[np.bool_]


def demand(base: SiteConfig, workload: Workload) -> Demand:
    """Return what jobs have of each type of nodes of the whole machine."""
    system = whole(base).system()
    types = system.node_types
    of, distinct = distinct_requests(system, workload)
    taken = [_taken(types, each) for each in distinct]
    shares = np.array([each[0] for each in taken]).reshape(len(distinct), -1)
    anywhere = np.array([each[1] for each in taken]).reshape(shares.shape)
    least = np.array([_least(system, types, each, its) for each, its in zip(distinct, shares, strict=True)])
    seconds = np.zeros((len(base.queues), len(base.nodes)))
    widest = np.zeros(seconds.shape, dtype=np.int64)
    usable = np.zeros(seconds.shape, dtype=np.bool_)
    np.add.at(seconds, workload.queue, shares[of] * workload.effective_runtime[:, np.newaxis])
    np.maximum.at(widest, workload.queue, least.reshape(shares.shape)[of])
    np.logical_or.at(usable, workload.queue, anywhere[of])
    for q, queue in enumerate(base.queues):
        if not (workload.queue == q).any():
            t = next((t for t, each in enumerate(base.nodes) if each.name in (queue.nodes or (each.name,))), 0)
            widest[q, t] = -(-queue.cores[0] // base.nodes[t].cores)
            usable[q, t] = True
    return Demand(seconds, widest, usable)


def _taken(types: Sequence[NodeType], wanted: Wanted) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the nodes of each type that such a job takes at its first place, by what it takes most of, and its types.

    The types are those of any of its places.
    """
    found = places(types, *wanted[1:])
    node = np.array([[each.amount(name) for name in resources_of(types)] for each in types], dtype=np.float64)
    taken = found[0] if len(found) else np.zeros(node.shape)
    shares: Floats = np.divide(taken, node, out=np.zeros(node.shape), where=node > 0).max(axis=1)
    return shares, np.asarray(found.any(axis=(0, 2)))


def _least(system: System, types: Sequence[NodeType], wanted: Wanted, shares: Floats) -> list[int]:
    """Return the fewest nodes of each type that hold such a job; of one on several types, what it takes of each."""
    least = [int(count) for count in np.ceil(shares - 1e-9)]
    on = [t for t, count in enumerate(least) if count]
    if len(on) == 1:
        while least[on[0]] < types[on[0]].nodes and not _holds(system, types, least, wanted):
            least[on[0]] += 1
    return least


def _holds(system: System, types: Sequence[NodeType], nodes: list[int], wanted: Wanted) -> bool:
    return fits(system, [replace(each, nodes=count) for each, count in zip(types, nodes, strict=True)], wanted)


def divided(training: TrainingSet, options: PartitionOptions) -> Proposal:
    """Divide the nodes of each type in proportion to the node-seconds of the queues that may use it.

    Raises NotApplicableError if there is no job or no partition to size, or a type cannot hold the widest jobs of all.
    """
    base = training.base
    if not len(training):
        raise NotApplicableError("there is no job to train on")
    if any(queue.reservation for queue in base.queues):
        raise NotApplicableError("nodes are of several types, and jobs by advance reservation go with all alike")
    of_jobs = demand(base, training.workload)
    kept = [i for i in range(len(base.queues)) if fixed_partition(base, i)]
    owned = [dict(queue.partition_nodes) if i in kept else {} for i, queue in enumerate(base.queues)]
    steps: list[Step] = []
    for t, each in enumerate(base.nodes):
        may = [i for i, queue in enumerate(base.queues) if i not in kept and each.name in (queue.nodes or (each.name,))]
        may = [i for i in may if of_jobs.usable[i, t]] or may
        seconds, submitted = of_jobs.node_seconds[may, t], of_jobs.widest[may, t]
        free = each.count - sum(owned[i].get(each.name, 0) for i in kept)
        admitted = np.array([min(-(-startable(base, base.queues[i]) // each.cores), each.count) for i in may])
        lowerable = [may_lower(training, i) for i in may]
        widest = least_sizes(submitted, admitted.astype(np.int64), lowerable, free, options.least_size)
        if free and not may:
            raise NotApplicableError(f"no queue whose partition is not fixed may use nodes of {each.name}")
        if widest.sum() > free:
            need = int(widest.sum())
            raise NotApplicableError(f"the widest jobs need {need} of {free} nodes of {each.name} together")
        nodes = apportion(seconds, free, widest, options.rounding).tolist() if may else []
        for i, count in zip(may, nodes, strict=True):
            owned[i] |= {each.name: count} if count else {}
        steps.append(
            ProportionalOfAType(
                type_=each.name,
                queues=[base.queues[i].name for i in may],
                node_hours=[round(float(work) / 3600, 1) for work in seconds],
                widest=widest.tolist(),
                nodes=nodes,
                notes=(SHORT,) if options.least_size == "queue" and (widest < admitted).any() else (),
            )
        )
    return Proposal(configured(training, owned), tuple(steps))


def configured(training: TrainingSet, owned: Sequence[dict[str, int]]) -> SiteConfig:
    """Return the base on partitions of these nodes. Raises NotApplicableError where jobs have no place on them."""
    try:
        config = training.base.with_owned(owned)
    except ConfigError as error:
        raise NotApplicableError(f"nodes are of several types: {error.problems[0].message}") from error
    outside = int(np.count_nonzero(~has_place(config.system(), training.workload)))
    if outside:
        raise NotApplicableError(f"{outside} jobs fit on no partition")
    return config
