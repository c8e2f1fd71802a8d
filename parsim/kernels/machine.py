"""The event loop of every machine with queues: shared, partitioned with advance reservations, hybrid with a common pool.

One pass visits the reserved list, the partitions in configuration order, then the pool; a shared machine is a pool of all its cores
that every job calls home. Numbers in comments ("rule 12") refer to docs/simulator.md.

References
----------
Mu'alem and Feitelson, IEEE TPDS 12(6), 2001 (EASY); Kondameedi and Vadhiyar, CCGrid 2017, section III (partitions, advance
reservations, common pool).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from parsim.kernels.order import FORMULA, refresh_values
from parsim.kernels.running import add_running, available, first_instant, pop_key, push_key, remove_running

NEVER = np.int64(2**62)

# Columns of `jobs`: one cache line a job.
SUBMIT, CORES, RUNTIME, WALLTIME, QUEUE, USER, HOME, ELIGIBLE = range(8)
# Columns of `queues`.
STARVATION, RANK, MAX_RUN, MAX_RUN_CORES, MAX_USER_RUN, MAX_USER_CORES, MAX_WALLTIME = range(7)
# Columns of `lists`: where a waiting list lies in `waiting`, and whether its order must be made anew.
OFFSET, LAST, DIRTY = range(3)
# Columns of `parts`: a partition or the pool; from T_RESERVED on, the plan of the present pass.
(CAPACITY, FREE, FIRST_RUNNING, RUNNING, T_RESERVED, SHARE, T_RELEASED,
 HEAD, INSTANT, EXTRA, SLACK, SLACK_ALONE, PLANNED) = range(13)  # fmt: skip
# Entries of `settings`.
BACKFILL, ORDER, COMBINED, STARVING_FIRST, MOVE, LIMITS, TRACK_HELD, STARVES, BITS, LONE = range(10)
# How a job came to start, in `how`.
IN_TURN, BACKFILLED, RESERVED, COMBINED_START = range(4)

STARVING = np.int32(2**30)  # above every rank of a queue


class State(NamedTuple):
    """Everything a pass reads and writes; P parts, of which the last is the pool, Q queues, n jobs, P + 1 lists."""

    jobs: np.ndarray  # int64 (n, 8), ascending by submit
    queues: np.ndarray  # int64 (Q, 7)
    settings: np.ndarray  # int64 (10,)
    lists: np.ndarray  # int64 (P + 1, 3); list p waits for part p, list P is the reserved list
    waiting: np.ndarray  # int32 (3, ...): job, cores and group of each waiting job, list after list
    value: np.ndarray  # float64 (...), beside `waiting`: sorts within a group, largest first
    parts: np.ndarray  # int64 (P, 13)
    expected: np.ndarray  # int64 (...): keys of the running jobs of each part, ascending by expected end
    held_cores: np.ndarray  # int64 (...), beside `expected`
    ends: np.ndarray  # int64 (...): heap of real ends
    wakes: np.ndarray  # int64 (...): heap of eligibility instants
    counts: np.ndarray  # int64 (4,): running jobs, wakes, waiting jobs, spread jobs
    used: np.ndarray  # int64 (Q, 2): running jobs and cores of each queue, heads of this pass included
    used_by: np.ndarray  # int64 (Q * users, 2): the same of each user in each queue
    is_head: np.ndarray  # bool (n,)
    heads: np.ndarray  # int64 (P + 1,)
    held: np.ndarray  # int64 (2, n): since when limits hold a job (-1: they do not), and for how long they did
    start: np.ndarray  # int64 (n,), -1 while waiting
    place: np.ndarray  # int32 (n,): part, or -1 - row of `shares`
    shares: np.ndarray  # int64 (rows, P)
    how: np.ndarray  # int8 (n,)
    cause: np.ndarray  # int32 (n,): the head that a job was backfilled behind, else -1


class Ranking(NamedTuple):
    """What sorts the waiting lists; m static columns, k instructions."""

    priority: np.ndarray  # float64 (Q,)
    code: np.ndarray  # int64 (k, 2): operation and operand
    constants: np.ndarray  # float64 (...)
    columns: np.ndarray  # float64 (m, n): what a formula computes from a job alone
    stack: np.ndarray  # float64 (depth, CHUNK)
    eligible: np.ndarray  # float64 (CHUNK,)


RUNNING_JOBS, WAKES, WAITING, SPREAD = range(4)


@njit(cache=True, nogil=True, inline="always")
def _count(s, j, sign):
    """Add job j to, or take it from, what its queue and its user use."""
    if s.settings[LIMITS] == 0:
        return
    q = s.jobs[j, QUEUE]
    c = s.jobs[j, CORES]
    s.used[q, 0] += sign
    s.used[q, 1] += sign * c
    u = s.jobs[j, USER]
    if u >= 0:
        row = u * s.used.shape[0] + q
        s.used_by[row, 0] += sign
        s.used_by[row, 1] += sign * c


@njit(cache=True, nogil=True)
def _held(s, j):
    """Whether a limit forbids job j to start now (rule 4)."""
    if s.settings[LIMITS] == 0:
        return False
    head = s.is_head[j]
    if head:
        _count(s, j, -1)
    q = s.jobs[j, QUEUE]
    c = s.jobs[j, CORES]
    u = s.jobs[j, USER]
    found = s.used[q, 0] + 1 > s.queues[q, MAX_RUN] or s.used[q, 1] + c > s.queues[q, MAX_RUN_CORES]
    if u >= 0 and not found:
        row = u * s.used.shape[0] + q
        found = s.used_by[row, 0] + 1 > s.queues[q, MAX_USER_RUN] or s.used_by[row, 1] + c > s.queues[q, MAX_USER_CORES]
    if head:
        _count(s, j, 1)
    return found


@njit(cache=True, nogil=True, inline="always")
def _make_head(s, j, p):
    """Job j waits at the head of list p: from here on its limits count it."""
    s.heads[p] = j
    s.is_head[j] = True
    _count(s, j, 1)


@njit(cache=True, nogil=True, inline="always")
def _drop_head(s, p):
    """List p has no head any more."""
    j = s.heads[p]
    if j >= 0:
        s.heads[p] = -1
        s.is_head[j] = False
        _count(s, j, -1)


@njit(cache=True, nogil=True)
def _occupy(s, j, p, cores, now):
    """Job j takes cores of part p until its end, and with them what the plan of this pass has left."""
    part = s.parts[p]
    until = now + s.jobs[j, WALLTIME]
    at = part[FIRST_RUNNING]
    add_running(s.expected, s.held_cores, at, part[RUNNING], (until << s.settings[BITS]) | j, cores)
    part[RUNNING] += 1
    part[FREE] -= cores
    if until > part[T_RESERVED]:
        part[SLACK] -= cores
        part[SLACK_ALONE] -= cores
    if until > part[INSTANT]:
        part[EXTRA] -= cores


@njit(cache=True, nogil=True)
def _start(s, j, now, how, cause):
    """Job j, whose cores are taken already, starts: it leaves the waiting and will end."""
    for p in range(s.heads.shape[0]):
        if s.heads[p] == j:
            _drop_head(s, p)
            if p < s.parts.shape[0]:
                s.parts[p, HEAD] = -1
                s.parts[p, INSTANT] = NEVER
    s.start[j] = now
    s.how[j] = how
    s.cause[j] = cause
    s.counts[WAITING] -= 1
    push_key(s.ends, s.counts[RUNNING_JOBS], ((now + s.jobs[j, RUNTIME]) << s.settings[BITS]) | j)
    s.counts[RUNNING_JOBS] += 1
    _count(s, j, 1)


@njit(cache=True, nogil=True)
def _end(s, j):
    """Job j has ended: its cores are idle again, on every part that it ran on."""
    key = ((s.start[j] + s.jobs[j, WALLTIME]) << s.settings[BITS]) | j
    low = s.place[j]
    high = low + 1
    if low < 0:
        low, high = 0, s.parts.shape[0]
    for p in range(low, high):
        cores = s.jobs[j, CORES] if s.place[j] >= 0 else s.shares[-1 - s.place[j], p]
        if cores > 0:
            part = s.parts[p]
            remove_running(s.expected, s.held_cores, part[FIRST_RUNNING], part[RUNNING], key)
            part[RUNNING] -= 1
            part[FREE] += cores
    _count(s, j, -1)


@njit(cache=True, nogil=True)
def _plan_head(s, p, now):
    """When the head of part p fits, and what it leaves to others then (rule 12)."""
    part = s.parts[p]
    part[PLANNED] = 1
    h = part[HEAD]
    c = s.jobs[h, CORES]
    w = s.jobs[h, WALLTIME]
    bits = s.settings[BITS]
    at, size = part[FIRST_RUNNING], part[RUNNING]
    instant = first_instant(s.expected, s.held_cores, at, size, part[FREE], c, now, bits)
    reserved = part[T_RESERVED]
    share = part[SHARE]
    if reserved < NEVER and instant + w > reserved and part[SLACK_ALONE] < c and instant < part[T_RELEASED]:
        both = NEVER
        if c + share <= part[CAPACITY]:
            both = first_instant(s.expected, s.held_cores, at, size, part[FREE], c + share, now, bits)
        instant = min(both, part[T_RELEASED])
    part[INSTANT] = instant
    part[EXTRA] = available(s.expected, s.held_cores, at, size, part[FREE], instant, bits) - c
    if reserved <= instant < part[T_RELEASED]:
        part[EXTRA] -= share
    if instant <= reserved < instant + w:
        part[SLACK] -= c


@njit(cache=True, nogil=True, inline="always")
def _room(part, until):
    """Cores of a part that a job ending by `until` may take now, beside the reservation and the head (rules 11, 12)."""
    room = part[FREE]
    if until > part[T_RESERVED]:
        room = min(room, part[SLACK])
    if until > part[INSTANT]:
        room = min(room, part[EXTRA])
    return room


@njit(cache=True, nogil=True)
def _start_combined(s, j, now, cause):
    """Start job j on its partition and the pool together, if that delays nobody (rule 17)."""
    pool = s.parts.shape[0] - 1
    q = s.jobs[j, QUEUE]
    part = s.parts[q]
    c = s.jobs[j, CORES]
    until = now + s.jobs[j, WALLTIME]
    n = min(part[FREE], c - 1)
    alone = part[HEAD] < 0 or part[HEAD] == j
    if not alone and part[PLANNED] == 0:
        _plan_head(s, q, now)
    if until > part[T_RESERVED]:
        n = min(n, part[SLACK_ALONE] if alone else part[SLACK])
    if not alone and until > part[INSTANT]:
        n = min(n, part[EXTRA])
    if n < 1 or c - n > _room(s.parts[pool], until):
        return False
    row = s.counts[SPREAD]
    s.counts[SPREAD] += 1
    s.place[j] = -1 - row
    s.shares[row, :] = 0
    s.shares[row, q] = n
    s.shares[row, pool] = c - n
    _occupy(s, j, q, n, now)
    _occupy(s, j, pool, c - n, now)
    _start(s, j, now, COMBINED_START, cause)
    return True


@njit(cache=True, nogil=True, inline="always")
def _insert(s, p, j, group, value):
    """Add job j to list p, behind all that are not after it."""
    i = s.lists[p, OFFSET] + s.lists[p, LAST]
    least = s.lists[p, OFFSET]
    s.lists[p, LAST] += 1
    while i > least:
        g = s.waiting[2, i - 1]
        if g > group or (g == group and (s.value[i - 1] > value or (s.value[i - 1] == value and s.waiting[0, i - 1] < j))):
            break
        s.waiting[0, i] = s.waiting[0, i - 1]
        s.waiting[1, i] = s.waiting[1, i - 1]
        s.waiting[2, i] = g
        s.value[i] = s.value[i - 1]
        i -= 1
    s.waiting[0, i] = j
    s.waiting[1, i] = s.jobs[j, CORES]
    s.waiting[2, i] = group
    s.value[i] = value


@njit(cache=True, nogil=True)
def _group(s, p, j, now):
    """The coarse part of job j's place in list p: starving first, then its queue's priority (rule 6)."""
    pool = s.parts.shape[0] - 1
    q = s.jobs[j, QUEUE]
    by_factor = p == pool and s.settings[LONE] == 0
    if p > pool or s.settings[ORDER] == FORMULA and not by_factor:
        return np.int32(0)
    starving = s.queues[q, STARVATION] < NEVER and s.jobs[j, SUBMIT] + s.queues[q, STARVATION] <= now
    if by_factor:
        return STARVING if starving and s.settings[STARVING_FIRST] else np.int32(0)
    return STARVING if starving else np.int32(s.queues[q, RANK])


@njit(cache=True, nogil=True)
def _sort(s, ranking, p, now):
    """Bring list p into its order at this instant, dropping those that started or moved elsewhere."""
    pool = s.parts.shape[0] - 1
    at = s.lists[p, OFFSET]
    kept = at
    for i in range(at, at + s.lists[p, LAST]):
        j = s.waiting[0, i]
        if s.start[j] < 0 and (p >= pool or s.jobs[j, HOME] == p):
            s.waiting[0, kept] = j
            s.waiting[1, kept] = s.waiting[1, i]
            s.waiting[2, kept] = _group(s, p, j, now)
            kept += 1
    refresh_values(s, ranking, p, at, kept, now)
    for i in range(at, kept):  # nearly sorted since the last pass
        if s.waiting[2, i] == STARVING:
            s.value[i] = 0.0
        j, c, g, v = s.waiting[0, i], s.waiting[1, i], s.waiting[2, i], s.value[i]
        k = i
        while k > at:
            if s.waiting[2, k - 1] > g:
                break
            if s.waiting[2, k - 1] == g and (s.value[k - 1] > v or (s.value[k - 1] == v and s.waiting[0, k - 1] < j)):
                break
            s.waiting[0, k] = s.waiting[0, k - 1]
            s.waiting[1, k] = s.waiting[1, k - 1]
            s.waiting[2, k] = s.waiting[2, k - 1]
            s.value[k] = s.value[k - 1]
            k -= 1
        s.waiting[0, k], s.waiting[1, k], s.waiting[2, k], s.value[k] = j, c, g, v
    s.lists[p, LAST] = kept - at
    s.lists[p, DIRTY] = 0


@njit(cache=True, nogil=True, inline="always")
def _note_held(s, j, now, held):
    """Keep account of the time that job j is held by its limits (rule 5)."""
    if held:
        if s.held[0, j] < 0:
            s.held[0, j] = now
    elif s.held[0, j] >= 0:
        s.held[1, j] += now - s.held[0, j]
        s.held[0, j] = -1


@njit(cache=True, nogil=True)
def _visit(s, p, now):
    """Go once over list p and start whom EASY starts on part p (rule 3)."""
    pool = s.parts.shape[0] - 1
    part = s.parts[p]
    at = s.lists[p, OFFSET]
    last = at + s.lists[p, LAST]
    limits = s.settings[LIMITS] != 0
    track = s.settings[TRACK_HELD] != 0
    combined = p == pool and s.settings[COMBINED] != 0
    partner = combined
    head = np.int64(-1)
    gone = False  # somebody left this list
    i = at
    while i < last:
        if head >= 0 and part[FREE] <= 0 and not track:
            break
        j = np.int64(s.waiting[0, i])
        c = np.int64(s.waiting[1, i])
        i += 1
        if head >= 0 and not track and not partner and c > part[FREE]:
            continue
        if s.start[j] >= 0 or (p < pool and s.jobs[j, HOME] != p):
            gone = True
            continue
        held = limits and _held(s, j)
        if track and s.jobs[j, HOME] == p:
            _note_held(s, j, now, held)
        if held:
            continue
        until = now + s.jobs[j, WALLTIME]
        if head >= 0 and part[PLANNED] == 0 and part[FREE] > 0:
            _plan_head(s, p, now)
        if c <= _room(part, until):
            s.place[j] = p
            _occupy(s, j, p, c, now)
            _start(s, j, now, IN_TURN if head < 0 else BACKFILLED, head)
            gone = True
            continue
        if combined and part[FREE] > 0 and _start_combined(s, j, now, head):
            gone = True
            continue
        if head < 0 and c <= part[CAPACITY]:
            head = j
            part[HEAD] = j
            _make_head(s, j, p)
            if s.settings[BACKFILL] == 0:
                break
    if track:
        for k in range(i, last):  # behind the point where the visit ended nobody is held
            j = s.waiting[0, k]
            if s.start[j] < 0 and s.jobs[j, HOME] == p:
                _note_held(s, j, now, False)
    if gone:
        kept = at
        for k in range(at, last):
            j = s.waiting[0, k]
            if s.start[j] < 0 and (p >= pool or s.jobs[j, HOME] == p):
                if kept < k:
                    s.waiting[0, kept] = j
                    s.waiting[1, kept] = s.waiting[1, k]
                    s.waiting[2, kept] = s.waiting[2, k]
                    s.value[kept] = s.value[k]
                kept += 1
        s.lists[p, LAST] = kept - at


@njit(cache=True, nogil=True)
def _starves_before(s, p, g, now):
    """Whether a job that calls part p home starves and was submitted before job g (rule 10)."""
    at = s.lists[p, OFFSET]
    for i in range(at, at + s.lists[p, LAST]):
        j = s.waiting[0, i]
        period = s.queues[s.jobs[j, QUEUE], STARVATION]
        if j < g and s.start[j] < 0 and s.jobs[j, HOME] == p and period < NEVER and s.jobs[j, SUBMIT] + period <= now:
            return True
    return False


@njit(cache=True, nogil=True)
def _visit_reserved(s, now, usable, idle):
    """Start reserved jobs, or let the first that must wait reserve its shares (section 5 of the semantics, rules 9 to 14)."""
    parts = s.parts.shape[0]
    bits = s.settings[BITS]
    at = s.lists[parts, OFFSET]
    last = at + s.lists[parts, LAST]
    gone = False
    i = at
    while i < last:
        g = np.int64(s.waiting[0, i])
        i += 1
        held = s.settings[LIMITS] != 0 and _held(s, g)
        if s.settings[TRACK_HELD]:
            _note_held(s, g, now, held)
        if held:
            continue
        c = s.jobs[g, CORES]
        reach = np.int64(0)
        for p in range(parts):
            usable[p] = s.parts[p, CAPACITY] > 0 and not _starves_before(s, p, g, now)
            if usable[p]:
                reach += s.parts[p, CAPACITY]
        if reach < c:
            break
        t = _earliest(s, c, usable, idle, now)
        total = np.int64(0)
        for p in range(parts):
            idle[p] = 0
            if usable[p]:
                part = s.parts[p]
                idle[p] = available(
                    s.expected, s.held_cores, part[FIRST_RUNNING], part[RUNNING], part[FREE], t, bits
                )
            total += idle[p]
        row = s.counts[SPREAD]
        _share(idle, c, total, s.shares[row], usable)
        if t > now:
            for p in range(parts):
                part = s.parts[p]
                if s.shares[row, p] > 0:
                    part[T_RESERVED] = t
                    part[T_RELEASED] = t + s.jobs[g, WALLTIME]
                    part[SHARE] = s.shares[row, p]
                    part[SLACK_ALONE] = idle[p] - s.shares[row, p]
                    part[SLACK] = part[SLACK_ALONE]
            _make_head(s, g, parts)
            break
        s.counts[SPREAD] += 1
        s.place[g] = -1 - row
        for p in range(parts):
            if s.shares[row, p] > 0:
                _occupy(s, g, p, s.shares[row, p], now)
        _start(s, g, now, RESERVED, -1)
        gone = True
    if s.settings[TRACK_HELD]:
        for k in range(i, last):
            _note_held(s, s.waiting[0, k], now, False)
    if gone:
        kept = at
        for k in range(at, last):
            if s.start[s.waiting[0, k]] < 0:
                s.waiting[0, kept] = s.waiting[0, k]
                kept += 1
        s.lists[parts, LAST] = kept - at


@njit(cache=True, nogil=True)
def _earliest(s, need, usable, cursor, now):
    """First instant at which the usable parts together have `need` cores idle, by expected ends."""
    parts = s.parts.shape[0]
    bits = s.settings[BITS]
    total = np.int64(0)
    for p in range(parts):
        cursor[p] = s.parts[p, FIRST_RUNNING]
        if usable[p]:
            total += s.parts[p, FREE]
    t = now
    while total < need:
        best = -1
        for p in range(parts):
            if usable[p] and cursor[p] < s.parts[p, FIRST_RUNNING] + s.parts[p, RUNNING]:
                if best < 0 or s.expected[cursor[p]] < s.expected[cursor[best]]:
                    best = p
        t = s.expected[cursor[best]] >> bits
        total += s.held_cores[cursor[best]]
        cursor[best] += 1
    return t


@njit(cache=True, nogil=True)
def _share(idle, need, total, share, usable):
    """Divide `need` cores in proportion to what is idle, the rest one each where most is idle (rule 13)."""
    parts = idle.shape[0]
    left = need
    for p in range(parts):
        share[p] = need * idle[p] // total
        left -= share[p]
    while left > 0:
        best = -1
        for p in range(parts):
            if usable[p] and (best < 0 or idle[p] > idle[best]):
                best = p
        share[best] += 1
        left -= 1
        usable[best] = False


@njit(cache=True, nogil=True)
def _next_starving(s, by_queue, cursors, q, now):
    """Instant at which the next waiting job of queue q begins to starve, or NEVER."""
    period = s.queues[q, STARVATION]
    if period == NEVER:
        return NEVER
    while cursors[q, 0] < cursors[q, 1]:
        j = by_queue[cursors[q, 0]]
        instant = s.jobs[j, SUBMIT] + period
        if s.start[j] < 0 and instant > now:
            return instant
        cursors[q, 0] += 1
    return NEVER


@njit(cache=True, nogil=True)
def run(s, ranking, by_queue, cursors):
    """Simulate all jobs; fills ``s.start``, ``s.place``, ``s.shares``, ``s.how`` and ``s.cause``.

    Parameters
    ----------
    s : State
    ranking : Ranking
    by_queue : ndarray(int32), shape (n,)
        Jobs grouped by queue, in order within it; empty where nothing starves.
    cursors : ndarray(int64), shape (Q, 2)
        Begin and end of each queue's group.
    """
    n = s.jobs.shape[0]
    queues = s.queues.shape[0]
    parts = s.parts.shape[0]
    pool = parts - 1
    bits = s.settings[BITS]
    low = (np.int64(1) << bits) - 1
    usable = np.zeros(parts, np.bool_)
    idle = np.zeros(parts, np.int64)
    varying = s.settings[ORDER] > 2  # the order changes as time passes
    lone = s.settings[LONE] != 0
    moves = s.settings[MOVE] != 0
    combined = s.settings[COMBINED] != 0
    may_skip = not combined and s.settings[TRACK_HELD] == 0 and (s.settings[LIMITS] == 0 or s.parts[pool, CAPACITY] == 0 or lone)
    nxt = 0
    now = np.int64(-1)
    while True:
        t = NEVER
        if nxt < n:
            t = s.jobs[nxt, SUBMIT]
        if s.counts[RUNNING_JOBS] > 0:
            t = min(t, s.ends[0] >> bits)
        if s.counts[WAITING] > 0:
            if s.settings[STARVES]:
                for q in range(queues):
                    t = min(t, _next_starving(s, by_queue, cursors, q, now))
            while s.counts[WAKES] > 0 and s.start[s.wakes[0] & low] >= 0:
                pop_key(s.wakes, s.counts[WAKES])
                s.counts[WAKES] -= 1
            if s.counts[WAKES] > 0:
                t = min(t, s.wakes[0] >> bits)
        if t == NEVER:
            break
        now = t

        while s.counts[RUNNING_JOBS] > 0 and (s.ends[0] >> bits) == now:
            j = s.ends[0] & low
            pop_key(s.ends, s.counts[RUNNING_JOBS])
            s.counts[RUNNING_JOBS] -= 1
            _end(s, j)

        while nxt < n and s.jobs[nxt, SUBMIT] == now:
            home = s.jobs[nxt, HOME]
            s.counts[WAITING] += 1
            if (varying and home <= pool) or (home == pool and not lone):
                s.lists[home, DIRTY] = 1
                i = s.lists[home, OFFSET] + s.lists[home, LAST]
                s.waiting[0, i] = nxt
                s.waiting[1, i] = s.jobs[nxt, CORES]
                s.lists[home, LAST] += 1
            else:
                value = 0.0
                if home <= pool and s.settings[ORDER] == 1:
                    value = -float(s.jobs[nxt, WALLTIME])
                elif home <= pool and s.settings[ORDER] == 2:
                    value = float(s.jobs[nxt, WALLTIME])
                group = _group(s, home, nxt, now)
                _insert(s, home, nxt, group, 0.0 if group == STARVING else value)
            if home < pool and s.jobs[nxt, ELIGIBLE] < NEVER:
                push_key(s.wakes, s.counts[WAKES], (s.jobs[nxt, ELIGIBLE] << bits) | nxt)
                s.counts[WAKES] += 1
            nxt += 1

        if s.counts[WAITING] == 0:
            continue
        while s.counts[WAKES] > 0 and (s.wakes[0] >> bits) <= now:
            j = s.wakes[0] & low
            pop_key(s.wakes, s.counts[WAKES])
            s.counts[WAKES] -= 1
            if s.start[j] >= 0:
                continue
            i = s.lists[pool, OFFSET] + s.lists[pool, LAST]
            s.waiting[0, i] = j
            s.waiting[1, i] = s.jobs[j, CORES]
            s.lists[pool, LAST] += 1
            if moves and s.jobs[j, CORES] <= s.parts[pool, CAPACITY]:
                s.lists[s.jobs[j, HOME], DIRTY] = 1
                s.jobs[j, HOME] = pool
        if s.settings[STARVES]:
            for q in range(queues):
                # jobs that began to starve at this very instant stand before the cursor's next one
                k = cursors[q, 0]
                if k < cursors[q, 1] and s.queues[q, STARVATION] < NEVER:
                    j = by_queue[k]
                    if s.start[j] < 0 and s.jobs[j, SUBMIT] + s.queues[q, STARVATION] <= now:
                        for p in range(parts):
                            s.lists[p, DIRTY] = 1

        for p in range(parts):
            part = s.parts[p]
            part[T_RESERVED] = NEVER
            part[HEAD] = -1
            part[INSTANT] = NEVER
            part[PLANNED] = 0
        if s.lists[parts, LAST] > 0:
            _visit_reserved(s, now, usable, idle)
        for p in range(parts):
            waiting = s.lists[p, LAST]
            if waiting == 0 or s.parts[p, CAPACITY] == 0:
                continue
            if may_skip:
                at = s.lists[p, OFFSET]
                free = s.parts[p, FREE]
                found = False
                for i in range(at, at + waiting):
                    found |= s.waiting[1, i] <= free
                if not found:
                    continue
            if varying or s.lists[p, DIRTY] or (p == pool and not lone):
                _sort(s, ranking, p, now)
            _visit(s, p, now)
        for p in range(parts + 1):
            _drop_head(s, p)
