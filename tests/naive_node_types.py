"""Nodes of several types in the reference simulator: rules 58 to 61 of ``docs/reference/simulator.md``."""

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
