"""EASY as Slurm backfills: each queue of a shared machine has a head job, and a node stays idle for each head job.

Or the first jobs of each list, so many or all, are its head jobs. The plans of all head jobs of a pass count together,
as cores over time. Numbers ("rule 28") refer to docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.kernels.entering import enter_lists
from parsim.kernels.general import advance_starving, let_come, next_event, submit_job
from parsim.kernels.lines import look_behind, return_to_first
from parsim.kernels.order import LJF, before, refresh_values
from parsim.kernels.profile import change, fit
from parsim.kernels.running import pop_key, sift
from parsim.kernels.starts import end_job, is_held, occupy, resume_running, start_job
from parsim.kernels.state import GROUP, NEVER, PASSED, kernel, routine, step
from parsim.kernels.throttles import is_out
from parsim.kernels.top_job import any_fits, enter_pool, make_heap
from parsim.kernels.typed_head_jobs import visit_types
from parsim.kernels.waiting import STARTED, drop_started, has_lines, kind_of, note_held, row_of, succeed
from parsim.kernels.windows import UNKNOWN_END, next_instant

ABSENT = NEVER + 1  #: in place of `begin` where no job of a queue waits


class HeadJobs(NamedTuple):
    """The plans of the head jobs in the present visit, by queue: from `begin`, `NEVER` without one, to `end`."""

    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    keeps: NDArray[np.int64]  # idle cores that stay idle for it
    node: np.int64  # cores of a node
    depth: np.int64  # head jobs of a list, whatever their queues, and no idle nodes for them (rule 49); else 0


@kernel
def queue_head_jobs(s, by_queue, idle, heads, outages, typed):
    """Simulate the jobs of a `parsim.kernels.state.State`; fills its `start` and `placement`.

    `idle` is a `Profile`, `outages` are `parsim.kernels.windows.Outages` of partitions, totals or nodes. `heads` has
    room for the head job of each queue, or, unless `by_queue`, for that of a list. `typed` is a
    `parsim.kernels.typed_head_jobs.TypedHeadJobs` where nodes are of several types, or where chunks are placed on them
    a `parsim.kernels.placed_head_jobs.PlacedHeadJobs`; else None.
    """
    settings, progress = s.settings, s.progress
    n = s.jobs.size
    low = (np.int64(1) << settings.bits) - 1
    arriving = settings.first
    now = np.int64(-1)
    passed = np.int64(0)
    for p in range(s.partitions.size):
        s.partitions[p].reserved_from = NEVER
        s.partitions[p].shadow = NEVER
    resume_running(s)
    while True:
        submit = max(settings.begin, np.int64(s.jobs[arriving].submit)) if arriving < n else NEVER
        now = next_event(s, min(submit, next_instant(outages.instants, passed)), now)
        while next_instant(outages.instants, passed) <= now < NEVER:
            passed += 1
        if now == NEVER:
            break
        while progress.running > 0 and (s.ends[0] >> settings.bits) == now:
            j = s.ends[0] & low
            pop_key(s.ends, progress.running)
            progress.running -= 1
            end_job(s, j)
            let_come(s, s.needs, j, now)
        while arriving < n and s.jobs[arriving].submit <= now:
            submit_job(s, arriving, now)
            arriving += 1
        progress.submitted = arriving
        if progress.outside > 0:
            enter_lists(s, s.throttles, now)
        while progress.wake_ups > 0 and (s.wake_ups[0] >> settings.bits) <= now:
            j = s.wake_ups[0] & low
            pop_key(s.wake_ups, progress.wake_ups)
            progress.wake_ups -= 1
            if s.start[j] < 0 and not is_out(s.throttles, j):
                enter_pool(s, j, now, False)
        if settings.starvation and progress.waiting > 0 and progress.next_starving <= now:
            advance_starving(s, now)
        for p in range(s.partitions.size - 1):
            if s.partitions[p].waiting > 0 and s.partitions[p].cores > 0:
                go_over(s, by_queue, idle, heads, outages, typed, p, now)


@step
def go_over(s, by_queue, idle, heads, outages, typed, p, now):
    """Go once over list p."""
    if typed is None:
        visit(s, by_queue, idle, heads, outages, p, now)
    else:
        visit_types(s, s.node_types, s.placing, typed, outages, p, now)


@routine
def visit(s, by_queue, idle, heads, outages, p, now):
    """Go once over list p and start the jobs that may start beside its head jobs (rules 3 and 28)."""
    settings, waiting, partition = s.settings, s.waiting, s.partitions[p]
    list_first, last = partition.first, partition.first + partition.waiting
    s.progress.looks -= partition.waiting
    if not settings.track_held and not any_fits(s, p):
        return
    kind, lines = kind_of(s, p), has_lines(s, p)
    is_sorted = kind <= LJF and not lines
    refresh_values(s, kind, list_first, last, now)
    order = (s, kind, now)
    heads.begin[:] = ABSENT
    size = expected_ends(s, idle, p, now)
    out = np.int64(0)
    for k in range(outages.windows.size):
        window = outages.windows[k]
        if window.known_from <= now < window.end:
            size = change(idle, size, max(now, window.begin), window.known_end, -outages.taken[k, p])
            out += outages.taken[k, p] if window.begin <= now else 0
    for i in range(list_first, last):
        waiting.group[i] &= GROUP
        if heads.depth == 0:
            heads.begin[s.jobs[waiting.job[i]].queue if by_queue else 0] = NEVER
    x = m = np.int64(0)
    most = np.int64(partition.cores)  # no wider job can start or be a head job
    gone = last
    again = True
    found = np.int64(0)
    ends = np.int64(heads.depth == 0)  # whether the second in which a job ends counts too
    while again or (x < m and (settings.track_held or partition.free > 0)):
        if again:
            x, m = np.int64(0), collect(s, list_first, last, most)
            make_heap(s.candidates, m, is_sorted, order)
            again = False
            continue
        i = np.int64(s.candidates[x])
        j = np.int64(waiting.job[i])
        waiting.group[i] |= PASSED
        held = settings.limits and is_held(s, j)
        if settings.track_held:
            note_held(s, j, now, held)
        c, w = np.int64(waiting.cores[i]), np.int64(waiting.walltime[i])
        k = s.jobs[j].queue if by_queue else 0
        starts = not held and c <= partition.free - out and c + kept_idle(heads, now + w) <= partition.free - out
        if starts:
            first, _ = fit(idle, size, 0, c, w + ends, now + 1)
            starts = first == 0
        follows = False
        if starts:
            size = change(idle, size, now, now + w, -c)
            occupy(s, j, p, c, now)
            s.placement[j] = p
            start_job(s, j, now)
            more = take_kept(heads, now + w)
            if lines:
                waiting.group[i] &= GROUP
                again = more and look_behind(s, p, kind, list_first, last, i, -1, now)
                follows = succeed(s, p, i, now)
                if not follows:
                    waiting.group[i] |= PASSED
            if not follows and waiting.job[i] == j:
                waiting.job[i] = STARTED
                gone = min(gone, i)
        elif (
            not held
            and (found < heads.depth if heads.depth > 0 else heads.begin[k] == NEVER)
            and c <= partition.cores
            and now - s.jobs[j].submit >= settings.reservation_delay
        ):
            first, _ = fit(idle, size, 0, c, w, NEVER)
            begin = idle.times[first]
            if begin < UNKNOWN_END:  # rule 31
                found += 1
                if heads.depth == 0:
                    heads.begin[k], heads.end[k], heads.keeps[k] = begin, begin + w, heads.node
                size = change(idle, size, begin, begin + w, -c)
                if not settings.track_held and (found == heads.depth if heads.depth > 0 else all_found(heads)):
                    most, again = np.int64(partition.free), True  # wider ones wait
        if is_sorted:
            x += 1
        elif not again:
            if not follows:
                m -= 1
                s.candidates[0] = s.candidates[m]
            sift(s.candidates, 0, m, before, order)
    if lines:
        return_to_first(s, p, row_of(s, p), list_first, last, now)
    if gone < last:
        drop_started(s, p, gone)


@step
def collect(s, first, last, most):
    """Collect the entries whose turn is still to come, of jobs of up to `most` cores; return how many."""
    waiting = s.waiting
    m = np.int64(0)
    for i in range(first, last):
        if waiting.group[i] >= 0 and waiting.cores[i] <= most:
            s.candidates[m] = i
            m += 1
    return m


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
