"""Nodes of several types as a snapshot has them: which are in service, and which of them running jobs have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from parsim import System, Window
from parsim.model.throttles import of_resources
from qconf.config import SiteConfig
from qconf.snapshot import Closure, Job, Snapshot
from qconf.snapshot.model import host_names

ANY_CORES = 2**31  #: of a job on a node, where a snapshot names its nodes alone


@dataclass(frozen=True)
class Nodes:
    """A machine with the nodes that are in service alone."""

    system: System
    #: Of each node, by its name, as `parsim.State.nodes` has them; empty where names are unknown.
    number: Mapping[str, int]
    down: Mapping[str, int]  #: how many are not in service, by type
    lost: Set[str]  #: their names
    renumbered: Mapping[int, int]  #: numbers of those in service, by their numbers in the configuration
    cores: Mapping[str, int]  #: of each node of the configuration, by its name; empty where names are unknown

    def unnamed(self, names: Sequence[str]) -> list[str]:
        """Return those of these nodes that the configuration does not name, where it names its own."""
        return [name for name in names if self.number and name not in self.number and name not in self.lost]

    def window(self, closure: Closure, end: int, queue: int | None) -> Iterator[Window]:
        """Yield the nodes in service that a closure takes, until `end`, for the jobs of a queue, if there are any.

        One of parts of nodes takes about as many cores by whole ones of these; a queue has one node at least.
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
        """Whether a closure takes parts of the nodes that it names."""
        return closure.cores < sum(self.cores.get(name, 0) for name in _nodes_of(closure))

    def moved(self, windows: Iterable[Window]) -> Iterator[Window]:
        """Yield the windows of a configuration, of all its nodes, as those that are in service have them."""
        there = {each.name for each in self.system.node_types}
        for window in windows:
            nodes = [k for k in map(self.renumbered.get, window.nodes) if k is not None]
            types = {name: count for name, count in dict(window.node_types).items() if name in there}
            if bool(nodes) == bool(window.nodes) and bool(types) == bool(window.node_types):
                yield replace(window, nodes=nodes, node_types=types)

    def of(self, jobs: Sequence[Job]) -> dict[int, dict[int, int]]:
        """Return the cores on each node of the jobs, by row, that run on nodes in service and no others."""
        return {
            row: {self.number[name]: cores or ANY_CORES for name, cores in job.on}
            for row, job in enumerate(jobs)
            if job.on and all(name in self.number for name, _ in job.on)
        }


def _nodes_of(closure: Closure) -> Sequence[str]:
    """Return the names of the nodes that are closed or reserved."""
    return (closure.node,) if closure.node else closure.nodes


def _is_of_named_nodes(closure: Closure, cores_of: Mapping[str, int]) -> bool:
    """Whether it names the nodes that are closed or reserved, and their cores are known."""
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
    """Return the machine without the nodes that are down; `closures`, those that last.

    None where the type of such a node is not known, the machine is divided, or other cores are closed or reserved than
    those of nodes with names: that is not simulated.
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
    """Return the numbers of nodes that are all in service, each as it was."""
    return {k: k for k in range(sum(each.nodes for each in system.node_types))}
