"""EASY and FCFS on one list that is alone on its cores and whose order is a time-dependent priority, a formula.

This is the event loop of searches over formulas. It is several times as fast as `parsim.kernels.general`: nothing may
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

from parsim.kernels.alike import NO_JOB, Lines, count_lines, join, leave
from parsim.kernels.blocks import ROOM, Blocks, add_job, most_blocks, remove_job, when_idle
from parsim.kernels.compiled import on_disk
from parsim.kernels.easy import ONE, job_in, next_wake_up
from parsim.kernels.fairshare import charge
from parsim.kernels.mates import Mates, close_edge, follow, held_before, order_mates
from parsim.kernels.order import CHUNK
from parsim.kernels.running import last_instant, pop_key, push_key
from parsim.kernels.state import BLOCK, LONGEST, NEVER, step
from parsim.kernels.values import (
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
    value_of,
)


class Limits(NamedTuple):
    """What running limits leave to the jobs that count in them: those of a queue, or of a user in a queue."""

    any: bool
    stop_time: bool  # the eligible time of the jobs they hold stands still
    left: NDArray[np.void]  # ALLOWANCE
    rows: NDArray[np.uint32]  # (n, 2): those of each job


@on_disk
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
    fair,
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
        Which jobs are alike, `parsim.kernels.alike.Lines`.
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
    fair : Fair
        What it reads of the users.
    limited : bool
        Whether there are running limits.
    stop_time : bool
        Whether there are, and the eligible time of the jobs that they hold stands still.
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
    blocks = most_blocks(most)
    running = Blocks(
        np.empty(blocks * ROOM, np.int64),
        np.empty(blocks * ROOM, np.int32),
        np.arange(blocks).astype(np.uint64),
        np.zeros(blocks, np.int64),
        np.zeros(blocks, np.uint64),
        np.zeros(blocks, np.int64),
        np.ones(1, np.uint64),
    )
    padded = n + BLOCK
    job, cores, walltime = np.empty(n, np.int32), np.empty(padded, np.int32), np.empty(padded, np.int32)
    value, origin, held, bound = np.empty(padded), np.empty(n), np.empty(n), np.empty(n)
    waiting = Valued(job, cores, walltime, value, origin, held, bound, np.empty(n, np.bool_))
    epoch = Epoch(longest, many, np.array([-1, 1, 0]))
    chunk = Chunk(np.empty(CHUNK, np.int32), np.empty(CHUNK, np.int32))
    limits = Limits(limited, stop_time, left, rows)
    count = count_lines(of)
    lines = Lines(of, np.full(count, NO_JOB, np.int32), np.empty(n, np.int32))
    others, of_lines = (n, count) if stop_time else (0, 0)
    mates = Mates(
        np.empty(others, np.int32),
        np.empty(others, np.int32),
        np.zeros(others, np.int64),
        np.zeros(others + 1, np.int64),
        np.zeros(of_lines, np.int64),
        np.full(of_lines, NEVER, np.int64),
        np.full(of_lines, NO_JOB, np.int32),
        np.zeros(1, np.int64),
    )
    order_mates(of, mates, np.zeros(of_lines + 1, np.int64))
    start[first:] = -1
    event_loop(
        jobs,
        first,
        begin,
        lines,
        mates,
        machine,
        backfill,
        reservation_delay,
        bits,
        formula,
        fair,
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
    mates,
    machine,
    backfill,
    reservation_delay,
    bits,
    formula,
    fair,
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
        charge(fair, size, np.int64(jobs[size].cores), begin)
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
            charge(fair, j, -np.int64(jobs[j].cores), now)
        while arriving < n and jobs[arriving].submit <= now:
            if join(lines, arriving):
                if limits.stop_time:
                    follow(mates, lines.of[arriving], arriving, now)
            else:
                waiting.job[last] = arriving
                waiting.cores[last] = jobs[arriving].cores
                waiting.walltime[last] = jobs[arriving].walltime
                waiting.origin[last] = jobs[arriving].submit
                waiting.held[last] = NOT_HELD
                waiting.bound[last] = np.inf
                if limits.stop_time:
                    mates.tail[lines.of[arriving]] = 0
                last += 1
            arriving += 1
        if last == 0:
            continue
        least, any_holds = (
            hold(waiting, last, lines, mates, limits, now) if limits.any else (narrowest(waiting, last), False)
        )
        if least > free and not any_holds:
            continue

        if last * formula.code.shape[0] >= epoch.many:
            set_bounds(waiting, last, formula, epoch, now)
        else:
            epoch.clock[END] = -1
            evaluate(waiting, last, formula, fair, chunk, now)
        latest = now - reservation_delay if reservation_delay > 0 else NEVER
        head = first_entry(jobs, waiting, last, formula, fair, chunk, epoch, free, latest, now)
        while head >= 0 and waiting.cores[head] <= free:
            begin_job(jobs, waiting.job[head], now, bits, ends, running, size, start)
            charge(fair, waiting.job[head], np.int64(waiting.cores[head]), now)
            free -= waiting.cores[head]
            size += 1
            count_entry(jobs, lines, mates, waiting, last, formula, fair, chunk, epoch, limits, head, NO_JOB, now)
            last = succeed(jobs, lines, mates, waiting, last, formula, fair, chunk, epoch, limits, head, now)
            head = first_entry(jobs, waiting, last, formula, fair, chunk, epoch, free, latest, now)
        if head >= 0 and backfill:
            reserved = waiting.job[head]
            count_entry(jobs, lines, mates, waiting, last, formula, fair, chunk, epoch, limits, head, reserved, now)
            shadow, extra = when_idle(running, free, np.int64(waiting.cores[head]), bits)
            extra -= waiting.cores[head]
            slack = min(shadow - now, LONGEST)
            i = first_beside(waiting, last, formula, fair, chunk, epoch, free, slack, extra, now)
            while i >= 0:
                begin_job(jobs, waiting.job[i], now, bits, ends, running, size, start)
                charge(fair, waiting.job[i], np.int64(waiting.cores[i]), now)
                free -= waiting.cores[i]
                size += 1
                if waiting.walltime[i] > slack:
                    extra -= waiting.cores[i]
                count_entry(jobs, lines, mates, waiting, last, formula, fair, chunk, epoch, limits, i, reserved, now)
                last = succeed(jobs, lines, mates, waiting, last, formula, fair, chunk, epoch, limits, i, now)
                i = first_beside(waiting, last, formula, fair, chunk, epoch, free, slack, extra, now)
            change_left(limits, jobs, reserved, 1)


@step
def succeed(jobs, lines, mates, waiting, last, formula, fair, chunk, epoch, limits, i, now):
    """Let the next job alike take entry i, whose job has started, or the last entry; return the end of the list."""
    before = waiting.job[i]
    j = leave(lines, before)
    if j == NO_JOB:
        move(waiting, i, last - 1)
        return last - 1
    waiting.job[i] = j
    held = waiting.origin[i] - jobs[before].submit + mates.longer[mates.place[j]] if limits.stop_time else 0
    waiting.origin[i] = jobs[j].submit + held
    waiting.held[i] = NOT_HELD
    waiting.bound[i] = np.inf
    if limits.any:
        more, cores = what_is_left(limits, j)
        if more < 1 or cores < waiting.cores[i]:
            hold_line(waiting, lines, mates, limits, i, now)
            return last
    settle(waiting, formula, fair, chunk, epoch, i, now)
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
def hold_line(waiting, lines, mates, limits, i, now):
    """From now on limits hold the job of entry i, and all behind it that are alike."""
    waiting.held[i] = now
    if limits.stop_time:
        line = lines.of[waiting.job[i]]
        mates.held[line] = now
        mates.edge[line] = NO_JOB


@step
def narrowest(waiting, last):
    """Return the least cores of a waiting job."""
    least = LONGEST
    for i in range(last):
        least = min(least, np.int64(waiting.cores[i]))
    return least


@step
def hold(waiting, last, lines, mates, limits, now):
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
        if limits.stop_time:
            close_edge(mates, lines.of[waiting.job[i]], now)
        more, cores = what_is_left(limits, waiting.job[i])
        if more < 1 or cores < c:
            if waiting.held[i] == NOT_HELD:
                hold_line(waiting, lines, mates, limits, i, now)
            continue
        if waiting.held[i] < NOT_HELD:
            if limits.stop_time:
                line = lines.of[waiting.job[i]]
                waiting.origin[i] += now - waiting.held[i]
                mates.tail[line] += now - mates.held[line]
                mates.held[line] = NEVER
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
def count_entry(jobs, lines, mates, waiting, last, formula, fair, chunk, epoch, limits, i, reserved, now):
    """From here on, as entry i has started or is the head, its limits count it, and may hold jobs behind it.

    `reserved` is the head job, or `NO_JOB`; of those alike with it the others are not in the list, as behind any first.
    """
    j, value = waiting.job[i], waiting.value[i]
    waiting.value[i] = PASSED
    change_left(limits, jobs, j, -1)
    more, cores = what_is_left(limits, j)
    if more > 0 and cores > LONGEST:
        return
    bounded = epoch.clock[END] >= 0
    for k in range(last):
        if bounded and waiting.value[k] >= value and not waiting.known[k]:
            settle(waiting, formula, fair, chunk, epoch, k, now)
        v = waiting.value[k]
        if v == PASSED and waiting.job[k] != reserved:
            continue
        more, cores = what_is_left(limits, waiting.job[k])
        if more < 1 or cores < waiting.cores[k]:
            if v > PASSED and is_behind(v, waiting.job[k], value, j):
                hold_line(waiting, lines, mates, limits, k, now)
                waiting.value[k] = PASSED
            elif limits.stop_time:
                hold_mates(jobs, lines, mates, waiting, formula, fair, chunk, k, value, j, now)


@step
def is_behind(v, k, value, j):
    """Whether job k of value v goes behind job j of `value`."""
    return v < value or (v == value and k > j)


@step
def hold_mates(jobs, lines, mates, waiting, formula, fair, chunk, k, value, j, now):
    """From now on limits hold those that are alike with the job of entry k, which itself goes on, and go behind job j.

    They are the last of their line, since none of these passes another.
    """
    first, line = waiting.job[k], lines.of[waiting.job[k]]
    low, high = mates.place[first] + 1, mates.place[lines.last[line]] + 1
    if mates.edge[line] != NO_JOB:
        high = np.int64(mates.edge[line])
    if low == high:
        return
    held = waiting.origin[k] - jobs[first].submit - held_before(mates, mates.place[first])
    edge, beyond = high, high - 1  # the first place behind job j lies between `low` and `edge`
    while low < edge:
        m = mates.job[beyond]
        behind = first == j
        if not behind:
            eligible = now - jobs[m].submit - held - held_before(mates, beyond)
            behind = is_behind(value_of(formula, fair, chunk, m, eligible, now), m, value, j)
        if behind:
            edge = beyond
        else:
            low = beyond + 1
        beyond = (low + edge) // 2
    if edge < high:
        mates.edge[line] = edge
        mates.passed[0] = now


@step
def first_entry(jobs, waiting, last, formula, fair, chunk, epoch, free, latest, now):
    """Return the entry that goes first of those that fit or, submitted by `latest`, may be the head job; or -1."""
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
                    if latest == NEVER or waiting.cores[i] <= free or jobs[waiting.job[i]].submit <= latest:
                        best = i
                        largest = v
        if best < 0 or epoch.clock[END] < 0 or waiting.known[best]:
            return best
        settle(waiting, formula, fair, chunk, epoch, best, now)
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
def first_beside(waiting, last, formula, fair, chunk, epoch, free, slack, extra, now):
    """Return the entry that goes first of those that may start beside the head job; or -1."""
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
        settle(waiting, formula, fair, chunk, epoch, best, now)
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
def begin_job(jobs, j, now, bits, ends, running, size, start):
    """Start job j beside `size` running ones."""
    start[j] = now
    push_key(ends, size, ((now + jobs[j].runtime) << bits) | np.int64(j))
    add_job(running, ((now + jobs[j].walltime) << bits) | np.int64(j), jobs[j].cores)


@step
def end_job(jobs, ends, running, size, bits, start):
    """End the job, of `size` running ones, whose real end comes first; return its number."""
    j = job_in(ends[0], bits)
    pop_key(ends, size)
    remove_job(running, ((start[j] + jobs[j].walltime) << bits) | np.int64(j))
    return j
