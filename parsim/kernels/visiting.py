"""One visit to a waiting list under EASY: who starts, who is the head, who is backfilled.

Numbers ("rule 3") refer to docs/reference/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.kernels.layout import (
    BACKFILL,
    BLOCK,
    CAPACITY,
    COMBINED,
    EXTRA,
    FIRST_STARVING,
    FREE,
    FRESH,
    GROUP,
    HOME,
    INSTANT,
    KEPT_HEAD,
    LAST,
    LEAST,
    LIMITS,
    LONE,
    LONGEST,
    NEVER,
    OFFSET,
    PASSED,
    PLANNED,
    QUEUE,
    RESERVE_AFTER,
    SEEN,
    SLACK,
    STANDS,
    SUBMIT,
    SUBMITTED,
    T_RESERVED,
    TRACK_HELD,
    UNKNOWN,
    inlined_in_loop,
)
from parsim.kernels.order import LJF, first, refresh_values, sift
from parsim.kernels.starts import is_held, make_head, occupy, plan_head, room, start_combined, start_job
from parsim.kernels.waiting import GONE, drop_started, kind_of, leave_others, note_held


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
            elif s.w_cores[i] <= parts[p, CAPACITY] and now - jobs[j, SUBMIT] >= settings[RESERVE_AFTER]:
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
