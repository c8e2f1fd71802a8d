"""Types of nodes: of the nodes that a batch system has, those that are alike; and back, the nodes of each type."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

from qconf.config import NodesConfig, SiteConfig
from qconf.config.models import Settings
from qconf.errors import ExportError
from qconf.export.nodes import Node
from qconf.history import Records
from qconf.history.chunks import read
from qconf.hosts import expand, fold
from qconf.text import grouped

#: Memory that differs by less is one: what the system of a node takes differs from one to the next.
TOLERANCE = 0.05
BINDING = 0.01  #: of all core-hours: what jobs take of memory beyond their part of the cores, for it to count
LARGE = 2  #: times the least memory of all nodes: such nodes are called bigmem
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,63}")  #: of what is counted
FEATURE = re.compile(r"[A-Za-z0-9_.:=@/-]{1,128}")
MOST_TYPES = 64


@dataclass(frozen=True, slots=True)
class Kind:
    """What counts of a node: cores, memory in MiB, GPUs and others by name; and what it is."""

    cores: int
    memory: int = 0
    gpus: int = 0
    resources: tuple[tuple[str, int], ...] = ()
    features: frozenset[str] = frozenset()
    exclusive: bool = False  #: whether a job has it alone
    weight: int = 1  #: nodes of less are taken first

    @property
    def counted(self) -> tuple[int, int, tuple[tuple[str, int], ...], bool]:
        """What is counted beside cores."""
        return self.memory, self.gpus, self.resources, self.exclusive

    @property
    def names(self) -> list[str]:
        """Names of what is counted beside cores, as ``nodes:`` has them."""
        amounts = [("memory", self.memory), ("gpus", self.gpus), *self.resources]
        return [name for name, amount in amounts if amount]


def alike(kinds: Mapping[str, Kind]) -> dict[str, Kind]:
    """Return the kinds with one memory for those that hardly differ in it: the greatest, so that every job fits."""
    ranked = sorted(kinds.items(), key=lambda each: each[1].memory, reverse=True)
    greatest: dict[Kind, int] = {}
    found = {}
    for name, kind in ranked:
        rest = replace(kind, memory=0, features=frozenset())
        most = greatest.get(rest, 0)
        if kind.memory < most * (1 - TOLERANCE) or not most:
            most = greatest[rest] = kind.memory
        found[name] = replace(kind, memory=most)
    return {name: found[name] for name in kinds}


def differ(kinds: Iterable[Kind]) -> bool:
    """Whether nodes have more or less of anything that is counted beside cores, or some are given whole."""
    return len({kind.counted for kind in kinds}) > 1


def counts(kinds: Collection[Kind], limited: Collection[str], records: Records | None) -> bool:
    """Whether anything beside cores is to be counted: GPUs and the like, what is `limited`, or memory that binds."""
    names = {name for kind in kinds for name in kind.names}
    return bool(names - {"memory"} or names & {*limited} or memory_binds(next(iter(kinds)), records))


def memory_binds(kind: Kind, records: Records | None) -> bool:
    """Whether jobs of a log take so much more of a node's memory than of its cores that it has to be counted."""
    if records is None or not (kind.memory and kind.cores):
        return False
    table = records.table
    columns = (table["needs"].tolist(), table["runtime"].tolist(), table["cores"].tolist())
    beyond = total = 0.0
    for text, runtime, cores in zip(*columns, strict=True):
        total += max(runtime, 0) * max(cores, 0)
        for chunk in read(text):
            more = chunk.amount("memory") * kind.cores / kind.memory - chunk.cores
            beyond += max(runtime, 0) * chunk.count * max(more, 0.0)
    return beyond > BINDING * total


class Types(NamedTuple):
    """Types of nodes, and by queue the names of those that it may use; None for all."""

    nodes: tuple[NodesConfig, ...]
    bound: dict[str, tuple[str, ...] | None]


def types(
    kinds: Mapping[str, Kind],
    usable: Mapping[str, Collection[str]],
    warnings: list[str],
    called: Mapping[frozenset[str], str] | None = None,
) -> Types:
    """Return the types of the nodes that there are; those that differ by name alone are one.

    Parameters
    ----------
    kinds : mapping of str to Kind
        By node, in the order in which the batch system takes them.
    usable : mapping of str to collection of str
        The nodes that each queue may use; at least one.
    warnings : list of str
        Is told where there are too many.
    called : mapping of frozenset of str to str, optional
        Names of types by their nodes, where these are known.
    """
    queues = {name: frozenset(queue for queue, nodes in usable.items() if name in nodes) for name in kinds}
    members = grouped(((kind, queues[name]), name) for name, kind in kinds.items())
    for what, without in (("weights", {"weight": 1}), ("features", {"features": frozenset()})):
        if len(members) > MOST_TYPES:
            kinds = {name: replace(kind, **without) for name, kind in kinds.items()}
        fewer = grouped(((kind, queues[name]), name) for name, kind in kinds.items())
        if len(fewer) < len(members):
            warnings.append(f"{what} of nodes: with them there are {len(members)} types; left out")
            members = fewer
    names = list(_names([(kind, nodes) for (kind, _), nodes in members.items()]))
    if called and {*called} == {frozenset(nodes) for nodes in members.values()}:
        names = [called[frozenset(nodes)] for nodes in members.values()]
    found = tuple(
        NodesConfig(
            **asdict(kind)
            | {"name": name, "count": len(nodes), "hosts": fold(nodes)}
            | {"resources": dict(kind.resources), "features": tuple(sorted(kind.features))}
        )
        for name, ((kind, _), nodes) in zip(names, members.items(), strict=True)
    )
    bound = {
        queue: tuple(name for name, (_, users) in zip(names, members, strict=True) if queue in users)
        for queue in usable
    }
    return Types(found, {queue: own if len(own) < len(names) else None for queue, own in bound.items()})


def _names(groups: Sequence[tuple[Kind, Sequence[str]]]) -> Iterator[str]:
    """Name groups by how their nodes are called or, where all are called alike and differ, by what they have."""
    called = [match[0] if (match := re.match(r"[A-Za-z]+(?:[_-][A-Za-z]+)*", nodes[0])) else "" for _, nodes in groups]
    least = min(kind.memory for kind, _ in groups)
    having = ["gpu" if kind.gpus else "bigmem" if kind.memory >= LARGE * least > 0 else "cpu" for kind, _ in groups]
    if "" in called or (len({*called}) == 1 and len({*having}) > 1):
        called = having
    seen: Counter[str] = Counter()
    for name in called:
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name}-{seen[name]}"


def hosts(config: SiteConfig, nodes: Sequence[Node] | None = None) -> dict[str, list[str]]:
    """Return the names of the nodes of each type, as the configuration has them; `nodes`, those that there are.

    Raises ExportError where it lacks some, or they are not those that there are.
    """
    found: dict[str, list[str]] = {}
    owner: dict[str, str] = {}
    for each in config.nodes:
        if each.hosts is None:
            raise ExportError(
                f"nodes {each.name}: queues are bound to nodes, and these have no names: add hosts, like "
                f"hosts: '{each.name}[01-{each.count:02d}]', as qconf init does"
            )
        names = list(expand(each.hosts))
        for name in names:
            if name in owner:
                whose = "twice" if owner[name] == each.name else f"among those of {owner[name]} too"
                raise ExportError(f"nodes {each.name}: hosts has {name} {whose}")
            owner[name] = each.name
        found[each.name] = names
    if nodes is not None:
        _check(config, owner, nodes)
    return found


def with_own_types(config: SiteConfig, nodes: Sequence[Node] | None = None) -> SiteConfig:
    """Return a divided site on which the nodes of each partition are types to which its queue is bound.

    Queues have the first nodes of each type in their order; `nodes`, those that there are. It has no downtimes, which
    name the types of before and are no part of an export. Any other site stays as it is. Raises ExportError where the
    nodes have no names.
    """
    if not config.nodes or config.mode == "shared":
        return config
    left = hosts(config, nodes)
    types: list[NodesConfig] = []

    def own(part: str, counts: Mapping[str, int]) -> dict[str, NodesConfig]:
        """Take nodes of each type, by its name, for a part."""
        found = {}
        for each in config.nodes:
            if count := counts.get(each.name, 0):
                names, left[each.name] = left[each.name][:count], left[each.name][count:]
                name = _own_name(f"{each.name}-{part}", {of.name for of in types})
                found[each.name] = each.model_copy(update={"name": name, "count": count, "hosts": fold(names)})
                types.append(found[each.name])
        return found

    queues = []
    for queue in config.queues:
        counts = {each.name: each.count for each in own(queue.name, queue.partition_nodes).values()}
        if not counts:
            raise ExportError(f"queue {queue.name}: its partition has no nodes, so none of its jobs would start")
        queues.append(queue.model_copy(update={"nodes": tuple(counts), "partition_nodes": Settings(counts)}))
    return config.replace(nodes=tuple(types), queues=tuple(queues), pool=None, downtime=())


def kept(nodes: tuple[NodesConfig, ...], caps: Mapping[int, Collection[str]]) -> tuple[NodesConfig, ...]:
    """Return types of nodes, which have hosts, with what they keep for each GPU.

    `caps` are the names of the nodes on which so many cores are left to jobs without GPUs.
    """
    found = []
    for each in nodes:
        own = {*expand(each.hosts or "")}
        cores = next((cores for cores, names in caps.items() if own <= {*names}), each.cores)
        per_gpu = max(0, each.cores - cores) // each.gpus if each.gpus else 0
        found.append(each.model_copy(update={"kept_per_gpu": per_gpu}))
    return tuple(found)


def _own_name(wanted: str, taken: Collection[str]) -> str:
    """Return a name that a type of nodes may have, and that none of `taken` is."""
    names = (wanted[:60], *(f"{wanted[:60]}-{k}" for k in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


def _check(config: SiteConfig, owner: Mapping[str, str], nodes: Sequence[Node]) -> None:
    """Raise ExportError where the nodes of the configuration are not those that there are."""
    there = {node.name: node.cores for node in nodes if node.cores != 0}
    if strange := next((name for name in there if name not in owner), None):
        raise ExportError(f"node {strange} is in none of the hosts of the configuration's nodes")
    if missing := next((name for name in owner if name not in there), None):
        raise ExportError(f"nodes {owner[missing]}: hosts has {missing}, which --nodes has not")
    cores = {each.name: each.cores for each in config.nodes}
    for name, held in there.items():
        if held not in (None, cores[owner[name]]):
            raise ExportError(
                f"node {name} has {held} cores, nodes {owner[name]} of the configuration have {cores[owner[name]]}"
            )


def is_bound(config: SiteConfig) -> bool:
    """Whether queues may use some types of nodes only."""
    return any(queue.nodes is not None for queue in config.queues)
