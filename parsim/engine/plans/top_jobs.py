"""Top jobs as PBS plans them: limits, and the cores of each node, are planned as cores are.

Every list has its own head job. Machines of equal nodes with windows are simulated this way, too, unless queues have
head jobs. Names of rules refer to docs/reference/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.engine.plans.promises import find_instant, most_left, plan_first, plan_shares, promise, room_now, row_of
from parsim.engine.plans.rows import ROWS
from parsim.engine.plans.starting import begin_planned
from parsim.engine.plans.windows import forget_windows, plan_windows
from parsim.engine.simulation import NEVER, step


@step
def begin_pass(plans, now):
    """Remove the plans of windows when a pass begins."""
    if plans is None:
        return
    forget_windows(plans, now)


@step
def start_or_promise(s, plans, j, now):
    """Start reserved job j, or plan it beside all other plans; return whether it starts ("nodes of a reservation")."""
    count = s.partitions.size - 1
    begin = find_instant(s, plans, j, now)
    if begin == NEVER:  # rule "jobs without an instant"
        return False
    if s.settings.by_nodes:
        plan_first(s, plans, count, j)
    else:
        plan_shares(s, plans, count, j)
    if begin > now:
        promise(s, plans, count, j, begin)
        return False
    for p in range(count):
        s.shares[s.progress.spanning, p] = plans.takes[ROWS - 1, p]
    begin_planned(s, plans, j, now)
    return True


@step
def may_be_top_job(s, p, j, now):
    """Whether job j may be the head job of list p; sets the partitions on which it is planned (rule "top job")."""
    pool = s.partitions.size - 2
    cores = np.int64(0)
    for q in range(pool + 1):
        s.usable[q] = q == p or (s.settings.by_nodes and s.settings.combined and p == pool and q == s.jobs[j].queue)
        if s.usable[q]:
            cores += s.partitions[q].cores
    return s.jobs[j].cores <= cores and now - s.jobs[j].submit >= s.settings.reservation_delay


@step
def find_place(s, plans, p, j, now):
    """Set the next row of `shares` to job j's cores on each partition, from list p; return whether it may start.

    Rules "combined placement" and "partitions of nodes".
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
    if s.settings.by_nodes:
        shares[own] = min(c, room_now(s, plans, own, j, np.int64(1), now))
    elif c > room_now(s, plans, pool, j, c, now):
        shares[own] = min(c - 1, room_now(s, plans, own, j, np.int64(1), now))
        if shares[own] < 1:
            return False
    shares[pool] = c - shares[own]
    return shares[pool] <= room_now(s, plans, pool, j, shares[pool], now)


@step
def beside_top_job(s, plans, p, now):
    """Return (seconds, cores): a job that runs longer than the seconds may take at most the cores of partition p."""
    plan, row = plans.promises[p], row_of(plans, p)
    if plan.job < 0 or plans.loose[0] or not s.settings.single_list or plan.begin <= now:
        return NEVER, np.int64(0)
    return plan.begin - now, plans.leaves[row, p]


@step
def keep_candidates(s, plans, p, m, now):
    """Keep those of the first m candidates that may start beside the plans by sums of cores; return how many.

    The sums only fall while the list takes cores of its own partition alone. For a single list they add nothing to the
    bounds of `beside_top_job`.
    """
    if plans is None:
        return m
    if s.settings.combined or s.settings.single_list:
        return m
    waiting, free = s.waiting, s.partitions[p].free
    kept = np.int64(0)
    for k in range(m):
        i = s.candidates[k]
        plan_windows(s, plans, now + waiting.walltime[i], now)
        if waiting.cores[i] <= most_left(plans, p, np.int64(waiting.job[i]), free, now, now + waiting.walltime[i]):
            s.candidates[kept] = i
            kept += 1
    return kept
