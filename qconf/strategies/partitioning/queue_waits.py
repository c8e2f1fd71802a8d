"""What simulated divisions show about each queue alone, and which division to simulate next.

Queues on their own partitions hardly affect each other: if each size of a division was simulated in some other
division, its wait is almost known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qconf.strategies.partitioning.feasible import Feasible, Floats
from qconf.strategies.partitioning.sizes import Sizes

HOPE = 0.5  # optimism: standard deviations below the expected wait between two sizes
STEPS = 50  # most moves from one start
MOST = 50_000  # moves that are compared in a step, over all pairs of queues
FEWEST = 64  # least moves of a pair
AT_ONCE = 1000  # moves that are checked against the constraints at a time


@dataclass(frozen=True, eq=False)
class QueueWaits:
    """Each queue's contribution to the weighted mean wait, shape (k,), seconds, by simulated division.

    A wait falls in steps, where the next wide job fits. Between two simulated sizes the step is equally likely
    anywhere: the expected wait falls linearly, and is most uncertain in the middle.
    """

    simulated: Mapping[tuple[int, ...], Floats]
    feasible: Feasible

    def next(self, starts: Sequence[Sizes]) -> Sizes | None:
        """Return the most promising division that is not simulated, by moves between two queues; None if none is left.

        The division ends a series of moves that lower the optimistic wait, from a start; if all ends are known, it is a
        single move away.
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
            total = sum(float(_least(*curve, nodes[q : q + 1])[0]) for q, curve in enumerate(curves))
            ends.append((round(total, 3), nodes))
        new = [each for each in ends if tuple(each[1].tolist()) not in self.simulated]
        if new:
            return min(new, key=lambda each: each[0])[1]
        moves = self._moves(starts[0], curves, below=np.inf)
        return next((each for each in moves if tuple(each.tolist()) not in self.simulated), None)

    def _curves(self) -> list[tuple[Sizes, Floats]]:
        """Return the simulated sizes of each queue, ascending, and its contributions to the wait there."""
        divisions, parts = np.array([*self.simulated]), np.array([*self.simulated.values()])
        firsts = [np.unique(sizes, return_index=True) for sizes in divisions.T]
        return [(sizes, parts[first, q]) for q, (sizes, first) in enumerate(firsts)]

    def _moves(self, nodes: Sizes, curves: list[tuple[Sizes, Floats]], below: float) -> Iterator[Sizes]:
        """Yield divisions one move away within the constraints, best first, whose wait changes by less than `below`."""
        most = self.feasible.total - int(self.feasible.low.sum())
        count = np.unique(np.geomspace(1, max(most, 1), max(FEWEST, MOST // nodes.size**2)).astype(np.int64))
        change = np.array(
            [_least(*curve, own + np.array([[0], [-1], [1]]) * count) for curve, own in zip(curves, nodes, strict=True)]
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


def _least(sizes: Sizes, parts: Floats, at: NDArray[np.int64]) -> Floats:
    """Return optimistic waits at some sizes; below the simulated ones the first slope goes on, above them it is 0."""
    if sizes.size == 1:
        return np.full(at.shape, parts[0])
    left = np.clip(np.searchsorted(sizes, at, side="right") - 1, 0, sizes.size - 2)
    along = (at - sizes[left]) / (sizes[left + 1] - sizes[left])
    rise = np.where(along < 0, min(0.0, float(parts[1] - parts[0])), parts[left + 1] - parts[left])
    inside = np.clip(along, 0, 1)
    straight = parts[left] + rise * np.minimum(along, 1)
    return np.asarray(straight - HOPE * np.abs(rise) * np.sqrt(inside * (1 - inside)))
