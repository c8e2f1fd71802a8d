"""What nodes are given: a Qlist, resources by which queues are bound, cores that jobs without GPUs leave; and back.

Of cores that are kept: a node has as much of the resource `KEPT` as it has cores but for those, and every chunk of a
job without GPUs takes as much as it takes cores, as a hook has it ask: the scheduler counts it as it counts cores.

References
----------
OpenPBS Administrator's Guide, "Custom Resources"; Hooks Guide, "queuejob", "modifyjob".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from qconf.config import KEPT, POOL_SUFFIX, SiteConfig
from qconf.errors import ExportError
from qconf.export import types
from qconf.export.nodes import POOL, Node, assign
from qconf.text import grouped

if TYPE_CHECKING:
    from qconf.config import NodesConfig
    from qconf.export.pbs.scheduler import Scheduler

KEPT_HOOK = "qconf_kept"
OF_QUEUE = "q_"  #: begins the name of the resource that the nodes of a queue have
#: What the values of booleans are.
TRUTH = {"true": True, "t": True, "1": True, "y": True, "false": False, "f": False, "0": False, "n": False}
_PER_STATEMENT = 24


def qlists(config: SiteConfig, nodes: Sequence[Node]) -> dict[str, str]:
    """Return the Qlist of every node, by its name.

    A node of a partition carries its queue, with ``pool.placement: combined`` that queue's pool queue too; a
    node of the pool carries every pool queue; all of them carry the queues with reservations.
    """
    reserved = [queue.name for queue in config.queues if queue.reservation]
    own = [queue.name for queue in config.queues if not queue.reservation]
    both = config.pool_cores and config.pool is not None and config.pool.placement == "combined"
    lists = {name: [name, *([name + POOL_SUFFIX] if both else []), *reserved] for name in own}
    lists[POOL] = [*(name + POOL_SUFFIX for name in own), *reserved]
    return {node: ",".join(lists[owner]) for node, owner in assign(config, nodes).items()}


def kept(config: SiteConfig, nodes: Sequence[Node] | None) -> dict[str, int]:
    """Return the cores of each node that jobs without GPUs may use. Raises ExportError where nodes have no names."""
    if not config.keeps_cores:
        return {}
    names = types.hosts(config, nodes)
    return {name: each.cores - each.kept_per_gpu * each.gpus for each in config.nodes for name in names[each.name]}


def read_kept(nodes: tuple[NodesConfig, ...], there: Sequence[Node], scheduler: Scheduler) -> tuple[NodesConfig, ...]:
    """Return types of nodes with what they keep for each GPU, where nodes have the resource and it is scheduled."""
    line = scheduler.value("resources")
    if line is not None and KEPT not in line:
        return nodes
    caps: dict[int, set[str]] = {}
    for node in there:
        if (amount := node.resources.get(KEPT, "")).isdigit():
            caps.setdefault(int(amount), set()).add(node.name)
    return types.kept(nodes, caps) if caps else nodes


def statements(wanted: Iterable[tuple[str, str, str]], nodes: Sequence[Node]) -> tuple[list[str], list[str]]:
    """Write the statements that give nodes what they are to have, and those that restore what they have.

    It is wanted as the name of a node, that of a resource, and its value; empty, there is none.
    """
    held = {node.name: node for node in nodes}
    rows = [(name, resource, new, _now(held.get(name), resource)) for name, resource, new in wanted]
    changed = [row for row in rows if not _is_same(*row[1:])]
    return (
        _per_node((_statement(name, resource, new), name) for name, resource, new, _ in changed),
        _per_node((_statement(name, resource, old), name) for name, resource, _, old in changed),
    )


def _now(node: Node | None, resource: str) -> str:
    if node is None:
        return ""
    return node.qlist or "" if resource == "Qlist" else node.resources.get(resource, "")


def _is_same(resource: str, new: str, now: str) -> bool:
    is_of_queue = resource.startswith(OF_QUEUE)
    return TRUTH.get(now.lower(), False) is (new == "True") if is_of_queue else new == now


def _statement(name: str, resource: str, value: str) -> str:
    """Write a statement with ``{}`` for the name of a node."""
    key = f"resources_available.{resource}"
    if resource == "Qlist" and value:
        if not re.fullmatch(r"[A-Za-z0-9_,-]*", value):
            raise ExportError(f"node {name} has the Qlist {value!r}, which is more than queue names")
        value = f'"{value}"'
    return f"set node {{}} {key} = {value}" if value else f"unset node {{}} {key}"


def _per_node(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Write the statements for the names of nodes, those that are alike for many nodes at once."""
    return [
        statement.format(",".join(names[at : at + _PER_STATEMENT]))
        for statement, names in grouped(pairs).items()
        for at in range(0, len(names), _PER_STATEMENT)
    ]
