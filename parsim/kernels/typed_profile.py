"""What is idle over time of nodes of several types: a step function for each total, each resource of each type.

It stands in the fields `times`, shape (S,), and `free`, shape (S, D), of what these functions are given: so much is
idle from each of these instants on. Numbers ("rule 59") refer to docs/reference/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.kernels.compiled import step


@step
def idle_over_time(s, types, over, p, now):
    """Write when everything of partition p is idle by the expected ends; return the number of instants."""
    partition, running, bits = s.partitions[p], s.running, s.settings.bits
    low = (np.int64(1) << bits) - 1
    over.times[0] = now
    for d in range(types.amounts.shape[1]):
        over.free[0, d] = types.idle[p, d]
    size = 1
    for k in range(partition.first_running, partition.first_running + partition.running):
        end, of = running.keys[k] >> bits, types.taken[running.keys[k] & low]
        if over.times[size - 1] < end:
            size = cut(over, size, end)
        for d in range(types.amounts.shape[1]):
            over.free[size - 1, d] += types.amounts[of, d]
    return size


@step
def is_left(types, over, row, k):
    """Whether all that a place takes is idle from instant k on."""
    left = True
    for d in range(types.amounts.shape[1]):
        left &= types.amounts[row, d] == 0 or types.amounts[row, d] <= over.free[k, d]
    return left


@step
def fits(types, over, size, row, k, end):
    """Whether a place is left from instant k until `end`."""
    while k < size and over.times[k] < end:
        if not is_left(types, over, row, k):
            return False
        k += 1
    return True


@step
def add_between(over, size, amounts, begin, end, sign):
    """Add amounts to what is idle throughout [begin, end), or take them away; return the number of instants."""
    size = cut(over, size, begin)
    size = cut(over, size, end)
    k = np.int64(0)
    while k < size and over.times[k] < end:
        if over.times[k] >= begin:
            for d in range(amounts.size):
                over.free[k, d] += sign * amounts[d]
        k += 1
    return size


@step
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
