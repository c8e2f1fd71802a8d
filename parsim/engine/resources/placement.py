"""Starts, resumes and plans jobs whose chunks are placed on nodes; the functions that loops call.

Names of rules refer to docs/reference/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.engine.compile.compiled import routine, step
from parsim.engine.resources.best_nodes import take_best_nodes
from parsim.engine.resources.chunks import (
    NO_SHARE,
    add_copies,
    add_shares,
    copies_on,
    copy,
    copy_in_all,
    count_copies,
    forget,
    give_back,
    has_all,
    kinds_of,
    next_turn,
    put,
    take_first_nodes,
)
from parsim.engine.resources.node_types import goes_back
from parsim.engine.resources.own_nodes import go_back, lend_shares, take_own_nodes
from parsim.engine.resources.running import available


@step
def place_chunks(placing, j, p, past):
    """Place job j on partition p, with `past` beside the head job; return whether it fits (rule "start on nodes")."""
    if placing is None:
        return True
    if goes_back(placing.returns, j):
        return go_back(placing, j, past)
    wanted, changes = placing.of[j], placing.changes[0]
    if placing.failed[0, wanted] == changes or (past and placing.failed[1, wanted] == changes):
        return False
    if not has_all(placing, j, placing.idle_in_all) or (past and not has_all(placing, j, placing.left_in_all)):
        return False
    if take_first_nodes(placing, j, past, False):
        return True
    if placing.first[wanted + 1] - placing.first[wanted] == 1:  # of more kinds see rule "nodes and totals"
        placing.failed[np.int64(past), wanted] = changes
    return False


@step
def can_be_placed(placing, j, p, past):
    """Whether job j can be placed on partition p now (rule "start on nodes")."""
    if placing is None:
        return True
    return has_nodes(placing, j, p, past)


@routine
def has_nodes(placing, j, p, past):
    """Whether there are nodes for job j: place it, and undo that."""
    if goes_back(placing.returns, j):
        found = go_back(placing, j, past)
        if found:
            lend_shares(placing, j, past, 1)
        return found
    if not has_all(placing, j, placing.idle_in_all) or (past and not has_all(placing, j, placing.left_in_all)):
        return False
    found = take_first_nodes(placing, j, past, False)
    if found:
        give_back(placing, j, past)
        forget(placing, j)
    return found


@step
def resume_chunks(placing, j, p):
    """Place job j, which runs when the simulation begins (rules "nodes of a state" and "named nodes")."""
    if placing is None:
        return
    first = np.searchsorted(placing.named[:, 0], j)
    if first < len(placing.named) and placing.named[first, 0] == j:
        take_named_nodes(placing, j, first)
    elif placing.room.size > 0:
        placing.may_take[:] = True
        take_best_nodes(placing, j, True)
    else:
        take_first_nodes(placing, j, False, True)


@routine
def take_named_nodes(placing, j, first):
    """Place copies of job j on the nodes in its rows of `named`, from row `first` on, as far as there is room."""
    next_turn(placing)
    for kind in kinds_of(placing, j):
        need, cores = placing.count[kind], placing.amounts[kind, 0]
        for i in range(first, len(placing.named)):
            named = placing.named[i]
            if named[0] != j or need == 0:
                break
            if placing.may_use[kind, placing.type[named[1]]]:
                copies = copies_on(placing, kind, placing.idle, named[1], need)
                if cores > 0:
                    copies = min(copies, named[2] // cores)
                if copies > 0:
                    put(placing, j, kind, named[1], copies, False)
                    named[2] -= copies * cores
                    need -= copies


@routine
def plan_chunks(s, placing, p, now):
    """Set the shadow time and nodes of list p's head job, and the room `left` beside it (rule "planned nodes")."""
    if placing is None:
        return
    partition, running, bits = s.partitions[p], s.running, s.settings.bits
    low = (np.int64(1) << bits) - 1
    j = partition.head_job
    i, last = partition.first_running, partition.first_running + partition.running
    placing.changes[0] += 1
    instant = max(now, partition.shadow)  # before that there are too few cores
    copy(placing, p, placing.then, placing.idle)
    copy_in_all(placing, p, placing.then_in_all, placing.idle_in_all)
    if goes_back(placing.returns, j):
        plan_own_nodes(s, placing, p, instant)
        return
    while i < last and (running.keys[i] >> bits <= instant or not has_all(placing, j, placing.then_in_all)):
        instant = max(instant, running.keys[i] >> bits)
        add_shares(placing, running.keys[i] & low, NO_SHARE, placing.then, placing.then_in_all, 1)
        i += 1
    next_turn(placing)
    for kind in kinds_of(placing, j):
        placing.found[kind] = room_for(placing, kind)
    while not hold_chunks(placing, j, p) and i < last:
        instant = running.keys[i] >> bits
        while i < last and running.keys[i] >> bits == instant:
            find_more(placing, j, running.keys[i] & low)
            i += 1
    partition.shadow = instant
    idle = available(running, partition.first_running, partition.running, partition.free, instant, bits)
    partition.extra = idle - s.jobs[j].cores


@routine
def plan_own_nodes(s, placing, p, instant):
    """Find the shadow time, from `instant` on, of a head job that was preempted, on its nodes ("same nodes again")."""
    partition, running, bits = s.partitions[p], s.running, s.settings.bits
    low = (np.int64(1) << bits) - 1
    j = partition.head_job
    i, last = partition.first_running, partition.first_running + partition.running
    while i < last and running.keys[i] >> bits <= instant:
        add_shares(placing, running.keys[i] & low, NO_SHARE, placing.then, placing.then_in_all, 1)
        i += 1
    while not take_own_nodes(placing, j, placing.then, placing.then_in_all) and i < last:
        instant = running.keys[i] >> bits
        while i < last and running.keys[i] >> bits == instant:
            add_shares(placing, running.keys[i] & low, NO_SHARE, placing.then, placing.then_in_all, 1)
            i += 1
    copy(placing, p, placing.left, placing.then)
    copy_in_all(placing, p, placing.left_in_all, placing.then_in_all)
    partition.shadow = instant
    idle = available(running, partition.first_running, partition.running, partition.free, instant, bits)
    partition.extra = idle - s.jobs[j].cores


@step
def room_for(placing, kind):
    """Return how many copies of a kind fit on all nodes in `then`."""
    found = np.int64(0)
    for k in range(placing.rows.size):
        row = placing.rows[k]
        if placing.may_use[kind, row.type]:
            for node in range(row.begin, row.end):
                found += copies_on(placing, kind, placing.then, node, placing.count[kind])
    return found


@step
def find_more(placing, j, other):
    """Add the amounts of another job to `then`, and the copies of job j that now fit to `found`."""
    number = placing.of_job[other]
    while number != NO_SHARE:
        share = placing.shares[number]
        node = np.int64(share.node)
        count_copies(placing, j, node, -1)
        add_copies(placing, share.kind, placing.then, placing.then_in_all, node, share.copies)
        count_copies(placing, j, node, 1)
        number = share.next


@routine
def hold_chunks(placing, j, p):
    """Place the head job of list p in the room `then`, and set `left` to the rest; return whether it has nodes."""
    for kind in kinds_of(placing, j):
        if placing.found[kind] < placing.count[kind]:
            return False
    next_turn(placing)
    copy(placing, p, placing.left, placing.then)
    copy_in_all(placing, p, placing.left_in_all, placing.then_in_all)
    for kind in kinds_of(placing, j):
        need = placing.count[kind]
        for k in range(placing.rows.size):
            row = placing.rows[k]
            if need > 0 and placing.may_use[kind, row.type]:
                for node in range(row.begin, row.end):
                    copies = copies_on(placing, kind, placing.left, node, need)
                    if copies > 0:
                        add_copies(placing, kind, placing.left, placing.left_in_all, node, -copies)
                        placing.turn_of[node] = placing.turn[0]
                        need -= copies
                        if need == 0:
                            break
        if need > 0:
            next_turn(placing)
            return False
    return True
