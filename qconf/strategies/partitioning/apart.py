"""What simulated divisions tell of each queue by itself, and which division is worth simulating next by that.

Queues on partitions of their own hardly wait for one another: a division of which each size was simulated with some
other division is all but known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qconf.strategies.partitioning.feasible import Feasible, Floats
from qconf.strategies.partitioning.sizes import Sizes

HOPE = 0.5  # standard deviations below what is expected between two sizes
STEPS = 50  # from one start
MOST = 50_000  # moves of a step, of all pairs of queues; at least so many of each
FEWEST = 64
AT_ONCE = 1000  # moves that are compared with the constraints


@dataclass(frozen=True, eq=False)
class Apart:
    """Queues' parts of the weighted mean wait, shape (k,), seconds, by simulated division.

    Between two sizes that were simulated of a queue its part falls at one size, and any is as likely: what is expected
    falls evenly, and is most uncertain in the middle. Curves of waits are such stairs, where the next wide job fits.
    """

    simulated: Mapping[tuple[int, ...], Floats]
    feasible: Feasible

    def next(self, starts: Sequence[Sizes]) -> Sizes | None:
        """Return the most hopeful division that is not simulated, by moves between two queues; None where none is left.

        That is where moves end that lower what can be hoped for, from one of the starts; else a single move.
        """
        curves = self._curves()
        ends: list[tuple[float, Sizes]] = []
        for start in starts:
            nodes = start
            for _ in range(STEPS):
                moved = next(self._moves(nodes, curves, below=0.0), None)
                if moved is None:
                    break
                nodes = moved
            total = sum(float(_hoped(*curve, nodes[q : q + 1])[0]) for q, curve in enumerate(curves))
            ends.append((round(total, 3), nodes))
        new = [each for each in ends if tuple(each[1].tolist()) not in self.simulated]
        if new:
            return min(new, key=lambda each: each[0])[1]
        moves = self._moves(starts[0], curves, below=np.inf)
        return next((each for each in moves if tuple(each.tolist()) not in self.simulated), None)

    def _curves(self) -> list[tuple[Sizes, Floats]]:
        """Return the sizes of each queue that were simulated, ascending, and its parts of the wait there."""
        divisions, parts = np.array([*self.simulated]), np.array([*self.simulated.values()])
        firsts = [np.unique(sizes, return_index=True) for sizes in divisions.T]
        return [(sizes, parts[first, q]) for q, (sizes, first) in enumerate(firsts)]

    def _moves(self, nodes: Sizes, curves: list[tuple[Sizes, Floats]], below: float) -> Iterator[Sizes]:
        """Yield divisions one move away within the constraints, best first, whose wait changes by less than `below`."""
        most = self.feasible.total - int(self.feasible.low.sum())
        count = np.unique(np.geomspace(1, max(most, 1), max(FEWEST, MOST // nodes.size**2)).astype(np.int64))
        change = np.array(
            [_hoped(*curve, own + np.array([[0], [-1], [1]]) * count) for curve, own in zip(curves, nodes, strict=True)]
        )
        change -= change[:, :1]
        change[:, 1][nodes[:, None] - count < self.feasible.low[:, None]] = np.inf
        gains = np.round(change[:, None, 1] + change[None, :, 2], 3)
        gains[np.diag_indices(nodes.size)] = np.inf
        better = np.flatnonzero(gains < below)
        better = better[np.argsort(gains.flat[better], kind="stable")]
        unit = np.eye(nodes.size, dtype=np.int64)
        for first in range(0, better.size, AT_ONCE):
            i, j, n = np.unravel_index(better[first : first + AT_ONCE], gains.shape)
            moved = nodes + (unit[j] - unit[i]) * count[n][:, None]
            yield from moved[self.feasible.excess(moved) == 0]


def _hoped(sizes: Sizes, parts: Floats, at: NDArray[np.int64]) -> Floats:
    """Return what can be hoped for at some sizes: below the least simulated it rises as behind it, then it stays."""
    if sizes.size == 1:
        return np.full(at.shape, parts[0])
    left = np.clip(np.searchsorted(sizes, at, side="right") - 1, 0, sizes.size - 2)
    along = (at - sizes[left]) / (sizes[left + 1] - sizes[left])
    rise = np.where(along < 0, min(0.0, float(parts[1] - parts[0])), parts[left + 1] - parts[left])
    inside = np.clip(along, 0, 1)
    straight = parts[left] + rise * np.minimum(along, 1)
    return np.asarray(straight - HOPE * np.abs(rise) * np.sqrt(inside * (1 - inside)))
