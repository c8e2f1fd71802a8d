"""A plan of all waiting jobs, one after the other, each at the first instant at which it fits."""

from __future__ import annotations

import numpy as np

from parsim.engine.resources.profile import copy_profile, fit, reserve
from parsim.engine.resources.running import pop_key, push_key
from parsim.engine.simulation import NEVER, routine, step
from parsim.planning.planner import BLOCK, SJF, WIDTHS


@routine
def plan(planner, order, count, base, ascending, most, planned):
    """Plan the jobs of `order` one after the other into `planned`; False once the score has passed `most`."""
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
    """Plan a job at its first place from segment `first` on.

    ``earliest[b]`` stays true while segments are cut, since their numbers only grow, and while cores are taken. Where
    the walltimes of the order are `ascending`, a job cannot begin before a planned one that is no wider.

    Returns
    -------
    i, size : int
        The segment that it begins with, -1 where it cannot begin before `limit`; the number of segments.
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
def plan_starts(planner, count, base, falling, policy, rank, bits):
    """Plan by one policy, as far as needed, and set `begun` to the jobs that start now; return how many they are.

    It ends as soon as it sees that no other job can start now. Once all cores are taken at some instant, a job that
    begins before it ends before it, and one that begins after it does not matter. Where a job does not, none does that
    is alike and has its turn later. In the `base` segments beside the running jobs cores become fewer before the one
    numbered `falling` only.
    """
    jobs, idle, lines, closed, behind = planner.jobs, planner.idle, planner.lines, planner.closed, planner.behind
    order = planner.orders[policy]
    low = (np.int64(1) << bits) - 1
    now = planner.base.times[0]
    for k in range(count):
        planner.open[k] = order[k]
    limit = find_drops(planner.base, falling, planner.drop)
    any_open = keep_open(planner, count, now)
    if any_open == 0:
        return 0
    size = copy_profile(idle, planner.base, base)
    for b in range(WIDTHS):
        planner.earliest[b] = 0
    begun = following = planned = 0
    check = BLOCK
    k = 0
    while True:
        if planned == check:
            check += BLOCK
            limit = find_drops(idle, size, planner.drop)
            any_open = keep_open(planner, any_open, now)
            if any_open == 0:
                return begun
        first = 0
        if following > 0 and (k == count or (behind[0] >> bits) < rank[order[k]]):
            job = behind[0] & low
            pop_key(behind, following)
            following -= 1
            first = planner.segment[lines.of[job]]
        elif k < count:
            job = order[k]
            k += 1
        else:
            return begun
        line = lines.of[job]
        i = np.int64(-1)
        if jobs[job].walltime <= limit - now:
            i, size = plan_job(planner, size, job, first, policy == SJF, limit)
            planned += 1
        is_last = lines.last[line] == job
        if i == 0:
            planner.begun[begun] = job
            begun += 1
        if i != 0 or is_last:
            closed[line] = now
        if i >= 0 and not is_last:
            planner.segment[line] = i
            job = np.int64(lines.following[job])
            push_key(behind, following, (rank[job] << bits) | job)
            following += 1


@step
def keep_open(planner, count, now):
    """Keep in `open` the lines of which another job may start now; return how many they are."""
    kept = 0
    for j in planner.open[:count]:
        if (
            planner.closed[planner.lines.of[j]] < now
            and planner.jobs[j].walltime <= planner.drop[planner.width[j]] - now
        ):
            planner.open[kept] = j
            kept += 1
    return kept


@step
def find_drops(idle, size, drop):
    """Find from which instant on fewer than each power of two cores idle; return that at which none does."""
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
