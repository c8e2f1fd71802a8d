"""EASY and FCFS on one list that is alone on its cores and keeps the order of submission.

This is the event loop of every partition without priorities, starvation, limits or reservations, and the inner loop of the
exact search. It is a loop of its own, beside the one of `parsim.kernels.machine`, because it was measured to be several times as
fast: it looks at a waiting job again only when something ended or the head changed, and scans the list in blocks that
the compiler turns into vector instructions.

References
----------
Mu'alem and Feitelson, IEEE TPDS 12(6), 2001, section 2.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from parsim.kernels.running import add_running, available, first_instant, pop_key, push_key, remove_running

SUBMIT, CORES, RUNTIME, WALLTIME = 0, 1, 2, 3
BLOCK = 32  # list entries examined at once; the lists are padded by as many
NEVER = np.int64(2**62)


@njit(cache=True, nogil=True)
def easy(jobs, machine, backfill, bits, start):
    """Schedule `jobs` on `machine` cores.

    Parameters
    ----------
    jobs : ndarray(int32), shape (n, 4)
        Submit, cores, runtime (at most the walltime), walltime; ascending by submit, from 0; no job wider than the machine.
    machine : int
        Cores.
    backfill : bool
        EASY; False is FCFS.
    bits : int
        Low bits of a key that hold a job.
    start : ndarray(int64), shape (n,)
        Filled with each job's start.
    """
    n = jobs.shape[0]
    low = (np.int64(1) << bits) - 1
    running = min(n, machine)
    heap = np.empty(running + 1, np.int64)  # real ends
    ends = np.empty(running + 1, np.int64)  # expected ends, ascending
    held = np.empty(running + 1, np.int32)  # cores, beside `ends`
    wait_cores = np.empty(n + BLOCK, np.int32)
    wait_time = np.empty(n + BLOCK, np.int32)
    wait_job = np.empty(n + BLOCK, np.int32)
    free = np.int64(machine)
    size = 0  # running jobs
    first = np.uint64(0)  # the waiting list is [first, last)
    last = np.uint64(0)
    one = np.uint64(1)
    planned = False  # shadow and extra stand
    shadow = np.int64(0)
    extra = np.int64(0)
    nxt = np.uint64(0)
    count = np.uint64(n)

    while nxt < count or size > 0:
        now = np.int64(jobs[nxt, SUBMIT]) if nxt < count else NEVER
        ended = False
        if size > 0 and (heap[0] >> bits) <= now:
            now = heap[0] >> bits
            ended = True
            planned = False
            while size > 0 and (heap[0] >> bits) == now:
                j = np.uint64(heap[0] & low)
                pop_key(heap, size)
                remove_running(ends, held, 0, size, ((start[j] + jobs[j, WALLTIME]) << bits) | np.int64(j))
                free += jobs[j, CORES]
                size -= 1

        if not ended:  # whoever waited before could not start and still cannot
            while nxt < count and jobs[nxt, SUBMIT] == now:
                j = nxt
                nxt += one
                c = jobs[j, CORES]
                w = jobs[j, WALLTIME]
                starts = False
                if c <= free:
                    if first == last:
                        starts = True
                    elif backfill:
                        if not planned:
                            need = np.int64(wait_cores[first])
                            shadow, extra = _shadow(ends, held, size, free, need, now, bits)
                            planned = True
                        if now + w <= shadow:
                            starts = True
                        elif c <= extra:
                            starts = True
                            extra -= c
                if starts:
                    start[j] = now
                    free -= c
                    push_key(heap, size, ((now + jobs[j, RUNTIME]) << bits) | np.int64(j))
                    add_running(ends, held, 0, size, ((now + w) << bits) | np.int64(j), c)
                    size += 1
                else:
                    if first == last:
                        planned = False
                    wait_cores[last] = c
                    wait_time[last] = w
                    wait_job[last] = np.int32(j)
                    last += one
            continue

        while nxt < count and jobs[nxt, SUBMIT] == now:
            wait_cores[last] = jobs[nxt, CORES]
            wait_time[last] = jobs[nxt, WALLTIME]
            wait_job[last] = np.int32(nxt)
            last += one
            nxt += one

        while first < last and wait_cores[first] <= free:
            j = np.uint64(wait_job[first])
            c = wait_cores[first]
            first += one
            start[j] = now
            free -= c
            push_key(heap, size, ((now + jobs[j, RUNTIME]) << bits) | np.int64(j))
            add_running(ends, held, 0, size, ((now + jobs[j, WALLTIME]) << bits) | np.int64(j), c)
            size += 1
        if first == last:
            first = np.uint64(0)
            last = np.uint64(0)
            continue
        if not backfill or free == 0 or last - first < 2:
            continue

        shadow, extra = _shadow(ends, held, size, free, np.int64(wait_cores[first]), now, bits)
        planned = True
        slack = min(shadow - now, 2**31 - 1)
        kept = last  # where the next job that stays goes, once one has left
        i = first + one
        block = np.uint64(BLOCK)
        while i < last and free > 0:
            f32 = np.int32(free)
            s32 = np.int32(slack)
            e32 = np.int32(extra)
            hit = False
            for k in range(block):
                c = wait_cores[i + k]
                hit |= (c <= f32) & ((wait_time[i + k] <= s32) | (c <= e32))
            if hit:
                stop = min(i + block, last)
                for k in range(i, stop):
                    c = wait_cores[k]
                    w = wait_time[k]
                    if c <= free and (w <= slack or c <= extra):
                        j = np.uint64(wait_job[k])
                        if w > slack:
                            extra -= c
                        start[j] = now
                        free -= c
                        push_key(heap, size, ((now + jobs[j, RUNTIME]) << bits) | np.int64(j))
                        add_running(ends, held, 0, size, ((now + w) << bits) | np.int64(j), c)
                        size += 1
                        wait_job[k] = -1
                        if kept == last:
                            kept = k
            i += block
        if kept < last:
            for k in range(kept, last):
                if wait_job[k] >= 0:
                    wait_cores[kept] = wait_cores[k]
                    wait_time[kept] = wait_time[k]
                    wait_job[kept] = wait_job[k]
                    kept += one
            last = kept


@njit(cache=True, nogil=True, inline="always")
def _shadow(ends, held, size, free, need, now, bits):
    """Return the shadow time of a head that needs more than is free, and the extra cores at it."""
    shadow = first_instant(ends, held, 0, size, free, need, now, bits)
    return shadow, available(ends, held, 0, size, free, shadow, bits) - need
