"""What jobs take of nodes of several types, as totals of each resource of each type.

Where nodes are all alike the place of `NodeTypes` is None, for which numba leaves all of this out. Numbers ("rule 59")
refer to docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.kernels.compiled import routine, step
from parsim.kernels.running import available


class NodeTypes(NamedTuple):
    """A machine with nodes of several types, of D totals: of each resource of each type."""

    of: NDArray[np.int32]  # (n,): what each job asks for
    first: NDArray[np.int64]  # where the places of each thing asked for begin in `amounts`
    amounts: NDArray[np.int64]  # (A, D)
    taken: NDArray[np.int64]  # (n,): the place of each running job
    idle: NDArray[np.int64]  # (D,)
    then: NDArray[np.int64]  # (D,): idle when the head job is to start
    left: NDArray[np.int64]  # (D,): of that, what the head job and those started behind it leave


@step
def first_fitting(types, j, idle, left):
    """Return the first place of job j that both have, or -1."""
    for row in range(types.first[types.of[j]], types.first[types.of[j] + 1]):
        fits = True
        for d in range(idle.size):
            fits &= types.amounts[row, d] <= min(idle[d], left[d])
        if fits:
            return row
    return np.int64(-1)


@step
def take_nodes(types, j, past):
    """Let job j take what it needs of the nodes, if it may; with `past` it runs past the head job's start (rule 59)."""
    if types is None:
        return True
    row = first_fitting(types, j, types.idle, types.left if past else types.idle)
    if row < 0:
        return False
    hold_nodes(types, j, row)
    if past:
        for d in range(types.left.size):
            types.left[d] -= types.amounts[row, d]
    return True


@step
def hold_nodes(types, j, row):
    """Let job j have one of its places."""
    types.taken[j] = row
    for d in range(types.idle.size):
        types.idle[d] -= types.amounts[row, d]


@step
def resume_nodes(types, j):
    """Let job j have what it runs on when the simulation begins (rule 61)."""
    if types is None:
        return
    row = first_fitting(types, j, types.idle, types.idle)
    hold_nodes(types, j, row if row >= 0 else types.first[types.of[j]])


@step
def leave_nodes(types, j):
    """Job j has ended."""
    if types is None:
        return
    for d in range(types.idle.size):
        types.idle[d] += types.amounts[types.taken[j], d]


@routine
def plan_nodes(s, types, p, now):
    """Find when the head job of list p has its cores and all else, and what it leaves to others then (rule 60)."""
    if types is None:
        return
    partition, running, bits = s.partitions[p], s.running, s.settings.bits
    low = (np.int64(1) << bits) - 1
    j = partition.head_job
    for d in range(types.then.size):
        types.then[d] = types.idle[d]
    i, last = partition.first_running, partition.first_running + partition.running
    instant = now
    row = first_fitting(types, j, types.then, types.then)
    while row < 0 and i < last:
        instant = running.keys[i] >> bits
        while i < last and running.keys[i] >> bits == instant:
            of = types.taken[running.keys[i] & low]
            for d in range(types.then.size):
                types.then[d] += types.amounts[of, d]
            i += 1
        row = first_fitting(types, j, types.then, types.then)
    for d in range(types.left.size):
        types.left[d] = types.then[d] - types.amounts[row, d]
    partition.shadow = instant
    idle = available(running, partition.first_running, partition.running, partition.free, instant, bits)
    partition.extra = idle - s.jobs[j].cores
