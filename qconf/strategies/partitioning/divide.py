"""The best division of the machine, given the cost of each queue at some sizes: dynamic programming over queues.

Sizes are counted in steps of a grid (`Grid`), so that the work depends on the number of sizes, not of nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parsim.engine.compile.compiled import on_disk

RATIOS = 128  # values tried for the least size per share of a division, with interpolated costs
MOST_ADDITIONS = 10**9  # most additions of two costs in one search for the best proportional division


@dataclass(frozen=True, eq=False)
class Grid:
    """Possible sizes of each queue: `count` sizes from `first` on, `unit` nodes apart; shapes (k,).

    A division is counted in units above `first`; these counts sum to `total`.
    """

    first: NDArray[np.int64]
    unit: int
    count: NDArray[np.int64]
    total: int

    @classmethod
    def around(cls, nodes: NDArray[np.int64], unit: int, low: NDArray[np.int64], high: NDArray[np.int64]) -> Grid:
        """Return the grid of sizes within ``low..high`` that contains this division."""
        below = (nodes - low) // unit
        return cls(nodes - below * unit, unit, below + (high - nodes) // unit + 1, int(below.sum()))

    @property
    def sizes(self) -> list[NDArray[np.int64]]:
        """The sizes of each queue, in nodes, ascending."""
        return [first + self.unit * np.arange(count) for first, count in zip(self.first, self.count, strict=True)]

    def nodes(self, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the division, in nodes, with these counts of units above `first`."""
        return self.first + self.unit * steps


@on_disk
def _best(cost, low, high, total, value, choice):  # type: ignore[no-untyped-def]
    """Fill ``value[i, s]``, the least cost of the first i queues with s in total, and ``choice``, the last one's size.

    Only sums from which the other queues can reach `total` are filled.
    """
    count = cost.shape[0]
    value[:, :] = np.inf
    value[0, 0] = 0.0
    reach_low, reach_high = 0, 0
    rest_low, rest_high = 0, 0
    for i in range(count):
        rest_low += low[i]
        rest_high += high[i]
    for i in range(count):
        rest_low -= low[i]
        rest_high -= high[i]
        for s in range(reach_low, min(reach_high, total) + 1):
            before = value[i, s]
            if before == np.inf:
                continue
            for size in range(max(low[i], total - rest_high - s), min(high[i], total - rest_low - s) + 1):
                candidate = before + cost[i, size]
                if candidate < value[i + 1, s + size]:
                    value[i + 1, s + size] = candidate
                    choice[i + 1, s + size] = size
        reach_low += low[i]
        reach_high += high[i]


def best_division(
    cost: Sequence[NDArray[np.float64]], low: NDArray[np.int64], high: NDArray[np.int64], total: int
) -> tuple[NDArray[np.int64] | None, float]:
    """Return the sizes within ``low..high`` that sum to `total` at the least cost, and the cost; None if none fits.

    `cost` has an array of shape (h + 1,) for each of the k queues, with h at least the queue's `high` or `total`; all
    sizes have the shape (k,).
    """
    k, width = len(cost), max(column.size for column in cost)
    padded = np.full((k, width), np.inf)
    for row, column in zip(padded, cost, strict=True):
        row[: column.size] = column
    value, choice = np.empty((k + 1, total + 1)), np.zeros((k + 1, total + 1), dtype=np.int64)
    _best(padded, low, np.minimum(high, total), total, value, choice)
    if not np.isfinite(value[k, total]):
        return None, np.inf
    sizes, left = np.zeros(k, dtype=np.int64), total
    for i in range(k, 0, -1):
        sizes[i - 1] = choice[i, left]
        left -= int(sizes[i - 1])
    return sizes, float(value[k, total])


def best_proportional_division(
    cost: Sequence[NDArray[np.float64]],
    grid: Grid,
    low: NDArray[np.int64],
    share: NDArray[np.float64],
    slack: float,
    *,
    tolerance: int = 0,
    most: float = MOST_ADDITIONS,
) -> tuple[NDArray[np.int64] | None, float, bool]:
    """Return the best division on a grid with ``P_i / P_j >= (1 - slack) * share_i / share_j`` for every pair.

    Equivalently, all sizes per share are in some ``[m, m / (1 - slack)]``. Tried as m are the sizes per share on the
    grid with which sizes can sum to the machine. Queues without a share are bound by `low` alone. With a `tolerance` a
    division counts if sizes that many nodes larger (of i) and smaller (of j) satisfy the constraint.

    Also returns the cost, and whether every m was tried: beyond about `most` additions of costs, only every n-th m is.
    """
    bound = share > 0
    free_low = np.maximum(-((grid.first - low) // grid.unit), 0)
    free_high = np.minimum(grid.count - 1, grid.total)
    if slack >= 1 or bound.sum() < 2:
        steps, value = best_division(cost, free_low, free_high, grid.total)
        return None if steps is None else grid.nodes(steps), value, True
    ratios = _least_ratios(grid, share, low, slack, tolerance)[:, None]
    from_ratio = np.where(bound, np.ceil(ratios * share - 1e-9) - tolerance, 0)
    to_ratio = np.where(bound, np.floor(ratios * share / (1 - slack) + 1e-9) + tolerance, np.inf)
    bottom = np.maximum(free_low, np.ceil((from_ratio - grid.first) / grid.unit)).astype(np.int64)
    top = np.minimum(free_high, np.floor((to_ratio - grid.first) / grid.unit)).astype(np.int64)
    tried = (bottom <= top).all(axis=1) & (bottom.sum(axis=1) <= grid.total) & (top.sum(axis=1) >= grid.total)
    bottom, top = bottom[tried], top[tried]
    thinned = int(np.ceil(_additions(bottom, top, grid.total) / most)) if len(top) else 1
    best: NDArray[np.int64] | None = None
    least = np.inf
    for from_step, to_step in zip(bottom[::thinned], top[::thinned], strict=True):
        steps, value = best_division(cost, from_step, to_step, grid.total)
        if steps is not None and value < least:
            best, least = grid.nodes(steps), value
    return best, least, thinned == 1


def nearly_best_proportional_division(
    sizes: Sequence[NDArray[np.int64]],
    cost: Sequence[NDArray[np.float64]],
    low: NDArray[np.int64],
    total: int,
    share: NDArray[np.float64],
    slack: float,
    within: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return fractional sizes under the same constraint, with costs interpolated between few sizes.

    For each m, each queue takes the size with the least cost plus price per node, at the least price at which all sizes
    fit `total`; the remaining nodes are divided. For convex costs that is optimal. `within` is a division that
    satisfies the constraint.
    """
    bound = share > 0
    least = float((within[bound] / share[bound]).min())
    even = total / share.sum()
    ratios = np.unique([least, *np.geomspace(min(least, (1 - slack) * even), even, RATIOS)])[:, None]
    bottom = np.maximum(np.where(bound, ratios * share, 0), low)
    top = np.maximum(np.where(bound, ratios * share / (1 - slack), total), bottom)
    top = np.where(ratios == least, np.maximum(top, within), top)
    kept = (bottom.sum(axis=1) <= total + 1) & (top.sum(axis=1) >= total - 1)
    bottom, top = bottom[kept], top[kept]
    count = max(each.size for each in sizes)
    points = np.array([np.geomspace(each[0], each[-1], count) for each in sizes])[:, None]
    offered = np.clip(points, bottom.T[..., None], top.T[..., None])
    costs = np.array([np.interp(x, size, paid) for x, size, paid in zip(offered, sizes, cost, strict=True)])

    def bought(price: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.asarray(np.argmin(costs + price[:, None] * offered, axis=2)[..., None])

    below, above = np.zeros(len(bottom)), np.full(len(bottom), float(costs.max()) + 1)
    for _ in range(50):
        price = (below + above) / 2
        fits = np.take_along_axis(offered, bought(price), axis=2).sum(axis=(0, 2)) <= total
        below, above = np.where(fits, below, price), np.where(fits, price, above)
    chosen = bought(above)
    best = int(np.argmin(np.take_along_axis(costs, chosen, axis=2).sum(axis=(0, 2))))
    nodes = np.take_along_axis(offered, chosen, axis=2)[:, best, 0]
    room = top[best] - nodes
    return np.asarray(nodes + room * max(0.0, total - float(nodes.sum())) / max(float(room.sum()), 1e-9))


def _additions(low: NDArray[np.int64], high: NDArray[np.int64], total: int) -> float:
    """Return an upper bound on the additions of costs to divide `total` within each of these ranges, shapes (m, k)."""
    spans = (high - low + 1).astype(np.float64)
    sums = np.minimum(np.cumsum(high - low, axis=1)[:, :-1] + 1.0, total + 1)
    return float(spans[:, 0].sum() + (sums[:, :-1] * spans[:, 1:-1]).sum() + sums[:, -1].sum())


def _least_ratios(
    grid: Grid, share: NDArray[np.float64], low: NDArray[np.int64], slack: float, tolerance: int
) -> NDArray[np.float64]:
    """Return the sizes per share that can be the least of a division, ascending."""
    bound = share > 0
    nodes = int(grid.first.sum()) + grid.unit * grid.total
    even = (nodes + tolerance * bound.sum()) / share.sum()
    least = (1 - slack) * (nodes - tolerance * bound.sum()) / share.sum() if bound.all() else 0.0
    found = [
        sizes[(sizes >= max(low_i, int(least * s) - tolerance)) & (sizes <= np.ceil(even * s) - tolerance)] + tolerance
        for sizes, low_i, s in zip(grid.sizes, low, share, strict=True)
        if s > 0
    ]
    return np.unique(np.concatenate([sizes / s for sizes, s in zip(found, share[bound], strict=True)]))
