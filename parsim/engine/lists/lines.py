"""Lines of jobs that are alike where a pass may have more than it had: in a line jobs may stand behind others then.

Mostly a pass only takes what it has, so that a job never starts where one like it, whose turn was before, did not. Two
passes may have more, for jobs whose turn is still to come. In the pool's list of a machine where jobs may take cores of
their partition too, the head job of a partition may start, and no longer holds cores of its partition, which jobs of
its queue may take. Where head jobs of queues keep a node idle (rule "node kept idle"), one that ends before may take
it.
"""

from __future__ import annotations

import numpy as np

from parsim.engine.lists.alike import NO_JOB
from parsim.engine.lists.waiting import STARTED, fill_entry, is_in_list
from parsim.engine.order import before, refresh_value
from parsim.engine.simulation import GROUP, PASSED, seldom


@seldom
def look_behind(s, p, kind, first, last, i, queue, now):
    """Let the lines of a queue, of all if it is -1, have the first job behind that of entry i, which starts.

    Returns
    -------
    bool
        Whether any has one.
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


@seldom
def return_to_first(s, p, row, first, last, now):
    """Let each line have its first job again."""
    alike, waiting = s.alike, s.waiting
    for k in range(first, last):
        j = waiting.job[k]
        if j != STARTED and alike.first[row, alike.line[j]] != j:
            fill_entry(s, p, k, alike.first[row, alike.line[j]], now)
