"""The partitions of a configuration: their nodes, who may use them, and their lines."""

from __future__ import annotations

from collections.abc import Sequence

from qconf.config import SiteConfig
from qconf.config.multifactor import Multifactor
from qconf.errors import ExportError
from qconf.export.nodes import Node, assign, check_machine
from qconf.export.priorities import scale
from qconf.export.slurm import kept, preemption
from qconf.export.slurm.queues import POOL, Line, access, charged, clock, whole_minutes
from qconf.export.slurm.queues import written as queue_words
from qconf.export.types import hosts as hosts_of_types
from qconf.export.types import is_bound, types_of, types_of_pool
from qconf.hosts import fold
from qconf.text import grouped

#: What a partition of an export has first, in this order.
WORDS = (
    *("Nodes", "MaxTime", "MaxCPUsPerNode", "MinNodes", "MaxNodes", "PriorityTier", "PriorityJobFactor"),
    *("OverSubscribe", "PreemptMode", "QOS", "TRESBillingWeights"),
)


def written(name: str, line: Line) -> str:
    """Write the line of a partition."""
    return " ".join([f"PartitionName={name}", *(f"{word}={value}" for word, value in line.items())])


def hosts_of(config: SiteConfig, nodes: Sequence[Node] | None) -> dict[str, str]:
    """Write the nodes of each partition, the pool's among them, as a host list."""
    every = "ALL" if nodes is None else fold([node.name for node in nodes])
    if _names_nodes(config):
        found = hosts_of_types(config, nodes)
        of_queues = {queue.name: types_of(config, queue) for queue in config.queues}
        bound = {name: types for name, types in of_queues.items() if types is not None}
        bound |= {part.name: part.nodes for of in kept.parts(config).values() for part in of}
        if config.pool is not None and config.pool_cores:
            bound[POOL] = tuple(config.pool.nodes)
        own = {name: fold([host for each in types for host in found[each]]) or '""' for name, types in bound.items()}
        return dict.fromkeys(config.names, every) | own
    if nodes is None or config.nodes:
        return dict.fromkeys(config.names, every)
    check_machine(config, nodes)
    if config.mode == "shared":
        return dict.fromkeys(config.names, every)
    owned = grouped((owner or POOL, name) for name, owner in assign(config, nodes).items())
    # A queue without nodes of its own has its jobs in the pool, or on all nodes if it has reservations.
    hosts = {queue.name: every if queue.reservation else '""' for queue in config.queues}
    return hosts | {name: fold(names) for name, names in owned.items()}


def types_named(config: SiteConfig, given: SiteConfig) -> dict[str, str]:
    """Return the names of types of nodes with their hosts, where queues are bound to some; with a pool those `given`.

    Of partitions alone each queue has types of its own.
    """
    named = given.nodes if config.pool_cores else config.nodes
    return {each.name: each.hosts for each in named if each.hosts is not None} if _names_nodes(config) else {}


def _names_nodes(config: SiteConfig) -> bool:
    """Whether partitions are on some types of nodes."""
    return is_bound(config) or config.keeps_cores


def _pool_gives_whole(config: SiteConfig) -> bool:
    """Whether jobs have nodes of the pool alone. Raises ExportError where some have and others not, or some nodes."""
    of_pool = {} if config.pool is None else config.pool.nodes
    users = [queue for queue in config.queues if types_of_pool(config, queue)]
    alone = {queue.exclusive or each.exclusive for queue in users for each in config.nodes if each.name in of_pool}
    if len(alone) > 1:
        raise ExportError(
            "pool: some jobs have nodes of it alone and others not, and Slurm gives the jobs of a partition whole "
            "nodes or none: make its nodes of one kind, and exclusive: true of all queues or of none"
        )
    return config.machine.whole_nodes or True in alone


def held(config: SiteConfig) -> dict[str, list[tuple[float, dict[str, int]]]]:
    """Return the memory in MiB, endless where it is not counted, and the generic resources of the nodes of queues."""
    counted = any(each.memory for each in config.nodes)
    return {
        queue.name: [
            (each.memory if counted else 1e18, {**each.resources, "gpu": each.gpus})
            for each in config.nodes
            if (types := types_of(config, queue)) is None or each.name in types
        ]
        for queue in (config.queues if _names_nodes(config) else ())
    }


def sides(config: SiteConfig) -> dict[str, tuple[list[tuple[int, int, float, dict[str, int]]], ...]]:
    """Return number, cores, memory and generic resources of the nodes of partitions and of the pool, as `_held` has."""
    counted = any(each.memory for each in config.nodes)
    of = {
        each.name: (each.count, each.cores, each.memory if counted else 1e18, {**each.resources, "gpu": each.gpus})
        for each in config.nodes
    }
    return {
        queue.name: ([of[name] for name in queue.partition_nodes], [of[name] for name in types_of_pool(config, queue)])
        for queue in (config.queues if config.nodes and config.pool_cores else ())
    }


def excluded(config: SiteConfig, nodes: Sequence[Node] | None) -> dict[str, str]:
    """Return the nodes of the pool that jobs of a queue may not use, by the queue, where they may use others of it."""
    of_pool = {} if config.pool is None or not config.nodes else config.pool.nodes
    left = {
        queue.name: [name for name in of_pool if name not in types]
        for queue in config.queues
        if 0 < len(types := types_of_pool(config, queue)) < len(of_pool)
    }
    found = hosts_of_types(config, nodes) if left else {}
    return {queue: fold([host for name in types for host in found[name]]) for queue, types in left.items()}


def partitions(config: SiteConfig, nodes: Sequence[Node] | None) -> dict[str, Line]:
    """Return the partitions of the queues, and the pool after them. Raises ExportError."""
    order, hosts = Multifactor.of(config.order), hosts_of(config, nodes)
    priorities = scale(config.queues).values if order is None or order.tiers else dict.fromkeys(config.names, 1)
    factors = priorities if order is None else dict.fromkeys(config.names, 1)
    tiers, modes = preemption.tiers(config) if config.has_tiers else priorities, preemption.modes(config)
    of_queues, found = kept.parts(config), {}
    for queue in config.queues:
        line = queue_words(config, queue) | ({"PreemptMode": modes[queue.name]} if modes else {}) | dict(access(queue))
        line["PriorityTier"] = str(tiers[queue.name] if config.mode == "shared" or queue.reservation else 1)
        line["PriorityJobFactor"] = str(factors[queue.name])
        found[queue.name] = line
        for part in of_queues.get(queue.name, ()):
            found[part.name] = line | ({"MaxCPUsPerNode": str(part.cores)} if part.cores else {})
    if config.pool_cores:
        found[POOL] = _pool(config)
    whole = {name: {"Nodes": hosts[name], **line, "State": "UP"} for name, line in found.items()}
    return {name: {word: line[word] for word in WORDS if word in line} | line for name, line in whole.items()}


def _pool(config: SiteConfig) -> Line:
    billings = {charged(config, queue) for queue in config.queues}
    return {
        "MaxTime": clock(max(whole_minutes(queue)[1] for queue in config.queues)),
        "PriorityTier": "1",
        "PriorityJobFactor": "1",
        **({"OverSubscribe": "EXCLUSIVE"} if _pool_gives_whole(config) else {}),
        **({"TRESBillingWeights": text} if len(billings) == 1 and (text := next(iter(billings))) else {}),
    }
