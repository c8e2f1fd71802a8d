"""What jobs may take of nodes of several types: their places on each partition (rules 58 and 76).

The numbered rules are those of ``docs/reference/simulator.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from parsim.node_types import Chunk, NodeType, Request
from parsim.system import System
from parsim.workload import Workload

Sums = NDArray[np.int64]  #: of each resource of each type, or node


def meets(node: NodeType, chunk: Chunk) -> bool:
    """Whether nodes of a type have every feature that a chunk asks for, of one like ``a|b`` either."""
    return all(any(name in node.features for name in each.split("|")) for each in chunk.features)


class Machine:
    """The nodes of one partition of a system, and what jobs may take of them (rules 58 and 76)."""

    def __init__(self, system: System, partition: int) -> None:
        has = system.owned_nodes[partition]
        self.types = [replace(each, nodes=has.get(each.name, 0)) for each in system.node_types]
        allowed = [queue.node_types for queue in system.queues]
        self.allowed = [[names is None or each.name in names for each in self.types] for names in allowed]
        named = {name for each in self.types for name in dict(each.resources)}
        self.of = {
            (each.name, name): at
            for at, (each, name) in enumerate((each, name) for each in self.types for name in ("cores", *sorted(named)))
        }
        self.all = self._sums((each, each.nodes, _node(each)) for each in self.types)

    def _sums(self, parts: Iterator[tuple[NodeType, int, dict[str, int]]]) -> Sums:
        found = np.zeros(len(self.of), dtype=np.int64)
        for each, count, amounts in parts:
            for name, amount in amounts.items():
                found[self.of[each.name, name]] += count * amount
        return found

    def node(self, name: str) -> Sums:
        """Return all that one node of a type has."""
        return self._sums((each, 1, _node(each)) for each in self.types if each.name == name)

    def can_place(self, queue: int, request: Request) -> bool:
        """Whether each copy of the chunks has a node, each going to the first with room, when nothing runs."""
        types = [each for each, may in zip(self.types, self.allowed[queue], strict=True) if may]
        left = [(each, _node(each), set[int]()) for each in types for _ in range(each.nodes)]
        for k, chunk in enumerate(request):
            need = chunk.count
            for each, node, has in left:
                if not meets(each, chunk) or (chunk.scattered and has):
                    continue
                copies = min(need, _on_node(node, chunk))
                if copies:
                    has.add(k)
                for name, amount in takes_of(chunk).items() if copies else ():
                    node[name] -= copies * amount
                need -= copies
            if need:
                return False
        return True

    def places(self, queue: int, request: Request | None, cores: int) -> list[Sums]:
        """Return what a job may take, in the order in which it is tried."""
        types = [each for each, may in zip(self.types, self.allowed[queue], strict=True) if may]
        alone = is_exclusive(request)
        if request is None or request == (Chunk(cores, 1, exclusive=alone),):
            wide = [each for each in types if each.nodes * each.cores >= cores]
            if wide:
                return [self._sums(iter([_of_cores(each, cores, alone=alone)])) for each in wide]
            parts, left = [], cores
            for each in types:
                part = min(left, each.nodes * each.cores)
                parts.append(_of_cores(each, part, alone=alone))
                left -= part
            return [] if left else [self._sums(iter(parts))]
        found = []
        for each in types:
            if alone or each.exclusive or any(chunk.scattered for chunk in request):
                nodes = _nodes_of_all(each, request)
                if nodes > each.nodes:
                    continue
                if alone or each.exclusive:
                    found.append(self._sums(iter([(each, nodes, _node(each))])))
                    continue
            if all(_room(each, chunk) >= chunk.count for chunk in request):
                taken = self._sums((each, chunk.count, takes_of(chunk)) for chunk in request)
                found += [taken] if (taken <= self.all).all() else []
        if found:
            return found
        taken = np.zeros_like(self.all)
        for chunk in request:
            beside = [
                taken + self._sums(iter([_of_chunk(each, chunk, whole=alone or each.exclusive)]))
                for each in types
                if _room(each, chunk) >= chunk.count
            ]
            fitting = [sums for sums in beside if (sums <= self.all).all()]
            if not fitting:
                return []
            taken = fitting[0]
        return [taken]


def _node(each: NodeType) -> dict[str, int]:
    return {"cores": each.cores, **dict(each.resources)}


def is_exclusive(request: Request | None) -> bool:
    """Whether a job has its nodes alone by what it asks for."""
    return any(chunk.exclusive for chunk in request or ())


def takes_of(chunk: Chunk) -> dict[str, int]:
    """Return what one copy of a chunk takes of its node."""
    return {name: amount for name, amount in (("cores", chunk.cores), *dict(chunk.resources).items()) if amount}


def _on_node(left: dict[str, int], chunk: Chunk) -> int:
    """Return how many such chunks fit where so much is left of a node."""
    copies = min(left.get(name, 0) // amount for name, amount in takes_of(chunk).items())
    return min(copies, 1) if chunk.scattered else copies


def _room(each: NodeType, chunk: Chunk) -> int:
    """Return how many such chunks fit on idle nodes of a type."""
    return 0 if not meets(each, chunk) else each.nodes * _on_node(_node(each), chunk)


def _of_cores(each: NodeType, cores: int, *, alone: bool) -> tuple[NodeType, int, dict[str, int]]:
    """Return what a job of cores alone takes of a type: times so much."""
    return (each, -(-cores // each.cores), _node(each)) if alone or each.exclusive else (each, cores, {"cores": 1})


def _of_chunk(each: NodeType, chunk: Chunk, *, whole: bool) -> tuple[NodeType, int, dict[str, int]]:
    """Return what chunks take of a type that has room for them: times so much, of nodes that are taken whole."""
    if whole:
        return each, -(-chunk.count // _on_node(_node(each), chunk)), _node(each)
    return each, chunk.count, takes_of(chunk)


def _nodes_of_all(each: NodeType, request: Request) -> int:
    """Return how many idle nodes of a type a job has, each chunk on the first with room; too many if it has none."""
    left: list[tuple[dict[str, int], set[int]]] = []  # of each node in turn, and which chunks of the job it has
    for k, chunk in enumerate(request):
        if _room(each, chunk) < chunk.count:
            return each.nodes + 1
        need, at = chunk.count, 0
        while need:
            if at == len(left):
                left.append((_node(each), set()))
            node, has = left[at]
            copies = 0 if chunk.scattered and has else min(need, _on_node(node, chunk))
            if copies:
                has.add(k)
                for name, amount in takes_of(chunk).items():
                    node[name] -= copies * amount
            need, at = need - copies, at + 1
    return len(left)


class Machines:
    """The nodes of all partitions.

    Attributes
    ----------
    all : ndarray(int64), shape (partitions, types * resources)
        What there is.
    names : list of (str, str)
        Type and resource of its columns.
    """

    def __init__(self, system: System) -> None:
        self.of = [Machine(system, p) for p in range(len(system.partition_cores))]
        self.all = np.stack([machine.all for machine in self.of])
        self.names = list(self.of[0].of)
        self.whole = system.is_whole

    def places(self, queue: int, request: Request | None, cores: int) -> list[tuple[int, Sums]]:
        """Return the places of a job, each with its partition: its queue's, then the pool."""
        pool = len(self.of) - 1
        own = (pool,) if self.whole else (queue, pool)
        return [(p, taken) for p in own for taken in self.of[p].places(queue, request, cores)]


def places_of(workload: Workload, system: System) -> list[list[tuple[int, Sums]]]:
    """Return what each job may take of the nodes of each partition, by row."""
    machines, known = Machines(system), dict[tuple[int, int], list[tuple[int, Sums]]]()
    found = []
    for queue, number, cores in zip(
        workload.queue.tolist(), workload.request.tolist(), workload.cores.tolist(), strict=True
    ):
        key = queue, number if number >= 0 else -cores
        if key not in known:
            request = workload.requests[number] if number >= 0 else None
            if system.queues[queue].exclusive:
                chunks = request or (Chunk(cores, 1),)
                request = tuple(replace(chunk, exclusive=True) for chunk in chunks)
            known[key] = machines.places(queue, request, cores)
        found.append(known[key])
    return found


def partitions_of(workload: Workload, system: System) -> list[set[int]]:
    """Return the partitions that can hold each job when nothing runs, by row (rules 63 and 76)."""
    if not system.places_chunks:
        return [{p for p, _ in places} for places in places_of(workload, system)]
    machines, known = Machines(system), dict[tuple[int, int], set[int]]()
    found = []
    for queue, number, cores in zip(
        workload.queue.tolist(), workload.request.tolist(), workload.cores.tolist(), strict=True
    ):
        key = queue, number if number >= 0 else -cores
        if key not in known:
            request = workload.requests[number] if number >= 0 else (Chunk(cores, 1),)
            own = {len(machines.of) - 1} if machines.whole else {queue, len(machines.of) - 1}
            known[key] = {p for p in own if machines.of[p].can_place(queue, request)}
        found.append(known[key])
    return found
