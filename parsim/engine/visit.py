"""One visit to a waiting list under EASY: which jobs start, which is the head job, which are backfilled.

Names of rules refer to docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from parsim.engine.candidates import (
    any_fits,
    bounds_of,
    find_all_candidates,
    find_candidates,
    keep_shared,
    keep_within,
    put_first,
)
from parsim.engine.lists.lines import reopen_lines, return_to_first
from parsim.engine.lists.waiting import (
    STARTED,
    drop_started,
    has_lines,
    kind_of,
    leave_others,
    note_held,
    promote_next,
    row_of,
)
from parsim.engine.order import LJF, first_entry, refresh_values
from parsim.engine.preempt.preempting import has_tiers, preemptible_cores
from parsim.engine.preempt.victims import make_room
from parsim.engine.resources.node_types import take_nodes
from parsim.engine.resources.placement import place_chunks
from parsim.engine.simulation import BLOCK, GROUP, NEVER, PASSED, UNKNOWN, routine, step
from parsim.engine.starts import (
    is_held,
    make_head_job,
    occupy,
    plan_head_job,
    start_combined,
    start_job,
    startable_cores,
)

# Result of an entry's turn: its job waits on; its job started; and the next job alike took the entry; and lines of its
# queue that had their turn have a turn again.
WAITS, GONE, FOLLOWED, REOPENED = range(4)


class Visit(NamedTuple):
    """Values that do not change during a visit to list `p`, whose entries are ``first:last``."""

    p: int
    first: int
    last: int
    kind: int
    sorted: bool  # the order is constant, and the list has all jobs
    lines: bool  # the list has only the first of jobs alike
    more: int  # most cores that a job of the pool may take of its partition
    widest: int  # no wider job can start at its turn
    counts_later: bool  # the head job decides about jobs of later lists
    one_by_one: bool  # the columns of the list do not tell whether a job may start


@step
def visit_list(s, p, now):
    """Visit list p and start the jobs that EASY starts on partition p (rule "visit of a list")."""
    partition, settings = s.partitions[p], s.settings
    v = begin_visit(s, p)
    if not settings.track_held and settings.reserves and nothing_can_start(s, v):
        return
    if settings.backfill or not v.sorted:
        s.progress.looks -= v.last - v.first
    if not v.sorted:
        begin_turns(s, v, now)
        refresh_values(s, v.kind, v.first, v.last, now)
    stands = partition.plan_stands and partition.reserved_from == NEVER
    shadow, extra = partition.shadow, partition.extra
    partition.shadow, partition.plan_stands = NEVER, False
    running = s.progress.running
    i, gone = start_in_order(s, v, now)
    stands &= s.progress.running == running  # nothing started
    goes_on = settings.backfill and settings.reserves
    fresh, any_may = np.int64(0), partition.head_job < 0 and i < v.last  # where nothing is reserved
    if partition.head_job >= 0 and goes_on and (settings.track_held or partition.free > 0 or has_tiers(s.preempting)):
        any_may = True
        if stands and partition.planned_job == partition.head_job:
            fresh = partition.seen
            partition.shadow, partition.extra, partition.head_planned = shadow, extra, True
        else:
            plan_head_job(s, p, now)
    if any_may:
        gone = min(gone, backfill(s, v, i, fresh, now))
    elif settings.track_held:
        end_held(s, v, i, now)
    if partition.head_job >= 0 and not v.one_by_one and goes_on and partition.reserved_from == NEVER:
        own_limits = not settings.limits or p < s.partitions.size - 2 or settings.single_list
        partition.plan_stands = own_limits and not settings.wide_limits
        partition.planned_job = partition.head_job
    if v.lines and v.one_by_one:
        return_to_first(s, p, row_of(s, p), v.first, v.last, now)
    if gone < v.last:
        drop_started(s, p, gone)
    partition.seen = s.progress.submitted
    partition.has_new = False


@step
def begin_visit(s, p):
    """Return the `Visit` of list p."""
    settings, partition = s.settings, s.partitions[p]
    pool = s.partitions.size - 2
    widest = partition.free + preemptible_cores(s.preempting)
    more = np.int64(0)
    if p == pool and settings.combined and widest > 0:
        for q in range(pool):
            if s.queues[q].waiting > 0:
                more = max(more, s.partitions[q].free)
        widest += more
    kind = kind_of(s, p)
    # The head job counts in quotas, in limits of its queue, and for jobs that take cores here from the pool's list.
    counts_later = p < pool and (
        settings.wide_limits or (settings.limits and s.partitions[pool].cores > 0) or (settings.combined and widest > 0)
    )
    one_by_one = settings.track_held or (settings.combined and p == pool) or has_tiers(s.preempting)
    lines = has_lines(s, p)
    in_turn = kind <= LJF and not lines
    last = partition.first + partition.waiting
    return Visit(p, partition.first, last, kind, in_turn, lines, more, widest, counts_later, one_by_one)


@step
def nothing_can_start(s, v):
    """Whether list p needs no visit: nothing is new since its last plan, or all its jobs are too wide, or held."""
    if nothing_new(s, v):
        return True
    partition = s.partitions[v.p]
    if v.counts_later:
        return False
    if partition.narrowest > v.widest:
        return True
    skip_held = s.settings.limits and not v.sorted and not has_tiers(s.preempting)
    if any_fits(s, v.first, v.last, v.widest, skip_held):
        return False
    if not skip_held:
        partition.narrowest = v.widest + 1  # so that these jobs are not looked at again until more is free
    return True


@step
def nothing_new(s, v):
    """Whether the order of the list is constant, and no job came, left or ended since its last plan."""
    partition = s.partitions[v.p]
    if v.kind > LJF or not partition.plan_stands or partition.has_new or partition.reserved_from < NEVER:
        return False
    if s.settings.reservation_delay > 0 and s.progress.outside > 0:  # wake-ups of jobs kept out are events, too
        return False
    if v.counts_later:
        if s.settings.limits and is_held(s, partition.planned_job):  # jobs of its queue have started elsewhere
            return False
        make_head_job(s, partition.planned_job, v.p)
        partition.head_planned = True
    return True


@step
def begin_turns(s, v, now):
    """Mark the turns of all jobs as still to come, or as over if limits hold a job whose eligible time is tracked."""
    settings, group = s.settings, s.waiting.group[v.first : v.last]
    for k in range(group.size):
        group[k] &= GROUP
    # A visit that ends early records no jobs behind its end; with tiers limits may ease, as jobs are preempted.
    if settings.track_held and settings.backfill and settings.reserves and not has_tiers(s.preempting):
        mark_held(s, v, now)


@routine
def mark_held(s, v, now):
    """Mark the turns of the jobs that limits hold as over: the limits hold them to the end of the pass."""
    group, job = s.waiting.group, s.waiting.job
    for i in range(v.first, v.last):
        if group[i] >= 0 and is_held(s, job[i]):
            group[i] |= PASSED
            if s.settings.track_held and s.jobs[job[i]].home == v.p:
                note_held(s, job[i], now, True)


@step
def next_in_order(s, v, i, now):
    """Return the entry whose turn comes after entry i, or `last`."""
    if v.sorted:
        return i + 1
    s.progress.looks -= v.last - v.first
    best = first_entry(s, v.kind, v.first, v.last, -1, now)
    return v.last if best < 0 else best


@step
def start_in_order(s, v, now):
    """Start jobs in the order of the list until one becomes its head job or stops it (rule "visit of a list").

    Returns
    -------
    i, gone : int
        Entry of this job, or `last`; first entry whose job started, or `last`.
    """
    settings, partition, waiting = s.settings, s.partitions[v.p], s.waiting
    gone = v.last
    i = next_in_order(s, v, v.first - 1, now)
    while i < v.last:
        j = np.int64(waiting.job[i])
        then = WAITS
        if not held_at_its_turn(s, v, j, now):
            then = start_here(s, v, i, now)
            if waiting.job[i] == STARTED:
                gone = min(gone, i)
            elif then == WAITS and not settings.reserves:
                if waits_too_long(s, v.p, j, now):
                    make_head_job(s, j, v.p)
                elif not v.sorted:
                    waiting.group[i] |= PASSED
                break
            elif (
                then == WAITS
                and waiting.cores[i] <= partition.cores
                and now - s.jobs[j].submit >= settings.reservation_delay
            ):
                make_head_job(s, j, v.p)
                break
        if not v.sorted and then < FOLLOWED:
            waiting.group[i] |= PASSED
        i = next_in_order(s, v, i, now)
    return i, gone


@step
def waits_too_long(s, p, j, now):
    """Whether job j has been the first of list p for so long that no job passes it (rule "nothing reserved")."""
    partition = s.partitions[p]
    if partition.waits_first != j:
        partition.waits_first = j
        partition.first_since = now
    return now - partition.first_since >= s.settings.reservation_delay


@step
def held_at_its_turn(s, v, j, now):
    """Whether limits hold job j at its turn; recorded in its home list (rule "eligible time")."""
    held = s.settings.limits and is_held(s, j)
    if s.settings.track_held:
        if s.jobs[j].home == v.p:
            note_held(s, j, now, held)
    elif held and not v.sorted and not has_tiers(s.preempting):
        mark_held(s, v, now)  # the others that it would take a turn of each to find
    return held


@routine
def start_here(s, v, i, now):
    """Start entry i, if it may, on partition p or, combined, on its own and the pool; return WAITS to REOPENED."""
    p = v.p
    waiting, settings, partition = s.waiting, s.settings, s.partitions[p]
    j = np.int64(waiting.job[i])
    was_head_job = s.jobs[j].is_head_job
    c = np.int64(waiting.cores[i])
    until = now + waiting.walltime[i]
    past = until > partition.shadow
    if (
        c <= startable_cores(s, p, until)
        and take_nodes(s.node_types, j, p, past)
        and place_chunks(s.placing, j, p, past)
    ) or make_room(s, s.preempting, p, j, now):
        s.placement[j] = p
        occupy(s, j, p, c, now)
        start_job(s, j, now)
    elif not settings.combined or p != s.partitions.size - 2 or partition.free <= 0 or not start_combined(s, j, now):
        return WAITS
    if not settings.single_list:
        leave_others(s, p, j, now)
    if partition.first_starving == j:
        partition.first_starving = UNKNOWN
    if not v.lines:
        waiting.job[i] = STARTED
        return GONE
    queue = s.jobs[j].queue
    reopened = was_head_job and v.one_by_one and reopen_lines(s, p, v.kind, v.first, v.last, i, queue, now)
    follows = promote_next(s, p, i, now)
    if not follows and waiting.job[i] == j:
        waiting.job[i] = STARTED
        waiting.group[i] |= PASSED
    if reopened:
        return REOPENED
    return FOLLOWED if follows else GONE


@step
def backfill(s, v, head, fresh, now):
    """Start the jobs behind entry `head` that delay neither its job nor a reserved one.

    Rules "shadow time" and "beside a reservation".

    Jobs before number `fresh` could not start under the same plan. Return the first entry whose job started, or `last`.
    """
    settings, partition, candidates, waiting = s.settings, s.partitions[v.p], s.candidates, s.waiting
    gone = v.last
    order = (s, v.kind, now)
    x = m = np.int64(0)
    then, each, is_heap = REOPENED, settings.track_held or has_tiers(s.preempting), False
    while True:
        anew = then == REOPENED
        if anew:
            x, m = np.int64(0), find_all_candidates(s, v, head) if each else find_candidates(s, v, head, fresh, now)
        elif then == GONE and not each and m - x > BLOCK:  # many may not start any more
            m = keep_within(s, bounds_of(s, v, np.int64(0), now), x, m)
            x, m, anew = np.int64(0), keep_shared(s, v, m, now), True
        if not v.sorted:
            is_heap = put_first(candidates, m, is_heap, anew, order)
        if x == m or not (each or partition.free > 0):
            break
        i = np.int64(candidates[x])
        then = WAITS
        if not held_at_its_turn(s, v, np.int64(waiting.job[i]), now):
            then = start_here(s, v, i, now)
            if waiting.job[i] == STARTED:
                gone = min(gone, i)
        elif not v.sorted and not each:
            then = REOPENED
        if v.sorted:
            x, head = x + 1, i
        elif then < FOLLOWED:
            m -= 1
            candidates[0] = candidates[m]
            waiting.group[i] |= PASSED
    return gone


@step
def end_held(s, v, head, now):
    """Record that no job behind the end of the visit is held (rule "eligible time")."""
    waiting = s.waiting
    head_job = s.partitions[v.p].head_job
    for k in range(head + 1 if v.sorted else v.first, v.last):
        j = waiting.job[k]
        if waiting.group[k] >= 0 and j != head_job and j != STARTED and s.jobs[j].home == v.p:
            note_held(s, j, now, False)
