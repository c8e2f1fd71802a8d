"""EASY and FCFS on one list that is alone on its cores and whose order, a formula, changes as time passes.

This is the event loop of searches over formulas. Like `parsim.kernels.easy` it is a loop of its own, beside the one of
`parsim.kernels.machine`, because it was measured to be twice as fast: nothing starves, is held or has another place to go, so a list is
a few columns in the order of submission.

References
----------
Mu'alem and Feitelson, IEEE TPDS 12(6), 2001, section 2.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from parsim.kernels.easy import begin_job, shadow_of
from parsim.kernels.layout import CORES, LONGEST, NEVER, SUBMIT, WALLTIME, inlined
from parsim.kernels.order import CHUNK, interpret
from parsim.kernels.running import pop_key, remove_running

GONE = -np.inf  # in place of the value of an entry whose job has left; all others are finite


@njit(cache=True, nogil=True)
def changing(jobs, machine, backfill, patience, bits, code, constants, columns, depth, start):
    """Schedule `jobs` on `machine` cores.

    Parameters
    ----------
    jobs, machine, backfill, bits, start
        As `parsim.kernels.easy.easy` takes them.
    patience : int
        Seconds that a job has waited before it may be the head.
    code, constants, columns, depth
        The formula, as `parsim.kernels.order.interpret` takes it; the largest value goes first.
    """
    n = jobs.shape[0]
    low = (np.int64(1) << bits) - 1
    running = min(n, machine)
    heap = np.empty(running + 1, np.int64)  # real ends
    ends = np.empty(running + 1, np.int64)  # expected ends, ascending
    held = np.empty(running + 1, np.int32)  # cores, beside `ends`
    wait_job = np.empty(n, np.int32)  # ascending
    wait_cores = np.empty(n, np.int32)
    wait_time = np.empty(n, np.int32)
    value = np.empty(n)
    pick = np.empty(n, np.int32)
    eligible = np.empty(CHUNK)
    stack = np.empty((depth, CHUNK))
    free = np.int64(machine)
    size = 0  # running jobs
    last = np.int64(0)  # waiting jobs
    nxt = 0

    while nxt < n or size > 0:
        now = np.int64(jobs[nxt, SUBMIT]) if nxt < n else NEVER
        if size > 0:
            now = min(now, heap[0] >> bits)
        while size > 0 and (heap[0] >> bits) == now:
            j = heap[0] & low
            pop_key(heap, size)
            remove_running(ends, held, 0, size, ((start[j] + jobs[j, WALLTIME]) << bits) | j)
            free += jobs[j, CORES]
            size -= 1
        while nxt < n and jobs[nxt, SUBMIT] == now:
            wait_job[last] = nxt
            wait_cores[last] = jobs[nxt, CORES]
            wait_time[last] = jobs[nxt, WALLTIME]
            last += 1
            nxt += 1
        narrowest = LONGEST
        for i in range(last):
            narrowest = min(narrowest, np.int64(wait_cores[i]))
        if last == 0 or narrowest > free:
            continue

        for begin in range(0, last, CHUNK):
            count = min(CHUNK, last - begin)
            members = wait_job[begin : begin + count]
            for i in range(count):
                eligible[i] = np.float64(now - jobs[members[i], SUBMIT])
            interpret(code, constants, columns, members, eligible, stack, count)
            for i in range(count):
                v = stack[0, i]
                value[begin + i] = 0.0 if math.isnan(v) else v

        kept = last  # first entry whose job left
        ripe = last  # who may be the head: the entries before this one
        if patience > 0:
            ripe = 0
            while ripe < last and now - jobs[wait_job[ripe], SUBMIT] >= patience:
                ripe += 1
        head = first_of(value, wait_cores, ripe, last, free)
        while head >= 0 and wait_cores[head] <= free:
            c = np.int64(wait_cores[head])
            begin_job(jobs, wait_job[head], now, bits, heap, ends, held, size, start)
            free -= c
            size += 1
            value[head] = GONE
            kept = min(kept, head)
            head = first_of(value, wait_cores, ripe, last, free)
        if head >= 0 and backfill and free > 0:
            shadow, extra = shadow_of(ends, held, size, free, np.int64(wait_cores[head]), now, bits)
            slack = min(shadow - now, LONGEST)
            m = 0  # candidates: who may start beside the head; these only become fewer
            for i in range(last):
                c = np.int64(wait_cores[i])
                if c <= free and (wait_time[i] <= slack or c <= extra) and value[i] != GONE:
                    pick[m] = i
                    m += 1
            for k in range((m >> 1) - 1, -1, -1):
                sink(pick, value, k, m)
            while m > 0 and free > 0:
                i = pick[0]
                m -= 1
                pick[0] = pick[m]
                sink(pick, value, 0, m)
                c = np.int64(wait_cores[i])
                if c <= free and (wait_time[i] <= slack or c <= extra):
                    begin_job(jobs, wait_job[i], now, bits, heap, ends, held, size, start)
                    free -= c
                    size += 1
                    if wait_time[i] > slack:
                        extra -= c
                    value[i] = GONE
                    kept = min(kept, np.int64(i))
        for k in range(kept, last):
            if value[k] != GONE:
                wait_job[kept] = wait_job[k]
                wait_cores[kept] = wait_cores[k]
                wait_time[kept] = wait_time[k]
                kept += 1
        last = kept


@inlined
def first_of(value, wait_cores, ripe, last, free):
    """Return the entry with the largest value, of equal ones the first, of those that fit or may be the head; -1 of none."""
    best = np.int64(-1)
    largest = GONE
    for i in range(ripe):
        if value[i] > largest:
            best = i
            largest = value[i]
    for i in range(ripe, last):
        if value[i] > largest and wait_cores[i] <= free:
            best = i
            largest = value[i]
    return best


@inlined
def sink(pick, value, root, size):
    """Restore the heap ``pick[:size]``, whose top has the largest value, of equal ones the first entry, below `root`."""
    if root >= size:
        return
    top = pick[root]
    child = 2 * root + 1
    while child < size:
        if child + 1 < size and goes_before(value, pick[child + 1], pick[child]):
            child += 1
        if not goes_before(value, pick[child], top):
            break
        pick[root] = pick[child]
        root = child
        child = 2 * root + 1
    pick[root] = top


@inlined
def goes_before(value, i, k):
    """Whether entry i goes before entry k."""
    return value[i] > value[k] or (value[i] == value[k] and i < k)
