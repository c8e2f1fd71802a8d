"""Intervals that hold: simulated ones, widened by how far off earlier predictions were.

Normalised conformal prediction (Papadopoulos, Vovk and Gammerman, JAIR 40, 2011), each side by itself: a score is by
how many times its half of the interval a start missed the middle.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FEWEST = 50  #: predictions that have come true, without which simulated intervals stay as they are
SLACK = 60.0  #: seconds by which each half is wider than simulated: some have no width at all


@dataclass
class Calibration:
    """Scores of predictions that have come true, by the level of the interval."""

    level: float
    late: list[float] = field(default_factory=list)
    early: list[float] = field(default_factory=list)

    def add(self, low: Floats, middle: Floats, high: Floats, true: Floats) -> None:
        """Count predictions that have come true."""
        self.late += ((true - middle) / (high - middle + SLACK)).tolist()
        self.early += ((middle - true) / (middle - low + SLACK)).tolist()

    def widened(self, low: Floats, middle: Floats, high: Floats, now: int) -> tuple[Floats, Floats]:
        """Return the interval that as many of the earlier predictions would have kept; none begins before `now`."""
        if len(self.late) < FEWEST:
            return low, high
        part = (1 + self.level) / 2
        late, early = (max(0.0, float(np.quantile(scores, part))) for scores in (self.late, self.early))
        return np.maximum(now, middle - early * (middle - low + SLACK)), middle + late * (high - middle + SLACK)
