"""EASY and FCFS on one list that is alone on its cores and whose order is a time-dependent priority, a formula.

This is the event loop of searches over formulas. It is several times as fast as `parsim.engine.events`: nothing may
start elsewhere, so the list is a few columns, scanned in blocks. Of jobs that are alike it has the first only, so it is
also that of every other order where the queue is deep in jobs. Numbers ("rule 4") refer to
docs/reference/simulator.md.

References
----------
Mu'alem and Feitelson, IEEE TPDS 12(6), 2001, section 2; Srinivasan, Kettimuthu, Subramani and Sadayappan, HPDC 2002
(selective reservations).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.compile.native import by_pointer
from parsim.engine.fairshare import Fair, charge, stop_charging
from parsim.engine.fast.blocks import Blocks, add_job, remove_job, when_idle
from parsim.engine.fast.easy import ONE, job_in, next_wake_up
from parsim.engine.fast.holding import change_left, hold, hold_behind, hold_line, what_is_left
from parsim.engine.fast.values import (
    END,
    NOT_HELD,
    PASSED,
    WASTED,
    Chunk,
    Epoch,
    Valued,
    evaluate,
    set_bounds,
    settle,
)
from parsim.engine.lists.alike import NO_JOB, Lines, join, leave
from parsim.engine.resources.running import last_instant, pop_key, push_key
from parsim.engine.simulation import BLOCK, LONGEST, NEVER, Alike, Formula, kernel, step


class Limits(NamedTuple):
    """What running limits leave to the jobs that count in them: those of a queue, or of a user in a queue."""

    any: bool
    stop_time: bool  # the eligible time of the jobs they hold stands still
    left: NDArray[np.void]  # ALLOWANCE
    rows: NDArray[np.uint32]  # (n, 2): those of each job


@by_pointer
class OneList(NamedTuple):
    """Everything that the loop reads and writes."""

    jobs: NDArray[np.void]  # (n,) JOB, as `parsim.engine.fast.easy.easy` takes them
    start: NDArray[np.int64]  # (n,): given of the first `first` jobs, -1 of the others, and where a key cannot hold it
    first: int  # the job after those that run when the simulation begins
    begin: int  # first instant at which anything is decided
    machine: int  # cores
    backfill: bool  # EASY; False is FCFS, which no list with limits is
    reservation_delay: int  # seconds that a job has waited before it may be the head job
    bits: int  # low bits of a key that hold a job
    formula: Formula  # the largest value goes first
    fair: Fair  # what it reads of the users
    limits: Limits
    wake_ups: NDArray[np.int64]  # as `parsim.engine.fast.easy.easy` takes them
    lines: Lines
    alike: Alike  # the same lines as stretches of jobs
    origin: NDArray[np.int64]  # (n,): submit plus the seconds for which limits held each job; empty if time goes on
    since: NDArray[np.int64]  # (n,): instant from which limits hold it, or NEVER; as long
    epoch: Epoch
    waiting: Valued
    chunk: Chunk
    running: Blocks
    ends: NDArray[np.int64]  # heap of real ends


@kernel
def time_dependent(s):
    """Schedule the jobs of a `OneList` that was just made, and serves once; fills its `start`."""
    jobs, bits, limits, epoch, waiting = s.jobs, s.bits, s.limits, s.epoch, s.waiting
    n = jobs.size
    free = np.int64(s.machine)
    size = 0  # running jobs
    last = np.int64(0)  # entries of the waiting list
    while size < s.first:
        begin_job(s, size, s.start[size], size)
        free -= jobs[size].cores
        change_left(s, size, -1)
        charge(s.fair, size, s.start[size])
        size += 1
    arriving = s.first
    wake = np.uint64(0)
    horizon = last_instant(bits)

    while arriving < n or size > 0:
        now = max(s.begin, np.int64(jobs[arriving].submit)) if arriving < n else NEVER
        if size > 0:
            now = min(now, s.ends[0] >> bits)
        now, wake = next_wake_up(s.wake_ups, wake, s.start, bits, now)
        if now > horizon:
            break
        while wake < np.uint64(s.wake_ups.size) and (s.wake_ups[wake] >> bits) == now:
            wake += ONE
        while size > 0 and (s.ends[0] >> bits) == now:
            j = end_job(s, size)
            free += jobs[j].cores
            size -= 1
            change_left(s, j, 1)
            stop_charging(s.fair, j, now)
        while arriving < n and jobs[arriving].submit <= now:
            before = s.lines.last[s.lines.of[arriving]]
            if not join(s.lines, arriving):
                add_entry(s, last, arriving)
                last += 1
            elif limits.stop_time and s.since[before] != NEVER:
                s.since[arriving] = now
            arriving += 1
        if last == 0:
            continue
        least, any_holds = hold(s, last, now) if limits.any else (narrowest(waiting, last), False)
        if least > free and not any_holds:
            continue

        if last * s.formula.code.shape[0] >= epoch.many:
            set_bounds(s, last, now)
        else:
            epoch.clock[END] = -1
            evaluate(s, last, now)
        latest = now - s.reservation_delay if s.reservation_delay > 0 else NEVER
        while True:
            head = first_entry(s, last, free, latest, now)
            if head < 0 or waiting.cores[head] > free:
                break
            free -= waiting.cores[head]
            last = start_entry(s, last, head, NO_JOB, now, size)
            size += 1
        if head >= 0 and s.backfill:
            reserved = waiting.job[head]
            count_entry(s, last, head, reserved, now)
            shadow, extra = when_idle(s.running, free, np.int64(waiting.cores[head]), bits)
            extra -= waiting.cores[head]
            slack = min(shadow - now, LONGEST)
            while True:
                i = first_beside(s, last, free, slack, extra, now)
                if i < 0:
                    break
                free -= waiting.cores[i]
                if waiting.walltime[i] > slack:
                    extra -= waiting.cores[i]
                last = start_entry(s, last, i, reserved, now, size)
                size += 1
            change_left(s, reserved, 1)


@step
def add_entry(s, last, j):
    """Add a job that arrives, the first of its line, as the last entry."""
    waiting, job = s.waiting, s.jobs[j]
    waiting.job[last] = j
    waiting.cores[last] = job.cores
    waiting.walltime[last] = job.walltime
    waiting.origin[last] = job.submit
    waiting.held[last] = NOT_HELD
    waiting.bound[last] = np.inf


@step
def start_entry(s, last, i, reserved, now, size):
    """Start the job of entry i beside `size` running ones, and let another take its place; return the list's end."""
    j = s.waiting.job[i]
    begin_job(s, j, now, size)
    charge(s.fair, j, now)
    count_entry(s, last, i, reserved, now)
    return succeed(s, last, i, now)


@step
def succeed(s, last, i, now):
    """Let the next job alike take entry i, whose job has started, or the last entry; return the end of the list."""
    jobs, waiting, limits = s.jobs, s.waiting, s.limits
    j = leave(s.lines, waiting.job[i])
    if j == NO_JOB:
        move(waiting, i, last - 1)
        return last - 1
    waiting.job[i] = j
    waiting.origin[i] = s.origin[j] if limits.stop_time else jobs[j].submit
    waiting.held[i] = NOT_HELD
    waiting.bound[i] = np.inf
    if limits.any:
        more, cores = what_is_left(limits, j)
        if more < 1 or cores < waiting.cores[i]:
            hold_line(s, i, now)
            return last
    settle(s, i, now)
    return last


@step
def move(waiting, to, i):
    """Overwrite entry `to` by the last one, i."""
    waiting.job[to] = waiting.job[i]
    waiting.cores[to] = waiting.cores[i]
    waiting.walltime[to] = waiting.walltime[i]
    waiting.value[to] = waiting.value[i]
    waiting.origin[to] = waiting.origin[i]
    waiting.held[to] = waiting.held[i]
    waiting.bound[to] = waiting.bound[i]
    waiting.known[to] = waiting.known[i]


@step
def narrowest(waiting, last):
    """Return the least cores of a waiting job."""
    least = LONGEST
    for i in range(last):
        least = min(least, np.int64(waiting.cores[i]))
    return least


@step
def count_entry(s, last, i, reserved, now):
    """From here on, as entry i has started or is the head, its limits count it, and may hold jobs behind it.

    `reserved` is the head job, or `NO_JOB`; of those alike with it the others are not in the list, as behind any first.
    """
    j, value = s.waiting.job[i], s.waiting.value[i]
    s.waiting.value[i] = PASSED
    change_left(s, j, -1)
    more, cores = what_is_left(s.limits, j)
    if more <= 0 or cores <= LONGEST:
        hold_behind(s, last, j, value, reserved, now)


@step
def first_entry(s, last, free, latest, now):
    """Return the entry that goes first of those that fit or, submitted by `latest`, may be the head job; or -1."""
    waiting, epoch = s.waiting, s.epoch
    epoch.clock[WASTED] -= 1
    best = np.int64(-1)
    largest = PASSED
    while True:
        for block in range(0, last, BLOCK):
            end = min(block + BLOCK, last)
            if not any_reaches(waiting, np.uint64(block), np.uint64(end), largest):
                continue
            for i in range(block, end):
                v = waiting.value[i]
                if v >= largest and goes_before(waiting, i, best, largest):
                    if latest == NEVER or waiting.cores[i] <= free or s.jobs[waiting.job[i]].submit <= latest:
                        best = i
                        largest = v
        if best < 0 or epoch.clock[END] < 0 or waiting.known[best]:
            return best
        settle(s, best, now)
        largest = waiting.value[best]
        epoch.clock[WASTED] += 1


@step
def goes_before(waiting, i, best, largest):
    """Whether entry i, of no smaller value, goes before the entry `best`, which has the largest, or is -1."""
    v = waiting.value[i]
    return v > largest or (v > PASSED and waiting.job[i] < waiting.job[best])


@step
def any_reaches(waiting, i, end, largest):
    """Whether any of the entries ``i:end`` has a value of at least the largest."""
    hit = False
    for k in range(i, end):  # with a constant number of them the compiler makes a jump of each
        hit |= waiting.value[k] >= largest
    return hit


@step
def first_beside(s, last, free, slack, extra, now):
    """Return the entry that goes first of those that may start beside the head job; or -1."""
    waiting, epoch = s.waiting, s.epoch
    epoch.clock[WASTED] -= 1
    best = np.int64(-1)
    largest = PASSED
    while True:
        for block in range(0, last, BLOCK):
            if not any_beside(waiting, np.uint64(block), largest, free, slack, extra):
                continue
            for i in range(block, min(block + BLOCK, last)):
                c = waiting.cores[i]
                v = waiting.value[i]
                if c <= free and v >= largest and (waiting.walltime[i] <= slack or c <= extra):
                    if goes_before(waiting, i, best, largest):
                        best = i
                        largest = v
        if best < 0 or epoch.clock[END] < 0 or waiting.known[best]:
            return best
        settle(s, best, now)
        largest = waiting.value[best]
        epoch.clock[WASTED] += 1


@step
def any_beside(waiting, i, largest, free, slack, extra):
    """Whether any of these may, besides, start beside the head job."""
    f32, s32, e32 = np.int32(free), np.int32(slack), np.int32(extra)
    hit = False
    for k in range(np.uint64(BLOCK)):
        c = waiting.cores[i + k]
        fits = (c <= f32) & ((waiting.walltime[i + k] <= s32) | (c <= e32))
        hit |= fits & (waiting.value[i + k] >= largest)
    return hit


@step
def begin_job(s, j, now, size):
    """Start job j beside `size` running ones."""
    job = s.jobs[j]
    s.start[j] = now
    push_key(s.ends, size, ((now + job.runtime) << s.bits) | np.int64(j))
    add_job(s.running, ((now + job.walltime) << s.bits) | np.int64(j), job.cores)


@step
def end_job(s, size):
    """End the job, of `size` running ones, whose real end comes first; return its number."""
    j = job_in(s.ends[0], s.bits)
    pop_key(s.ends, size)
    remove_job(s.running, ((s.start[j] + s.jobs[j].walltime) << s.bits) | np.int64(j))
    return j
