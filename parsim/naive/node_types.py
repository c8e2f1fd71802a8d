"""Nodes of several types in the reference simulator; names of rules refer to ``docs/reference/simulator.md``."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from parsim.model.node_types import Chunk, NodeType, Request
from parsim.model.state import Window
from parsim.model.system import System

Taken = dict[tuple[str, str], int]  #: (type of nodes, resource) -> amount


def there_is(types: list[NodeType]) -> Taken:
    """Return the total resources of each type of nodes."""
    found: Taken = {}
    for each in types:
        for resource, amount in [("cores", each.cores), *each.resources]:
            found[each.name, resource] = each.nodes * amount
    return found


def fits(taken: Taken, there: Taken) -> bool:
    return all(amount <= there.get(what, 0) for what, amount in taken.items())


def fits_beside(wanted: Taken, others: Taken, there: Taken) -> bool:
    """Rule "windows by totals": whether `wanted` fits beside `others`, in the resources that it takes."""
    return fits({what: amount + others.get(what, 0) for what, amount in wanted.items() if amount}, there)


def types_on(system: System, partition: int) -> list[NodeType]:
    """Rule "partitions by type": the types of a partition; on a divided machine a type is named "TYPE of PARTITION"."""
    if system.mode == "shared":
        return list(system.node_types)
    count = dict(system.queues[partition].partition_nodes) if partition < len(system.queues) else {}
    return [
        replace(each, name=f"{each.name} of {partition}", nodes=count[each.name])
        for each in system.node_types
        if each.name in count
    ]


def all_types(system: System) -> list[NodeType]:
    """Return the types of all partitions."""
    if system.mode == "shared":
        return list(system.node_types)
    return [each for partition in range(len(system.queues)) for each in types_on(system, partition)]


def may_use(system: System, queue: int, each: NodeType) -> bool:
    """Whether jobs of a queue may use nodes of a type of `types_on`."""
    allowed = system.queues[queue].node_types
    return allowed is None or each.name.partition(" of ")[0] in allowed


def places(system: System, queue: int, request: Request | None, cores: int) -> list[Taken]:
    """Rule "places of a job": the alternatives of resources that a job may take, in the order of trial."""
    types = [each for each in types_on(system, queue) if may_use(system, queue, each)]
    there = there_is(types)
    whole = request is not None and request[0].exclusive
    if request is None or request == (Chunk(cores, 1, exclusive=whole),):
        alone = [cores_of(each, cores, whole) for each in types if cores <= each.nodes * each.cores]
        if alone:
            return alone
        filled, left = {}, cores
        for each in types:
            part = min(each.nodes * each.cores, left)
            filled, left = both(filled, cores_of(each, part, whole)), left - part
        return [] if left else [filled]
    alone = []
    for each in types:
        taken: Taken = {}
        for chunk in request:
            taken = both(taken, of_chunk(chunk, each))
        whole, apart = has_alone(each, request), any(chunk.scattered for chunk in request)
        if whole or apart:  # rules "exclusive nodes" and "scattered chunks"
            of_type = [number for number, (other, _) in enumerate(nodes_of(all_types(system))) if other == each]
            left = [node if number in of_type else {} for number, node in enumerate(idle(system))]
            on = first_nodes(system, queue, request, cores, left)
            if None in on:
                continue
            taken = nodes_whole(each, len(set(on))) if whole else taken
        if whole or (all(holds(each, chunk) for chunk in request) and fits(taken, there)):
            alone.append(taken)
    if alone:
        return alone
    spread: Taken = {}
    for chunk in request:
        for each in types:
            if not holds(each, chunk):
                continue
            takes = of_chunk(chunk, each)
            if has_alone(each, request):
                takes = nodes_whole(each, next(n for n in range(1, each.nodes + 1) if holds(each, chunk, n)))
            if fits(both(spread, takes), there):
                spread = both(spread, takes)
                break
        else:
            return []
    return [spread]


def cores_of(each: NodeType, cores: int, whole: bool) -> Taken:
    return nodes_whole(each, -(-cores // each.cores)) if whole or each.exclusive else {(each.name, "cores"): cores}


def has_alone(each: NodeType, request: Request | None) -> bool:
    """Rule "exclusive nodes": whether a job shares no node of this type."""
    return each.exclusive or any(chunk.exclusive for chunk in request or ())


def nodes_whole(each: NodeType, nodes: int) -> Taken:
    """Return the resources of `nodes` whole nodes of a type."""
    return {(each.name, what): nodes * amount for what, amount in [("cores", each.cores), *each.resources]}


def of_types(taken: Taken, place: Taken) -> Taken:
    """Return the part of `taken` on types that a place uses."""
    types = {name for (name, _), amount in place.items() if amount}
    return {what: amount for what, amount in taken.items() if what[0] in types}


def one_node_each(types: list[NodeType], place: Taken) -> Taken:
    """Return the resources of one node of each type that a place uses."""
    found: Taken = {}
    for each in types:
        found = both(found, of_types(nodes_whole(each, 1), place))
    return found


def of_chunk(chunk, each: NodeType) -> Taken:
    wanted = [("cores", chunk.cores), *chunk.resources]
    return {(each.name, resource): chunk.count * amount for resource, amount in wanted if amount}


def both(first: Taken, second: Taken) -> Taken:
    return {what: first.get(what, 0) + second.get(what, 0) for what in first.keys() | second.keys()}


def has_features(has: frozenset[str], wanted: frozenset[str]) -> bool:
    """Whether `has` includes each wanted feature; a wanted a|b is satisfied by either."""
    return all(any(part in has for part in each.split("|")) for each in wanted)


def holds(each: NodeType, chunk, nodes: int | None = None) -> bool:
    """Whether all copies of a chunk fit on `nodes` idle nodes of a type (default: all), each copy on one node."""
    nodes = each.nodes if nodes is None else nodes
    if not has_features(each.features, chunk.features):
        return False
    node = {"cores": each.cores, **dict(each.resources)}
    on_node = 0
    while all(
        (on_node + 1) * amount <= node.get(what, 0) for what, amount in [("cores", chunk.cores), *chunk.resources]
    ):
        on_node += 1
        if on_node * nodes >= chunk.count:
            return True
        if chunk.scattered:
            return False
    return False


def closed_nodes(window: Window, system: System, others: Collection[int] = ()) -> list[int]:
    """Rule "nodes of a window": the numbers of the nodes that a window takes; those in `others` come last."""
    if window.nodes:
        return sorted(set(window.nodes))
    parts = range(1 if system.mode == "shared" else len(system.queues) + 1)
    node = 0
    of: dict[str, dict[int, list[int]]] = {each.name: {p: [] for p in parts} for each in system.node_types}
    for p in parts:
        for each in types_on(system, p):
            of[each.name.partition(" of ")[0]][p] += range(node, node + each.nodes)
            node += each.nodes
    found = []
    for name, nodes in of.items():
        size = {p: len(its) for p, its in nodes.items() if window.partition in (None, p)}
        whole = sum(size.values())
        most = whole if not window.node_types else min(whole, dict(window.node_types).get(name, 0))
        share = {p: most * its // whole for p, its in size.items()} if whole else {}
        for p in sorted(share, key=lambda p: (-size[p], p))[: most - sum(share.values())]:
            share[p] += 1
        for p, count in share.items():
            found += sorted(nodes[p], key=lambda node: (node in others, -node))[:count]
    return sorted(found)


def of_nodes(system: System, nodes: list[int]) -> Taken:
    """Return the total resources of these nodes."""
    found: Taken = {}
    for number, (each, _) in enumerate(nodes_of(all_types(system))):
        found = both(found, nodes_whole(each, int(number in nodes)))
    return found


Node = dict[str, int]  #: resource -> amount; 1 as "no job" if no job is on it, as "not alone" if none has it alone


def nodes_of(types: list[NodeType]) -> list[tuple[NodeType, Node]]:
    """Rule "chunks on nodes": the nodes in order, each with its type and its resources."""
    return [(each, {"cores": each.cores, **dict(each.resources)}) for each in types for _ in range(each.nodes)]


def idle(system: System) -> list[Node]:
    """Return the resources of all nodes while no job runs."""
    return [{**there, "no job": 1, "not alone": 1} for _, there in nodes_of(all_types(system))]


def copies(request: Request | None, cores: int) -> list[tuple[Node, frozenset[str], bool]]:
    """Rule "chunks on nodes": for each copy in turn its resources, its features, and whether it is scattered."""
    if request is None:
        return [({"cores": 1}, frozenset(), False)] * cores
    found = []
    for chunk in request:
        takes = {what: amount for what, amount in [("cores", chunk.cores), *chunk.resources] if amount}
        found += [(takes, chunk.features, chunk.scattered)] * chunk.count
    return found


def first_nodes(
    system: System,
    queue: int,
    request: Request | None,
    cores: int,
    left: list[Node],
    named: dict[int, int] | None = None,
) -> list[int | None]:
    """Rule "chunks on nodes": the node of each copy, given the resources `left` of each node; None without a node.

    Rule "named nodes": `named` (node -> cores of the job there) restricts the nodes.
    """
    named = dict(named or {})
    given = bool(named)
    left = [dict(node) for node in left]
    found: list[int | None] = []
    for takes, features, scattered in copies(request, cores):
        there = None
        for number, (each, _) in enumerate(nodes_of(all_types(system))):
            usable = may_use(system, queue, each) and has_features(each.features, features)
            usable = usable and not (scattered and number in found)
            if number not in found:  # rule "exclusive nodes": whose is it?
                usable = usable and left[number].get("no job" if has_alone(each, request) else "not alone", 0) == 1
            usable = usable and (not given or named.get(number, -1) >= takes.get("cores", 0))
            if usable and all(left[number].get(what, 0) >= amount for what, amount in takes.items()):
                there = number
                break
        if there is not None:
            for what, amount in takes.items():
                left[there][what] -= amount
            if given:
                named[there] -= takes.get("cores", 0)
        found.append(there)
    return found


def kinds(request: Request | None, cores: int) -> list[Chunk]:
    return [Chunk(cores, 1)] if request is None else list(request)


def room(
    system: System, queue: int, request: Request | None, chunk: Chunk, node: Node, number: int, has: list[int | None]
) -> int:
    """Rule "rows of nodes": how many copies of a chunk a node can take; `has` are the job's nodes so far."""
    each, node = nodes_of(all_types(system))[number][0], dict(node)
    if not (may_use(system, queue, each) and has_features(each.features, chunk.features)):
        return 0
    if number not in has and node.get("no job" if has_alone(each, request) else "not alone", 0) != 1:
        return 0
    if chunk.scattered and number in has:
        return 0
    takes, found = of_one(chunk), 0
    while all(node.get(what, 0) >= amount for what, amount in takes.items()):
        node = {what: amount - takes.get(what, 0) for what, amount in node.items()}
        found += 1
        if chunk.scattered:
            break
    return found


def of_one(chunk: Chunk) -> Node:
    """Return the resources of one copy of a chunk."""
    return {what: amount for what, amount in [("cores", chunk.cores), *chunk.resources] if amount}


def weights(system: System, request: Request | None, chunk: Chunk, left: list[Node]) -> list[tuple[int, int]]:
    """Rule "weight of nodes": the weight of each node for a chunk, given the resources `left` of each node."""
    types = [each for each, _ in nodes_of(all_types(system))]
    most = dict(chunk.resources).get("gpus", 0) * (1 if chunk.scattered else chunk.count)
    if most and any(each.exclusive for each in request or ()):
        most = 255
    gpus = [min(node.get("gpus", 0), most, 255) for node in left]
    return [(each.weight, -having) for each, having in zip(types, gpus, strict=True)]


def best_nodes(system: System, queue: int, request: Request | None, cores: int, left: list[Node]) -> list[int | None]:
    """Rule "rows of nodes": the node of each copy, given the resources `left` of each node; None without a node."""
    left = [dict(node) for node in left]
    found: list[int | None] = []
    for chunk in kinds(request, cores):
        weight = weights(system, request, chunk, left)
        rooms = [room(system, queue, request, chunk, node, number, found) for number, node in enumerate(left)]
        need = chunk.count
        while need and any(rooms):
            rows: list[list[int]] = [[]]
            for number, copies_here in enumerate(rooms):
                if rows[-1] and weight[number] != weight[rows[-1][-1]]:
                    rows.append([])
                if copies_here:
                    rows[-1].append(number)
                elif rows[-1]:
                    rows.append([])
            more = dict(chunk.resources).keys()
            by_copies = bool(more - {"memory"}) or (not chunk.scattered and (chunk.cores == 1 or "memory" in more))
            size = [rooms[n] if by_copies else left[n].get("cores", 0) for n in range(len(left))]
            if more - {"memory"} and chunk.count == 1:
                size = [min(each, 1) for each in size]
            rows = [row for row in rows if row]
            least = min(weight[row[0]] for row in rows)
            row = best_row([row for row in rows if weight[row[0]] == least], rooms, size, need)
            alone = [size[number] for number in row if rooms[number] >= need]
            row = [n for n in row if rooms[n] >= need and size[n] == min(alone)][:1] if alone else row
            for number in row:
                here = min(need, rooms[number])
                found += [number] * here
                for what, amount in of_one(chunk).items():
                    left[number][what] -= here * amount
                need -= here
                rooms[number] = 0
        found += [None] * need
    return found


def best_row(rows: list[list[int]], rooms: list[int], size: list[int], need: int) -> list[int]:
    """Rule "best row": the row of nodes that `need` copies fill best."""
    best, best_size, best_has_all = [], -1, False
    for row in rows:
        of_row, has_all = sum(size[number] for number in row), sum(rooms[number] for number in row) >= need
        if of_row < best_size or not best_has_all if has_all else of_row > best_size:
            best, best_size, best_has_all = row, of_row, has_all
    return best


def busy_first(
    system: System, queue: int, request: Request | None, cores: int, left: list[Node], is_busy: list[bool]
) -> tuple[list[int | None], set[int]]:
    """Rule "plan of whole nodes": the planned node of each copy of a head job, and all nodes that it holds."""
    left = [dict(node) for node in left]
    found: list[int | None] = []
    more: set[int] = set()
    for chunk in kinds(request, cores):
        need, weight = chunk.count, weights(system, request, chunk, left)
        for least in sorted(set(weight)) if need else ():
            one_more = False
            for busy in (True, False):
                for number in [n for n in range(len(left)) if weight[n] == least and is_busy[n] == busy]:
                    here = room(system, queue, request, chunk, left[number], number, found)
                    if here and one_more:
                        more.add(number)
                        break
                    here = min(need, here)
                    found += [number] * here
                    for what, amount in of_one(chunk).items() if here else ():
                        left[number][what] -= here * amount
                    need -= here
                one_more = busy and need == 0
            if need == 0:
                break
        found += [None] * need
    return found, more | {number for number in found if number is not None}


def less(system: System, left: list[Node], request: Request | None, cores: int, on: list[int | None]) -> list[Node]:
    """Subtract from the nodes a job whose copies are `on` these."""
    found = [dict(node) for node in left]
    types = [each for each, _ in nodes_of(all_types(system))]
    for (takes, *_), number in zip(copies(request, cores), on, strict=True):
        if number is not None:
            for what, amount in takes.items():
                found[number][what] -= amount
            found[number]["no job"] = 0
            if has_alone(types[number], request):
                found[number]["not alone"] = 0
    return found


def can_run(system: System, queue: int, request: Request | None, cores: int) -> bool:
    """Rule "jobs without room": whether a job fits on the idle nodes of its queue."""
    if not system.places_chunks:
        return bool(places(system, queue, request, cores))
    here = [each.name for each in types_on(system, queue)]
    nodes = zip(nodes_of(all_types(system)), idle(system), strict=True)
    left = [node if each.name in here else {} for (each, _), node in nodes]
    return None not in find_nodes(system, queue, request, cores, left)


def find_nodes(system: System, queue: int, request: Request | None, cores: int, left: list[Node]) -> list[int | None]:
    """Rules "chunks on nodes" and "rows of nodes": the node of each copy, see `first_nodes`."""
    return (best_nodes if system.fits_best else first_nodes)(system, queue, request, cores, left)
