"""Head jobs as Slurm backfills: each queue of a shared machine has one, and a node stays idle for it.

Or the first jobs of each list, so many or all, are its head jobs. The plans of all head jobs of a visit count together,
as cores over time. Numbers ("rule 28") refer to docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.kernels.profile import Profile, change, fit
from parsim.kernels.state import NEVER, step
from parsim.kernels.windows import UNKNOWN_END, is_known

ABSENT = NEVER + 1  #: in place of `begin` where no job of a queue waits


class HeadJobs(NamedTuple):
    """The plans of the head jobs in the present visit, by queue: from `begin`, `NEVER` without one, to `end`."""

    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    keeps: NDArray[np.int64]  # idle cores that stay idle for it
    node: np.int64  # cores of a node
    depth: np.int64  # head jobs of a list, whatever their queues, and no idle nodes for them (rule 49); else 0
    count: NDArray[np.int64]  # (1,): of these found
    out: NDArray[np.int64]  # (1,): cores that windows take now
    idle: Profile


@step
def queue_of(s, j):
    """The row of the plan of job j: its queue's on a shared machine, else the only one."""
    return np.int64(s.jobs[j].queue) if s.settings.single_list else np.int64(0)


@step
def begin_heads(s, heads, p):
    """Let no queue have a head job yet; those of which no job waits cannot have one."""
    partition, missing = s.partitions[p], heads.begin.size
    heads.begin[:] = ABSENT
    for i in range(partition.first, partition.first + partition.waiting):
        if missing == 0:
            break
        k = queue_of(s, s.waiting.job[i])
        if heads.begin[k] == ABSENT:
            heads.begin[k] = NEVER
            missing -= 1


@step
def begin_visit(s, heads, p, now):
    """Write when the cores of partition p are idle, beside the windows known now; return the size of the profile."""
    idle, outages = heads.idle, s.outages
    size = expected_ends(s, idle, p, now)
    heads.count[0] = heads.out[0] = 0
    for k in range(outages.windows.size):
        window = outages.windows[k]
        if is_known(window, now):
            size = change(idle, size, max(now, window.begin), window.known_end, -outages.taken[k, p])
            heads.out[0] += outages.taken[k, p] if window.begin <= now else 0
    return size


@step
def take(s, heads, size, j, p, now):
    """Let job j have its cores, if it may start now; return whether it may, and the size of the profile (rule 28)."""
    c, w = np.int64(s.jobs[j].cores), np.int64(s.jobs[j].walltime)
    left = s.partitions[p].free - heads.out[0] - c
    if left < 0 or left < kept_idle(heads, now + w):
        return False, size
    first, _ = fit(heads.idle, size, 0, c, w + np.int64(heads.depth == 0), now + 1)  # its last second counts too
    if first != 0:
        return False, size
    return True, change(heads.idle, size, now, now + w, -c)


@step
def is_wanted(s, heads, j):
    """Whether the list may have job j as one more head job."""
    if heads.depth > 0:
        return heads.count[0] < heads.depth
    return heads.begin[queue_of(s, j)] == NEVER


@step
def plan(s, heads, size, j, p):
    """Plan job j as a head job; return whether there is an instant for it, and the size of the profile (rule 31)."""
    c, w = np.int64(s.jobs[j].cores), np.int64(s.jobs[j].walltime)
    first, _ = fit(heads.idle, size, 0, c, w, NEVER)
    begin = heads.idle.times[first]
    if begin >= UNKNOWN_END:
        return False, size
    heads.count[0] += 1
    if heads.depth == 0:
        k = queue_of(s, j)
        heads.begin[k], heads.end[k], heads.keeps[k] = begin, begin + w, heads.node
    return True, change(heads.idle, size, begin, begin + w, -c)


@step
def has_all(heads):
    """Whether the list has all the head jobs that it can have."""
    return heads.count[0] == heads.depth if heads.depth > 0 else all_found(heads)


@step
def all_found(heads):
    """Whether every queue of which a job waits has a head job."""
    found = True
    for k in range(heads.begin.size):
        found &= heads.begin[k] != NEVER
    return found


@step
def take_kept(heads, end):
    """A job that ends then has started: no node stays idle for the head jobs that begin later; whether any did."""
    any_did = False
    for k in range(heads.begin.size):
        if heads.begin[k] > end and heads.begin[k] < NEVER:
            any_did |= heads.keeps[k] > 0
            heads.keeps[k] = 0
    return any_did


@step
def kept_idle(heads, end):
    """Idle cores that a job which would end then leaves for the head jobs before whose begin it does not end."""
    most = np.int64(0)
    for i in range(heads.begin.size):
        if heads.begin[i] <= end:
            kept = np.int64(0)
            for k in range(heads.begin.size):
                if heads.begin[k] <= heads.begin[i] < heads.end[k]:
                    kept += heads.keeps[k]
            most = max(most, kept)
    return most


@step
def expected_ends(s, idle, p, now):
    """Write when the cores of partition p are idle by the expected ends; return the size of the profile."""
    partition, running, bits = s.partitions[p], s.running, s.settings.bits
    idle.times[0] = now
    idle.free[0] = partition.free
    size = 1
    for k in range(partition.first_running, partition.first_running + partition.running):
        end = running.keys[k] >> bits
        if idle.times[size - 1] < end:
            idle.times[size] = end
            idle.free[size] = idle.free[size - 1]
            size += 1
        idle.free[size - 1] += running.cores[k]
    return size
