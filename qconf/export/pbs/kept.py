"""Cores that jobs without GPUs leave to others: a resource of nodes, which a hook has such jobs ask for; and back.

A node has as much of it as it has cores but for those that are kept, and every chunk of a job without GPUs takes as
much as it takes cores: the scheduler counts it as it counts cores.

References
----------
OpenPBS Administrator's Guide, "Custom Resources"; Hooks Guide, "queuejob", "modifyjob".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from qconf.config import KEPT, SiteConfig
from qconf.export.nodes import Node
from qconf.export.pbs.nodes import restorable
from qconf.export.types import hosts, kept

if TYPE_CHECKING:
    from qconf.config import NodesConfig
    from qconf.export.pbs.scheduler import Scheduler

HOOK = "qconf_kept"
FILE = f"{HOOK}.py"
RESOURCE = KEPT
OF_NODES = {"type": "long", "flag": "nh"}


def amounts(config: SiteConfig, nodes: Sequence[Node] | None) -> dict[str, int]:
    """Return how much of the resource each node has, by its name. Raises ExportError where nodes have no names."""
    if not config.keeps_cores:
        return {}
    names = hosts(config, nodes)
    return {name: each.cores - each.kept_per_gpu * each.gpus for each in config.nodes for name in names[each.name]}


def statements(wanted: Mapping[str, int], nodes: Sequence[Node]) -> tuple[list[str], list[str]]:
    """Write the statements that give nodes the resource, and those that restore what there is."""
    now = {node.name: node.resources.get(RESOURCE, "") for node in nodes}
    values = ((name, str(amount), now.get(name, "")) for name, amount in wanted.items())
    return restorable((name, RESOURCE, new, old) for name, new, old in values if new != old)


def widest(config: SiteConfig) -> int:
    """Return the cores above which a job that asks for cores alone takes no account, as in the simulation."""
    return max(each.count * each.cores for each in config.nodes)


def read(nodes: tuple[NodesConfig, ...], there: Sequence[Node], scheduler: Scheduler) -> tuple[NodesConfig, ...]:
    """Return types of nodes with what they keep for each GPU, where nodes have the resource and it is scheduled."""
    line = scheduler.value("resources")
    if line is not None and RESOURCE not in line:
        return nodes
    caps: dict[int, set[str]] = {}
    for node in there:
        if (amount := node.resources.get(RESOURCE, "")).isdigit():
            caps.setdefault(int(amount), set()).add(node.name)
    return kept(nodes, caps) if caps else nodes
