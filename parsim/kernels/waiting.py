"""One waiting list: its order, and one visit to it under EASY.

Numbers ("rule 3") refer to docs/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.kernels.layout import (
    BACKFILL,
    BACKFILLED,
    CAPACITY,
    COMBINED,
    CORES,
    DIRTY,
    FREE,
    HEAD,
    HELD_FOR,
    HELD_SINCE,
    HOME,
    IN_TURN,
    LAST,
    LIMITS,
    LONE,
    NEVER,
    OFFSET,
    ORDER,
    PLACE,
    PLANNED,
    QUEUE,
    RANK,
    START,
    STARVATION,
    STARVING,
    STARVING_FIRST,
    SUBMIT,
    TRACK_HELD,
    WALLTIME,
    inlined,
)
from parsim.kernels.order import FORMULA, refresh_values
from parsim.kernels.starts import is_held, make_head, occupy, plan_head, room, start_combined, start_job


@inlined
def insert_waiting(jobs, parts, waiting, value, p, j, group, v):
    """Add job j to list p, behind all that are not after it."""
    i = parts[p, OFFSET] + parts[p, LAST]
    least = parts[p, OFFSET]
    parts[p, LAST] += 1
    while i > least:
        g = waiting[2, i - 1]
        if g > group or (g == group and (value[i - 1] > v or (value[i - 1] == v and waiting[0, i - 1] < j))):
            break
        waiting[0, i] = waiting[0, i - 1]
        waiting[1, i] = waiting[1, i - 1]
        waiting[2, i] = g
        value[i] = value[i - 1]
        i -= 1
    waiting[0, i] = j
    waiting[1, i] = jobs[j, CORES]
    waiting[2, i] = group
    value[i] = v


@inlined
def group_of(jobs, queues, parts, settings, p, j, now):
    """The coarse part of job j's place in list p: starving first, then its queue's priority (rule 6)."""
    pool = parts.shape[0] - 2
    q = jobs[j, QUEUE]
    by_factor = p == pool and settings[LONE] == 0
    if p > pool or settings[ORDER] == FORMULA and not by_factor:
        return np.int32(0)
    starving = queues[q, STARVATION] < NEVER and jobs[j, SUBMIT] + queues[q, STARVATION] <= now
    if by_factor:
        return STARVING if starving and settings[STARVING_FIRST] else np.int32(0)
    return STARVING if starving else np.int32(queues[q, RANK])


@inlined
def sort_waiting(jobs, queues, parts, settings, waiting, value, code, constants, columns, scratch, p, now):
    """Bring list p into its order at this instant, dropping those that started or moved elsewhere."""
    pool = parts.shape[0] - 2
    at = parts[p, OFFSET]
    kept = at
    for i in range(at, at + parts[p, LAST]):
        j = waiting[0, i]
        if jobs[j, START] < 0 and (p >= pool or jobs[j, HOME] == p):
            waiting[0, kept] = j
            waiting[1, kept] = waiting[1, i]
            waiting[2, kept] = group_of(jobs, queues, parts, settings, p, j, now)
            kept += 1
    by_factor = p == pool and settings[LONE] == 0
    refresh_values(
        jobs, queues, settings, waiting, value, code, constants, columns, scratch, by_factor, at, kept, now
    )
    for i in range(at, kept):  # nearly sorted since the last pass
        if waiting[2, i] == STARVING:
            value[i] = 0.0
        j, c, g, v = waiting[0, i], waiting[1, i], waiting[2, i], value[i]
        k = i
        while k > at:
            if waiting[2, k - 1] > g:
                break
            if waiting[2, k - 1] == g and (value[k - 1] > v or (value[k - 1] == v and waiting[0, k - 1] < j)):
                break
            waiting[0, k] = waiting[0, k - 1]
            waiting[1, k] = waiting[1, k - 1]
            waiting[2, k] = waiting[2, k - 1]
            value[k] = value[k - 1]
            k -= 1
        waiting[0, k], waiting[1, k], waiting[2, k], value[k] = j, c, g, v
    parts[p, LAST] = kept - at
    parts[p, DIRTY] = 0


@inlined
def note_held(jobs, j, now, held):
    """Keep account of the time that job j is held by its limits (rule 5)."""
    if held:
        if jobs[j, HELD_SINCE] < 0:
            jobs[j, HELD_SINCE] = now
    elif jobs[j, HELD_SINCE] >= 0:
        jobs[j, HELD_FOR] += now - jobs[j, HELD_SINCE]
        jobs[j, HELD_SINCE] = -1


@inlined
def visit_list(
    jobs, queues, parts, settings, waiting, value, expected, held_cores, ends, used_by, shares, p, now
):
    """Go once over list p and start whom EASY starts on part p (rule 3)."""
    pool = parts.shape[0] - 2
    at = parts[p, OFFSET]
    last = at + parts[p, LAST]
    limits = settings[LIMITS] != 0
    track = settings[TRACK_HELD] != 0
    combined = p == pool and settings[COMBINED] != 0
    partner = combined
    head = np.int64(-1)
    gone = False  # somebody left this list
    i = at
    while i < last:
        if head >= 0 and parts[p, FREE] <= 0 and not track:
            break
        j = np.int64(waiting[0, i])
        c = np.int64(waiting[1, i])
        i += 1
        if head >= 0 and not track and not partner and c > parts[p, FREE]:
            continue
        if jobs[j, START] >= 0 or (p < pool and jobs[j, HOME] != p):
            gone = True
            continue
        held = limits and is_held(jobs, queues, settings, used_by, j)
        if track and jobs[j, HOME] == p:
            note_held(jobs, j, now, held)
        if held:
            continue
        until = now + jobs[j, WALLTIME]
        if head >= 0 and parts[p, PLANNED] == 0 and parts[p, FREE] > 0:
            plan_head(jobs, parts, settings, expected, held_cores, p, now)
        if c <= room(parts, p, until):
            jobs[j, PLACE] = p
            occupy(jobs, parts, settings, expected, held_cores, j, p, c, now)
            start_job(
                jobs,
                queues,
                parts,
                settings,
                ends,
                used_by,
                j,
                now,
                IN_TURN if head < 0 else BACKFILLED,
                head,
            )
            gone = True
            continue
        if (
            combined
            and parts[p, FREE] > 0
            and start_combined(
                jobs, queues, parts, settings, expected, held_cores, ends, used_by, shares, j, now, head
            )
        ):
            gone = True
            continue
        if head < 0 and c <= parts[p, CAPACITY]:
            head = j
            parts[p, HEAD] = j
            make_head(jobs, queues, parts, settings, used_by, j, p)
            if settings[BACKFILL] == 0:
                break
    if track:
        for k in range(i, last):  # behind the point where the visit ended nobody is held
            j = waiting[0, k]
            if jobs[j, START] < 0 and jobs[j, HOME] == p:
                note_held(jobs, j, now, False)
    if gone:
        kept = at
        for k in range(at, last):
            j = waiting[0, k]
            if jobs[j, START] < 0 and (p >= pool or jobs[j, HOME] == p):
                if kept < k:
                    waiting[0, kept] = j
                    waiting[1, kept] = waiting[1, k]
                    waiting[2, kept] = waiting[2, k]
                    value[kept] = value[k]
                kept += 1
        parts[p, LAST] = kept - at
