"""Write the partitions of a configuration: nodes, access, preemption, lines of partitions.conf.

If a queue's nodes keep cores for GPU jobs, its own partition is for jobs with GPUs. Jobs without GPUs get more
partitions with MaxCPUsPerNode: one on the nodes that keep no cores, and one for each number of cores that others leave.

References
----------
Slurm, slurm.conf, "MaxCPUsPerNode".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from qconf.config import NodesConfig, SiteConfig
from qconf.config.multifactor import Multifactor
from qconf.errors import ExportError
from qconf.export.nodes import Node, assign, check_machine
from qconf.export.priorities import scale
from qconf.export.slurm.queues import MODES, POOL, PREEMPTING, Line, Of, charged, clock, line, whole_minutes
from qconf.export.types import hosts as hosts_of_types
from qconf.export.types import is_bound
from qconf.hosts import fold
from qconf.text import grouped

PLAIN = "plain"  #: suffix of the partition on nodes that keep no cores


def written(name: str, words: Line) -> str:
    """Return the line of a partition."""
    return " ".join([f"PartitionName={name}", *(f"{word}={value}" for word, value in words.items())])


def hosts_of(config: SiteConfig, nodes: Sequence[Node] | None) -> dict[str, str]:
    """Return the nodes of each partition, including the pool, as a host list."""
    every = "ALL" if nodes is None else fold([node.name for node in nodes])
    if _names_nodes(config):
        found = hosts_of_types(config, nodes)
        bound = {queue.name: queue.nodes for queue in config.queues if queue.nodes is not None}
        bound |= {part.name: part.nodes for of in parts(config).values() for part in of}
        own = {name: fold([host for each in types for host in found[each]]) or '""' for name, types in bound.items()}
        return dict.fromkeys(config.names, every) | own
    if nodes is None or config.nodes:
        return dict.fromkeys(config.names, every)
    check_machine(config, nodes)
    if config.mode == "shared":
        return dict.fromkeys(config.names, every)
    owned = grouped((owner or POOL, name) for name, owner in assign(config, nodes).items())
    # Jobs of a queue without nodes of its own run in the pool, or with reservations on all nodes.
    hosts = {queue.name: every if queue.reservation else '""' for queue in config.queues}
    return hosts | {name: fold(names) for name, names in owned.items()}


def types_named(config: SiteConfig) -> dict[str, str]:
    """Return the hosts of each type of nodes, if partitions use only some types."""
    return {each.name: each.hosts for each in config.nodes if each.hosts is not None} if _names_nodes(config) else {}


def _names_nodes(config: SiteConfig) -> bool:
    """Whether partitions use only some types of nodes."""
    return is_bound(config) or config.keeps_cores


def held(config: SiteConfig) -> dict[str, list[tuple[float, dict[str, int]]]]:
    """Return by queue the memory (MiB, 1e18 if not counted) and generic resources of each type of its nodes."""
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
    """Return the words of each queue's partitions, then of the pool's. Raises ExportError."""
    order, hosts = Multifactor.of(config.order), hosts_of(config, nodes)
    priorities = scale(config.queues).values if order is None or order.tiers else dict.fromkeys(config.names, 1)
    factors = priorities if order is None else dict.fromkeys(config.names, 1)
    ranks = {tier: rank for rank, tier in enumerate(sorted({queue.tier for queue in config.queues}), start=1)}
    of_queues, modes, found = parts(config), becomes(config), {}
    for queue in config.queues:
        mode = MODES[modes.get(queue.name, "off")] if config.has_tiers else ""
        tier = ranks[queue.tier] if config.has_tiers else priorities[queue.name]
        tier = tier if config.mode == "shared" or queue.reservation else 1
        for name, cores in ((queue.name, None), *((part.name, part.cores) for part in of_queues.get(queue.name, ()))):
            found[name] = line(Of(config, queue, hosts[name], cores, tier, factors[queue.name], mode))
    if config.pool_cores:
        found[POOL] = _pool(config, hosts[POOL])
    return found


def _pool(config: SiteConfig, nodes: str) -> Line:
    billings = {charged(config, queue) for queue in config.queues}
    return {
        "Nodes": nodes,
        "MaxTime": clock(max(whole_minutes(queue)[1] for queue in config.queues)),
        "PriorityTier": "1",
        "PriorityJobFactor": "1",
        **({"OverSubscribe": "EXCLUSIVE"} if config.machine.whole_nodes else {}),
        **({"TRESBillingWeights": text} if len(billings) == 1 and (text := next(iter(billings))) else {}),
        "State": "UP",
    }


def preemption(config: SiteConfig) -> dict[str, str]:
    """Return the settings for preemption; GANG lets suspended jobs resume."""
    if not config.has_tiers:
        return {}
    return {"PreemptType": PREEMPTING, "PreemptMode": "SUSPEND,GANG" if preempted(config, "suspend") else "REQUEUE"}


def preempted(config: SiteConfig, mode: str) -> list[str]:
    """Return the queues whose jobs are preempted in this mode: suspend, requeue or off."""
    return [name for name, each in becomes(config).items() if each == mode]


def becomes(config: SiteConfig) -> dict[str, str]:
    """Return `preempted` of each queue below the highest tier."""
    highest = max(queue.tier for queue in config.queues)
    return {queue.name: queue.preempted for queue in config.queues if queue.tier < highest}


class Part(NamedTuple):
    """A partition for the jobs of a queue without GPUs."""

    name: str
    nodes: tuple[str, ...]  #: names of types of nodes
    cores: int | None  #: MaxCPUsPerNode; None for all cores


def left(nodes: NodesConfig) -> int | None:
    """Return the cores of a node that jobs without GPUs may use; None for all."""
    return nodes.cores - nodes.kept_per_gpu * nodes.gpus if nodes.kept_per_gpu else None


def parts(config: SiteConfig) -> dict[str, list[Part]]:
    """Return the partitions for jobs without GPUs, by queue; only of queues whose nodes keep cores."""
    found: dict[str, list[Part]] = {}
    for queue in config.queues:
        usable = (each for each in config.nodes if queue.nodes is None or each.name in queue.nodes)
        of = grouped((left(each), each.name) for each in usable)
        names = {cores: f"{queue.name}-{PLAIN if cores is None else cores}" for cores in of}
        if {*of} - {None}:
            found[queue.name] = [Part(names[cores], tuple(types), cores) for cores, types in of.items()]
    return found


def refuse(config: SiteConfig) -> None:
    """Raise ExportError if Slurm cannot express the kept cores."""
    if every := [each.name for each in config.nodes if left(each) == 0]:
        raise ExportError(
            f"nodes {every[0]}: kept_per_gpu keeps all cores, and Slurm has no limit of 0 cores of a node: bind the "
            "queues of jobs without GPUs to other nodes"
        )
    for queue, of in parts(config).items():
        if config.queue(queue).exclusive:
            raise ExportError(
                f"queue {queue}: its jobs have nodes alone, so that no other job could use the cores that kept_per_gpu "
                "keeps: let it share nodes, or bind it to nodes that keep none"
            )
        if twice := {part.name for part in of} & {*config.names}:
            raise ExportError(f"queue {twice.pop()} has the name of a partition of {queue}: rename one of them")


def rooms(config: SiteConfig) -> dict[str, tuple[str, int]]:
    """Return by queue its partitions for jobs without GPUs (comma-separated), and the cores of the largest one."""

    def room(part: Part) -> int:
        return sum(each.count * (part.cores or each.cores) for each in config.nodes if each.name in part.nodes)

    return {name: (",".join(part.name for part in of), max(map(room, of))) for name, of in parts(config).items()}
