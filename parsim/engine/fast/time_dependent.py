"""EASY and FCFS on one list with cores of its own, ordered by a time-dependent priority, a formula.

This is the event loop of searches over formulas. It is several times as fast as `parsim.engine.events`: its jobs start
on one partition, so that the list is a few columns, scanned in blocks. The directory of `parsim.engine.fast.listed`
skips jobs that may not start, so the loop simulates every other order in deep queues, too. Names of rules refer to
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
from parsim.engine.fast.holding import hold, hold_behind, hold_line
from parsim.engine.fast.listed import (
    ALL,
    JOBS,
    KEPT,
    NOT_HELD,
    PASSED,
    USED,
    Directory,
    Listed,
    Wanted,
    add_entry,
    any_block_has,
    any_fits,
    change_left,
    class_of,
    group_of,
    may_have,
    remove_entry,
    set_top,
    what_is_left,
)
from parsim.engine.fast.values import (
    PASS,
    SCANNED,
    WASTED,
    Batch,
    Epoch,
    evaluate,
    evaluate_entry,
    is_exact,
    is_known,
    set_bounds,
    value_at,
)
from parsim.engine.lists.alike import NO_JOB, Lines, join, leave
from parsim.engine.resources.running import last_instant, pop_key, push_key
from parsim.engine.simulation import BLOCK, LONGEST, NEVER, Alike, Formula, kernel, routine, step

# A scan for the largest bound, then one for values above the value of that entry: so few values are computed.
BY_BOUND, BY_VALUE = range(2)


class Limits(NamedTuple):
    """What running limits still allow: those of each queue, and of each user in a queue."""

    any: bool  # whether there are limits
    stop_time: bool  # whether the eligible time of held jobs stands still
    left: NDArray[np.void]  # ALLOWANCE
    rows: NDArray[np.uint32]  # (n, 2): rows of `left` of each job


@by_pointer
class OneList(NamedTuple):
    """Everything that the loop reads and writes."""

    jobs: NDArray[np.void]  # (n,) JOB, as `parsim.engine.fast.easy.easy` takes them
    start: NDArray[np.int64]  # (n,): given for the first `first` jobs; -1 for others, also if no key holds their start
    first: int  # number of jobs that run when the simulation begins
    begin: int  # first instant at which anything is decided
    machine: int  # cores
    backfill: bool  # EASY; False is FCFS, without limits
    reserves: bool  # a head job reserves cores; else it stops its list after a delay (rule "nothing reserved")
    reservation_delay: int  # seconds that a job must wait before it may be the head job
    bits: int  # number of low bits of a key that hold a job
    formula: Formula  # the largest value goes first
    fair: Fair  # the values of users that the formula reads
    limits: Limits
    wake_ups: NDArray[np.int64]  # as `parsim.engine.fast.easy.easy` takes them
    lines: Lines
    alike: Alike  # the same lines as stretches of jobs
    origin: NDArray[np.int64]  # (n,): submit plus the seconds for which limits held each job; empty without `stop_time`
    since: NDArray[np.int64]  # (n,): instant from which limits hold each job, or NEVER; as long
    epoch: Epoch
    waiting: Listed
    directory: Directory
    batch: Batch
    running: Blocks
    ends: NDArray[np.int64]  # heap of real ends


@kernel
def time_dependent(s):
    """Schedule the jobs of a new `OneList`, which cannot be used again; fill its `start`."""
    jobs, bits, limits, epoch, waiting, directory = s.jobs, s.bits, s.limits, s.epoch, s.waiting, s.directory
    n = jobs.size
    free = np.int64(s.machine)
    size = 0  # running jobs
    while size < s.first:
        begin_job(s, size, s.start[size], size)
        free -= jobs[size].cores
        change_left(s, size, -1)
        charge(s.fair, size, s.start[size])
        size += 1
    arriving = s.first
    eligible = np.int64(s.first) if s.reserves and s.reservation_delay > 0 else NEVER  # no job from it on is a head job
    wake = np.uint64(0)
    horizon = last_instant(bits)
    waits_first = NO_JOB
    since = np.int64(0)  # instant since which `waits_first` has been the first that may not start

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
                i = add_entry(s, arriving, group_of(s, arriving))
                if epoch.exact:
                    evaluate_entry(s, i, now)
            elif limits.stop_time and s.since[before] != NEVER:
                s.since[arriving] = now
            arriving += 1
        while eligible < arriving and now - jobs[eligible].submit >= s.reservation_delay:
            eligible += 1
        if directory.state[JOBS] == 0:
            continue
        any_holds = hold(s, now) if limits.stop_time else not s.reserves
        if not any_holds and not any_fits(s, free):
            continue

        epoch.clock[PASS] += 1
        if directory.state[JOBS] * s.formula.code.shape[0] >= epoch.many:
            set_bounds(s, now)
        else:
            evaluate(s, now)
        while True:
            head = first_entry(s, LONGEST, np.int64(-1), free, eligible, NO_JOB, now)
            if head < 0 or waiting.cores[head] > free:
                break
            free -= waiting.cores[head]
            start_entry(s, head, NO_JOB, now, size)
            size += 1
        if head < 0 or not s.backfill:
            continue
        reserved = waiting.job[head]
        slack, extra = LONGEST, free
        if s.reserves:
            count_entry(s, head, reserved, now)
            shadow, idle = when_idle(s.running, free, np.int64(waiting.cores[head]), bits)
            extra = idle - waiting.cores[head]
            slack = min(shadow - now, LONGEST)
        else:
            if reserved != waits_first:
                waits_first, since = reserved, now
            if now - since >= s.reservation_delay:
                continue
        while True:
            i = first_entry(s, free, slack, min(extra, free), np.int64(0), reserved, now)
            if i < 0:
                break
            free -= waiting.cores[i]
            if waiting.walltime[i] > slack:
                extra -= waiting.cores[i]
            start_entry(s, i, reserved, now, size)
            size += 1
        if s.reserves:
            change_left(s, reserved, 1)


@step
def start_entry(s, i, reserved, now, size):
    """Start the job of entry i beside `size` running jobs, and remove it from the list; `reserved`: the head job."""
    j = s.waiting.job[i]
    begin_job(s, j, now, size)
    charge(s.fair, j, now)
    count_entry(s, i, reserved, now)
    promote_next(s, i, now)


@step
def promote_next(s, i, now):
    """Put the next job alike into entry i, whose job has started; without one, remove the entry."""
    jobs, waiting, limits, b = s.jobs, s.waiting, s.limits, np.int64(i) // BLOCK
    j = leave(s.lines, waiting.job[i])
    if j == NO_JOB:
        remove_entry(s, i)
        return
    waiting.job[i] = j
    waiting.origin[i] = s.origin[j] if limits.stop_time else jobs[j].submit
    waiting.held[i] = NOT_HELD
    waiting.bound[i] = np.inf
    waiting.known[i] = 0
    s.directory.noted[b] = -1
    held = waiting.cores[i] > s.directory.room[b]
    if held and limits.stop_time:
        hold_line(s, i, now)
    if held and not s.epoch.exact:
        set_top(s, b)
    else:
        evaluate_entry(s, i, now)


@step
def count_entry(s, i, reserved, now):
    """Count the job of entry i, which starts or is the head job, in its limits; record jobs that these hold now.

    `reserved` is the head job, or `NO_JOB`; jobs alike with it are not in the list.
    """
    if not s.limits.any:
        return
    j = s.waiting.job[i]
    change_left(s, j, -1)
    if s.limits.stop_time:
        more, cores = what_is_left(s.limits, j)
        if more <= 0 or cores <= LONGEST:
            hold_behind(s, j, value_at(s, i), reserved, now)


@routine
def first_entry(s, widest, slack, extra, eligible, reserved, now):
    """Return the entry that goes first of those that may start beside the head job, or be the head job; or -1.

    Their jobs have at most `widest` cores, and also walltimes up to `slack`, at most `extra` cores, or numbers below
    `eligible`; job `reserved` is left out.
    """
    waiting, d = s.waiting, s.directory
    used, kept, exact = d.state[USED], d.state[KEPT] > 0, is_exact(s)
    s.epoch.clock[WASTED] -= 1
    best, scanned = np.int64(-1), np.int64(0)
    largest = PASSED
    kind = class_of(d, slack) if kept else ALL
    wanted = Wanted(np.int32(widest), np.int32(slack), np.int32(extra), np.int32(min(eligible, LONGEST)), kind)
    for look in range(BY_VALUE if exact else BY_BOUND, BY_VALUE + 1):
        for batch in range(0, used, BLOCK):
            if kept and not any_block_has(d, np.uint64(batch), largest, wanted):
                continue
            for b in range(batch, min(batch + BLOCK, used)):
                begin, most = b * BLOCK, min(wanted.widest, d.room[b])
                if most <= 0 or (kept and not may_have(d, np.uint64(b), largest, wanted)):
                    continue
                scanned += BLOCK
                if d.count[b] == BLOCK and not any_wanted(waiting, np.uint64(begin), largest, most, wanted):
                    continue  # with fewer jobs a look at each costs less
                if not exact:
                    best, largest = first_in_epoch(s, b, most, wanted, reserved, best, largest, look, now)
                    continue
                for i in range(begin, begin + d.count[b]):
                    v = waiting.bound[i]
                    if v >= largest and may_start(waiting, i, most, wanted) and waiting.job[i] != reserved:
                        if goes_before(waiting, v, i, best, largest):
                            best = np.int64(i)
                            largest = v
        if best < 0:
            break
        if not exact:
            largest = look_at(s, best, BY_VALUE, now)
    s.epoch.clock[SCANNED] += scanned
    return best


@routine
def first_in_epoch(s, b, most, wanted, reserved, best, largest, look, now):
    """Return the first of entry `best`, or -1, and the wanted of block b; and its value or, by `look`, its bound."""
    waiting = s.waiting
    for i in range(b * BLOCK, b * BLOCK + s.directory.count[b]):
        if waiting.bound[i] >= largest and may_start(waiting, i, most, wanted) and waiting.job[i] != reserved:
            v = look_at(s, i, look, now)
            if v >= largest and goes_before(waiting, v, i, best, largest):
                best = np.int64(i)
                largest = v
    return best, largest


@step
def look_at(s, i, look, now):
    """Return the value of entry i at this instant; with look `BY_BOUND` its bound, if the value is not known."""
    if look == BY_VALUE and not is_known(s, i):
        evaluate_entry(s, i, now)
        s.epoch.clock[WASTED] += 1
    return value_at(s, i)


@step
def goes_before(waiting, v, i, best, largest):
    """Whether entry i, of value v from `largest` up, goes before entry `best` of value `largest`, which may be -1."""
    return v > largest or (v > PASSED and waiting.job[i] < waiting.job[best])


@step
def any_wanted(waiting, i, largest, most, wanted):
    """Whether any of the `BLOCK` entries from i on is wanted, and has a bound of at least `largest`."""
    hit = False
    for k in range(np.uint64(BLOCK)):
        hit |= may_start(waiting, i + k, most, wanted) & (waiting.bound[i + k] >= largest)
    return hit


@step
def may_start(waiting, i, most, wanted):
    """Whether entry i, with at most `most` cores, may start beside the head job, or be it."""
    c = waiting.cores[i]
    return (c <= most) & (
        (waiting.walltime[i] <= wanted.slack) | (c <= wanted.extra) | (waiting.job[i] < wanted.eligible)
    )


@step
def begin_job(s, j, now, size):
    """Start job j beside `size` running jobs."""
    job = s.jobs[j]
    s.start[j] = now
    push_key(s.ends, size, ((now + job.runtime) << s.bits) | np.int64(j))
    add_job(s.running, ((now + job.walltime) << s.bits) | np.int64(j), job.cores)


@step
def end_job(s, size):
    """End the job whose real end comes first, of `size` running jobs; return its number."""
    j = job_in(s.ends[0], s.bits)
    pop_key(s.ends, size)
    remove_job(s.running, ((s.start[j] + s.jobs[j].walltime) << s.bits) | np.int64(j))
    return j
