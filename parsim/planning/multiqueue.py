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
from parsim.engine.resources.profile import Profile, copy_profile, fit, forget, reserve
from parsim.engine.resources.windows import apply_windows
from parsim.engine.simulation import BLOCK, LONGEST, NEVER, step
from parsim.planning.clock import advance, begin_job, give_back, next_ended, next_submitted, resume, take

STARTED = np.int32(LONGEST)  # replaces the cores of a job that has started


@on_disk
def multiqueue(clock, of, job_class, classes):
    """Schedule the jobs of a clock; fill its `start`.

    Parameters
    ----------
    clock : parsim.planning.clock.Clock
    of : ndarray(int32), shape (n,)
        Line of each job, as `parsim.engine.lists.alike.Lines` has it.
    job_class : ndarray(int64), shape (n,)
        Class of each job; 0 is the class of the shortest.
    classes : ndarray(CLASS), shape (K,)
        All empty; each has room for entries of all its jobs.
    """
    n = clock.jobs.size
    waiting, cores = np.empty(n, np.int64), np.empty(n + BLOCK, np.int32)  # the first of jobs alike, and their cores
    size = 2 * (clock.ends.size + clock.outages.windows.size) + 2
    idle = Profile(np.empty(size, np.int64), np.empty(size, np.int64))  # beside the running jobs
    longest = size + 2 * classes.size + 2
    plan = Profile(np.empty(longest, np.int64), np.empty(longest, np.int64))  # also beside the pivots
    order = np.empty(classes.size, np.int64)
    lines = Lines(of, np.full(count_lines(of), NO_JOB, np.int32), np.empty(n, np.int32))
    event_loop(clock, lines, job_class, classes, waiting, cores, idle, plan, order)


@step
def event_loop(clock, lines, job_class, classes, waiting, cores, idle, plan, order):
    """Simulate, and fill `start`."""
    jobs, outages = clock.jobs, clock.outages
    segments = resume(clock, idle)
    waits = 0
    while advance(clock, waits, NEVER):
        now = clock.at.now
        segments = forget(idle, segments, now)
        segments, _ = apply_windows(idle, segments, outages.windows, outages.taken, clock.at.before, now)
        j = next_ended(clock)
        while j >= 0:
            segments = give_back(clock, idle, segments, j)
            j = next_ended(clock)
        j = next_submitted(clock)
        while j >= 0:
            if not join(lines, j):
                its = classes[job_class[j]]
                waiting[its.last] = j
                cores[its.last] = jobs[j].cores
                its.last += 1
            waits += 1
            j = next_submitted(clock)
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
            begin_job(clock, j)
            segments = take(clock, idle, segments, j)
            if not promote_next(lines, waiting, cores, classes[k].first, classes[k].last):
                classes[k].first += 1
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
                begin_job(clock, j)
                segments = take(clock, idle, segments, j)
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
    """Replace the started job of entry i by the next job alike, put in its turn; return whether there is one."""
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
