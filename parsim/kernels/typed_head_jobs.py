"""A visit in which each queue has a head job, and nodes stay idle for it, where nodes are of several types.

Or chunks are placed, and head jobs hold nodes. Numbers ("rule 80") refer to docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.kernels.compiled import routine, step
from parsim.kernels.node_types import hold_nodes, places_on
from parsim.kernels.order import LJF, before, refresh_values
from parsim.kernels.placed_head_jobs import begin_placed_visit, place_best, plan_placed, shortest_unplaced
from parsim.kernels.running import sift
from parsim.kernels.starts import is_held, occupy, start_job
from parsim.kernels.state import GROUP, NEVER, PASSED
from parsim.kernels.top_job import make_heap
from parsim.kernels.typed_profile import add_between, fits, idle_over_time
from parsim.kernels.waiting import STARTED, drop_started, has_lines, kind_of, note_held, succeed
from parsim.kernels.windows import UNKNOWN_END, is_known

ABSENT = NEVER + 1  #: in place of `begin` where no job of a queue waits


class TypedHeadJobs(NamedTuple):
    """Q queues on nodes of T types with D totals, and S instants at which what is idle may change."""

    begin: NDArray[np.int64]  # (Q,): of the plan of each head job, `NEVER` without one
    end: NDArray[np.int64]  # (Q,)
    keeps: NDArray[np.int64]  # (Q, D): what stays idle for it now
    node: NDArray[np.int64]  # (T, D): what a node of each type has
    out: NDArray[np.int64]  # (D,): what windows take now
    times: NDArray[np.int64]  # (S,), and
    free: NDArray[np.int64]  # (S, D): see `parsim.kernels.typed_profile`


@routine
def visit_types(s, types, placing, heads, outages, p, now):
    """Go once over list p and start the jobs that may start beside head jobs and windows (rules 3, 80 and 86)."""
    settings, waiting, partition = s.settings, s.waiting, s.partitions[p]
    first, last = partition.first, partition.first + partition.waiting
    if not settings.track_held and partition.free <= 0:
        return
    kind, lines = kind_of(s, p), has_lines(s, p)
    is_sorted = kind <= LJF and not lines
    refresh_values(s, kind, first, last, now)
    order = (s, kind, now)
    size = begin_visit(s, types, placing, heads, outages, p, now)
    missing = begin_heads(s, heads, first, last)
    x, m = np.int64(0), begin_turns(s, first, last)
    make_heap(s.candidates, m, is_sorted, order)
    gone = last
    while x < m and (settings.track_held or partition.free > 0):
        i = np.int64(s.candidates[x])
        j = np.int64(waiting.job[i])
        waiting.group[i] |= PASSED
        held = settings.limits and is_held(s, j)
        if settings.track_held:
            note_held(s, j, now, held)
        c, w = np.int64(waiting.cores[i]), np.int64(waiting.walltime[i])
        starts = follows = no_more = False
        if not held and c <= partition.free:
            starts, size = place(types, placing, heads, outages, size, j, p, now, now + w)
        if starts:
            occupy(s, j, p, c, now)
            s.placement[j] = p
            start_job(s, j, now)
            follows = lines and succeed(s, p, i, now)
            if not follows:
                waiting.job[i] = STARTED
                gone = min(gone, i)
        elif not held and not settings.backfill:
            break
        elif (
            not held and heads.begin[s.jobs[j].queue] == NEVER and now - s.jobs[j].submit >= settings.reservation_delay
        ):
            size = plan_head(s, types, placing, heads, outages, size, j, p, now)
            missing -= np.int64(heads.begin[s.jobs[j].queue] != NEVER)
            no_more = missing == 0 and not settings.track_held
        if no_more:  # what cannot start now waits
            x, m = np.int64(0), collect(s, placing, heads, first, last, partition.free, now)
            make_heap(s.candidates, m, is_sorted, order)
        elif is_sorted:
            x += 1
        else:
            if not follows:
                m -= 1
                s.candidates[0] = s.candidates[m]
            sift(s.candidates, 0, m, before, order)
    if settings.track_held and not settings.backfill:
        for i in range(first, last):
            if waiting.group[i] >= 0:  # behind the end of the visit
                note_held(s, waiting.job[i], now, False)
    if gone < last:
        drop_started(s, p, gone)


@step
def begin_heads(s, heads, first, last):
    """Let no queue have a head job yet; return in how many of them jobs wait."""
    queues = np.int64(0)
    heads.begin[:] = ABSENT
    for i in range(first, last):
        if queues == heads.begin.size:
            break
        queue = s.jobs[s.waiting.job[i]].queue
        if heads.begin[queue] == ABSENT:
            heads.begin[queue] = NEVER
            queues += 1
    return queues


@step
def begin_turns(s, first, last):
    """Let the turn of every entry be still to come, and collect them; return how many they are."""
    group = s.waiting.group[first:last]
    for k in range(group.size):
        group[k] &= GROUP
        s.candidates[k] = first + k
    return np.int64(group.size)


@step
def collect(s, placing, heads, first, last, free, now):
    """Collect the entries whose turn is still to come of jobs that may start by what is known; return how many."""
    job, group = s.waiting.job[first:last], s.waiting.group[first:last]
    cores, walltime = s.waiting.cores[first:last], s.waiting.walltime[first:last]
    m = np.int64(0)
    for k in range(job.size):
        s.candidates[m] = first + k
        m += (group[k] >= 0) & (cores[k] <= free) & (walltime[k] < shortest_unplaced(placing, heads, job[k], now))
    return m


@step
def begin_visit(s, types, placing, heads, outages, p, now):
    """Write what is idle over time, of totals, beside the windows known now; return the number of instants."""
    begin_placed_visit(placing, heads)
    if types is None:
        return np.int64(0)
    size = np.int64(idle_over_time(s, types, heads, p, now))
    for d in range(heads.out.size):
        heads.out[d] = 0
    for k in range(outages.windows.size):
        window, takes = outages.windows[k], outages.taken[k]
        if is_known(window, now):
            size = add_between(heads, size, takes, max(now, window.begin), window.known_end, -1)
            for d in range(takes.size):
                heads.out[d] += takes[d] if window.begin <= now else 0
    return size


@step
def place(types, placing, heads, outages, size, j, p, now, end):
    """Let job j have what it takes, if it may start now; return whether it does, and the number of instants."""
    if types is None:
        return place_best(placing, heads, outages, j, p, now, end), size
    row = place_now(types, heads, size, j, p, end)
    if row >= 0:
        size = add_between(heads, size, types.amounts[row], now, end, -1)
        hold_nodes(types, j, p, row)
        take_kept(types, heads, row, end)
    return row >= 0, size


@step
def plan_head(s, types, placing, heads, outages, size, j, p, now):
    """Plan job j as the head job of its queue; return the number of instants."""
    if types is None:
        plan_placed(s, placing, heads, outages, j, p, now)
        return size
    return plan(types, heads, size, j, p, np.int64(s.jobs[j].queue), np.int64(s.jobs[j].walltime))


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
                if 0 < kept > types.idle[p, d] - heads.out[d]:
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
        if begin >= UNKNOWN_END:  # rule 31
            break
        for row in range(first, last):
            if fits(types, heads, size, row, k, begin + walltime):
                heads.begin[queue] = begin
                heads.end[queue] = begin + walltime
                for d in range(heads.node.shape[1]):
                    heads.keeps[queue, d] = 0
                    for t in range(heads.node.shape[0]):
                        if takes_of(types, heads, row, t):
                            heads.keeps[queue, d] += heads.node[t, d]
                return add_between(heads, size, types.amounts[row], begin, begin + walltime, -1)
    return size
