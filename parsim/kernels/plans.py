"""The plans of the head jobs of a divided machine whose limits, or the cores of whose nodes, are planned.

All plans of a pass count together. Where nodes are not told apart each partition is one node. Numbers ("rule 23")
refer to docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.kernels.reservations import divide
from parsim.kernels.running import add_running, remove_running
from parsim.kernels.starts import count_use, start_job
from parsim.kernels.state import NEVER, Running, routine, step
from parsim.kernels.top_job import NO_SHARE
from parsim.kernels.windows import UNKNOWN_END

#: The plan of the head job of one list, in the present pass; `job` is -1 without one.
PROMISE = np.dtype([("job", np.int64), ("begin", np.int64), ("end", np.int64)], align=True)


class Plans(NamedTuple):
    """The nodes, partition by partition, what runs on them, and the plans of the head jobs: a row for each list."""

    first_node: NDArray[np.int64]  # (P + 1,): of each partition
    idle: NDArray[np.int64]  # (V,): cores of each node
    first: NDArray[np.int32]  # (n,): the first share of each running job, or `NO_SHARE`
    shares: NDArray[np.void]  # SHARE
    unused: NDArray[np.int64]  # (1,): the first share not in use
    running: Running  # of the whole machine
    promises: NDArray[np.void]  # (P + 1 + W,) PROMISE; the lists', the last the reserved one's; then the windows'
    taken: NDArray[np.int64]  # (P + 1 + W, V): cores of each node that the plan takes
    extra: NDArray[np.int64]  # (P + 1 + W, V): cores of each node that all plans leave at its begin
    later: NDArray[np.int64]  # (V,): cores of each node that are idle at the instant looked at
    begun: NDArray[np.int64]  # (k, 3): job, node and cores of those that run when the simulation begins
    windows: NDArray[np.void]  # (W,) WINDOW
    instants: NDArray[np.int64]  # at which windows become known or end


@step
def stop_counting(s, j):
    """Limits count job j as a head job no more."""
    if s.jobs[j].is_head_job:
        s.jobs[j].is_head_job = False
        count_use(s, j, -1)


@step
def left_of(s, plans, j, q, node, base, begin, until):
    """Cores of a node of partition q that job j may take in [begin, until), of `base` left by the expected ends."""
    promises = plans.promises
    pool = s.usable.size - 1
    most = base
    for turn in range(3 + plans.windows.size):
        # The lists that plan on this partition: its own, the pool's, the reserved one; and the windows.
        k = q if turn == 0 else pool + turn - 1
        other = promises[k]
        if other.job < 0 or other.job == j or (turn == 1 and q == pool) or (turn > 2 and plans.taken[k, node] == 0):
            continue
        if other.begin <= begin:
            if begin < other.end:
                base -= plans.taken[k, node]
        elif other.begin < until:
            left = plans.extra[k, node]
            for o in range(pool + 2):
                own = promises[o]
                if own.job == j and own.begin <= other.begin < own.end:
                    left += plans.taken[o, node]
            most = min(most, left)
    return max(np.int64(0), min(most, base))


@step
def room_now(s, plans, q, j, now):
    """Cores of partition q that job j may take now (rule 23)."""
    until = now + s.jobs[j].walltime
    promises = plans.promises
    pool = s.usable.size - 1
    alone = True
    for turn in range(3 + plans.windows.size):
        other = promises[q if turn == 0 else pool + turn - 1]
        alone &= other.job < 0 or other.job == j or other.begin >= until
    if alone or s.partitions[q].free == 0:
        return s.partitions[q].free
    room = np.int64(0)
    for node in range(plans.first_node[q], plans.first_node[q + 1]):
        room += left_of(s, plans, j, q, node, plans.idle[node], now, until)
    return room


@routine
def find_instant(s, plans_limits, plans, j, now):
    """Find when head job j may start on the usable partitions; `later` has what is idle then (rules 21 and 24)."""
    running, bits, count = plans.running, s.settings.bits, s.progress.running
    low = (np.int64(1) << bits) - 1
    job = s.jobs[j]
    for node in range(plans.later.size):
        plans.later[node] = plans.idle[node]
    instant = now
    i = np.int64(0)
    while True:
        room = np.int64(0)
        for q in range(s.usable.size):
            if s.usable[q]:
                for node in range(plans.first_node[q], plans.first_node[q + 1]):
                    room += left_of(s, plans, j, q, node, plans.later[node], instant, instant + job.walltime)
        if room >= job.cores and not (plans_limits and is_held_at(s, plans, j, instant)):
            return instant
        following = running.keys[i] >> bits if i < count else NEVER
        for k in range(plans.promises.size):
            if plans.promises[k].job >= 0 and plans.promises[k].end > instant:
                following = min(following, plans.promises[k].end)
        if following == NEVER:
            return NEVER
        instant = following
        while i < count and (running.keys[i] >> bits) <= instant:
            share = plans.first[running.keys[i] & low]
            while share != NO_SHARE:
                plans.later[plans.shares[share].node] += plans.shares[share].cores
                share = plans.shares[share].next
            i += 1


@step
def is_held_at(s, plans, j, instant):
    """Whether job j, begun at this instant, would be above a limit at any moment (rule 22)."""
    if above_limits(s, plans, j, instant):
        return True
    until = instant + s.jobs[j].walltime
    for k in range(s.partitions.size):
        other = plans.promises[k]
        if other.job >= 0 and other.job != j and instant < other.begin < until:
            if s.jobs[other.job].queue == s.jobs[j].queue and above_limits(s, plans, j, other.begin):
                return True
    return False


@step
def is_held_later(s, plans, j, now):
    """Whether job j, which no limit holds now, would be above one when a head job of its queue begins."""
    until = now + s.jobs[j].walltime
    for k in range(s.partitions.size):
        other = plans.promises[k]
        if other.job >= 0 and other.job != j and other.begin < until:
            if s.jobs[other.job].queue == s.jobs[j].queue and above_limits(s, plans, j, other.begin):
                return True
    return False


@routine
def above_limits(s, plans, j, moment):
    """Whether job j beside the running jobs and the other head jobs would be above a limit at a moment."""
    running, bits, promises = plans.running, s.settings.bits, plans.promises
    low = (np.int64(1) << bits) - 1
    job = s.jobs[j]
    jobs = user_jobs = np.int64(1)
    cores = user_cores = np.int64(job.cores)
    count = s.progress.running
    for k in range(count + s.partitions.size):
        if k < count:
            i = count - 1 - k
            if (running.keys[i] >> bits) <= moment:
                continue
            h = running.keys[i] & low
        else:
            other = promises[k - count]
            h = other.job
            if h < 0 or h == j or not other.begin <= moment < other.end:
                continue
            twice = False
            for o in range(k - count):
                twice |= promises[o].job == h and promises[o].begin <= moment < promises[o].end
            if twice:
                continue
        mate = s.jobs[h]
        if mate.queue == job.queue:
            jobs += 1
            cores += mate.cores
            if mate.user == job.user:
                user_jobs += 1
                user_cores += mate.cores
    queue = s.queues[job.queue]
    if jobs > queue.max_run or cores > queue.max_run_cores:
        return True
    return job.user >= 0 and (user_jobs > queue.max_user_run or user_cores > queue.max_user_cores)


@step
def take_first(s, plans, row, j, begin):
    """Take for head job j of a list what it may of the usable partitions, from the first node on (rules 23, 24)."""
    left = np.int64(s.jobs[j].cores)
    until = begin + s.jobs[j].walltime
    for q in range(s.usable.size):
        for node in range(plans.first_node[q], plans.first_node[q + 1]):
            taken = np.int64(0)
            if s.usable[q] and left > 0:
                taken = min(left, left_of(s, plans, j, q, node, plans.later[node], begin, until))
            plans.taken[row, node] = taken
            left -= taken


@step
def take_shares(s, plans, row, j, begin):
    """Take for reserved job j its share of each usable partition, which is one node (rule 13)."""
    total = np.int64(0)
    until = begin + s.jobs[j].walltime
    for q in range(s.usable.size):
        s.idle[q] = left_of(s, plans, j, q, q, plans.later[q], begin, until) if s.usable[q] else 0
        total += s.idle[q]
    divide(s.idle, s.jobs[j].cores, total, plans.taken[row], s.usable)


@step
def promise(s, plans_limits, plans, row, j, begin):
    """Let the plan of head job j stand for this pass."""
    promises = plans.promises
    end = begin + s.jobs[j].walltime
    for node in range(plans.later.size):
        plans.extra[row, node] = plans.later[node]
    for k in range(promises.size):
        if promises[k].job >= 0:
            for node in range(plans.later.size):
                if promises[k].begin <= begin < promises[k].end:
                    plans.extra[row, node] -= plans.taken[k, node]
                if begin <= promises[k].begin < end:
                    plans.extra[k, node] -= plans.taken[row, node]
    for node in range(plans.later.size):
        plans.extra[row, node] -= plans.taken[row, node]
    promises[row].job = j
    promises[row].begin = begin
    promises[row].end = end
    if not plans_limits and not s.jobs[j].is_head_job:
        s.jobs[j].is_head_job = True
        count_use(s, j, 1)


@step
def withdraw(s, plans, j):
    """Job j starts: its plans are void."""
    promises = plans.promises
    for o in range(promises.size):
        if promises[o].job == j:
            promises[o].job = -1
            for k in range(promises.size):
                if promises[k].job >= 0 and promises[o].begin <= promises[k].begin < promises[o].end:
                    for node in range(plans.later.size):
                        plans.extra[k, node] += plans.taken[o, node]
    stop_counting(s, j)


@routine
def begin_planned(s, plans, j, now):
    """Start job j on the cores of each partition that stand in the next row of `shares`, on its first nodes."""
    promises, progress = plans.promises, s.progress
    job = s.jobs[j]
    until = now + job.walltime
    withdraw(s, plans, j)
    parts = 0
    for q in range(s.usable.size):
        left = s.shares[progress.spanning, q]
        if left > 0:
            parts += 1
            s.placement[j] = q
            s.partitions[q].free -= left
        node = plans.first_node[q]
        while left > 0:
            taken = min(left, left_of(s, plans, j, q, node, plans.idle[node], now, until))
            if taken > 0:
                left -= taken
                for k in range(promises.size):
                    if promises[k].job >= 0 and until > promises[k].begin:
                        plans.extra[k, node] -= taken
                take_node(plans, j, node, taken)
            node += 1
    if parts > 1:
        s.placement[j] = -1 - progress.spanning
        progress.spanning += 1
    key = (until << s.settings.bits) | j
    add_running(plans.running, 0, progress.running, key, np.int64(job.cores))
    start_job(s, j, now)


@step
def take_node(plans, j, node, cores):
    """Job j takes cores of a node."""
    plans.idle[node] -= cores
    number = np.int32(plans.unused[0])
    share = plans.shares[number]
    plans.unused[0] = share.next
    share.node = node
    share.cores = cores
    share.next = plans.first[j]
    plans.first[j] = number


@step
def resume_planned(s, plans):
    """Let the jobs run that run when the simulation begins (rule 28)."""
    for row in plans.begun:
        take_node(plans, row[0], row[1], row[2])
    for j in range(s.settings.first):
        for q in range(s.usable.size):
            s.partitions[q].free -= s.shares[j, q]
        key = ((s.start[j] + s.jobs[j].walltime) << s.settings.bits) | j
        add_running(plans.running, 0, s.progress.running, key, np.int64(s.jobs[j].cores))
        s.progress.waiting += 1
        start_job(s, j, s.start[j])


@step
def plan_windows(s, plans, now):
    """Let the windows known now count as plans in this pass (rule 29)."""
    running, bits = plans.running, s.settings.bits
    low = (np.int64(1) << bits) - 1
    promises, lists = plans.promises, s.partitions.size
    for k in range(plans.windows.size):
        window, row = plans.windows[k], promises[lists + k]
        row.job = s.jobs.size + k if window.known_from <= now < window.end else -1
        row.begin = window.begin
        row.end = window.known_end if window.known_end < UNKNOWN_END else NEVER
    for k in range(lists, promises.size):
        begin = promises[k].begin
        if promises[k].job < 0 or begin <= now:
            continue
        extra = plans.extra[k]
        for node in range(extra.size):
            extra[node] = plans.idle[node]
            for o in range(lists, promises.size):
                if promises[o].job >= 0 and promises[o].begin <= begin < promises[o].end:
                    extra[node] -= plans.taken[o, node]
        i = np.int64(0)
        while i < s.progress.running and (running.keys[i] >> bits) <= begin:
            share = plans.first[running.keys[i] & low]
            while share != NO_SHARE:
                extra[plans.shares[share].node] += plans.shares[share].cores
                share = plans.shares[share].next
            i += 1


@step
def end_planned(s, plans, j):
    """Job j has ended: its cores are idle again."""
    job = s.jobs[j]
    key = ((s.start[j] + job.walltime) << s.settings.bits) | j
    remove_running(plans.running, 0, s.progress.running, key)
    s.progress.running -= 1
    if s.placement[j] >= 0:
        s.partitions[s.placement[j]].free += job.cores
    else:
        for q in range(s.usable.size):
            s.partitions[q].free += s.shares[-1 - s.placement[j], q]
    number = plans.first[j]
    plans.first[j] = NO_SHARE
    while number != NO_SHARE:
        share = plans.shares[number]
        following = share.next
        plans.idle[share.node] += share.cores
        share.next = np.int32(plans.unused[0])
        plans.unused[0] = number
        number = following
    count_use(s, j, -1)
