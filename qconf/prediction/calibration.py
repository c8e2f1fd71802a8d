"""Intervals that hold: simulated ones, widened by how far off earlier predictions were.

Normalised conformal prediction (Papadopoulos, Vovk and Gammerman, JAIR 40, 2011), each side by itself: a score is by
how many times its half of the interval a start missed the middle. Predictions of a like horizon are compared, those of
late instants count more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Column = NDArray[np.int64]

FEWEST = 50  #: predictions that have come true, without which simulated intervals stay as they are
SLACK = 60.0  #: seconds by which each half is wider than simulated: some have no width at all
ALIKE = 400  #: predictions of the nearest horizons that are compared
INSTANTS = 40.0  #: after so many later instants a prediction counts half


@dataclass(frozen=True)
class Calibration:
    """Scores of predictions that have come true, by their horizons."""

    level: float
    horizon: Floats  #: seconds from the instant of a prediction to the middle of its interval, ascending
    late: Floats
    early: Floats
    weight: Floats

    @classmethod
    def of(cls, level: float, now: Column, low: Floats, middle: Floats, high: Floats, true: Column) -> Calibration:
        """Score predictions that have come true; `now` is when each was made."""
        instants, of = np.unique(now, return_inverse=True)
        horizon = middle - now
        order = np.argsort(horizon, kind="stable")
        columns = (
            horizon,
            (true - middle) / (high - middle + SLACK),
            (middle - true) / (middle - low + SLACK),
            0.5 ** ((instants.size - of) / INSTANTS),
        )
        return cls(level, *(column[order] for column in columns))

    @property
    def count(self) -> int:
        """Predictions that have come true; 0 where they are too few."""
        return self.late.size if self.late.size >= FEWEST else 0

    def widened(self, now: int, low: Floats, middle: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return the intervals that as many of the earlier predictions would have kept; none begins before `now`."""
        if not self.count:
            return low, high
        late, early = np.empty(middle.size), np.empty(middle.size)
        place = np.searchsorted(self.horizon, middle - now)
        first = np.clip(place - ALIKE // 2, 0, max(0, self.late.size - ALIKE))
        for begin in np.unique(first).tolist():
            alike, here = slice(begin, begin + ALIKE), first == begin
            for scores, factors in ((self.late, late), (self.early, early)):
                factors[here] = max(0.0, quantile(scores[alike], self.weight[alike], (1 + self.level) / 2))
        return np.maximum(now, middle - early * (middle - low + SLACK)), middle + late * (high - middle + SLACK)


def quantile(values: Floats, weights: Floats, part: float) -> float:
    """Return the value up to which a part of the weight lies."""
    order = np.argsort(values, kind="stable")
    up_to = np.cumsum(weights[order])
    return float(values[order][min(int(np.searchsorted(up_to, part * up_to[-1])), values.size - 1)])
