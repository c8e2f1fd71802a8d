"""Which entries of a waiting list may start behind its head job: many are compared at once.

Numbers ("rule 17") refer to docs/reference/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.engine.simulation import BLOCK, LONGEST, step
from parsim.engine.starts import startable_cores


@step
def find_all_candidates(s, v, head):
    """Collect the entries whose turn is still to come, of jobs that may have to be noted as held, or preempt others."""
    waiting = s.waiting
    head_job = s.partitions[v.p].head_job
    m = 0
    for i in range(head + 1 if v.sorted else v.first, v.last):
        j = waiting.job[i]
        if waiting.group[i] >= 0 and j != head_job and (waiting.cores[i] <= v.widest or s.settings.track_held):
            s.candidates[m] = i
            m += 1
    return m


@step
def find_candidates(s, v, head, fresh, now):
    """Collect the entries that may start behind the head job, of jobs from number `fresh` on; return how many."""
    waiting, partition = s.waiting, s.partitions[v.p]
    free = np.int32(partition.free + v.more)
    time = np.int32(min(partition.shadow - now, LONGEST))
    extra = np.int32(min(partition.extra, partition.free) + v.more)
    slack_time = np.int32(min(partition.reserved_from - now, LONGEST))
    slack = np.int32(min(partition.slack, partition.free) + v.more)
    oldest = np.int32(fresh)
    m = 0
    for begin in range(head + 1 if v.sorted else v.first, v.last, BLOCK):
        job = waiting.job[begin : begin + BLOCK]
        cores = waiting.cores[begin : begin + BLOCK]
        walltime = waiting.walltime[begin : begin + BLOCK]
        hits = np.int32(0)
        for k in range(BLOCK):
            c = cores[k]
            w = walltime[k]
            hits += np.int32(
                (job[k] >= oldest) & (c <= free) & ((w <= time) | (c <= extra)) & ((w <= slack_time) | (c <= slack))
            )
        if hits:
            for i in range(begin, min(begin + BLOCK, v.last)):
                c = waiting.cores[i]
                w = waiting.walltime[i]
                j = waiting.job[i]
                if j >= oldest and c <= free and (w <= time or c <= extra) and (w <= slack_time or c <= slack):
                    if waiting.group[i] >= 0 and j != partition.head_job and may_share(s, v, i, now + w):
                        s.candidates[m] = i
                        m += 1
    return m


@step
def may_share(s, v, i, until):
    """Whether the job of entry i may start by what its partition may add to the cores of the pool (rule 17)."""
    if v.more == 0:
        return True
    cores = np.int64(s.waiting.cores[i])
    cores -= min(s.partitions[s.waiting.queue[i]].free, cores - 1)
    return cores <= startable_cores(s, v.p, until)
