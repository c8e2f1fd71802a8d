"""A visit to a waiting list while nodes of several types are out of service, or kept for some jobs.

Where there are no such windows the place of `TypedWindows` is None, for which numba leaves all of this out. Numbers
("rule 82") refer to docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.kernels.compiled import routine, step
from parsim.kernels.node_types import hold_nodes, places_on
from parsim.kernels.order import LJF, before, refresh_values
from parsim.kernels.placed_jobs import hold_chunks
from parsim.kernels.placing import NO_SHARE, add_shares, copy, copy_in_all, has_all, kinds_of, take_first_nodes, turn_to
from parsim.kernels.running import available, first_instant, sift
from parsim.kernels.starts import is_held, make_head_job, occupy, start_job, startable_cores
from parsim.kernels.state import NEVER, UNKNOWN
from parsim.kernels.typed_profile import add_between, fits, idle_over_time
from parsim.kernels.waiting import STARTED, end_visit, kind_of, leave_others, note_held
from parsim.kernels.windows import UNKNOWN_END, Outages, is_known, next_instant


class TypedWindows(NamedTuple):
    """W windows on P partitions of D totals each, or of V nodes in all; S instants at which what is idle may change."""

    outages: Outages  # what each takes: (W, P * D) of totals, or (W, V) cores of nodes that it takes wholly
    exempt: NDArray[np.bool_]  # (G, n): whether a job may use what windows of a kind take
    passed: NDArray[np.int64]  # (1,): instants of `outages` that have passed
    takes: NDArray[np.int64]  # (W, D): what each takes of the partition whose list is visited, from others
    times: NDArray[np.int64]  # (S,), and
    free: NDArray[np.int64]  # (S, D): see `parsim.kernels.typed_profile`


@step
def next_window(windows, now):
    """Return the next instant at which a window becomes known or ends, or NEVER (rule 31)."""
    if windows is None:
        return NEVER
    instants = windows.outages.instants
    while next_instant(instants, windows.passed[0]) <= min(now, NEVER - 1):
        windows.passed[0] += 1
    return next_instant(instants, windows.passed[0])


@step
def is_for(windows, k, j):
    """Whether job j may use what window k takes."""
    members = windows.outages.windows[k].members
    return members >= 0 and windows.exempt[members, j]


@routine
def visit_beside_windows(s, windows, types, placing, p, now):
    """Go once over list p and start the jobs that EASY starts beside the windows (rules 3, 82 and 83)."""
    if windows is None:
        return
    settings, waiting, partition = s.settings, s.waiting, s.partitions[p]
    first, last = partition.first, partition.first + partition.waiting
    kind = kind_of(s, p)
    is_sorted = kind <= LJF
    refresh_values(s, kind, first, last, now)
    order = (s, kind, now)
    m = np.int64(0)
    for i in range(first, last):
        s.candidates[m] = i
        m += 1
    if not is_sorted:
        for k in range((m >> 1) - 1, -1, -1):
            sift(s.candidates, k, m, before, order)
    partition.shadow = NEVER
    size = begin_visit(s, windows, types, p, now)
    x, gone, found = np.int64(0), last, False
    while x < m:
        if is_sorted:
            i = np.int64(s.candidates[x])
            x += 1
        else:
            i = np.int64(s.candidates[0])
            m -= 1
            s.candidates[0] = s.candidates[m]
            sift(s.candidates, 0, m, before, order)
        j = np.int64(waiting.job[i])
        held = settings.limits and is_held(s, j)
        if settings.track_held and s.jobs[j].home == p:
            note_held(s, j, now, held)
        if held:
            continue
        starts, size = take_place(s, windows, types, size, j, p, now)
        if starts and take_nodes_in_service(s, windows, placing, j, p, now):
            s.placement[j] = p
            occupy(s, j, p, np.int64(s.jobs[j].cores), now)
            start_job(s, j, now)
            if not settings.single_list:
                leave_others(s, p, j, now)
            if partition.first_starving == j:
                partition.first_starving = UNKNOWN
            waiting.job[i] = STARTED
            gone = min(gone, i)
        elif not found and s.jobs[j].cores <= partition.cores and now - s.jobs[j].submit >= settings.reservation_delay:
            found, size = plan_place(s, windows, types, size, j, p, now)
            found &= plan_in_service(s, windows, placing, j, p, now)
            if found:
                make_head_job(s, j, p)
                if not settings.backfill:
                    break
    end_visit(s, p, x if is_sorted else 0, m, gone, last, now)


@step
def begin_visit(s, windows, types, p, now):
    """Write what is idle over time, of totals, beside the windows known now; return the number of instants."""
    if types is None:
        return np.int64(0)
    size = np.int64(idle_over_time(s, types, windows, p, now))
    for k in range(windows.takes.shape[0]):
        window = windows.outages.windows[k]
        if is_known(window, now):
            take_of_others(s, windows, types, k, p, now)
            size = add_between(windows, size, windows.takes[k], max(now, window.begin), window.known_end, -1)
    return size


@step
def take_of_others(s, windows, types, k, p, now):
    """Let window k take what those that may use it, and ran before this pass, do not have of it (rule 33)."""
    window, takes, partition = windows.outages.windows[k], windows.takes[k], s.partitions[p]
    bits = s.settings.bits
    low = (np.int64(1) << bits) - 1
    for d in range(takes.size):
        takes[d] = windows.outages.taken[k, p * takes.size + d]
    if window.members < 0:
        return
    for i in range(partition.first_running, partition.first_running + partition.running):
        j = s.running.keys[i] & low
        if (s.running.keys[i] >> bits) > max(now, window.begin) and s.start[j] < now and is_for(windows, k, j):
            for d in range(takes.size):
                takes[d] = max(takes[d] - types.amounts[types.taken[j], d], np.int64(0))


@step
def give_back(windows, size, j, now, sign):
    """Add to what is idle what windows take that job j may use, or undo that."""
    if windows.exempt.shape[0] == 0:
        return
    for k in range(windows.takes.shape[0]):
        window = windows.outages.windows[k]
        if is_known(window, now) and is_for(windows, k, j):
            add_between(windows, size, windows.takes[k], max(now, window.begin), window.known_end, sign)


@step
def take_place(s, windows, types, size, j, p, now):
    """Let job j take a place, if it may start now; return whether it may, and the number of instants (rule 82)."""
    if types is None:
        return True, size
    if s.jobs[j].cores > s.partitions[p].free:
        return False, size
    until = now + s.jobs[j].walltime
    first, last = places_on(types, j, p)
    give_back(windows, size, j, now, 1)
    row = first
    while row < last and not fits(types, windows, size, row, 0, until):
        row += 1
    give_back(windows, size, j, now, -1)
    if row < last:
        hold_nodes(types, j, p, row)
        size = add_between(windows, size, types.amounts[row], now, until, -1)
    return row < last, size


@step
def plan_place(s, windows, types, size, j, p, now):
    """Plan head job j; return whether there is an instant for it, and the number of instants (rules 31 and 82)."""
    if types is None:
        return True, size
    walltime = s.jobs[j].walltime
    first, last = places_on(types, j, p)
    give_back(windows, size, j, now, 1)
    k, row = np.int64(0), last
    while row == last and k < size and windows.times[k] < UNKNOWN_END:
        row = first
        while row < last and not fits(types, windows, size, row, k, windows.times[k] + walltime):
            row += 1
        k += 1
    give_back(windows, size, j, now, -1)
    if row < last:
        begin = windows.times[k - 1]
        size = add_between(windows, size, types.amounts[row], begin, begin + walltime, -1)
    return row < last, size


@step
def find_in_service(windows, placing, j, begin, until, now):
    """Set which nodes no window known now takes at any instant of [begin, until) that job j may not use (rule 83)."""
    for node in range(placing.in_service.size):
        placing.in_service[node] = True
    for k in range(windows.outages.windows.size):
        window = windows.outages.windows[k]
        if window.begin >= until:
            break
        if is_known(window, now) and begin < window.known_end and not is_for(windows, k, j):
            for node in range(placing.in_service.size):
                placing.in_service[node] &= windows.outages.taken[k, node] == 0


@step
def take_nodes_in_service(s, windows, placing, j, p, now):
    """Place job j on nodes that are in service while it runs, if it may start now (rule 83)."""
    if placing is None:
        return True
    until = now + s.jobs[j].walltime
    past = until > s.partitions[p].shadow
    if s.jobs[j].cores > startable_cores(s, p, until):
        return False
    turn_to(placing, j, p)
    if not has_all(placing, j, placing.idle_in_all) or (past and not has_all(placing, j, placing.left_in_all)):
        return False
    find_in_service(windows, placing, j, now, until, now)
    return take_first_nodes(placing, j, past, False)


@routine
def plan_in_service(s, windows, placing, j, p, now):
    """Find when and where head job j of list p is placed on nodes in service while it runs; whether ever (rule 83)."""
    if placing is None:
        return True
    partition, running, bits = s.partitions[p], s.running, s.settings.bits
    low = (np.int64(1) << bits) - 1
    c, walltime = np.int64(s.jobs[j].cores), s.jobs[j].walltime
    i, last = partition.first_running, partition.first_running + partition.running
    turn_to(placing, j, p)
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
            find_in_service(windows, placing, j, instant, instant + walltime, now)
            if hold_chunks(placing, j, p):
                partition.shadow = instant
                idle = available(running, partition.first_running, partition.running, partition.free, instant, bits)
                partition.extra = idle - c
                return True
        following = running.keys[i] >> bits if i < last else NEVER
        for k in range(windows.outages.windows.size):
            window = windows.outages.windows[k]
            if is_known(window, now) and instant < window.known_end < UNKNOWN_END:
                following = min(following, window.known_end)
        instant = following
    return False
