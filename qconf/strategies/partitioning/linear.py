"""Linear programs of a few variables, by the simplex method: in one order of steps, whatever the processor."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TOLERANCE = 1e-9  # below, a number of the tableau is 0
FEASIBLE = 1e-7  # by which all constraints together may be missed


def minimise(goal: Floats, matrix: Floats, limit: Floats, total: float) -> Floats | None:
    """Return x >= 0 that sums to `total`, with ``matrix @ x <= limit``, and has the least ``goal @ x``; None without.

    Two phases, by Bland's rule (Math. Oper. Res. 2(2), 1977), which never cycles.
    """
    rows, n = limit.size + 1, goal.size
    slack = np.vstack([np.eye(limit.size), np.zeros(limit.size)])
    table = np.column_stack([np.vstack([matrix, np.ones(n)]), slack, [*limit, total]])
    table[table[:, -1] < 0] *= -1
    width = n + limit.size
    # A constraint whose slack variable is not in it with 1 begins with one that must become 0.
    ready = np.flatnonzero(np.diagonal(table[:-1, n:width]) > 0)
    basis = np.arange(width, width + rows)
    basis[ready] = n + ready
    table = np.column_stack([table[:, :-1], np.eye(rows), table[:, -1]])
    missed = np.zeros(width + rows)
    missed[width:] = 1.0
    _descend(table, basis, missed, width)
    if table[basis >= width, -1].sum() > FEASIBLE:
        return None
    _descend(table, basis, np.concatenate([goal, np.zeros(table.shape[1] - 1 - n)]), width)
    found = np.zeros(width + rows)
    found[basis] = table[:, -1]
    return found[:n]


def _descend(table: Floats, basis: NDArray[np.int64], cost: Floats, width: int) -> None:
    """Exchange one variable of the basis after the other, by the first `width`, until none lowers the cost."""
    while True:
        # Of what was to become 0 and is still in the basis, the value stays so.
        gain = cost[:width] - (cost[basis, None] * table[:, :width]).sum(axis=0)
        enters = np.flatnonzero(gain < -TOLERANCE)
        if not enters.size:
            return
        column = table[:, enters[0]]
        stuck = (basis >= width) & (cost[basis] == 0) & (np.abs(column) > TOLERANCE)
        if stuck.any():
            leaves = int(np.argmax(stuck))
        else:
            able = np.flatnonzero(column > TOLERANCE)
            ratios = np.maximum(table[able, -1], 0.0) / column[able]
            nearest = able[ratios <= ratios.min() + TOLERANCE]
            leaves = int(nearest[np.argmin(basis[nearest])])
        table[leaves] /= table[leaves, enters[0]]
        others = np.arange(len(table)) != leaves
        table[others] -= np.outer(table[others, enters[0]], table[leaves])
        basis[leaves] = enters[0]
