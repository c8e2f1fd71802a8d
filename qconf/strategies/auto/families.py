"""The families of orders that `auto` searches, one for each kind of batch system.

Slurm's priority is a sum. Its family adds to the seconds that a job has waited points for each time that its walltime
is halved: jobs of 16 hours go before jobs of 32 that came as much earlier, jobs of 8 before those of 16, and so on,
down to a quarter of an hour. A job that has waited so much longer than all others goes first, however long it is, so
no further ageing factor is needed. The points are a share of the usual longest wait, as the ageing of the formulas is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from qconf.config.multifactor import Multifactor
from qconf.strategies.auto.orders import FORMULAS, Family
from qconf.strategies.base import Options, option

MINUTE, DAY = 60, 86400
SHORTEST, CLASSES = 15 * MINUTE, 8  # walltime of the first class; each has jobs twice as long as the one before
SHARES = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4)  # of the usual longest wait: points of a halving of the walltime
GENERAL_SHARE = 0.2


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


FAMILIES: Mapping[str, Family] = {
    "formula": FORMULAS,
    "multifactor": Family(lambda _, longest: Classes().formula(longest), tuple(map(Classes, SHARES)), Classes()),
}


@dataclass(frozen=True, kw_only=True)
class AutoOptions(Options):
    """Options of `auto`."""

    orders: str = option(
        "formula",
        "Orders to search: formulas as PBS has them, or sums as Slurm's multifactor priority.",
        choices=tuple(FAMILIES),
        shown="what --target can do",
    )
