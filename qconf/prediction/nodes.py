"""Nodes of several types in a snapshot: the nodes in service, and the nodes that running jobs have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from parsim import System, Window
from parsim.model.throttles import of_resources
from qconf.config import SiteConfig
from qconf.snapshot import Closure, Job, Snapshot
from qconf.snapshot.model import host_names

ANY_CORES = 2**31  #: cores of a job on a node, if a snapshot has only the node's name


@dataclass(frozen=True)
class Nodes:
    """A machine that has only the nodes in service."""

    system: System
    #: Number of each node in service in `system`, by name; empty if names are unknown.
    number: Mapping[str, int]
    down: Mapping[str, int]  #: number of nodes out of service, by type
    lost: Set[str]  #: names of the nodes out of service
    renumbered: Mapping[int, int]  #: numbers of the nodes in service, by their numbers in the configuration
    cores: Mapping[str, int]  #: cores of each node of the configuration, by name; empty if names are unknown

    def unnamed(self, names: Sequence[str]) -> list[str]:
        """Return the names that the configuration lacks, if it names its nodes."""
        return [name for name in names if self.number and name not in self.number and name not in self.lost]

    def window(self, closure: Closure, end: int, queue: int | None) -> Iterator[Window]:
        """Yield a window on a closure's nodes in service until `end`, open to jobs of `queue`; none without nodes.

        Parts of nodes become about as many cores in whole nodes of the closure; a queue keeps at least one node.
        """
        nodes: list[int] = []
        left = closure.cores
        for name in _nodes_of(closure):
            whole = self.cores.get(name, 0)
            if name in self.number and (2 * left >= whole or (queue is not None and not nodes)):
                nodes.append(self.number[name])
                left -= whole
        if nodes:
            yield Window(closure.begin, end, nodes=nodes, queue=queue)

    def takes_parts(self, closure: Closure) -> bool:
        """Whether a closure has fewer cores than the nodes that it names."""
        return closure.cores < sum(self.cores.get(name, 0) for name in _nodes_of(closure))

    def moved(self, windows: Iterable[Window]) -> Iterator[Window]:
        """Yield windows of the configuration renumbered for the nodes in service, but none whose nodes are all lost."""
        there = {each.name for each in self.system.node_types}
        for window in windows:
            nodes = [k for k in map(self.renumbered.get, window.nodes) if k is not None]
            types = {name: count for name, count in dict(window.node_types).items() if name in there}
            if bool(nodes) == bool(window.nodes) and bool(types) == bool(window.node_types):
                yield replace(window, nodes=nodes, node_types=types)

    def of(self, jobs: Sequence[Job]) -> dict[int, dict[int, int]]:
        """Return cores by node number, by row of `jobs`; only of jobs whose nodes are all in service."""
        return {
            row: {self.number[name]: cores or ANY_CORES for name, cores in job.on}
            for row, job in enumerate(jobs)
            if job.on and all(name in self.number for name, _ in job.on)
        }


def _nodes_of(closure: Closure) -> Sequence[str]:
    """Return the names of the nodes that are closed or reserved."""
    return (closure.node,) if closure.node else closure.nodes


def _is_of_named_nodes(closure: Closure, cores_of: Mapping[str, int]) -> bool:
    """Whether a closure names its nodes, and their cores are known."""
    names = _nodes_of(closure)
    return bool(names) and all(name in cores_of for name in names)


def cores_of(window: Window, system: System) -> int:
    """Return the cores that a window takes."""
    if not system.node_types:
        return system.cores if window.cores is None else window.cores
    types = [each for its in system.owned_types for each in its]
    if window.nodes:
        sizes = [each.cores for each in types for _ in range(each.nodes)]
        return sum(sizes[node] for node in set(window.nodes))
    wanted = dict(window.node_types)
    return sum(
        each.cores * min(each.nodes, wanted.get(each.name, 0) if wanted else each.nodes) for each in system.node_types
    )


def in_service(snapshot: Snapshot, config: SiteConfig, closures: Sequence[Closure]) -> Nodes | None:
    """Return the machine without the nodes that are down; `closures` are those that have not ended.

    None if it cannot be simulated: the type of a node that is down is unknown, the machine is divided, or a closure is
    not of named nodes.
    """
    hosts = [(each.name, host_names(each.hosts or "")) for each in config.nodes]
    shared = config.mode == "shared"
    known = shared and all(len(names) == each.count for (_, names), each in zip(hosts, config.nodes, strict=True))
    type_of = {name: of for of, names in hosts for name in names}
    known = known and len(type_of) == sum(each.count for each in config.nodes)  # no node is of two types
    type_of = type_of if known else {}
    lost = {each.node for each in closures if each.end is None and each.node}
    if snapshot.nodes and known:
        lost |= {*type_of} - {*snapshot.nodes}
    cores_of = {name: each.cores for each in config.nodes for name in host_names(each.hosts or "")} if known else {}
    others = [each for each in closures if each.node not in lost and not _is_of_named_nodes(each, cores_of)]
    smaller = snapshot.cores is not None and snapshot.cores != config.machine.cores and not (snapshot.nodes and known)
    if others or smaller or not lost <= {*type_of}:
        return None
    system = config.system()
    if not shared:
        return Nodes(system, {}, {}, frozenset(), _same(system), {})
    down = {of: len(lost.intersection(names)) for of, names in hosts}
    types = [replace(each, nodes=each.nodes - down[each.name]) for each in system.node_types]
    types = [each for each in types if each.nodes]
    there = {each.name for each in types}
    if not types:
        return None
    cores = sum(each.nodes * each.cores for each in types)
    up = replace(
        system,
        cores=cores,
        node_types=types,
        queues=[
            replace(
                queue,
                cores=(min(queue.cores[0], cores), queue.cores[1]),
                node_types=queue.node_types and [name for name in queue.node_types if name in there],
            )
            for queue in system.queues
        ],
        throttles=of_resources(system.throttles, {name for each in types for name in dict(each.resources)}),
    )
    every = [name for _, names in hosts for name in names] if known else []
    names = [name for name in every if name not in lost]
    number = {name: k for k, name in enumerate(names)}
    renumbered = {k: number[name] for k, name in enumerate(every) if name in number} if known else _same(system)
    return Nodes(up, number, {of: count for of, count in down.items() if count}, lost, renumbered, cores_of)


def _same(system: System) -> Mapping[int, int]:
    """Map the number of each node to itself: all are in service."""
    return {k: k for k in range(sum(each.nodes for each in system.node_types))}
