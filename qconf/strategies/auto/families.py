"""The families of orders that `auto` searches, one for each kind of batch system.

Slurm's priority is a sum. Its family adds to the seconds that a job has waited points for each time that its walltime
is halved: jobs of 16 hours go before jobs of 32 that came as much earlier, jobs of 8 before those of 16, and so on,
down to a quarter of an hour. A job that has waited so much longer than all others goes first, however long it is, so
no further ageing factor is needed. The points are a share of the usual longest wait, as the ageing of the formulas is.

Maui's priority is a sum, too: to the minutes that a job has waited its family adds a share of the usual longest wait
for each unit of the expansion factor, and takes away one for each day of the walltime.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from qconf.config.maui import Maui
from qconf.config.multifactor import Multifactor
from qconf.strategies.auto.orders import FORMULAS, Family
from qconf.strategies.base import Options, option

MINUTE, DAY = 60, 86400
SHORTEST, CLASSES = 15 * MINUTE, 8  # walltime of the first class; each has jobs twice as long as the one before
SHARES = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4)  # of the usual longest wait: points of a halving of the walltime
GENERAL_SHARE = 0.2
EXPANSIONS = (0.003, 0.01, 0.03, 0.1)  # of the usual longest wait: weight of the expansion factor
LENGTHS = (0.1, 0.2, 0.4, 0.8)  # of the usual longest wait: what a day of walltime costs


@dataclass(frozen=True)
class Classes:
    """A member of Slurm's family."""

    share: float = GENERAL_SHARE

    def formula(self, longest: int | None = None) -> str:
        """Return it as a formula; `longest` is the usual longest wait, seconds, a day if it is not known."""
        points = round(self.share * (longest or DAY))
        classes = tuple((SHORTEST * 2**i, points * (CLASSES - i)) for i in range(CLASSES))
        return Multifactor(classes).formula

    @property
    def parameters(self) -> tuple[float, ...]:
        """The logarithm of the share."""
        return (float(np.log(self.share)),)


@dataclass(frozen=True)
class Weights:
    """A member of Maui's family."""

    expansion: float = 0.01
    length: float = 0.4

    def formula(self, longest: int | None = None) -> str:
        """Return it as a formula; `longest` is the usual longest wait, seconds, a day if it is not known."""
        minutes = (longest or DAY) / MINUTE
        weights = {
            "queue_time": 1.0,
            "expansion_factor": round(self.expansion * minutes, 3),
            "walltime": -round(self.length * minutes / DAY, 8),
        }
        return Maui(weights).formula

    @property
    def parameters(self) -> tuple[float, ...]:
        """The logarithms of the shares."""
        return float(np.log(self.expansion)), float(np.log(self.length))


FAMILIES: Mapping[str, Family] = {
    "formula": FORMULAS,
    "multifactor": Family(lambda _, longest: Classes().formula(longest), tuple(map(Classes, SHARES)), Classes()),
    "maui": Family(
        lambda _, longest: Weights().formula(longest),
        tuple(Weights(expansion, length) for expansion in EXPANSIONS for length in LENGTHS),
        Weights(),
    ),
}


@dataclass(frozen=True, kw_only=True)
class AutoOptions(Options):
    """Options of `auto`."""

    orders: str = option(
        "formula",
        "Orders to search: formulas as PBS has them, sums as Slurm's multifactor priority, or Maui's weights.",
        choices=tuple(FAMILIES),
        shown="what --target can do",
    )
    shortpools: str = option(
        "keep",
        "Keep the site's shortpools, or search sizes, walltimes and hours.",
        choices=("keep", "search"),
    )
