"""Conservative backfilling: a job is promised a start when it is submitted, and no promise is ever broken.

References
----------
Mu'alem and Feitelson, IEEE TPDS 12(6), 2001, section 2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.kernels.alike import count_lines
from parsim.kernels.compiled import on_disk
from parsim.kernels.profile import Profile, change, find_segment, fit, forget
from parsim.kernels.running import ONE, last_instant, pop_key, push_key
from parsim.kernels.state import NEVER, routine, step
from parsim.kernels.windows import apply_windows, next_instant

#: The last try, of the jobs that are alike, to find an earlier start.
TRY = np.dtype(
    [
        ("turn", np.int64),  #: number of the event at which it was made
        ("planned", np.int64),  #: latest start of a job that was tried at this event
        ("earliest", np.int64),  #: no start before it was found for it
        ("given_up", np.int64),  #: how many places had been given up before
    ],
    align=True,
)


class Plan(NamedTuple):
    """The waiting jobs and what is promised to them."""

    waiting: NDArray[np.int64]  # by submit
    planned: NDArray[np.int64]  # (n,): start of each
    idle: Profile  # cores beside the running and waiting jobs
    tries: NDArray[np.void]  # (lines,) TRY
    given_up: NDArray[np.int64]  # begins of the places given up at this event


@on_disk
def conservative(jobs, first, begin, of, machine, bits, windows, taken, instants, start):
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
    of : ndarray(int32), shape (n,)
        Which jobs are alike, `parsim.kernels.alike.Lines`.
    machine : int
        Cores.
    bits : int
        Low bits of a key that hold a job.
    windows, taken, instants
        As `parsim.resuming.Begun` has them.
    start : ndarray(int64), shape (n,)
        Filled with each job's start; -1 where it left the instants that a key can hold before.

    Returns
    -------
    promised : ndarray(int64), shape (n,)
        The start that each job was promised when it was submitted, of those that run already their start.
    """
    n = jobs.size
    promised = start.copy()
    longest = 2 * (n + windows.size) + 4
    ends = np.empty(min(n, machine) + 1, np.int64)
    plan = Plan(
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        # Each running or waiting job has at most two ends of its own, and a change cuts twice before it joins.
        Profile(np.empty(longest, np.int64), np.empty(longest, np.int64)),
        np.zeros(count_lines(of), TRY),
        np.empty(n, np.int64),
    )
    idle = plan.idle
    idle.times[0] = 0
    idle.free[0] = machine
    size = 1
    for j in range(first):
        push_key(ends, j, ((start[j] + jobs[j].runtime) << bits) | j)
        size = change(idle, size, start[j], start[j] + jobs[j].walltime, -np.int64(jobs[j].cores))
    size = forget(idle, size, begin)
    event_loop(jobs, first, begin, of, bits, windows, taken, instants, ends, plan, size, start, promised)
    return promised


@step
def event_loop(jobs, resumed, begin, of, bits, windows, taken, instants, ends, plan, size, start, promised):
    """Simulate; fills `start` and `promised`. `ends` is a heap of real ends."""
    n = jobs.size
    waiting, planned, idle = plan.waiting, plan.planned, plan.idle
    waits = 0
    running = resumed
    arriving = resumed
    passed = 0
    now = begin - 1
    turn = 0
    soonest = NEVER  # of the promises
    horizon = last_instant(bits)
    while arriving < n or waits > 0 or running > 0:
        before = now
        now = max(begin, np.int64(jobs[arriving].submit)) if arriving < n else NEVER
        if running > 0:
            now = min(now, ends[0] >> bits)
        now = min(now, soonest, next_instant(instants, passed))
        if now > horizon:
            break
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
            soonest, size = promise_anew(jobs, plan, waits, size)
        elif early and waits > 0:
            turn += 1
            soonest, size = compress(jobs, of, plan, waits, size, now, turn)
        while arriving < n and jobs[arriving].submit <= now:
            cores, walltime = np.int64(jobs[arriving].cores), np.int64(jobs[arriving].walltime)
            i, _ = fit(idle, size, 0, cores, walltime, NEVER)
            planned[arriving] = idle.times[i]
            size = change(idle, size, planned[arriving], planned[arriving] + walltime, -cores)
            promised[arriving] = planned[arriving]
            soonest = min(soonest, planned[arriving])
            waiting[waits] = arriving
            waits += 1
            arriving += 1

        if soonest > now:
            continue
        soonest = NEVER
        kept = 0
        for k in range(waits):
            j = waiting[k]
            if planned[j] > now:
                waiting[kept] = j
                kept += 1
                soonest = min(soonest, planned[j])
            else:
                start[j] = now
                push_key(ends, running, ((now + jobs[j].runtime) << bits) | j)
                running += 1
        waits = kept


@routine
def promise_anew(jobs, plan, waits, size):
    """Withdraw every promise, and plan the waiting jobs by submission (rule 32); as `compress` returns."""
    planned, idle = plan.planned, plan.idle
    soonest = NEVER
    for j in plan.waiting[:waits]:
        size = change(idle, size, planned[j], planned[j] + jobs[j].walltime, np.int64(jobs[j].cores))
    for j in plan.waiting[:waits]:
        cores, walltime = np.int64(jobs[j].cores), np.int64(jobs[j].walltime)
        i, _ = fit(idle, size, 0, cores, walltime, NEVER)
        planned[j] = idle.times[i]
        size = change(idle, size, planned[j], planned[j] + walltime, -cores)
        soonest = min(soonest, planned[j])
    return soonest, size


@step
def compress(jobs, of, plan, waits, size, now, turn):
    """Plan each waiting job again, in order of submission, at the earliest start there is beside all others.

    Returns
    -------
    soonest, size : int
        The first of the starts; the number of segments.
    """
    planned, idle, given_up = plan.planned, plan.idle, plan.given_up
    soonest = NEVER
    places = np.int64(0)
    for k in range(waits):
        j = plan.waiting[k]
        begin = planned[j]
        if begin > now:
            cores, walltime = np.int64(jobs[j].cores), np.int64(jobs[j].walltime)
            # Where a job like it, planned no later, was tried, only what was given up since can make room earlier.
            last = plan.tries[of[j]]
            earliest = now
            if last.turn == turn and last.planned <= begin:
                earliest = last.earliest
                for place in given_up[last.given_up : places]:
                    earliest = min(earliest, place - walltime)
            instant = begin
            if earliest < begin:
                instant = find_earlier(idle, size, earliest, cores, walltime, begin)
            last.turn = turn
            last.planned = begin
            last.earliest = instant
            last.given_up = places
            if instant < begin:
                size = change(idle, size, begin, begin + walltime, cores)
                size = change(idle, size, instant, instant + walltime, -cores)
                planned[j] = instant
                given_up[places] = begin
                places += 1
        soonest = min(soonest, planned[j])
    return soonest, size


@routine
def find_earlier(idle, size, earliest, cores, walltime, begin):
    """Find the first start at or after `earliest` of a job that is planned at `begin`; `begin` if there is none before.

    Its own place is free for it, so that beside the others its cores need idle until `begin` only.
    """
    times, free = idle
    i, last = np.uint64(find_segment(idle, size, earliest)), np.uint64(size)
    while True:
        while i < last and free[i] < cores:
            i += ONE
        if i >= last or times[i] >= begin:
            return begin
        end = min(times[i] + walltime, begin)
        j = i + ONE
        while j < last and times[j] < end and free[j] >= cores:
            j += ONE
        if j == last or times[j] >= end:
            return times[i]
        i = j + ONE
