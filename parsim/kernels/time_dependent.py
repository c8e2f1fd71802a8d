"""EASY and FCFS on one list that is alone on its cores and whose order is a time-dependent priority, a formula.

This is the event loop of searches over formulas. It is several times as fast as `parsim.kernels.general`: nothing may
start elsewhere, so the list is a few columns in the order of submission. Of jobs that are alike it has the first only,
so it is also that of every other order where the queue is deep in jobs. Numbers ("rule 4") refer to
docs/reference/simulator.md.

References
----------
Mu'alem and Feitelson, IEEE TPDS 12(6), 2001, section 2; Srinivasan, Kettimuthu, Subramani and Sadayappan, HPDC 2002
(selective reservations).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from parsim.kernels.alike import NO_JOB, Lines, join, leave
from parsim.kernels.easy import ONE, begin_job, end_job, next_wake_up, shadow_time
from parsim.kernels.order import CHUNK
from parsim.kernels.running import last_instant
from parsim.kernels.state import LONGEST, NEVER, Running, step
from parsim.kernels.values import END, NOT_HELD, PASSED, WASTED, Chunk, Epoch, Valued, evaluate, set_bounds, settle

STARTED = np.int32(0)  # in place of the cores of an entry whose job has started


class Limits(NamedTuple):
    """What running limits leave to the jobs that count in them: those of a queue, or of a user in a queue."""

    any: bool
    stop_time: bool  # the eligible time of the jobs they hold stands still
    left: NDArray[np.void]  # ALLOWANCE
    rows: NDArray[np.uint32]  # (n, 2): those of each job


@njit(cache=True, nogil=True)
def time_dependent(
    jobs,
    first,
    begin,
    of,
    longest,
    many,
    machine,
    backfill,
    reservation_delay,
    bits,
    formula,
    limited,
    stop_time,
    left,
    rows,
    wake_ups,
    start,
):
    """Schedule `jobs` on `machine` cores.

    Parameters
    ----------
    jobs, first, begin
        As `parsim.kernels.easy.easy` takes them.
    of : ndarray(int32), shape (n,)
        Which jobs are alike, `parsim.kernels.alike.Lines`. With limits the formula's eligible time sets them apart.
    longest : int
        No job waits longer, seconds.
    many : int
        Where one instant needs so many instructions for the values of all, only those of the first jobs are computed;
        `NEVER` where the value of a job may fall while it waits.
    machine, backfill
        As `parsim.kernels.easy.easy` takes them; with limits always EASY.
    reservation_delay : int
        Seconds that a job has waited before it may be the head job.
    bits
        As `parsim.kernels.easy.easy` takes it.
    formula : Formula
        The largest value goes first.
    limited : bool
        Whether there are running limits.
    stop_time : bool
        Whether the eligible time of the jobs that they hold stands still.
    left : ndarray(ALLOWANCE), shape (a,)
        What they allow.
    rows : ndarray(uint32), shape (n, 2)
        The rows of `left` that each job counts in.
    wake_ups
        As `parsim.kernels.easy.easy` takes them.
    start : ndarray(int64), shape (n,)
        Filled with each job's start; -1 where it left the instants that a key can hold before.
    """
    n = jobs.size
    most = min(n, machine)
    ends = np.empty(most + 1, np.int64)
    running = Running(np.empty(most + 1, np.int64), np.empty(most + 1, np.int32))
    job, cores, walltime = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    value, origin, held, bound = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    waiting = Valued(job, cores, walltime, value, origin, held, bound, np.empty(n, np.bool_))
    epoch = Epoch(longest, many, np.array([-1, 1, 0]))
    chunk = Chunk(np.empty(CHUNK, np.int32), np.empty(CHUNK, np.int32))
    limits = Limits(limited, stop_time, left, rows)
    lines = Lines(of, np.full(of.max() + 1, NO_JOB, np.int32), np.empty(n, np.int32))
    start[first:] = -1
    event_loop(
        jobs,
        first,
        begin,
        lines,
        machine,
        backfill,
        reservation_delay,
        bits,
        formula,
        limits,
        wake_ups,
        ends,
        running,
        waiting,
        chunk,
        epoch,
        start,
    )


@step
def event_loop(
    jobs,
    resumed,
    begin,
    lines,
    machine,
    backfill,
    reservation_delay,
    bits,
    formula,
    limits,
    wake_ups,
    ends,
    running,
    waiting,
    chunk,
    epoch,
    start,
):
    """Simulate; fills `start`. `ends` is a heap of real ends."""
    n = jobs.size
    free = np.int64(machine)
    size = 0  # running jobs
    last = np.int64(0)  # entries of the waiting list
    while size < resumed:
        begin_job(jobs, size, start[size], bits, ends, running, size, start)
        free -= jobs[size].cores
        change_left(limits, jobs, size, -1)
        size += 1
    arriving = resumed
    wake = np.uint64(0)
    horizon = last_instant(bits)

    while arriving < n or size > 0:
        now = max(begin, np.int64(jobs[arriving].submit)) if arriving < n else NEVER
        if size > 0:
            now = min(now, ends[0] >> bits)
        now, wake = next_wake_up(wake_ups, wake, start, bits, now)
        if now > horizon:
            break
        while wake < np.uint64(wake_ups.size) and (wake_ups[wake] >> bits) == now:
            wake += ONE
        while size > 0 and (ends[0] >> bits) == now:
            j = end_job(jobs, ends, running, size, bits, start)
            free += jobs[j].cores
            size -= 1
            change_left(limits, jobs, j, 1)
        while arriving < n and jobs[arriving].submit <= now:
            if not join(lines, arriving):
                waiting.job[last] = arriving
                waiting.cores[last] = jobs[arriving].cores
                waiting.walltime[last] = jobs[arriving].walltime
                waiting.origin[last] = jobs[arriving].submit
                waiting.held[last] = NOT_HELD
                waiting.bound[last] = np.inf
                last += 1
            arriving += 1
        if last == 0:
            continue
        least, any_holds = hold(waiting, last, limits, now) if limits.any else (narrowest(waiting, last), False)
        if least > free and not any_holds:
            continue

        if last * formula.code.shape[0] >= epoch.many:
            set_bounds(waiting, last, formula, epoch, now)
        else:
            epoch.clock[END] = -1
            evaluate(waiting, last, formula, chunk, now)
        kept = last  # first entry whose job started
        latest = now - reservation_delay if reservation_delay > 0 else NEVER
        head = first_entry(jobs, waiting, last, formula, chunk, epoch, free, latest, now)
        while head >= 0 and waiting.cores[head] <= free:
            begin_job(jobs, waiting.job[head], now, bits, ends, running, size, start)
            free -= waiting.cores[head]
            size += 1
            count_entry(jobs, waiting, last, formula, chunk, epoch, limits, head, now)
            if not succeed(jobs, lines, waiting, formula, chunk, epoch, limits, head, now):
                kept = min(kept, head)
            head = first_entry(jobs, waiting, last, formula, chunk, epoch, free, latest, now)
        if head >= 0 and backfill:
            count_entry(jobs, waiting, last, formula, chunk, epoch, limits, head, now)
            shadow, extra = shadow_time(running, size, free, np.int64(waiting.cores[head]), now, bits)
            slack = min(shadow - now, LONGEST)
            i = first_beside(waiting, last, formula, chunk, epoch, free, slack, extra, now)
            while i >= 0:
                begin_job(jobs, waiting.job[i], now, bits, ends, running, size, start)
                free -= waiting.cores[i]
                size += 1
                if waiting.walltime[i] > slack:
                    extra -= waiting.cores[i]
                count_entry(jobs, waiting, last, formula, chunk, epoch, limits, i, now)
                if not succeed(jobs, lines, waiting, formula, chunk, epoch, limits, i, now):
                    kept = min(kept, i)
                i = first_beside(waiting, last, formula, chunk, epoch, free, slack, extra, now)
            change_left(limits, jobs, waiting.job[head], 1)
        last = drop_started(waiting, kept, last)


@step
def succeed(jobs, lines, waiting, formula, chunk, epoch, limits, i, now):
    """Let the next job alike take entry i, whose job has started; return whether there is one."""
    j = leave(lines, waiting.job[i])
    if j == NO_JOB:
        waiting.cores[i] = STARTED
        return False
    waiting.job[i] = j
    waiting.origin[i] = jobs[j].submit
    waiting.held[i] = NOT_HELD
    waiting.bound[i] = np.inf
    if limits.any:
        more, cores = what_is_left(limits, j)
        if more < 1 or cores < waiting.cores[i]:
            waiting.held[i] = now
            return True
    settle(waiting, formula, chunk, epoch, i, now)
    return True


@step
def narrowest(waiting, last):
    """Return the least cores of a waiting job."""
    least = LONGEST
    for i in range(last):
        least = min(least, np.int64(waiting.cores[i]))
    return least


@step
def hold(waiting, last, limits, now):
    """Hold the jobs that their limits leave no room now, and let go the others (rules 4 and 5).

    Returns
    -------
    least, any_holds : int, bool
        Least cores of a job not held; whether any of these may hold another if it is the head job.
    """
    least = LONGEST
    any_holds = False
    for i in range(last):
        c = np.int64(waiting.cores[i])
        more, cores = what_is_left(limits, waiting.job[i])
        if more < 1 or cores < c:
            waiting.held[i] = min(waiting.held[i], np.float64(now))
            continue
        if waiting.held[i] < NOT_HELD:
            if limits.stop_time:
                waiting.origin[i] += now - waiting.held[i]
            waiting.held[i] = NOT_HELD
        least = min(least, c)
        any_holds |= (more < 2) | (cores < 2 * c)
    return least, any_holds


@step
def what_is_left(limits, j):
    """How many more jobs and cores the limits of job j allow."""
    own, users = limits.left[limits.rows[j, 0]], limits.left[limits.rows[j, 1]]
    return min(own.jobs, users.jobs), min(own.cores, users.cores)


@step
def change_left(limits, jobs, j, sign):
    """Give back to the limits of job j what it counts, or take it."""
    for row in limits.rows[j]:
        left = limits.left[row]
        left.jobs += sign
        left.cores += sign * jobs[j].cores


@step
def count_entry(jobs, waiting, last, formula, chunk, epoch, limits, i, now):
    """From here on, as entry i has started or is the head, its limits count it, and may hold jobs behind it."""
    j, value = waiting.job[i], waiting.value[i]
    waiting.value[i] = PASSED
    change_left(limits, jobs, j, -1)
    more, cores = what_is_left(limits, j)
    if more > 0 and cores > LONGEST:
        return
    bounded = epoch.clock[END] >= 0
    for k in range(last):
        if bounded and waiting.value[k] >= value and not waiting.known[k]:
            settle(waiting, formula, chunk, epoch, k, now)
        v = waiting.value[k]
        if v > PASSED and (v < value or (v == value and waiting.job[k] > j)):
            more, cores = what_is_left(limits, waiting.job[k])
            if more < 1 or cores < waiting.cores[k]:
                waiting.held[k] = now
                waiting.value[k] = PASSED


@step
def first_entry(jobs, waiting, last, formula, chunk, epoch, free, latest, now):
    """Return the entry that goes first of those that fit or, submitted by `latest`, may be the head job; or -1."""
    epoch.clock[WASTED] -= 1
    while True:
        best = np.int64(-1)
        largest = PASSED
        for i in range(last):
            v = waiting.value[i]
            if v >= largest and goes_before(waiting, i, best, largest):
                if latest == NEVER or waiting.cores[i] <= free or jobs[waiting.job[i]].submit <= latest:
                    best = i
                    largest = v
        if best < 0 or epoch.clock[END] < 0 or waiting.known[best]:
            return best
        settle(waiting, formula, chunk, epoch, best, now)
        epoch.clock[WASTED] += 1


@step
def goes_before(waiting, i, best, largest):
    """Whether entry i, of no smaller value, goes before the entry `best`, which has the largest, or is -1."""
    v = waiting.value[i]
    return v > largest or (v > PASSED and waiting.job[i] < waiting.job[best])


@step
def first_beside(waiting, last, formula, chunk, epoch, free, slack, extra, now):
    """Return the entry that goes first of those that may start beside the head job; or -1."""
    epoch.clock[WASTED] -= 1
    while True:
        best = np.int64(-1)
        largest = PASSED
        for i in range(last):
            c = waiting.cores[i]
            v = waiting.value[i]
            if c <= free and v >= largest and (waiting.walltime[i] <= slack or c <= extra):
                if goes_before(waiting, i, best, largest):
                    best = i
                    largest = v
        if best < 0 or epoch.clock[END] < 0 or waiting.known[best]:
            return best
        settle(waiting, formula, chunk, epoch, best, now)
        epoch.clock[WASTED] += 1


@step
def drop_started(waiting, kept, last):
    """Close the gaps that started jobs left, the first at entry `kept`; return the end of the list."""
    for k in range(kept, last):
        if waiting.cores[k] != STARTED:
            waiting.job[kept] = waiting.job[k]
            waiting.cores[kept] = waiting.cores[k]
            waiting.walltime[kept] = waiting.walltime[k]
            waiting.origin[kept] = waiting.origin[k]
            waiting.held[kept] = waiting.held[k]
            waiting.bound[kept] = waiting.bound[k]
            kept += 1
    return kept
