"""One waiting list of the general event loop: which jobs are in it, and in which entries.

Names of rules refer to docs/reference/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.engine.compile.native import memmove
from parsim.engine.gates.counters import is_out
from parsim.engine.lists.alike import NO_JOB
from parsim.engine.order import FACTOR, FCFS, FORMULA, LJF, LXF, refresh_value
from parsim.engine.preempt.preempting import above_groups
from parsim.engine.simulation import (
    BLOCK,
    BY_SUBMIT,
    GROUP,
    NEVER,
    PASSED,
    PREEMPTED,
    STARVING,
    UNKNOWN,
    comes_before,
    routine,
    step,
)

STARTED = np.int32(-1)  # replaces the number of a job that has started


@step
def kind_of(s, p):
    """Return the order of list p within its groups, a constant of `parsim.engine.order` (rule "order of a list")."""
    pool = s.partitions.size - 2
    if p > pool:
        return FCFS
    return FACTOR if p == pool and not s.settings.single_list else s.settings.order


@step
def group_of(s, p, j, now):
    """Return the group of job j in list p: starving jobs first, then by queue priority (rule "order of tiers")."""
    pool = s.partitions.size - 2
    job = s.jobs[j]
    queue = s.queues[job.queue]
    by_factor = p == pool and not s.settings.single_list
    above = above_groups(s.preempting, j, job.queue)
    if p > pool or (s.settings.order == FORMULA and not by_factor):
        return above
    if above & PREEMPTED:
        return above
    starving = queue.starvation < NEVER and job.submit + queue.starvation <= now
    if by_factor:
        return STARVING if starving and s.settings.starving_first else np.int32(0)
    return above | (STARVING if starving else np.int32(queue.rank))


@routine
def move_entries(s, kind, to, first, count):
    """Move `count` entries of a waiting list, from entry `first` on, to entry `to`."""
    waiting = s.waiting
    memmove(waiting.job, to, first, count)
    memmove(waiting.cores, to, first, count)
    memmove(waiting.walltime, to, first, count)
    memmove(waiting.group, to, first, count)
    memmove(waiting.queue, to, first, count)
    if kind != FCFS:
        memmove(waiting.value, to, first, count)
    if kind > LJF:
        memmove(waiting.origin, to, first, count)
        memmove(waiting.slope, to, first, count)


@routine
def find_entry(waiting, first, last, j):
    """Return the first entry of ``first:last`` that has job j, or `last`."""
    for begin in range(first, last, BLOCK):
        job = waiting.job[begin : begin + BLOCK]
        hits = np.int32(0)
        for k in range(BLOCK):
            hits += np.int32(job[k] == np.int32(j))
        if hits:
            for i in range(begin, min(begin + BLOCK, last)):
                if waiting.job[i] == j:
                    return i
    return last


@step
def slope_of(s, kind, j):
    """Return the factor by which job j's wait (or its cube, in WFP3) is multiplied in an order by ratios."""
    job = s.jobs[j]
    w = np.float64(job.walltime)
    if kind == LXF:
        return 1.0 / w
    if kind == FACTOR:
        queue = s.queues[job.queue]
        return np.float64(queue.weight) / min(w, np.float64(queue.max_walltime))
    return np.float64(job.cores) / (w * w * w)


@step
def goes_after(s, kind, i, j, group, value):
    """Whether job j, of this group and value, enters the list behind entry i."""
    waiting = s.waiting
    if kind > LJF:
        return comes_before(s, waiting.job[i], j)
    g = waiting.group[i] & GROUP
    if g != group:
        return g > group
    other = waiting.value[i] if kind != FCFS else 0.0
    return other > value or (other == value and comes_before(s, waiting.job[i], j))


@step
def fill_entry(s, p, i, j, now):
    """Put job j into entry i of list p."""
    job, waiting = s.jobs[j], s.waiting
    kind = kind_of(s, p)
    group = group_of(s, p, j, now)
    waiting.job[i] = j
    waiting.cores[i] = job.cores
    waiting.walltime[i] = job.walltime
    waiting.group[i] = group
    waiting.queue[i] = job.queue
    if kind != FCFS:
        waiting.value[i] = value_of(kind, group, job.walltime)
    if kind > LJF:
        waiting.origin[i] = job.submit
        waiting.slope[i] = 0.0 if group & BY_SUBMIT else slope_of(s, kind, j)


@step
def value_of(kind, group, walltime):
    """Return the value that sorts a job within its group in a constant order, largest first."""
    if group & BY_SUBMIT or kind == FCFS or kind > LJF:
        return 0.0
    return np.float64(walltime) if kind == LJF else -np.float64(walltime)


@routine
def add_waiting(s, p, j, now):
    """Add job j to list p: by its turn in a constant order, else by its number; not if a job alike has an entry."""
    partition, job = s.partitions[p], s.jobs[j]
    if has_lines(s, p):
        row, line = row_of(s, p), s.alike.line[j]
        if s.alike.first[row, line] != NO_JOB:
            return
        s.alike.first[row, line] = j
    kind = kind_of(s, p)
    group = group_of(s, p, j, now)
    value = value_of(kind, group, job.walltime)
    i = end = partition.first + partition.waiting
    partition.waiting += 1
    partition.narrowest = min(partition.narrowest, np.int64(job.cores))
    partition.has_new = True
    if j < partition.seen:
        partition.plan_stands = False
    if i > partition.first and not has_lines(s, p) and not goes_after(s, kind, i - 1, j, group, value):
        i = find_turn(s, kind, partition.first, end - 1, j, group, value)
        move_entries(s, kind, i + 1, i, end - i)
    fill_entry(s, p, i, j, now)


@step
def find_turn(s, kind, low, high, j, group, value):
    """Return the first entry of ``low:high`` that job j, of this group and value, enters before; or `high`."""
    while low < high:
        middle = (low + high) >> 1
        if goes_after(s, kind, middle, j, group, value):
            low = middle + 1
        else:
            high = middle
    return low


@step
def find_waiting(s, p, j, now):
    """Return the entry of job j in list p, or -1."""
    partition, kind = s.partitions[p], kind_of(s, p)
    first, last = partition.first, partition.first + partition.waiting
    if partition.waiting > BLOCK and not has_lines(s, p):
        group = group_of(s, p, j, now)
        i = find_turn(s, kind, first, last, j, group, value_of(kind, group, s.jobs[j].walltime))
        if i < last and s.waiting.job[i] == j:
            return i
        if kind > LJF:
            return np.int64(-1)
    i = find_entry(s.waiting, first, last, j)
    return i if i < last else np.int64(-1)


@routine
def leave_list(s, p, j, now):
    """Remove job j from list p, if it has an entry there, before its turn has come."""
    partition = s.partitions[p]
    i = find_waiting(s, p, j, now)
    if i < 0:
        return
    kind = kind_of(s, p)
    if partition.planned_job == j:
        partition.plan_stands = False
    if partition.first_starving == j:
        partition.first_starving = UNKNOWN
    if has_lines(s, p) and promote_next(s, p, i, now):
        return
    partition.waiting -= 1
    move_entries(s, kind, i, i + 1, partition.first + partition.waiting - i)


@step
def leave_others(s, p, j, now):
    """Remove job j, which has started at its turn in list p, from all other lists."""
    pool = s.partitions.size - 2
    home = s.jobs[j].home
    if home != p:
        leave_list(s, home, j, now)
    elif p < pool and s.eligible_at.size > 0:
        leave_list(s, pool, j, now)


@routine
def begin_starving(s, j, now):
    """Let job j starve from now on: move it to its new turn in its lists."""
    if is_out(s.gates, j):
        return
    pool = s.partitions.size - 2
    home = s.jobs[j].home
    first = s.partitions[home].first_starving
    if first == NEVER or (first != UNKNOWN and comes_before(s, j, first)):
        s.partitions[home].first_starving = j
    for p in range(pool + 1):
        if p == home or p == pool:
            i = find_waiting(s, p, j, now)
            if i >= 0:
                if has_lines(s, p):
                    fill_entry(s, p, i, j, now)
                else:
                    leave_list(s, p, j, now)
                    add_waiting(s, p, j, now)
                s.partitions[p].plan_stands = False


@step
def has_lines(s, p):
    """Whether list p has only the first of jobs alike, in no order; the reserved list has all jobs."""
    return s.settings.alike and p < s.partitions.size - 1


@step
def row_of(s, p):
    """Return the row of ``s.alike.first`` for list p."""
    return np.int64(p == s.partitions.size - 2)


@step
def is_in_list(s, p, j, now):
    """Whether waiting job j is in list p."""
    if s.jobs[j].home == p:
        return True
    return p == s.partitions.size - 2 and s.eligible_at.size > 0 and s.eligible_at[j] <= now


@step
def next_alike(s, p, j, now):
    """Return the job behind job j in its line that waits in list p, or `NO_JOB`."""
    alike = s.alike
    for k in range(alike.place[j] + 1, alike.end[alike.line[j]]):
        other = alike.members[k]
        if other >= s.progress.submitted:
            break
        if s.start[other] < 0:
            return other if is_in_list(s, p, other, now) else NO_JOB
    return NO_JOB


@routine
def give_turn(s, p, i, now):
    """Put the next job alike into entry i of list p, whose job had its turn and stays; return whether there is one."""
    following = next_alike(s, p, s.waiting.job[i], now)
    if following == NO_JOB:
        return False
    fill_entry(s, p, i, following, now)
    refresh_value(s, kind_of(s, p), i, now)
    return True


@routine
def promote_next(s, p, i, now):
    """Put the next job alike into entry i of list p, whose job has left.

    Returns
    -------
    bool
        Whether there is one. Else the caller removes the entry, unless the first of the line is in it, which had its
        turn: then the job that left was a later one, see `parsim.engine.lists.lines.reopen_lines`.
    """
    alike, waiting = s.alike, s.waiting
    j = waiting.job[i]
    row, line = row_of(s, p), alike.line[j]
    following = next_alike(s, p, j, now)
    if alike.first[row, line] == j:
        alike.first[row, line] = following
    if following != NO_JOB:
        fill_entry(s, p, i, following, now)
        refresh_value(s, kind_of(s, p), i, now)
        return True
    if alike.first[row, line] != NO_JOB:
        fill_entry(s, p, i, alike.first[row, line], now)
        waiting.group[i] |= PASSED
    return False


@step
def note_held(s, j, now, is_held):
    """Record whether limits hold job j now, for its eligible time (rule "eligible time")."""
    held = s.held[j]
    if is_held:
        if held.since < 0:
            held.since = now
    elif held.since >= 0:
        held.before += now - held.since
        held.since = -1


@step
def drop_started(s, p, kept):
    """Close the gaps of the jobs that started from list p at this visit, the first at entry `kept`."""
    partition = s.partitions[p]
    kind = kind_of(s, p)
    begin, end = kept + 1, partition.first + partition.waiting
    while begin < end:
        behind = find_entry(s.waiting, begin, end, STARTED)
        if behind > begin:
            move_entries(s, kind, kept, begin, behind - begin)
        kept += behind - begin
        begin = behind + 1
    partition.waiting = kept - partition.first


@step
def end_visit(s, p, x, m, gone, last, now):
    """Record that limits do not hold candidates ``x:m``, whose turn did not come; drop started jobs from `gone` on."""
    if s.settings.track_held:
        for k in range(x, m):
            j = np.int64(s.waiting.job[s.candidates[k]])
            if s.jobs[j].home == p:
                note_held(s, j, now, False)
    if gone < last:
        drop_started(s, p, gone)
