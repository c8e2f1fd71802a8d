"""A visit to a waiting list beside plans: of top jobs, of head jobs of queues, of cores out of service.

Each kind of plan says whether a job may start at its turn, what it takes, and how it is planned as a head job. Kinds
that a simulation lacks are None when a kernel is compiled, so that numba leaves out their code. Names of rules refer to
docs/reference/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.engine.candidates import Bounds, any_fits, collect, keep_within, put_first
from parsim.engine.gates.planned import is_held_beside
from parsim.engine.head_candidates import add_all_first, add_first, begin_turns, queue_of, wants_another
from parsim.engine.lists.lines import reopen_lines, return_to_first
from parsim.engine.lists.waiting import (
    STARTED,
    end_visit,
    give_turn,
    has_lines,
    kind_of,
    leave_others,
    note_held,
    promote_next,
    row_of,
)
from parsim.engine.order import LJF, refresh_values
from parsim.engine.plans import queue_head_jobs
from parsim.engine.plans.placed_head_jobs import place_best, plan_placed, shortest_unplaced
from parsim.engine.plans.promises import find_instant, plan_first, promise
from parsim.engine.plans.queue_head_jobs import all_found, begin_heads, beside_head_jobs, has_all_heads, is_wanted
from parsim.engine.plans.starting import begin_planned
from parsim.engine.plans.top_jobs import beside_top_job, find_place, keep_candidates, may_be_top_job
from parsim.engine.resources import typed_windows
from parsim.engine.simulation import BLOCK, GROUP, LONGEST, NEVER, PASSED, UNKNOWN, routine, step
from parsim.engine.starts import is_held, make_head_job, occupy, start_job

MANY = 512  #: in a sorted list with more waiting jobs, choosing candidates is quicker than a look at each job
TURNS = 32  #: turns in a visit of jobs that could be head jobs, after which all jobs become candidates


@routine
def visit_beside_plans(s, plans, heads, placed, windows, p, now):
    """Visit list p and start the jobs that may start beside plans and windows (rule "visit of a list")."""
    if plans is None and heads is None and placed is None and windows is None:
        return
    settings, waiting, partition = s.settings, s.waiting, s.partitions[p]
    first, last = partition.first, partition.first + partition.waiting
    several = heads is not None or placed is not None
    counts_later = not several and counts_in_later_lists(s)
    if not settings.track_held and not counts_later and nothing_can_start(s, p):
        return
    s.progress.looks -= partition.waiting
    kind, lines = kind_of(s, p), has_lines(s, p)
    is_sorted = kind <= LJF and not lines
    refresh_values(s, kind, first, last, now)
    order = (s, kind, now)
    size = begin_visit(s, heads, placed, windows, p, now)
    x, m = np.int64(0), begin_turns(s, first, last)
    # Unless all matter, candidates are the jobs within bounds, and the first of the jobs that can be head jobs.
    few = partition.waiting <= (MANY if is_sorted else BLOCK)
    all_matter = settings.track_held or not settings.backfill or few or needs_all(heads, placed)
    bounds = bounds_of(s, plans, heads, size, p, all_matter, now)
    gone, turns = last, 0
    complete = ended = False
    if not all_matter:
        m = collect(s, first, last, np.int64(-1), bounds)
        m = add_all_first(s, heads, bounds, first, last, m, is_sorted, order)
    anew, is_heap = True, False
    while not ended and x < m and (settings.track_held or (counts_later and not complete) or widest(s, p) > 0):
        if not is_sorted:
            is_heap = put_first(s.candidates, m, is_heap, anew, order)
        i = np.int64(s.candidates[x])
        j = np.int64(waiting.job[i])
        waiting.group[i] |= PASSED
        passes = cannot_matter(s, heads, p, i, complete)
        held = not passes and settings.limits and (is_held(s, j) or is_held_by_plans(s, plans, j, now))
        if settings.track_held and s.jobs[j].home == p:
            note_held(s, j, now, held)
        starts = follows = again = fewer = adds = False
        if not held and not passes:
            starts, size = take(s, plans, heads, placed, windows, size, j, p, now)
        if starts:
            freed = start(s, s.running, plans, heads, j, p, now)
            if partition.first_starving == j:
                partition.first_starving = UNKNOWN
            if lines:
                waiting.group[i] &= GROUP
                again = freed and reopen_lines(s, p, kind, first, last, i, -1, now)
                follows = promote_next(s, p, i, now)
                if not follows:
                    waiting.group[i] |= PASSED
            if not follows and waiting.job[i] == j:
                waiting.job[i] = STARTED
                gone = min(gone, i)
        elif passes:
            follows = False
        elif several and not settings.backfill:
            ended = not held
        elif (
            not complete and (settings.plans_limits or not held) and may_be_head_job(s, plans, heads, placed, p, i, now)
        ):
            matters = several or counts_later
            matters |= settings.backfill and (settings.track_held or (not matters and any_other_fits(s, p, x + 1, m)))
            if not matters and s.outages.windows.size == 0 and not settings.wide_limits:
                ended = True
            else:
                planned, size = plan_head_job(s, plans, heads, placed, windows, size, j, p, now)
                complete = planned and has_all_head_jobs(heads, placed)
                follows = planned and lines and not complete and has_depth(heads) and give_turn(s, p, i, now)
                ended = planned and not (matters and settings.backfill)
                fewer = planned and not ended and not settings.track_held and (complete or not all_matter)
                again = fewer and complete and all_matter
        if not (complete or all_matter or again):
            adds = wants_another(s, heads, i)
            turns += adds
            again = all_matter = turns == TURNS
            fewer = (fewer or starts) and m - x > BLOCK
        fewer |= plans is not None and complete and starts and settings.single_list and not settings.track_held
        if is_sorted:
            x += 1
        elif not follows:
            m -= 1
            s.candidates[0] = s.candidates[m]
        anew = again or fewer
        if anew:
            bounds = bounds_of(s, plans, heads, size, p, all_matter and not complete, now)
            if again:
                m = keep_placed(s, placed, collect(s, first, last, np.int64(-1), bounds), now)
            else:
                m = keep_within(s, bounds, x, m)
            x = np.int64(0)
            if complete:
                m = keep(s, plans, heads, size, m, p, is_sorted, now)
            elif not all_matter:
                m = add_all_first(s, heads, bounds, first, last, m, is_sorted, order)
        elif adds:
            m = add_first(s, first, last, queue_of(s, heads, i), bounds, x, m, is_sorted, order)
            is_heap = False
    if lines:
        return_to_first(s, p, row_of(s, p), first, last, now)
    end_visit(s, p, x, m, gone, last, now)


@step
def counts_in_later_lists(s):
    """Whether the head job of a list affects jobs of lists that are visited later."""
    settings = s.settings
    with_pool = s.partitions[s.partitions.size - 2].cores > 0 and (settings.limits or settings.combined)
    return not settings.single_list and (with_pool or settings.wide_limits)


@step
def widest(s, p):
    """Return the most cores that a job started from list p can have."""
    pool = s.partitions.size - 2
    most = np.int64(0)
    if p == pool and s.settings.combined:
        for q in range(pool):
            most = max(most, s.partitions[q].free)
    return most + s.partitions[p].free


@step
def any_other_fits(s, p, x, m):
    """Whether any of the candidates ``x:m`` is no wider than `widest`."""
    most, found = np.int32(widest(s, p)), False
    for k in range(x, m):
        found |= s.waiting.cores[s.candidates[k]] <= most
    return found


@step
def nothing_can_start(s, p):
    """Whether all jobs of list p are wider than `widest`."""
    partition, most = s.partitions[p], widest(s, p)
    if partition.narrowest <= most:
        if any_fits(s, partition.first, partition.first + partition.waiting, most, False):
            return False
        partition.narrowest = most + 1  # so that these jobs are not looked at again until more is free
    return True


@step
def bounds_of(s, plans, heads, size, p, all_matter, now):
    """Return the bounds of jobs that may start beside the plans; with `all_matter` every job is within them."""
    free, time, extra, slack_time, slack = LONGEST, LONGEST, np.int64(0), LONGEST, np.int64(0)
    if not all_matter:
        free = min(widest(s, p), LONGEST)
        if plans is not None:
            time, extra = beside_top_job(s, plans, p, now)
        if heads is not None:
            time, extra, slack_time, slack = beside_head_jobs(s.node_types, heads, size, now)
    return Bounds(
        np.int32(free),
        np.int32(min(time, LONGEST)),
        np.int32(min(extra, free)),
        np.int32(min(slack_time, LONGEST)),
        np.int32(min(slack, free)),
        np.int32(0),
    )


@step
def keep_placed(s, placed, m, now):
    """Keep those of the first m candidates with walltimes below `shortest_unplaced`; return how many."""
    if placed is None:
        return m
    kept = np.int64(0)
    for k in range(m):
        i = s.candidates[k]
        s.candidates[kept] = i
        kept += s.waiting.walltime[i] < shortest_unplaced(s.placing, placed, s.waiting.job[i], now)
    return kept


@step
def needs_all(heads, placed):
    """Whether every job must be a candidate: head jobs reserve whole nodes, or are the first jobs of the list."""
    return placed is not None or has_depth(heads)


@step
def has_depth(heads):
    """Whether the first jobs of the list are head jobs, whatever their queue."""
    if heads is None:
        return False
    return heads.depth > 0


@step
def keep(s, plans, heads, size, m, p, is_sorted, now):
    """Keep those of the first m candidates that may start beside the plans of all head jobs; return how many."""
    if heads is not None:
        if is_sorted:  # a turn costs no more than this check
            return m
        return queue_head_jobs.keep_fitting(s, s.node_types, heads, size, m, now)
    return keep_candidates(s, plans, p, m, now)


@step
def begin_visit(s, heads, placed, windows, p, now):
    """Write the amounts idle over time beside the windows known now; return the number of instants."""
    if heads is not None:
        begin_heads(s, heads)
        return queue_head_jobs.begin_visit(s, s.node_types, heads, p, now)
    if placed is not None:
        begin_heads(s, placed)
        placed.visits[0] += 1  # failures of the last visit do not count
    if windows is not None:
        return typed_windows.begin_visit(s, windows, s.node_types, p, now)
    return np.int64(0)


@step
def is_held_by_plans(s, plans, j, now):
    """Whether job j, started now, would exceed a limit beside the plans (rule "limits beside plans")."""
    if plans is None:
        return False
    return s.settings.plans_limits and is_held_beside(s, plans, j, now)


@step
def take(s, plans, heads, placed, windows, size, j, p, now):
    """Take the amounts or nodes of job j, if it may start now; return whether it may, and the number of instants."""
    if plans is not None:
        return find_place(s, plans, p, j, now), size
    if s.jobs[j].cores > s.partitions[p].free:
        return False, size
    if heads is not None:
        return queue_head_jobs.take(s, s.node_types, heads, size, j, p, now)
    if placed is not None:
        return place_best(s, s.placing, placed, j, p, now, now + s.jobs[j].walltime), size
    if windows is not None:
        starts, size = typed_windows.take_place(s, windows, s.node_types, size, j, p, now)
        return starts and typed_windows.take_nodes_in_service(s, windows, s.placing, j, p, now), size
    return False, size


@step
def start(s, running, plans, heads, j, p, now):
    """Start job j, which may start, from list p; return as `release_kept` does, False without head jobs of queues."""
    if running is not None:
        s.placement[j] = p
        occupy(s, j, p, np.int64(s.jobs[j].cores), now)
        start_job(s, j, now)
    if plans is not None:
        begin_planned(s, plans, j, now)
    if not s.settings.single_list:
        leave_others(s, p, j, now)
    if heads is None:
        return False
    return queue_head_jobs.release_kept(s, s.node_types, heads, j, now)


@step
def cannot_matter(s, heads, p, i, complete):
    """Whether the job of entry i is too wide to start, and no head job; `complete`: list p has all its head jobs."""
    if heads is None:
        return False
    settings = s.settings
    if settings.track_held or not settings.backfill or s.waiting.cores[i] <= s.partitions[p].free:
        return False
    return complete or not is_wanted(s, heads, i)


@step
def may_be_head_job(s, plans, heads, placed, p, i, now):
    """Whether the job of entry i, which does not start, may be a head job of list p (rule "top job")."""
    j = np.int64(s.waiting.job[i])
    if plans is not None:
        return may_be_top_job(s, p, j, now)
    if now - s.jobs[j].submit < s.settings.reservation_delay:
        return False
    if placed is not None:
        return placed.begin[s.jobs[j].queue] == NEVER
    if heads is not None:
        if not is_wanted(s, heads, i):
            return False
    return s.jobs[j].cores <= s.partitions[p].cores


@step
def has_all_head_jobs(heads, placed):
    """Whether the list has all the head jobs that it can have."""
    if heads is not None:
        return has_all_heads(heads)
    if placed is not None:
        return all_found(placed)
    return True


@step
def plan_head_job(s, plans, heads, placed, windows, size, j, p, now):
    """Plan job j as a head job of list p; return whether it can ever start, and the number of instants."""
    found = False
    if plans is not None:
        begin = find_instant(s, plans, j, now)
        found = begin < NEVER  # rule "jobs without an instant"
        if found:
            plan_first(s, plans, p, j)
            promise(s, plans, p, j, begin)
    if heads is not None:
        return queue_head_jobs.plan(s, s.node_types, heads, size, j, p, now)
    if placed is not None:
        plan_placed(s, s.placing, placed, j, p, now)
        found = placed.begin[s.jobs[j].queue] != NEVER
    if windows is not None:
        found, size = typed_windows.plan_place(s, windows, s.node_types, size, j, p, now)
        found = found and typed_windows.plan_in_service(s, windows, s.placing, j, p, now)
        if found:
            make_head_job(s, j, p)
    return found, size
