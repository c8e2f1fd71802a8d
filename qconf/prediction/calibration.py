"""Intervals that hold: simulated ones, widened by how far off earlier predictions were.

Normalised conformal prediction (Papadopoulos, Vovk and Gammerman, JAIR 40, 2011): a score is by how many times its half
of the interval a start missed the middle. Late instants count more, since what a machine is used for changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Column = NDArray[np.int64]

FEWEST = 50  #: predictions that have come true, without which simulated intervals stay as they are
SLACK = 60.0  #: seconds by which each half is wider than simulated: some have no width at all
HALF = 20.0  #: after so many later instants a prediction counts half


@dataclass(frozen=True)
class Calibration:
    """How many times the halves of intervals have to be as wide, by predictions that have come true."""

    factor: float = 1.0
    count: int = 0  #: of these predictions; 0 where they are too few

    @classmethod
    def of(cls, level: float, now: Column, low: Floats, middle: Floats, high: Floats, true: Column) -> Calibration:
        """Score predictions that have come true; `now` is when each was made.

        Jobs that wait at one instant are late together: what few instants show is not sure, so that they count as one
        instant more, with none inside.
        """
        if true.size < FEWEST:
            return cls()
        _, instant = np.unique(now, return_inverse=True)
        weights = 0.5 ** ((instant.max() - np.arange(instant.max() + 1)) / HALF)
        instants = weights.sum() ** 2 / (weights**2).sum()
        late, early = (true - middle) / (high - middle + SLACK), (middle - true) / (middle - low + SLACK)
        part = (instants * level + 1) / (instants + 1)
        return cls(quantile(np.maximum(late, early), weights[instant], part), true.size)

    def widened(self, now: int, low: Floats, middle: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return the intervals that as many of the earlier predictions would have kept; none begins before `now`."""
        if not self.count:
            return low, high
        below, above = self.factor * (middle - low + SLACK), self.factor * (high - middle + SLACK)
        return np.maximum(now, middle - below), middle + above


def quantile(values: Floats, weights: Floats, part: float) -> float:
    """Return the value up to which a part of the weight lies."""
    order = np.argsort(values, kind="stable")
    up_to = np.cumsum(weights[order])
    return float(values[order][min(int(np.searchsorted(up_to, part * up_to[-1])), values.size - 1)])
