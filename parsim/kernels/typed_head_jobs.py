"""A visit in which each queue has a head job, and nodes stay idle for it, where nodes are of several types.

What is idle over time is a step function for each total: each resource of each type. Numbers ("rule 80") refer to
docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.kernels.compiled import routine, step
from parsim.kernels.node_types import hold_nodes, places_on
from parsim.kernels.order import LJF, before, refresh_values
from parsim.kernels.running import sift
from parsim.kernels.starts import is_held, occupy, start_job
from parsim.kernels.state import GROUP, NEVER, PASSED
from parsim.kernels.top_job import make_heap
from parsim.kernels.waiting import STARTED, drop_started, kind_of, note_held


class TypedHeadJobs(NamedTuple):
    """Q queues on nodes of T types with D totals, and S instants at which what is idle may change."""

    begin: NDArray[np.int64]  # (Q,): of the plan of each head job, `NEVER` without one
    end: NDArray[np.int64]  # (Q,)
    keeps: NDArray[np.int64]  # (Q, D): what stays idle for it now
    node: NDArray[np.int64]  # (T, D): what a node of each type has
    times: NDArray[np.int64]  # (S,)
    free: NDArray[np.int64]  # (S, D): idle from each of these on


@routine
def visit_types(s, types, heads, p, now):
    """Go once over list p and start the jobs that may start beside its head jobs (rules 3 and 80)."""
    settings, waiting, partition = s.settings, s.waiting, s.partitions[p]
    first, last = partition.first, partition.first + partition.waiting
    if not settings.track_held and partition.free <= 0:
        return
    kind = kind_of(s, p)
    is_sorted = kind <= LJF
    refresh_values(s, kind, first, last, now)
    order = (s, kind, now)
    size = idle_over_time(s, types, heads, p, now)
    for k in range(heads.begin.size):
        heads.begin[k] = NEVER
    m = np.int64(0)
    for i in range(first, last):
        waiting.group[i] &= GROUP
        s.candidates[m] = i
        m += 1
    make_heap(s.candidates, m, is_sorted, order)
    x, gone = np.int64(0), last
    while x < m and (settings.track_held or partition.free > 0):
        i = np.int64(s.candidates[x])
        j = np.int64(waiting.job[i])
        waiting.group[i] |= PASSED
        held = settings.limits and is_held(s, j)
        if settings.track_held:
            note_held(s, j, now, held)
        c, w = np.int64(waiting.cores[i]), np.int64(waiting.walltime[i])
        row = np.int64(-1)
        if not held and c <= partition.free:
            row = place_now(types, heads, size, j, p, now + w)
        if row >= 0:
            size = hold(types, heads, size, row, now, now + w)
            hold_nodes(types, j, p, row)
            occupy(s, j, p, c, now)
            s.placement[j] = p
            start_job(s, j, now)
            take_kept(types, heads, row, now + w)
            waiting.job[i] = STARTED
            gone = min(gone, i)
        elif (
            not held and heads.begin[s.jobs[j].queue] == NEVER and now - s.jobs[j].submit >= settings.reservation_delay
        ):
            size = plan(types, heads, size, j, p, np.int64(s.jobs[j].queue), w)
        if is_sorted:
            x += 1
        else:
            m -= 1
            s.candidates[0] = s.candidates[m]
            sift(s.candidates, 0, m, before, order)
    if gone < last:
        drop_started(s, p, gone)


@step
def idle_over_time(s, types, heads, p, now):
    """Write when everything is idle by the expected ends; return the number of instants."""
    partition, running, bits = s.partitions[p], s.running, s.settings.bits
    low = (np.int64(1) << bits) - 1
    heads.times[0] = now
    for d in range(types.amounts.shape[1]):
        heads.free[0, d] = types.idle[p, d]
    size = 1
    for k in range(partition.first_running, partition.first_running + partition.running):
        end, of = running.keys[k] >> bits, types.taken[running.keys[k] & low]
        if heads.times[size - 1] < end:
            size = cut(heads, size, end)
        for d in range(types.amounts.shape[1]):
            heads.free[size - 1, d] += types.amounts[of, d]
    return size


@step
def is_left(types, heads, row, k):
    """Whether all that a place takes is idle from instant k on."""
    left = True
    for d in range(types.amounts.shape[1]):
        left &= types.amounts[row, d] <= heads.free[k, d]
    return left


@step
def fits(types, heads, size, row, k, end):
    """Whether a place is left from instant k until `end`."""
    while k < size and heads.times[k] < end:
        if not is_left(types, heads, row, k):
            return False
        k += 1
    return True


@step
def takes_of(types, heads, row, t):
    """Whether a place takes something of a type."""
    takes = False
    for d in range(types.amounts.shape[1]):
        takes |= heads.node[t, d] > 0 and types.amounts[row, d] > 0
    return takes


@step
def place_now(types, heads, size, j, p, end):
    """Return the first place of job j that is left until `end`, that included, beside what stays idle; or -1."""
    first, last = places_on(types, j, p)
    for row in range(first, last):
        if fits(types, heads, size, row, 0, end + 1) and leaves_kept(types, heads, row, p, end):
            return row
    return np.int64(-1)


@step
def leaves_kept(types, heads, row, p, end):
    """Whether a job that would end then leaves, of the types that it takes of, what stays idle for head jobs."""
    for i in range(heads.begin.size):
        if heads.begin[i] > end:
            continue
        for t in range(heads.node.shape[0]):
            if not takes_of(types, heads, row, t):
                continue
            for d in range(heads.node.shape[1]):
                if heads.node[t, d] == 0:
                    continue
                kept = types.amounts[row, d]
                for k in range(heads.begin.size):
                    if heads.begin[k] <= heads.begin[i] < heads.end[k]:
                        kept += heads.keeps[k, d]
                if kept > types.idle[p, d]:
                    return False
    return True


@step
def take_kept(types, heads, row, end):
    """A job has started that ends then: of the types that it takes of nothing stays idle for later head jobs."""
    for k in range(heads.begin.size):
        if end < heads.begin[k] < NEVER:
            for t in range(heads.node.shape[0]):
                if takes_of(types, heads, row, t):
                    for d in range(heads.node.shape[1]):
                        if heads.node[t, d] > 0:
                            heads.keeps[k, d] = 0


@step
def plan(types, heads, size, j, p, queue, walltime):
    """Plan job j as the head job of its queue, at the earliest instant at which it has a place; return the size."""
    first, last = places_on(types, j, p)
    for k in range(size):
        begin = heads.times[k]
        for row in range(first, last):
            if fits(types, heads, size, row, k, begin + walltime):
                heads.begin[queue] = begin
                heads.end[queue] = begin + walltime
                for d in range(heads.node.shape[1]):
                    heads.keeps[queue, d] = 0
                    for t in range(heads.node.shape[0]):
                        if takes_of(types, heads, row, t):
                            heads.keeps[queue, d] += heads.node[t, d]
                return hold(types, heads, size, row, begin, begin + walltime)
    return size


@step
def hold(types, heads, size, row, begin, end):
    """Take what a place takes throughout [begin, end); return the number of instants."""
    size = cut(heads, size, begin)
    size = cut(heads, size, end)
    k = np.int64(0)
    while k < size and heads.times[k] < end:
        if heads.times[k] >= begin:
            for d in range(types.amounts.shape[1]):
                heads.free[k, d] -= types.amounts[row, d]
        k += 1
    return size


@step
def cut(heads, size, instant):
    """Let something be able to change at an instant, not before the first; return the number of instants."""
    at = size
    while at > 0 and heads.times[at - 1] >= instant:
        at -= 1
    if at < size and heads.times[at] == instant:
        return size
    for k in range(size, at, -1):
        heads.times[k] = heads.times[k - 1]
        for d in range(heads.free.shape[1]):
            heads.free[k, d] = heads.free[k - 1, d]
    heads.times[at] = instant
    for d in range(heads.free.shape[1]):
        heads.free[at, d] = heads.free[at - 1, d]
    return size + 1
