"""The plans of the head jobs of a pass, where limits, or the cores of particular nodes, are planned.

All plans of a pass count together. Names of rules refer to docs/reference/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.engine.gates.planned import NOW, add_count, count_running, is_above_at, is_held_later
from parsim.engine.plans.reservations import divide
from parsim.engine.plans.rows import ROWS, concerns, end_row, has_plan, list_on, row_after, takes_at
from parsim.engine.plans.windows import give_back, next_end_of_window, plan_windows
from parsim.engine.resources.nodes import add, add_shares, take_first, total
from parsim.engine.simulation import NEVER, routine, step
from parsim.engine.starts import count_use


@step
def most_left(plans, q, j, idle, begin, until):
    """Return an upper bound of the cores of partition q, of `idle` ones, that job j may take in [begin, until).

    It is `find_left` by sums over nodes: exact if no plan begins in between, unless plans are `loose`.
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
    """Set `left` to the cores of each node of partition q that job j may take in [begin, until); return their sum.

    `idle` has the cores of each node that the running jobs leave (rule "plans of several lists").
    """
    first, last = plans.nodes.first_node[q], plans.nodes.first_node[q + 1]
    left = plans.left[first:last]
    there = idle[first:last]
    for node in range(left.size):
        left[node] = there[node]
    row = 0
    while row < end_row(plans):
        if concerns(plans, q, row, j):
            other = plans.promises[list_on(plans, q, row)]
            if other.begin <= begin < other.end:
                add(left, plans.taken[row, first:last], -1)
        row = row_after(plans, row)
    row = 0
    while row < end_row(plans):
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
                give_back(plans, j, other.begin, first, extra, 1)
                p = takes_at(plans, q, 1, j, other.begin)
                r = takes_at(plans, q, 2, j, other.begin)
                if h + p + r == 0:
                    for node in range(left.size):
                        left[node] = min(left[node], extra[node])
                else:
                    for node in range(left.size):
                        left[node] = min(left[node], extra[node] + h * here[node] + p * pool[node] + r * reserved[node])
                give_back(plans, j, other.begin, first, extra, -1)
        row = row_after(plans, row)
    if plans.loose[0]:
        for node in range(left.size):
            left[node] = max(left[node], np.int32(0))
    return total(left)


@routine
def room_now(s, plans, q, j, need, now):
    """Return the cores of partition q that job j may take now, or an upper bound below `need` ("nodes in order")."""
    until = now + s.jobs[j].walltime
    plan_windows(s, plans, until, now)
    most = most_left(plans, q, j, s.partitions[q].free, now, until)
    if most >= need:
        row = 0
        while row < end_row(plans):
            if concerns(plans, q, row, j) and plans.promises[list_on(plans, q, row)].begin < until:
                return find_left(plans, q, j, plans.nodes.idle, now, until)
            row = row_after(plans, row)
    return most


@routine
def find_instant(s, plans, j, now):
    """Return the first instant at which head job j may start on the usable partitions, or NEVER.

    Rule "nodes of head jobs". Sets `later` to the cores idle at this instant, `left` to those that the job may take.
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
    """Return the row of the plan of list k: 0 for partitions, then the pool, then the reserved list."""
    return max(0, k - plans.nodes.first_node.size + ROWS)


@step
def plan_first(s, plans, k, j):
    """Plan head job j of list k on the first cores `left` of the usable partitions (rule "nodes in order")."""
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
    """Plan reserved job j of list k on shares of usable partitions, each one node (rule "shares of a reservation")."""
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
    """Let the plan of head job j of list k, already in `taken`, begin at `begin`, and count in this pass."""
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
        while each < end_row(plans):
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
    """Remove job j from the counts of its gates as a head job."""
    if s.jobs[j].is_head_job:
        s.jobs[j].is_head_job = False
        count_use(s, j, -1)


@step
def withdraw(s, plans, j):
    """Remove the plans of job j, which starts."""
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
            while each < end_row(plans):
                if has_plan(plans, q, each):
                    if promises[k].begin <= promises[list_on(plans, q, each)].begin < promises[k].end:
                        add(plans.extra[each, first:last], plans.taken[row, first:last], 1)
                        plans.leaves[each, q] += plans.takes[row, q]
                each = row_after(plans, each)
    stop_counting(s, j)


@step
def forget_plans(s, plans):
    """Remove the plans of all head jobs when a pass ends."""
    if plans is None:
        return
    for k in range(s.partitions.size):
        j = plans.promises[k].job
        plans.promises[k].job = -1
        if j >= 0:
            stop_counting(s, j)
