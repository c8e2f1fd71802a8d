"""Head jobs of queues, and nodes that stay idle for them, where nodes are of several types.

Numbers ("rule 80") refer to docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.kernels.compiled import step
from parsim.kernels.node_types import hold_nodes, places_of
from parsim.kernels.state import NEVER
from parsim.kernels.typed_profile import add_between, fits, idle_over_time
from parsim.kernels.windows import UNKNOWN_END, is_known


class TypedHeadJobs(NamedTuple):
    """Q queues on nodes of T types with D totals, and S instants at which what is idle may change."""

    begin: NDArray[np.int64]  # (Q,): of the plan of each head job, `NEVER` without one
    end: NDArray[np.int64]  # (Q,)
    keeps: NDArray[np.int64]  # (Q, D): what stays idle for it now
    node: NDArray[np.int64]  # (T, D): what a node of each type has
    out: NDArray[np.int64]  # (D,): what windows take now
    times: NDArray[np.int64]  # (S,), and
    free: NDArray[np.int64]  # (S, D): see `parsim.kernels.typed_profile`


@step
def begin_visit(s, types, heads, p, now):
    """Write what is idle over time, of totals, beside the windows known now; return the number of instants."""
    size = np.int64(idle_over_time(s, types, heads, p, now))
    for d in range(heads.out.size):
        heads.out[d] = 0
    for k in range(s.outages.windows.size):
        window, takes = s.outages.windows[k], s.outages.taken[k]
        if is_known(window, now):
            size = add_between(heads, size, takes, max(now, window.begin), window.known_end, -1)
            for d in range(takes.size):
                heads.out[d] += takes[d] if window.begin <= now else 0
    return size


@step
def take(s, types, heads, size, j, p, now):
    """Let job j have what it takes, if it may start now; return whether it may, and the number of instants."""
    end = now + s.jobs[j].walltime
    row = place_now(types, heads, size, j, p, end)
    if row >= 0:
        size = add_between(heads, size, types.amounts[row], now, end, -1)
        hold_nodes(types, j, p, row)
        take_kept(types, heads, row, end)
    return row >= 0, size


@step
def takes_of(types, heads, row, t):
    """Whether a place takes something of a type."""
    takes = False
    for d in range(types.amounts.shape[1]):
        takes |= heads.node[t, d] > 0 and types.amounts[row, d] > 0
    return takes


@step
def place_now(types, heads, size, j, p, end):
    """Return the first place of job j that is left until `end`, that included, beside what stays idle; or -1."""
    first, last = places_of(types, j)
    for row in range(first, last):
        if fits(types, heads, size, row, 0, end + 1) and leaves_kept(types, heads, row, p, end):
            return row
    return np.int64(-1)


@step
def leaves_kept(types, heads, row, p, end):
    """Whether a job that would end then leaves, of the types that it takes of, what stays idle for head jobs."""
    for i in range(heads.begin.size):
        if heads.begin[i] > end:
            continue
        for t in range(heads.node.shape[0]):
            if not takes_of(types, heads, row, t):
                continue
            for d in range(heads.node.shape[1]):
                if heads.node[t, d] == 0:
                    continue
                kept = types.amounts[row, d]
                for k in range(heads.begin.size):
                    if heads.begin[k] <= heads.begin[i] < heads.end[k]:
                        kept += heads.keeps[k, d]
                if 0 < kept > types.idle[p, d] - heads.out[d]:
                    return False
    return True


@step
def take_kept(types, heads, row, end):
    """A job has started that ends then: of the types that it takes of nothing stays idle for later head jobs."""
    for k in range(heads.begin.size):
        if end < heads.begin[k] < NEVER:
            for t in range(heads.node.shape[0]):
                if takes_of(types, heads, row, t):
                    for d in range(heads.node.shape[1]):
                        if heads.node[t, d] > 0:
                            heads.keeps[k, d] = 0


@step
def plan(s, types, heads, size, j, p):
    """Plan job j as the head job of its queue, at the earliest instant at which it has a place.

    Returns
    -------
    bool, int
        Whether there is one; the number of instants.
    """
    first, last = places_of(types, j)
    queue, walltime = s.jobs[j].queue, np.int64(s.jobs[j].walltime)
    for k in range(size):
        begin = heads.times[k]
        if begin >= UNKNOWN_END:  # rule 31
            break
        for row in range(first, last):
            if fits(types, heads, size, row, k, begin + walltime):
                heads.begin[queue] = begin
                heads.end[queue] = begin + walltime
                for d in range(heads.node.shape[1]):
                    heads.keeps[queue, d] = 0
                    for t in range(heads.node.shape[0]):
                        if takes_of(types, heads, row, t):
                            heads.keeps[queue, d] += heads.node[t, d]
                return True, add_between(heads, size, types.amounts[row], begin, begin + walltime, -1)
    return False, size
