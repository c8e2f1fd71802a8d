"""EASY as PBS plans its top jobs: limits, and the cores of each node, are planned as cores are.

Every list has a head job of its own. Any machine is simulated so while cores are out of service. Numbers ("rule 20")
refer to docs/reference/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.kernels.entering import enter_lists
from parsim.kernels.general import advance_starving, let_come, next_event, submit_job
from parsim.kernels.order import LJF, before, refresh_values
from parsim.kernels.planned_limits import is_held_later
from parsim.kernels.plans import (
    ROWS,
    begin_planned,
    end_planned,
    find_instant,
    forget_windows,
    most_left,
    plan_first,
    plan_shares,
    plan_windows,
    promise,
    resume_planned,
    room_now,
    stop_counting,
)
from parsim.kernels.reservations import find_usable
from parsim.kernels.running import pop_key, sift
from parsim.kernels.starts import is_held
from parsim.kernels.state import NEVER, UNKNOWN, kernel, routine, step
from parsim.kernels.throttles import is_out
from parsim.kernels.waiting import (
    STARTED,
    add_waiting,
    drop_started,
    end_visit,
    kind_of,
    leave_list,
    leave_others,
    note_held,
)
from parsim.kernels.windows import next_instant


@kernel
def top_job(s, plans_limits, by_nodes, plans):
    """Simulate the jobs of a `parsim.kernels.state.State`; fills its `start`, `placement` and `shares`.

    With `plans_limits` a job that its limits hold may be a head job; with `by_nodes` nodes are told apart.
    """
    settings, progress = s.settings, s.progress
    n = s.jobs.size
    bits = settings.bits
    low = (np.int64(1) << bits) - 1
    wide = settings.combined and by_nodes
    arriving = settings.first
    now = np.int64(-1)
    passed = np.int64(0)
    resume_planned(s, plans)
    while True:
        submit = max(settings.begin, np.int64(s.jobs[arriving].submit)) if arriving < n else NEVER
        now = next_event(s, min(submit, next_instant(plans.outages.instants, passed)), now)
        while next_instant(plans.outages.instants, passed) <= now < NEVER:
            passed += 1
        if now == NEVER:
            break
        while progress.running > 0 and (s.ends[0] >> bits) == now:
            j = s.ends[0] & low
            pop_key(s.ends, progress.running)
            end_planned(s, plans, j)
            let_come(s, s.needs, j, now)
        while arriving < n and s.jobs[arriving].submit <= now:
            submit_job(s, arriving, now)
            arriving += 1
        progress.submitted = arriving
        if progress.outside > 0:
            enter_lists(s, s.throttles, now)
        if progress.waiting == 0:
            continue
        while progress.wake_ups > 0 and (s.wake_ups[0] >> bits) <= now:
            j = s.wake_ups[0] & low
            pop_key(s.wake_ups, progress.wake_ups)
            progress.wake_ups -= 1
            if s.start[j] < 0 and not is_out(s.throttles, j):
                enter_pool(s, j, now, wide)
        if settings.starvation and progress.next_starving <= now:
            advance_starving(s, now)
        one_pass(s, plans_limits, by_nodes, plans, now)


@step
def enter_pool(s, j, now, wide):
    """Job j has become eligible: it enters the pool's list and, with entry `move`, leaves its partition's (rule 26)."""
    pool = s.partitions.size - 2
    job = s.jobs[j]
    if s.settings.move and (wide or job.cores <= s.partitions[pool].cores):
        leave_list(s, job.home, j, now)
        job.home = pool
        s.partitions[pool].first_starving = UNKNOWN
    add_waiting(s, pool, j, now)


@step
def one_pass(s, plans_limits, by_nodes, plans, now):
    """Visit every list in which a job waits (rules 2 and 26)."""
    partitions, promises = s.partitions, plans.promises
    count = partitions.size - 1
    forget_windows(plans, now)
    if partitions[count].waiting > 0:
        visit_reserved(s, plans_limits, by_nodes, plans, now)
    pool_first = s.settings.combined and by_nodes
    for turn in range(count):
        p = (turn + count - 1) % count if pool_first else turn
        if partitions[p].waiting > 0 and partitions[p].cores > 0:
            visit(s, plans_limits, by_nodes, plans, p, now)
    for k in range(count + 1):
        j = promises[k].job
        promises[k].job = -1
        if j >= 0:
            stop_counting(s, j)


@routine
def visit(s, plans_limits, by_nodes, plans, p, now):
    """Go once over list p and start the jobs that EASY starts (rules 3 and 20)."""
    settings, waiting, partition = s.settings, s.waiting, s.partitions[p]
    pool = s.partitions.size - 2
    first, last = partition.first, partition.first + partition.waiting
    counts_later = not settings.single_list and s.partitions[pool].cores > 0 and (settings.limits or settings.combined)
    counts_later |= not settings.single_list and settings.wide_limits
    if not settings.track_held and not counts_later and not any_fits(s, p):
        return
    kind = kind_of(s, p)
    is_sorted = kind <= LJF
    refresh_values(s, kind, first, last, now)
    order = (s, kind, now)
    m = np.int64(0)
    for i in range(first, last):
        s.candidates[m] = i
        m += 1
    make_heap(s.candidates, m, is_sorted, order)
    x = np.int64(0)
    gone = last
    found = False
    while x < m and (settings.track_held or (counts_later and not found) or widest(s, p) > 0):
        if is_sorted:
            i = np.int64(s.candidates[x])
            x += 1
        else:
            i = np.int64(s.candidates[0])
            m -= 1
            s.candidates[0] = s.candidates[m]
            sift(s.candidates, 0, m, before, order)
        j = np.int64(waiting.job[i])
        held = settings.limits and (is_held(s, j) or (plans_limits and is_held_later(s, plans, j, now)))
        if settings.track_held and s.jobs[j].home == p:
            note_held(s, j, now, held)
        if not held and find_place(s, by_nodes, plans, p, j, now):
            begin_planned(s, plans, j, now)
            leave_others(s, p, j, now)
            if partition.first_starving == j:
                partition.first_starving = UNKNOWN
            waiting.job[i] = STARTED
            gone = min(gone, i)
        elif not found and (plans_limits or not held) and may_be_head_job(s, by_nodes, p, j, now):
            goes_on = settings.backfill and (settings.track_held or any_left(s, p, x, m))
            if not goes_on and not counts_later and plans.outages.windows.size == 0 and not settings.wide_limits:
                break
            begin = find_instant(s, plans_limits, plans, j, now)
            if begin == NEVER:  # rule 31
                continue
            found = True
            if not goes_on and not counts_later:
                break
            plan_first(s, plans, p, j)
            promise(s, plans_limits, plans, p, j, begin)
            if not settings.backfill:
                break
            if not settings.track_held and not settings.combined:
                x, m = keep_candidates(s, plans, p, x, m, now)
                make_heap(s.candidates, m, is_sorted, order)
    end_visit(s, p, x if is_sorted else 0, m, gone, last, now)


@step
def make_heap(candidates, m, is_sorted, order):
    """Put first what goes first, unless the list is in order."""
    if not is_sorted:
        for k in range((m >> 1) - 1, -1, -1):
            sift(candidates, k, m, before, order)


@step
def any_left(s, p, x, m):
    """Whether any candidate from `x` on is no wider than what is idle."""
    most, found = np.int32(widest(s, p)), False
    for k in range(x, m):
        found |= s.waiting.cores[s.candidates[k]] <= most
    return found


@step
def keep_candidates(s, plans, p, x, m, now):
    """Keep the candidates from `x` on that the sums of cores let start beside the plans; return both ends.

    These fall only, as long as the list takes cores of its own partition alone.
    """
    waiting = s.waiting
    kept = np.int64(0)
    for k in range(x, m):
        i = s.candidates[k]
        free = s.partitions[p].free
        if waiting.cores[i] <= free:
            j = np.int64(waiting.job[i])
            plan_windows(s, plans, now + waiting.walltime[i], now)
            if waiting.cores[i] <= most_left(plans, p, j, free, now, now + waiting.walltime[i]):
                s.candidates[kept] = i
                kept += 1
    return np.int64(0), kept


@step
def widest(s, p):
    """No job that starts from list p can have more cores than these."""
    pool = s.partitions.size - 2
    most = np.int64(0)
    if p == pool and s.settings.combined:
        for q in range(pool):
            most = max(most, s.partitions[q].free)
    return most + s.partitions[p].free


@step
def any_fits(s, p):
    """Whether any job of list p is no wider than that."""
    most, found = np.int32(widest(s, p)), False
    for i in range(s.partitions[p].first, s.partitions[p].first + s.partitions[p].waiting):
        found |= s.waiting.cores[i] <= most
    return found


@routine
def visit_reserved(s, plans_limits, by_nodes, plans, now):
    """Start reserved jobs, or let the first that must wait reserve its shares (rules 9 to 14, 20 and 27)."""
    partitions, settings, waiting = s.partitions, s.settings, s.waiting
    count = partitions.size - 1
    last = partitions[count].first + partitions[count].waiting
    gone = last
    i = partitions[count].first
    while i < last:
        j = np.int64(waiting.job[i])
        i += 1
        held = settings.limits and is_held(s, j)
        if settings.track_held:
            note_held(s, j, now, held)
        if held and not plans_limits:
            continue
        if find_usable(s, j, now) < s.jobs[j].cores:
            break
        begin = find_instant(s, plans_limits, plans, j, now)
        if begin == NEVER:  # rule 31
            break
        if by_nodes:
            plan_first(s, plans, count, j)
        else:
            plan_shares(s, plans, count, j)
        if begin > now:
            promise(s, plans_limits, plans, count, j, begin)
            break
        row = s.progress.spanning
        for p in range(count):
            s.shares[row, p] = plans.takes[ROWS - 1, p]
        begin_planned(s, plans, j, now)
        waiting.job[i - 1] = STARTED
        gone = min(gone, i - 1)
    if settings.track_held:
        for k in range(i, last):
            note_held(s, waiting.job[k], now, False)
    if gone < last:
        drop_started(s, count, gone)


@step
def may_be_head_job(s, by_nodes, p, j, now):
    """Whether job j may be the head job of list p; sets the partitions on which it is planned (rules 3, 20 and 26)."""
    pool = s.partitions.size - 2
    cores = np.int64(0)
    for q in range(pool + 1):
        s.usable[q] = q == p or (by_nodes and s.settings.combined and p == pool and q == s.jobs[j].queue)
        if s.usable[q]:
            cores += s.partitions[q].cores
    return s.jobs[j].cores <= cores and now - s.jobs[j].submit >= s.settings.reservation_delay


@step
def find_place(s, by_nodes, plans, p, j, now):
    """Set in the next row of `shares` what job j takes of each partition at its turn in list p; whether it may start.

    Rules 17, 23 and 26.
    """
    pool = s.partitions.size - 2
    c = np.int64(s.jobs[j].cores)
    own = np.int64(s.jobs[j].queue)
    combined = p == pool and s.settings.combined
    if c > s.partitions[p].free + (s.partitions[own].free if combined else 0):
        return False
    shares = s.shares[s.progress.spanning]
    shares[:] = 0
    if not combined:
        shares[p] = c
        return c <= room_now(s, plans, p, j, c, now)
    if by_nodes:
        shares[own] = min(c, room_now(s, plans, own, j, np.int64(1), now))
    elif c > room_now(s, plans, pool, j, c, now):
        shares[own] = min(c - 1, room_now(s, plans, own, j, np.int64(1), now))
        if shares[own] < 1:
            return False
    shares[pool] = c - shares[own]
    return shares[pool] <= room_now(s, plans, pool, j, shares[pool], now)
