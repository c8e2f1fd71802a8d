"""The event loop of every machine with queues, and the pass over its waiting lists.

A pass visits the reserved list, the partitions in configuration order, then the pool; a shared machine is a pool of all
its cores that is the home of every job. Names of rules refer to docs/reference/simulator.md.

References
----------
Mu'alem and Feitelson, IEEE TPDS 12(6), 2001 (EASY); Kondameedi and Vadhiyar, CCGrid 2017, sections II and IV.A
(partitions, advance reservations) and III (common pool).
"""

from __future__ import annotations

import numpy as np

from parsim.engine.beside_plans import visit_beside_plans
from parsim.engine.compile.compiled import kernel
from parsim.engine.gates.counters import is_out
from parsim.engine.gates.needs import (
    change_quotas,
    next_change,
    pop_late,
    resubmit,
    soonest_late,
    waits_for_others,
    was_parked,
)
from parsim.engine.lists.entering import enter_lists, keep_out
from parsim.engine.lists.waiting import add_waiting, begin_starving, leave_list
from parsim.engine.order import since_calculated
from parsim.engine.plans.promises import forget_plans
from parsim.engine.plans.reserved_list import visit_reserved
from parsim.engine.plans.starting import end_planned, resume_planned
from parsim.engine.plans.top_jobs import begin_pass
from parsim.engine.preempt.preempting import next_return, was_preempted
from parsim.engine.preempt.victims import wait_again
from parsim.engine.resources.running import last_instant, pop_key, push_key
from parsim.engine.simulation import NEVER, UNKNOWN, count_waiting, routine, step
from parsim.engine.starts import drop_head_job, end_job, resume_running
from parsim.engine.visit import visit_list


@kernel
def events(s, plans, heads, placed):
    """Simulate all jobs of a `Simulation`; fill its `start`, `placement` and `shares` (rule "order of events").

    Jobs that have not started when the loop gives up have a start of -1.

    Parameters
    ----------
    s : Simulation
    plans : parsim.engine.plans.promises.Plans or None
        Where limits, or the cores of each node, are planned for top jobs.
    heads : parsim.engine.plans.queue_head_jobs.HeadJobs or None
    placed : parsim.engine.plans.placed_head_jobs.PlacedHeadJobs or None
        One of these where a list has several head jobs: `heads` reserve amounts, `placed` whole nodes.
    """
    settings, progress = s.settings, s.progress
    n = s.jobs.size
    bits = settings.bits
    low = (np.int64(1) << bits) - 1
    arriving = settings.first
    now = np.int64(-1)
    resume(s, s.running, plans)
    while True:
        now = next_event(s, max(settings.begin, np.int64(s.jobs[arriving].submit)) if arriving < n else NEVER, now)
        if now == NEVER:
            break
        while progress.running > 0 and (s.ends[0] >> bits) == now:
            j = s.ends[0] & low
            pop_key(s.ends, progress.running)
            end(s, s.running, plans, j)
            progress.running -= 1
            if s.needs.following.size > 0:
                submit_followers(s, s.needs, j, now)
        while arriving < n and s.jobs[arriving].submit <= now:
            submit_job(s, arriving, now)
            arriving += 1
        progress.submitted = arriving
        if progress.outside > 0:
            enter_lists(s, s.gates, now)
        if progress.waiting == 0:
            continue
        while progress.wake_ups > 0 and (s.wake_ups[0] >> bits) <= now:
            j = s.wake_ups[0] & low
            pop_key(s.wake_ups, progress.wake_ups)
            progress.wake_ups -= 1
            if s.start[j] < 0 and not is_out(s.gates, j):
                enter_pool(s, j, now)
        if settings.starvation and progress.next_starving <= now:
            advance_starving(s, now)
        one_pass(s, plans, heads, placed, now)
        wait_again(s, s.preempting, now)


@step
def resume(s, running, plans):
    """Start the jobs that run when the simulation begins (rule "jobs of a state")."""
    if running is not None:
        resume_running(s)
    if plans is not None:
        resume_planned(s, plans)


@step
def end(s, running, plans, j):
    """Free the cores of job j, which has ended."""
    if running is not None:
        end_job(s, j)
    if plans is not None:
        end_planned(s, plans, j)


@step
def next_event(s, submit, now):
    """Return the instant of the next event, at most `submit`, the next submission (rule "order of events").

    NEVER ends the loop: nothing happens any more, no key can hold the instant, or no looks are left.
    """
    progress, wake_ups, instants = s.progress, s.wake_ups, s.outages.instants
    bits = s.settings.bits
    low = (np.int64(1) << bits) - 1
    while progress.windows < instants.size and instants[progress.windows] <= now:
        progress.windows += 1
    t = min(submit, instants[progress.windows]) if progress.windows < instants.size else submit
    if progress.running > 0:
        t = min(t, s.ends[0] >> bits)
    if progress.waiting > 0:
        if s.settings.starvation and progress.next_starving <= t:
            advance_starving(s, now)
            t = min(t, progress.next_starving)
        while progress.wake_ups > 0 and s.start[wake_ups[0] & low] >= 0:
            pop_key(wake_ups, progress.wake_ups)
            progress.wake_ups -= 1
        if progress.wake_ups > 0:
            t = min(t, wake_ups[0] >> bits)
        if progress.outside > 0 and progress.retry > now:
            t = min(t, progress.retry)
        if s.settings.calc_period > 0 and progress.running > 0:
            t = min(t, now - since_calculated(s.settings, now) + s.settings.calc_period)
        t = min(t, next_change(s.needs), next_return(s.preempting, now))
    change_quotas(s.needs, s.gates, t)
    within = t <= last_instant(bits) and t < s.settings.until
    progress.now = t if within and progress.looks >= 0 else NEVER
    return progress.now


@step
def advance_starving(s, now):
    """Let all jobs starve that are due, and find the instant at which the next waiting job starves, or NEVER."""
    soonest = NEVER
    for queue in s.queues:
        if queue.starvation == NEVER:
            continue
        while queue.next_starving < queue.end:
            j = np.int64(s.by_queue[queue.next_starving])
            if s.start[j] < 0 and not was_parked(s.needs, j) and not was_preempted(s.preempting, j):
                instant = s.jobs[j].submit + queue.starvation
                if instant > now:
                    soonest = min(soonest, instant)
                    break
                begin_starving(s, j, now)
            queue.next_starving += 1
    if s.needs.progress.late > 0:
        starve_late(s, s.needs, now)
    s.progress.next_starving = min(soonest, soonest_late(s, s.needs))


@routine
def starve_late(s, needs, now):
    """Let the jobs that waited for others starve when they are due."""
    late = pop_late(s, needs, now)
    while late >= 0:
        begin_starving(s, late, now)
        late = pop_late(s, needs, now)


@step
def submit_job(s, j, now):
    """Let job j enter its home list, unless it waits for others to end (rule "dependencies of jobs")."""
    if waits_for_others(s.needs, j):
        return
    home = s.jobs[j].home
    count_waiting(s, j, 1)
    s.progress.looks += s.settings.looks
    if not keep_out(s, s.gates, j):
        add_waiting(s, home, j, now)
    if home < s.partitions.size - 2 and s.eligible_at.size > 0 and s.eligible_at[j] < NEVER:
        push_key(s.wake_ups, s.progress.wake_ups, (s.eligible_at[j] << s.settings.bits) | j)
        s.progress.wake_ups += 1


@routine
def submit_followers(s, needs, j, now):
    """Submit the jobs that waited for job j, which has ended, and wait for no other."""
    for k in range(needs.followed_from[j], needs.followed_from[j + 1]):
        other = np.int64(needs.following[k])
        needs.unmet[other] -= 1
        if needs.unmet[other] == 0 and needs.parked[other]:
            resubmit(s, needs, other, now)
            submit_job(s, other, now)


@step
def enter_pool(s, j, now):
    """Let job j, now eligible, enter the pool's list and, with entry `move`, leave its partition's.

    Rule "moves to the pool".
    """
    pool = s.partitions.size - 2
    job = s.jobs[j]
    spans = s.settings.combined and s.settings.by_nodes
    if s.settings.move and (spans or job.cores <= s.partitions[pool].cores):
        leave_list(s, job.home, j, now)
        job.home = pool
        s.partitions[pool].first_starving = UNKNOWN
    add_waiting(s, pool, j, now)


@step
def one_pass(s, plans, heads, placed, now):
    """Visit every list in which a job waits (rule "order of lists")."""
    partitions = s.partitions
    count = partitions.size - 1
    for p in range(count):
        partitions[p].reserved_from = NEVER
    begin_pass(plans, now)
    if partitions[count].waiting > 0:
        visit_reserved(s, plans, now)
    pool_first = s.settings.combined and s.settings.by_nodes
    for turn in range(count):
        p = (turn + count - 1) % count if pool_first else turn
        if partitions[p].waiting > 0 and partitions[p].cores > 0:
            visit_plainly(s, s.plain, p, now)
            visit_beside_plans(s, plans, heads, placed, s.windows, p, now)
    end_pass(s, plans)


@step
def visit_plainly(s, plain, p, now):
    """Visit list p if only its own head job is planned: `plain` is not None (rule "visit of a list")."""
    if plain is not None:
        visit_list(s, p, now)


@step
def end_pass(s, plans):
    """Remove the head jobs of all lists when a pass ends."""
    forget_plans(s, plans)
    for p in range(s.partitions.size):
        s.partitions[p].head_planned = False
        if s.partitions[p].head_job >= 0:
            drop_head_job(s, p)
