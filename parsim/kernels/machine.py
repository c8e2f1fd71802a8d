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
    CORES,
    FIRST_STARVING,
    HEAD,
    HOME,
    LAST,
    MOVE,
    NEVER,
    NEXT_STARVING,
    PLANNED,
    RUNNING_JOBS,
    STARVATION,
    STARVES,
    SUBMIT,
    SUBMITTED,
    T_RESERVED,
    UNKNOWN,
    WAITING,
    WAKES,
    State,
    inlined_in_loop,
    kernel,
)
from parsim.kernels.reserved import visit_reserved
from parsim.kernels.running import pop_key, push_key
from parsim.kernels.starts import drop_head, end_job
from parsim.kernels.visiting import visit_list
from parsim.kernels.waiting import add_waiting, begin_starving, leave_list


@inlined_in_loop
def advance_starving(s, now):
    """Let those starve whose time has come; `NEXT_STARVING` becomes the instant of the next one that still waits, or NEVER."""
    queues, cursors = s.queues, s.cursors
    soonest = NEVER
    for q in range(queues.shape[0]):
        period = queues[q, STARVATION]
        if period == NEVER:
            continue
        while cursors[q, 0] < cursors[q, 1]:
            j = np.int64(s.by_queue[cursors[q, 0]])
            if s.start[j] < 0:
                instant = s.jobs[j, SUBMIT] + period
                if instant > now:
                    soonest = min(soonest, instant)
                    break
                begin_starving(s, j, now)
            cursors[q, 0] += 1
    s.settings[NEXT_STARVING] = soonest


@inlined_in_loop
def next_event(s, submit, now):
    """Return the next instant at which anything happens, or NEVER; `submit` is the next submission."""
    wakes = s.wakes
    settings = s.settings
    bits = settings[BITS]
    low = (np.int64(1) << bits) - 1
    t = submit
    if settings[RUNNING_JOBS] > 0:
        t = min(t, s.ends[0] >> bits)
    if settings[WAITING] > 0:
        if settings[STARVES] and settings[NEXT_STARVING] <= t:
            advance_starving(s, now)
            t = min(t, settings[NEXT_STARVING])
        while settings[WAKES] > 0 and s.start[wakes[0] & low] >= 0:
            pop_key(wakes, settings[WAKES])
            settings[WAKES] -= 1
        if settings[WAKES] > 0:
            t = min(t, wakes[0] >> bits)
    return t


@inlined_in_loop
def submit_job(s, j, now):
    """Job j enters its home list."""
    settings, eligible = s.settings, s.eligible
    home = s.jobs[j, HOME]
    settings[WAITING] += 1
    add_waiting(s, home, j, now)
    if home < s.parts.shape[0] - 2 and eligible.size > 0 and eligible[j] < NEVER:
        push_key(s.wakes, settings[WAKES], (eligible[j] << settings[BITS]) | j)
        settings[WAKES] += 1


@inlined_in_loop
def enter_pool(s, j, now):
    """Job j has become eligible: it enters the pool's list and, with entry `move`, leaves its partition's (rule 16)."""
    parts, jobs = s.parts, s.jobs
    pool = parts.shape[0] - 2
    if s.settings[MOVE] and jobs[j, CORES] <= parts[pool, CAPACITY]:
        leave_list(s, jobs[j, HOME], j)
        jobs[j, HOME] = pool
        parts[pool, FIRST_STARVING] = UNKNOWN
    add_waiting(s, pool, j, now)


@inlined_in_loop
def one_pass(s, now):
    """Visit every list that anybody waits in. Within `run` itself the same code is an eighth slower on hybrid months."""
    parts = s.parts
    count = parts.shape[0] - 1
    for p in range(count):
        parts[p, T_RESERVED] = NEVER
    if parts[count, LAST] > 0:
        visit_reserved(s, now)
    for p in range(count):
        if parts[p, LAST] > 0 and parts[p, CAPACITY] > 0:
            visit_list(s, p, now)
    for p in range(count + 1):
        parts[p, PLANNED] = 0
        if parts[p, HEAD] >= 0:
            drop_head(s, p)


@kernel
def run(
    jobs, start, place, eligible, held, queues, parts, settings, w_job, w_cores, w_time, w_group, value, origin, slope, pick,
    expected, held_cores, ends, wakes, used_by, shares, code, constants, columns, scratch, by_queue, cursors, usable, idle,
):  # fmt: skip
    """Simulate all jobs; fills `start`, `place` and `shares`. The arrays are those of `parsim.kernels.layout.State`, in its order."""
    s = State(
        jobs, start, place, eligible, held, queues, parts, settings, w_job, w_cores, w_time, w_group, value, origin, slope, pick,
        expected, held_cores, ends, wakes, used_by, shares, code, constants, columns, scratch, by_queue, cursors, usable, idle,
    )  # fmt: skip
    n = s.jobs.shape[0]
    bits = settings[BITS]
    low = (np.int64(1) << bits) - 1
    nxt = np.int64(0)
    now = np.int64(-1)
    while True:
        now = next_event(s, np.int64(s.jobs[nxt, SUBMIT]) if nxt < n else NEVER, now)
        if now == NEVER:
            break
        while settings[RUNNING_JOBS] > 0 and (s.ends[0] >> bits) == now:
            j = s.ends[0] & low
            pop_key(s.ends, settings[RUNNING_JOBS])
            settings[RUNNING_JOBS] -= 1
            end_job(s, j)
        while nxt < n and s.jobs[nxt, SUBMIT] == now:
            submit_job(s, nxt, now)
            nxt += 1
        settings[SUBMITTED] = nxt
        if settings[WAITING] == 0:
            continue
        while settings[WAKES] > 0 and (s.wakes[0] >> bits) <= now:
            j = s.wakes[0] & low
            pop_key(s.wakes, settings[WAKES])
            settings[WAKES] -= 1
            if s.start[j] < 0:
                enter_pool(s, j, now)
        if settings[STARVES] and settings[NEXT_STARVING] <= now:
            advance_starving(s, now)
        one_pass(s, now)
