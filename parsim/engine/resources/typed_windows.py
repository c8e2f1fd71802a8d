"""Starts and plans jobs on nodes of several types while some nodes are out of service, or kept for some jobs.

Without such windows `TypedWindows` is None, so that numba leaves all of this out. With head jobs of queues
`parsim.engine.plans.queue_head_jobs.HeadJobs` takes its place, also for cores alone. Names of rules refer to
docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.compile.compiled import routine, step
from parsim.engine.resources.amounts import add_between, first_place, given_back, idle_over_time
from parsim.engine.resources.chunks import NO_SHARE, add_shares, copy, copy_in_all, has_all, kinds_of, take_first_nodes
from parsim.engine.resources.node_types import hold_nodes, places_of
from parsim.engine.resources.placement import hold_chunks
from parsim.engine.resources.running import available, first_instant
from parsim.engine.resources.windows import UNKNOWN_END, is_known
from parsim.engine.simulation import NEVER
from parsim.engine.starts import startable_cores


class TypedWindows(NamedTuple):
    """W windows on P partitions of D totals each, or of V nodes in all; S instants at which idle amounts may change."""

    exempt: NDArray[np.bool_]  # (G, n): whether windows for a group are for a job
    takes: NDArray[np.int64]  # (W, D): amounts that each window takes from other jobs, on the partition that is visited
    times: NDArray[np.int64]  # (S,): instants, as `parsim.engine.resources.amounts` has them
    free: NDArray[np.int64]  # (S * D,): amounts idle from each instant on


@step
def is_for(s, windows, k, j):
    """Whether window k is for job j, which may use its nodes."""
    members = s.outages.windows[k].members
    return members >= 0 and windows.exempt[members, j]


@step
def begin_visit(s, windows, types, p, now):
    """Reset the shadow time of partition p; if totals count, do as `idle_in_service`; return how many instants."""
    s.partitions[p].shadow = NEVER
    if types is None:
        return np.int64(0)
    return idle_in_service(s, windows, types, p, now)


@step
def idle_in_service(s, windows, types, p, now):
    """Write amounts idle over time, less those that windows known now take; return the number of instants."""
    size = idle_over_time(s, types, windows, p, now)
    for k in range(windows.takes.shape[0]):
        window = s.outages.windows[k]
        if is_known(window, now):
            take_of_others(s, windows, types, k, p, now)
            size = add_between(types, windows, size, windows.takes[k], max(now, window.begin), window.known_end, -1)
    return size


@step
def take_of_others(s, windows, types, k, p, now):
    """Set `takes` of window k: its amounts less those of its jobs that ran before this pass ("windows of users")."""
    window, takes, partition = s.outages.windows[k], windows.takes[k], s.partitions[p]
    bits = s.settings.bits
    low = (np.int64(1) << bits) - 1
    for d in range(takes.size):
        takes[d] = s.outages.taken[k, p * takes.size + d]
    if window.members < 0:
        return
    for i in range(partition.first_running, partition.first_running + partition.running):
        j = s.running.keys[i] & low
        if (s.running.keys[i] >> bits) > max(now, window.begin) and s.start[j] < now and is_for(s, windows, k, j):
            for d in range(takes.size):
                takes[d] = max(takes[d] - given_back(s, types, i, d), np.int64(0))


@step
def give_back(s, types, windows, size, j, now, sign):
    """Add the amounts of windows for job j to those idle over time, or undo that."""
    if windows.exempt.shape[0] == 0:
        return
    for k in range(windows.takes.shape[0]):
        window = s.outages.windows[k]
        if is_known(window, now) and is_for(s, windows, k, j):
            add_between(types, windows, size, windows.takes[k], max(now, window.begin), window.known_end, sign)


@step
def take_place(s, windows, types, size, j, p, now):
    """Take a place of job j; return whether it may start there, and the number of instants ("windows by totals")."""
    if types is None:
        return True, size
    until = now + s.jobs[j].walltime
    first, last = places_of(types, j)
    give_back(s, types, windows, size, j, now, 1)
    _, row = first_place(types, windows, size, types.amounts, first, last, until - now, now + 1)
    give_back(s, types, windows, size, j, now, -1)
    if row >= 0:
        hold_nodes(types, j, p, row)
        size = add_between(types, windows, size, types.amounts[row], now, until, -1)
    return row >= 0, size


@step
def plan_place(s, windows, types, size, j, p, now):
    """Plan head job j; return whether it can ever start, and the number of instants ("windows by totals")."""
    if types is None:
        return True, size
    walltime = s.jobs[j].walltime
    first, last = places_of(types, j)
    give_back(s, types, windows, size, j, now, 1)
    k, row = first_place(types, windows, size, types.amounts, first, last, walltime, UNKNOWN_END)
    give_back(s, types, windows, size, j, now, -1)
    if row >= 0:
        begin = windows.times[k]
        size = add_between(types, windows, size, types.amounts[row], begin, begin + walltime, -1)
    return row >= 0, size


@step
def find_in_service(s, windows, placing, j, begin, until, now):
    """Set `in_service`: nodes without a known window in [begin, until) that is not for job j ("windows on nodes")."""
    for node in range(placing.in_service.size):
        placing.in_service[node] = True
    for k in range(s.outages.windows.size):
        window = s.outages.windows[k]
        if window.begin >= until:
            break
        if is_known(window, now) and begin < window.known_end and not is_for(s, windows, k, j):
            for node in range(placing.in_service.size):
                placing.in_service[node] &= s.outages.taken[k, node] == 0


@step
def take_nodes_in_service(s, windows, placing, j, p, now):
    """Place job j on nodes in service while it runs; return whether it may start there now ("windows on nodes")."""
    if placing is None:
        return True
    until = now + s.jobs[j].walltime
    past = until > s.partitions[p].shadow
    if s.jobs[j].cores > startable_cores(s, p, until):
        return False
    if not has_all(placing, j, placing.idle_in_all) or (past and not has_all(placing, j, placing.left_in_all)):
        return False
    find_in_service(s, windows, placing, j, now, until, now)
    return take_first_nodes(placing, j, past, False)


@routine
def plan_in_service(s, windows, placing, j, p, now):
    """Find the shadow time of head job j on nodes in service; return whether it has one ("windows on nodes")."""
    if placing is None:
        return True
    partition, running, bits = s.partitions[p], s.running, s.settings.bits
    low = (np.int64(1) << bits) - 1
    c, walltime = np.int64(s.jobs[j].cores), s.jobs[j].walltime
    i, last = partition.first_running, partition.first_running + partition.running
    copy(placing, p, placing.then, placing.idle)
    copy_in_all(placing, p, placing.then_in_all, placing.idle_in_all)
    for kind in kinds_of(placing, j):
        placing.found[kind] = placing.count[kind]
    instant = np.int64(first_instant(running, partition.first_running, partition.running, partition.free, c, now, bits))
    while instant < NEVER:
        while i < last and running.keys[i] >> bits <= instant:
            add_shares(placing, running.keys[i] & low, NO_SHARE, placing.then, placing.then_in_all, 1)
            i += 1
        if has_all(placing, j, placing.then_in_all):
            find_in_service(s, windows, placing, j, instant, instant + walltime, now)
            if hold_chunks(placing, j, p):
                partition.shadow = instant
                idle = available(running, partition.first_running, partition.running, partition.free, instant, bits)
                partition.extra = idle - c
                return True
        following = running.keys[i] >> bits if i < last else NEVER
        for k in range(s.outages.windows.size):
            window = s.outages.windows[k]
            if is_known(window, now) and instant < window.known_end < UNKNOWN_END:
                following = min(following, window.known_end)
        instant = following
    return False
