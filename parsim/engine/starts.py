"""Starting and ending one job: limits, cores, the plan of the head job, and what a backfilled job may take.

Names of rules refer to docs/reference/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.engine.fairshare import charge, stop_charging
from parsim.engine.gates.counters import count_entered, count_in_gates, is_gated
from parsim.engine.preempt.preempting import begin_run, end_run
from parsim.engine.resources.chunks import leave_chunks
from parsim.engine.resources.node_types import leave_nodes, plan_nodes, resume_nodes
from parsim.engine.resources.placement import plan_chunks, resume_chunks
from parsim.engine.resources.running import add_running, available, first_instant, push_key, remove_running
from parsim.engine.simulation import NEVER, count_waiting, routine, step


@step
def count_use(s, j, sign):
    """Add job j to the counts of its gates (`sign` 1), or remove it (-1)."""
    if s.settings.limits:
        count_in_gates(s.gates, s.jobs, j, s.start[j], sign)


@step
def is_held(s, j):
    """Whether a gate forbids job j to start now (rule "held by limits")."""
    job = s.jobs[j]
    others = 1 - np.int64(job.is_head_job)  # a head job counts already
    return is_gated(s.gates, j, others, np.int64(job.walltime), s.progress.now)


@step
def make_head_job(s, j, p):
    """Make job j the head job of list p; limits count it from now on, once even if it is that of two lists."""
    job = s.jobs[j]
    s.partitions[p].head_job = j
    if not job.is_head_job:
        job.is_head_job = True
        count_use(s, j, 1)


@step
def drop_head_job(s, p):
    """Remove the head job of list p."""
    partition = s.partitions[p]
    j = partition.head_job
    partition.head_job = -1
    if j >= 0 and s.jobs[j].is_head_job:
        s.jobs[j].is_head_job = False
        count_use(s, j, -1)


@step
def occupy(s, j, p, cores, now):
    """Take cores of partition p for job j until its expected end, also from what the plans of this pass leave."""
    partition = s.partitions[p]
    until = now + s.jobs[j].walltime
    add_running(s.running, partition.first_running, partition.running, (until << s.settings.bits) | j, cores)
    partition.running += 1
    partition.free -= cores
    if until > partition.reserved_from:
        partition.slack -= cores
        partition.slack_alone -= cores
    if until > partition.shadow:
        partition.extra -= cores


@routine
def start_job(s, j, now):
    """Start job j, whose cores are taken already: it waits no more, and its end becomes an event."""
    job, progress = s.jobs[j], s.progress
    if job.is_head_job:  # of its partition: it starts from the pool's list
        p = job.home
        drop_head_job(s, p)
        s.partitions[p].shadow = NEVER
    s.start[j] = now
    progress.retry = now + 1
    count_waiting(s, j, -1)
    push_key(s.ends, progress.running, ((now + job.runtime) << s.settings.bits) | j)
    progress.running += 1
    count_use(s, j, 1)
    charge(s.fair, j, now)
    begin_run(s.preempting, j, job.queue, np.int64(job.cores), now)


@routine
def resume_running(s):
    """Start the jobs that run when the simulation begins (rule "jobs of a state")."""
    for j in range(s.settings.first):
        begin = s.start[j]
        for p in range(s.partitions.size - 1):
            if s.shares[j, p] > 0:
                occupy(s, j, p, s.shares[j, p], begin)
        resume_nodes(s.node_types, j, np.int64(s.placement[j]))
        resume_chunks(s.placing, j, np.int64(s.placement[j]))
        count_waiting(s, j, 1)
        count_entered(s.gates, j)
        start_job(s, j, begin)


@step
def end_job(s, j):
    """Free the cores of job j, which has ended, on every partition that it ran on."""
    job = s.jobs[j]
    low = np.int64(s.placement[j])
    high = low + 1
    if low < 0:
        low, high = 0, s.partitions.size - 1
    for p in range(low, high):
        cores = job.cores if s.placement[j] >= 0 else s.shares[-1 - s.placement[j], p]
        if cores > 0:
            vacate(s, p, j, cores)
    leave_nodes(s.node_types, j, np.int64(s.placement[j]))
    leave_chunks(s.placing, j)
    count_use(s, j, -1)
    stop_charging(s.fair, j, s.start[j] + job.runtime)
    end_run(s.preempting, job.queue, np.int64(job.cores))
    if s.settings.limits:  # which may have held other jobs of its queue
        s.partitions[0 if s.settings.single_list else job.queue].plan_stands = False


@step
def vacate(s, p, j, cores):
    """Free the cores of job j on partition p."""
    partition = s.partitions[p]
    key = ((s.start[j] + s.jobs[j].walltime) << s.settings.bits) | j
    remove_running(s.running, partition.first_running, partition.running, key)
    partition.running -= 1
    partition.free += cores
    partition.plan_stands = False


@step
def plan_head_job(s, p, now):
    """Find the shadow time of partition p's head job, and the extra cores then (rule "shadow time")."""
    partition, running, bits = s.partitions[p], s.running, s.settings.bits
    partition.head_planned = True
    job = s.jobs[partition.head_job]
    c = job.cores
    w = job.walltime
    shadow = first_instant(running, partition.first_running, partition.running, partition.free, c, now, bits)
    if (
        partition.reserved_from < NEVER
        and shadow + w > partition.reserved_from
        and partition.slack_alone < c
        and shadow < partition.reserved_until
    ):
        both = NEVER
        if c + partition.share <= partition.cores:
            both = first_instant(
                running, partition.first_running, partition.running, partition.free, c + partition.share, now, bits
            )
        shadow = min(both, partition.reserved_until)
    partition.shadow = shadow
    partition.extra = available(running, partition.first_running, partition.running, partition.free, shadow, bits) - c
    if partition.reserved_from <= shadow < partition.reserved_until:
        partition.extra -= partition.share
    if shadow <= partition.reserved_from < shadow + w:
        partition.slack -= c
    plan_nodes(s, s.node_types, p, now)
    plan_chunks(s, s.placing, p, now)


@step
def startable_cores(s, p, until):
    """Return the cores that a job ending by `until` may take, and delay no reserved or head job ("shadow time")."""
    partition = s.partitions[p]
    cores = partition.free
    if until > partition.reserved_from:
        cores = min(cores, partition.slack)
    if until > partition.shadow:
        cores = min(cores, partition.extra)
    return cores


@step
def start_combined(s, j, now):
    """Start job j on partition and pool, if it delays no head job; return whether it starts ("combined placement")."""
    pool = s.partitions.size - 2
    q = s.jobs[j].queue
    partition = s.partitions[q]
    c = s.jobs[j].cores
    until = now + s.jobs[j].walltime
    n = min(partition.free, c - 1)
    alone = partition.head_job < 0 or partition.head_job == j
    if not alone and not partition.head_planned:
        plan_head_job(s, q, now)
    if until > partition.reserved_from:
        n = min(n, partition.slack_alone if alone else partition.slack)
    if not alone and until > partition.shadow:
        n = min(n, partition.extra)
    if n < 1 or c - n > startable_cores(s, pool, until):
        return False
    row = s.progress.spanning
    s.shares[row, :] = 0
    s.shares[row, q] = n
    s.shares[row, pool] = c - n
    start_spanning(s, j, now)
    return True


@step
def start_spanning(s, j, now):
    """Start job j on several partitions, with the cores of each in the next row of `shares`."""
    row = s.progress.spanning
    s.progress.spanning += 1
    s.placement[j] = -1 - row
    for p in range(s.partitions.size - 1):
        if s.shares[row, p] > 0:
            s.partitions[p].plan_stands = False
            occupy(s, j, p, s.shares[row, p], now)
    start_job(s, j, now)
