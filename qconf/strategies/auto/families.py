"""The families of orders that `auto` weighs, one for each kind of batch system.

PBS's are the general orders of `qconf.strategies.auto.orders`, and what every batch system has.

Slurm's priority is a sum. Its family adds to the seconds that a job has waited points for each time that its walltime
is halved: jobs of 16 hours go before jobs of 32 that came as much earlier, down to a quarter of an hour. A job that has
waited so much longer than all others goes first, however long it is, so it needs no ageing factor. Maui's priority is a
sum, too, of the expansion factor and, against it, the walltime. Points and weights are shares of the longest wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import product

from qconf.config.maui import Maui
from qconf.config.multifactor import Multifactor
from qconf.strategies.auto.orders import DAY, HOUR, General, Named, Order, Points, seen
from qconf.strategies.base import Options, option

SHORTEST, CLASSES = HOUR // 4, 8  # walltime of the first class; each has jobs twice as long as the one before


@dataclass(frozen=True, slots=True)
class Classes:
    """A member of Slurm's family."""

    share: float = 0.2  #: of the longest wait: points of a halving of the walltime

    def formula(self, cores: int = 0, longest: float | None = None) -> str:
        """Return it as a sum; a day is the longest wait if none is known."""
        del cores
        points = round(self.share * seen(longest))
        return Multifactor(tuple((SHORTEST * 2**i, points * (CLASSES - i)) for i in range(CLASSES))).formula


@dataclass(frozen=True, slots=True)
class Weights:
    """A member of Maui's family, its weights shares of the longest wait."""

    expansion: float = 0.01  #: of a unit of the expansion factor
    length: float = 0.4  #: what a day of walltime costs

    def formula(self, cores: int = 0, longest: float | None = None) -> str:
        """Return it as a sum; a day is the longest wait if none is known."""
        del cores
        minutes = seen(longest) / 60
        weights = {
            "queue_time": 1.0,
            "expansion_factor": round(self.expansion * minutes, 3),
            "walltime": -round(self.length * minutes / DAY, 8),
        }
        return Maui(weights).formula


@dataclass(frozen=True, slots=True)
class Member:
    """An order, and how long a job waits before it has a reservation."""

    order: Order
    delay: int = 0  #: seconds

    @property
    def sums(self) -> bool:
        """Whether it is a sum of points, which a site can tell its users."""
        return isinstance(self.order, Points)

    @property
    def name(self) -> str:
        """What it is called in the table of priors: its parameters."""
        shown = [f"{each.name}={getattr(self.order, each.name)}" for each in fields(self.order)]  # type: ignore[arg-type]
        return ", ".join([type(self.order).__name__.lower(), *shown, f"delay={self.delay // HOUR}h"])


def _with_delays(*orders: Order) -> tuple[Member, ...]:
    return tuple(Member(order, delay) for order in orders for delay in (0, DAY))


AGEING = (0.35, 0.5, 0.7, 1.0, 1.4)  # shares of the longest wait

#: By what a batch system can express.
FAMILIES: Mapping[str, tuple[Member, ...]] = {
    "formula": (
        *_with_delays(*(General(*each) for each in product((15.0, 30.0), AGEING))),
        *(Member(Named(each)) for each in ("lxf", "sjf", "wfp3")),
        *(Member(Points(*each)) for each in product((0.3, 0.8, 1.2, 1.6), (0.0, 0.15, 1.5, 4.0))),
    ),
    "multifactor": _with_delays(*map(Classes, (0.1, 0.15, 0.2, 0.25, 0.3, 0.4))),
    "maui": _with_delays(*(Weights(*each) for each in product((0.003, 0.01, 0.03, 0.1), (0.1, 0.2, 0.4, 0.8)))),
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
