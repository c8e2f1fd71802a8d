"""The plans of the head jobs of a pass, where limits, or the cores of particular nodes, are planned.

All plans of a pass count together. Numbers ("rule 23") refer to docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.fairshare import stop_charging
from parsim.engine.gates.counters import count_entered
from parsim.engine.gates.planned import NOW, add_count, count_running, is_above_at, is_held_later
from parsim.engine.plans.reservations import divide
from parsim.engine.resources.nodes import Nodes, add, add_shares, occupy, occupy_node, take_first, total, vacate
from parsim.engine.resources.running import add_running, remove_running
from parsim.engine.resources.windows import UNKNOWN_END, Outages
from parsim.engine.simulation import NEVER, Running, routine, seldom, step
from parsim.engine.starts import count_use, start_job

#: The plan of the head job of one list, in the present pass; `job` is -1 without one.
PROMISE = np.dtype([("job", np.int64), ("begin", np.int64), ("end", np.int64)], align=True)

ROWS = 3  #: plans that may concern one partition: that of its own list, the pool's, that of the reserved list


class Plans(NamedTuple):
    """The plans, and the nodes that they are of. One in row 0 is that of the list of the partition of the nodes."""

    nodes: Nodes
    running: Running  # of the whole machine
    promises: NDArray[np.void]  # (P + 1 + W,) PROMISE; the lists', the last the reserved one's; then the windows'
    near: NDArray[np.int64]  # (2,): the first window that has not ended, and the one after those planned in this pass
    taken: NDArray[np.int32]  # (ROWS + W, V): cores of each node that a plan takes
    extra: NDArray[np.int32]  # (ROWS + W, V): cores of each node that all plans leave at the begin of one
    takes: NDArray[np.int64]  # (ROWS + W, P): the sum of `taken` of each partition; where it is 0 neither counts
    leaves: NDArray[np.int64]  # (ROWS + W, P): the sum of `extra`
    later: NDArray[np.int32]  # (V,): cores of each node that are idle at the instant looked at
    left: NDArray[np.int32]  # (V,): cores of each node that the job looked at may take
    begun: NDArray[np.int64]  # (k, 3): job, node and cores of those that run when the simulation begins
    outages: Outages  # their plans are in the last rows
    loose: NDArray[np.bool_]  # (1,): whether in this pass a node may have less than none left
    exempt: Any  # (G, n): whether a job may use what windows of a kind take; None leaves that out


@step
def list_on(plans, q, row):
    """Return the list, or behind the lists the window, whose plan is in this row of partition q, or -1."""
    pool = plans.nodes.first_node.size - 2
    if row == 0:
        return q if q < pool else -1
    return pool + row - 1


@step
def has_plan(plans, q, row):
    """Whether a plan in this row takes cores of partition q."""
    k = list_on(plans, q, row)
    return k >= 0 and plans.promises[k].job >= 0 and plans.takes[row, q] > 0


@step
def concerns(plans, q, row, j):
    """Whether that plan is another job's than j, or a window whose cores it may not use."""
    if is_exempt(plans, plans.exempt, row, j):
        return False
    return has_plan(plans, q, row) and plans.promises[list_on(plans, q, row)].job != j


@step
def is_exempt(plans, exempt, row, j):
    """Whether the plan in this row is that of a window whose cores job j may use."""
    if exempt is None:
        return False
    return (
        row >= ROWS
        and plans.outages.windows[row - ROWS].members >= 0
        and (exempt[plans.outages.windows[row - ROWS].members, j])
    )


@step
def row_after(plans, row):
    """Return the row of plans after this one: behind those of lists, those of the windows planned in this pass."""
    return row + 1 if row != ROWS - 1 else ROWS + plans.near[0]


@step
def last_row(plans):
    """Return the row after the last that has a plan in this pass."""
    return ROWS + plans.near[1]


@step
def give_back(plans, exempt, j, moment, first, left, sign):
    """Add to what is `left` of nodes from `first` on what windows take at a moment that job j may use, or undo that."""
    if exempt is None:
        return
    windows = plans.outages.windows
    for k in range(plans.near[0], plans.near[1]):
        window = plans.promises[plans.promises.size - windows.size + k]
        if window.job >= 0 and window.begin <= moment < window.end and is_exempt(plans, exempt, ROWS + k, j):
            add(left, plans.taken[ROWS + k, first : first + left.size], sign)


@step
def shrink_window(s, plans, exempt, k, now):
    """Let a window for some jobs take only what those that ran before this pass do not have of it (rule 33)."""
    if exempt is None:
        return
    window = plans.outages.windows[k]
    if window.members < 0:
        return
    running, bits = plans.running, s.settings.bits
    low = (np.int64(1) << bits) - 1
    row, all_of_it = plans.taken[ROWS + k], plans.outages.taken[k]
    for node in range(row.size):
        row[node] = 0
    moment = max(now, window.begin)
    for i in range(s.progress.running - 1, -1, -1):
        if (running.keys[i] >> bits) <= moment:
            break
        j = running.keys[i] & low
        if exempt[window.members, j] and s.start[j] < now:
            add_shares(plans.nodes, j, row)
    for node in range(row.size):
        row[node] = max(np.int32(all_of_it[node]) - row[node], np.int32(0))
    for q in range(s.usable.size):
        plans.takes[ROWS + k, q] = total(row[plans.nodes.first_node[q] : plans.nodes.first_node[q + 1]])


@step
def takes_at(plans, q, row, j, moment):
    """1 if that plan is one of job j and takes cores at this moment, else 0."""
    if not has_plan(plans, q, row):
        return np.int32(0)
    own = plans.promises[list_on(plans, q, row)]
    return np.int32(own.job == j and own.begin <= moment < own.end)


@step
def most_left(plans, q, j, idle, begin, until):
    """No fewer cores of partition q than job j may take in [begin, until), of `idle` ones; as many if no plan begins.

    This is `find_left` by the sums of the nodes. Where one may have less than none left, it is only a bound.
    """
    if plans.loose[0]:
        return idle
    least = idle
    for row in range(ROWS):
        if concerns(plans, q, row, j):
            other = plans.promises[list_on(plans, q, row)]
            if other.begin <= begin:
                if begin < other.end:
                    idle -= plans.takes[row, q]
            elif other.begin < until:
                most = plans.leaves[row, q]
                for own in range(ROWS):
                    most += takes_at(plans, q, own, j, other.begin) * plans.takes[own, q]
                least = min(least, most)
    return min(least, idle)


@routine
def find_left(plans, q, j, idle, begin, until):
    """Set in `left` the cores of each node of partition q that job j may take in [begin, until); return their sum.

    `idle` are those that the running jobs leave (rules 23 and 25).
    """
    first, last = plans.nodes.first_node[q], plans.nodes.first_node[q + 1]
    left = plans.left[first:last]
    there = idle[first:last]
    for node in range(left.size):
        left[node] = there[node]
    row = 0
    while row < last_row(plans):
        if concerns(plans, q, row, j):
            other = plans.promises[list_on(plans, q, row)]
            if other.begin <= begin < other.end:
                add(left, plans.taken[row, first:last], -1)
        row = row_after(plans, row)
    row = 0
    while row < last_row(plans):
        if concerns(plans, q, row, j):
            other = plans.promises[list_on(plans, q, row)]
            if begin < other.begin < until:
                extra = plans.extra[row, first:last]
                here, pool, reserved = (
                    plans.taken[0, first:last],
                    plans.taken[1, first:last],
                    plans.taken[2, first:last],
                )
                h = takes_at(plans, q, 0, j, other.begin)
                give_back(plans, plans.exempt, j, other.begin, first, extra, 1)
                p = takes_at(plans, q, 1, j, other.begin)
                r = takes_at(plans, q, 2, j, other.begin)
                if h + p + r == 0:
                    for node in range(left.size):
                        left[node] = min(left[node], extra[node])
                else:
                    for node in range(left.size):
                        left[node] = min(left[node], extra[node] + h * here[node] + p * pool[node] + r * reserved[node])
                give_back(plans, plans.exempt, j, other.begin, first, extra, -1)
        row = row_after(plans, row)
    if plans.loose[0]:
        for node in range(left.size):
            left[node] = max(left[node], np.int32(0))
    return total(left)


@routine
def room_now(s, plans, q, j, need, now):
    """Cores of partition q that job j may take now (rule 23); if these are less than it needs, not more than so."""
    until = now + s.jobs[j].walltime
    plan_windows(s, plans, until, now)
    most = most_left(plans, q, j, s.partitions[q].free, now, until)
    if most >= need:
        row = 0
        while row < last_row(plans):
            if concerns(plans, q, row, j) and plans.promises[list_on(plans, q, row)].begin < until:
                return find_left(plans, q, j, plans.nodes.idle, now, until)
            row = row_after(plans, row)
    return most


@routine
def find_instant(s, plans, j, now):
    """Find when head job j may start on the usable partitions (rules 12, 21 and 24).

    `later` has what is idle then, `left` what it may take.
    """
    running, bits, count = plans.running, s.settings.bits, s.progress.running
    low = (np.int64(1) << bits) - 1
    job = s.jobs[j]
    count_running(s.gates, j)
    for node in range(plans.later.size):
        plans.later[node] = plans.nodes.idle[node]
    for q in range(s.usable.size):
        s.idle[q] = s.partitions[q].free
    instant = now
    ended = np.int64(0)
    added = np.int64(0)
    while True:
        until = instant + job.walltime
        plan_windows(s, plans, until, now)
        room = np.int64(0)
        for q in range(s.usable.size):
            if s.usable[q]:
                room += most_left(plans, q, j, s.idle[q], instant, until)
        if room >= job.cores and not (
            s.settings.plans_limits
            and (is_above_at(s, plans, j, until, instant, NOW, True) or is_held_later(s, plans, j, instant))
        ):
            while added < ended:
                add_shares(plans.nodes, running.keys[added] & low, plans.later)
                added += 1
            room = np.int64(0)
            for q in range(s.usable.size):
                if s.usable[q]:
                    room += find_left(plans, q, j, plans.later, instant, until)
            if room >= job.cores:
                return instant
        following = running.keys[ended] >> bits if ended < count else NEVER
        for k in range(s.partitions.size):
            if plans.promises[k].job >= 0 and plans.promises[k].end > instant:
                following = min(following, plans.promises[k].end)
        following = next_end_of_window(s, plans, instant, following, now)
        if following == NEVER:
            return NEVER
        instant = following
        while ended < count and (running.keys[ended] >> bits) <= instant:
            e = running.keys[ended] & low
            add_count(s.gates, NOW, j, e, running.keys[ended] >> bits, -1)
            if s.placement[e] >= 0:
                s.idle[s.placement[e]] += s.jobs[e].cores
            else:
                for q in range(s.usable.size):
                    s.idle[q] += s.shares[-1 - s.placement[e], q]
            ended += 1


@step
def row_of(plans, k):
    """The row in which the plan of list k is."""
    return max(0, k - plans.nodes.first_node.size + ROWS)


@step
def plan_first(s, plans, k, j):
    """Let head job j of list k take what is left of the usable partitions, from the first node on (rule 23)."""
    row = row_of(plans, k)
    need = np.int64(s.jobs[j].cores)
    for q in range(s.usable.size):
        if s.usable[q]:
            first, last = plans.nodes.first_node[q], plans.nodes.first_node[q + 1]
            missing = take_first(plans.left[first:last], need, plans.taken[row, first:last])
            plans.takes[row, q] = need - missing
            need = missing
        elif row > 0:
            plans.takes[row, q] = 0


@step
def plan_shares(s, plans, k, j):
    """Let reserved job j of list k take its share of each usable partition, which is one node (rule 13)."""
    row = row_of(plans, k)
    idle = np.int64(0)
    for q in range(s.usable.size):
        s.idle[q] = plans.left[q] if s.usable[q] else 0
        idle += s.idle[q]
    divide(s.idle, s.jobs[j].cores, idle, plans.takes[row], s.usable)
    for q in range(s.usable.size):
        plans.taken[row, q] = plans.takes[row, q]


@step
def promise(s, plans, k, j, begin):
    """Let the plan of head job j of list k, which is made, stand for this pass."""
    promises, row = plans.promises, row_of(plans, k)
    end = begin + s.jobs[j].walltime
    for other in range(s.partitions.size):
        plans.loose[0] |= promises[other].job == j
    promises[k].job = j
    promises[k].begin = begin
    promises[k].end = end
    for q in range(s.usable.size):
        if list_on(plans, q, row) != k or plans.takes[row, q] == 0:
            continue
        first, last = plans.nodes.first_node[q], plans.nodes.first_node[q + 1]
        taken = plans.taken[row, first:last]
        extra = plans.extra[row, first:last]
        for node in range(extra.size):
            extra[node] = plans.later[first + node]
        each = 0
        while each < last_row(plans):
            if has_plan(plans, q, each):
                other = promises[list_on(plans, q, each)]
                if other.begin <= begin < other.end:
                    add(extra, plans.taken[each, first:last], -1)
                if each != row and begin <= other.begin < end:
                    add(plans.extra[each, first:last], taken, -1)
                    plans.leaves[each, q] -= plans.takes[row, q]
            each = row_after(plans, each)
        plans.leaves[row, q] = total(extra)
    if not s.settings.plans_limits and not s.jobs[j].is_head_job:
        s.jobs[j].is_head_job = True
        count_use(s, j, 1)


@step
def stop_counting(s, j):
    """Limits count job j as a head job no more."""
    if s.jobs[j].is_head_job:
        s.jobs[j].is_head_job = False
        count_use(s, j, -1)


@step
def withdraw(s, plans, j):
    """Job j starts: its plans are void."""
    promises = plans.promises
    for k in range(s.partitions.size):
        if promises[k].job != j:
            continue
        promises[k].job = -1
        row = row_of(plans, k)
        for q in range(s.usable.size):
            if list_on(plans, q, row) != k or plans.takes[row, q] == 0:
                continue
            first, last = plans.nodes.first_node[q], plans.nodes.first_node[q + 1]
            each = 0
            while each < last_row(plans):
                if has_plan(plans, q, each):
                    if promises[k].begin <= promises[list_on(plans, q, each)].begin < promises[k].end:
                        add(plans.extra[each, first:last], plans.taken[row, first:last], 1)
                        plans.leaves[each, q] += plans.takes[row, q]
                each = row_after(plans, each)
    stop_counting(s, j)


@routine
def begin_planned(s, plans, j, now):
    """Start job j on the cores of each partition that stand in the next row of `shares`, on its first nodes."""
    promises, progress, nodes = plans.promises, s.progress, plans.nodes
    until = now + s.jobs[j].walltime
    withdraw(s, plans, j)
    parts = 0
    for q in range(s.usable.size):
        cores = s.shares[progress.spanning, q]
        if cores == 0:
            continue
        parts += 1
        s.placement[j] = q
        s.partitions[q].free -= cores
        first, last = nodes.first_node[q], nodes.first_node[q + 1]
        left = plans.left[first:last]
        find_left(plans, q, j, nodes.idle, now, until)
        take_first(left, cores, left)
        row = 0
        while row < last_row(plans):
            if has_plan(plans, q, row) and promises[list_on(plans, q, row)].begin < until:
                add(plans.extra[row, first:last], left, -1)
                plans.leaves[row, q] -= cores
            row = row_after(plans, row)
        occupy(nodes, j, first, left)
    if parts > 1:
        s.placement[j] = -1 - progress.spanning
        progress.spanning += 1
    add_running(plans.running, 0, progress.running, (until << s.settings.bits) | j, np.int64(s.jobs[j].cores))
    start_job(s, j, now)


@routine
def resume_planned(s, plans):
    """Let the jobs run that run when the simulation begins (rule 29)."""
    for row in plans.begun:
        occupy_node(plans.nodes, row[0], np.int32(row[1]), np.int32(row[2]))
    for j in range(s.settings.first):
        for q in range(s.usable.size):
            s.partitions[q].free -= s.shares[j, q]
        key = ((s.start[j] + s.jobs[j].walltime) << s.settings.bits) | j
        add_running(plans.running, 0, s.progress.running, key, np.int64(s.jobs[j].cores))
        s.progress.waiting += 1
        count_entered(s.gates, j)
        start_job(s, j, s.start[j])


@step
def forget_plans(s, plans):
    """Let no list have the plan of a head job when a pass ends."""
    if plans is None:
        return
    for k in range(s.partitions.size):
        j = plans.promises[k].job
        plans.promises[k].job = -1
        if j >= 0:
            stop_counting(s, j)


@step
def forget_windows(plans, now):
    """Let no window have a plan when a pass begins: `plan_windows` plans those that a job can reach."""
    near, windows = plans.near, plans.outages.windows
    while near[0] < windows.size and windows[near[0]].end <= now:
        near[0] += 1
    near[1] = near[0]
    plans.loose[0] = False


@step
def plan_windows(s, plans, until, now):
    """Let the windows that are known now and begin before `until` count as plans in this pass (rule 30)."""
    near, windows = plans.near, plans.outages.windows
    while near[1] < windows.size and windows[near[1]].begin < until:
        plan_window(s, plans, near[1], now)
        near[1] += 1


@seldom
def plan_window(s, plans, k, now):
    """Let a window that begins no sooner than those before it count as a plan, if it is known now."""
    running, bits = plans.running, s.settings.bits
    low = (np.int64(1) << bits) - 1
    promises, lists, windows = plans.promises, s.partitions.size, plans.outages.windows
    window, own = windows[k], promises[lists + k]
    own.job = s.jobs.size + k if window.known_from <= now < window.end else -1
    own.begin = window.begin
    own.end = window.known_end if window.known_end < UNKNOWN_END else NEVER
    if own.job < 0:
        return
    plans.loose[0] = True
    shrink_window(s, plans, plans.exempt, k, now)
    begin, taken, extra = own.begin, plans.taken[ROWS + k], plans.extra[ROWS + k]
    if begin <= now:
        return
    for node in range(extra.size):
        extra[node] = plans.nodes.idle[node] - taken[node]
    i = np.int64(0)
    while i < s.progress.running and (running.keys[i] >> bits) <= begin:
        add_shares(plans.nodes, running.keys[i] & low, extra)
        i += 1
    for before in range(plans.near[0], k):
        if promises[lists + before].job >= 0 and begin < promises[lists + before].end:
            add(extra, plans.taken[ROWS + before], -1)
            if promises[lists + before].begin == begin:
                add(plans.extra[ROWS + before], taken, -1)
    for q in range(s.usable.size):
        first, last = plans.nodes.first_node[q], plans.nodes.first_node[q + 1]
        for row in range(ROWS):
            if has_plan(plans, q, row):
                other = promises[list_on(plans, q, row)]
                if other.begin <= begin < other.end:
                    add(extra[first:last], plans.taken[row, first:last], -1)


@step
def next_end_of_window(s, plans, instant, following, now):
    """Return the first instant after `instant`, up to `following`, at which a window known now ends."""
    near, windows, lists = plans.near, plans.outages.windows, s.partitions.size
    k = near[0]
    while k < windows.size and (k < near[1] or windows[k].begin < following):
        plan_windows(s, plans, windows[k].begin + 1, now)
        own = plans.promises[lists + k]
        if own.job >= 0 and own.end > instant:
            following = min(following, own.end)
        k += 1
    return following


@step
def end_planned(s, plans, j):
    """Job j has ended: its cores are idle again."""
    job = s.jobs[j]
    key = ((s.start[j] + job.walltime) << s.settings.bits) | j
    remove_running(plans.running, 0, s.progress.running, key)
    if s.placement[j] >= 0:
        s.partitions[s.placement[j]].free += job.cores
    else:
        for q in range(s.usable.size):
            s.partitions[q].free += s.shares[-1 - s.placement[j], q]
    vacate(plans.nodes, j)
    count_use(s, j, -1)
    stop_charging(s.fair, j, s.start[j] + job.runtime)
