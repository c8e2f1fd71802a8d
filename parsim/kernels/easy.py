"""EASY and FCFS on one list that is alone on its cores and whose order is constant but for who begins to starve.

This is the event loop of every list without limits, reservations or a pool, and the inner loop of the exact search. It is a loop of
its own, beside the one of `parsim.kernels.machine`, because it was measured to be several times as fast: it looks at a waiting job
again only when something ended or the head changed, and scans the list in blocks that the compiler turns into vector instructions.

References
----------
Mu'alem and Feitelson, IEEE TPDS 12(6), 2001, section 2.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from parsim.kernels.layout import BLOCK, CORES, NEVER, RUNTIME, SUBMIT, WALLTIME, inlined
from parsim.kernels.running import add_running, available, first_instant, pop_key, push_key, remove_running

STARTED = np.int32(0)  # in place of the cores of an entry whose job has left


@njit(cache=True, nogil=True)
def easy(jobs, machine, backfill, bits, rank, ranked, wakes, start):
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
    rank : ndarray(int32), shape (n,)
        Place of each job in the order, from 0; of job j that starves on arrival, j - n.
    ranked : ndarray(int32), shape (n,)
        The job at each place.
    wakes : ndarray(int64), shape (m,)
        Keys of the instants at which jobs begin to starve, ascending.
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
    wait_rank = np.empty(n + BLOCK, np.int32)  # ascending
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
    wake = np.uint64(0)
    wakings = np.uint64(wakes.size)
    if wakings:
        start[:] = -1

    while nxt < count or size > 0:
        now = np.int64(jobs[nxt, SUBMIT]) if nxt < count else NEVER
        if size > 0:
            now = min(now, heap[0] >> bits)
        while wake < wakings and (wakes[wake] >> bits) <= now:
            if start[wakes[wake] & low] < 0:
                now = wakes[wake] >> bits
                break
            wake += one

        anew = False  # else who waited before could not start and still cannot
        while size > 0 and (heap[0] >> bits) == now:
            j = np.uint64(heap[0] & low)
            pop_key(heap, size)
            remove_running(ends, held, 0, size, ((start[j] + jobs[j, WALLTIME]) << bits) | np.int64(j))
            free += jobs[j, CORES]
            size -= 1
            anew = True
        while wake < wakings and (wakes[wake] >> bits) == now:
            j = np.uint64(wakes[wake] & low)
            if start[j] < 0:
                i = first
                while wait_rank[i] != rank[j]:
                    i += one
                r = np.int32(np.int64(j) - n)
                anew |= place(wait_cores, wait_time, wait_rank, first, i, wait_cores[i], wait_time[i], r)
            wake += one
        stop = nxt
        while stop < count and jobs[stop, SUBMIT] == now:
            if stop > nxt and rank[stop] < rank[stop - one]:
                anew = True
            stop += one

        while nxt < stop and not anew:
            j = nxt
            c = jobs[j, CORES]
            w = jobs[j, WALLTIME]
            starts = False
            if first == last:
                planned = False
                starts = c <= free
            elif rank[j] < wait_rank[first]:
                anew = True  # it will be the head
                break
            elif c <= free and backfill:
                if not planned:
                    shadow, extra = shadow_of(ends, held, size, free, np.int64(wait_cores[first]), now, bits)
                    planned = True
                starts = now + w <= shadow
                if not starts and c <= extra:
                    starts = True
                    extra -= c
            if starts:
                begin_job(jobs, j, now, bits, heap, ends, held, size, start)
                free -= c
                size += 1
            else:
                place(wait_cores, wait_time, wait_rank, first, last, c, w, rank[j])
                last += one
            nxt += one
        if not anew:
            continue

        planned = False
        while nxt < stop:
            place(wait_cores, wait_time, wait_rank, first, last, jobs[nxt, CORES], jobs[nxt, WALLTIME], rank[nxt])
            last += one
            nxt += one
        while first < last and wait_cores[first] <= free:
            j = job_of(wait_rank[first], ranked)
            c = wait_cores[first]
            first += one
            begin_job(jobs, j, now, bits, heap, ends, held, size, start)
            free -= c
            size += 1
        if first == last:
            first = np.uint64(0)
            last = np.uint64(0)
            continue
        if not backfill or free == 0 or last - first < 2:
            continue

        shadow, extra = shadow_of(ends, held, size, free, np.int64(wait_cores[first]), now, bits)
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
                        j = job_of(wait_rank[k], ranked)
                        if w > slack:
                            extra -= c
                        begin_job(jobs, j, now, bits, heap, ends, held, size, start)
                        free -= c
                        size += 1
                        wait_cores[k] = STARTED
                        if kept == last:
                            kept = k
            i += block
        if kept < last:
            for k in range(kept, last):
                if wait_cores[k] != STARTED:
                    wait_cores[kept] = wait_cores[k]
                    wait_time[kept] = wait_time[k]
                    wait_rank[kept] = wait_rank[k]
                    kept += one
            last = kept


@njit(cache=True, nogil=True, inline="always")
def shadow_of(ends, held, size, free, need, now, bits):
    """Return the shadow time of a head that needs more than is free, and the extra cores at it."""
    shadow = first_instant(ends, held, 0, size, free, need, now, bits)
    return shadow, available(ends, held, 0, size, free, shadow, bits) - need


@inlined
def begin_job(jobs, j, now, bits, heap, ends, held, size, start):
    """Start job j beside `size` running ones."""
    start[j] = now
    push_key(heap, size, ((now + jobs[j, RUNTIME]) << bits) | np.int64(j))
    add_running(ends, held, 0, size, ((now + jobs[j, WALLTIME]) << bits) | np.int64(j), jobs[j, CORES])


@inlined
def place(wait_cores, wait_time, wait_rank, first, i, c, w, r):
    """Put an entry where its rank belongs among ``first:i``, of which those behind make room; whether there were any."""
    end = i
    one = np.uint64(1)
    while i > first and wait_rank[i - one] > r:
        wait_cores[i] = wait_cores[i - one]
        wait_time[i] = wait_time[i - one]
        wait_rank[i] = wait_rank[i - one]
        i -= one
    wait_cores[i] = c
    wait_time[i] = w
    wait_rank[i] = r
    return i < end


@inlined
def job_of(r, ranked):
    """Return the job of a rank; below 0 are the starving."""
    return np.uint64(r + ranked.size if r < 0 else ranked[r])
