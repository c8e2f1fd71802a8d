"""Head jobs of queues that hold whole nodes, where chunks are placed on the nodes that they fill best.

Names of rules refer to docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.compile.compiled import routine, step
from parsim.engine.resources.best_nodes import take_best_nodes, weight_of
from parsim.engine.resources.chunks import (
    HEAVIER,
    NO_SHARE,
    add_copies,
    add_shares,
    copies_on,
    copy,
    copy_in_all,
    count_copies,
    find_fitting,
    has_all,
    kinds_of,
    next_turn,
)
from parsim.engine.resources.typed_windows import is_for
from parsim.engine.resources.windows import UNKNOWN_END, is_known
from parsim.engine.simulation import NEVER


class PlacedHeadJobs(NamedTuple):
    """The plans of the head jobs of Q queues on V nodes of T types with R resources."""

    begin: NDArray[np.int64]  # (Q,): begin of each head job's plan, `NEVER` without one
    end: NDArray[np.int64]  # (Q,): its end
    holds: NDArray[np.bool_]  # (Q, V): whether the head job holds each node
    beside: NDArray[np.int64]  # (Q, R, T): amounts idle now on the nodes of each type that the head job does not hold
    whole: NDArray[np.int64]  # (R, V): amounts of each node when nothing runs
    visits: NDArray[np.int64]  # (1,): number of visits
    unplaced: NDArray[np.int64]  # (2, demands): last visit that computed `shortest_unplaced`, and its result
    failed: NDArray[np.int64]  # (2, demands): last visit in which a job found no nodes, and the least end of such a job
    exempt: NDArray[np.bool_]  # (G, n): see `parsim.engine.resources.typed_windows.TypedWindows`


@step
def place_best(s, placing, heads, j, p, now, end):
    """Place job j on nodes without plans up to and at `end`; return whether it fits (rule "nodes without plans")."""
    wanted, changes, visit = placing.of[j], placing.changes[0], heads.visits[0]
    # Nodes get more room when a job ends; within a visit they get less, and a job that runs longer may take fewer.
    failed = heads.failed[0, wanted] == visit and end >= heads.failed[1, wanted]
    if placing.failed[0, wanted] == changes or (failed and heads.exempt.shape[0] == 0):
        return False
    any_nodes = False
    if has_all(placing, j, placing.idle_in_all):
        if has_all_beside(placing, heads, j, end):
            find_takeable(s, placing, heads, j, now, end + 1, now)
            if take_best_nodes(placing, j, False):
                take_beside(placing, heads, j)
                return True
            if placing.first[wanted + 1] - placing.first[wanted] > 1:  # several kinds may fit only where less is idle
                return False
            any_nodes = placing.may_take.all()
    else:
        any_nodes = True
    if any_nodes:
        placing.failed[0, wanted] = changes
    heads.failed[0, wanted], heads.failed[1, wanted] = visit, end
    return False


@step
def shortest_unplaced(placing, heads, j, now):
    """Return the shortest walltime at which no job with job j's demand can start, by the totals of nodes."""
    wanted, unplaced = placing.of[j], heads.unplaced
    if unplaced[0, wanted] != heads.visits[0]:
        unplaced[0, wanted] = heads.visits[0]
        unplaced[1, wanted] = first_in_the_way(placing, heads, j, now) - now
    return unplaced[1, wanted]


@routine
def first_in_the_way(placing, heads, j, now):
    """Return the begin of the first plan that leaves too little for job j, or NEVER; now if too little is idle."""
    wanted, first = placing.of[j], NEVER
    if placing.failed[0, wanted] != placing.changes[0] and not has_all(placing, j, placing.idle_in_all):
        placing.failed[0, wanted] = placing.changes[0]
    if placing.failed[0, wanted] == placing.changes[0]:
        return now
    for k in range(heads.begin.size):
        if heads.begin[k] < first and not has_all(placing, j, heads.beside[k]):
            first = heads.begin[k]
    return first


@step
def has_all_beside(placing, heads, j, end):
    """Whether the totals beside each plan that begins by `end` suffice for job j."""
    for k in range(heads.begin.size):
        if heads.begin[k] <= end and heads.begin[k] < NEVER and not has_all(placing, j, heads.beside[k]):
            return False
    return True


@step
def take_beside(placing, heads, j):
    """Subtract the amounts of job j, just placed, from those idle beside each plan."""
    number = placing.of_job[j]
    while number != NO_SHARE:
        share = placing.shares[number]
        node, kind = np.int64(share.node), np.int64(share.kind)
        for k in range(heads.begin.size):
            if heads.begin[k] < NEVER and not heads.holds[k, node]:
                for r in range(placing.amounts.shape[1]):
                    heads.beside[k, r, placing.type[node]] -= share.copies * placing.amounts[kind, r]
        number = share.next


@step
def find_takeable(s, placing, heads, j, begin, end, now):
    """Set `may_take` to nodes that no plan or window known now takes from job j anywhere in [begin, end)."""
    placing.may_take[:] = True
    for k in range(heads.begin.size):
        if heads.begin[k] < end and heads.end[k] > begin and heads.begin[k] < NEVER:
            for node in range(placing.may_take.size):
                placing.may_take[node] &= not heads.holds[k, node]
    for k in range(s.outages.windows.size):
        window = s.outages.windows[k]
        if is_known(window, now) and window.begin < end and begin < window.known_end and not is_for(s, heads, k, j):
            for node in range(placing.may_take.size):
                placing.may_take[node] &= s.outages.taken[k, node] == 0


@routine
def plan_placed(s, placing, heads, j, p, now):
    """Plan job j as its queue's head job at the first instant at which nodes hold it (rule "plan of whole nodes")."""
    partition, running, bits = s.partitions[p], s.running, s.settings.bits
    low = (np.int64(1) << bits) - 1
    queue, w = np.int64(s.jobs[j].queue), np.int64(s.jobs[j].walltime)
    i, last = partition.first_running, partition.first_running + partition.running
    instant, changes, counted = now, now, False
    copy(placing, p, placing.then, placing.idle)
    copy_in_all(placing, p, placing.then_in_all, placing.idle_in_all)
    while instant < NEVER:
        while i < last and running.keys[i] >> bits <= instant:
            if counted:
                find_more_to_take(placing, j, running.keys[i] & low)
            else:
                add_shares(placing, running.keys[i] & low, NO_SHARE, placing.then, placing.then_in_all, 1)
            i += 1
        if instant >= changes:
            find_takeable(s, placing, heads, j, instant, instant + w, now)
            changes, counted = next_takeable_change(heads, s.outages, instant, w, now), False
        if has_found(placing, j) if counted else has_all(placing, j, placing.then_in_all):
            if hold_busy_first(placing, heads, j, p, queue):
                heads.begin[queue], heads.end[queue] = instant, instant + w
                return
            if not counted:
                counted = True
                for kind in kinds_of(placing, j):
                    placing.found[kind] = room_to_take(placing, kind)
        following = running.keys[i] >> bits if i < last else NEVER
        for k in range(heads.begin.size):
            if heads.begin[k] < NEVER and instant < heads.end[k]:
                following = min(following, heads.end[k])
        for k in range(s.outages.windows.size):
            window = s.outages.windows[k]
            if is_known(window, now) and instant < window.known_end < UNKNOWN_END:
                following = min(following, window.known_end)
        instant = following


@step
def next_takeable_change(heads, outages, instant, walltime, now):
    """Return the next instant at which a job of this walltime may find other nodes by `find_takeable`, or NEVER."""
    changes = NEVER
    for k in range(heads.begin.size):
        if heads.begin[k] < NEVER:
            changes = min(changes, next_overlap_change(heads.begin[k], heads.end[k], instant, walltime))
    for k in range(outages.windows.size):
        window = outages.windows[k]
        if is_known(window, now):
            changes = min(changes, next_overlap_change(window.begin, window.known_end, instant, walltime))
    return changes


@step
def next_overlap_change(begin, end, instant, walltime):
    """Return the next instant at which a job that starts would begin or cease to overlap [begin, end); or NEVER."""
    if instant + walltime <= begin:
        return begin - walltime + 1
    return end if instant < end else NEVER


@step
def room_to_take(placing, kind):
    """Return how many copies of a kind fit on the nodes that may be taken, at the planned instant."""
    found = np.int64(0)
    for row in placing.rows:
        if placing.may_use[kind, row.type]:
            for x in range(find_fitting(placing, kind, placing.then, row)):
                node = placing.fitting[x]
                if placing.may_take[node]:
                    found += copies_on(placing, kind, placing.then, node, placing.count[kind])
    return found


@step
def find_more_to_take(placing, j, other):
    """Add the amounts of another job to `then`, and the copies of job j that now fit on takeable nodes to `found`."""
    number = placing.of_job[other]
    while number != NO_SHARE:
        share = placing.shares[number]
        node = np.int64(share.node)
        may_take = placing.may_take[node]
        if may_take:
            count_copies(placing, j, node, -1)
        add_copies(placing, share.kind, placing.then, placing.then_in_all, node, share.copies)
        if may_take:
            count_copies(placing, j, node, 1)
        number = share.next


@step
def has_found(placing, j):
    """Whether nodes that may be taken have room for all copies of each kind of job j, if it were the only kind."""
    found = True
    for kind in kinds_of(placing, j):
        found &= placing.found[kind] >= placing.count[kind]
    return found


@step
def hold_busy_first(placing, heads, j, p, queue):
    """Hold nodes with room at the planned instant for job j, first those with jobs now; return whether it has all."""
    next_turn(placing)
    several = placing.first[placing.of[j] + 1] - placing.first[placing.of[j]] > 1
    left = placing.left if several else placing.then
    if several:
        copy(placing, p, placing.left, placing.then)
        copy_in_all(placing, p, placing.left_in_all, placing.then_in_all)
    heads.holds[queue, :] = False
    for r in range(heads.beside.shape[1]):
        for t in range(heads.beside.shape[2]):
            heads.beside[queue, r, t] = placing.idle_in_all[r, t]
    for kind in kinds_of(placing, j):
        need = placing.count[kind]
        weight = least_above(placing, kind, left, np.int64(-HEAVIER))
        while need > 0 and weight < NEVER:
            for idle in range(2):
                one_more = need == 0  # an idle node beside those with jobs
                for k in range(placing.rows.size):
                    row = placing.rows[k]
                    if need == 0 and not one_more:
                        break
                    heavier = placing.weight[row.begin] - weight
                    if not placing.may_use[kind, row.type] or heavier < 0 or heavier >= HEAVIER:
                        continue
                    if idle == 1 and not may_be_idle(placing, heads, k):
                        continue
                    for x in range(find_fitting(placing, kind, left, row)):
                        node = placing.fitting[x]
                        may = (
                            placing.may_take[node]
                            and weight_of(placing, kind, left, node) == weight
                            and (need > 0 or one_more)
                        )
                        if may and is_idle(placing, heads, node) == (idle == 1):
                            copies = copies_on(placing, kind, left, node, max(need, np.int64(1)))
                            if copies > 0:
                                hold(placing, heads, queue, node)
                                one_more = False
                            copies = min(copies, need)
                            if copies > 0 and several:
                                add_copies(placing, kind, left, placing.left_in_all, node, -copies)
                                placing.turn_of[node] = placing.turn[0]
                            need -= copies
            weight = least_above(placing, kind, left, weight) if need > 0 else NEVER
        if need > 0:
            next_turn(placing)
            return False
    return True


@step
def hold(placing, heads, queue, node):
    """Let the head job of a queue hold a node."""
    if not heads.holds[queue, node]:
        heads.holds[queue, node] = True
        for r in range(heads.beside.shape[1]):
            heads.beside[queue, r, placing.type[node]] -= placing.idle[r, node]


@step
def may_be_idle(placing, heads, k):
    """Whether, by the bounds `most`, a row may have a node on which no job runs now."""
    may, node = True, placing.rows[k].begin
    for r in range(heads.whole.shape[0]):
        may &= placing.most[r, k] >= heads.whole[r, node]
    return may


@step
def least_above(placing, kind, room, weight):
    """Return the least weight of a node for a kind that is above `weight`, or `NEVER`."""
    found = NEVER
    for row in placing.rows:
        last = row.end if placing.gpus[kind, 1] > 0 else row.begin + 1  # without GPUs all nodes of a row weigh the same
        for node in range(row.begin, last):
            each = weight_of(placing, kind, room, node)
            if weight < each < found:
                found = each
    return found


@step
def is_idle(placing, heads, node):
    """Whether no job runs on a node now."""
    idle = True
    for r in range(placing.idle.shape[0]):
        idle &= placing.idle[r, node] == heads.whole[r, node]
    return idle
