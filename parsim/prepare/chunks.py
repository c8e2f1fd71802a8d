"""Lays out nodes and chunks for the kernels that place jobs on nodes (rules "chunks on nodes" and "rows of nodes")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from parsim.engine.resources.chunks import ADJACENT, HEAVIER, NO_SHARE, ROW, SHARE, STRETCH, UNSHARED, Placing
from parsim.model.node_types import GPUS, MEMORY, Chunk, Demands, NodeType, Request, is_exclusive
from parsim.model.system import System
from parsim.model.workload import Workload
from parsim.prepare.node_types import (
    Demand,
    chunks_of,
    copies_on,
    distinct_demands,
    idle_nodes_for,
    places,
    resources_of,
)


def can_be_placed(
    types: Sequence[NodeType], may_use: Sequence[bool], request: Request | None, cores: int, *, best: bool = False
) -> bool:
    """Whether idle nodes hold a job: copies on the first nodes with room, or the `best` ones (rule "rows of nodes").

    For the other parameters see `parsim.prepare.node_types.idle_nodes_for`.
    """
    if best and len(request or ()) > 1:  # one kind has room if there is enough, on whatever nodes
        return fits_best_on_idle(types, may_use, chunks_of(request, cores))
    return idle_nodes_for(types, may_use, request, cores) is not None


def fits_best_on_idle(types: Sequence[NodeType], may_use: Sequence[bool], request: Request) -> bool:
    """Whether idle nodes hold a job whose copies go to the nodes that they fill best (rule "best row")."""
    names = resources_of(types)
    of = np.repeat(np.arange(len(types)), [each.nodes for each in types])
    left = np.array([[each.amount(name) for name in names] for each in types], dtype=np.int64)[of]
    weighs = np.array([HEAVIER * each.weight for each in types], dtype=np.int64)[of]
    unused = np.ones(of.size, dtype=np.bool_)
    for chunk in request:
        takes = np.array([chunk.amount(name) for name in names], dtype=np.int64)
        usable = np.array([may and copies_on(each, chunk) > 0 for each, may in zip(types, may_use, strict=True)])[of]
        if not usable.any():
            return False
        room = np.where(usable, (left[:, takes > 0] // takes[takes > 0]).min(axis=1), 0)
        room = np.where(unused, np.minimum(room, 1), 0) if chunk.scattered else room
        by_copies = _copies_that_count(chunk)
        size = np.minimum(room, by_copies) if by_copies else left[:, 0]
        missing = chunk.count
        weight = weighs
        if GPUS in names and (gpus := _gpus_that_count(chunk, alone=is_exclusive(request))):
            weight = weighs - np.minimum(left[:, names.index(GPUS)], gpus)
        for node, copies in _best_first(room, size.copy(), weight, chunk.count):
            left[node] -= copies * takes
            unused[node] = False
            missing -= copies
        if missing:
            return False
    return True


def _copies_that_count(chunk: Chunk) -> int:
    """Return the most copies of a chunk that count as the size of a node; 0 if its idle cores are the size."""
    more = dict(chunk.resources).keys()
    if more - {MEMORY} and chunk.count == 1:
        return 1
    by_copies = more - {MEMORY} or (not chunk.scattered and (chunk.cores == 1 or MEMORY in more))
    return int(UNSHARED) if by_copies else 0


def _gpus_that_count(chunk: Chunk, *, alone: bool) -> int:
    """Return the most GPUs of a node that lower its weight for a chunk (rule "weight of nodes")."""
    times = HEAVIER if alone else 0 if chunk.scattered else chunk.count
    return min(times * chunk.amount(GPUS), HEAVIER - 1)


def _best_first(
    room: NDArray[np.int64], size: NDArray[np.int64], weight: NDArray[np.int64], need: int
) -> Iterator[tuple[int, int]]:
    """Yield (node, copies) for `need` copies: on the row of nodes that they fill best, then others ("best row")."""
    having = np.flatnonzero(room)
    ends = (np.diff(having) > 1) | (np.diff(weight[having]) != 0)
    rows = [row for row in np.split(having, 1 + np.flatnonzero(ends)) if row.size]
    while need and rows:
        best = 0
        for k, row in enumerate(rows):
            heavier = weight[row[0]] - weight[rows[best][0]]
            more = size[row].sum() - size[rows[best]].sum()
            if heavier:
                best = k if heavier < 0 else best
            elif room[row].sum() < need:
                best = k if more > 0 else best
            elif room[rows[best]].sum() < need or more < 0:
                best = k
        row = rows.pop(best)
        alone = row[room[row] >= need]
        row = alone[[int(np.argmin(size[alone]))]] if alone.size else row
        for node in row.tolist():
            copies = min(int(room[node]), need)
            need -= copies
            if copies:
                yield node, copies


def fits(system: System, types: Sequence[NodeType], demand: Demand) -> bool:
    """Whether idle nodes of these types hold the job that `demand` describes, by totals or node by node."""
    if system.places_chunks:
        return can_be_placed(types, *demand[1:], best=system.fits_best)
    return len(places(types, *demand[1:])) > 0


def has_place(system: System, workload: Workload) -> NDArray[np.bool_]:
    """Return whether the idle nodes of its queue hold each job; shape (n,)."""
    of, distinct = distinct_demands(system, workload)
    owned = system.owned_types
    found = np.array([fits(system, owned[each.partition], each) for each in distinct], dtype=np.bool_)
    return np.asarray(found[of])


def lay_out(system: System, workload: Workload) -> Placing:
    """Return the nodes, and the chunks of each job; a job that could never be placed has none."""
    owned, names = system.owned_types, resources_of(system.node_types)
    types = [each for its in owned for each in its]
    nodes = sum(each.nodes for each in types)
    of, distinct = distinct_demands(system, workload)
    chunks = [chunks_of(*each[2:]) if fits(system, owned[each.partition], each) else () for each in distinct]
    kinds = [
        (
            [may and p == wanted.partition for p in range(len(owned)) for may in wanted.may_use],
            chunk,
            is_exclusive(each),
        )
        for wanted, each in zip(distinct, chunks, strict=True)
        for chunk in each
    ]
    may_have = [
        [may and copies_on(each, chunk) > 0 for each, may in zip(types, its, strict=True)] for its, chunk, _ in kinds
    ]
    alone = [[of_job or each.exclusive for each in types] for *_, of_job in kinds]
    some_alone = np.any(alone) or any(chunk.scattered for _, chunk, _ in kinds)
    type_of = np.repeat(np.arange(len(types)), [each.nodes for each in types]).astype(np.int32)
    in_all = np.array([[each.nodes * each.amount(name) for each in types] for name in names], dtype=np.int64)
    idle = np.array([[each.amount(name) for each in types] for name in names], dtype=np.int64)
    if some_alone:
        idle = np.vstack((idle, np.full(len(types), UNSHARED, dtype=np.int64)))
    weight = np.array([HEAVIER * each.weight for each in types], dtype=np.int64)
    weight = weight[type_of if system.fits_best else type_of[:0]]
    rows = _rows(types)
    first = np.cumsum([0, *map(len, chunks)])
    begin = np.cumsum([0, *np.diff(first)[of].tolist()])
    return Placing(
        of=of.copy(),
        first=first,
        count=np.array([chunk.count for _, chunk, _ in kinds], dtype=np.int64),
        amounts=np.array([chunk.amount(name) for _, chunk, _ in kinds for name in names], dtype=np.int64).reshape(
            -1, len(names)
        ),
        may_use=np.array(may_have, dtype=np.bool_).reshape(-1, len(types)),
        exclusive=np.array(alone if some_alone else [], dtype=np.bool_).reshape(-1, len(types)),
        scattered=np.array([chunk.scattered for _, chunk, _ in kinds], dtype=np.bool_),
        nodes_from=np.cumsum([0, *(sum(each.nodes for each in its) for its in owned)]),
        rows=rows,
        type=type_of,
        row=np.repeat(np.arange(rows.size), rows["end"] - rows["begin"]).astype(np.int32),
        idle=idle[:, type_of],
        most=idle[:, rows["type"]],
        idle_in_all=in_all,
        then=np.empty((len(idle), nodes), dtype=np.int64),
        then_in_all=np.empty_like(in_all),
        left=np.empty((len(idle), nodes), dtype=np.int64),
        left_in_all=np.empty_like(in_all),
        found=np.empty(len(kinds), dtype=np.int64),
        node=np.full(len(workload), -1, dtype=np.int64),
        begin=begin[:-1],
        on_types=np.zeros((begin[-1], len(types)), dtype=np.int64),
        exclusive_nodes=np.zeros((len(workload) if some_alone else 0, len(types)), dtype=np.int64),
        turn=np.zeros(1, dtype=np.int64),
        turn_of=np.full(nodes, -1, dtype=np.int64),
        shares=np.zeros(_most_shares(chunks, of, nodes, system.cores, _suspended(system, workload)), dtype=SHARE),
        of_job=np.full(len(workload), NO_SHARE, dtype=np.int32),
        unused=np.zeros(1, dtype=np.int64),
        changes=np.zeros(1, dtype=np.int64),
        failed=np.full((2, len(chunks)), -1, dtype=np.int64),
        in_service=None,
        returns=None,
        named=np.empty((0, 3), dtype=np.int64),
        room=np.zeros(nodes if system.fits_best else 0, dtype=np.int64),
        size=np.zeros(nodes if system.fits_best else 0, dtype=np.int64),
        adjacent=np.zeros(nodes if system.fits_best else 0, dtype=ADJACENT),
        fits=np.zeros(STRETCH, dtype=np.bool_),
        fitting=np.zeros(STRETCH + 1, dtype=np.int64),
        by_copies=np.array([_copies_that_count(chunk) for _, chunk, _ in kinds], dtype=np.int64),
        may_take=np.ones(nodes if system.fits_best else 0, dtype=np.bool_),
        weight=weight,
        gpus=np.array(  # a kind with GPUs has no place where there are none
            [
                (names.index(GPUS) if GPUS in names else 0, _gpus_that_count(chunk, alone=its))
                for _, chunk, its in kinds
            ],
            dtype=np.int64,
        ).reshape(-1, 2),
    )


def _rows(types: Sequence[NodeType]) -> NDArray[np.void]:
    """Divide the nodes of each type into rows of at most STRETCH."""
    found, first = [], 0
    for t, each in enumerate(types):
        last = first + each.nodes
        found += [(begin, min(begin + STRETCH, last), t) for begin in range(first, last, STRETCH)]
        first = last
    return np.array(found, dtype=ROW)


def _suspended(system: System, workload: Workload) -> NDArray[np.bool_]:
    """Whether jobs may be suspended, and keep their shares meanwhile; shape (n,)."""
    may = np.array([system.has_tiers and queue.preempted == "suspend" for queue in system.queues])
    found: NDArray[np.bool_] = may[np.minimum(workload.queue, may.size - 1)]
    return found


def _most_shares(
    chunks: Sequence[Request], of: NDArray[np.int32], nodes: int, cores: int, suspended: NDArray[np.bool_]
) -> int:
    """Return the number of shares to make room for, one of which stays free: a share with cores takes at least one.

    While jobs to preempt are searched, the shares of one job more are in use.
    """
    at_most = np.array([sum(min(chunk.count, nodes) for chunk in each) for each in chunks], dtype=np.int64)
    without = max((sum(min(chunk.count, nodes) for chunk in each if not chunk.cores) for each in chunks), default=0)
    at_most = at_most[of]
    run = cores + (min(of.size, cores) + 1) * without + at_most.max(initial=0)
    return 1 + int(min(at_most.sum(), run + at_most[suspended].sum()))


def unplaced(placing: Placing, named: NDArray[np.int64], *, windows: bool = False, returns: bool = False) -> Placing:
    """Return a copy that a simulation may change.

    Parameters
    ----------
    placing : Placing
    named : ndarray(int64), shape (k, 3)
        Known nodes of the jobs that run at the begin: job, node, cores; ascending.
    windows : bool
        Whether there are windows.
    returns : bool
        Whether jobs may be preempted, and go on where they were.
    """
    copies = {name: column.copy() for name, column in placing._asdict().items() if column is not None}
    copies["shares"]["next"] = np.arange(1, placing.shares.size + 1)
    copies["named"] = named.copy()
    if windows:
        copies["in_service"] = np.ones(placing.type.size, dtype=np.bool_)
    if returns:
        copies["returns"] = np.zeros(placing.of.size, dtype=np.bool_)
    return placing._replace(**copies)


def demands(system: System, placing: Placing, partition: NDArray[np.int32]) -> Demands:
    """Return the distinct amounts that jobs of each demand took, as its places; `partition` is that of each job."""
    by_type = (-1, placing.nodes_from.size - 1, len(system.node_types))
    of = placing.of.astype(np.int64)
    kind = np.arange(len(placing.on_types)) + np.repeat(placing.first[of] - placing.begin, np.diff(placing.first)[of])
    shared = ~placing.exclusive[kind] if placing.exclusive.size else np.ones_like(placing.on_types, dtype=np.bool_)
    of_kinds = (placing.on_types * shared).reshape(by_type).sum(axis=1)[:, :, np.newaxis] * placing.amounts[
        kind, np.newaxis, :
    ]
    taken = np.add.reduceat(of_kinds, placing.begin)  # every job has a kind
    names = resources_of(system.node_types)
    node = np.array([[each.amount(name) for name in names] for each in system.node_types], dtype=np.int64)
    if placing.exclusive.size:
        taken += placing.exclusive_nodes.reshape(by_type).sum(axis=1)[:, :, np.newaxis] * node
    weights = np.random.default_rng(0).integers(1, 2**62, taken.shape[1:], dtype=np.uint64)
    digest = (taken.astype(np.uint64) * weights).sum(axis=(1, 2))
    order = np.lexsort((digest, of))
    differs = np.ones(of.size, dtype=np.bool_)
    differs[1:] = (np.diff(of[order]) != 0) | (digest[order][1:] != digest[order][:-1])
    which = np.empty(of.size, dtype=np.int64)
    which[order] = np.cumsum(differs) - 1
    job, there = order[differs], node * np.array([[each.nodes] for each in system.node_types], dtype=np.int64)
    first = np.searchsorted(of[job], np.arange(placing.first.size))
    found = Demands(placing.of, which, first, taken[job], names, there)
    if system.is_whole:
        return found
    counts = np.array([[[each.nodes] for each in types] for types in system.owned_types], dtype=np.int64)
    return found._replace(partition=partition[job].astype(np.int64), owned=node * counts)
