"""Read lists of nodes, and assign the nodes to queues and the pool."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from qconf.config import POOL_SUFFIX, SiteConfig
from qconf.errors import ExportError, InputError, unreadable
from qconf.export.rendering import checked_host
from qconf.hosts import expand

_NP = re.compile(r"^[^\s#]+\s.*?\b(?:np|gpus|mics)=[0-9]", re.MULTILINE)
_VNODE = re.compile(r"(.+)\[[0-9]+\]")
#: A line of ``pbsnodes -l`` or ``-aSj``.
_TABLE = re.compile(r"^\s*-{5,} |^\s*\S+ +(?:free|job-|resv-|down|offline|state-)[\w,-]*(?: |$)", re.MULTILINE)
_DOWN = re.compile(r"down|offline|unknown|stale|maintenance", re.IGNORECASE)
_SET = re.compile(r"([\w.]+)\s*(\+?)=\s*(\"[^\"]*\"|'[^']*'|[^,]*)(?:,|$)")
POOL = ""  #: owner of the pool's nodes


@dataclass(frozen=True, slots=True)
class Node:
    """A node as ``pbsnodes`` shows it; cores and Qlist are None if only the name is known.

    `exclusive`: by default or always, the node serves one job at a time. `queue`: only jobs of this queue run there,
    and only there. `resources` are all its resources and `sharing` its attribute, as PBS writes them.
    """

    name: str
    cores: int | None = None
    qlist: str | None = None
    exclusive: bool = False
    queue: str = ""
    priority: int = 0
    resources: Mapping[str, str] = field(default_factory=dict, compare=False)
    file: Path | None = field(default=None, compare=False)
    line: int | None = field(default=None, compare=False)
    sharing: str = field(default="", compare=False)
    down: bool = field(default=False, compare=False)  #: also offline, or unknown to the server
    vnodes: tuple[str, ...] = field(default=(), compare=False)  #: names of the host's vnodes, if it has several


def read_nodes(given: str) -> list[Node]:
    """Read a file of nodes, or expand a pattern like ``nid[00001-01468]``; raises InputError.

    A file holds names, lines of Torque's server_priv/nodes, or the output of ``pbsnodes -av`` or
    ``qmgr -c 'print node @default'``.
    """
    path = Path(given)
    if not path.is_file():
        if "/" in given or not {"[", ","} & {*given}:
            raise InputError(
                "no such file, and no pattern", field="--nodes", value=given, fix="write it like nid[001-146]"
            )
        nodes = [Node(checked_host(name)) for name in expand(given)]
    else:
        text = read_text(path)
        printed = re.search(r"^\s+\w[\w.]* = ", text, re.MULTILINE)
        is_json = text.lstrip().startswith("{")
        if is_json:
            nodes = list(_json(text, path))
        elif printed:
            nodes = list(_pbsnodes(text, path))
        else:
            nodes = of_statements(text, path) or list(_of_torque(text, path) if _NP.search(text) else ())
            fix = "give the output of pbsnodes -av"
            if not nodes and _TABLE.search(text):
                raise InputError("is a table of states, without all that nodes have", file=path, fix=fix)
            try:
                nodes = nodes or list(_names(text))
            except (ExportError, InputError) as error:
                why = str(error).rstrip(".")
                raise InputError(f"is no list of nodes: {why}", file=path, fix=fix) from error
    if not nodes:
        raise InputError("names no node", field="--nodes", value=given)
    return _hosts(nodes)


def _hosts(nodes: Sequence[Node]) -> list[Node]:
    """Merge the vnodes of a host, like ``gpu1[0]``, into one node, since a chunk may span them.

    Raises InputError if a node is named twice.
    """
    found: dict[str, Node] = {}
    for node in nodes:
        there = found.get(node.name)
        if there is not None and (not (node.vnodes or there.vnodes) or {*node.vnodes} & {*there.vnodes}):
            raise InputError("a node is named twice", field="--nodes", value=node.name, fix="name each node once")
        found[node.name] = node if there is None else _joined(there, node)
    return list(found.values())


def _joined(one: Node, other: Node) -> Node:
    """Add two parts of a host; attributes other than amounts are those of the first part with cores."""
    amounts = {key: _sum(one.resources[key], value) for key, value in other.resources.items() if key in one.resources}
    return replace(
        one if one.cores else other,
        cores=(one.cores or 0) + (other.cores or 0),
        resources={**one.resources, **other.resources, **amounts},
        vnodes=(*one.vnodes, *other.vnodes),
        down=one.down or other.down,
    )


def _sum(one: str, other: str) -> str:
    """Add two numbers or two memory sizes; return the first of any other values."""
    if one.isdigit() and other.isdigit():
        return str(int(one) + int(other))
    sizes = [re.fullmatch("([0-9]+)([kmgtp])b", text.lower()) for text in (one, other)]
    kib = [int(size[1]) * 1024 ** "kmgtp".index(size[2]) for size in sizes if size]
    return f"{sum(kib)}kb" if len(kib) == len(sizes) else one


def read_text(path: str | Path) -> str:
    """Read a text of UTF-8, of UTF-16 with its mark, else of Latin-1, as comments may be. Raises InputError."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    encoding = "utf-16" if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        if b"\0" in raw:
            raise InputError("is not text", file=path, fix="save it as text, in UTF-8") from error
        return raw.decode("latin-1")


def readable(path: str | Path) -> Path:
    """Return the path if its file can be read. Raises InputError."""
    read_text(path)
    return Path(path)


def beside(folder: Path, name: str) -> str:
    """Read a file of an export's folder, "" if it does not exist."""
    path = folder / name
    return read_text(path) if path.is_file() else ""


def _names(text: str) -> Iterator[Node]:
    for line in text.splitlines():
        for word in line.partition("#")[0].split():
            yield from (Node(checked_host(name)) for name in expand(word))


def of_statements(text: str, path: Path) -> list[Node]:
    """Read the nodes from ``create node`` and ``set node`` statements of qmgr; may be empty."""
    found: dict[str, tuple[int, dict[str, str]]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        statement = re.match(r"\s*(?:create|set)\s+node\s+(\S+)\s*(.*)", line)
        for name in statement[1].split(",") if statement else ():
            values = found.setdefault(name, (number, {}))[1]
            for key, operator, value in _SET.findall(statement[2]) if statement else ():
                text_of = value.strip().strip("\"'")
                values[key] = f"{values[key]},{text_of}" if operator == "+" and key in values else text_of
    return _hosts([_node(name, values, path, number) for name, (number, values) in found.items()])


def _of_torque(text: str, path: Path) -> Iterator[Node]:
    """Read lines like ``n1 np=8 gpus=2 bigmem``: a host, its amounts and its properties."""
    for number, line in enumerate(text.splitlines(), start=1):
        name, *words = line.partition("#")[0].split() or [""]
        pairs = dict(word.split("=", 1) for word in words if "=" in word)
        properties = ",".join(word for word in words if "=" not in word)
        for host in expand(name.removesuffix(":ts")) if name else ():
            yield _node(host, {**pairs, "properties": properties}, path, number)


def _pbsnodes(text: str, path: Path) -> Iterator[Node]:
    blocks: list[tuple[str, int, dict[str, str]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if re.match(r"\S", line):
            blocks.append((line.strip(), number, {}))
        elif blocks and (found := re.fullmatch(r"\s+([\w.-]+) = (.*?)\s*", line)):
            blocks[-1][2][found[1]] = found[2]
    yield from (_node(name, values, path, number) for name, number, values in blocks)


def _json(text: str, path: Path) -> Iterator[Node]:
    """Read the output of ``pbsnodes -av -F json``."""
    fix = "give the output of pbsnodes -av, or of pbsnodes -av -F json"
    try:
        found = json.loads(text)["nodes"].items()
    except json.JSONDecodeError as error:
        raise InputError(f"is no JSON: {error.msg}", file=path, line=error.lineno, fix=fix) from error
    except (KeyError, AttributeError, RecursionError) as error:
        raise InputError("holds no nodes", file=path, field="nodes", fix=fix) from error
    for name, held in found:
        if not isinstance(held, dict):
            raise InputError("has no attributes", file=path, field=f"nodes.{name}", value=held, fix=fix)
        resources = held.get("resources_available", {})
        if not isinstance(resources, dict):
            raise InputError("are none by name", file=path, field=f"nodes.{name}.resources_available", fix=fix)
        values = {key: str(value) for key, value in held.items() if isinstance(value, str | int)}
        yield _node(name, values | {f"resources_available.{key}": str(value) for key, value in resources.items()}, path)


def _as_pbs(values: Mapping[str, str]) -> dict[str, str]:
    """Convert Torque's attributes of a node to PBS's: processors, properties, GPUs, and memory from its status."""
    there = "resources_available."
    found = {f"{there}ncpus": values["np"]} if "np" in values else {}
    found |= {f"{there}{word.strip()}": "True" for word in values.get("properties", "").split(",") if word.strip()}
    counts = (("gpus", "ngpus"), ("mics", "mics"))
    found |= {f"{there}{own}": values[name] for name, own in counts if values.get(name, "0") != "0"}
    memory = re.search(r"(?:^|,)physmem=([0-9]+kb)", values.get("status", ""))
    return {**found, **({f"{there}mem": memory[1]} if memory else {}), **values}


def _node(name: str, given: Mapping[str, str], path: Path, line: int | None = None) -> Node:
    there, values = "resources_available.", _as_pbs(given)
    cores, priority, sharing = values.get(f"{there}ncpus", ""), values.get("Priority", ""), values.get("sharing", "")
    part = _VNODE.fullmatch(name)
    return Node(
        checked_host(part[1] if part else name),
        int(cores) if re.fullmatch(r"[0-9]{1,9}", cores) else None,
        values.get(f"{there}Qlist", ""),
        bool(re.fullmatch(r"(default|force)_excl(host)?", sharing)),
        values.get("queue", ""),
        int(priority) if re.fullmatch(r"-?[0-9]{1,5}", priority) else 0,
        {key.removeprefix(there): value for key, value in values.items() if key.startswith(there)},
        path,
        line,
        sharing,
        bool(_DOWN.search(values.get("state", ""))),
        (name,) if part else (),
    )


def check_machine(config: SiteConfig, nodes: Sequence[Node]) -> None:
    """Raise ExportError if number or cores of the nodes do not match the configuration's machine."""
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
    """Return the owner of every node, a queue or `POOL`; nodes stay with the queue of their Qlist if possible.

    Raises ExportError if the nodes do not match the machine, or a partition is not made of whole nodes.
    """
    size = config.machine.cores_per_node
    cores = {queue.name: queue.partition for queue in config.queues if not queue.reservation}
    cores[POOL] = config.pool_cores
    for name, share in cores.items():
        if share % size:
            raise ExportError(
                f"{name or 'the pool'}: {share} cores are not whole nodes of {size}; make the sizes multiples of "
                f"{size}, or export with --binding limits"
            )
    check_machine(config, nodes)
    need = {name: share // size for name, share in cores.items() if share}
    owner: dict[str, str] = {}
    for node in nodes:  # nodes that can stay
        held = (node.qlist or "").split(",")
        of_pool = sum(name.endswith(POOL_SUFFIX) for name in held) > 1
        home = next((name for name in need if name and name in held), POOL if of_pool else None)
        if home is not None and need.get(home):
            owner[node.name] = home
            need[home] -= 1
    for node in nodes:  # the other nodes, in order
        if node.name not in owner:
            owner[node.name] = home = next(name for name, left in need.items() if left)
            need[home] -= 1
    return {node.name: owner[node.name] for node in nodes}
