"""The partitions of a configuration: their nodes, who may use them, whose jobs they preempt, and their lines."""

from __future__ import annotations

from collections.abc import Sequence

from qconf.config import SiteConfig
from qconf.config.multifactor import Multifactor
from qconf.export.nodes import Node, assign, check_machine
from qconf.export.priorities import scale
from qconf.export.slurm import kept
from qconf.export.slurm.queues import MODES, POOL, PREEMPTING, Line, access, charged, clock, whole_minutes
from qconf.export.slurm.queues import written as queue_words
from qconf.export.types import hosts as hosts_of_types
from qconf.export.types import is_bound
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
        bound = {queue.name: queue.nodes for queue in config.queues if queue.nodes is not None}
        bound |= {part.name: part.nodes for of in kept.parts(config).values() for part in of}
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


def types_named(config: SiteConfig) -> dict[str, str]:
    """Return the names of types of nodes with their hosts, where queues are bound to some."""
    return {each.name: each.hosts for each in config.nodes if each.hosts is not None} if _names_nodes(config) else {}


def _names_nodes(config: SiteConfig) -> bool:
    """Whether partitions are on some types of nodes."""
    return is_bound(config) or config.keeps_cores


def held(config: SiteConfig) -> dict[str, list[tuple[float, dict[str, int]]]]:
    """Return the memory in MiB, endless where it is not counted, and the generic resources of the nodes of queues."""
    counted = any(each.memory for each in config.nodes)
    return {
        queue.name: [
            (each.memory if counted else 1e18, {**each.resources, "gpu": each.gpus})
            for each in config.nodes
            if queue.nodes is None or each.name in queue.nodes
        ]
        for queue in (config.queues if _names_nodes(config) else ())
    }


def partitions(config: SiteConfig, nodes: Sequence[Node] | None) -> dict[str, Line]:
    """Return the partitions of the queues, and the pool after them. Raises ExportError."""
    order, hosts = Multifactor.of(config.order), hosts_of(config, nodes)
    priorities = scale(config.queues).values if order is None or order.tiers else dict.fromkeys(config.names, 1)
    factors = priorities if order is None else dict.fromkeys(config.names, 1)
    ranks = {tier: rank for rank, tier in enumerate(sorted({queue.tier for queue in config.queues}), start=1)}
    of_queues, modes, found = kept.parts(config), becomes(config), {}
    for queue in config.queues:
        line = queue_words(config, queue) | dict(access(queue))
        if config.has_tiers:
            line["PreemptMode"] = MODES[modes.get(queue.name, "off")]
        tier = ranks[queue.tier] if config.has_tiers else priorities[queue.name]
        line["PriorityTier"] = str(tier if config.mode == "shared" or queue.reservation else 1)
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
        **({"OverSubscribe": "EXCLUSIVE"} if config.machine.whole_nodes else {}),
        **({"TRESBillingWeights": text} if len(billings) == 1 and (text := next(iter(billings))) else {}),
    }


def preemption(config: SiteConfig) -> dict[str, str]:
    """Write the words of slurm.conf for jobs that preempt others; suspended ones go on by the gang scheduler."""
    if not config.has_tiers:
        return {}
    return {"PreemptType": PREEMPTING, "PreemptMode": "SUSPEND,GANG" if preempted(config, "suspend") else "REQUEUE"}


def preempted(config: SiteConfig, mode: str) -> list[str]:
    """Name the queues whose jobs are suspended, say."""
    return [name for name, each in becomes(config).items() if each == mode]


def becomes(config: SiteConfig) -> dict[str, str]:
    """Return what becomes of the jobs of each queue that jobs of another one may preempt."""
    highest = max(queue.tier for queue in config.queues)
    return {queue.name: queue.preempted for queue in config.queues if queue.tier < highest}
