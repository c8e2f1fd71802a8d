"""Chunks placed on particular nodes, as the kernels take them (rules 62 to 67)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from parsim.kernels.placing import NO_SHARE, ROW, SHARE, STRETCH, Placing
from parsim.node_types import Chunk, Demands, NodeType, Request
from parsim.places import copies_on, distinct_requests, places, resources_of
from parsim.system import System
from parsim.workload import Workload


def chunks_of(request: Request | None, cores: int) -> Request:
    """Return what a job asks for as chunks: a job of cores alone asks for as many of one core (rule 62)."""
    return (Chunk(cores, 1),) if request is None else request


def can_be_placed(types: Sequence[NodeType], may_use: Sequence[bool], request: Request | None, cores: int) -> bool:
    """Whether idle nodes hold a job, each copy on the first that has room for it (rule 62).

    Parameters
    ----------
    types : sequence of NodeType
    may_use : sequence of bool
        Whether the job's queue may use nodes of each type.
    request : Request or None
        None where the job asks for cores alone.
    cores : int
        Of the job.

    Returns
    -------
    bool
    """
    names = resources_of(types)
    alike = [  # nodes in a row of which as much is left: their type, how many there are, what is left of each
        (each, each.nodes, [each.amount(name) for name in names])
        for each, may in zip(types, may_use, strict=True)
        if may
    ]
    for chunk in chunks_of(request, cores):
        amounts = [chunk.amount(name) for name in names]
        need, after = chunk.count, []
        for each, nodes, left in alike:
            copies = 0
            if need and copies_on(each, chunk):
                copies = min(there // amount for there, amount in zip(left, amounts, strict=True) if amount)
            if not copies:
                after.append((each, nodes, left))
                continue
            full = min(nodes, need // copies)
            some = min(copies, need - full * copies) if full < nodes else 0
            for count, on_each in ((full, copies), (1 if some else 0, some), (nodes - full - (some > 0), 0)):
                taken = [there - on_each * amount for there, amount in zip(left, amounts, strict=True)]
                after += [(each, count, taken)] if count else []
            need -= full * copies + some
        if need:
            return False
        alike = after
    return True


def has_place(system: System, workload: Workload) -> NDArray[np.bool_]:
    """Return whether the nodes of its queue can hold each job; shape (n,)."""
    of, distinct = distinct_requests(system, workload)
    fits = can_be_placed if system.places_chunks else lambda *each: len(places(*each)) > 0
    found: NDArray[np.bool_] = np.array([fits(system.node_types, *each) for each in distinct], dtype=np.bool_)[of]
    return found


def lay_out(system: System, workload: Workload) -> Placing:
    """Lay out the nodes, and the chunks that each job asks for: none where it could never be placed."""
    types, names = system.node_types, resources_of(system.node_types)
    nodes = sum(each.nodes for each in types)
    of, distinct = distinct_requests(system, workload)
    chunks = [chunks_of(*each[1:]) if can_be_placed(types, *each) else () for each in distinct]
    kinds = [(may, chunk) for (may, *_), each in zip(distinct, chunks, strict=True) for chunk in each]
    may_have = [
        [may and copies_on(each, chunk) > 0 for each, may in zip(types, its, strict=True)] for its, chunk in kinds
    ]
    type_of = np.repeat(np.arange(len(types)), [each.nodes for each in types]).astype(np.int32)
    idle = np.array([[each.amount(name) for each in types] for name in names], dtype=np.int64)
    rows = _rows(types)
    first = np.cumsum([0, *map(len, chunks)])
    begin = np.cumsum([0, *(first[of + 1] - first[of]).tolist()])
    return Placing(
        of=of,
        first=first,
        count=np.array([chunk.count for _, chunk in kinds], dtype=np.int64),
        amounts=np.array([chunk.amount(name) for _, chunk in kinds for name in names], dtype=np.int64).reshape(
            -1, len(names)
        ),
        may_use=np.array(may_have, dtype=np.bool_).reshape(-1, len(types)),
        rows=rows,
        type=type_of,
        row=np.repeat(np.arange(rows.size), rows["end"] - rows["begin"]).astype(np.int32),
        idle=idle[:, type_of],
        most=idle[:, rows["type"]],
        idle_in_all=idle * np.array([each.nodes for each in types], dtype=np.int64),
        then=np.empty((len(names), nodes), dtype=np.int64),
        then_in_all=np.empty_like(idle),
        left=np.empty((len(names), nodes), dtype=np.int64),
        left_in_all=np.empty_like(idle),
        found=np.empty(len(kinds), dtype=np.int64),
        node=np.full(len(workload), -1, dtype=np.int64),
        begin=begin[:-1],
        on_types=np.zeros((begin[-1], len(types)), dtype=np.int64),
        shares=np.zeros(_most_shares(chunks, of, nodes, system.cores), dtype=SHARE),
        of_job=np.full(len(workload), NO_SHARE, dtype=np.int32),
        unused=np.zeros(1, dtype=np.int64),
        changes=np.zeros(1, dtype=np.int64),
        failed=np.full((2, len(distinct)), -1, dtype=np.int64),
    )


def _rows(types: Sequence[NodeType]) -> NDArray[np.void]:
    """Divide the nodes of each type into rows."""
    found, first = [], 0
    for t, each in enumerate(types):
        last = first + each.nodes
        found += [(begin, min(begin + STRETCH, last), t) for begin in range(first, last, STRETCH)]
        first = last
    return np.array(found, dtype=ROW)


def _most_shares(chunks: Sequence[Request], of: NDArray[np.int32], nodes: int, cores: int) -> int:
    """Return how many shares there are at most, with one that is not in use: those of cores take one at least."""
    at_most = np.array([sum(min(chunk.count, nodes) for chunk in each) for each in chunks], dtype=np.int64)
    without = max((sum(min(chunk.count, nodes) for chunk in each if not chunk.cores) for each in chunks), default=0)
    return 1 + int(min(at_most[of].sum(), cores + (min(of.size, cores) + 1) * without))


def unplaced(placing: Placing) -> Placing:
    """Return a copy that a simulation may change."""
    shares = np.zeros_like(placing.shares)
    shares["next"] = np.arange(1, shares.size + 1)
    kept = ("of", "first", "count", "amounts", "may_use", "rows", "type", "row", "begin", "shares")
    changed = [name for name in Placing._fields if name not in kept]
    return placing._replace(shares=shares, **{name: getattr(placing, name).copy() for name in changed})


def demands(system: System, placing: Placing) -> Demands:
    """Return what jobs took by type and resource: of those that want the same as far as it differs."""
    of = placing.of.astype(np.int64)
    kind = np.arange(len(placing.on_types)) + np.repeat(placing.first[of] - placing.begin, np.diff(placing.first)[of])
    of_kinds = placing.on_types[:, :, np.newaxis] * placing.amounts[kind, np.newaxis, :]
    taken = np.add.reduceat(of_kinds, placing.begin)  # every job has a kind
    weights = np.random.default_rng(0).integers(1, 2**62, taken.shape[1:], dtype=np.uint64)
    digest = (taken.astype(np.uint64) * weights).sum(axis=(1, 2))
    order = np.lexsort((digest, of))
    differs = np.ones(of.size, dtype=np.bool_)
    differs[1:] = (np.diff(of[order]) != 0) | (digest[order][1:] != digest[order][:-1])
    which = np.empty(of.size, dtype=np.int64)
    which[order] = np.cumsum(differs) - 1
    job, names = order[differs], resources_of(system.node_types)
    there = np.array([[each.nodes * each.amount(name) for name in names] for each in system.node_types], dtype=np.int64)
    first = np.searchsorted(of[job], np.arange(placing.first.size))
    return Demands(placing.of, which, first, taken[job], names, there)
