"""The event loop of every machine with queues: shared, partitioned with advance reservations, hybrid with a common pool.

One pass visits the reserved list, the partitions in configuration order, then the pool; a shared machine is a pool of all its cores
that every job calls home.

References
----------
Mu'alem and Feitelson, IEEE TPDS 12(6), 2001 (EASY); Kondameedi and Vadhiyar, CCGrid 2017, section III (partitions, advance
reservations, common pool).
"""

from __future__ import annotations

import numpy as np

from parsim.kernels.layout import (
    BITS,
    CAPACITY,
    COMBINED,
    CORES,
    DIRTY,
    ELIGIBLE,
    FREE,
    HEAD,
    HOME,
    INSTANT,
    LAST,
    LIMITS,
    LONE,
    MOVE,
    NEVER,
    OFFSET,
    ORDER,
    PLANNED,
    RUNNING_JOBS,
    START,
    STARVATION,
    STARVES,
    STARVING,
    SUBMIT,
    T_RESERVED,
    TRACK_HELD,
    WAITING,
    WAKES,
    WALLTIME,
    inlined,
    kernel,
)
from parsim.kernels.order import LJF, SJF
from parsim.kernels.reserved import visit_reserved
from parsim.kernels.running import pop_key, push_key
from parsim.kernels.starts import drop_head, end_job
from parsim.kernels.waiting import group_of, insert_waiting, sort_waiting, visit_list


@inlined
def next_starving(jobs, queues, by_queue, cursors, q, now):
    """Instant at which the next waiting job of queue q begins to starve, or NEVER."""
    period = queues[q, STARVATION]
    if period == NEVER:
        return NEVER
    while cursors[q, 0] < cursors[q, 1]:
        j = by_queue[cursors[q, 0]]
        instant = jobs[j, SUBMIT] + period
        if jobs[j, START] < 0 and instant > now:
            return instant
        cursors[q, 0] += 1
    return NEVER


@kernel
def run(
    jobs,
    queues,
    parts,
    settings,
    waiting,
    value,
    expected,
    held_cores,
    ends,
    wakes,
    used_by,
    shares,
    code,
    constants,
    columns,
    scratch,
    by_queue,
    cursors,
    usable,
    idle,
):
    """Simulate all jobs; fills the columns START, PLACE, HOW and CAUSE of `jobs`, and `shares`.

    The arrays are those of `parsim.kernels.layout.State`, in its order.
    """
    n = jobs.shape[0]
    classes = queues.shape[0]
    count = parts.shape[0] - 1
    pool = count - 1
    bits = settings[BITS]
    low = (np.int64(1) << bits) - 1
    varying = settings[ORDER] > LJF  # the order changes as time passes
    lone = settings[LONE] != 0
    moves = settings[MOVE] != 0
    combined = settings[COMBINED] != 0
    may_skip = (
        not combined
        and settings[TRACK_HELD] == 0
        and (settings[LIMITS] == 0 or parts[pool, CAPACITY] == 0 or lone)
    )
    nxt = 0
    now = np.int64(-1)
    while True:
        t = NEVER
        if nxt < n:
            t = jobs[nxt, SUBMIT]
        if settings[RUNNING_JOBS] > 0:
            t = min(t, ends[0] >> bits)
        if settings[WAITING] > 0:
            if settings[STARVES]:
                for q in range(classes):
                    t = min(t, next_starving(jobs, queues, by_queue, cursors, q, now))
            while settings[WAKES] > 0 and jobs[wakes[0] & low, START] >= 0:
                pop_key(wakes, settings[WAKES])
                settings[WAKES] -= 1
            if settings[WAKES] > 0:
                t = min(t, wakes[0] >> bits)
        if t == NEVER:
            break
        now = t

        while settings[RUNNING_JOBS] > 0 and (ends[0] >> bits) == now:
            j = ends[0] & low
            pop_key(ends, settings[RUNNING_JOBS])
            settings[RUNNING_JOBS] -= 1
            end_job(jobs, queues, parts, settings, expected, held_cores, used_by, shares, j)

        while nxt < n and jobs[nxt, SUBMIT] == now:
            home = jobs[nxt, HOME]
            settings[WAITING] += 1
            if (varying and home <= pool) or (home == pool and not lone):
                parts[home, DIRTY] = 1
                i = parts[home, OFFSET] + parts[home, LAST]
                waiting[0, i] = nxt
                waiting[1, i] = jobs[nxt, CORES]
                parts[home, LAST] += 1
            else:
                v = 0.0
                if home <= pool and settings[ORDER] == SJF:
                    v = -float(jobs[nxt, WALLTIME])
                elif home <= pool and settings[ORDER] == LJF:
                    v = float(jobs[nxt, WALLTIME])
                group = group_of(jobs, queues, parts, settings, home, nxt, now)
                insert_waiting(jobs, parts, waiting, value, home, nxt, group, 0.0 if group == STARVING else v)
            if home < pool and jobs[nxt, ELIGIBLE] < NEVER:
                push_key(wakes, settings[WAKES], (jobs[nxt, ELIGIBLE] << bits) | nxt)
                settings[WAKES] += 1
            nxt += 1

        if settings[WAITING] == 0:
            continue
        while settings[WAKES] > 0 and (wakes[0] >> bits) <= now:
            j = wakes[0] & low
            pop_key(wakes, settings[WAKES])
            settings[WAKES] -= 1
            if jobs[j, START] >= 0:
                continue
            i = parts[pool, OFFSET] + parts[pool, LAST]
            waiting[0, i] = j
            waiting[1, i] = jobs[j, CORES]
            parts[pool, LAST] += 1
            if moves and jobs[j, CORES] <= parts[pool, CAPACITY]:
                parts[jobs[j, HOME], DIRTY] = 1
                jobs[j, HOME] = pool
        if settings[STARVES]:
            for q in range(classes):
                # jobs that began to starve at this very instant stand before the cursor's next one
                k = cursors[q, 0]
                if k < cursors[q, 1] and queues[q, STARVATION] < NEVER:
                    j = by_queue[k]
                    if jobs[j, START] < 0 and jobs[j, SUBMIT] + queues[q, STARVATION] <= now:
                        for p in range(count):
                            parts[p, DIRTY] = 1

        for p in range(count):
            parts[p, T_RESERVED] = NEVER
            parts[p, HEAD] = -1
            parts[p, INSTANT] = NEVER
            parts[p, PLANNED] = 0
        if parts[count, LAST] > 0:
            visit_reserved(
                jobs,
                queues,
                parts,
                settings,
                waiting,
                expected,
                held_cores,
                ends,
                used_by,
                shares,
                now,
                usable,
                idle,
            )
        for p in range(count):
            size = parts[p, LAST]
            if size == 0 or parts[p, CAPACITY] == 0:
                continue
            if may_skip:
                at = parts[p, OFFSET]
                free = parts[p, FREE]
                found = False
                for i in range(at, at + size):
                    found |= waiting[1, i] <= free
                if not found:
                    continue
            if varying or parts[p, DIRTY] or (p == pool and not lone):
                sort_waiting(
                    jobs, queues, parts, settings, waiting, value, code, constants, columns, scratch, p, now
                )
            visit_list(
                jobs,
                queues,
                parts,
                settings,
                waiting,
                value,
                expected,
                held_cores,
                ends,
                used_by,
                shares,
                p,
                now,
            )
        for p in range(count + 1):
            drop_head(jobs, queues, parts, settings, used_by, p)
