"""Divisions spread evenly over the feasible ones: the samples to which the surrogates are fitted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qconf.evaluation.polynomial import products
from qconf.strategies.partitioning.bounds import Bounds, outermost
from qconf.strategies.partitioning.sizes import Sizes, apportion
from qconf.strategies.partitioning.sobol import sobol

MOST_CANDIDATES = 2**13


def feasible_samples(count: int, total: int, bounds: Bounds, seed: int) -> NDArray[np.int64]:
    """Return `count` divisions within the bounds that keep the proportional constraint, as far as so many are found.

    The simplex above the least size that each queue has in any feasible division is sampled, and divisions that are not
    proportional are left out. Where too few are left, because the size of a queue is almost fixed, mixtures of the
    outermost feasible divisions are added, and at last others of that simplex. The result has the shape (count, k).
    """
    corners = outermost(total, bounds)
    low = np.maximum(bounds.low, np.floor(corners.min(axis=0) + 1e-6).astype(np.int64)) if len(corners) else bounds.low
    low = low if low.sum() <= total else bounds.low
    free_nodes = total - int(low.sum())
    gaps = _gaps(min(MOST_CANDIDATES, 64 * count), low.size, seed)
    hopeful = _nearly_proportional(low + gaps * free_nodes, bounds)
    good: list[Sizes] = []
    others: list[Sizes] = []
    for row, hope in zip(gaps, hopeful, strict=True):
        if len(good) == count:
            break
        if hope or len(others) < count:
            nodes = low + apportion(row, free_nodes, np.zeros_like(low))
            (good if bounds.proportional(nodes) else others).append(nodes)
    if len(corners) and len(good) < count:
        weights = _gaps(4 * count, len(corners), seed) ** 2  # squared: less in the middle, more toward the corners
        mixed = products(weights / weights.sum(axis=1, keepdims=True), corners)
        divisions = [apportion(row, total, bounds.low) for row in mixed]
        good += [nodes for nodes in divisions if bounds.proportional(nodes)]
    return np.array([*good, *others][:count], dtype=np.int64)


def feasible_division(total: int, bounds: Bounds) -> NDArray[np.float64] | None:
    """Return a division amid the feasible ones, in fractions of nodes; None where there is none."""
    corners = outermost(total, bounds)
    return corners.mean(axis=0) if len(corners) else None


def _nearly_proportional(sizes: NDArray[np.float64], bounds: Bounds) -> NDArray[np.bool_]:
    """Mark the divisions that may be proportional once they are rounded to whole nodes."""
    bound = bounds.share > 0
    if bound.sum() < 2:
        return np.ones(len(sizes), dtype=np.bool_)
    least = (sizes[:, bound] - 2) / bounds.share[bound]
    most = (sizes[:, bound] + 2) / bounds.share[bound]
    if bounds.one_sided:
        before = np.minimum.accumulate(most, axis=1)[:, :-1]
        return np.asarray((before >= (1 - bounds.slack) * least[:, 1:]).all(axis=1))
    return np.asarray(most.min(axis=1) >= (1 - bounds.slack) * least.max(axis=1))


def _gaps(count: int, k: int, seed: int) -> NDArray[np.float64]:
    """Return `count` divisions of 1 into k parts, uniform on the simplex.

    They are the gaps between the sorted coordinates of the first points of a scrambled Sobol sequence in k - 1
    dimensions (Devroye 1986, section V.2).
    """
    if k == 1:
        return np.ones((count, 1))
    points = np.sort(sobol(count, k - 1, seed), axis=1)
    return np.diff(points, axis=1, prepend=0.0, append=1.0)
