"""Running jobs by expected end, the instants at which cores are idle, and the heaps of the event loops.

A key is an instant in its high bits and a job in its `bits` low ones, so that keys sort by instant. The running jobs of
a partition are ``running.keys[first:first + count]``, ascending by expected end, with their cores beside them.
"""

from __future__ import annotations

import numpy as np

from parsim.engine.simulation import LONGEST, routine, step

ONE = np.uint64(1)
STRETCH = np.uint64(32)  # running jobs that are passed over together


@step
def last_instant(bits):
    """Return the latest instant at which a job may start, so that its end fits a key."""
    return (np.int64(1) << (62 - bits)) - LONGEST - 1


@step
def push_key(heap, size, key):
    """Add `key` to the binary min-heap ``heap[:size]``."""
    i = np.uint64(size)
    while i:
        parent = (i - ONE) >> ONE
        if heap[parent] <= key:
            break
        heap[i] = heap[parent]
        i = parent
    heap[i] = key


@step
def pop_key(heap, size):
    """Remove the least key of the binary min-heap ``heap[:size]``."""
    last = np.uint64(size - 1)
    key = heap[last]
    i = np.uint64(0)
    child = ONE
    while child < last:
        right = child + ONE
        if right < last and heap[right] < heap[child]:
            child = right
        if heap[child] >= key:
            break
        heap[i] = heap[child]
        i = child
        child = i + i + ONE
    heap[i] = key


@step
def remove_key(heap, size, key):
    """Remove a key, which must be there, from the binary min-heap ``heap[:size]``: move it to the top, and pop it."""
    i = np.uint64(0)
    while heap[i] != key:
        i += ONE
    while i:
        parent = (i - ONE) >> ONE
        heap[i] = heap[parent]
        i = parent
    heap[0] = key
    pop_key(heap, size)


@step
def sift(heap, root, size, goes_before, context):
    """Restore the heap ``heap[:size]`` below `root`; `goes_before` orders it, the first at the top."""
    if root >= size:
        return
    top = heap[root]
    child = 2 * root + 1
    while child < size:
        if child + 1 < size and goes_before(context, heap[child + 1], heap[child]):
            child += 1
        if not goes_before(context, heap[child], top):
            break
        heap[root] = heap[child]
        root = child
        child = 2 * root + 1
    heap[root] = top


@step
def add_running(running, first, count, key, cores):
    """Insert a job that starts among ``first:first + count`` by its key."""
    begin = np.uint64(first)
    end = begin + np.uint64(count)
    i = end
    while i >= begin + STRETCH and running.keys[i - STRETCH] > key:
        i -= STRETCH
    if i < end:
        move_up(running, i, end)
    while i > begin and running.keys[i - ONE] > key:
        running.keys[i] = running.keys[i - ONE]
        running.cores[i] = running.cores[i - ONE]
        i -= ONE
    running.keys[i] = key
    running.cores[i] = cores


@step
def remove_running(running, first, count, key):
    """Remove the job with this key, which must be there."""
    i = np.uint64(first)
    end = i + np.uint64(count) - ONE
    length = np.uint64(count)
    while length > ONE:
        half = length >> ONE
        if running.keys[i + half] <= key:
            i += half
        length -= half
    if end - i >= STRETCH:
        move_down(running, i, end)
        return
    while i < end:
        running.keys[i] = running.keys[i + ONE]
        running.cores[i] = running.cores[i + ONE]
        i += ONE


@routine
def move_up(running, begin, end):
    """Move the entries ``begin:end`` one place up, column by column, so that several move at once."""
    k = end
    while k > begin:
        running.keys[k] = running.keys[k - ONE]
        k -= ONE
    k = end
    while k > begin:
        running.cores[k] = running.cores[k - ONE]
        k -= ONE


@routine
def move_down(running, begin, end):
    """Move the entries after `begin` up to `end`, inclusive, one place down."""
    for k in range(begin, end):
        running.keys[k] = running.keys[k + ONE]
    for k in range(begin, end):
        running.cores[k] = running.cores[k + ONE]


@step
def first_instant(running, first, count, free, need, now, bits):
    """Return the first instant from `now` on at which `need` cores, at most all, are idle by expected ends."""
    instant = now
    i = np.uint64(first)
    end = i + np.uint64(count)
    near = min(end, i + STRETCH)
    idle = np.int64(free)
    while idle < need and i < near:
        instant = running.keys[i] >> bits
        idle += running.cores[i]
        i += ONE
    if idle < need and i < end:
        instant = far_instant(running, i, end, need - idle, bits)
    return instant


@routine
def far_instant(running, i, end, need, bits):
    """Return the first expected end of the jobs ``i:end`` by which `need` cores of them are idle."""
    while i + STRETCH <= end:
        more = cores_of_stretch(running, i)
        if more >= need:
            break
        need -= more
        i += STRETCH
    while need > 0 and i < end:
        need -= running.cores[i]
        i += ONE
    return running.keys[i - ONE] >> bits


@step
def available(running, first, count, free, instant, bits):
    """Return the cores idle at `instant`, with those of every job whose expected end is at or before it."""
    i = np.uint64(first)
    end = i + np.uint64(count)
    idle = np.int64(free)
    while i + STRETCH <= end and (running.keys[i + STRETCH - ONE] >> bits) <= instant:
        idle += cores_of_stretch(running, i)
        i += STRETCH
    while i < end and (running.keys[i] >> bits) <= instant:
        idle += running.cores[i]
        i += ONE
    return idle


@step
def cores_of_stretch(running, i):
    """Return the sum of the cores of `STRETCH` running jobs from entry i on; the compiler adds several at once."""
    total = np.int64(0)
    for k in range(STRETCH):
        total += running.cores[i + k]
    return total
