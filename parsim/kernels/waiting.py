"""One waiting list: who is in it, and at which place.

Numbers ("rule 3") refer to docs/reference/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.kernels.layout import (
    CORES,
    FIRST_STARVING,
    FRESH,
    GROUP,
    HELD_FOR,
    HELD_SINCE,
    HOME,
    KEPT_HEAD,
    LAST,
    LEAST,
    LONE,
    MAX_WALLTIME,
    NEVER,
    OFFSET,
    ORDER,
    QUEUE,
    RANK,
    SEEN,
    STANDS,
    STARVATION,
    STARVING,
    STARVING_FIRST,
    SUBMIT,
    UNKNOWN,
    WALLTIME,
    WEIGHT,
    inlined_in_loop,
)
from parsim.kernels.order import FACTOR, FCFS, FORMULA, LJF, LXF, SJF

GONE = np.int32(-1)  # in place of a job that has started


@inlined_in_loop
def kind_of(s, p):
    """By what list p is ordered within its groups."""
    settings = s.settings
    pool = s.parts.shape[0] - 2
    if p > pool:
        return FCFS
    return FACTOR if p == pool and settings[LONE] == 0 else settings[ORDER]


@inlined_in_loop
def group_of(s, p, j, now):
    """The coarse part of job j's place in list p: starving first, then its queue's priority (rule 6)."""
    jobs, settings, queues = s.jobs, s.settings, s.queues
    pool = s.parts.shape[0] - 2
    q = jobs[j, QUEUE]
    by_factor = p == pool and settings[LONE] == 0
    if p > pool or (settings[ORDER] == FORMULA and not by_factor):
        return np.int32(0)
    starving = queues[q, STARVATION] < NEVER and jobs[j, SUBMIT] + queues[q, STARVATION] <= now
    if by_factor:
        return STARVING if starving and settings[STARVING_FIRST] else np.int32(0)
    return STARVING if starving else np.int32(queues[q, RANK])


@inlined_in_loop
def copy_entry(s, kind, to, i):
    """Overwrite one entry of a waiting list by another."""
    w_job, w_cores, w_time, w_group, value, origin, slope = (  # fmt: skip
        s.w_job,
        s.w_cores,
        s.w_time,
        s.w_group,
        s.value,
        s.origin,
        s.slope,
    )
    w_job[to] = w_job[i]
    w_cores[to] = w_cores[i]
    w_time[to] = w_time[i]
    w_group[to] = w_group[i]
    if kind != FCFS:
        value[to] = value[i]
    if kind > LJF:
        origin[to] = origin[i]
        slope[to] = slope[i]


@inlined_in_loop
def slope_of(s, kind, j):
    """What the wait of job j, or its cube, is multiplied by where the order is a ratio."""
    jobs, queues = s.jobs, s.queues
    w = np.float64(jobs[j, WALLTIME])
    if kind == LXF:
        return 1.0 / w
    if kind == FACTOR:
        q = jobs[j, QUEUE]
        return np.float64(queues[q, WEIGHT]) / min(w, np.float64(queues[q, MAX_WALLTIME]))
    return np.float64(jobs[j, CORES]) / (w * w * w)


@inlined_in_loop
def add_waiting(s, p, j, now):
    """Job j enters list p, at its place if the order is constant, else by its number."""
    jobs, parts, w_job, w_group, value = s.jobs, s.parts, s.w_job, s.w_group, s.value
    kind = kind_of(s, p)
    group = group_of(s, p, j, now)
    w = jobs[j, WALLTIME]
    v = 0.0
    if group != STARVING and kind == SJF:
        v = -np.float64(w)
    elif group != STARVING and kind == LJF:
        v = np.float64(w)
    at = parts[p, OFFSET]
    i = at + parts[p, LAST]
    parts[p, LAST] += 1
    parts[p, LEAST] = min(parts[p, LEAST], np.int64(jobs[j, CORES]))
    parts[p, FRESH] = 1
    if j < parts[p, SEEN]:
        parts[p, STANDS] = 0
    while i > at:
        if kind > LJF:
            if w_job[i - 1] < j:
                break
        else:
            g = w_group[i - 1] & GROUP
            if g > group:
                break
            if g == group:
                other = value[i - 1] if kind != FCFS else 0.0
                if other > v or (other == v and w_job[i - 1] < j):
                    break
        copy_entry(s, kind, i, i - 1)
        i -= 1
    w_job[i] = j
    s.w_cores[i] = jobs[j, CORES]
    s.w_time[i] = w
    w_group[i] = group
    if kind != FCFS:
        value[i] = v
    if kind > LJF:
        s.origin[i] = jobs[j, SUBMIT]
        s.slope[i] = 0.0 if group == STARVING else slope_of(s, kind, j)


@inlined_in_loop
def find_waiting(s, p, j):
    """Entry of job j in list p, or -1."""
    parts = s.parts
    at = parts[p, OFFSET]
    for i in range(at, at + parts[p, LAST]):
        if s.w_job[i] == j:
            return i
    return np.int64(-1)


@inlined_in_loop
def leave_list(s, p, j):
    """Job j leaves list p, where it may stand, before its turn has come there."""
    parts = s.parts
    i = find_waiting(s, p, j)
    if i < 0:
        return
    at = parts[p, OFFSET]
    kind = kind_of(s, p)
    parts[p, LAST] -= 1
    for k in range(i, at + parts[p, LAST]):
        copy_entry(s, kind, k, k + 1)
    if parts[p, KEPT_HEAD] == j:
        parts[p, STANDS] = 0
    if parts[p, FIRST_STARVING] == j:
        parts[p, FIRST_STARVING] = UNKNOWN


@inlined_in_loop
def leave_others(s, p, j):
    """Job j has started at its turn in list p: it waits in no other any more."""
    pool = s.parts.shape[0] - 2
    home = s.jobs[j, HOME]
    if home != p:
        leave_list(s, home, j)
    elif p < pool and s.eligible.size > 0:
        leave_list(s, pool, j)


@inlined_in_loop
def begin_starving(s, j, now):
    """Job j starves from now on."""
    parts = s.parts
    pool = parts.shape[0] - 2
    home = s.jobs[j, HOME]
    if parts[home, FIRST_STARVING] > j:
        parts[home, FIRST_STARVING] = j
    for p in range(pool + 1):
        if (p == home or p == pool) and find_waiting(s, p, j) >= 0:
            leave_list(s, p, j)
            add_waiting(s, p, j, now)
            parts[p, STANDS] = 0


@inlined_in_loop
def note_held(s, j, now, held):
    """Keep account of the time that job j is held by its limits (rule 5)."""
    since = s.held[j, HELD_SINCE]
    if held:
        if since < 0:
            s.held[j, HELD_SINCE] = now
    elif since >= 0:
        s.held[j, HELD_FOR] += now - since
        s.held[j, HELD_SINCE] = -1


@inlined_in_loop
def drop_started(s, p, kept):
    """Close the gaps that jobs left in list p at this visit, the first at entry `kept`."""
    parts = s.parts
    kind = kind_of(s, p)
    at = parts[p, OFFSET]
    last = at + parts[p, LAST]
    for k in range(kept + 1, last):
        if s.w_job[k] != GONE:
            copy_entry(s, kind, kept, k)
            kept += 1
    parts[p, LAST] = kept - at
