"""Rows of the plans of a pass: which plan takes cores of which partition, and which jobs it concerns.

All plans of a pass count together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.resources.nodes import Nodes
from parsim.engine.resources.windows import Outages
from parsim.engine.simulation import Running, step

#: The plan of the head job of one list, in the present pass; `job` is -1 without one.
PROMISE = np.dtype([("job", np.int64), ("begin", np.int64), ("end", np.int64)], align=True)
ROWS = 3  #: plans that may concern one partition: of its own list, of the pool's, of the reserved list


class Plans(NamedTuple):
    """The plans, and the nodes that they take. Row 0 has on each partition the plan of the partition's own list."""

    nodes: Nodes
    running: Running  # of the whole machine
    promises: NDArray[np.void]  # (P + 1 + W,) PROMISE: of lists, the reserved one last, then of windows
    near: NDArray[np.int64]  # (2,): the first window that has not ended, and the one after those planned in this pass
    taken: NDArray[np.int32]  # (ROWS + W, V): cores of each node that a plan takes
    extra: NDArray[np.int32]  # (ROWS + W, V): cores of each node that all plans leave when the row's plan begins
    takes: NDArray[np.int64]  # (ROWS + W, P): the sum of `taken` of each partition; where it is 0, `taken` is not valid
    leaves: NDArray[np.int64]  # (ROWS + W, P): the sum of `extra`
    later: NDArray[np.int32]  # (V,): cores of each node that are idle at the instant that is examined
    left: NDArray[np.int32]  # (V,): cores of each node that the job at its turn may take
    begun: NDArray[np.int64]  # (k, 3): job, node and cores of the jobs that run when the simulation begins
    outages: Outages  # their plans are in the last rows
    loose: NDArray[np.bool_]  # (1,): whether plans of this pass may take more of a node than it has
    exempt: NDArray[np.bool_]  # (G, n): whether windows for a group are for a job


@step
def list_on(plans, q, row):
    """Return the index in `promises` of the plan, a list's or a window's, in this row of partition q; or -1."""
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
    """Whether the plan in this row, of another job or of a window not for job j, takes cores of partition q."""
    if not has_plan(plans, q, row) or plans.promises[list_on(plans, q, row)].job == j:
        return False
    return row < ROWS or not is_exempt(plans, row - ROWS, j)


@step
def is_exempt(plans, k, j):
    """Whether job j may use the cores of window k."""
    members = plans.outages.windows[k].members
    return members >= 0 and plans.exempt[members, j]


@step
def row_after(plans, row):
    """Return the row after this one: after the rows of lists, the first of the windows planned in this pass."""
    return row + 1 if row != ROWS - 1 else ROWS + plans.near[0]


@step
def end_row(plans):
    """Return the row after the last that has a plan in this pass."""
    return ROWS + plans.near[1]


@step
def takes_at(plans, q, row, j, moment):
    """Return 1 if the plan in this row is of job j and takes cores of partition q at this moment, else 0."""
    if not has_plan(plans, q, row):
        return np.int32(0)
    own = plans.promises[list_on(plans, q, row)]
    return np.int32(own.job == j and own.begin <= moment < own.end)
