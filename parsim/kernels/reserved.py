"""Advance reservations: the list of jobs that start on shares of several parts at once.

Numbers ("rule 13") refer to docs/reference/simulator.md.

References
----------
Kondameedi and Vadhiyar, CCGrid 2017, section III.
"""

from __future__ import annotations

import numpy as np

from parsim.kernels.layout import (
    BITS,
    CAPACITY,
    CORES,
    FIRST_RUNNING,
    FIRST_STARVING,
    FREE,
    HOME,
    LAST,
    LIMITS,
    NEVER,
    OFFSET,
    QUEUE,
    RUNNING,
    SHARE,
    SLACK,
    SLACK_ALONE,
    SPREAD,
    STANDS,
    STARVATION,
    SUBMIT,
    T_RELEASED,
    T_RESERVED,
    TRACK_HELD,
    UNKNOWN,
    WALLTIME,
    inlined,
    inlined_in_loop,
)
from parsim.kernels.running import available
from parsim.kernels.starts import is_held, make_head, occupy, start_job
from parsim.kernels.waiting import GONE, drop_started, note_held


@inlined_in_loop
def first_starving(s, p, now):
    """Return the first submitted of the starving jobs that call part p home (rule 10), or NEVER."""
    parts, jobs = s.parts, s.jobs
    if parts[p, FIRST_STARVING] == UNKNOWN:
        parts[p, FIRST_STARVING] = NEVER
        at = parts[p, OFFSET]
        for i in range(at, at + parts[p, LAST]):
            j = s.w_job[i]
            period = s.queues[jobs[j, QUEUE], STARVATION]
            if jobs[j, HOME] == p and period < NEVER and jobs[j, SUBMIT] + period <= now:
                parts[p, FIRST_STARVING] = j
                break
    return parts[p, FIRST_STARVING]


@inlined_in_loop
def visit_reserved(s, now):
    """Start reserved jobs, or let the first that must wait reserve its shares (section 5 of the semantics, rules 9 to 14)."""
    parts, settings, w_job, jobs, usable, idle, shares = (  # fmt: skip
        s.parts,
        s.settings,
        s.w_job,
        s.jobs,
        s.usable,
        s.idle,
        s.shares,
    )
    count = parts.shape[0] - 1
    bits = settings[BITS]
    if settings[LIMITS]:  # the head here may hold queue mates elsewhere
        for p in range(count):
            parts[p, STANDS] = 0
    at = parts[count, OFFSET]
    last = at + parts[count, LAST]
    gone = last
    i = at
    while i < last:
        g = np.int64(w_job[i])
        i += 1
        held = settings[LIMITS] != 0 and is_held(s, g)
        if settings[TRACK_HELD]:
            note_held(s, g, now, held)
        if held:
            continue
        c = jobs[g, CORES]
        reach = np.int64(0)
        for p in range(count):
            usable[p] = parts[p, CAPACITY] > 0 and first_starving(s, p, now) >= g
            if usable[p]:
                reach += parts[p, CAPACITY]
        if reach < c:
            break
        t = earliest(s, c, now)
        total = np.int64(0)
        for p in range(count):
            idle[p] = 0
            if usable[p]:
                idle[p] = available(
                    s.expected, s.held_cores, parts[p, FIRST_RUNNING], parts[p, RUNNING], parts[p, FREE], t, bits
                )
            total += idle[p]
        row = settings[SPREAD]
        share(idle, c, total, shares[row], usable)
        if t > now:
            for p in range(count):
                if shares[row, p] > 0:
                    parts[p, T_RESERVED] = t
                    parts[p, T_RELEASED] = t + jobs[g, WALLTIME]
                    parts[p, SHARE] = shares[row, p]
                    parts[p, SLACK_ALONE] = idle[p] - shares[row, p]
                    parts[p, SLACK] = parts[p, SLACK_ALONE]
            make_head(s, g, count)
            break
        settings[SPREAD] += 1
        s.place[g] = -1 - row
        for p in range(count):
            if shares[row, p] > 0:
                parts[p, STANDS] = 0
                occupy(s, g, p, shares[row, p], now)
        start_job(s, g, now)
        w_job[i - 1] = GONE
        gone = min(gone, i - 1)
    if settings[TRACK_HELD]:
        for k in range(i, last):
            note_held(s, w_job[k], now, False)
    if gone < last:
        drop_started(s, count, gone)


@inlined_in_loop
def earliest(s, need, now):
    """First instant at which the usable parts together have `need` cores idle, by expected ends."""
    parts, usable, expected = s.parts, s.usable, s.expected
    cursor = s.idle
    count = parts.shape[0] - 1
    bits = s.settings[BITS]
    total = np.int64(0)
    for p in range(count):
        cursor[p] = parts[p, FIRST_RUNNING]
        if usable[p]:
            total += parts[p, FREE]
    t = now
    while total < need:
        best = -1
        for p in range(count):
            if usable[p] and cursor[p] < parts[p, FIRST_RUNNING] + parts[p, RUNNING]:
                if best < 0 or expected[cursor[p]] < expected[cursor[best]]:
                    best = p
        t = expected[cursor[best]] >> bits
        total += s.held_cores[cursor[best]]
        cursor[best] += 1
    return t


@inlined
def share(idle, need, total, share, usable):
    """Divide `need` cores in proportion to what is idle, the rest one each where most is idle (rule 13)."""
    count = idle.shape[0]
    left = need
    for p in range(count):
        share[p] = need * idle[p] // total
        left -= share[p]
    while left > 0:
        best = -1
        for p in range(count):
            if usable[p] and (best < 0 or idle[p] > idle[best]):
                best = p
        share[best] += 1
        left -= 1
        usable[best] = False
