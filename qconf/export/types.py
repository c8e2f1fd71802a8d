"""Group a batch system's nodes into types, and list the nodes of each type of a configuration."""

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

#: Relative difference of memory that is ignored: operating systems take different amounts.
TOLERANCE = 0.05
BINDING = 0.01  #: fraction of all core-hours, see `memory_binds`
LARGE = 2  #: nodes with this many times the least memory are named bigmem
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,63}")  #: of a counted resource
FEATURE = re.compile(r"[A-Za-z0-9_.:=@/-]{1,128}")
MOST_TYPES = 64


@dataclass(frozen=True, slots=True)
class Kind:
    """The properties that nodes of a type share: cores, memory in MiB, GPUs, other resources by name, features."""

    cores: int
    memory: int = 0
    gpus: int = 0
    resources: tuple[tuple[str, int], ...] = ()
    features: frozenset[str] = frozenset()
    exclusive: bool = False  #: whether the node serves one job at a time
    weight: int = 1  #: nodes of lower weight are used first

    @property
    def counted(self) -> tuple[int, int, tuple[tuple[str, int], ...], bool]:
        """The properties, other than cores, that make nodes differ."""
        return self.memory, self.gpus, self.resources, self.exclusive

    @property
    def names(self) -> list[str]:
        """Names of the counted resources other than cores, as in ``nodes:``."""
        amounts = [("memory", self.memory), ("gpus", self.gpus), *self.resources]
        return [name for name, amount in amounts if amount]


def alike(kinds: Mapping[str, Kind]) -> dict[str, Kind]:
    """Return the kinds by node with nearly equal memory sizes made equal: the greatest, so that every job fits."""
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
    """Whether nodes differ in anything of `Kind.counted`."""
    return len({kind.counted for kind in kinds}) > 1


def counts(kinds: Collection[Kind], limited: Collection[str], records: Records | None) -> bool:
    """Whether resources other than cores matter: GPUs and others, those with limits (`limited`), or scarce memory."""
    names = {name for kind in kinds for name in kind.names}
    return bool(names - {"memory"} or names & {*limited} or memory_binds(next(iter(kinds)), records))


def memory_binds(kind: Kind, records: Records | None) -> bool:
    """Whether the jobs' memory, counted as cores with that much memory, exceeds their cores by over `BINDING`."""
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
    """Types of nodes, and by queue the names of the types that it may use, None for all."""

    nodes: tuple[NodesConfig, ...]
    bound: dict[str, tuple[str, ...] | None]


def types(
    kinds: Mapping[str, Kind],
    usable: Mapping[str, Collection[str]],
    warnings: list[str],
    called: Mapping[frozenset[str], str] | None = None,
) -> Types:
    """Group nodes into types: those with equal kind that the same queues may use.

    `kinds` are by node, in the order in which the batch system uses them; `usable` are the nodes that each queue may
    use, at least one. `warnings` gets a warning if there are too many types. `called` are names of types by their
    nodes, if known.
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
    """Name groups by the prefix of their nodes' names; if that is the same for all, by cpu, gpu or bigmem."""
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
    """Return the names of the nodes of each type, by type, from the configuration.

    Raises ExportError if a type has no names, or they are not exactly the names of `nodes`, the existing nodes.
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
    """Return a divided configuration in which each partition's nodes are types of its own, to which its queue is bound.

    Queues get the first nodes of each type, in their order; `nodes` are the existing ones. Downtimes, which name the
    old types and are not exported, are removed. A shared configuration, or one without types, is returned unchanged.
    Raises ExportError if the nodes have no names.
    """
    if not config.nodes or config.mode == "shared":
        return config
    left = hosts(config, nodes)
    types: list[NodesConfig] = []

    def own(part: str, counts: Mapping[str, int]) -> dict[str, NodesConfig]:
        """Take nodes of each type for a partition; return the new types by the old name."""
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
    """Return the types, which have hosts, with `kept_per_gpu` set.

    `caps` maps a number of cores left to jobs without GPUs to the names of the nodes with it.
    """
    found = []
    for each in nodes:
        own = {*expand(each.hosts or "")}
        cores = next((cores for cores, names in caps.items() if own <= {*names}), each.cores)
        per_gpu = max(0, each.cores - cores) // each.gpus if each.gpus else 0
        found.append(each.model_copy(update={"kept_per_gpu": per_gpu}))
    return tuple(found)


def _own_name(wanted: str, taken: Collection[str]) -> str:
    """Return a valid name of a type of nodes that is not in `taken`."""
    names = (wanted[:60], *(f"{wanted[:60]}-{k}" for k in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


def _check(config: SiteConfig, owner: Mapping[str, str], nodes: Sequence[Node]) -> None:
    """Raise ExportError if the configuration's nodes are not the existing ones."""
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
    """Whether some queue may use only some types of nodes."""
    return any(queue.nodes is not None for queue in config.queues)
