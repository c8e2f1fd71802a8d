"""The amounts that jobs take of nodes of several types, as totals of each resource of each type.

Where nodes are all alike, `NodeTypes` is None, so that numba leaves all of this out. Names of rules refer to
docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.compile.compiled import routine, step
from parsim.engine.resources.running import available


class NodeTypes(NamedTuple):
    """P partitions with D totals each, of each resource of each type of nodes; and the A places of jobs on them.

    A job has places on the nodes of its queue's partition (rule "partitions by type"), or of all the machine.
    """

    of: NDArray[np.int32]  # (n,): demand of each job
    first: NDArray[np.int64]  # first place of each demand in `amounts`
    amounts: NDArray[np.int64]  # (A, D)
    partition: NDArray[np.int64]  # (A,): of each place
    taken: NDArray[np.int64]  # (n,): the place of each running job
    idle: NDArray[np.int64]  # (P, D)
    then: NDArray[np.int64]  # (P, D): idle when the head job is to start
    left: NDArray[np.int64]  # (P, D): the rest of `then` beside the head job and the jobs started behind it
    returns: Any  # (n,): whether a job goes on only at the place that it had (rule "same place again"), or None


@step
def goes_back(returns, j):
    """Whether job j was preempted and goes on only where it was; `returns` is None if no job does."""
    if returns is None:
        return False
    return returns[j]


@step
def places_of(types, j):
    """Return the first place of job j, and the one after its last."""
    if goes_back(types.returns, j):
        return types.taken[j], types.taken[j] + 1
    return types.first[types.of[j]], types.first[types.of[j] + 1]


@step
def first_fitting(types, j, idle, left):
    """Return the first place of job j that fits in `idle` and in `left`, or -1."""
    first, end = places_of(types, j)
    for row in range(first, end):
        fits = True
        for d in range(idle.size):
            fits &= types.amounts[row, d] <= min(idle[d], left[d])
        if fits:
            return row
    return np.int64(-1)


@step
def take_nodes(types, j, p, past):
    """Take the first place of job j that fits on partition p; return whether one does (rule "start at a place").

    With `past` the job runs past the start of the list's head job.
    """
    if types is None:
        return True
    left = types.left[p]
    row = first_fitting(types, j, types.idle[p], left if past else types.idle[p])
    if row < 0:
        return False
    hold_nodes(types, j, p, row)
    if past:
        for d in range(left.size):
            left[d] -= types.amounts[row, d]
    return True


@step
def hold_nodes(types, j, p, row):
    """Take a place, a row of `amounts`, on partition p for job j."""
    types.taken[j] = row
    idle = types.idle[p]
    for d in range(idle.size):
        idle[d] -= types.amounts[row, d]


@step
def resume_nodes(types, j, p):
    """Take the place of job j, which runs when the simulation begins (rule "places of a state")."""
    if types is None:
        return
    row = first_fitting(types, j, types.idle[p], types.idle[p])
    first, _ = places_of(types, j)
    hold_nodes(types, j, p, row if row >= 0 else first)


@step
def leave_nodes(types, j, p):
    """Free the place of job j, which has ended, on partition p."""
    if types is None:
        return
    idle = types.idle[p]
    for d in range(idle.size):
        idle[d] += types.amounts[types.taken[j], d]


@step
def has_place(types, j, p, past):
    """Whether a place of job j fits on partition p now (rule "start at a place")."""
    if types is None:
        return True
    return first_fitting(types, j, types.idle[p], types.left[p] if past else types.idle[p]) >= 0


@step
def lend_nodes(types, j, p, past, sign):
    """Add the place of running job j to idle amounts, or undo that; `past`: it runs past the head job's start."""
    if types is None:
        return
    for d in range(types.idle.shape[1]):
        amount = sign * types.amounts[types.taken[j], d]
        types.idle[p, d] += amount
        if past:
            types.left[p, d] += amount


@step
def stop_on_types(types, j, p, past, returns):
    """Free the place of running job j, which is preempted; `returns`: it will go on only there."""
    if types is None:
        return
    lend_nodes(types, j, p, past, 1)
    types.returns[j] = returns


@routine
def plan_nodes(s, types, p, now):
    """Find the shadow time of list p's head job, and the amounts `left` by its place then (rule "planned place")."""
    if types is None:
        return
    partition, running, bits = s.partitions[p], s.running, s.settings.bits
    low = (np.int64(1) << bits) - 1
    j = partition.head_job
    then, left = types.then[p], types.left[p]
    for d in range(then.size):
        then[d] = types.idle[p, d]
    i, last = partition.first_running, partition.first_running + partition.running
    instant = now
    row = first_fitting(types, j, then, then)
    while row < 0 and i < last:
        instant = running.keys[i] >> bits
        while i < last and running.keys[i] >> bits == instant:
            of = types.taken[running.keys[i] & low]
            for d in range(then.size):
                then[d] += types.amounts[of, d]
            i += 1
        row = first_fitting(types, j, then, then)
    for d in range(left.size):
        left[d] = then[d] - types.amounts[row, d]
    partition.shadow = instant
    idle = available(running, partition.first_running, partition.running, partition.free, instant, bits)
    partition.extra = idle - s.jobs[j].cores
