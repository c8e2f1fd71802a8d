"""Starting and ending one job: limits, cores, the plan of the head, and what a backfilled job may take.

Numbers ("rule 12") refer to docs/reference/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.kernels.layout import (
    BITS,
    CAPACITY,
    CORES,
    EXTRA,
    FIRST_RUNNING,
    FREE,
    HEAD,
    HOME,
    INSTANT,
    IS_HEAD,
    LIMITS,
    LONE,
    MAX_RUN,
    MAX_RUN_CORES,
    MAX_USER_CORES,
    MAX_USER_RUN,
    NEVER,
    PLANNED,
    QUEUE,
    RUNNING,
    RUNNING_JOBS,
    RUNTIME,
    SHARE,
    SLACK,
    SLACK_ALONE,
    SPREAD,
    STANDS,
    T_RELEASED,
    T_RESERVED,
    USED_CORES,
    USED_JOBS,
    USER,
    USER_LIMITS,
    WAITING,
    WALLTIME,
    inlined_in_loop,
)
from parsim.kernels.running import add_running, available, first_instant, push_key, remove_running


@inlined_in_loop
def count_use(s, j, sign):
    """Add job j to, or take it from, what its queue and its user use."""
    settings, jobs, queues, used_by = s.settings, s.jobs, s.queues, s.used_by
    if settings[LIMITS] == 0:
        return
    q = jobs[j, QUEUE]
    c = jobs[j, CORES]
    queues[q, USED_JOBS] += sign
    queues[q, USED_CORES] += sign * c
    u = jobs[j, USER]
    if u >= 0 and settings[USER_LIMITS]:
        row = u * queues.shape[0] + q
        used_by[row, 0] += sign
        used_by[row, 1] += sign * c


@inlined_in_loop
def is_held(s, j):
    """Whether a limit forbids job j to start now (rule 4)."""
    jobs, queues, used_by = s.jobs, s.queues, s.used_by
    others = 1 - np.int64(jobs[j, IS_HEAD])  # what it counts itself already is no other job's
    q = jobs[j, QUEUE]
    c = jobs[j, CORES]
    if (
        queues[q, USED_JOBS] + others > queues[q, MAX_RUN]
        or queues[q, USED_CORES] + others * c > queues[q, MAX_RUN_CORES]
    ):
        return True
    u = jobs[j, USER]
    if s.settings[USER_LIMITS] == 0 or u < 0:
        return False
    row = u * queues.shape[0] + q
    return (
        used_by[row, 0] + others > queues[q, MAX_USER_RUN] or used_by[row, 1] + others * c > queues[q, MAX_USER_CORES]
    )


@inlined_in_loop
def make_head(s, j, p):
    """Job j waits at the head of list p: from here on its limits count it, once even if it heads two lists."""
    jobs = s.jobs
    s.parts[p, HEAD] = j
    if not jobs[j, IS_HEAD]:
        jobs[j, IS_HEAD] = 1
        count_use(s, j, 1)


@inlined_in_loop
def drop_head(s, p):
    """List p has no head any more."""
    parts, jobs = s.parts, s.jobs
    j = parts[p, HEAD]
    parts[p, HEAD] = -1
    if j >= 0 and jobs[j, IS_HEAD]:
        jobs[j, IS_HEAD] = 0
        count_use(s, j, -1)


@inlined_in_loop
def occupy(s, j, p, cores, now):
    """Job j takes cores of part p until its end, and with them what the plan of this pass has left."""
    parts = s.parts
    until = now + s.jobs[j, WALLTIME]
    at = parts[p, FIRST_RUNNING]
    add_running(s.expected, s.held_cores, at, parts[p, RUNNING], (until << s.settings[BITS]) | j, cores)
    parts[p, RUNNING] += 1
    parts[p, FREE] -= cores
    if until > parts[p, T_RESERVED]:
        parts[p, SLACK] -= cores
        parts[p, SLACK_ALONE] -= cores
    if until > parts[p, INSTANT]:
        parts[p, EXTRA] -= cores


@inlined_in_loop
def start_job(s, j, now):
    """Job j, whose cores are taken already, starts: it leaves the waiting and will end."""
    jobs, settings = s.jobs, s.settings
    if jobs[j, IS_HEAD]:  # of its partition, and starts through the pool
        p = jobs[j, HOME]
        drop_head(s, p)
        s.parts[p, INSTANT] = NEVER
    s.start[j] = now
    settings[WAITING] -= 1
    push_key(s.ends, settings[RUNNING_JOBS], ((now + jobs[j, RUNTIME]) << settings[BITS]) | j)
    settings[RUNNING_JOBS] += 1
    count_use(s, j, 1)


@inlined_in_loop
def end_job(s, j):
    """Job j has ended: its cores are idle again, on every part that it ran on."""
    jobs, settings, parts = s.jobs, s.settings, s.parts
    key = ((s.start[j] + jobs[j, WALLTIME]) << settings[BITS]) | j
    low = np.int64(s.place[j])
    high = low + 1
    if low < 0:
        low, high = 0, parts.shape[0] - 1
    for p in range(low, high):
        cores = jobs[j, CORES] if s.place[j] >= 0 else s.shares[-1 - s.place[j], p]
        if cores > 0:
            remove_running(s.expected, s.held_cores, parts[p, FIRST_RUNNING], parts[p, RUNNING], key)
            parts[p, RUNNING] -= 1
            parts[p, FREE] += cores
            parts[p, STANDS] = 0
    count_use(s, j, -1)
    if settings[LIMITS]:  # its queue mates may have been held by it
        parts[0 if settings[LONE] else jobs[j, QUEUE], STANDS] = 0


@inlined_in_loop
def plan_head(s, p, now):
    """When the head of part p fits, and what it leaves to others then (rule 12)."""
    parts, jobs, expected, held_cores = s.parts, s.jobs, s.expected, s.held_cores
    parts[p, PLANNED] = 1
    h = parts[p, HEAD]
    c = jobs[h, CORES]
    w = jobs[h, WALLTIME]
    bits = s.settings[BITS]
    at, size = parts[p, FIRST_RUNNING], parts[p, RUNNING]
    instant = first_instant(expected, held_cores, at, size, parts[p, FREE], c, now, bits)
    reserved = parts[p, T_RESERVED]
    share = parts[p, SHARE]
    if reserved < NEVER and instant + w > reserved and parts[p, SLACK_ALONE] < c and instant < parts[p, T_RELEASED]:
        both = NEVER
        if c + share <= parts[p, CAPACITY]:
            both = first_instant(expected, held_cores, at, size, parts[p, FREE], c + share, now, bits)
        instant = min(both, parts[p, T_RELEASED])
    parts[p, INSTANT] = instant
    parts[p, EXTRA] = available(expected, held_cores, at, size, parts[p, FREE], instant, bits) - c
    if reserved <= instant < parts[p, T_RELEASED]:
        parts[p, EXTRA] -= share
    if instant <= reserved < instant + w:
        parts[p, SLACK] -= c


@inlined_in_loop
def room(s, p, until):
    """Cores of a part that a job ending by `until` may take now, beside the reservation and the head (rules 11, 12)."""
    parts = s.parts
    room = parts[p, FREE]
    if until > parts[p, T_RESERVED]:
        room = min(room, parts[p, SLACK])
    if until > parts[p, INSTANT]:
        room = min(room, parts[p, EXTRA])
    return room


@inlined_in_loop
def start_combined(s, j, now):
    """Start job j on its partition and the pool together, if that delays nobody (rule 17)."""
    parts, jobs, settings, shares = s.parts, s.jobs, s.settings, s.shares
    pool = parts.shape[0] - 2
    q = jobs[j, QUEUE]
    c = jobs[j, CORES]
    until = now + jobs[j, WALLTIME]
    n = min(parts[q, FREE], c - 1)
    alone = parts[q, HEAD] < 0 or parts[q, HEAD] == j
    if not alone and parts[q, PLANNED] == 0:
        plan_head(s, q, now)
    if until > parts[q, T_RESERVED]:
        n = min(n, parts[q, SLACK_ALONE] if alone else parts[q, SLACK])
    if not alone and until > parts[q, INSTANT]:
        n = min(n, parts[q, EXTRA])
    if n < 1 or c - n > room(s, pool, until):
        return False
    row = settings[SPREAD]
    settings[SPREAD] += 1
    s.place[j] = -1 - row
    shares[row, :] = 0
    shares[row, q] = n
    shares[row, pool] = c - n
    parts[q, STANDS] = 0
    occupy(s, j, q, n, now)
    occupy(s, j, pool, c - n, now)
    start_job(s, j, now)
    return True
