"""From types of nodes and what jobs ask for to the arrays of the kernels."""

from __future__ import annotations

import numpy as np

from parsim.kernels.node_types import NodeTypes
from parsim.node_types import alternatives, resources_of
from parsim.system import System
from parsim.workload import Workload


def lay_out(system: System, workload: Workload) -> NodeTypes:
    """Lay out what each job may take: computed once for those that ask for the same in queues of the same nodes."""
    types = system.node_types
    allowed = [
        tuple(queue.node_types is None or each.name in queue.node_types for each in types) for queue in system.queues
    ]
    kinds = sorted(set(allowed))
    kind = np.array([kinds.index(each) for each in allowed])[np.minimum(workload.queue, len(allowed) - 1)]
    asked = np.where(workload.request < 0, -workload.cores, workload.request)
    distinct, of = np.unique(np.stack((kind, asked), axis=1), axis=0, return_inverse=True)
    tables = [
        alternatives(types, kinds[k], None if asks < 0 else workload.requests[asks], -asks)
        for k, asks in distinct.tolist()
    ]
    names = resources_of(types)
    there = np.array([each.nodes * each.amount(name) for each in types for name in names], dtype=np.int64)
    amounts = np.concatenate(tables) if tables else np.empty((0, len(types), len(names)), dtype=np.int64)
    return NodeTypes(
        of=of.reshape(-1).astype(np.int32),
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
