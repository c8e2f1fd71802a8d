"""What all event loops share: the running jobs by expected end, a heap of instants, and the shadow time.

A key is an instant in its high bits and a job in its `bits` low ones, so that keys sort by instant. The running jobs of a part lie in
``keys[at:at + size]``, ascending by expected end, with their cores beside them.
"""

from __future__ import annotations

import numpy as np

from parsim.kernels.layout import inlined

ONE = np.uint64(1)


@inlined
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


@inlined
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


@inlined
def add_running(keys, held, at, size, key, cores):
    """Insert a job that starts."""
    low = np.uint64(at)
    i = low + np.uint64(size)
    while i > low and keys[i - ONE] > key:
        keys[i] = keys[i - ONE]
        held[i] = held[i - ONE]
        i -= ONE
    keys[i] = key
    held[i] = cores


@inlined
def remove_running(keys, held, at, size, key):
    """Take out the job with this key, which must be there."""
    low = np.uint64(at)
    end = low + np.uint64(size) - ONE
    length = np.uint64(size)
    while length > ONE:
        half = length >> ONE
        if keys[low + half] <= key:
            low += half
        length -= half
    for i in range(low, end):
        keys[i] = keys[i + ONE]
        held[i] = held[i + ONE]


@inlined
def first_instant(keys, held, at, size, free, need, now, bits):
    """First instant from `now` on at which `need` cores are idle, by the expected ends; the part must be large enough."""
    instant = now
    i = np.uint64(at)
    end = i + np.uint64(size)
    idle = np.int64(free)
    while idle < need and i < end:
        instant = keys[i] >> bits
        idle += held[i]
        i += ONE
    return instant


@inlined
def available(keys, held, at, size, free, instant, bits):
    """Cores idle at `instant`, counting every running job whose expected end is at or before it."""
    i = np.uint64(at)
    end = i + np.uint64(size)
    idle = np.int64(free)
    while i < end and (keys[i] >> bits) <= instant:
        idle += held[i]
        i += ONE
    return idle
