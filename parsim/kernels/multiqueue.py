"""Multiple-queue backfilling: jobs classed by walltime, the first of each class a pivot with a planned start.

References
----------
Lawson and Smirni, "Multiple-queue Backfilling Scheduling with Priorities and Reservations for Parallel Systems", JSSPP 2002.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from parsim.kernels.layout import CORES, NEVER, RUNTIME, SUBMIT, WALLTIME
from parsim.kernels.profile import change, fit, forget, reserve
from parsim.kernels.running import pop_key, push_key

FIRST, LAST = 0, 1  # columns of `lists`: a class waits in ``waiting[first:last]``, its pivot first


@njit(cache=True, nogil=True, inline="always")
def _fits_now(times, free, size, cores, walltime):
    """How many segments, from the present one on, hold a job that fits now beside everything; 0 if it does not."""
    end = times[0] + walltime
    k = 0
    while k < size and times[k] < end:
        if free[k] < cores:
            return 0
        k += 1
    return k


@njit(cache=True, nogil=True)
def multiqueue(jobs, machine, job_class, lists, bits, start):
    """Schedule `jobs` on `machine` cores.

    Parameters
    ----------
    jobs : ndarray(int32), shape (n, 4)
        Submit, cores, runtime, walltime; ascending by submit, from 0; no job wider than the machine.
    machine : int
        Cores.
    job_class : ndarray(int64), shape (n,)
        Class of each job, the shortest is 0.
    lists : ndarray(int64), shape (K, 2)
        Where the list of each class begins, twice; room for all its jobs follows.
    bits : int
        Low bits of a key that hold a job.
    start : ndarray(int64), shape (n,)
        Filled with each job's start.
    """
    n = jobs.shape[0]
    classes = lists.shape[0]
    low = (np.int64(1) << bits) - 1
    running = min(n, machine)
    heap = np.empty(running + 1, np.int64)  # real ends
    size = 0
    waiting = np.empty(n, np.int64)
    waits = 0
    times = np.empty(2 * running + 4, np.int64)  # idle cores beside the running jobs, by their walltimes
    free = np.empty_like(times)
    segments = 1
    times[0] = 0
    free[0] = machine
    plan_times = np.empty(2 * (running + classes) + 6, np.int64)  # and beside the pivots
    plan_free = np.empty_like(plan_times)
    order = np.empty(classes, np.int64)
    nxt = 0
    while nxt < n or size > 0:
        now = np.int64(jobs[nxt, SUBMIT]) if nxt < n else NEVER
        if size > 0:
            now = min(now, heap[0] >> bits)
        segments = forget(times, free, segments, now)
        while size > 0 and (heap[0] >> bits) == now:
            j = heap[0] & low
            pop_key(heap, size)
            size -= 1
            expected = start[j] + jobs[j, WALLTIME]
            if expected > now:
                segments = change(times, free, segments, now, expected, np.int64(jobs[j, CORES]))
        while nxt < n and jobs[nxt, SUBMIT] == now:
            k = job_class[nxt]
            waiting[lists[k, LAST]] = nxt
            lists[k, LAST] += 1
            waits += 1
            nxt += 1
        if waits == 0 or free[0] == 0:
            continue

        # The pivots: one that can start now does, and all are planned anew.
        planning = True
        planned = 1
        while planning:
            planning = False
            pivots = 0
            for k in range(classes):
                if lists[k, FIRST] < lists[k, LAST]:
                    i = pivots
                    while i > 0 and waiting[lists[order[i - 1], FIRST]] > waiting[lists[k, FIRST]]:
                        order[i] = order[i - 1]
                        i -= 1
                    order[i] = k
                    pivots += 1
            planned = segments
            plan_times[:planned] = times[:planned]
            plan_free[:planned] = free[:planned]
            for x in range(pivots):
                k = order[x]
                j = waiting[lists[k, FIRST]]
                c, w = np.int64(jobs[j, CORES]), np.int64(jobs[j, WALLTIME])
                i, end = fit(plan_times, plan_free, planned, 0, c, w, NEVER)
                if i > 0:
                    planned = reserve(plan_times, plan_free, planned, i, end, c, w)
                    continue
                start[j] = now
                segments = change(times, free, segments, now, now + w, -c)
                push_key(heap, size, ((now + jobs[j, RUNTIME]) << bits) | j)
                size += 1
                waits -= 1
                lists[k, FIRST] += 1
                planning = True
                break

        # The others, shortest class first.
        for k in range(classes):
            if plan_free[0] == 0:
                break
            kept = lists[k, FIRST] + 1
            for i in range(lists[k, FIRST] + 1, lists[k, LAST]):
                j = waiting[i]
                c, w = np.int64(jobs[j, CORES]), np.int64(jobs[j, WALLTIME])
                end = _fits_now(plan_times, plan_free, planned, c, w) if c <= plan_free[0] else 0
                if end == 0:
                    waiting[kept] = j
                    kept += 1
                    continue
                start[j] = now
                planned = reserve(plan_times, plan_free, planned, 0, end, c, w)
                segments = change(times, free, segments, now, now + w, -c)
                push_key(heap, size, ((now + jobs[j, RUNTIME]) << bits) | j)
                size += 1
                waits -= 1
            if lists[k, FIRST] < lists[k, LAST]:
                lists[k, LAST] = kept
