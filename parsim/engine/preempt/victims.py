"""Chooses the running jobs to preempt for a job of a higher tier, and interrupts them.

Names of rules refer to docs/reference/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.engine.fairshare import interrupt
from parsim.engine.gates.counters import count_entered
from parsim.engine.lists.waiting import add_waiting
from parsim.engine.preempt.preempting import LOSES, RETURNS, STAYS, end_run
from parsim.engine.resources.node_types import has_place, lend_nodes, stop_on_types, take_nodes
from parsim.engine.resources.own_nodes import lend_chunks, stop_on_nodes
from parsim.engine.resources.placement import can_be_placed, place_chunks
from parsim.engine.resources.running import remove_key, sift
from parsim.engine.simulation import comes_before, count_waiting, routine, step
from parsim.engine.starts import count_use, startable_cores, vacate


@step
def make_room(s, preempting, p, j, now):
    """Preempt jobs of partition p so that job j, which may not start, may; return whether it may, and has its nodes.

    No job is preempted if all of them would not make enough room.
    """
    if preempting is None:
        return False
    return make_room_on(s, s.node_types, s.placing, p, j, now)


@step
def make_room_on(s, types, placing, p, j, now):
    """Do as `make_room`, out of line where nodes are of several types, for which the code is long."""
    if types is None and placing is None:
        return preempt_on_alike(s, s.preempting, p, j, now)
    return preempt_on_types(s, s.preempting, p, j, now)


@routine
def preempt_on_alike(s, preempting, p, j, now):
    """Do as `preempt_for` where all nodes are alike."""
    return preempt_for(s, preempting, p, j, now)


@routine
def preempt_on_types(s, preempting, p, j, now):
    """Do as `preempt_for` where nodes are of several types."""
    return preempt_for(s, preempting, p, j, now)


@step
def preempt_for(s, preempting, p, j, now):
    """Preempt jobs of partition p for job j and take its nodes, if it may start then; return whether it may."""
    job, partition = s.jobs[j], s.partitions[p]
    most = partition.free
    for tier in range(preempting.tier[job.queue]):
        most += preempting.cores[tier]
    if job.cores > most:
        return False
    count = take_victims(s, preempting, p, j, now)
    for k in range(count):
        preempt(s, preempting, p, np.int64(preempting.taken[preempting.taken.size - 1 - k]), now)
    past = now + job.walltime > partition.shadow
    return count > 0 and take_nodes(s.node_types, j, p, past) and place_chunks(s.placing, j, p, past)


@step
def take_victims(s, preempting, p, j, now):
    """Choose the jobs to preempt: put them at the end of `taken`, and return how many (rule "jobs to preempt")."""
    partition, taken = s.partitions[p], preempting.taken
    low = (np.int64(1) << s.settings.bits) - 1
    tier, until = preempting.tier[s.jobs[j].queue], now + s.jobs[j].walltime
    size = np.int64(0)
    for k in range(partition.first_running, partition.first_running + partition.running):
        other = s.running.keys[k] & low
        queue = s.jobs[other].queue
        if preempting.tier[queue] < tier and preempting.kind[queue] != STAYS:
            taken[size] = other
            size += 1
    if not may_start_without_all(s, s.node_types, s.placing, p, j, until, size):
        return np.int64(0)
    for k in range((size >> 1) - 1, -1, -1):
        sift(taken, k, size, is_taken_before, s)
    count = np.int64(0)
    starts = False
    while not starts and size > 0:
        other = np.int64(taken[0])
        size -= 1
        taken[0] = taken[size]
        sift(taken, 0, size, is_taken_before, s)
        count += 1
        taken[taken.size - count] = other
        lend(s, p, other, 1)
        starts = may_start(s, p, j, until)
    kept = np.int64(0)
    for k in range(count - 1, -1, -1):
        other = np.int64(taken[taken.size - 1 - k])
        lend(s, p, other, -1)
        if not starts or may_start(s, p, j, until):
            taken[taken.size - 1 - k] = -1
            kept += 1
        else:
            lend(s, p, other, 1)
    k = taken.size - 1
    for i in range(taken.size - 1, taken.size - 1 - count, -1):
        if taken[i] >= 0:
            lend(s, p, np.int64(taken[i]), -1)
            taken[k] = taken[i]
            k -= 1
    return count - kept


@routine
def may_start(s, p, j, until):
    """Whether job j, ending by `until`, may start now by its cores and its nodes."""
    past = until > s.partitions[p].shadow
    return (
        s.jobs[j].cores <= startable_cores(s, p, until)
        and has_place(s.node_types, j, p, past)
        and can_be_placed(s.placing, j, p, past)
    )


@step
def may_start_without_all(s, types, placing, p, j, until, size):
    """Whether job j might start without the first `size` jobs of `taken`; where nodes are alike, True unchecked."""
    if types is None and placing is None:
        return True
    for k in range(size):
        lend(s, p, np.int64(s.preempting.taken[k]), 1)
    found = may_start(s, p, j, until) or has_several_kinds(placing, j)
    for k in range(size):
        lend(s, p, np.int64(s.preempting.taken[k]), -1)
    return found


@step
def has_several_kinds(placing, j):
    """Whether job j has chunks of several kinds, which may fit only where less is idle (rule "nodes and totals")."""
    if placing is None:
        return False
    return placing.first[placing.of[j] + 1] - placing.first[placing.of[j]] > 1


@routine
def lend(s, p, j, sign):
    """Add the cores and nodes of running job j to those free for a job at its turn, or undo that."""
    partition, job = s.partitions[p], s.jobs[j]
    past = s.start[j] + job.walltime > partition.shadow
    partition.free += sign * job.cores
    if past:
        partition.extra += sign * job.cores
    lend_nodes(s.node_types, j, p, past, sign)
    lend_chunks(s.placing, j, past, sign)


@step
def is_taken_before(s, i, k):
    """Whether running job i is chosen before running job k (rule "jobs to preempt")."""
    a, b = s.preempting.tier[s.jobs[i].queue], s.preempting.tier[s.jobs[k].queue]
    if a != b:
        return a < b
    if s.start[i] != s.start[k]:
        return s.start[i] > s.start[k]
    return comes_before(s, k, i)


@routine
def preempt(s, preempting, p, j, now):
    """Interrupt running job j; it waits again from the end of the pass on (rule "after a preemption")."""
    job, progress, preemptions = s.jobs[j], s.progress, preempting.progress
    partition, ran, kind = s.partitions[p], now - s.start[j], preempting.kind[job.queue]
    past = s.start[j] + job.walltime > partition.shadow
    key = ((s.start[j] + job.runtime) << s.settings.bits) | j
    remove_key(s.ends, progress.running, key)
    progress.running -= 1
    count_waiting(s, j, 1)
    if past:
        partition.extra += job.cores
    vacate(s, p, j, np.int64(job.cores))
    place = place_of_run(s.node_types, s.placing, j)
    stop_on_types(s.node_types, j, p, past, kind == RETURNS)
    stop_on_nodes(s.placing, j, past, kind == RETURNS)
    count_use(s, j, -1)
    count_entered(s.gates, j)
    interrupt(s.fair, j, now)
    end_run(preempting, job.queue, np.int64(job.cores))
    if kind != LOSES:
        job.runtime -= ran
        job.walltime -= ran
    s.start[j] = -1
    k = preemptions.interruptions
    if k < preempting.interruptions.size:
        preempting.interruptions[k].job = j
        preempting.interruptions[k].begin = now
        preempting.interruptions[k].place = place
    else:
        progress.looks = -1  # the loop gives up
    preempting.last[j] = k
    preemptions.interruptions += 1
    preempting.back[preemptions.back] = j
    preemptions.back += 1
    preemptions.at = now


@step
def place_of_run(types, placing, j):
    """Return the place of running job j, or its first node; 0 where nodes are alike."""
    if types is not None:
        return types.taken[j] - types.first[types.of[j]]
    if placing is not None:
        return placing.node[j]
    return np.int64(0)


@routine
def wait_again(s, preempting, now):
    """Let the jobs that were preempted in this pass wait again (rule "after a preemption")."""
    if preempting is None:
        return
    for k in range(preempting.progress.back):
        j = np.int64(preempting.back[k])
        add_waiting(s, s.jobs[j].home, j, now)
    preempting.progress.back = 0
