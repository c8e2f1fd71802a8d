"""Plans all waiting jobs, one after the other, each at the first instant at which it fits."""

from __future__ import annotations

import numpy as np

from parsim.engine.resources.profile import copy_profile, fit, reserve
from parsim.engine.resources.running import pop_key, push_key
from parsim.engine.simulation import NEVER, routine, step
from parsim.planning.planner import BLOCK, SJF, WIDTHS


@routine
def plan(planner, order, count, base, ascending, most, planned):
    """Plan `count` jobs of `order` beside `base` segments into `planned`; return False if the score exceeds `most`."""
    idle, earliest = planner.idle, planner.earliest
    size = copy_profile(idle, planner.base, base)
    total = 0.0
    now = idle.times[0]
    for b in range(WIDTHS):
        earliest[b] = 0
    for k in range(count):
        job = order[k]
        i, size = plan_job(planner, size, job, 0, ascending, NEVER)
        planned[job] = idle.times[i]
        total += planner.weight[job] * (idle.times[i] - now)
        if total > most:
            return False
    return True


@step
def plan_job(planner, size, job, first, ascending, limit):
    """Plan a job at its first start from segment `first` on.

    ``earliest[b]`` stays valid while cores are taken, and while segments are cut, since their numbers only grow. Where
    the walltimes of the order are `ascending`, a job cannot begin before a planned one that is no wider.

    Returns
    -------
    i, size : int
        The segment with which the job begins, -1 if it cannot begin before `limit`; the number of segments.
    """
    idle, earliest = planner.idle, planner.earliest
    need, walltime = np.int64(planner.jobs[job].cores), np.int64(planner.jobs[job].walltime)
    b = planner.width[job]
    begin = earliest[b]
    while idle.free[begin] < 1 << b:
        begin += 1
    earliest[b] = begin
    i, j = fit(idle, size, max(begin, first), need, walltime, limit)
    if i < 0:
        return i, size
    if ascending:
        if need > 1 << b:
            b += 1
        while b < WIDTHS and earliest[b] < i:
            earliest[b] = i
            b += 1
    return i, reserve(idle, size, i, j, need, walltime)


@routine
def plan_starts(planner, count, some, base, falling, policy, rank, bits):
    """Plan by one policy, as far as needed, and set `begun` to the jobs that start now; return how many.

    `open` has the `some` entries of the order whose jobs may start now. Planning ends as soon as no other job can.
    Once all cores are taken at some instant, a job that begins before it must end before it, and a job that begins
    after it does not matter. If a job cannot begin before, no job can that is as wide and as long, or alike and later
    in its line. Among the `base` segments, idle cores become fewer only before segment `falling`.
    """
    jobs, idle, lines, closed, behind = planner.jobs, planner.idle, planner.lines, planner.closed, planner.behind
    order, width, longest = planner.orders[policy], planner.width, planner.longest
    low = (np.int64(1) << bits) - 1
    now = planner.base.times[0]
    limit = find_drops(planner.base, falling, planner.drop)
    for b in range(WIDTHS):
        planner.earliest[b], longest[b] = 0, NEVER
    some = drop_closed(planner, order, some, now)
    size = copy_profile(idle, planner.base, base)
    begun = following = planned = 0
    check = BLOCK
    k = 0
    while some > 0:
        if planned == check:
            check += BLOCK
            limit = find_drops(idle, size, planner.drop)
            some = drop_closed(planner, order, some, now)
            continue
        end = count if following > 0 else planner.open[some - 1] + 1
        while k < end and jobs[order[k]].walltime > min(limit - now, longest[width[order[k]]]):
            k += 1
        first = 0
        if following > 0 and (k == count or (behind[0] >> bits) < rank[order[k]]):
            job = behind[0] & low
            pop_key(behind, following)
            following -= 1
            first = planner.segment[lines.of[job]]
            if jobs[job].walltime > min(limit - now, longest[width[job]]):
                continue
        elif k < end:
            job = order[k]
            k += 1
        else:
            return begun
        line = lines.of[job]
        i, size = plan_job(planner, size, job, first, policy == SJF, limit)
        planned += 1
        is_last = lines.last[line] == job
        if i == 0:
            planner.begun[begun] = job
            begun += 1
        if i != 0 or is_last:
            closed[line] = now
        if i < 0:
            b = width[job] + (jobs[job].cores > 1 << width[job])
            while b < WIDTHS and longest[b] >= jobs[job].walltime:
                longest[b] = jobs[job].walltime - 1
                b += 1
        elif not is_last:
            planner.segment[line] = i
            job = np.int64(lines.following[job])
            push_key(behind, following, (rank[job] << bits) | job)
            following += 1
    return begun


@step
def find_open(planner, policy, count, idle):
    """Set `open` to the entries of an order whose jobs have at most `idle` cores; return how many."""
    some = 0
    for k in range(count):
        planner.open[some] = k
        some += planner.jobs[planner.orders[policy, k]].cores <= idle
    return some


@step
def drop_closed(planner, order, some, now):
    """Drop the last of `some` entries of `open` while no job of their lines may start now; return how many stay."""
    while some > 0:
        j = order[planner.open[some - 1]]
        b, walltime = planner.width[j], planner.jobs[j].walltime
        may_start = walltime <= planner.longest[b] and walltime <= planner.drop[b] - now
        if may_start and planner.closed[planner.lines.of[j]] < now:
            break
        some -= 1
    return some


@step
def find_drops(idle, size, drop):
    """Set `drop` to the instants from which fewer than 2**b cores idle; return the one with no idle core, or NEVER."""
    b = WIDTHS - 1
    for i in range(size):
        while idle.free[i] < 1 << b:
            drop[b] = idle.times[i]
            b -= 1
            if b < 0:
                return idle.times[i]
    while b >= 0:
        drop[b] = NEVER
        b -= 1
    return NEVER
