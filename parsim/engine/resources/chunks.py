"""Places chunks on the nodes of a machine with several types of nodes.

Each copy goes to the first node with room for it (rule "chunks on nodes"). `best_nodes` places copies on the rows that
they fill best, `own_nodes` puts preempted jobs back, and `placement` has the functions that loops call.

Where no chunks are placed, `Placing` is None, so that numba leaves all of this out. Names of rules refer to
docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.compile.compiled import routine, step

NO_SHARE = np.int32(-1)
STRETCH = 64  #: nodes of one type that are passed over together
HEAVIER = 256  #: units of weight of a node for 1 of `NodeType.weight`; each GPU takes one off
#: An amount of each node without jobs: a share takes 1 of it, the share of an exclusive job all.
UNSHARED = np.int64(2**31)

#: Copies of one kind that a job has on one node; `next` is its next share, or the next unused one.
SHARE = np.dtype([("node", np.int32), ("kind", np.int32), ("copies", np.int64), ("next", np.int32)], align=True)
#: Nodes of one type in a row.
ROW = np.dtype([("begin", np.int64), ("end", np.int64), ("type", np.int64)], align=True)
#: Adjacent nodes with room for a kind, of one weight, with the copies that fit and the size of all (rule "rows of
#: nodes").
ADJACENT = np.dtype([(name, np.int64) for name in ("begin", "end", "copies", "total", "weight")])


class Placing(NamedTuple):
    """V nodes of T types with R resources, in L rows, and K kinds of chunks of jobs' demands.

    The nodes and types of each partition stand together.
    Where chunks are exclusive or scattered, idle amounts have one row more, the last: what is left of `UNSHARED`.
    """

    of: NDArray[np.int32]  # (n,): demand of each job
    first: NDArray[np.int64]  # first kind of each demand
    count: NDArray[np.int64]  # (K,): copies of each kind
    amounts: NDArray[np.int64]  # (K, R): of each copy
    may_use: NDArray[np.bool_]  # (K, T): whether nodes of each type may have a copy
    exclusive: NDArray[np.bool_]  # (K, T): whether a copy makes its node exclusive; (0, T) if no chunk or type is
    scattered: NDArray[np.bool_]  # (K,): whether no other copy of the job may be on the node of a copy
    nodes_from: NDArray[np.int64]  # (P + 1,): first node of each partition
    rows: NDArray[np.void]  # (L,) ROW
    type: NDArray[np.int32]  # (V,): type of each node
    row: NDArray[np.int32]  # (V,): row of each node
    idle: NDArray[np.int64]  # (R, V): idle amounts of each node
    most: NDArray[np.int64]  # (R, L): upper bounds of what a node of each row has idle
    idle_in_all: NDArray[np.int64]  # (R, T): on all nodes of each type
    then: NDArray[np.int64]  # (R, V): idle when the head job is to start
    then_in_all: NDArray[np.int64]  # (R, T)
    left: NDArray[np.int64]  # (R, V): the rest of `then` beside the head job and the jobs started behind it
    left_in_all: NDArray[np.int64]  # (R, T)
    found: NDArray[np.int64]  # (K,): copies of the head job's kinds for which `then` has room, each by itself
    node: NDArray[np.int64]  # (n,): the first node of each job
    begin: NDArray[np.int64]  # (n,): where the kinds of each job begin in `on_types`
    on_types: NDArray[np.int64]  # (..., T): copies of each kind of each job on the nodes of each type
    exclusive_nodes: NDArray[np.int64]  # (n, T): number of exclusive nodes of each type that each job has
    turn: NDArray[np.int64]  # (1,): number of the present turn, in which one job is given nodes
    turn_of: NDArray[np.int64]  # (V,): turn in which each node was given last
    shares: NDArray[np.void]  # SHARE
    of_job: NDArray[np.int32]  # (n,): the last share of each running job, or `NO_SHARE`
    unused: NDArray[np.int64]  # (1,): the first share not in use
    changes: NDArray[np.int64]  # (1,): number of events that may have given nodes more room
    failed: NDArray[np.int64]  # (2, demands): `changes` when a job found no nodes, and none past the head job's start
    in_service: Any  # (V,): nodes that no window takes while the job at its turn runs; or None ("windows on nodes")
    returns: Any  # (n,): whether a job goes on only on its own nodes (rule "same nodes again"), or None
    named: NDArray[np.int64]  # (k, 3): job, node and cores of those that run when the simulation begins, ascending
    room: NDArray[np.int64]  # (V,): how many copies of a kind nodes have room for; (0,) without rule "rows of nodes"
    size: NDArray[np.int64]  # (V,): sizes by which nodes with room are compared; as long as `room`
    adjacent: NDArray[np.void]  # (V,) ADJACENT; as long as `room`
    fits: NDArray[np.bool_]  # (STRETCH,): whether each node of a row may have room for a copy of a kind, and
    fitting: NDArray[np.int64]  # (STRETCH + 1,): these nodes
    by_copies: NDArray[np.int64]  # (K,): most copies that count as the size of a node; 0 if its idle cores are the size
    may_take: NDArray[np.bool_]  # (V,): whether no plan keeps the job off a node; as long as `room`
    weight: NDArray[np.int64]  # (V,): `HEAVIER` times the weight of each node; as long as `room`
    gpus: NDArray[np.int64]  # (K, 2): row of GPUs in `idle`, and most GPUs that lower the weight of a node


@step
def kinds_of(placing, j):
    """Return the kinds of chunks of job j."""
    return range(placing.first[placing.of[j]], placing.first[placing.of[j] + 1])


@step
def next_turn(placing):
    """Begin a turn: nodes that are given from now on go to another job, or to the head job's plan."""
    placing.turn[0] += 1


@step
def is_closed(in_service, node):
    """Whether a window takes a node while the job at its turn runs."""
    if in_service is None:
        return False
    return not in_service[node]


@step
def copies_on(placing, kind, room, node, most):
    """Return how many copies of a kind a node has room for, at most `most`."""
    if is_closed(placing.in_service, node):
        return np.int64(0)
    amounts = placing.amounts[kind]
    if placing.exclusive.size > 0:  # rules "exclusive nodes" and "scattered chunks"
        unshared, given = room[amounts.size, node], placing.turn_of[node] == placing.turn[0]
        if placing.exclusive[kind, placing.type[node]]:
            if unshared != UNSHARED and not given:
                return np.int64(0)
        elif unshared <= 0:
            return np.int64(0)
        if placing.scattered[kind]:
            if given:
                return np.int64(0)
            most = min(most, np.int64(1))
    for r in range(amounts.size):
        if amounts[r] > 0 and room[r, node] < amounts[r]:
            return np.int64(0)
    if most > 1:
        for r in range(amounts.size):
            if amounts[r] == 1:
                most = min(most, room[r, node])
            elif amounts[r] > 0:
                most = min(most, room[r, node] // amounts[r])
    return most


@step
def add_copies(placing, kind, room, in_all, node, copies):
    """Add the amounts of a share of `copies`, negative to subtract, to the room of a node and the total of its type."""
    of_type = placing.type[node]
    if placing.exclusive.size > 0:
        share = UNSHARED if placing.exclusive[kind, of_type] else np.int64(1)
        room[placing.amounts.shape[1], node] += share if copies > 0 else -share
    for r in range(placing.amounts.shape[1]):
        amount = copies * placing.amounts[kind, r]
        room[r, node] += amount
        in_all[r, of_type] += amount


@step
def has_all(placing, j, in_all):
    """Whether the totals of the usable nodes suffice for each kind of job j, if it were the only kind."""
    for kind in kinds_of(placing, j):
        for r in range(in_all.shape[0]):
            missing = placing.count[kind] * placing.amounts[kind, r]
            for t in range(in_all.shape[1]):
                if placing.may_use[kind, t]:
                    missing -= in_all[r, t]
            if missing > 0:
                return False
    return True


@routine
def take_first_nodes(placing, j, past, anyway):
    """Place each copy of job j on the first node with room, all or none unless `anyway`; return whether it did."""
    next_turn(placing)
    for kind in kinds_of(placing, j):
        need = placing.count[kind]
        for k in range(placing.rows.size):
            row = placing.rows[k]
            if need == 0 or not placing.may_use[kind, row.type] or not may_have(placing, j, kind, k):
                continue
            fits = False
            for node in range(row.begin, row.end):
                copies = copies_on(placing, kind, placing.idle, node, need)
                if copies > 0:
                    fits = True
                    if past:
                        copies = copies_on(placing, kind, placing.left, node, copies)
                if copies > 0:
                    put(placing, j, kind, node, copies, past)
                    need -= copies
                    if need == 0:
                        break
            if not fits:
                note_most(placing, k)
        if need > 0 and not anyway:
            give_back(placing, j, past)
            forget(placing, j)
            return False
    return True


@step
def find_fitting(placing, kind, room, row):
    """Write the nodes of a row with enough amounts for a copy of a kind to `fitting`; return how many."""
    fits, m = placing.fits[: row.end - row.begin], np.int64(0)
    fits[:] = True
    for r in range(placing.amounts.shape[1]):
        amount, left = placing.amounts[kind, r], room[r, row.begin : row.end]
        if amount > 0:
            for k in range(fits.size):
                fits[k] &= left[k] >= amount
    for k in range(fits.size):
        placing.fitting[m] = row.begin + k
        m += fits[k]
    return m


@step
def may_have(placing, j, kind, k):
    """Whether, by the bounds `most`, a node of row k may have room for a copy of a kind of job j."""
    may, resources = True, placing.amounts.shape[1]
    for r in range(resources):
        may &= placing.most[r, k] >= placing.amounts[kind, r]
    if placing.exclusive.size > 0 and kind == placing.first[placing.of[j]]:  # other kinds may share nodes with this one
        may &= placing.most[resources, k] >= (
            UNSHARED if placing.exclusive[kind, placing.rows[k].type] else np.int64(1)
        )
    return may


@step
def note_most(placing, k):
    """Set the bounds `most` of row k to the most that its nodes have idle."""
    row = placing.rows[k]
    for r in range(placing.most.shape[0]):
        most = np.int64(0)
        for node in range(row.begin, row.end):
            most = max(most, placing.idle[r, node])
        placing.most[r, k] = most


@step
def put(placing, j, kind, node, copies, past):
    """Place copies of a kind of job j on a node; `past`: the job runs past the head job's start."""
    add_copies(placing, kind, placing.idle, placing.idle_in_all, node, -copies)
    if past:
        add_copies(placing, kind, placing.left, placing.left_in_all, node, -copies)
    placing.on_types[placing.begin[j] + kind - placing.first[placing.of[j]], placing.type[node]] += copies
    if placing.exclusive.size > 0:
        take_turn(placing, j, kind, node)
    number = np.int32(placing.unused[0])
    share = placing.shares[number]
    placing.unused[0] = share.next
    if placing.of_job[j] == NO_SHARE:
        placing.node[j] = node
    share.node = node
    share.kind = kind
    share.copies = copies
    share.next = placing.of_job[j]
    placing.of_job[j] = number


@step
def take_turn(placing, j, kind, node):
    """Record that job j was given a node in this turn, and whether it is exclusive."""
    if placing.exclusive[kind, placing.type[node]] and placing.turn_of[node] != placing.turn[0]:
        placing.exclusive_nodes[j, placing.type[node]] += 1
    placing.turn_of[node] = placing.turn[0]


@step
def give_back(placing, j, past):
    """Remove all copies of job j from their nodes."""
    number = placing.of_job[j]
    placing.of_job[j] = NO_SHARE
    while number != NO_SHARE:
        share = placing.shares[number]
        node = np.int64(share.node)
        add_copies(placing, share.kind, placing.idle, placing.idle_in_all, node, share.copies)
        if past:
            add_copies(placing, share.kind, placing.left, placing.left_in_all, node, share.copies)
        k = placing.row[node]
        for r in range(placing.most.shape[0]):
            placing.most[r, k] = max(placing.most[r, k], placing.idle[r, node])
        following = share.next
        share.next = np.int32(placing.unused[0])
        placing.unused[0] = number
        number = following


@step
def forget(placing, j):
    """Clear the copies and nodes of job j on each type."""
    for kind in kinds_of(placing, j):
        for t in range(placing.on_types.shape[1]):
            placing.on_types[placing.begin[j] + kind - placing.first[placing.of[j]], t] = 0
    if placing.exclusive.size > 0:
        for t in range(placing.on_types.shape[1]):
            placing.exclusive_nodes[j, t] = 0


@step
def leave_chunks(placing, j):
    """Free the nodes of job j, which has ended."""
    if placing is not None:
        placing.changes[0] += 1
        give_back(placing, j, False)


@step
def add_shares(placing, j, end, room, in_all, sign):
    """Add the shares of job j before share `end` to the room of their nodes, or subtract them."""
    number = placing.of_job[j]
    while number != end:
        share = placing.shares[number]
        node = np.int64(share.node)
        add_copies(placing, share.kind, room, in_all, node, sign * share.copies)
        number = share.next


@step
def copy(placing, p, to, room):
    """Copy the amounts `room` of the nodes of partition p to the array `to`."""
    first, last = np.uint64(placing.nodes_from[p]), np.uint64(placing.nodes_from[p + 1])
    for r in range(room.shape[0]):
        for node in range(first, last):  # without a sign, so that several are copied at once
            to[r, node] = room[r, node]


@step
def copy_in_all(placing, p, to, in_all):
    """Copy the totals `in_all` of the types of partition p to the array `to`."""
    types = in_all.shape[1] // (placing.nodes_from.size - 1)
    for r in range(in_all.shape[0]):
        for t in range(p * types, (p + 1) * types):
            to[r, t] = in_all[r, t]


@step
def count_copies(placing, j, node, sign):
    """Add the copies of job j's kinds that fit on a node in `then` to `found`, or subtract them."""
    for kind in kinds_of(placing, j):
        if placing.may_use[kind, placing.type[node]]:
            placing.found[kind] += sign * copies_on(placing, kind, placing.then, node, placing.count[kind])
