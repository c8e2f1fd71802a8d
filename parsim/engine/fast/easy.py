"""EASY and FCFS on one list with cores of its own, in an order that is constant but for jobs that begin to starve.

The loop simulates every list without limits, reservations or a pool, and is the inner loop of the exact search. It is
several times as fast as `parsim.engine.events`: it looks at a waiting job again only after an end or a change of the
head job, and scans the list in blocks that the compiler turns into vector instructions.

References
----------
Mu'alem and Feitelson, IEEE TPDS 12(6), 2001, section 2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.compile.compiled import on_disk
from parsim.engine.resources.running import (
    add_running,
    available,
    first_instant,
    last_instant,
    pop_key,
    push_key,
    remove_running,
)
from parsim.engine.simulation import BLOCK, LONGEST, NEVER, Running, step

ONE = np.uint64(1)
STARTED = np.int32(0)  # replaces the cores of a job that has started


class Ranked(NamedTuple):
    """The waiting list, ascending by rank."""

    cores: NDArray[np.int32]
    walltime: NDArray[np.int32]
    rank: NDArray[np.int32]


@on_disk
def easy(jobs, first, begin, machine, backfill, bits, rank, ranked, wake_ups, looks, more, start):
    """Schedule `jobs` on `machine` cores.

    Parameters
    ----------
    jobs : ndarray(JOB), shape (n,)
        Ascending by submit after the first `first`; no job wider than the machine.
    first : int
        Number of jobs that run when the simulation begins; their starts are in `start`.
    begin : int
        First instant at which anything is decided.
    machine : int
        Cores.
    backfill : bool
        EASY; False is FCFS.
    bits : int
        Number of low bits of a key that hold a job.
    rank : ndarray(int32), shape (n,)
        Place of each job in the order, from 0; of job j that starves on arrival, j - n.
    ranked : ndarray(int32), shape (n,)
        The job at each place.
    wake_ups : ndarray(int64), shape (m,)
        Keys of the instants at which jobs begin to starve, ascending.
    looks, more : int
        Looks at entries of the waiting list before the loop gives up, and looks that each submitted job adds.
    start : ndarray(int64), shape (n,)
        Filled with each job's start; -1 if the loop gave up, or left the instants that a key can hold, before.
    """
    n = jobs.size
    most = min(n, machine)
    ends = np.empty(most + 1, np.int64)
    running = Running(np.empty(most + 1, np.int64), np.empty(most + 1, np.int32))
    waiting = Ranked(np.empty(n + BLOCK, np.int32), np.empty(n + BLOCK, np.int32), np.empty(n + BLOCK, np.int32))
    start[first:] = -1
    event_loop(
        jobs, first, begin, machine, backfill, bits, rank, ranked, wake_ups, looks, more, ends, running, waiting, start
    )


@step
def event_loop(
    jobs, resumed, begin, machine, backfill, bits, rank, ranked, wake_ups, looks, more, ends, running, waiting, start
):
    """Simulate, and fill `start`; `resumed` is `first` of `easy`, `ends` a heap of real ends."""
    n = jobs.size
    free = np.int64(machine)
    size = 0  # running jobs
    first = np.uint64(0)  # the waiting list is [first, last)
    last = np.uint64(0)
    planned = False  # shadow and extra stand
    shadow = np.int64(0)
    extra = np.int64(0)
    while size < resumed:
        begin_job(jobs, size, start[size], bits, ends, running, size, start)
        free -= jobs[size].cores
        size += 1
    arriving = np.uint64(resumed)
    count = np.uint64(n)
    wake = np.uint64(0)
    horizon = last_instant(bits)
    while arriving < count or size > 0:
        now = max(begin, np.int64(jobs[arriving].submit)) if arriving < count else NEVER
        if size > 0:
            now = min(now, ends[0] >> bits)
        now, wake = next_wake_up(wake_ups, wake, start, bits, now)
        if looks < 0 or now > horizon:
            break

        before = size
        while size > 0 and (ends[0] >> bits) == now:
            free += jobs[end_job(jobs, ends, running, size, bits, start)].cores
            size -= 1
        rescan = size < before  # else a job that waited before could not start and still cannot
        while wake < np.uint64(wake_ups.size) and (wake_ups[wake] >> bits) == now:
            j = job_in(wake_ups[wake], bits)
            if start[j] < 0:
                rescan |= begin_starving(waiting, first, rank[j], np.int32(np.int64(j) - n))
            wake += ONE
        stop = arriving
        while stop < count and jobs[stop].submit <= now:
            if stop > arriving and rank[stop] < rank[stop - ONE]:
                rescan = True
            stop += ONE
        looks += more * np.int64(stop - arriving)

        while arriving < stop and not rescan:
            j = arriving
            c = jobs[j].cores
            w = jobs[j].walltime
            starts = False
            if first == last:
                planned = False
                starts = c <= free
            elif rank[j] < waiting.rank[first]:
                rescan = True  # it will be the head job
                break
            elif c <= free and backfill:
                if not planned:
                    shadow, extra = shadow_time(running, size, free, np.int64(waiting.cores[first]), now, bits)
                    planned = True
                starts = now + w <= shadow
                if not starts and c <= extra:
                    starts = True
                    extra -= c
            if starts:
                begin_job(jobs, j, now, bits, ends, running, size, start)
                free -= c
                size += 1
            else:
                if add_waiting(waiting, first, last, c, w, rank[j]):
                    looks -= np.int64(last - first)
                last += ONE
            arriving += ONE
        if not rescan:
            continue

        planned = False
        while arriving < stop:
            if add_waiting(waiting, first, last, jobs[arriving].cores, jobs[arriving].walltime, rank[arriving]):
                looks -= np.int64(last - first)
            last += ONE
            arriving += ONE
        while first < last and waiting.cores[first] <= free:
            free -= waiting.cores[first]
            begin_job(jobs, job_of(waiting.rank[first], ranked), now, bits, ends, running, size, start)
            size += 1
            first += ONE
        if first == last:
            first = np.uint64(0)
            last = np.uint64(0)
            continue
        if not backfill or free == 0 or last - first < 2:
            continue

        # Section 2: a job may pass the head job if it ends by the shadow time or fits in the extra cores.
        shadow, extra = shadow_time(running, size, free, np.int64(waiting.cores[first]), now, bits)
        planned = True
        looks -= np.int64(last - first)
        slack = min(shadow - now, LONGEST)
        kept = last  # where the next job that stays goes, once one has left
        i = first + ONE
        while i < last and free > 0:
            if any_may_start(waiting, i, free, slack, extra):
                for k in range(i, min(i + np.uint64(BLOCK), last)):
                    c = waiting.cores[k]
                    w = waiting.walltime[k]
                    if c <= free and (w <= slack or c <= extra):
                        if w > slack:
                            extra -= c
                        begin_job(jobs, job_of(waiting.rank[k], ranked), now, bits, ends, running, size, start)
                        free -= c
                        size += 1
                        waiting.cores[k] = STARTED
                        if kept == last:
                            kept = k
            i += np.uint64(BLOCK)
        if kept < last:
            last = drop_started(waiting, kept, last)


@step
def next_wake_up(wake_ups, wake, start, bits, now):
    """Return `now` or, if earlier, when the next waiting job begins to starve; and the index of the next wake-up."""
    while wake < np.uint64(wake_ups.size) and (wake_ups[wake] >> bits) <= now:
        if start[job_in(wake_ups[wake], bits)] < 0:
            return wake_ups[wake] >> bits, wake
        wake += ONE
    return now, wake


@step
def begin_starving(waiting, first, was, rank):
    """Move a waiting job from rank `was` to `rank` among the starving; return whether it passed another job."""
    i = first
    while waiting.rank[i] != was:
        i += ONE
    return add_waiting(waiting, first, i, waiting.cores[i], waiting.walltime[i], rank)


@step
def end_job(jobs, ends, running, size, bits, start):
    """End the job whose real end comes first, of `size` running jobs; return its number."""
    j = job_in(ends[0], bits)
    pop_key(ends, size)
    remove_running(running, 0, size, ((start[j] + jobs[j].walltime) << bits) | np.int64(j))
    return j


@step
def begin_job(jobs, j, now, bits, ends, running, size, start):
    """Start job j beside `size` running jobs."""
    start[j] = now
    push_key(ends, size, ((now + jobs[j].runtime) << bits) | np.int64(j))
    add_running(running, 0, size, ((now + jobs[j].walltime) << bits) | np.int64(j), jobs[j].cores)


@step
def shadow_time(running, size, free, need, now, bits):
    """Return the shadow time of a head job that needs more cores than are free, and the extra cores."""
    shadow = first_instant(running, 0, size, free, need, now, bits)
    return shadow, available(running, 0, size, free, shadow, bits) - need


@step
def any_may_start(waiting, i, free, slack, extra):
    """Whether any of the `BLOCK` entries from i on may be backfilled."""
    f32 = np.int32(free)
    s32 = np.int32(slack)
    e32 = np.int32(extra)
    hit = False
    for k in range(np.uint64(BLOCK)):
        c = waiting.cores[i + k]
        hit |= (c <= f32) & ((waiting.walltime[i + k] <= s32) | (c <= e32))
    return hit


@step
def add_waiting(waiting, first, i, c, w, r):
    """Insert a job of c cores, walltime w and rank r into ``first:i`` by rank; return whether it passed another."""
    end = i
    while i > first and waiting.rank[i - ONE] > r:
        copy_entry(waiting, i, i - ONE)
        i -= ONE
    waiting.cores[i] = c
    waiting.walltime[i] = w
    waiting.rank[i] = r
    return i < end


@step
def drop_started(waiting, kept, last):
    """Close the gaps of started jobs, the first at entry `kept`; return the end of the list."""
    for k in range(kept, last):
        if waiting.cores[k] != STARTED:
            copy_entry(waiting, kept, k)
            kept += ONE
    return kept


@step
def copy_entry(waiting, to, i):
    """Copy entry i to entry `to`."""
    waiting.cores[to] = waiting.cores[i]
    waiting.walltime[to] = waiting.walltime[i]
    waiting.rank[to] = waiting.rank[i]


@step
def job_in(key, bits):
    """Return the job of a key."""
    return np.uint64(key & ((np.int64(1) << bits) - 1))


@step
def job_of(r, ranked):
    """Return the job of a rank; starving jobs have negative ranks."""
    return np.uint64(r + ranked.size if r < 0 else ranked[r])
