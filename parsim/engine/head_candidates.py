"""Adds to the candidates of a visit beside plans the first entries that may become head jobs.

Names of rules refer to docs/reference/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.engine.candidates import is_within
from parsim.engine.order import first_entry
from parsim.engine.plans.queue_head_jobs import is_wanted
from parsim.engine.simulation import BLOCK, GROUP, NEVER, routine, step


@step
def begin_turns(s, first, last):
    """Mark the turns of all entries as still to come, and collect the entries; return how many there are."""
    group = s.waiting.group[first:last]
    for k in range(group.size):
        group[k] &= GROUP
        s.candidates[k] = first + k
    return np.int64(group.size)


@step
def add_all_first(s, heads, bounds, first, last, m, is_sorted, order):
    """Add the first entry of the list, or of each queue without a head job, to m candidates; return how many."""
    if heads is None:
        return add_first(s, first, last, np.int64(-1), bounds, np.int64(0), m, is_sorted, order)
    if not s.settings.single_list:
        return add_first(s, first, last, np.int64(-1), bounds, np.int64(0), m, is_sorted, order)
    for k in range(heads.begin.size):
        if heads.begin[k] == NEVER:
            m = add_first(s, first, last, np.int64(k), bounds, np.int64(0), m, is_sorted, order)
    return m


@step
def queue_of(s, heads, i):
    """Return the queue of entry i where each queue has a head job of its own, else -1."""
    if heads is None:
        return np.int64(-1)
    return np.int64(s.waiting.queue[i]) if s.settings.single_list else np.int64(-1)


@routine
def add_first(s, first, last, queue, bounds, x, m, is_sorted, order):
    """Add to candidates ``x:m`` the first entry of a queue, of all if -1, unless within bounds; return their end."""
    candidates = s.candidates
    if is_sorted:
        i = first_left(s.waiting, first, last, queue)
    else:
        i = first_entry(s, order[1], first, last, queue, order[2])
    if i < 0 or is_within(bounds, s.waiting.cores[i], s.waiting.walltime[i]):
        return m
    k = m
    while is_sorted and k > x and candidates[k - 1] > i:
        candidates[k] = candidates[k - 1]
        k -= 1
    candidates[k] = i
    return m + 1


@step
def first_left(waiting, first, last, queue):
    """Return the first entry of a queue, of all if it is -1, whose turn is still to come, or -1."""
    for begin in range(first, last, BLOCK):
        group, of = waiting.group[begin : begin + BLOCK], waiting.queue[begin : begin + BLOCK]
        hits = np.int32(0)
        for k in range(BLOCK):
            hits += np.int32((group[k] >= 0) & ((queue < 0) | (of[k] == np.int32(queue))))
        if hits:
            for i in range(begin, min(begin + BLOCK, last)):
                if waiting.group[i] >= 0 and (queue < 0 or waiting.queue[i] == queue):
                    return np.int64(i)
    return np.int64(-1)


@step
def wants_another(s, heads, i):
    """Whether another job of its queue may still become a head job after the turn of entry i."""
    if heads is None:
        return True
    return is_wanted(s, heads, i)
