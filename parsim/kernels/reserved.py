"""Advance reservations: the list of jobs that start on shares of several parts at once.

Numbers ("rule 13") refer to docs/simulator.md.

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
    FREE,
    HOME,
    LAST,
    LIMITS,
    NEVER,
    OFFSET,
    PLACE,
    QUEUE,
    RESERVED,
    RUNNING,
    SHARE,
    SLACK,
    SLACK_ALONE,
    SPREAD,
    START,
    STARVATION,
    SUBMIT,
    T_RELEASED,
    T_RESERVED,
    TRACK_HELD,
    WALLTIME,
    inlined,
)
from parsim.kernels.running import available
from parsim.kernels.starts import is_held, make_head, occupy, start_job
from parsim.kernels.waiting import note_held


@inlined
def starves_before(jobs, queues, parts, waiting, p, g, now):
    """Whether a job that calls part p home starves and was submitted before job g (rule 10)."""
    at = parts[p, OFFSET]
    for i in range(at, at + parts[p, LAST]):
        j = waiting[0, i]
        period = queues[jobs[j, QUEUE], STARVATION]
        if (
            j < g
            and jobs[j, START] < 0
            and jobs[j, HOME] == p
            and period < NEVER
            and jobs[j, SUBMIT] + period <= now
        ):
            return True
    return False


@inlined
def visit_reserved(
    jobs, queues, parts, settings, waiting, expected, held_cores, ends, used_by, shares, now, usable, idle
):
    """Start reserved jobs, or let the first that must wait reserve its shares (section 5 of the semantics, rules 9 to 14)."""
    count = parts.shape[0] - 1
    bits = settings[BITS]
    at = parts[count, OFFSET]
    last = at + parts[count, LAST]
    gone = False
    i = at
    while i < last:
        g = np.int64(waiting[0, i])
        i += 1
        held = settings[LIMITS] != 0 and is_held(jobs, queues, settings, used_by, g)
        if settings[TRACK_HELD]:
            note_held(jobs, g, now, held)
        if held:
            continue
        c = jobs[g, CORES]
        reach = np.int64(0)
        for p in range(count):
            usable[p] = parts[p, CAPACITY] > 0 and not starves_before(jobs, queues, parts, waiting, p, g, now)
            if usable[p]:
                reach += parts[p, CAPACITY]
        if reach < c:
            break
        t = earliest(parts, settings, expected, held_cores, c, usable, idle, now)
        total = np.int64(0)
        for p in range(count):
            idle[p] = 0
            if usable[p]:
                idle[p] = available(
                    expected, held_cores, parts[p, FIRST_RUNNING], parts[p, RUNNING], parts[p, FREE], t, bits
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
            make_head(jobs, queues, parts, settings, used_by, g, count)
            break
        settings[SPREAD] += 1
        jobs[g, PLACE] = -1 - row
        for p in range(count):
            if shares[row, p] > 0:
                occupy(jobs, parts, settings, expected, held_cores, g, p, shares[row, p], now)
        start_job(jobs, queues, parts, settings, ends, used_by, g, now, RESERVED, -1)
        gone = True
    if settings[TRACK_HELD]:
        for k in range(i, last):
            note_held(jobs, waiting[0, k], now, False)
    if gone:
        kept = at
        for k in range(at, last):
            if jobs[waiting[0, k], START] < 0:
                waiting[0, kept] = waiting[0, k]
                kept += 1
        parts[count, LAST] = kept - at


@inlined
def earliest(parts, settings, expected, held_cores, need, usable, cursor, now):
    """First instant at which the usable parts together have `need` cores idle, by expected ends."""
    count = parts.shape[0] - 1
    bits = settings[BITS]
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
        total += held_cores[cursor[best]]
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
