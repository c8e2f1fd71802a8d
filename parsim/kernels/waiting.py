"""One waiting list of the general event loop: which jobs are in it, and in which entries.

Numbers ("rule 3") refer to docs/reference/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.kernels.order import FACTOR, FCFS, FORMULA, LJF, LXF, SJF
from parsim.kernels.state import GROUP, NEVER, STARVING, UNKNOWN, step

STARTED = np.int32(-1)  # in place of a job that has started


@step
def kind_of(s, p):
    """By what list p is ordered within its groups (rules 6 and 7)."""
    pool = s.partitions.size - 2
    if p > pool:
        return FCFS
    return FACTOR if p == pool and not s.settings.single_list else s.settings.order


@step
def group_of(s, p, j, now):
    """The group of job j in list p: starving first, then its queue's priority (rule 6)."""
    pool = s.partitions.size - 2
    job = s.jobs[j]
    queue = s.queues[job.queue]
    by_factor = p == pool and not s.settings.single_list
    if p > pool or (s.settings.order == FORMULA and not by_factor):
        return np.int32(0)
    starving = queue.starvation < NEVER and job.submit + queue.starvation <= now
    if by_factor:
        return STARVING if starving and s.settings.starving_first else np.int32(0)
    return STARVING if starving else np.int32(queue.rank)


@step
def copy_entry(s, kind, to, i):
    """Overwrite one entry of a waiting list by another."""
    waiting = s.waiting
    waiting.job[to] = waiting.job[i]
    waiting.cores[to] = waiting.cores[i]
    waiting.walltime[to] = waiting.walltime[i]
    waiting.group[to] = waiting.group[i]
    if kind != FCFS:
        waiting.value[to] = waiting.value[i]
    if kind > LJF:
        waiting.origin[to] = waiting.origin[i]
        waiting.slope[to] = waiting.slope[i]


@step
def slope_of(s, kind, j):
    """What the wait of job j, or its cube, is multiplied by where the order is a ratio."""
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
    """Whether entry i stays before job j, of this group and value, that enters its list."""
    waiting = s.waiting
    if kind > LJF:
        return waiting.job[i] < j
    g = waiting.group[i] & GROUP
    if g != group:
        return g > group
    other = waiting.value[i] if kind != FCFS else 0.0
    return other > value or (other == value and waiting.job[i] < j)


@step
def add_waiting(s, p, j, now):
    """Job j enters list p: in its turn if the order is constant, else by its number."""
    partition, job, waiting = s.partitions[p], s.jobs[j], s.waiting
    kind = kind_of(s, p)
    group = group_of(s, p, j, now)
    w = job.walltime
    v = 0.0
    if group != STARVING and kind == SJF:
        v = -np.float64(w)
    elif group != STARVING and kind == LJF:
        v = np.float64(w)
    i = partition.first + partition.waiting
    partition.waiting += 1
    partition.narrowest = min(partition.narrowest, np.int64(job.cores))
    partition.has_new = True
    if j < partition.seen:
        partition.plan_stands = False
    while i > partition.first and not goes_after(s, kind, i - 1, j, group, v):
        copy_entry(s, kind, i, i - 1)
        i -= 1
    waiting.job[i] = j
    waiting.cores[i] = job.cores
    waiting.walltime[i] = w
    waiting.group[i] = group
    if kind != FCFS:
        waiting.value[i] = v
    if kind > LJF:
        waiting.origin[i] = job.submit
        waiting.slope[i] = 0.0 if group == STARVING else slope_of(s, kind, j)


@step
def find_waiting(s, p, j):
    """Entry of job j in list p, or -1."""
    partition = s.partitions[p]
    for i in range(partition.first, partition.first + partition.waiting):
        if s.waiting.job[i] == j:
            return i
    return np.int64(-1)


@step
def leave_list(s, p, j):
    """Job j leaves list p, if it is there, before its turn has come."""
    partition = s.partitions[p]
    i = find_waiting(s, p, j)
    if i < 0:
        return
    kind = kind_of(s, p)
    partition.waiting -= 1
    for k in range(i, partition.first + partition.waiting):
        copy_entry(s, kind, k, k + 1)
    if partition.planned_job == j:
        partition.plan_stands = False
    if partition.first_starving == j:
        partition.first_starving = UNKNOWN


@step
def leave_others(s, p, j):
    """Job j has started at its turn in list p: it waits in no other any more."""
    pool = s.partitions.size - 2
    home = s.jobs[j].home
    if home != p:
        leave_list(s, home, j)
    elif p < pool and s.eligible_at.size > 0:
        leave_list(s, pool, j)


@step
def begin_starving(s, j, now):
    """Job j starves from now on."""
    pool = s.partitions.size - 2
    home = s.jobs[j].home
    if s.partitions[home].first_starving > j:
        s.partitions[home].first_starving = j
    for p in range(pool + 1):
        if (p == home or p == pool) and find_waiting(s, p, j) >= 0:
            leave_list(s, p, j)
            add_waiting(s, p, j, now)
            s.partitions[p].plan_stands = False


@step
def note_held(s, j, now, is_held):
    """Keep account of the time that job j is held by its limits (rule 5)."""
    held = s.held[j]
    if is_held:
        if held.since < 0:
            held.since = now
    elif held.since >= 0:
        held.before += now - held.since
        held.since = -1


@step
def drop_started(s, p, kept):
    """Close the gaps that jobs left in list p at this visit, the first at entry `kept`."""
    partition = s.partitions[p]
    kind = kind_of(s, p)
    for k in range(kept + 1, partition.first + partition.waiting):
        if s.waiting.job[k] != STARTED:
            copy_entry(s, kind, kept, k)
            kept += 1
    partition.waiting = kept - partition.first
