"""Which running jobs are preempted for a job of a higher tier, and what becomes of them.

Numbers ("rule 55") refer to docs/reference/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.kernels.fairshare import charge
from parsim.kernels.preempting import KEEPS, STAYS, end_run, place_of
from parsim.kernels.running import remove_key, sift
from parsim.kernels.starts import count_use, vacate
from parsim.kernels.state import routine, seldom, step
from parsim.kernels.throttles import count_entered
from parsim.kernels.waiting import add_waiting


@routine
def make_room(s, preempting, p, j, now):
    """Preempt jobs of partition p so that job j, which may not start, may; or none, if it may not with all of them."""
    if preempting is None:
        return False
    job, partition = s.jobs[j], s.partitions[p]
    most = partition.free
    for tier in range(preempting.tier[job.queue]):
        most += preempting.cores[tier]
    if job.cores > most:
        return False
    count = take_victims(s, preempting, p, j, now)
    for k in range(count):
        preempt(s, preempting, p, np.int64(preempting.taken[preempting.taken.size - 1 - k]), now)
    return count > 0


@step
def take_victims(s, preempting, p, j, now):
    """Choose the jobs to preempt: put them at the end of `taken`, and return how many (rule 55)."""
    job, partition, taken = s.jobs[j], s.partitions[p], preempting.taken
    low = (np.int64(1) << s.settings.bits) - 1
    tier, until = preempting.tier[job.queue], now + job.walltime
    size = np.int64(0)
    for k in range(partition.first_running, partition.first_running + partition.running):
        other = s.running.keys[k] & low
        queue = s.jobs[other].queue
        if preempting.tier[queue] < tier and preempting.kind[queue] != STAYS:
            taken[size] = other
            size += 1
    for k in range((size >> 1) - 1, -1, -1):
        sift(taken, k, size, is_taken_before, s)
    idle, extra = partition.free, partition.extra
    delays = until > partition.shadow
    count = np.int64(0)
    while job.cores > (min(idle, extra) if delays else idle):
        if size == 0:
            return np.int64(0)
        other = np.int64(taken[0])
        size -= 1
        taken[0] = taken[size]
        sift(taken, 0, size, is_taken_before, s)
        count += 1
        taken[taken.size - count] = other
        idle += s.jobs[other].cores
        extra += cores_after(s, partition.shadow, other)
    kept = np.int64(0)
    for k in range(count - 1, -1, -1):
        other = np.int64(taken[taken.size - 1 - k])
        cores, after = s.jobs[other].cores, cores_after(s, partition.shadow, other)
        if job.cores <= (min(idle - cores, extra - after) if delays else idle - cores):
            idle -= cores
            extra -= after
            taken[taken.size - 1 - k] = -1
            kept += 1
    count -= kept
    k = taken.size - 1
    for i in range(taken.size - 1, taken.size - 1 - count - kept, -1):
        if taken[i] >= 0:
            taken[k] = taken[i]
            k -= 1
    return count


@step
def cores_after(s, instant, j):
    """Cores of running job j if it is expected to run past an instant."""
    job = s.jobs[j]
    return np.int64(job.cores) if s.start[j] + job.walltime > instant else np.int64(0)


@step
def is_taken_before(s, i, k):
    """Whether running job i is taken before job k (rule 55)."""
    a, b = s.preempting.tier[s.jobs[i].queue], s.preempting.tier[s.jobs[k].queue]
    if a != b:
        return a < b
    if s.start[i] != s.start[k]:
        return s.start[i] > s.start[k]
    return place_of(s.preempting, i) > place_of(s.preempting, k)


@seldom
def preempt(s, preempting, p, j, now):
    """Interrupt running job j; it waits again from the end of the pass on (rule 56)."""
    job, progress, preemptions = s.jobs[j], s.progress, preempting.progress
    partition, ran = s.partitions[p], now - s.start[j]
    key = ((s.start[j] + job.runtime) << s.settings.bits) | j
    remove_key(s.ends, progress.running, key)
    progress.running -= 1
    progress.waiting += 1
    if s.start[j] + job.walltime > partition.shadow:
        partition.extra += job.cores
    vacate(s, p, j, np.int64(job.cores))
    count_use(s, j, -1)
    count_entered(s.throttles, j)
    charge(s.fair, j, -np.int64(job.cores), now)
    end_run(preempting, job.queue, np.int64(job.cores))
    if preempting.kind[job.queue] == KEEPS:
        job.runtime -= ran
        job.walltime -= ran
    s.start[j] = -1
    k = preemptions.interruptions
    if k < preempting.interruptions.size:
        preempting.interruptions[k].job = j
        preempting.interruptions[k].begin = now
    else:
        progress.looks = -1  # the loop gives up
    preempting.last[j] = k
    preemptions.interruptions += 1
    preempting.back[preemptions.back] = j
    preemptions.back += 1
    preemptions.at = now


@routine
def come_back(s, preempting, now):
    """Let the jobs wait that were preempted in this pass (rule 56)."""
    if preempting is None:
        return
    for k in range(preempting.progress.back):
        j = np.int64(preempting.back[k])
        add_waiting(s, s.jobs[j].home, j, now)
    preempting.progress.back = 0
