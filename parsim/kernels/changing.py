"""EASY and FCFS on one list that is alone on its cores and whose order, a formula, changes as time passes.

This is the event loop of searches over formulas. Like `parsim.kernels.easy` it is a loop of its own, beside the one of
`parsim.kernels.machine`, because it was measured to be twice as fast: nothing starves, is held or has another place to go, so a list is
a few columns in the order of submission, and whoever goes first is found by looking through them.

References
----------
Mu'alem and Feitelson, IEEE TPDS 12(6), 2001, section 2.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from parsim.kernels.easy import CORES, NEVER, RUNTIME, SUBMIT, WALLTIME, shadow_of
from parsim.kernels.layout import inlined
from parsim.kernels.order import CHUNK, interpret
from parsim.kernels.running import add_running, pop_key, push_key, remove_running

GONE = np.int32(2**31 - 1)  # in place of the cores of an entry whose job has left


@njit(cache=True, nogil=True)
def changing(jobs, machine, backfill, bits, code, constants, columns, depth, start):
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
    code, constants, columns, depth
        The formula, as `parsim.kernels.order.interpret` takes it; the largest value goes first.
    start : ndarray(int64), shape (n,)
        Filled with each job's start.
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
    eligible = np.empty(CHUNK)
    stack = np.empty((depth, CHUNK))
    free = np.int64(machine)
    size = 0  # running jobs
    last = 0  # waiting jobs
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
        narrowest = GONE
        for i in range(last):
            narrowest = min(narrowest, wait_cores[i])
        if narrowest > free:
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
        slack = np.int64(0)  # of the candidates' walltimes, once there is a head
        extra = np.int64(machine)
        head = False
        while free > 0:
            i = first_of(value, wait_cores, wait_time, last, free if head else np.int64(machine), slack, extra)
            if i < 0:
                break
            j = np.int64(wait_job[i])
            c = np.int64(wait_cores[i])
            w = np.int64(wait_time[i])
            if c > free:
                if not backfill:
                    break
                head = True
                shadow, extra = shadow_of(ends, held, size, free, c, now, bits)
                slack = min(shadow - now, np.int64(GONE))
                continue
            if head and w > slack:
                extra -= c
            start[j] = now
            free -= c
            push_key(heap, size, ((now + jobs[j, RUNTIME]) << bits) | j)
            add_running(ends, held, 0, size, ((now + w) << bits) | j, c)
            size += 1
            wait_cores[i] = GONE
            kept = min(kept, i)
        for k in range(kept, last):
            if wait_cores[k] != GONE:
                wait_job[kept] = wait_job[k]
                wait_cores[kept] = wait_cores[k]
                wait_time[kept] = wait_time[k]
                kept += 1
        last = kept


@inlined
def first_of(value, wait_cores, wait_time, last, most, slack, extra):
    """Return who has the largest value of those up to `most` cores that end within `slack` or need no more than `extra`; else -1.

    Of equal ones the first that was submitted.
    """
    best = -1
    largest = -np.inf
    for i in range(last):
        c = wait_cores[i]
        if value[i] > largest and c <= most and (c <= extra or wait_time[i] <= slack):
            best = i
            largest = value[i]
    return best
