"""Frees nodes of preempted jobs, and puts jobs back that go on where they were (rule "same nodes again").

Names of rules refer to docs/reference/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.engine.compile.compiled import routine, step
from parsim.engine.resources.chunks import NO_SHARE, UNSHARED, add_copies, add_shares, forget, give_back, next_turn


@step
def has_share(placing, share, room):
    """Whether a share has room on its node, beside shares of its job that were put there in this turn."""
    kind, node = np.int64(share.kind), np.int64(share.node)
    amounts = placing.amounts[kind]
    if placing.exclusive.size > 0:
        unshared = room[amounts.size, node]
        if placing.exclusive[kind, placing.type[node]]:
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
    """Subtract all shares of preempted job j from `room` and the totals `in_all`, or none; return whether they fit."""
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


@routine
def go_back(placing, j, past):
    """Put preempted job j back on its nodes, if it may start; return whether it may (rule "same nodes again")."""
    if not take_own_nodes(placing, j, placing.idle, placing.idle_in_all):
        return False
    if past and not take_own_nodes(placing, j, placing.left, placing.left_in_all):
        add_shares(placing, j, NO_SHARE, placing.idle, placing.idle_in_all, 1)
        return False
    return True


@step
def lend_chunks(placing, j, past, sign):
    """Add the chunks of job j to idle amounts, or undo that; `past`: it runs past the head job's start."""
    if placing is None:
        return
    lend_shares(placing, j, past, sign)


@routine
def lend_shares(placing, j, past, sign):
    """Do as `lend_chunks`, where chunks are placed."""
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
    """Free the nodes of running job j, which is preempted; if it `returns`, it keeps its shares for its next run."""
    if placing is None:
        return
    placing.changes[0] += 1
    placing.returns[j] = returns
    if returns:
        lend_shares(placing, j, past, 1)
    else:
        give_back(placing, j, past)
        forget(placing, j)
