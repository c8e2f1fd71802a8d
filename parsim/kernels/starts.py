"""Starting and ending one job: limits, cores, the plan of the head, and what a backfilled job may take.

Numbers ("rule 12") refer to docs/simulator.md.
"""

from __future__ import annotations

from parsim.kernels.layout import (
    BITS,
    CAPACITY,
    CAUSE,
    CORES,
    EXTRA,
    FIRST_RUNNING,
    FREE,
    HEAD,
    HOW,
    INSTANT,
    IS_HEAD,
    LIMITS,
    MAX_RUN,
    MAX_RUN_CORES,
    MAX_USER_CORES,
    MAX_USER_RUN,
    NEVER,
    PLACE,
    PLANNED,
    QUEUE,
    RUNNING,
    RUNNING_JOBS,
    RUNTIME,
    SHARE,
    SLACK,
    SLACK_ALONE,
    SPANNING,
    SPREAD,
    START,
    T_RELEASED,
    T_RESERVED,
    USED_CORES,
    USED_JOBS,
    USER,
    WAITING,
    WALLTIME,
    inlined,
)
from parsim.kernels.running import add_running, available, first_instant, push_key, remove_running


@inlined
def count_use(jobs, queues, settings, used_by, j, sign):
    """Add job j to, or take it from, what its queue and its user use."""
    if settings[LIMITS] == 0:
        return
    q = jobs[j, QUEUE]
    c = jobs[j, CORES]
    queues[q, USED_JOBS] += sign
    queues[q, USED_CORES] += sign * c
    u = jobs[j, USER]
    if u >= 0:
        row = u * queues.shape[0] + q
        used_by[row, 0] += sign
        used_by[row, 1] += sign * c


@inlined
def is_held(jobs, queues, settings, used_by, j):
    """Whether a limit forbids job j to start now (rule 4)."""
    if settings[LIMITS] == 0:
        return False
    head = jobs[j, IS_HEAD]
    if head:
        count_use(jobs, queues, settings, used_by, j, -1)
    q = jobs[j, QUEUE]
    c = jobs[j, CORES]
    u = jobs[j, USER]
    found = (
        queues[q, USED_JOBS] + 1 > queues[q, MAX_RUN] or queues[q, USED_CORES] + c > queues[q, MAX_RUN_CORES]
    )
    if u >= 0 and not found:
        row = u * queues.shape[0] + q
        found = (
            used_by[row, 0] + 1 > queues[q, MAX_USER_RUN] or used_by[row, 1] + c > queues[q, MAX_USER_CORES]
        )
    if head:
        count_use(jobs, queues, settings, used_by, j, 1)
    return found


@inlined
def make_head(jobs, queues, parts, settings, used_by, j, p):
    """Job j waits at the head of list p: from here on its limits count it."""
    parts[p, HEAD] = j
    jobs[j, IS_HEAD] = True
    count_use(jobs, queues, settings, used_by, j, 1)


@inlined
def drop_head(jobs, queues, parts, settings, used_by, p):
    """List p has no head any more."""
    j = parts[p, HEAD]
    if j >= 0:
        parts[p, HEAD] = -1
        jobs[j, IS_HEAD] = False
        count_use(jobs, queues, settings, used_by, j, -1)


@inlined
def occupy(jobs, parts, settings, expected, held_cores, j, p, cores, now):
    """Job j takes cores of part p until its end, and with them what the plan of this pass has left."""
    until = now + jobs[j, WALLTIME]
    at = parts[p, FIRST_RUNNING]
    add_running(expected, held_cores, at, parts[p, RUNNING], (until << settings[BITS]) | j, cores)
    parts[p, RUNNING] += 1
    parts[p, FREE] -= cores
    if until > parts[p, T_RESERVED]:
        parts[p, SLACK] -= cores
        parts[p, SLACK_ALONE] -= cores
    if until > parts[p, INSTANT]:
        parts[p, EXTRA] -= cores


@inlined
def start_job(jobs, queues, parts, settings, ends, used_by, j, now, how, cause):
    """Job j, whose cores are taken already, starts: it leaves the waiting and will end."""
    for p in range(parts.shape[0]):
        if parts[p, HEAD] == j:
            drop_head(jobs, queues, parts, settings, used_by, p)
            if p < parts.shape[0] - 1:
                parts[p, HEAD] = -1
                parts[p, INSTANT] = NEVER
    jobs[j, START] = now
    jobs[j, HOW] = how
    jobs[j, CAUSE] = cause
    settings[WAITING] -= 1
    push_key(ends, settings[RUNNING_JOBS], ((now + jobs[j, RUNTIME]) << settings[BITS]) | j)
    settings[RUNNING_JOBS] += 1
    count_use(jobs, queues, settings, used_by, j, 1)


@inlined
def end_job(jobs, queues, parts, settings, expected, held_cores, used_by, shares, j):
    """Job j has ended: its cores are idle again, on every part that it ran on."""
    key = ((jobs[j, START] + jobs[j, WALLTIME]) << settings[BITS]) | j
    low = jobs[j, PLACE]
    high = low + 1
    if low < 0:
        low, high = 0, parts.shape[0] - 1
    for p in range(low, high):
        cores = jobs[j, CORES] if jobs[j, PLACE] >= 0 else shares[-1 - jobs[j, PLACE], p]
        if cores > 0:
            remove_running(expected, held_cores, parts[p, FIRST_RUNNING], parts[p, RUNNING], key)
            parts[p, RUNNING] -= 1
            parts[p, FREE] += cores
    count_use(jobs, queues, settings, used_by, j, -1)


@inlined
def plan_head(jobs, parts, settings, expected, held_cores, p, now):
    """When the head of part p fits, and what it leaves to others then (rule 12)."""
    parts[p, PLANNED] = 1
    h = parts[p, HEAD]
    c = jobs[h, CORES]
    w = jobs[h, WALLTIME]
    bits = settings[BITS]
    at, size = parts[p, FIRST_RUNNING], parts[p, RUNNING]
    instant = first_instant(expected, held_cores, at, size, parts[p, FREE], c, now, bits)
    reserved = parts[p, T_RESERVED]
    share = parts[p, SHARE]
    if (
        reserved < NEVER
        and instant + w > reserved
        and parts[p, SLACK_ALONE] < c
        and instant < parts[p, T_RELEASED]
    ):
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


@inlined
def room(parts, p, until):
    """Cores of a part that a job ending by `until` may take now, beside the reservation and the head (rules 11, 12)."""
    room = parts[p, FREE]
    if until > parts[p, T_RESERVED]:
        room = min(room, parts[p, SLACK])
    if until > parts[p, INSTANT]:
        room = min(room, parts[p, EXTRA])
    return room


@inlined
def start_combined(jobs, queues, parts, settings, expected, held_cores, ends, used_by, shares, j, now, cause):
    """Start job j on its partition and the pool together, if that delays nobody (rule 17)."""
    pool = parts.shape[0] - 2
    q = jobs[j, QUEUE]
    c = jobs[j, CORES]
    until = now + jobs[j, WALLTIME]
    n = min(parts[q, FREE], c - 1)
    alone = parts[q, HEAD] < 0 or parts[q, HEAD] == j
    if not alone and parts[q, PLANNED] == 0:
        plan_head(jobs, parts, settings, expected, held_cores, q, now)
    if until > parts[q, T_RESERVED]:
        n = min(n, parts[q, SLACK_ALONE] if alone else parts[q, SLACK])
    if not alone and until > parts[q, INSTANT]:
        n = min(n, parts[q, EXTRA])
    if n < 1 or c - n > room(parts, pool, until):
        return False
    row = settings[SPREAD]
    settings[SPREAD] += 1
    jobs[j, PLACE] = -1 - row
    shares[row, :] = 0
    shares[row, q] = n
    shares[row, pool] = c - n
    occupy(jobs, parts, settings, expected, held_cores, j, q, n, now)
    occupy(jobs, parts, settings, expected, held_cores, j, pool, c - n, now)
    start_job(jobs, queues, parts, settings, ends, used_by, j, now, SPANNING, cause)
    return True
