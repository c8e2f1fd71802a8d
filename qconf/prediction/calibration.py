"""Calibrated intervals: simulated intervals, widened by the errors of earlier predictions.

Normalised conformal prediction (Papadopoulos, Vovk and Gammerman, JAIR 40, 2011): the score of a start is its distance
from the middle over the width of that half of the interval. Later instants weigh more, since users change.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Column = NDArray[np.int64]

FEWEST = 50  #: least number of past predictions; with fewer, simulated intervals stay unchanged
SLACK = 60.0  #: seconds added to each half of an interval, since some have no width
HALF = 20.0  #: half-life of a prediction's weight, in later instants


@dataclass(frozen=True)
class Calibration:
    """The factor by which both halves of intervals are widened, from past predictions."""

    factor: float = 1.0
    count: int = 0  #: number of past predictions; 0 if they are too few

    @classmethod
    def of(cls, level: float, now: Column, low: Floats, middle: Floats, high: Floats, true: Column) -> Calibration:
        """Fit the factor to past predictions, made at the instants `now`, of starts that were then `true`.

        Jobs that wait at one instant are late together, so few instants prove little: one more instant is assumed, with
        every start outside its interval.
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
        """Return (low, high) of the widened intervals, none of which begins before `now`."""
        if not self.count:
            return low, high
        below, above = self.factor * (middle - low + SLACK), self.factor * (high - middle + SLACK)
        return np.maximum(now, middle - below), middle + above


def quantile(values: Floats, weights: Floats, part: float) -> float:
    """Return the smallest value at which the cumulated weight reaches `part` of the total."""
    order = np.argsort(values, kind="stable")
    up_to = np.cumsum(weights[order])
    return float(values[order][min(int(np.searchsorted(up_to, part * up_to[-1])), values.size - 1)])
