"""Lines of jobs alike in a pass that frees cores: a line that had its turn may have another, with a later job.

Usually a pass only takes cores, so that a job does not start after one like it did not. There are two exceptions. With
combined placement, the head job of a partition may start from the pool's list; it then holds no cores of its partition
any more, which jobs of its queue may take. Where head jobs of queues keep a node idle (rule "node kept idle"), a job
that ends before them may take it.
"""

from __future__ import annotations

import numpy as np

from parsim.engine.lists.alike import NO_JOB
from parsim.engine.lists.waiting import STARTED, fill_entry, is_in_list
from parsim.engine.order import before, refresh_value
from parsim.engine.simulation import GROUP, PASSED, routine


@routine
def reopen_lines(s, p, kind, first, last, i, queue, now):
    """Reopen the lines of a queue (-1: of all) that had their turn before entry i, for their first job behind it.

    Returns
    -------
    bool
        Whether any line has such a job.
    """
    alike, waiting = s.alike, s.waiting
    any_has = False
    for k in range(first, last):
        j = waiting.job[k]
        if k == i or j == STARTED or (queue >= 0 and s.jobs[j].queue != queue):
            continue
        group = waiting.group[k]
        waiting.group[k] = group & GROUP
        if not before((s, kind, now), k, i):
            waiting.group[k] = group
            continue
        low, high = np.int64(alike.place[j] + 1), np.int64(alike.end[alike.line[j]])
        while low < high:  # the jobs from `high` on are behind, or not in the list
            middle = (low + high) >> 1
            other = alike.members[middle]
            ahead = other < s.progress.submitted and is_in_list(s, p, other, now)
            if ahead:
                fill_entry(s, p, k, other, now)
                refresh_value(s, kind, k, now)
                ahead = before((s, kind, now), k, i)
            if ahead:
                low = middle + 1
            else:
                high = middle
        end = alike.end[alike.line[j]]
        while low < end and s.start[alike.members[low]] >= 0:
            low += 1
        other = alike.members[low] if low < end else NO_JOB
        if other != NO_JOB and other < s.progress.submitted and is_in_list(s, p, other, now):
            any_has = True
            group = np.int32(0)
        else:
            other = j
        fill_entry(s, p, k, other, now)
        refresh_value(s, kind, k, now)
        waiting.group[k] |= group & PASSED
    return any_has


@routine
def return_to_first(s, p, row, first, last, now):
    """Put the first job of each line back into its entry."""
    alike, waiting = s.alike, s.waiting
    for k in range(first, last):
        j = waiting.job[k]
        if j != STARTED and alike.first[row, alike.line[j]] != j:
            fill_entry(s, p, k, alike.first[row, alike.line[j]], now)
