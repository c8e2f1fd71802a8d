"""Partitions of nodes of several types: each type is divided by itself, in proportion to what jobs have of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from parsim.node_types import NodeType
from parsim.places import Wanted, distinct_requests, places, resources_of
from parsim.placing import fits, has_place
from parsim.system import System
from qconf.config import ConfigError, SiteConfig
from qconf.evaluation.period import NotApplicableError, TrainingSet
from qconf.strategies.base import Proposal, Step, step
from qconf.strategies.partitioning.descent import descend
from qconf.strategies.partitioning.readings import PartitionOptions, ProportionalOptions
from qconf.strategies.partitioning.sizes import apportion, fixed_partition
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


@step
class MovesOfNodes(Step):
    """Nodes moved between partitions, of one type after the other, as the simulated wait got shorter."""

    simulated: int
    hours_before: float
    hours: float
    nodes: dict[str, dict[str, int]]


def demand(training: TrainingSet) -> tuple[Floats, Counts]:
    """Return what the jobs of each queue have of each type of nodes, at the first place of each (rule 58).

    Returns
    -------
    node_seconds : ndarray(float64), shape (Q, T)
        The largest share of a resource that a job takes, in nodes, times its run time.
    widest : ndarray(int64), shape (Q, T)
        Nodes of the type that hold the widest job; without jobs, those of the narrowest that the queue admits.
    """
    base, workload = training.base, training.workload
    system = whole(base).system()
    of, distinct = distinct_requests(system, workload)
    shares = np.array([_shares(system, each) for each in distinct]).reshape(len(distinct), -1)
    least = np.array([_least(system, each, its) for each, its in zip(distinct, shares, strict=True)])
    seconds = np.zeros((len(base.queues), len(base.nodes)))
    widest = np.zeros(seconds.shape, dtype=np.int64)
    np.add.at(seconds, workload.queue, shares[of] * workload.effective_runtime[:, np.newaxis])
    np.maximum.at(widest, workload.queue, least.reshape(shares.shape)[of])
    for q, queue in enumerate(base.queues):
        if not (workload.queue == q).any():
            t = next((t for t, each in enumerate(base.nodes) if each.name in (queue.nodes or (each.name,))), 0)
            widest[q, t] = -(-queue.cores[0] // base.nodes[t].cores)
    return seconds, widest


def _shares(system: System, wanted: Wanted) -> Floats:
    """Return how many nodes of each type such a job takes at its first place, by what it takes most of."""
    types = system.node_types
    found = places(types, *wanted[1:])
    node = np.array([[each.amount(name) for name in resources_of(types)] for each in types], dtype=np.float64)
    taken = found[0] if len(found) else np.zeros(node.shape)
    shares: Floats = np.divide(taken, node, out=np.zeros(node.shape), where=node > 0).max(axis=1)
    return shares


def _least(system: System, wanted: Wanted, shares: Floats) -> list[int]:
    """Return the fewest nodes of each type that hold such a job; of one on several types, what it takes of each."""
    least = [int(count) for count in np.ceil(shares - 1e-9)]
    on = [t for t, count in enumerate(least) if count]
    if len(on) == 1:
        types = system.node_types
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
    if options.least_size != "job":
        raise NotApplicableError("nodes are of several types: partitions hold the widest job submitted, not admitted")
    if any(queue.reservation for queue in base.queues):
        raise NotApplicableError("nodes are of several types, and jobs by advance reservation go with all alike")
    seconds, widest = demand(training)
    kept = [i for i in range(len(base.queues)) if fixed_partition(base, i)]
    owned = [dict(queue.partition_nodes) if i in kept else {} for i, queue in enumerate(base.queues)]
    steps: list[Step] = []
    movable = {}
    for t, each in enumerate(base.nodes):
        may = [i for i, queue in enumerate(base.queues) if i not in kept and each.name in (queue.nodes or (each.name,))]
        free = each.count - sum(owned[i].get(each.name, 0) for i in kept)
        if free and not may:
            raise NotApplicableError(f"no queue whose partition is not fixed may use nodes of {each.name}")
        if widest[may, t].sum() > free:
            need = int(widest[may, t].sum())
            raise NotApplicableError(f"the widest jobs need {need} of {free} nodes of {each.name} together")
        nodes = [0] * len(may)
        if may:
            nodes = apportion(seconds[may, t], free, widest[may, t], options.rounding).tolist()
        movable[each.name] = may, widest[may, t]
        for i, count in zip(may, nodes, strict=True):
            owned[i] |= {each.name: count} if count else {}
        steps.append(
            ProportionalOfAType(
                type_=each.name,
                queues=[base.queues[i].name for i in may],
                node_hours=[round(float(work) / 3600, 1) for work in seconds[may, t]],
                widest=widest[may, t].tolist(),
                nodes=nodes,
            )
        )
    config = _configured(training, owned)
    if isinstance(options, ProportionalOptions) and options.type_moves:
        steps.append(_refine(training, owned, movable, options.type_moves))
        config = _configured(training, owned)
    return Proposal(config, tuple(steps))


def _refine(
    training: TrainingSet, owned: list[dict[str, int]], movable: dict[str, tuple[list[int], Counts]], most: int
) -> Step:
    """Move nodes of each type in turn between these queues, none below what they need, while the wait gets shorter."""
    before = wait = training.weighted_wait(training.base.with_owned(owned))
    simulated = 0
    for name, (may, least) in movable.items():
        nodes = np.array([owned[i].get(name, 0) for i in may], dtype=np.int64)

        def divide(division: Counts, name: str = name, may: list[int] = may) -> None:
            for i, count in zip(may, division.tolist(), strict=True):
                owned[i].pop(name, None)
                owned[i] |= {name: count} if count else {}

        def waits(division: Counts, divide: Callable[[Counts], None] = divide) -> float:
            divide(division)
            return training.weighted_wait(training.base.with_owned(owned))

        def allowed(division: Counts, least: Counts = least) -> bool:
            return bool((division >= least).all())

        step = max(1, int(nodes.sum()) // 8)
        best, wait, count = descend(waits, nodes, allowed, step=step, most=most // len(movable))
        divide(best)
        simulated += count
    return MovesOfNodes(
        simulated=simulated,
        hours_before=round(before / 3600, 3),
        hours=round(wait / 3600, 3),
        nodes={training.base.queues[i].name: dict(its) for i, its in enumerate(owned)},
    )


def _configured(training: TrainingSet, owned: list[dict[str, int]]) -> SiteConfig:
    """Return the base on partitions of these nodes. Raises NotApplicableError where jobs have no place on them."""
    try:
        config = training.base.with_owned(owned)
    except ConfigError as error:
        raise NotApplicableError(f"nodes are of several types: {error.problems[0].message}") from error
    outside = int(np.count_nonzero(~has_place(config.system(), training.workload)))
    if outside:
        raise NotApplicableError(f"{outside} jobs fit on no partition")
    return config
