"""Places jobs on nodes as Slurm does: on the row of nodes with room that a job fills best (rule "best row").

Names of rules refer to docs/reference/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.engine.compile.compiled import routine, step
from parsim.engine.resources.chunks import (
    UNSHARED,
    copies_on,
    find_fitting,
    forget,
    give_back,
    kinds_of,
    may_have,
    next_turn,
    note_most,
    put,
)


@routine
def take_best_nodes(placing, j, anyway):
    """Place job j on the nodes that it fills best of `may_take` (rule "best row"), all or none unless `anyway`."""
    next_turn(placing)
    for kind in kinds_of(placing, j):
        need = placing.count[kind]
        adjacent = placing.adjacent[: find_adjacent(placing, j, kind)]
        while need > 0:
            best = best_adjacent(adjacent, need)
            if best < 0:
                break
            first, last = adjacent[best].begin, adjacent[best].end
            adjacent[best].copies = 0
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
def find_adjacent(placing, j, kind):
    """Write the rows of nodes with room for a kind of job j (rule "rows of nodes") to `adjacent`; return how many."""
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
                adjacent = placing.adjacent[count - 1]
                adjacent.begin, adjacent.copies, adjacent.total, adjacent.weight = node, 0, 0, weight
            adjacent = placing.adjacent[count - 1]
            end, before = node + 1, weight
            adjacent.end = end
            adjacent.copies += copies
            adjacent.total += placing.size[node]
        if not fits:
            note_most(placing, k)
    return count


@step
def weight_of(placing, kind, room, node):
    """Return the weight of a node for a kind, with these amounts left as `room`."""
    weight, gpus, most = placing.weight[node], placing.gpus[kind, 0], placing.gpus[kind, 1]
    if most > 0:
        weight -= min(room[gpus, node], most)
    return weight


@step
def best_adjacent(adjacent, need):
    """Return the row in `adjacent` that `need` copies fill best; -1 if none is left."""
    best, best_has_all = np.int64(-1), False
    for k in range(adjacent.size):
        these = adjacent[k]
        if these.copies == 0:
            continue
        has_all = these.copies >= need
        if best < 0 or these.weight < adjacent[best].weight:
            better = True
        elif these.weight > adjacent[best].weight:
            better = False
        elif has_all:
            better = not best_has_all or these.total < adjacent[best].total
        else:
            better = these.total > adjacent[best].total
        if better:
            best, best_has_all = k, has_all
    return best


@step
def best_node(room, size, first, last, need):
    """Return the smallest of the nodes ``first:last`` that has room for `need` copies, or -1."""
    found = np.int64(-1)
    for node in range(first, last):
        if room[node] >= need and (found < 0 or size[node] < size[found]):
            found = node
    return found
