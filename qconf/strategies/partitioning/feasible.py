"""The divisions that dp-nlp may choose, defined once for its program, rounding, searches and samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from qconf.strategies.partitioning.sizes import Sizes, apportion

Floats = NDArray[np.float64]
EXACT = 1e-6  # tolerance of a constraint for rounding errors, nodes
MOST_CANDIDATES = 2**13  # most candidates for samples, infeasible ones included
INWARD = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0)  # fractions of the way to the middle from which rounding is tried


@dataclass(frozen=True, eq=False)
class Feasible:
    """Feasible divisions: nodes of each queue at least `low`, `total` in sum, proportional to `share` up to a slack.

    The proportional constraint is ``P_i / P_j >= (1 - slack) * share_i / share_j`` for every ordered pair of queues
    with a share; with `one_sided`, as in the paper's equation 6, only for pairs in which i comes before j. Since nodes
    are whole, it holds to a node of each size.

    References
    ----------
    Kondameedi and Vadhiyar, CCGrid 2017, section II.A, equations 3 to 6.
    """

    total: int
    low: Sizes
    slack: float = 1.0
    share: Floats = field(default_factory=lambda: np.zeros(0))  # shape (k,); empty or 0: no constraint
    one_sided: bool = False
    wanted: Sizes | None = None  # lower bounds before they are made to fit the machine
    notes: tuple[str, ...] = ()  # how constraints were relaxed

    @cached_property
    def rows(self) -> tuple[Floats, Floats]:
        """A and b of the proportional constraint ``A @ nodes <= b``, without pairs that the bounds satisfy."""
        k, most = self.low.size, self.low + (self.total - int(self.low.sum()))
        bound = np.flatnonzero(self.share > 0)
        rows, limits = [], []
        for i in bound:
            for j in bound:
                ratio = (1 - self.slack) * self.share[i] / self.share[j]
                if i == j or (i > j and self.one_sided) or ratio * (most[j] - 1) <= self.low[i] + 1:
                    continue
                row = np.zeros(k)
                row[i], row[j] = -1.0, ratio
                rows.append(row)
                limits.append(1 + ratio)
        return np.array(rows).reshape(-1, k), np.array(limits)

    def excess(self, nodes: Sizes | Floats) -> Floats:
        """Return the nodes by which divisions violate bounds and proportions (not the sum), shape (..., k) to (...)."""
        matrix, limits = self.rows
        over, below = np.asarray(nodes) @ matrix.T - limits, np.maximum(self.low - nodes, 0).sum(axis=-1)
        missed = np.where(over > EXACT, over, 0).sum(axis=-1) + np.where(below > EXACT, below, 0)
        return np.asarray(np.round(missed, 6))

    def keeps(self, nodes: Sizes) -> bool:
        """Return whether a division satisfies every constraint."""
        return int(nodes.sum()) == self.total and not self.excess(nodes)

    def rounded(self, sizes: Floats, rounding: str = "remainders") -> Sizes | None:
        """Return the feasible division in whole nodes near fractional sizes; None if there is none.

        Largest remainders come first. While that violates a constraint, the move of a node that helps most is made. If
        no move helps, rounding starts again from sizes nearer to the middle of the feasible ones.
        """
        for part in INWARD:
            if part and not len(self.corners):
                break
            inner = sizes + part * (self.corners.mean(axis=0) - sizes) if part else sizes
            nodes = apportion(inner, self.total, self.low, rounding)
            one = np.eye(nodes.size, dtype=np.int64)
            moves = one[:, None] - one
            for _ in range(4 * nodes.size):
                excess = self.excess(nodes)
                if not excess:
                    return nodes
                moved = (nodes + moves).reshape(-1, nodes.size)
                missed = self.excess(moved)
                if missed.min(initial=np.inf) >= excess:
                    break
                nodes = moved[int(np.argmin(missed))]
        return None

    @cached_property
    def middle(self) -> Sizes | None:
        """A division in the middle of the feasible ones; None if there is none."""
        return self.rounded(self.corners.mean(axis=0)) if len(self.corners) else None

    @cached_property
    def corners(self) -> Floats:
        """Divisions, in fractional nodes, in which one queue has its least or its most; shape (n, k), n is 0 if none.

        They satisfy the proportional constraint to half a node.
        """
        from scipy.optimize import linprog

        matrix, limits = self.rows
        ends = [(float(low), float(max(low, self.total))) for low in self.low]
        found = []
        for goal in np.vstack([np.eye(self.low.size), -np.eye(self.low.size)]):
            end = linprog(goal, matrix, limits / 2, np.ones((1, self.low.size)), [float(self.total)], ends)
            if end.status != 0:
                return np.empty((0, self.low.size))
            found.append(end.x)
        return np.round(np.array(found), 6)


def feasible_samples(count: int, feasible: Feasible, seed: int, rounding: str = "remainders") -> list[Sizes]:
    """Return `count` distinct feasible divisions, or as many as are found.

    Samples are drawn from the simplex above each queue's least feasible size, and infeasible ones are left out. If too
    few are left, because a queue's size is almost fixed, mixtures of the corners are added.
    """
    corners = feasible.corners
    if not len(corners):
        return []
    low = corners.min(axis=0)
    gaps = _gaps(min(MOST_CANDIDATES, 64 * count), low.size, seed)
    hopeful = low + gaps * (feasible.total - low.sum())
    hopeful = hopeful[feasible.excess(hopeful) == 0][: 2 * count]
    weights = _gaps(4 * count, len(corners), seed) ** 2  # squared: fewer in the middle, more near the corners
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
