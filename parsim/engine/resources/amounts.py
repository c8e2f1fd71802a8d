"""Idle amounts over time: a step function of cores, or of each resource of each type of nodes.

Argument `over` has it in the fields `times`, shape (S,), and `free`, shape (S * D,): the D amounts that are idle from
each instant on, those of one instant together. Without types of nodes D is 1. Names of rules refer to
docs/reference/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.engine.compile.compiled import routine, step
from parsim.engine.compile.native import memmove
from parsim.engine.resources.profile import find_segment


@step
def count_of(types):
    """Return D, the number of amounts."""
    if types is None:
        return 1
    return types.amounts.shape[1]


@step
def idle_now(s, types, p, d):
    """Return how much of amount d is idle on partition p now."""
    if types is None:
        return np.int64(s.partitions[p].free)
    return types.idle[p, d]


@step
def given_back(s, types, k, d):
    """Return how much of amount d entry k of the running jobs gives back at its end."""
    if types is None:
        return np.int64(s.running.cores[k])
    return types.amounts[types.taken[s.running.keys[k] & ((np.int64(1) << s.settings.bits) - 1)], d]


@step
def idle_over_time(s, types, over, p, now):
    """Write the idle amounts of partition p over time by the expected ends; return the number of instants."""
    partition, bits, amounts = s.partitions[p], s.settings.bits, count_of(types)
    over.times[0] = now
    for d in range(amounts):
        over.free[d] = idle_now(s, types, p, d)
    size = np.int64(1)
    for k in range(partition.first_running, partition.first_running + partition.running):
        end = s.running.keys[k] >> bits
        if over.times[size - 1] < end:
            over.times[size] = end
            for d in range(amounts):
                over.free[size * amounts + d] = over.free[(size - 1) * amounts + d]
            size += 1
        for d in range(amounts):
            over.free[(size - 1) * amounts + d] += given_back(s, types, k, d)
    return size


@step
def are_idle(types, over, amounts, k):
    """Whether all of these amounts are idle from instant k to the next."""
    left, first = True, k * count_of(types)
    for d in range(count_of(types)):
        left &= amounts[d] == 0 or amounts[d] <= over.free[first + d]
    return left


@step
def first_fit(types, over, size, amounts, length, limit):
    """Return the index of the first instant before `limit` from which amounts are idle for `length` s, or -1."""
    k = np.int64(0)
    while k < size and over.times[k] < limit:
        end = over.times[k] + length
        i = k
        while i < size and over.times[i] < end and are_idle(types, over, amounts, i):
            i += 1
        if i == size or over.times[i] >= end:
            return k
        k = i + 1
    return np.int64(-1)


@routine
def first_place(types, over, size, amounts, first, last, length, limit):
    """Return the index of the first instant at which a place of ``first:last`` fits, and this place; or -1, -1."""
    instant = place = np.int64(-1)
    for row in range(first, last):
        k = first_fit(types, over, size, amounts[row], length, limit)
        if k >= 0:
            instant, place, limit = k, np.int64(row), over.times[k]
    return instant, place


@step
def add_between(types, over, size, amounts, begin, end, sign):
    """Add amounts to those idle throughout [begin, end), or subtract them; return the number of instants."""
    size = cut(types, over, size, begin)
    size = cut(types, over, size, end)
    k = find_segment(over, size, begin)
    while k < size and over.times[k] < end:
        for d in range(count_of(types)):
            over.free[k * count_of(types) + d] += sign * amounts[d]
        k += 1
    return size


@routine
def cut(types, over, size, instant):
    """Insert an instant, not before the first, if it is missing; return the number of instants."""
    at, amounts = find_segment(over, size, instant), count_of(types)
    if at < size and over.times[at] == instant:
        return size
    memmove(over.times, at + 1, at, size - at)
    memmove(over.free, (at + 1) * amounts, at * amounts, (size - at) * amounts)
    over.times[at] = instant
    for d in range(amounts):
        over.free[at * amounts + d] = over.free[(at - 1) * amounts + d]
    return size + 1
