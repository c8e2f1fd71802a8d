"""EASY on a shared machine as PBS plans its top job: limits, and the cores of each node, are planned as cores are.

One pass goes over the one list; the head job is the top job. Numbers ("rule 20") refer to
docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.kernels.general import advance_starving, next_event, submit_job
from parsim.kernels.order import before, refresh_values
from parsim.kernels.running import pop_key, sift
from parsim.kernels.starts import drop_head_job, end_job, is_held, make_head_job, occupy, resume_running, start_job
from parsim.kernels.state import NEVER, kernel, step
from parsim.kernels.visit import any_fits, begin_visit
from parsim.kernels.waiting import STARTED, drop_started, note_held

NO_SHARE = np.int32(-1)

#: Cores of one node that a job takes; `next` is its next share, or the next of those not in use.
SHARE = np.dtype([("node", np.int32), ("cores", np.int32), ("next", np.int32)], align=True)


class Nodes(NamedTuple):
    """The nodes by number, and the cores of each that running jobs take; without nodes all are empty."""

    idle: NDArray[np.int32]  # (V,): cores of each node
    extra: NDArray[np.int32]  # (V,): those of it that jobs running past the shadow time may take
    first: NDArray[np.int32]  # (n,): the first share of each running job, or `NO_SHARE`
    shares: NDArray[np.void]  # SHARE
    unused: NDArray[np.int64]  # (1,): the first share not in use
    begun: NDArray[np.int64]  # (k, 3): job, node and cores of those that run when the simulation begins


class Counts(NamedTuple):
    """Running jobs and cores of a queue, and of a user in it."""

    jobs: np.int64
    cores: np.int64
    user_jobs: np.int64
    user_cores: np.int64


@kernel
def top_job(s, plans_limits, nodes):
    """Simulate the jobs of a `parsim.kernels.state.State` of one list; fills its `start`.

    With `plans_limits` a job that its limits hold may be the head job.
    """
    settings, progress = s.settings, s.progress
    n = s.jobs.size
    low = (np.int64(1) << settings.bits) - 1
    arriving = settings.first
    now = np.int64(-1)
    s.partitions[0].reserved_from = NEVER
    resume_running(s)
    for row in nodes.begun:
        add_share(nodes, row[0], np.int32(row[1]), np.int32(row[2]))
    while True:
        now = next_event(s, max(settings.begin, np.int64(s.jobs[arriving].submit)) if arriving < n else NEVER, now)
        if now == NEVER:
            break
        while progress.running > 0 and (s.ends[0] >> settings.bits) == now:
            j = s.ends[0] & low
            pop_key(s.ends, progress.running)
            progress.running -= 1
            end_job(s, j)
            vacate_nodes(nodes, j)
        while arriving < n and s.jobs[arriving].submit <= now:
            submit_job(s, arriving, now)
            arriving += 1
        if settings.starvation and progress.waiting > 0 and progress.next_starving <= now:
            advance_starving(s, now)
        if progress.waiting > 0:
            visit(s, plans_limits, nodes, now)


@step
def visit(s, plans_limits, nodes, now):
    """Go once over the list and start the jobs that EASY starts (rules 3 and 20)."""
    settings, waiting, partition = s.settings, s.waiting, s.partitions[0]
    v = begin_visit(s, 0)
    if not settings.track_held and not any_fits(s, v, False):
        return
    refresh_values(s, v.kind, v.first, v.last, now)
    partition.shadow = NEVER
    order = (s, v.kind, now)
    m = np.int64(0)
    for i in range(v.first, v.last):
        s.candidates[m] = i
        m += 1
    make_heap(s.candidates, m, v.sorted, order)
    x = np.int64(0)
    gone = v.last
    head = np.int64(-1)
    counts = Counts(np.int64(0), np.int64(0), np.int64(0), np.int64(0))
    while x < m and (settings.track_held or partition.free > 0):
        if v.sorted:
            i = np.int64(s.candidates[x])
            x += 1
        else:
            i = np.int64(s.candidates[0])
            m -= 1
            s.candidates[0] = s.candidates[m]
            sift(s.candidates, 0, m, before, order)
        j = np.int64(waiting.job[i])
        until = now + waiting.walltime[i]
        held = settings.limits and is_held(s, j)
        if head >= 0 and plans_limits and not held and until > partition.shadow:
            held = is_held_later(s, head, counts, j)
        if settings.track_held:
            note_held(s, j, now, held)
        c = np.int64(waiting.cores[i])
        if not held and may_start(partition, nodes, c, until):
            occupy_nodes(nodes, j, c, until > partition.shadow)
            if head >= 0 and until > partition.shadow:
                counts = add_counts(s, head, counts, j, 1)
            occupy(s, j, 0, c, now)
            s.placement[j] = 0
            start_job(s, j, now)
            waiting.job[i] = STARTED
            gone = min(gone, i)
        elif head < 0 and (plans_limits or not held) and now - s.jobs[j].submit >= settings.reservation_delay:
            if not settings.backfill:
                end_held(s, v.sorted, x, m, now)
                break
            head = j
            if not plans_limits:
                make_head_job(s, j, 0)
            counts = plan_top_job(s, plans_limits, nodes, j, now)
            if not settings.track_held:
                x, m = keep_candidates(s, x, m, now)
                make_heap(s.candidates, m, v.sorted, order)
    if partition.head_job >= 0:
        drop_head_job(s, 0)
    if gone < v.last:
        drop_started(s, 0, gone)


@step
def make_heap(candidates, m, is_sorted, order):
    """Put first what goes first, unless the list is in order."""
    if not is_sorted:
        for k in range((m >> 1) - 1, -1, -1):
            sift(candidates, k, m, before, order)


@step
def keep_candidates(s, x, m, now):
    """Keep the candidates from `x` on that the counts of cores let start beside the head job; return both ends."""
    partition, waiting = s.partitions[0], s.waiting
    kept = np.int64(0)
    for k in range(x, m):
        i = s.candidates[k]
        c = waiting.cores[i]
        if c <= partition.free and (now + waiting.walltime[i] <= partition.shadow or c <= partition.extra):
            s.candidates[kept] = i
            kept += 1
    return np.int64(0), kept


@step
def end_held(s, is_sorted, x, m, now):
    """Behind the point where the visit ended no job is held (rule 5)."""
    if s.settings.track_held:
        for k in range(x if is_sorted else 0, m):
            note_held(s, np.int64(s.waiting.job[s.candidates[k]]), now, False)


@step
def plan_top_job(s, plans_limits, nodes, h, now):
    """Find when head job h may start, and what it leaves to others then (rules 12, 21 and 24).

    Returns
    -------
    Counts
        What is expected to run past that instant, of its queue and of its user there, and it.
    """
    partition, running, bits = s.partitions[0], s.running, s.settings.bits
    low = (np.int64(1) << bits) - 1
    job = s.jobs[h]
    counts = Counts(np.int64(0), np.int64(0), np.int64(0), np.int64(0))
    if plans_limits:
        for k in range(partition.running):
            counts = add_counts(s, h, counts, running.keys[k] & low, 1)
        counts = add_counts(s, h, counts, h, 1)
    idle = np.int64(partition.free)
    by_node = nodes.idle.size > 0
    for node in range(nodes.idle.size):
        nodes.extra[node] = nodes.idle[node]
    shadow = now
    k = np.int64(0)
    while k < partition.running and (
        idle < job.cores or (plans_limits and above_limits(s, h, counts)) or (running.keys[k] >> bits) == shadow
    ):
        shadow = running.keys[k] >> bits
        ending = running.keys[k] & low
        idle += running.cores[k]
        if plans_limits:
            counts = add_counts(s, h, counts, ending, -1)
        if by_node:
            share = nodes.first[ending]
            while share != NO_SHARE:
                nodes.extra[nodes.shares[share].node] += nodes.shares[share].cores
                share = nodes.shares[share].next
        k += 1
    partition.shadow = shadow
    partition.extra = idle - job.cores
    if by_node:
        left = np.int32(job.cores)
        node = 0
        while left > 0:
            taken = min(left, nodes.extra[node])
            nodes.extra[node] -= taken
            left -= taken
            node += 1
    return counts


@step
def add_counts(s, h, counts, j, sign):
    """Count job j where it shares the limits of head job h."""
    job, head = s.jobs[j], s.jobs[h]
    if job.queue != head.queue:
        return counts
    cores = sign * np.int64(job.cores)
    if head.user < 0 or job.user != head.user:
        return Counts(counts.jobs + sign, counts.cores + cores, counts.user_jobs, counts.user_cores)
    return Counts(counts.jobs + sign, counts.cores + cores, counts.user_jobs + sign, counts.user_cores + cores)


@step
def above_limits(s, h, counts):
    """Whether what is counted is above a limit of job h."""
    queue = s.queues[s.jobs[h].queue]
    return (
        counts.jobs > queue.max_run
        or counts.cores > queue.max_run_cores
        or counts.user_jobs > queue.max_user_run
        or counts.user_cores > queue.max_user_cores
    )


@step
def is_held_later(s, h, counts, j):
    """Whether job j, which would run past the shadow time of head job h, would be above a limit then (rule 22)."""
    return s.jobs[j].queue == s.jobs[h].queue and above_limits(s, h, add_counts(s, h, counts, j, 1))


@step
def may_start(partition, nodes, c, until):
    """Whether c cores may be taken until then, beside the head job if there is one (rules 12 and 23)."""
    if c > partition.free or (until > partition.shadow and c > partition.extra):
        return False
    if nodes.idle.size == 0 or until <= partition.shadow:
        return True
    left = c
    for node in range(nodes.idle.size):
        left -= min(nodes.idle[node], nodes.extra[node])
        if left <= 0:
            return True
    return False


@step
def occupy_nodes(nodes, j, c, runs_past):
    """Job j takes cores of the first nodes that have any for it, of each as many as it may (rule 23)."""
    if nodes.idle.size == 0:
        return
    left = np.int32(c)
    node = np.int32(0)
    while left > 0:
        taken = min(left, nodes.idle[node])
        if runs_past:
            taken = min(taken, nodes.extra[node])
        if taken > 0:
            left -= taken
            if runs_past:
                nodes.extra[node] -= taken
            add_share(nodes, j, node, taken)
        node += np.int32(1)


@step
def add_share(nodes, j, node, cores):
    """Job j takes cores of a node."""
    nodes.idle[node] -= cores
    number = np.int32(nodes.unused[0])
    share = nodes.shares[number]
    nodes.unused[0] = share.next
    share.node = node
    share.cores = cores
    share.next = nodes.first[j]
    nodes.first[j] = number


@step
def vacate_nodes(nodes, j):
    """Job j has ended: its cores are idle again on each node."""
    if nodes.idle.size == 0:
        return
    number = nodes.first[j]
    nodes.first[j] = NO_SHARE
    while number != NO_SHARE:
        share = nodes.shares[number]
        following = share.next
        nodes.idle[share.node] += share.cores
        share.next = np.int32(nodes.unused[0])
        nodes.unused[0] = number
        number = following
