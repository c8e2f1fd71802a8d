"""Where jobs may run on nodes of several types: their places, and these as the kernels take them (rule 58)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from parsim.kernels.node_types import NodeTypes
from parsim.node_types import CORES, Chunk, Demands, NodeType, Request
from parsim.system import System
from parsim.workload import Workload


def resources_of(types: Sequence[NodeType]) -> tuple[str, ...]:
    """Name what nodes of these types have, cores first."""
    return (CORES, *sorted({name for each in types for name in dict(each.resources)}))


def places(
    types: Sequence[NodeType], may_use: Sequence[bool], request: Request | None, cores: int
) -> NDArray[np.int64]:
    """Return what a job may take of the nodes, in the order in which it is tried (rule 58).

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
    ndarray(int64), shape (places, types, resources)
        Resources as `resources_of` has them; no place where the job could never start.
    """
    names = resources_of(types)
    there = np.array([[each.nodes * each.amount(name) for name in names] for each in types], dtype=np.int64)
    usable = [t for t, may in enumerate(may_use) if may]
    found = [taken for t in usable if (taken := _on_one(types, there, names, t, request, cores)) is not None]
    if not found:
        spread = _spread(types, there, names, usable, request, cores)
        found = [] if spread is None else [spread]
    return np.array(found, dtype=np.int64).reshape(-1, *there.shape)


def _on_one(
    types: Sequence[NodeType],
    there: NDArray[np.int64],
    names: Sequence[str],
    t: int,
    request: Request | None,
    cores: int,
) -> NDArray[np.int64] | None:
    """Return what a job takes where all of it is on nodes of one type, None if it does not fit there."""
    taken = np.zeros_like(there)
    if request is None:
        taken[t, 0] = cores
    for chunk in request or ():
        if not _fits(types[t], chunk):
            return None
        taken[t] += [chunk.count * chunk.amount(name) for name in names]
    return taken if (taken[t] <= there[t]).all() else None


def _spread(
    types: Sequence[NodeType],
    there: NDArray[np.int64],
    names: Sequence[str],
    usable: Sequence[int],
    request: Request | None,
    cores: int,
) -> NDArray[np.int64] | None:
    """Return what a job takes of nodes of several types, None if it does not fit there."""
    taken = np.zeros_like(there)
    if request is None:
        for t in usable:
            taken[t, 0] = min(there[t, 0], cores - taken[:, 0].sum())
        return taken if taken[:, 0].sum() == cores else None
    for chunk in request:
        of_chunk = np.array([chunk.count * chunk.amount(name) for name in names], dtype=np.int64)
        on = [t for t in usable if _fits(types[t], chunk) and (taken[t] + of_chunk <= there[t]).all()]
        if not on:
            return None
        taken[on[0]] += of_chunk
    return taken


def _fits(of: NodeType, chunk: Chunk) -> bool:
    """Whether nodes of this type are what a chunk asks for, and as many of it as it asks for fit on idle ones."""
    return chunk.count <= of.nodes * copies_on(of, chunk)


def copies_on(of: NodeType, chunk: Chunk) -> int:
    """Return how many copies of a chunk fit on an idle node of a type, none where it has not the features."""
    wanted = [(CORES, chunk.cores), *dict(chunk.resources).items()]
    return min(of.amount(name) // amount for name, amount in wanted if amount) * (chunk.features <= of.features)


def demands(system: System, types: NodeTypes, place: NDArray[np.int64]) -> Demands:
    """Return what jobs may take by type and resource, and took, of what is laid out for the kernels."""
    names = resources_of(system.node_types)
    there = np.array([[each.nodes * each.amount(name) for name in names] for each in system.node_types], dtype=np.int64)
    taken = types.first[types.of] + place
    return Demands(types.of, taken, types.first, types.amounts.reshape(-1, *there.shape), names, there)


def distinct_requests(
    system: System, workload: Workload
) -> tuple[NDArray[np.int32], list[tuple[Sequence[bool], Request | None, int]]]:
    """Give numbers to what jobs ask for, one to all that ask for the same of the same nodes.

    Returns
    -------
    of : ndarray(int32), shape (n,)
        Number of each job.
    distinct : list of tuple
        By number: which types of nodes the queue may use, the request, None for cores alone, and the cores of the job.
    """
    types = system.node_types
    allowed = [
        tuple(queue.node_types is None or each.name in queue.node_types for each in types) for queue in system.queues
    ]
    kinds = sorted(set(allowed))
    kind = np.array([kinds.index(each) for each in allowed])[np.minimum(workload.queue, len(allowed) - 1)]
    number = np.where(workload.request < 0, -workload.cores, workload.request)
    distinct, of = np.unique(np.stack((kind, number), axis=1), axis=0, return_inverse=True)
    found = [(kinds[k], None if which < 0 else workload.requests[which], -which) for k, which in distinct.tolist()]
    return of.reshape(-1).astype(np.int32), found


def lay_out(system: System, workload: Workload) -> NodeTypes:
    """Lay out what each job may take: computed once for those that ask for the same in queues of the same nodes."""
    types = system.node_types
    of, distinct = distinct_requests(system, workload)
    tables = [places(types, *each) for each in distinct]
    names = resources_of(types)
    there = np.array([each.nodes * each.amount(name) for each in types for name in names], dtype=np.int64)
    amounts = np.concatenate(tables) if tables else np.empty((0, len(types), len(names)), dtype=np.int64)
    return NodeTypes(
        of=of,
        first=np.cumsum([0, *map(len, tables)]),
        amounts=amounts.reshape(-1, there.size),
        taken=np.zeros(len(workload), dtype=np.int64),
        idle=there,
        then=np.empty_like(there),
        left=np.empty_like(there),
    )


def untaken(types: NodeTypes) -> NodeTypes:
    """Return a copy that a simulation may change."""
    return types._replace(
        taken=np.zeros_like(types.taken),
        idle=types.idle.copy(),
        then=np.empty_like(types.then),
        left=np.empty_like(types.left),
    )
