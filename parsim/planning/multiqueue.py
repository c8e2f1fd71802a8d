"""Multiple-queue backfilling: jobs classed by walltime, the first of each class a pivot with a planned start.

References
----------
Lawson and Smirni, "Multiple-queue Backfilling Scheduling with Priorities and Reservations for Parallel Systems",
JSSPP 2002.
"""

from __future__ import annotations

import numpy as np

from parsim.engine.compile.compiled import on_disk
from parsim.engine.lists.alike import NO_JOB, Lines, count_lines, join, leave
from parsim.engine.resources.profile import Profile, change, copy_profile, fit, forget, reserve
from parsim.engine.resources.running import last_instant, pop_key, push_key
from parsim.engine.resources.windows import apply_windows, next_instant
from parsim.engine.simulation import BLOCK, LONGEST, NEVER, step

STARTED = np.int32(LONGEST)  # replaces the cores of a job that has started


@on_disk
def multiqueue(jobs, first, begin, of, machine, job_class, classes, bits, windows, taken, instants, start):
    """Schedule `jobs` on `machine` cores.

    Parameters
    ----------
    jobs : ndarray(JOB), shape (n,)
        Ascending by submit after the first `first`; no job wider than the machine.
    first : int
        Number of jobs that run when the simulation begins; their starts are in `start`.
    begin : int
        First instant at which anything is decided.
    of : ndarray(int32), shape (n,)
        Line of each job, as `parsim.engine.lists.alike.Lines` has it.
    machine : int
        Cores.
    job_class : ndarray(int64), shape (n,)
        Class of each job; 0 is the class of the shortest.
    classes : ndarray(CLASS), shape (K,)
        All empty; each has room for entries of all its jobs.
    bits : int
        Number of low bits of a key that hold a job.
    windows, taken, instants
        As `parsim.prepare.state.Begun` has them.
    start : ndarray(int64), shape (n,)
        Filled with each job's start; -1 if the loop left the instants that a key can hold before.
    """
    n = jobs.size
    most = min(n, machine)
    ends = np.empty(most + 1, np.int64)
    waiting, cores = np.empty(n, np.int64), np.empty(n + BLOCK, np.int32)
    size = 2 * (most + windows.size) + 4
    idle = Profile(np.empty(size, np.int64), np.empty(size, np.int64))
    longest = size + 2 * classes.size + 2
    plan = Profile(np.empty(longest, np.int64), np.empty(longest, np.int64))
    order = np.empty(classes.size, np.int64)
    lines = Lines(of, np.full(count_lines(of), NO_JOB, np.int32), np.empty(n, np.int32))
    start[first:] = -1
    idle.times[0] = 0
    idle.free[0] = machine
    segments = 1
    for j in range(first):
        segments = begin_job(jobs, j, start[j], bits, ends, j, idle, segments, start)
    segments = forget(idle, segments, begin)
    event_loop(
        jobs, first, begin, lines, job_class, classes, bits, windows, taken, instants, ends, waiting, cores, idle,
        segments, plan, order, start,
    )  # fmt: skip


@step
def event_loop(
    jobs, resumed, begin, lines, job_class, classes, bits, windows, taken, instants, ends, waiting, cores, idle,
    segments, plan, order, start,
):  # fmt: skip
    """Simulate, and fill `start`.

    `ends` is a heap of real ends; `idle` has the cores idle beside the running jobs, `plan` also beside the pivots;
    `waiting` has the first of jobs alike, and `cores` their cores.
    """
    n = jobs.size
    size = resumed  # running jobs
    waits = 0
    low = (np.int64(1) << bits) - 1
    arriving = resumed
    passed = 0
    now = begin - 1
    horizon = last_instant(bits)
    while arriving < n or size > 0 or waits > 0:
        before = now
        now = max(begin, np.int64(jobs[arriving].submit)) if arriving < n else NEVER
        if size > 0:
            now = min(now, ends[0] >> bits)
        now = min(now, next_instant(instants, passed))
        if now > horizon:
            break
        while next_instant(instants, passed) <= now:
            passed += 1
        segments = forget(idle, segments, now)
        segments, _ = apply_windows(idle, segments, windows, taken, before, now)
        while size > 0 and (ends[0] >> bits) == now:
            j = ends[0] & low
            pop_key(ends, size)
            size -= 1
            expected = start[j] + jobs[j].walltime
            if expected > now:
                segments = change(idle, segments, now, expected, np.int64(jobs[j].cores))
        while arriving < n and jobs[arriving].submit <= now:
            if not join(lines, arriving):
                its = classes[job_class[arriving]]
                waiting[its.last] = arriving
                cores[its.last] = jobs[arriving].cores
                its.last += 1
            waits += 1
            arriving += 1
        if waits == 0 or idle.free[0] <= 0:
            continue

        # A pivot that can start now does, and all are planned again (rule "pivots of classes").
        while True:
            pivots = order_pivots(classes, waiting, order)
            copy_profile(plan, idle, segments)
            k, planned = plan_pivots(jobs, classes, waiting, order[:pivots], plan, segments)
            if k < 0:
                break
            j = waiting[classes[k].first]
            segments = begin_job(jobs, j, now, bits, ends, size, idle, segments, start)
            if not promote_next(lines, waiting, cores, classes[k].first, classes[k].last):
                classes[k].first += 1
            size += 1
            waits -= 1

        # Then the others that delay no pivot, shortest class first.
        for its in classes:
            if plan.free[0] <= 0:
                break
            i, kept = its.first, its.last
            while True:
                i = next_fitting(cores, i + 1, its.last, plan.free[0])
                if i == its.last:
                    break
                j = waiting[i]
                c, w = np.int64(jobs[j].cores), np.int64(jobs[j].walltime)
                end = fits_now(plan, planned, c, w)
                if end == 0:
                    continue
                planned = reserve(plan, planned, 0, end, c, w)
                segments = begin_job(jobs, j, now, bits, ends, size, idle, segments, start)
                size += 1
                waits -= 1
                if promote_next(lines, waiting, cores, i, its.last):
                    i -= 1
                else:
                    cores[i] = STARTED
                    kept = min(kept, i)
            for i in range(kept, its.last):
                if cores[i] != STARTED:
                    waiting[kept], cores[kept] = waiting[i], cores[i]
                    kept += 1
            its.last = kept


@step
def next_fitting(cores, first, last, free):
    """Return the first of the entries ``first:last`` whose job has at most `free` cores, or `last`."""
    most = np.int32(free)
    for begin in range(first, last, BLOCK):
        block, hits = cores[begin : begin + BLOCK], np.int32(0)
        for k in range(BLOCK):
            hits += np.int32(block[k] <= most)
        if hits:
            for i in range(begin, min(begin + BLOCK, last)):
                if cores[i] <= most:
                    return i
    return last


@step
def promote_next(lines, waiting, cores, i, last):
    """Replace the job of entry i, which has started, by the next alike, in its turn; return whether there is one."""
    j, its_cores = leave(lines, waiting[i]), cores[i]
    if j == NO_JOB:
        return False
    while i + 1 < last and waiting[i + 1] < j:
        waiting[i], cores[i] = waiting[i + 1], cores[i + 1]
        i += 1
    waiting[i], cores[i] = j, its_cores
    return True


@step
def order_pivots(classes, waiting, order):
    """Write the classes with waiting jobs to `order`, by the submission of their pivots; return how many."""
    pivots = 0
    for k in range(classes.size):
        if classes[k].first < classes[k].last:
            i = pivots
            while i > 0 and waiting[classes[order[i - 1]].first] > waiting[classes[k].first]:
                order[i] = order[i - 1]
                i -= 1
            order[i] = k
            pivots += 1
    return pivots


@step
def plan_pivots(jobs, classes, waiting, order, plan, size):
    """Plan pivots in turn; return the first class whose pivot can start now, or -1; and the number of segments."""
    for k in order:
        job = jobs[waiting[classes[k].first]]
        c, w = np.int64(job.cores), np.int64(job.walltime)
        i, end = fit(plan, size, 0, c, w, NEVER)
        if i == 0:
            return k, size
        size = reserve(plan, size, i, end, c, w)
    return np.int64(-1), size


@step
def fits_now(plan, size, cores, walltime):
    """Return the number of segments that a job covers if it starts now beside all plans; 0 if it does not fit."""
    end = plan.times[0] + walltime
    k = 0
    while k < size and plan.times[k] < end:
        if plan.free[k] < cores:
            return 0
        k += 1
    return k


@step
def begin_job(jobs, j, now, bits, ends, size, idle, segments, start):
    """Start job j beside `size` running jobs; return the number of segments."""
    start[j] = now
    push_key(ends, size, ((now + jobs[j].runtime) << bits) | j)
    return change(idle, segments, now, now + np.int64(jobs[j].walltime), -np.int64(jobs[j].cores))
