"""One waiting list: who is in it, and one visit to it under EASY.

Numbers ("rule 3") refer to docs/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.kernels.layout import (
    BACKFILL,
    BLOCK,
    CAPACITY,
    COMBINED,
    CORES,
    EXTRA,
    FIRST_STARVING,
    FREE,
    FRESH,
    GROUP,
    HELD_FOR,
    HELD_SINCE,
    HOME,
    INSTANT,
    KEPT_HEAD,
    LAST,
    LEAST,
    LIMITS,
    LONE,
    LONGEST,
    MAX_WALLTIME,
    NEVER,
    OFFSET,
    ORDER,
    PASSED,
    PLANNED,
    QUEUE,
    RANK,
    SEEN,
    SLACK,
    STANDS,
    STARVATION,
    STARVING,
    STARVING_FIRST,
    SUBMIT,
    SUBMITTED,
    T_RESERVED,
    TRACK_HELD,
    UNKNOWN,
    WALLTIME,
    WEIGHT,
    inlined_in_loop,
)
from parsim.kernels.order import FACTOR, FCFS, FORMULA, LJF, LXF, SJF, first, refresh_values, sift
from parsim.kernels.starts import is_held, make_head, occupy, plan_head, room, start_combined, start_job

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
def reach_of(s, p):
    """No job wider than this can start at its turn in list p."""
    parts = s.parts
    pool = parts.shape[0] - 2
    reach = parts[p, FREE]
    if p == pool and s.settings[COMBINED] and reach > 0:
        most = np.int64(0)
        for q in range(pool):
            most = max(most, parts[q, FREE])
        reach += most
    return reach


@inlined_in_loop
def anyone_fits(s, at, last, reach, passed):
    """Whether any entry is that narrow; `passed`: some may have been passed, and do not count."""
    w_cores = s.w_cores
    most = np.int32(reach)
    for begin in range(at, last, BLOCK):
        cores = w_cores[begin : begin + BLOCK]
        hits = np.int32(0)
        for k in range(BLOCK):
            hits += np.int32(cores[k] <= most)
        if hits:
            if not passed and begin + BLOCK <= last:
                return True
            for i in range(begin, min(begin + BLOCK, last)):
                if w_cores[i] <= most and (not passed or s.w_group[i] >= 0):
                    return True
    return False


@inlined_in_loop
def nobody_fits(s, p, at, last, reach):
    """Whether everybody in list p is wider than `reach`; who was found to be so is not looked at again until more is free."""
    parts = s.parts
    if parts[p, LEAST] > reach:
        return True
    if anyone_fits(s, at, last, reach, False):
        return False
    parts[p, LEAST] = reach + 1
    return True


@inlined_in_loop
def pick_backfill(s, p, at, last, head, fresh, now, everyone, reach):
    """Collect in `pick` the entries that may start behind the head, of jobs from number `fresh` on; how many."""
    w_group, w_job, w_cores, parts, w_time = s.w_group, s.w_job, s.w_cores, s.parts, s.w_time
    m = 0
    if everyone:  # by what start_combined may add to the cores of the pool
        track = s.settings[TRACK_HELD] != 0
        for i in range(at, last):
            c = np.int64(w_cores[i])
            if w_group[i] < 0 or w_job[i] == head or c > reach:
                continue
            if not track:
                c -= min(parts[s.jobs[w_job[i], QUEUE], FREE], c - 1)
            if track or c <= room(s, p, now + w_time[i]):
                s.pick[m] = i
                m += 1
        return m
    free = np.int32(parts[p, FREE])
    time = np.int32(min(parts[p, INSTANT] - now, LONGEST))
    extra = np.int32(min(parts[p, EXTRA], parts[p, FREE]))
    slack_time = np.int32(min(parts[p, T_RESERVED] - now, LONGEST))
    slack = np.int32(min(parts[p, SLACK], parts[p, FREE]))
    oldest = np.int32(fresh)
    for begin in range(at, last, BLOCK):
        job = w_job[begin : begin + BLOCK]
        cores = w_cores[begin : begin + BLOCK]
        walltime = w_time[begin : begin + BLOCK]
        hits = np.int32(0)
        for k in range(BLOCK):
            c = cores[k]
            w = walltime[k]
            hits += np.int32(
                (job[k] >= oldest) & (c <= free) & ((w <= time) | (c <= extra)) & ((w <= slack_time) | (c <= slack))
            )
        if hits:
            for i in range(begin, min(begin + BLOCK, last)):
                c = w_cores[i]
                w = w_time[i]
                j = w_job[i]
                if j >= oldest and c <= free and (w <= time or c <= extra) and (w <= slack_time or c <= slack):
                    if w_group[i] >= 0 and j != head:
                        s.pick[m] = i
                        m += 1
    return m


@inlined_in_loop
def start_here(s, p, i, now):
    """Start entry i of list p if it may start now, wholly on part p or, combined, on its partition and the pool."""
    w_job, settings, parts = s.w_job, s.settings, s.parts
    j = np.int64(w_job[i])
    c = np.int64(s.w_cores[i])
    if c <= room(s, p, now + s.w_time[i]):
        s.place[j] = p
        occupy(s, j, p, c, now)
        start_job(s, j, now)
    elif settings[COMBINED] == 0 or p != parts.shape[0] - 2 or parts[p, FREE] <= 0 or not start_combined(s, j, now):
        return False
    if settings[LONE] == 0:
        leave_others(s, p, j)
    if parts[p, FIRST_STARVING] == j:
        parts[p, FIRST_STARVING] = UNKNOWN
    w_job[i] = GONE
    return True


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


@inlined_in_loop
def nothing_new(s, p, ordered, head_counts):
    """Whether list p needs no visit: its order is constant, and since its last plan nobody came, left or ended."""
    parts = s.parts
    if not ordered or parts[p, STANDS] == 0 or parts[p, FRESH] or parts[p, T_RESERVED] < NEVER:
        return False
    head = parts[p, KEPT_HEAD]
    if head_counts:
        if s.settings[LIMITS] and is_held(s, head):  # queue mates have started elsewhere
            return False
        make_head(s, head, p)
        parts[p, PLANNED] = 1
    return True


@inlined_in_loop
def next_in_order(s, kind, ordered, i, at, last, now):
    """Return the entry whose turn comes after entry i, or `last`."""
    if ordered:
        return i + 1
    best = first(s, kind, at, last, now)
    return last if best < 0 else best


@inlined_in_loop
def pass_held(s, p, at, last, now):
    """Mark those whom their limits hold already, for limits hold only more as the pass goes on."""
    w_group, w_job = s.w_group, s.w_job
    track = s.settings[TRACK_HELD] != 0
    for i in range(at, last):
        w_group[i] &= GROUP
        if is_held(s, w_job[i]):
            w_group[i] |= PASSED
            if track and s.jobs[w_job[i], HOME] == p:
                note_held(s, w_job[i], now, True)


@inlined_in_loop
def visit_list(s, p, now):
    """Go once over list p and start whom EASY starts on part p (rule 3)."""
    w_group, w_job, jobs, pick = s.w_group, s.w_job, s.jobs, s.pick
    parts, settings = s.parts, s.settings
    pool = parts.shape[0] - 2
    at = parts[p, OFFSET]
    last = at + parts[p, LAST]
    limits = settings[LIMITS] != 0
    track = settings[TRACK_HELD] != 0
    backfill = settings[BACKFILL] != 0
    combined = settings[COMBINED] != 0
    everyone = track or (combined and p == pool)
    kind = kind_of(s, p)
    ordered = kind <= LJF
    reach = reach_of(s, p)
    # The head counts in later lists: for the limits of its queue mates, and for who takes cores here from the pool's list.
    head_counts = p < pool and ((limits and parts[pool, CAPACITY] > 0) or (combined and reach > 0))
    if not track:
        if nothing_new(s, p, ordered, head_counts):
            return
        if not head_counts and nobody_fits(s, p, at, last, reach):
            return
    if not ordered:
        if limits and (backfill or not track):
            pass_held(s, p, at, last, now)
            if not track and not head_counts and not anyone_fits(s, at, last, reach, True):
                return
        else:
            for i in range(at, last):
                w_group[i] &= GROUP
        refresh_values(s, kind, at, last, now)

    stands = parts[p, STANDS] != 0 and parts[p, T_RESERVED] == NEVER
    fresh = parts[p, SEEN]
    kept_instant, kept_extra = parts[p, INSTANT], parts[p, EXTRA]
    parts[p, INSTANT] = NEVER
    parts[p, STANDS] = 0
    head = np.int64(-1)
    gone = last  # first entry whose job left this list
    i = next_in_order(s, kind, ordered, at - 1, at, last, now)
    while i < last:
        j = np.int64(w_job[i])
        held = limits and is_held(s, j)
        if track and jobs[j, HOME] == p:
            note_held(s, j, now, held)
        if not held:
            if start_here(s, p, i, now):
                gone = min(gone, i)
                stands = False
            elif s.w_cores[i] <= parts[p, CAPACITY]:
                head = j
                make_head(s, j, p)
                break
        if not ordered:
            w_group[i] |= PASSED
        i = next_in_order(s, kind, ordered, i, at, last, now)

    if head >= 0 and backfill and (track or parts[p, FREE] > 0):
        if stands and parts[p, KEPT_HEAD] == head:
            parts[p, INSTANT], parts[p, EXTRA], parts[p, PLANNED] = kept_instant, kept_extra, 1
        else:
            fresh = np.int64(0)
            plan_head(s, p, now)
        m = pick_backfill(s, p, i + 1 if ordered else at, last, head, fresh, now, everyone, LONGEST if track else reach)
        if not ordered:
            for k in range((m >> 1) - 1, -1, -1):
                sift(s, kind, k, m, now)
        x = 0
        while x < m and (track or parts[p, FREE] > 0):
            if ordered:
                i = np.int64(pick[x])
                x += 1
            else:
                i = np.int64(pick[0])
                m -= 1
                pick[0] = pick[m]
                sift(s, kind, 0, m, now)
            j = np.int64(w_job[i])
            held = limits and is_held(s, j)
            if track and jobs[j, HOME] == p:
                note_held(s, j, now, held)
            if not held and start_here(s, p, i, now):
                gone = min(gone, i)
    elif track:  # behind the point where the visit ended nobody is held
        for k in range(i + 1 if ordered else at, last):
            j = w_job[k]
            if w_group[k] >= 0 and j != head and j != GONE and jobs[j, HOME] == p:
                note_held(s, j, now, False)
    if head >= 0 and not everyone and backfill and parts[p, T_RESERVED] == NEVER:
        parts[p, STANDS] = not limits or p < pool or settings[LONE] != 0
        parts[p, KEPT_HEAD] = head
    if gone < last:
        drop_started(s, p, gone)
    parts[p, SEEN] = settings[SUBMITTED]
    parts[p, FRESH] = 0
