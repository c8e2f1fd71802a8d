"""Selects the entries of a waiting list that may start behind its head job, many at once.

Names of rules refer to docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from parsim.engine.lists.waiting import find_turn
from parsim.engine.order import LJF, before
from parsim.engine.resources.running import sift
from parsim.engine.simulation import BLOCK, LONGEST, step
from parsim.engine.starts import is_held, startable_cores


class Bounds(NamedTuple):
    """Bounds of a job that may start: at most `free` cores, and `extra` or `slack` unless it ends in time."""

    free: np.int32
    time: np.int32  # seconds until the head job is to start
    extra: np.int32  # most cores of a job with a longer walltime
    slack_time: np.int32  # seconds until the reserved job, or another head job, is to start
    slack: np.int32  # most cores of a job with a longer walltime
    oldest: np.int32  # jobs with smaller numbers do not start


@step
def any_fits(s, first, last, widest, skip_held):
    """Whether any job of ``first:last``, with `skip_held` any that limits do not hold, has at most `widest` cores."""
    waiting = s.waiting
    most = np.int32(widest)
    for begin in range(first, last, BLOCK):
        cores = waiting.cores[begin : begin + BLOCK]
        hits = np.int32(0)
        for k in range(BLOCK):
            hits += np.int32(cores[k] <= most)
        if hits:
            if not skip_held and begin + BLOCK <= last:
                return True
            for i in range(begin, min(begin + BLOCK, last)):
                if waiting.cores[i] <= most and not (skip_held and is_held(s, waiting.job[i])):
                    return True
    return False


@step
def find_all_candidates(s, v, head):
    """Collect the entries whose turn is to come and whose jobs may start, preempt or be held; return how many."""
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
    first = head + 1 if v.sorted else v.first
    if fresh > 0 and v.last - first > BLOCK and v.kind > LJF and not v.lines and s.submit_keys.size == 0:  # by number
        first = find_turn(s, v.kind, first, v.last, fresh, np.int32(0), 0.0)
    head_job = s.partitions[v.p].head_job
    return keep_shared(s, v, collect(s, first, v.last, head_job, bounds_of(s, v, fresh, now)), now)


@step
def keep_within(s, bounds, x, m):
    """Keep those of the candidates ``x:m`` that are within bounds; return how many."""
    waiting, kept = s.waiting, np.int64(0)
    for k in range(x, m):
        i = np.int64(s.candidates[k])
        s.candidates[kept] = i
        kept += np.int64(is_within(bounds, waiting.cores[i], waiting.walltime[i]))
    return kept


@step
def put_first(candidates, m, is_heap, anew, order):
    """Move the first of m candidates in `order` to the front; return whether they are a heap.

    Many new candidates (`anew`) are not made a heap: after the first one's turn few may still start.
    """
    if anew and m > BLOCK:
        best = 0
        for k in range(1, m):
            if before(order, candidates[k], candidates[best]):
                best = k
        candidates[0], candidates[best] = candidates[best], candidates[0]
        return False
    for k in range(0 if is_heap and not anew else (m >> 1) - 1, -1, -1):
        sift(candidates, k, m, before, order)
    return True


@step
def bounds_of(s, v, fresh, now):
    """Return the bounds of jobs from number `fresh` on that may start behind the head job."""
    partition = s.partitions[v.p]
    return Bounds(
        np.int32(partition.free + v.more),
        np.int32(min(partition.shadow - now, LONGEST)),
        np.int32(min(partition.extra, partition.free) + v.more),
        np.int32(min(partition.reserved_from - now, LONGEST)),
        np.int32(min(partition.slack, partition.free) + v.more),
        np.int32(fresh),
    )


@step
def is_within(bounds, cores, walltime):
    """Whether a job of these cores and this walltime is within bounds."""
    beside_head = (walltime <= bounds.time) | (cores <= bounds.extra)
    return (cores <= bounds.free) & beside_head & ((walltime <= bounds.slack_time) | (cores <= bounds.slack))


@step
def collect(s, first, last, head_job, bounds):
    """Collect the entries of ``first:last`` within bounds with a turn to come, not the head job's; return how many."""
    waiting, m = s.waiting, np.uint64(0)
    for begin in range(first, last, BLOCK):
        end = begin + BLOCK
        job, cores, walltime = waiting.job[begin:end], waiting.cores[begin:end], waiting.walltime[begin:end]
        hits = np.int32(0)
        for k in range(BLOCK):  # `is_within` inlined by hand: its arguments would halve the entries compared at once
            c = cores[k]
            w = walltime[k]
            beside_head = (w <= bounds.time) | (c <= bounds.extra)
            fits = (c <= bounds.free) & beside_head & ((w <= bounds.slack_time) | (c <= bounds.slack))
            hits += np.int32((job[k] >= bounds.oldest) & fits)
        if hits:
            for i in range(np.uint64(begin), np.uint64(min(end, last))):
                stays = (waiting.group[i] >= 0) & (waiting.job[i] >= bounds.oldest) & (waiting.job[i] != head_job)
                s.candidates[m] = i  # always written, since a branch here could not be predicted
                m += np.uint64(stays & is_within(bounds, waiting.cores[i], waiting.walltime[i]))
    return np.int64(m)


@step
def keep_shared(s, v, m, now):
    """Keep those of the first m candidates that `may_share`; return how many (rule "combined placement")."""
    if v.more == 0:
        return m
    kept = np.int64(0)
    for k in range(m):
        i = np.int64(s.candidates[k])
        s.candidates[kept] = i
        kept += np.int64(may_share(s, v, i, now + s.waiting.walltime[i]))
    return kept


@step
def may_share(s, v, i, until):
    """Whether the job of entry i, ending by `until`, may start on its partition and the pool ("combined placement")."""
    cores = np.int64(s.waiting.cores[i])
    cores -= min(s.partitions[s.waiting.queue[i]].free, cores - 1)
    return cores <= startable_cores(s, v.p, until)
