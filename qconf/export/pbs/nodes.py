"""Which Qlist every node is to have, and the qmgr statements that set it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from qconf.config import POOL_SUFFIX, SiteConfig
from qconf.errors import ExportError
from qconf.export.nodes import POOL, Node, assign
from qconf.text import grouped

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


def statements(wanted: dict[str, str], nodes: Sequence[Node]) -> tuple[list[str], list[str]]:
    """Write the statements that give the nodes their Qlist, and those that restore the present one."""
    changed = [node for node in nodes if node.qlist != wanted[node.name]]
    return restorable(
        (node.name, "Qlist", _quoted(node.name, wanted[node.name]), _quoted(node.name, node.qlist or ""))
        for node in changed
    )


def _quoted(name: str, qlist: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_,-]*", qlist):
        raise ExportError(f"node {name} has the Qlist {qlist!r}, which is more than queue names")
    return f'"{qlist}"' if qlist else ""


def restorable(changes: Iterable[tuple[str, str, str, str]]) -> tuple[list[str], list[str]]:
    """Write the statements that change nodes, and those that restore what they have.

    Each change has the name of a node, that of a resource, and its new and old value; empty, there is none.
    """
    rows = list(changes)
    return (
        _per_node((_statement(resource, new), node) for node, resource, new, _ in rows),
        _per_node((_statement(resource, old), node) for node, resource, _, old in rows),
    )


def _statement(resource: str, value: str) -> str:
    key = f"resources_available.{resource}"
    return f"set node {{}} {key} = {value}" if value else f"unset node {{}} {key}"


def _per_node(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Write statements with ``{}`` for the name of a node, those that are alike for many nodes at once."""
    return [
        statement.format(",".join(names[at : at + _PER_STATEMENT]))
        for statement, names in grouped(pairs).items()
        for at in range(0, len(names), _PER_STATEMENT)
    ]
