"""Divisions spread evenly over the feasible ones: the samples to which the surrogates are fitted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qconf.strategies.partitioning.feasible import Feasible
from qconf.strategies.partitioning.sizes import Sizes

MOST_CANDIDATES = 2**13


def feasible_samples(count: int, feasible: Feasible, seed: int, rounding: str = "remainders") -> list[Sizes]:
    """Return `count` distinct feasible divisions, or as many as are found.

    The simplex above the least size that each queue has in any feasible division is sampled, and what is not feasible
    is left out. Where too few are left, because the size of a queue is almost fixed, mixtures of the outermost feasible
    divisions are added.
    """
    corners = feasible.corners
    if not len(corners):
        return []
    low = corners.min(axis=0)
    gaps = _gaps(min(MOST_CANDIDATES, 64 * count), low.size, seed)
    hopeful = low + gaps * (feasible.total - low.sum())
    hopeful = hopeful[feasible.excess(hopeful) == 0][: 2 * count]
    weights = _gaps(4 * count, len(corners), seed) ** 2  # squared: less in the middle, more toward the corners
    mixed = (weights / weights.sum(axis=1, keepdims=True)) @ corners
    found: dict[tuple[int, ...], Sizes] = {}
    for sizes in np.round(np.vstack([hopeful, mixed]), 6):
        if len(found) == count:
            break
        nodes = feasible.rounded(sizes, rounding)
        if nodes is not None:
            found.setdefault(tuple(nodes.tolist()), nodes)
    return [*found.values()]


def _gaps(count: int, k: int, seed: int) -> NDArray[np.float64]:
    """Return `count` divisions of 1 into k parts, uniform on the simplex.

    They are the gaps between the sorted coordinates of the first points of a scrambled Sobol sequence in k - 1
    dimensions (Devroye 1986, section V.2).
    """
    from scipy.stats import qmc

    if k == 1:
        return np.ones((count, 1))
    sobol = qmc.Sobol(k - 1, scramble=True, rng=np.random.default_rng(seed))
    points = np.sort(sobol.random_base2((count - 1).bit_length())[:count], axis=1)
    return np.diff(points, axis=1, prepend=0.0, append=1.0)
