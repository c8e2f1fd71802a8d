"""The best division of the machine, given the cost of each queue at each size: dynamic programming over queues."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def _best(cost, low, high, total, value, choice):  # type: ignore[no-untyped-def]
    """Fill ``value[i, s]``, the least cost of the first i queues on s nodes, and the size of the last of them."""
    count = cost.shape[0]
    value[:, :] = np.inf
    value[0, 0] = 0.0
    reach_low, reach_high = 0, 0
    for i in range(count):
        for s in range(reach_low, min(reach_high, total) + 1):
            before = value[i, s]
            if before == np.inf:
                continue
            for size in range(low[i], min(high[i], total - s) + 1):
                candidate = before + cost[i, size]
                if candidate < value[i + 1, s + size]:
                    value[i + 1, s + size] = candidate
                    choice[i + 1, s + size] = size
        reach_low += low[i]
        reach_high += high[i]


def best_division(
    cost: Sequence[NDArray[np.float64]], low: NDArray[np.int64], high: NDArray[np.int64], total: int
) -> tuple[NDArray[np.int64] | None, float]:
    """Return the sizes within ``low..high`` that sum to `total` at the least cost, and that cost; None if none fits.

    `cost` has an array of shape (total + 1,) for each of the k queues; all sizes have the shape (k,).
    """
    k = len(cost)
    value, choice = np.empty((k + 1, total + 1)), np.zeros((k + 1, total + 1), dtype=np.int64)
    _best(np.stack(cost), low, np.minimum(high, total), total, value, choice)
    if not np.isfinite(value[k, total]):
        return None, np.inf
    sizes, left = np.zeros(k, dtype=np.int64), total
    for i in range(k, 0, -1):
        sizes[i - 1] = choice[i, left]
        left -= int(sizes[i - 1])
    return sizes, float(value[k, total])


def best_proportional_division(
    cost: Sequence[NDArray[np.float64]],
    low: NDArray[np.int64],
    total: int,
    share: NDArray[np.float64],
    slack: float,
    *,
    tolerance: int = 0,
) -> tuple[NDArray[np.int64] | None, float]:
    """Return the best sizes with ``P_i / P_j >= (1 - slack) * share_i / share_j`` for every pair.

    That is: the sizes per share all lie in some ``[m, m / (1 - slack)]``. Only sizes per share that occur are tried as
    m, and only those for which the sizes can sum to `total`. Queues with no share are bound by `low` alone. With a
    `tolerance` it is enough if sizes that many nodes larger (of i) and smaller (of j) keep the constraint.
    """
    bound = share > 0
    best: NDArray[np.int64] | None = None
    least = np.inf
    high = np.full(low.size, total, dtype=np.int64)
    if slack >= 1 or bound.sum() < 2:
        return best_division(cost, low, high, total)
    for m in _least_ratios(share[bound], low[bound], total, slack, tolerance, alone=bool(bound.all())):
        from_ratio = np.where(bound, np.ceil(m * share - 1e-9) - tolerance, low).astype(np.int64)
        to_ratio = np.where(bound, np.floor(m * share / (1 - slack) + 1e-9) + tolerance, total).astype(np.int64)
        bottom, top = np.maximum(low, from_ratio), np.minimum(high, to_ratio)
        if (bottom > top).any() or bottom.sum() > total or top.sum() < total:
            continue
        sizes, value = best_division(cost, bottom, top, total)
        if sizes is not None and value < least:
            best, least = sizes, value
    return best, least


def _least_ratios(
    share: NDArray[np.float64], low: NDArray[np.int64], total: int, slack: float, tolerance: int, *, alone: bool
) -> NDArray[np.float64]:
    """Sizes per share that can be the least of a division, ascending; `alone`, these queues divide all of `total`."""
    even = (total + tolerance * share.size) / share.sum()
    least = (1 - slack) * (total - tolerance * share.size) / share.sum() if alone else 0.0
    found = [
        np.arange(max(int(low_i) + tolerance, int(least * s)), int(np.ceil(even * s)) + 1) / s
        for s, low_i in zip(share, low, strict=True)
    ]
    return np.unique(np.concatenate(found))
