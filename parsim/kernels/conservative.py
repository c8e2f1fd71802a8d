"""Conservative backfilling: a job is promised a start when it is submitted, and no promise is ever broken.

References
----------
Mu'alem and Feitelson, IEEE TPDS 12(6), 2001, section 2.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from parsim.kernels.profile import Profile, change, fit, forget
from parsim.kernels.running import pop_key, push_key
from parsim.kernels.state import NEVER, routine, step
from parsim.kernels.windows import apply_windows, next_instant


@njit(cache=True, nogil=True)
def conservative(jobs, first, begin, machine, bits, windows, taken, instants, start):
    """Simulate conservative backfilling.

    A job that ends before its expected end gives the rest of its time back. Then each waiting job in turn, by
    submit, gives up its place and takes the earliest there is now, which is no later. A promise may then fall
    on an instant at which nothing else happens, so promises are events.

    Parameters
    ----------
    jobs : ndarray(JOB), shape (n,)
        Ascending by submit, but for the first; no job wider than the machine.
    first, begin
        As `parsim.kernels.multiqueue.multiqueue` takes them.
    machine : int
        Cores.
    bits : int
        Low bits of a key that hold a job.
    windows, taken, instants
        As `parsim.resuming.Begun` has them.
    start : ndarray(int64), shape (n,)
        Filled with each job's start.

    Returns
    -------
    promised : ndarray(int64), shape (n,)
        The start that each job was promised when it was submitted; of those that run already their start.
    """
    n = jobs.size
    promised = start.copy()
    planned = np.empty(n, np.int64)
    waiting = np.empty(n, np.int64)
    ends = np.empty(min(n, machine) + 1, np.int64)
    # Each running or waiting job has at most two ends of its own, and a change cuts twice before it joins.
    longest = 2 * (n + windows.size) + 4
    idle = Profile(np.empty(longest, np.int64), np.empty(longest, np.int64))
    idle.times[0] = 0
    idle.free[0] = machine
    size = 1
    for j in range(first):
        push_key(ends, j, ((start[j] + jobs[j].runtime) << bits) | j)
        size = change(idle, size, start[j], start[j] + jobs[j].walltime, -np.int64(jobs[j].cores))
    size = forget(idle, size, begin)
    event_loop(jobs, first, begin, bits, windows, taken, instants, ends, waiting, planned, idle, size, start, promised)
    return promised


@step
def event_loop(
    jobs, resumed, begin, bits, windows, taken, instants, ends, waiting, planned, idle, size, start, promised
):
    """Simulate; fills `start` and `promised`. `ends` is a heap of real ends."""
    n = jobs.size
    waits = 0
    running = resumed
    arriving = resumed
    passed = 0
    now = begin - 1
    while arriving < n or waits > 0 or running > 0:
        before = now
        now = max(begin, np.int64(jobs[arriving].submit)) if arriving < n else NEVER
        if running > 0:
            now = min(now, ends[0] >> bits)
        for k in range(waits):
            now = min(now, planned[waiting[k]])
        now = min(now, next_instant(instants, passed))
        while next_instant(instants, passed) <= now:
            passed += 1
        size = forget(idle, size, now)

        early = False
        while running > 0 and (ends[0] >> bits) == now:
            j = ends[0] & ((np.int64(1) << bits) - 1)
            pop_key(ends, running)
            running -= 1
            expected = start[j] + jobs[j].walltime
            if expected > now:
                early = True
                size = change(idle, size, now, expected, np.int64(jobs[j].cores))
        known = False
        if windows.size:
            size, known = apply_windows(idle, size, windows, taken, before, now)
        if known:
            size = promise_anew(jobs, waiting, waits, planned, idle, size)
        elif early:
            size = compress(jobs, waiting, waits, planned, idle, size, now)
        while arriving < n and jobs[arriving].submit <= now:
            size = plan_earliest(jobs, arriving, planned, idle, size)
            promised[arriving] = planned[arriving]
            waiting[waits] = arriving
            waits += 1
            arriving += 1

        kept = 0
        for k in range(waits):
            j = waiting[k]
            if planned[j] > now:
                waiting[kept] = j
                kept += 1
            else:
                start[j] = now
                push_key(ends, running, ((now + jobs[j].runtime) << bits) | j)
                running += 1
        waits = kept


@routine
def promise_anew(jobs, waiting, waits, planned, idle, size):
    """Withdraw every promise, and plan the waiting jobs by submission (rule 31)."""
    for k in range(waits):
        j = waiting[k]
        size = change(idle, size, planned[j], planned[j] + jobs[j].walltime, np.int64(jobs[j].cores))
    for k in range(waits):
        size = plan_earliest(jobs, waiting[k], planned, idle, size)
    return size


@step
def compress(jobs, waiting, waits, planned, idle, size, now):
    """Plan each waiting job again, in order of submission, at the earliest start there is beside all others."""
    for k in range(waits):
        j = waiting[k]
        if planned[j] > now:
            size = change(idle, size, planned[j], planned[j] + jobs[j].walltime, np.int64(jobs[j].cores))
            size = plan_earliest(jobs, j, planned, idle, size)
    return size


@routine
def plan_earliest(jobs, j, planned, idle, size):
    """Plan job j at the earliest start there is beside all that are planned."""
    cores, walltime = np.int64(jobs[j].cores), np.int64(jobs[j].walltime)
    i, _ = fit(idle, size, 0, cores, walltime, NEVER)
    planned[j] = idle.times[i]
    return change(idle, size, planned[j], planned[j] + walltime, -cores)
