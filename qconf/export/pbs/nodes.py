"""Which nodes there are, and which of them belongs to which queue."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from qconf.config import POOL_SUFFIX, SiteConfig
from qconf.errors import InputError
from qconf.export.errors import ExportError, checked_host

_MOST_NODES = 1_000_000
_RANGES = re.compile(r"([^\[\]]*)\[([0-9]{1,9}(?:-[0-9]{1,9})?(?:,[0-9]{1,9}(?:-[0-9]{1,9})?)*)\]([^\[\]]*)")
_PER_STATEMENT = 24


@dataclass(frozen=True, slots=True)
class Node:
    """A node as ``pbsnodes`` shows it; cores and Qlist are None where only names were given."""

    name: str
    cores: int | None = None
    qlist: str | None = None


def read_nodes(given: str) -> list[Node]:
    """Read a file of node names or of ``pbsnodes -av`` output, or expand a pattern like ``nid[00001-01468]``.

    Raises
    ------
    InputError, ExportError
        It is neither, or a name may not enter a script.
    """
    path = Path(given)
    if not path.is_file():
        if "[" not in given and "/" not in given and "," not in given:
            raise InputError("no such file, and no pattern like nid[00001-01468]", field="--nodes", value=given)
        nodes = [Node(checked_host(name)) for name in expand(given)]
    else:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot be read: {error}", file=path) from error
        nodes = list(_pbsnodes(text) if re.search(r"^\s+\w[\w.]* = ", text, re.MULTILINE) else _names(text))
    if not nodes:
        raise InputError("names no node", field="--nodes", value=given)
    seen: set[str] = set()
    for node in nodes:
        if node.name in seen:
            raise InputError("a node is named twice", field="--nodes", value=node.name, fix="name each node once")
        seen.add(node.name)
    return nodes


def _names(text: str) -> Iterator[Node]:
    for line in text.splitlines():
        for word in line.partition("#")[0].split():
            yield from (Node(checked_host(name)) for name in expand(word))


def expand(text: str) -> Iterator[str]:
    """Expand a host list like ``a[1-3,7],b``; numbers keep their zeros. Raises InputError."""
    for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        match = _RANGES.fullmatch(part)
        if match is None:
            yield part
            continue
        before, ranges, after = match.groups()
        for piece in ranges.split(","):
            first, _, last = piece.partition("-")
            last = last or first
            if int(last) < int(first) or int(last) - int(first) >= _MOST_NODES:
                raise InputError("is no range of nodes", field="--nodes", value=part)
            yield from (f"{before}{number:0{len(first)}d}{after}" for number in range(int(first), int(last) + 1))


def _pbsnodes(text: str) -> Iterator[Node]:
    for block in re.split(r"\n(?=\S)", text.strip("\n")):
        name, _, rest = block.partition("\n")
        values = dict(re.findall(r"^\s+([\w.]+) = (.*?)\s*$", rest, re.MULTILINE))
        cores = values.get("resources_available.ncpus", "")
        yield Node(
            checked_host(name.strip()),
            int(cores) if re.fullmatch(r"[0-9]{1,9}", cores) else None,
            values.get("resources_available.Qlist", ""),
        )


def check_machine(config: SiteConfig, nodes: Sequence[Node]) -> None:
    """Raise ExportError if the nodes are not the machine of the configuration."""
    size = config.machine.cores_per_node
    if len(nodes) * size != config.machine.cores:
        raise ExportError(
            f"{len(nodes)} nodes of {size} cores are not the machine's {config.machine.cores}: "
            f"give the {config.machine.cores // size} nodes that the queues may use, or set machine.cores_per_node"
        )
    odd = [node for node in nodes if node.cores not in (None, size)]
    if odd:
        raise ExportError(f"node {odd[0].name} has {odd[0].cores} cores, the configuration says {size} a node")


def assign(config: SiteConfig, nodes: Sequence[Node]) -> dict[str, str]:
    """Say which Qlist every node is to have, moving as few nodes as possible from where they are.

    A node of a partition carries its queue, with ``pool.placement: combined`` that queue's pool queue too; a
    node of the pool carries every pool queue; all of them carry the queues with reservations.

    Raises
    ------
    ExportError
        The nodes are not the machine of the configuration, or a partition is not made of whole nodes.
    """
    size = config.machine.cores_per_node
    pool = config.pool_cores
    wanted = {queue.name: queue.partition for queue in config.queues if not queue.reservation}
    for name, cores in {**wanted, "the pool": pool}.items():
        if cores % size:
            raise ExportError(
                f"{name}: {cores} cores are not whole nodes of {size}; make the sizes multiples of {size}, "
                "or export with --binding limits"
            )
    check_machine(config, nodes)
    reserved = [queue.name for queue in config.queues if queue.reservation]
    pooled = [queue.name + POOL_SUFFIX for queue in config.queues if not queue.reservation] if pool else []
    both = config.pool is not None and config.pool.placement == "combined"
    lists = {
        name: [name, *([name + POOL_SUFFIX] if both and pool else []), *reserved]
        for name, cores in wanted.items()
        if cores
    }
    need = {name: wanted[name] // size for name in lists}
    if pool:
        lists[""], need[""] = [*pooled, *reserved], pool // size
    owner: dict[str, str] = {}
    for node in nodes:  # those that may stay
        has = (node.qlist or "").split(",")
        home = next((name for name in lists if name and name in has), "" if _only_pool(has) else None)
        if home is not None and need.get(home, 0):
            owner[node.name] = home
            need[home] -= 1
    for node in nodes:  # the rest, in order
        if node.name not in owner:
            home = next(name for name, left in need.items() if left)
            owner[node.name] = home
            need[home] -= 1
    return {node.name: ",".join(lists[owner[node.name]]) for node in nodes}


def _only_pool(qlist: Sequence[str]) -> bool:
    return sum(name.endswith(POOL_SUFFIX) for name in qlist) > 1


def statements(wanted: dict[str, str], nodes: Sequence[Node]) -> tuple[list[str], list[str]]:
    """Write the statements that give the nodes their Qlist, and those that take it back."""
    changed = [node for node in nodes if node.qlist != wanted[node.name]]
    forward = _grouped((node.name, wanted[node.name]) for node in changed)
    back = _grouped((node.name, node.qlist or "") for node in changed)
    return forward, back


def _grouped(pairs: Iterator[tuple[str, str]]) -> list[str]:
    groups: dict[str, list[str]] = {}
    for name, qlist in pairs:
        groups.setdefault(qlist, []).append(name)
    lines = []
    for qlist, names in groups.items():
        if not re.fullmatch(r"[A-Za-z0-9_,-]*", qlist):
            raise ExportError(f"node {names[0]} has the Qlist {qlist!r}, which is more than queue names")
        for at in range(0, len(names), _PER_STATEMENT):
            listed = ",".join(names[at : at + _PER_STATEMENT])
            value = f'set node {listed} resources_available.Qlist = "{qlist}"'
            lines.append(value if qlist else f"unset node {listed} resources_available.Qlist")
    return lines
