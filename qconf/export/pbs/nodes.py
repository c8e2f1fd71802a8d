"""Resources of PBS nodes: Qlist, resources that bind queues, and cores kept for jobs with GPUs; write and read them.

Kept cores: a node has its other cores as an amount of the resource `KEPT`, and a hook makes every chunk of a job
without GPUs request as much of it as it has cores. So the scheduler counts it like cores.

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
OF_QUEUE = "q_"  #: prefix of the resource that marks the nodes of a queue
#: Spellings of booleans.
TRUTH = {"true": True, "t": True, "1": True, "y": True, "false": False, "f": False, "0": False, "n": False}
_PER_STATEMENT = 24


def qlists(config: SiteConfig, nodes: Sequence[Node]) -> dict[str, str]:
    """Return the Qlist of every node, by name.

    A node of a partition lists its queue, and with ``pool.placement: combined`` that queue's pool queue; a node of the
    pool lists every pool queue; all nodes list the queues with reservations.
    """
    reserved = [queue.name for queue in config.queues if queue.reservation]
    own = [queue.name for queue in config.queues if not queue.reservation]
    both = config.pool_cores and config.pool is not None and config.pool.placement == "combined"
    lists = {name: [name, *([name + POOL_SUFFIX] if both else []), *reserved] for name in own}
    lists[POOL] = [*(name + POOL_SUFFIX for name in own), *reserved]
    return {node: ",".join(lists[owner]) for node, owner in assign(config, nodes).items()}


def kept(config: SiteConfig, nodes: Sequence[Node] | None) -> dict[str, int]:
    """Return by node the cores that jobs without GPUs may use. Raises ExportError if nodes have no names."""
    if not config.keeps_cores:
        return {}
    names = types.hosts(config, nodes)
    return {name: each.cores - each.kept_per_gpu * each.gpus for each in config.nodes for name in names[each.name]}


def read_kept(nodes: tuple[NodesConfig, ...], there: Sequence[Node], scheduler: Scheduler) -> tuple[NodesConfig, ...]:
    """Return the types with `kept_per_gpu` read from the resource `KEPT`, if nodes have it and it is scheduled."""
    line = scheduler.value("resources")
    if line is not None and KEPT not in line:
        return nodes
    caps: dict[int, set[str]] = {}
    for node in there:
        if (amount := node.resources.get(KEPT, "")).isdigit():
            caps.setdefault(int(amount), set()).add(node.name)
    return types.kept(nodes, caps) if caps else nodes


def statements(wanted: Iterable[tuple[str, str, str]], nodes: Sequence[Node]) -> tuple[list[str], list[str]]:
    """Return the statements that set resources of nodes, and those that restore the present values.

    `wanted` are (node, resource, value), with "" for no value.
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
    """Return a statement with ``{}`` in place of the node."""
    key = f"resources_available.{resource}"
    if resource == "Qlist" and value:
        if not re.fullmatch(r"[A-Za-z0-9_,-]*", value):
            raise ExportError(f"node {name} has the Qlist {value!r}, which is more than queue names")
        value = f'"{value}"'
    return f"set node {{}} {key} = {value}" if value else f"unset node {{}} {key}"


def _per_node(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Fill in the nodes, up to `_PER_STATEMENT` in one statement."""
    return [
        statement.format(",".join(names[at : at + _PER_STATEMENT]))
        for statement, names in grouped(pairs).items()
        for at in range(0, len(names), _PER_STATEMENT)
    ]
