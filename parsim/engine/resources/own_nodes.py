"""Jobs that are preempted on nodes, and go on where they were (rule "same nodes again").

Numbers refer to docs/reference/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.engine.compile.compiled import seldom, step
from parsim.engine.resources.chunks import NO_SHARE, UNSHARED, add_copies, add_shares, forget, give_back, next_turn


@step
def has_share(placing, share, room):
    """Whether there is room for a share on its node, beside those of its job that were given theirs in this turn."""
    kind, node = np.int64(share.kind), np.int64(share.node)
    amounts = placing.amounts[kind]
    if placing.alone.size > 0:
        unshared = room[amounts.size, node]
        if placing.alone[kind, placing.type[node]]:
            if unshared != UNSHARED and placing.turn_of[node] != placing.turn[0]:
                return False
        elif unshared <= 0:
            return False
    fits = True
    for r in range(amounts.size):
        fits &= amounts[r] == 0 or room[r, node] >= share.copies * amounts[r]
    return fits


@step
def take_own_nodes(placing, j, room, in_all):
    """Take the shares of job j, which was preempted, from the room of their nodes, if there is enough for all."""
    next_turn(placing)
    number = placing.of_job[j]
    while number != NO_SHARE:
        share = placing.shares[number]
        node = np.int64(share.node)
        if not has_share(placing, share, room):
            add_shares(placing, j, number, room, in_all, 1)
            return False
        add_copies(placing, share.kind, room, in_all, node, -share.copies)
        placing.turn_of[node] = placing.turn[0]
        number = share.next
    return True


@seldom
def go_back(placing, j, past):
    """Let job j, which was preempted, have its own nodes again, if it may start (rule "same nodes again")."""
    if not take_own_nodes(placing, j, placing.idle, placing.idle_in_all):
        return False
    if past and not take_own_nodes(placing, j, placing.left, placing.left_in_all):
        add_shares(placing, j, NO_SHARE, placing.idle, placing.idle_in_all, 1)
        return False
    return True


@step
def lend_chunks(placing, j, past, sign):
    """Add what job j has to what is idle, or undo that; with `past` it would run past the head job's start."""
    if placing is None:
        return
    lend_shares(placing, j, past, sign)


@seldom
def lend_shares(placing, j, past, sign):
    """Add what job j has to the room of its nodes, or take it from there."""
    add_shares(placing, j, NO_SHARE, placing.idle, placing.idle_in_all, sign)
    if past:
        add_shares(placing, j, NO_SHARE, placing.left, placing.left_in_all, sign)
    number = placing.of_job[j]
    while number != NO_SHARE and sign > 0:
        node = placing.shares[number].node
        k = placing.row[node]
        for r in range(placing.most.shape[0]):
            placing.most[r, k] = max(placing.most[r, k], placing.idle[r, node])
        number = placing.shares[number].next


@step
def stop_on_nodes(placing, j, past, returns):
    """Running job j is preempted; if it `returns`, it will have the same nodes again."""
    if placing is None:
        return
    placing.changes[0] += 1
    placing.returns[j] = returns
    if returns:
        lend_shares(placing, j, past, 1)
    else:
        give_back(placing, j, past)
        forget(placing, j)
