"""The places of jobs on nodes of several types, and their layout for the kernels (rule "places of a job")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.resources.node_types import NodeTypes
from parsim.model.node_types import (
    CORES,
    Chunk,
    Demands,
    NodeType,
    Request,
    exclusively,
    has_features,
    is_cores_alone,
    is_exclusive,
)
from parsim.model.system import System
from parsim.model.workload import Workload


def resources_of(types: Sequence[NodeType]) -> tuple[str, ...]:
    """Return the names of the resources of these types, cores first."""
    return (CORES, *sorted({name for each in types for name in dict(each.resources)}))


def places(
    types: Sequence[NodeType], may_use: Sequence[bool], request: Request | None, cores: int
) -> NDArray[np.int64]:
    """Return the places of a job: amounts that it may take, in the order in which they are tried.

    Rule "places of a job".

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
        Resources in the order of `resources_of`; no place if the job could never start.
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
    """Return the amounts that a job takes wholly on nodes of type t, None if it does not fit there."""
    taken = np.zeros_like(there)
    if request is None:
        taken[t, 0] = cores
    alone = types[t].exclusive or is_exclusive(request)
    if alone or any(chunk.scattered for chunk in request or ()):
        nodes = idle_nodes_for(types[t : t + 1], (True,), request, cores)
        if nodes is None:
            return None
        if alone:
            taken[t] = there[t] // types[t].nodes * nodes[0]
            return taken
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
    """Return the amounts that a job takes spread over types, None if it does not fit there."""
    taken = np.zeros_like(there)
    alone = is_exclusive(request)
    if request is None or is_cores_alone(request):
        left = cores if request is None else request[0].count
        for t in usable:
            part = min(left, int(there[t, 0]))
            taken[t, 0] = part
            if part and (alone or types[t].exclusive):
                taken[t] = there[t] // types[t].nodes * -(-part // types[t].cores)
            left -= part
        return None if left else taken
    for chunk in request:
        for t in usable:
            if not _fits(types[t], chunk):
                continue
            takes = np.array([chunk.count * chunk.amount(name) for name in names], dtype=np.int64)
            if alone or types[t].exclusive:
                takes = there[t] // types[t].nodes * -(-chunk.count // copies_on(types[t], chunk))
            if (taken[t] + takes <= there[t]).all():
                taken[t] += takes
                break
        else:
            return None
    return taken


def _fits(of: NodeType, chunk: Chunk) -> bool:
    """Whether idle nodes of a type hold all copies of a chunk."""
    return chunk.count <= of.nodes * copies_on(of, chunk)


def copies_on(of: NodeType, chunk: Chunk) -> int:
    """Return how many copies of a chunk fit on an idle node of a type, 1 if scattered; 0 if it lacks the features."""
    wanted = [(CORES, chunk.cores), *dict(chunk.resources).items()]
    copies = min(of.amount(name) // amount for name, amount in wanted if amount) * has_features(of, chunk)
    return min(copies, 1) if chunk.scattered else copies


def chunks_of(request: Request | None, cores: int) -> Request:
    """Return the request; for None, `cores` copies of a chunk of one core (rule "chunks on nodes")."""
    return (Chunk(cores, 1),) if request is None else request


def idle_nodes_for(
    types: Sequence[NodeType], may_use: Sequence[bool], request: Request | None, cores: int
) -> tuple[int, ...] | None:
    """Return how many nodes a job gets if all are idle, each copy on the first with room (rule "chunks on nodes").

    Parameters
    ----------
    types, may_use, request, cores
        As `places` has them.

    Returns
    -------
    tuple of int or None
        Number of nodes of each type; None if they do not hold the job.
    """
    names = resources_of(types)
    alike = [  # stretches of nodes in the same state: type, number of nodes, what is left of each, whether it is idle
        (t, each.nodes, [each.amount(name) for name in names], True)
        for t, (each, may) in enumerate(zip(types, may_use, strict=True))
        if may
    ]
    for chunk in chunks_of(request, cores):
        amounts = [chunk.amount(name) for name in names]
        need, after = chunk.count, []
        for t, nodes, left, is_idle in alike:
            copies = 0
            if need and copies_on(types[t], chunk) and (is_idle or not chunk.scattered):
                copies = min(there // amount for there, amount in zip(left, amounts, strict=True) if amount)
                copies = min(copies, 1) if chunk.scattered else copies
            if not copies:
                after.append((t, nodes, left, is_idle))
                continue
            full = min(nodes, need // copies)
            some = min(copies, need - full * copies) if full < nodes else 0
            for count, on_each in ((full, copies), (1 if some else 0, some), (nodes - full - (some > 0), 0)):
                rest = [there - on_each * amount for there, amount in zip(left, amounts, strict=True)]
                after += [(t, count, rest, is_idle and not on_each)] if count else []
            need -= full * copies + some
        if need:
            return None
        alike = after
    return tuple(sum(nodes for of, nodes, _, is_idle in alike if of == t and not is_idle) for t in range(len(types)))


def demands(system: System, types: NodeTypes, place: NDArray[np.int64]) -> Demands:
    """Return the places of the jobs, and the one that each took: number `place` among those of its demand."""
    names = resources_of(system.node_types)
    there = np.array([[each.nodes * each.amount(name) for name in names] for each in system.node_types], dtype=np.int64)
    taken = types.first[types.of] + place
    amounts = types.amounts.reshape(-1, *there.shape)
    found = Demands(types.of, taken, types.first, amounts, names, there)
    if system.is_whole:
        return found
    return found._replace(partition=types.partition, owned=types.idle.reshape(-1, *there.shape))


class Demand(NamedTuple):
    """A distinct demand: what some jobs request, and the nodes that they may use.

    Attributes
    ----------
    partition : int
        Of their queue; 0 if the whole machine is one partition.
    may_use : tuple of bool
        Whether their queue may use nodes of each type.
    request : Request or None
        None for cores alone.
    cores : int
        Cores of such a job; any number if there is a request.
    """

    partition: int
    may_use: tuple[bool, ...]
    request: Request | None
    cores: int


def distinct_demands(system: System, workload: Workload) -> tuple[NDArray[np.int32], list[Demand]]:
    """Return the demand of each job, and the distinct demands.

    Returns
    -------
    of : ndarray(int32), shape (n,)
        Index into `distinct`.
    distinct : list of Demand
    """
    types = system.node_types
    allowed = [
        (
            0 if system.is_whole else q,
            tuple(queue.node_types is None or each.name in queue.node_types for each in types),
            queue.exclusive,
        )
        for q, queue in enumerate(system.queues)
    ]
    kinds = sorted(set(allowed))
    kind = np.array([kinds.index(each) for each in allowed])[np.minimum(workload.queue, len(allowed) - 1)]
    number = np.where(workload.request < 0, -workload.cores, workload.request)
    distinct, of = np.unique(np.stack((kind, number), axis=1), axis=0, return_inverse=True)
    found = []
    for k, which in distinct.tolist():
        partition, may_use, alone = kinds[k]
        request = None if which < 0 else workload.requests[which]
        found.append(Demand(partition, may_use, exclusively(request, -which) if alone else request, -which))
    return of.reshape(-1).astype(np.int32), found


def lay_out(system: System, workload: Workload) -> NodeTypes:
    """Return the places of all jobs for the kernels; those of each distinct demand are computed once."""
    owned, names = system.owned_types, resources_of(system.node_types)
    of, distinct = distinct_demands(system, workload)
    tables = [places(owned[each.partition], *each[1:]) for each in distinct]
    there = np.array(
        [[each.nodes * each.amount(name) for each in types for name in names] for types in owned], dtype=np.int64
    )
    return NodeTypes(
        of=of,
        first=np.cumsum([0, *map(len, tables)]),
        amounts=np.concatenate([np.empty((0, len(system.node_types), len(names)), dtype=np.int64), *tables]).reshape(
            -1, there.shape[1]
        ),
        taken=np.zeros(len(workload), dtype=np.int64),
        partition=np.repeat([each.partition for each in distinct], [*map(len, tables)]),
        idle=there,
        then=np.empty_like(there),
        left=np.empty_like(there),
        returns=None,
    )


def untaken(types: NodeTypes, *, returns: bool = False) -> NodeTypes:
    """Return a copy that a simulation may change; with `returns` preempted jobs may go on where they were."""
    return types._replace(
        taken=np.zeros_like(types.taken),
        idle=types.idle.copy(),
        then=np.empty_like(types.then),
        left=np.empty_like(types.left),
        returns=np.zeros(types.taken.size, dtype=np.bool_) if returns else None,
    )
