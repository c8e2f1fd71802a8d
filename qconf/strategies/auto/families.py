"""The families of orders that `auto` weighs, one for each kind of batch system.

PBS's are the general orders, and what every batch system has. PBS can express them: ``(1 + (eligible_time / T) ** 2.5 *
(ncpus / eighth) ** 1.2) / (walltime * ncpus ** 0.7) * (1 + (eligible_time / c) ** 5)``, where T is the wait that is
usual for a walltime, and an eighth is of the machine. Of jobs that have just come, short and narrow ones go first. A
job that has waited for T counts twice, and soon many times; a wide job sooner. That T grows with the walltime comes
from Argonne's utility function (WFP3, ``(wait / walltime) ** 3 * cores``). The last factor is ageing: c is a share of
the longest wait to be expected in half a year, so that no job waits much longer. Where all queues have starvation
periods, which a formula keeps, these are the bound, and the factor is left out.

Slurm's priority is a sum. Its family adds to the seconds that a job has waited points for each time that its walltime
is halved: jobs of 16 hours go before jobs of 32 that came as much earlier, down to a quarter of an hour. A job that has
waited so much longer than all others goes first, however long it is, so it needs no ageing factor. Maui's priority is a
sum, too, of the expansion factor and, against it, the walltime. Points and weights are shares of the longest wait.

References
----------
Tang, Lan, Desai and Buettner, "Fault-aware, utility-based job scheduling on Blue Gene/P systems", Cluster 2009.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import product
from typing import Protocol

from qconf.config.maui import Maui
from qconf.config.multifactor import Multifactor
from qconf.config.points import ratio, term
from qconf.strategies.base import Options, option

HOUR, DAY = 3600, 86400
LEAST = 12 * HOUR  #: of the ageing constant: quiet months do not make an order first come, first served
#: The longest wait of so many days is about ``(days / fewer) ** GROWTH`` times that of fewer (on thirteen logs).
USUAL, FEWEST, GROWTH = 180, 10, 0.37  # days, and an exponent
SHORTEST, CLASSES = HOUR // 4, 8  # walltime of the first class; each has jobs twice as long as the one before


class Order(Protocol):
    """A member of a family."""

    def formula(self, cores: int, longest: float | None = None) -> str:
        """Return it for a machine of `cores`; `longest` is the longest wait that was seen, seconds, None: unknown."""


@dataclass(frozen=True, slots=True)
class Named:
    """An order that a batch system has by itself: a rival of the others."""

    name: str

    def formula(self, cores: int, longest: float | None = None) -> str:
        """Return its name."""
        del cores, longest
        return self.name


@dataclass(frozen=True, slots=True)
class General:
    """A member of PBS's family."""

    usual: float = 30.0  #: hours of waiting after which a job of ten hours on an eighth of the machine counts twice
    share: float = 0.7  #: of the longest wait that was seen, after which waiting itself doubles the urgency

    def formula(self, cores: int, longest: float | None = None) -> str:
        """Return it in the names of PBS's job_sort_formula; without `longest` it does not age beyond T."""
        waited = f"eligible_time / ({self.usual * HOUR:.0f} * (max(walltime, 1) / 36000) ** 0.8)"
        urgency = f"(1 + ({waited}) ** 2.5 * (ncpus / {cores / 8:g}) ** 1.2)"
        order = f"{urgency} / (max(walltime, 1) * ncpus ** 0.7)"
        return order if longest is None else f"{order} * (1 + (eligible_time / {ageing(self.share, longest)}) ** 5)"


@dataclass(frozen=True, slots=True)
class Points:
    """A sum that a site can tell its users: points for each hour waited, fewer for each hour asked for.

    It needs no ageing factor: who has waited longest goes first in the end.
    """

    share: float  #: of the longest wait that was seen: so much longer waits a job that asks for a day more
    width: float = 0.0  #: the same of a job that asks for the whole machine

    def formula(self, cores: int, longest: float | None = None) -> str:
        """Return it with small whole numbers; a day is the longest wait if none is known."""
        hours = seen(longest) / HOUR
        waited, requested = ratio(self.share * hours / 24)
        text = term(waited, "eligible_time", HOUR) + term(-requested, "walltime", HOUR)
        if self.width:
            text += term(-float(f"{waited * self.width * hours / cores:.1g}"), "ncpus")
        return text.removeprefix(" + ")


def ageing(share: float, longest: float) -> int:
    """Return the ageing constant, seconds: a share of the longest wait that was seen, half a day at least.

    It is rounded to whole hours near quarter powers of two, so that parts of a history mostly share their orders.
    """
    hours = max(share * longest, LEAST) / HOUR
    return max(HOUR * round(2 ** (round(4 * math.log2(hours)) / 4)), LEAST)


def seen(longest: float | None) -> int:
    """Return the longest wait from which points are made, rounded as ageing is."""
    return ageing(1.0, DAY if longest is None else longest)


def usual_longest(longest: float, days: float) -> float:
    """Return the longest wait to be expected in half a year, seconds, of the longest in the days that are known."""
    return float(longest * max(USUAL / max(days, FEWEST), 1.0) ** GROWTH)


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
