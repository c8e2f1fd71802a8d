"""Cores that jobs without GPUs leave to others: partitions of their own, with MaxCPUsPerNode, and back.

A queue whose jobs may use nodes with such cores has its partition, for jobs with GPUs, and beside it others for those
without: one on the nodes that keep none, and one for each number of cores that is left of the others.

References
----------
Slurm, slurm.conf, "MaxCPUsPerNode".
"""

from __future__ import annotations

import re
from typing import NamedTuple

from qconf.config import NodesConfig, SiteConfig
from qconf.errors import ExportError
from qconf.text import grouped

PLAIN = "plain"  #: ends the name of the partition on the nodes that keep no cores


class Part(NamedTuple):
    """A partition for the jobs of a queue that take no GPUs."""

    name: str
    nodes: tuple[str, ...]  #: names of types of nodes
    cores: int | None  #: of a node, MaxCPUsPerNode; None for all


def left(nodes: NodesConfig) -> int | None:
    """Return the cores of a node that jobs without GPUs may have; None for all."""
    return nodes.cores - nodes.kept_per_gpu * nodes.gpus if nodes.kept_per_gpu else None


def parts(config: SiteConfig) -> dict[str, list[Part]]:
    """Return the partitions for jobs without GPUs, by queue: of those alone whose nodes keep cores."""
    found: dict[str, list[Part]] = {}
    for queue in config.queues:
        usable = (each for each in config.nodes if queue.nodes is None or each.name in queue.nodes)
        of = grouped((left(each), each.name) for each in usable)
        names = {cores: f"{queue.name}-{PLAIN if cores is None else cores}" for cores in of}
        if {*of} - {None}:
            found[queue.name] = [Part(names[cores], tuple(types), cores) for cores, types in of.items()]
    return found


def refuse(config: SiteConfig) -> None:
    """Raise ExportError where Slurm has no form for cores that are kept."""
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
    """Return, by queue, the list of its partitions for jobs without GPUs, and the widest job that one of them holds."""

    def room(part: Part) -> int:
        return sum(each.count * (part.cores or each.cores) for each in config.nodes if each.name in part.nodes)

    return {name: (",".join(part.name for part in of), max(map(room, of))) for name, of in parts(config).items()}


def read(lua: str) -> dict[str, str]:
    """Read the queues of partitions for jobs without GPUs in the job_submit.lua of an export."""
    found = re.findall(r'name = "([^"]+)",.* parts = "([^"]+)"', lua)
    return {part: queue for queue, names in found for part in names.split(",")}
