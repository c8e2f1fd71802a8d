"""Nodes of several types in the reference simulator: rules 58 to 66 of ``docs/reference/simulator.md``."""

from __future__ import annotations

from parsim.node_types import NodeType, Request
from parsim.system import System

Taken = dict[tuple[str, str], int]  #: how much of a resource of nodes of a type


def there_is(types: list[NodeType]) -> Taken:
    """Return what all nodes of each type have together."""
    found: Taken = {}
    for each in types:
        for resource, amount in [("cores", each.cores), *each.resources]:
            found[each.name, resource] = each.nodes * amount
    return found


def fits(taken: Taken, there: Taken) -> bool:
    return all(amount <= there.get(what, 0) for what, amount in taken.items())


def places(system: System, queue: int, request: Request | None, cores: int) -> list[Taken]:
    """Rule 58: what a job may take, in the order in which it is tried."""
    allowed = system.queues[queue].node_types
    types = [each for each in system.node_types if allowed is None or each.name in allowed]
    there = there_is(types)
    if request is None:
        alone = [{(each.name, "cores"): cores} for each in types if cores <= each.nodes * each.cores]
        if alone:
            return alone
        filled: Taken = {}
        for each in types:
            filled[each.name, "cores"] = min(each.nodes * each.cores, cores - sum(filled.values()))
        return [filled] if sum(filled.values()) == cores else []
    alone = []
    for each in types:
        taken: Taken = {}
        for chunk in request:
            taken = both(taken, of_chunk(chunk, each))
        if all(holds(each, chunk) for chunk in request) and fits(taken, there):
            alone.append(taken)
    if alone:
        return alone
    spread: Taken = {}
    for chunk in request:
        for each in types:
            if holds(each, chunk) and fits(both(spread, of_chunk(chunk, each)), there):
                spread = both(spread, of_chunk(chunk, each))
                break
        else:
            return []
    return [spread]


def of_chunk(chunk, each: NodeType) -> Taken:
    wanted = [("cores", chunk.cores), *chunk.resources]
    return {(each.name, resource): chunk.count * amount for resource, amount in wanted if amount}


def both(first: Taken, second: Taken) -> Taken:
    return {what: first.get(what, 0) + second.get(what, 0) for what in first.keys() | second.keys()}


def holds(each: NodeType, chunk) -> bool:
    """Whether as many chunks as there are fit on idle nodes of a type, each on one node."""
    if not chunk.features <= each.features:
        return False
    node = {"cores": each.cores, **dict(each.resources)}
    on_node = 0
    while all(
        (on_node + 1) * amount <= node.get(what, 0) for what, amount in [("cores", chunk.cores), *chunk.resources]
    ):
        on_node += 1
        if on_node * each.nodes >= chunk.count:
            return True
    return False


Node = dict[str, int]  #: how much of each resource


def nodes_of(types: list[NodeType]) -> list[tuple[NodeType, Node]]:
    """Rule 62: the nodes in their order, each with its type and what it has."""
    return [(each, {"cores": each.cores, **dict(each.resources)}) for each in types for _ in range(each.nodes)]


def idle(system: System) -> list[Node]:
    """Return what is left of the nodes where nothing runs."""
    return [there for _, there in nodes_of(system.node_types)]


def copies(request: Request | None, cores: int) -> list[tuple[Node, frozenset[str]]]:
    """Rule 62: what each copy that a job asks for takes, and the features of its node, in the order of their turns."""
    if request is None:
        return [({"cores": 1}, frozenset())] * cores
    found = []
    for chunk in request:
        takes = {what: amount for what, amount in [("cores", chunk.cores), *chunk.resources] if amount}
        found += [(takes, chunk.features)] * chunk.count
    return found


def first_nodes(system: System, queue: int, request: Request | None, cores: int, left: list[Node]) -> list[int | None]:
    """Rule 62: the node that each copy goes to, of what is left of the nodes; None if it finds none."""
    allowed = system.queues[queue].node_types
    left = [dict(node) for node in left]
    found: list[int | None] = []
    for takes, features in copies(request, cores):
        there = None
        for number, (each, _) in enumerate(nodes_of(system.node_types)):
            usable = (allowed is None or each.name in allowed) and features <= each.features
            if usable and all(left[number].get(what, 0) >= amount for what, amount in takes.items()):
                there = number
                break
        if there is not None:
            for what, amount in takes.items():
                left[there][what] -= amount
        found.append(there)
    return found


def less(left: list[Node], request: Request | None, cores: int, on: list[int | None]) -> list[Node]:
    """Return what is left of the nodes beside a job whose copies are on these."""
    found = [dict(node) for node in left]
    for (takes, _), number in zip(copies(request, cores), on, strict=True):
        if number is not None:
            for what, amount in takes.items():
                found[number][what] -= amount
    return found
