"""What is idle over time: a step function for each amount, cores alone or each resource of each type of nodes.

It stands in the fields `times`, shape (S,), and `free`, shape (S, D), of what these functions are given: so much is
idle from each of these instants on. Without types of nodes D is 1. Numbers ("rule 59") refer to
docs/reference/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.kernels.compiled import routine, step


@step
def idle_now(s, types, p, d):
    """Return how much of an amount is idle on partition p."""
    if types is None:
        return np.int64(s.partitions[p].free)
    return types.idle[p, d]


@step
def given_back(s, types, k, d):
    """Return how much of an amount entry k of the running jobs has."""
    if types is None:
        return np.int64(s.running.cores[k])
    return types.amounts[types.taken[s.running.keys[k] & ((np.int64(1) << s.settings.bits) - 1)], d]


@step
def idle_over_time(s, types, over, p, now):
    """Write when everything of partition p is idle by the expected ends; return the number of instants."""
    partition, bits, amounts = s.partitions[p], s.settings.bits, over.free.shape[1]
    over.times[0] = now
    for d in range(amounts):
        over.free[0, d] = idle_now(s, types, p, d)
    size = np.int64(1)
    for k in range(partition.first_running, partition.first_running + partition.running):
        end = s.running.keys[k] >> bits
        if over.times[size - 1] < end:
            over.times[size] = end
            for d in range(amounts):
                over.free[size, d] = over.free[size - 1, d]
            size += 1
        for d in range(amounts):
            over.free[size - 1, d] += given_back(s, types, k, d)
    return size


@step
def is_left(over, amounts, k):
    """Whether all of these amounts is idle from instant k on."""
    left = True
    for d in range(amounts.size):
        left &= amounts[d] == 0 or amounts[d] <= over.free[k, d]
    return left


@step
def first_fit(over, size, amounts, length, limit):
    """Return the first instant, before `limit`, from which all of these amounts is idle for so long, or -1."""
    k = np.int64(0)
    while k < size and over.times[k] < limit:
        end = over.times[k] + length
        i = k
        while i < size and over.times[i] < end and is_left(over, amounts, i):
            i += 1
        if i == size or over.times[i] >= end:
            return k
        k = i + 1
    return np.int64(-1)


@routine
def first_place(over, size, amounts, first, last, length, limit):
    """Return the first instant at which one of the places ``first:last`` fits, and the first that does then; or -1."""
    instant = place = np.int64(-1)
    for row in range(first, last):
        k = first_fit(over, size, amounts[row], length, limit)
        if k >= 0:
            instant, place, limit = k, np.int64(row), over.times[k]
    return instant, place


@step
def add_between(over, size, amounts, begin, end, sign):
    """Add amounts to what is idle throughout [begin, end), or take them away; return the number of instants."""
    size = cut(over, size, begin)
    size = cut(over, size, end)
    k = size
    while k > 0 and over.times[k - 1] >= begin:
        k -= 1
    while k < size and over.times[k] < end:
        for d in range(amounts.size):
            over.free[k, d] += sign * amounts[d]
        k += 1
    return size


@routine
def cut(over, size, instant):
    """Let something be able to change at an instant, not before the first; return the number of instants."""
    at = size
    while at > 0 and over.times[at - 1] >= instant:
        at -= 1
    if at < size and over.times[at] == instant:
        return size
    for k in range(size, at, -1):
        over.times[k] = over.times[k - 1]
        for d in range(over.free.shape[1]):
            over.free[k, d] = over.free[k - 1, d]
    over.times[at] = instant
    for d in range(over.free.shape[1]):
        over.free[at, d] = over.free[at - 1, d]
    return size + 1
