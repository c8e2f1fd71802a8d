"""Chunks placed on the nodes of a machine that has several types of them.

Each copy goes to the first node that has room for it (rule 62), or to the row of nodes that it fills best (rule 85).

Where no chunks are placed the place of `Placing` is None, for which numba leaves all of this out. Numbers ("rule 62")
refer to docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.kernels.compiled import routine, seldom, step
from parsim.kernels.node_types import goes_back
from parsim.kernels.running import available

NO_SHARE = np.int32(-1)
STRETCH = 64  #: nodes of one type that are passed over together
HEAVIER = 256  #: GPUs of a node that a weight outweighs, and one more
UNSHARED = np.int64(
    2**31
)  #: of a node without jobs: each share takes 1 of it, one of a job that has the node alone all

#: Copies of one kind that a job has on one node; `next` is its next share, or the next of those not in use.
SHARE = np.dtype([("node", np.int32), ("kind", np.int32), ("copies", np.int64), ("next", np.int32)], align=True)
#: Nodes of one type in a row.
ROW = np.dtype([("begin", np.int64), ("end", np.int64), ("type", np.int64)], align=True)
#: Nodes with room for a kind beside each other, of one weight, with the copies and the size of all (rule 85).
BESIDE = np.dtype([(name, np.int64) for name in ("begin", "end", "copies", "size", "weight")])


class Placing(NamedTuple):
    """V nodes of T types with R resources, in L rows, and K kinds of chunks that jobs ask for.

    The nodes and types of each partition stand together, those of the pool, or of a shared machine, last. What a job
    asks for has two numbers: an even one for the nodes of its queue's partition, the next for those of the pool.
    Where rules 69 and 70 do anything what is idle has one row more, the last: what is left of `UNSHARED`.
    """

    of: NDArray[np.int32]  # (n,): what each job asks for, of the partition of whose list it was its turn last
    first: NDArray[np.int64]  # where the kinds of each thing asked for begin
    count: NDArray[np.int64]  # (K,): copies of each kind
    amounts: NDArray[np.int64]  # (K, R): of each copy
    may_use: NDArray[np.bool_]  # (K, T): whether nodes of each type may have a copy
    alone: NDArray[np.bool_]  # (K, T): whether no other job may be beside a copy; (0, T) where nodes are shared by all
    scattered: NDArray[np.bool_]  # (K,): whether no other copy of the job may be beside a copy
    nodes_from: NDArray[np.int64]  # (P + 1,): where the nodes of each partition begin
    rows: NDArray[np.void]  # (L,) ROW
    type: NDArray[np.int32]  # (V,): of each node
    row: NDArray[np.int32]  # (V,): that each node is in
    idle: NDArray[np.int64]  # (R, V)
    most: NDArray[np.int64]  # (R, L): no node of a row has more idle
    idle_in_all: NDArray[np.int64]  # (R, T): on all nodes of each type
    then: NDArray[np.int64]  # (R, V): idle when the head job is to start
    then_in_all: NDArray[np.int64]  # (R, T)
    left: NDArray[np.int64]  # (R, V): of that, what the head job and those started behind it leave
    left_in_all: NDArray[np.int64]  # (R, T)
    found: NDArray[np.int64]  # (K,): copies of each kind of the head job that nodes have room for then, each by itself
    node: NDArray[np.int64]  # (n,): the first node of each job
    begin: NDArray[np.int64]  # (n,): where the kinds of each job begin in `on_types`
    on_types: NDArray[np.int64]  # (..., T): copies of each kind of each job on the nodes of each type
    nodes_alone: NDArray[np.int64]  # (n, T): nodes of each type that each job has alone
    turn: NDArray[np.int64]  # (1,): how often copies were given nodes
    turn_of: NDArray[np.int64]  # (V,): at which of these turns a node was given last
    shares: NDArray[np.void]  # SHARE
    of_job: NDArray[np.int32]  # (n,): the last share of each running job, or `NO_SHARE`
    unused: NDArray[np.int64]  # (1,): the first share not in use
    changes: NDArray[np.int64]  # (1,): how often nodes may have got more room
    failed: NDArray[np.int64]  # (2, things asked for): after which of these each had no room, and none past the plan
    in_service: Any  # (V,): nodes that no window takes while the job looked at runs; None without windows (rule 83)
    returns: Any  # (n,): whether a job goes on only on its own nodes (rule 92); None where none is preempted
    named: NDArray[np.int64]  # (k, 3): job, node and cores of those that run when the simulation begins, ascending
    room: NDArray[np.int64]  # (V,): for how many copies of a kind nodes have room (rule 85); (0,) where 62 holds
    size: NDArray[np.int64]  # (V,): by which nodes with room are compared; as long as `room`
    beside: NDArray[np.void]  # (V,) BESIDE; as long as `room`
    fits: NDArray[np.bool_]  # (STRETCH,): whether each node of a row may have room for a copy of a kind, and
    fitting: NDArray[np.int64]  # (STRETCH + 1,): these nodes
    by_copies: NDArray[np.int64]  # (K,): up to how many the copies there is room for count; 0 where idle cores do
    may_take: NDArray[np.bool_]  # (V,): whether no plan keeps the job off a node (rule 86); as long as `room`
    weight: NDArray[np.int64]  # (V,): `HEAVIER` times that of each node; as long as `room`
    gpus: NDArray[np.int64]  # (K, 2): where GPUs are in what is idle, and up to how many make a node weigh less


@step
def kinds_of(placing, j):
    """Return the kinds of chunks that job j asks for."""
    return range(placing.first[placing.of[j]], placing.first[placing.of[j] + 1])


@step
def turn_to(placing, j, p):
    """Let job j ask for nodes of partition p (rule 76)."""
    in_pool = p == placing.nodes_from.size - 2
    placing.of[j] = placing.of[j] // np.int32(2) * np.int32(2) + np.int32(in_pool)


@step
def next_turn(placing):
    """Let the nodes that are given from now on be those of another job, or of the head job."""
    placing.turn[0] += 1


@step
def is_closed(in_service, node):
    """Whether a window takes a node while the job looked at runs."""
    if in_service is None:
        return False
    return not in_service[node]


@step
def copies_on(placing, kind, room, node, most):
    """Return how many copies a node has room for, no more than `most`."""
    if is_closed(placing.in_service, node):
        return np.int64(0)
    amounts = placing.amounts[kind]
    if placing.alone.size > 0:  # rules 69 and 70
        unshared, given = room[amounts.size, node], placing.turn_of[node] == placing.turn[0]
        if placing.alone[kind, placing.type[node]]:
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
    """Add what copies take to the room of a node, and of all nodes of its type: one share, with its sign."""
    of_type = placing.type[node]
    if placing.alone.size > 0:
        share = UNSHARED if placing.alone[kind, of_type] else np.int64(1)
        room[placing.amounts.shape[1], node] += share if copies > 0 else -share
    for r in range(placing.amounts.shape[1]):
        amount = copies * placing.amounts[kind, r]
        room[r, node] += amount
        in_all[r, of_type] += amount


@step
def has_all(placing, j, in_all):
    """Whether the nodes that may have copies together have enough of everything for each kind that job j asks for."""
    for kind in kinds_of(placing, j):
        for r in range(in_all.shape[0]):
            missing = placing.count[kind] * placing.amounts[kind, r]
            for t in range(in_all.shape[1]):
                if placing.may_use[kind, t]:
                    missing -= in_all[r, t]
            if missing > 0:
                return False
    return True


@step
def place_chunks(placing, j, p, past):
    """Place job j on partition p, if it may start; with `past` it runs past the head job's start (rule 64)."""
    if placing is None:
        return True
    if goes_back(placing.returns, j):
        return go_back(placing, j, past)
    turn_to(placing, j, p)
    wanted, changes = placing.of[j], placing.changes[0]
    if placing.failed[0, wanted] == changes or (past and placing.failed[1, wanted] == changes):
        return False
    if not has_all(placing, j, placing.idle_in_all) or (past and not has_all(placing, j, placing.left_in_all)):
        return False
    if take_first_nodes(placing, j, past, False):
        return True
    if placing.first[wanted + 1] - placing.first[wanted] == 1:  # rule 67: more kinds may have room where less is idle
        placing.failed[np.int64(past), wanted] = changes
    return False


@routine
def take_first_nodes(placing, j, past, anyway):
    """Give each copy that job j asks for the first node with room for it, and unless `anyway` none if one has none."""
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


@routine
def take_best_nodes(placing, j, anyway):
    """Give job j the nodes that it fills best of those that it may take (rule 85); unless `anyway` all or none."""
    next_turn(placing)
    for kind in kinds_of(placing, j):
        need = placing.count[kind]
        beside = placing.beside[: find_beside(placing, j, kind)]
        while need > 0:
            best = best_beside(beside, need)
            if best < 0:
                break
            first, last = beside[best].begin, beside[best].end
            beside[best].copies = 0
            node = best_node(placing.room, placing.size, first, last, need)
            if node >= 0:
                first, last = node, node + 1
            for k in range(first, last):
                copies = min(placing.room[k], need)
                if copies > 0:
                    put(placing, j, kind, k, copies, False)
                    need -= copies
        if need > 0 and not anyway:
            give_back(placing, j, False)
            forget(placing, j)
            return False
    return True


@step
def find_beside(placing, j, kind):
    """Find the nodes with room for a kind that job j may take, beside each other where they weigh as much; how many."""
    most, count, end, before = placing.by_copies[kind], np.int64(0), np.int64(-1), np.int64(0)
    for k in range(placing.rows.size):
        row = placing.rows[k]
        if not placing.may_use[kind, row.type] or not may_have(placing, j, kind, k):
            continue
        fits = False
        for x in range(find_fitting(placing, kind, placing.idle, row)):
            node = placing.fitting[x]
            copies = copies_on(placing, kind, placing.idle, node, UNSHARED)
            fits |= copies > 0
            if copies == 0 or not placing.may_take[node]:
                continue
            placing.room[node] = copies
            placing.size[node] = min(copies, most) if most > 0 else placing.idle[0, node]
            weight = weight_of(placing, kind, placing.idle, node)
            if node != end or weight != before:
                count += 1
                beside = placing.beside[count - 1]
                beside.begin, beside.copies, beside.size, beside.weight = node, 0, 0, weight
            beside = placing.beside[count - 1]
            end, before = node + 1, weight
            beside.end = end
            beside.copies += copies
            beside.size += placing.size[node]
        if not fits:
            note_most(placing, k)
    return count


@step
def weight_of(placing, kind, room, node):
    """Return what a node of which so much is left weighs for a kind."""
    weight, gpus, most = placing.weight[node], placing.gpus[kind, 0], placing.gpus[kind, 1]
    if most > 0:
        weight -= min(room[gpus, node], most)
    return weight


@step
def find_fitting(placing, kind, room, row):
    """Find the nodes of a row on which so much is left that a copy of a kind may have room; return how many."""
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
def best_beside(beside, need):
    """Return which of the nodes with room beside each other so many copies fill best; -1 if none are left."""
    best, best_has_all = np.int64(-1), False
    for k in range(beside.size):
        these = beside[k]
        if these.copies == 0:
            continue
        has_all = these.copies >= need
        if best < 0 or these.weight < beside[best].weight:
            better = True
        elif these.weight > beside[best].weight:
            better = False
        elif has_all:
            better = not best_has_all or these.size < beside[best].size
        else:
            better = these.size > beside[best].size
        if better:
            best, best_has_all = k, has_all
    return best


@step
def best_node(room, size, first, last, need):
    """Return the smallest node in a row of those with room for all copies, or -1."""
    found = np.int64(-1)
    for node in range(first, last):
        if room[node] >= need and (found < 0 or size[node] < size[found]):
            found = node
    return found


@step
def may_have(placing, j, kind, k):
    """Whether a node of a row may have room for a copy of job j, by what is known."""
    may, resources = True, placing.amounts.shape[1]
    for r in range(resources):
        may &= placing.most[r, k] >= placing.amounts[kind, r]
    if placing.alone.size > 0 and kind == placing.first[placing.of[j]]:  # others may be beside those of the job
        may &= placing.most[resources, k] >= (UNSHARED if placing.alone[kind, placing.rows[k].type] else np.int64(1))
    return may


@step
def note_most(placing, k):
    """Note what the nodes of a row have idle at most."""
    row = placing.rows[k]
    for r in range(placing.most.shape[0]):
        most = np.int64(0)
        for node in range(row.begin, row.end):
            most = max(most, placing.idle[r, node])
        placing.most[r, k] = most


@step
def put(placing, j, kind, node, copies, past):
    """Let job j have copies on a node."""
    add_copies(placing, kind, placing.idle, placing.idle_in_all, node, -copies)
    if past:
        add_copies(placing, kind, placing.left, placing.left_in_all, node, -copies)
    placing.on_types[placing.begin[j] + kind - placing.first[placing.of[j]], placing.type[node]] += copies
    if placing.alone.size > 0:
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
    """Note that job j was given a node, and whether it has it alone."""
    if placing.alone[kind, placing.type[node]] and placing.turn_of[node] != placing.turn[0]:
        placing.nodes_alone[j, placing.type[node]] += 1
    placing.turn_of[node] = placing.turn[0]


@step
def give_back(placing, j, past):
    """Take all copies of job j from their nodes."""
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
    """Job j has been on no nodes."""
    for kind in kinds_of(placing, j):
        for t in range(placing.on_types.shape[1]):
            placing.on_types[placing.begin[j] + kind - placing.first[placing.of[j]], t] = 0
    if placing.alone.size > 0:
        for t in range(placing.on_types.shape[1]):
            placing.nodes_alone[j, t] = 0


@step
def leave_chunks(placing, j):
    """Job j has ended."""
    if placing is not None:
        placing.changes[0] += 1
        give_back(placing, j, False)


@step
def add_shares(placing, j, end, room, in_all, sign):
    """Add the shares of job j up to `end`, behind them, to the room of their nodes, or take them from it."""
    number = placing.of_job[j]
    while number != end:
        share = placing.shares[number]
        node = np.int64(share.node)
        add_copies(placing, share.kind, room, in_all, node, sign * share.copies)
        number = share.next


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
    """Let job j, which was preempted, have its own nodes again, if it may start (rule 92)."""
    if not take_own_nodes(placing, j, placing.idle, placing.idle_in_all):
        return False
    if past and not take_own_nodes(placing, j, placing.left, placing.left_in_all):
        add_shares(placing, j, NO_SHARE, placing.idle, placing.idle_in_all, 1)
        return False
    return True


@step
def can_be_placed(placing, j, p, past):
    """Whether job j can be placed on partition p now (rule 64)."""
    if placing is None:
        return True
    return has_nodes(placing, j, p, past)


@seldom
def has_nodes(placing, j, p, past):
    """Whether there are nodes for job j."""
    if goes_back(placing.returns, j):
        found = go_back(placing, j, past)
        if found:
            lend_shares(placing, j, past, 1)
        return found
    turn_to(placing, j, p)
    if not has_all(placing, j, placing.idle_in_all) or (past and not has_all(placing, j, placing.left_in_all)):
        return False
    found = take_first_nodes(placing, j, past, False)
    if found:
        give_back(placing, j, past)
        forget(placing, j)
    return found


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


@step
def resume_chunks(placing, j, p):
    """Let job j have what it runs on when the simulation begins (rules 66 and 72)."""
    if placing is None:
        return
    turn_to(placing, j, p)
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
    """Let job j have its copies on the nodes that are named for it from `first` on, as far as there is room."""
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
    """Find when and where the head job of list p can be placed, and what it leaves to others then (rule 65)."""
    if placing is None:
        return
    partition, running, bits = s.partitions[p], s.running, s.settings.bits
    low = (np.int64(1) << bits) - 1
    j = partition.head_job
    i, last = partition.first_running, partition.first_running + partition.running
    turn_to(placing, j, p)
    placing.changes[0] += 1
    instant = max(now, partition.shadow)  # before that there are too few cores
    copy(placing, p, placing.then, placing.idle)
    copy_in_all(placing, p, placing.then_in_all, placing.idle_in_all)
    if goes_back(placing.returns, j):
        plan_own_nodes(s, placing, p, instant)
        return
    while i < last and (running.keys[i] >> bits <= instant or not has_all(placing, j, placing.then_in_all)):
        instant = max(instant, running.keys[i] >> bits)
        end_by_then(placing, running.keys[i] & low)
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


@seldom
def plan_own_nodes(s, placing, p, instant):
    """Find when the head job of list p, which was preempted, has its own nodes, from an instant on (rule 92)."""
    partition, running, bits = s.partitions[p], s.running, s.settings.bits
    low = (np.int64(1) << bits) - 1
    j = partition.head_job
    i, last = partition.first_running, partition.first_running + partition.running
    while i < last and running.keys[i] >> bits <= instant:
        end_by_then(placing, running.keys[i] & low)
        i += 1
    while not take_own_nodes(placing, j, placing.then, placing.then_in_all) and i < last:
        instant = running.keys[i] >> bits
        while i < last and running.keys[i] >> bits == instant:
            end_by_then(placing, running.keys[i] & low)
            i += 1
    copy(placing, p, placing.left, placing.then)
    copy_in_all(placing, p, placing.left_in_all, placing.then_in_all)
    partition.shadow = instant
    idle = available(running, partition.first_running, partition.running, partition.free, instant, bits)
    partition.extra = idle - s.jobs[j].cores


@step
def copy(placing, p, to, room):
    """Overwrite one room of the nodes of partition p by another."""
    first, last = np.uint64(placing.nodes_from[p]), np.uint64(placing.nodes_from[p + 1])
    for r in range(room.shape[0]):
        for node in range(first, last):  # without a sign, so that several are copied at once
            to[r, node] = room[r, node]


@step
def copy_in_all(placing, p, to, in_all):
    """Overwrite the room of all nodes of each type of partition p by another."""
    types = in_all.shape[1] // (placing.nodes_from.size - 1)
    for r in range(in_all.shape[0]):
        for t in range(p * types, (p + 1) * types):
            to[r, t] = in_all[r, t]


@step
def end_by_then(placing, j):
    """Add what job j has to what is idle then."""
    number = placing.of_job[j]
    while number != NO_SHARE:
        share = placing.shares[number]
        add_copies(placing, share.kind, placing.then, placing.then_in_all, np.int64(share.node), share.copies)
        number = share.next


@step
def room_for(placing, kind):
    """Return for how many copies of a kind nodes have room then."""
    found = np.int64(0)
    for k in range(placing.rows.size):
        row = placing.rows[k]
        if placing.may_use[kind, row.type]:
            for node in range(row.begin, row.end):
                found += copies_on(placing, kind, placing.then, node, placing.count[kind])
    return found


@step
def find_more(placing, j, other):
    """Add what another job has to what is idle then, and to the copies found those of job j that it makes room for."""
    number = placing.of_job[other]
    while number != NO_SHARE:
        share = placing.shares[number]
        node = np.int64(share.node)
        count_copies(placing, j, node, -1)
        add_copies(placing, share.kind, placing.then, placing.then_in_all, node, share.copies)
        count_copies(placing, j, node, 1)
        number = share.next


@step
def count_copies(placing, j, node, sign):
    """Add the copies that job j asks for, and that a node has room for then, to those found."""
    for kind in kinds_of(placing, j):
        if placing.may_use[kind, placing.type[node]]:
            placing.found[kind] += sign * copies_on(placing, kind, placing.then, node, placing.count[kind])


@routine
def hold_chunks(placing, j, p):
    """Let the head job of list p have its nodes of what is idle then, if it can be placed; what it leaves is left."""
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
