"""Starts and ends jobs on nodes, beside the plans of a pass."""

from __future__ import annotations

import numpy as np

from parsim.engine.fairshare import stop_charging
from parsim.engine.gates.counters import count_entered
from parsim.engine.plans.promises import find_left, withdraw
from parsim.engine.plans.rows import end_row, has_plan, list_on, row_after
from parsim.engine.resources.nodes import add, occupy, occupy_node, take_first, vacate
from parsim.engine.resources.running import add_running, remove_running
from parsim.engine.simulation import count_waiting, routine, step
from parsim.engine.starts import count_use, start_job


@routine
def begin_planned(s, plans, j, now):
    """Start job j with the cores of each partition in the next row of `shares`, on the first nodes that plans leave."""
    promises, progress, nodes = plans.promises, s.progress, plans.nodes
    until = now + s.jobs[j].walltime
    withdraw(s, plans, j)
    parts = 0
    for q in range(s.usable.size):
        cores = s.shares[progress.spanning, q]
        if cores == 0:
            continue
        parts += 1
        s.placement[j] = q
        s.partitions[q].free -= cores
        first, last = nodes.first_node[q], nodes.first_node[q + 1]
        left = plans.left[first:last]
        find_left(plans, q, j, nodes.idle, now, until)
        take_first(left, cores, left)
        row = 0
        while row < end_row(plans):
            if has_plan(plans, q, row) and promises[list_on(plans, q, row)].begin < until:
                add(plans.extra[row, first:last], left, -1)
                plans.leaves[row, q] -= cores
            row = row_after(plans, row)
        occupy(nodes, j, first, left)
    if parts > 1:
        s.placement[j] = -1 - progress.spanning
        progress.spanning += 1
    add_running(plans.running, 0, progress.running, (until << s.settings.bits) | j, np.int64(s.jobs[j].cores))
    start_job(s, j, now)


@routine
def resume_planned(s, plans):
    """Start the jobs that run when the simulation begins (rule "jobs of a state")."""
    for row in plans.begun:
        occupy_node(plans.nodes, row[0], np.int32(row[1]), np.int32(row[2]))
    for j in range(s.settings.first):
        for q in range(s.usable.size):
            s.partitions[q].free -= s.shares[j, q]
        key = ((s.start[j] + s.jobs[j].walltime) << s.settings.bits) | j
        add_running(plans.running, 0, s.progress.running, key, np.int64(s.jobs[j].cores))
        count_waiting(s, j, 1)
        count_entered(s.gates, j)
        start_job(s, j, s.start[j])


@step
def end_planned(s, plans, j):
    """Free the cores of job j, which has ended; stop counting and charging it."""
    job = s.jobs[j]
    key = ((s.start[j] + job.walltime) << s.settings.bits) | j
    remove_running(plans.running, 0, s.progress.running, key)
    if s.placement[j] >= 0:
        s.partitions[s.placement[j]].free += job.cores
    else:
        for q in range(s.usable.size):
            s.partitions[q].free += s.shares[-1 - s.placement[j], q]
    vacate(plans.nodes, j)
    count_use(s, j, -1)
    stop_charging(s.fair, j, s.start[j] + job.runtime)
