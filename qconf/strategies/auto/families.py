"""The families of orders that `auto` searches, one for each kind of batch system.

PBS's family has general formulas, named orders and sums of points. A general formula is ``(1 + (eligible_time / T) **
2.5 * (ncpus / eighth) ** 1.2) / (walltime * ncpus ** 0.7) * (1 + (eligible_time / c) ** 5)``, with T the usual wait for
the walltime, and an eighth of the machine. New jobs go first if they are short and narrow. A job that has waited for T
counts twice, and soon many times; a wide job sooner. T grows with the walltime as in Argonne's utility function (WFP3,
``(wait / walltime) ** 3 * cores``). The last factor is ageing: c is a fraction of the longest wait expected in half a
year, so that no job waits much longer. If all queues have starvation periods, which a formula keeps, these bound the
waits, and the factor is left out.

Slurm's priority is a sum. Its family adds points for each halving of the walltime to the seconds waited: jobs of 16
hours go before jobs of 32 hours that came a given time earlier, down to a quarter of an hour. A job that has waited
that much longer than all others goes first whatever its walltime, so no ageing factor is needed. Maui's priority is
also a sum: of the expansion factor and, negative, the walltime. Points and weights are fractions of the longest wait.

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
LEAST = 12 * HOUR  #: least ageing constant, so that a quiet month does not make an order first come, first served
#: The longest wait grows with the length of a log about as ``days ** GROWTH`` (on thirteen logs).
USUAL, FEWEST, GROWTH = 180, 10, 0.37  # days to extrapolate to, least days to extrapolate from, exponent
SHORTEST, CLASSES = HOUR // 4, 8  # longest walltime of the first class; it doubles from class to class


class Order(Protocol):
    """A member of a family."""

    def formula(self, cores: int, longest: float | None = None) -> str:
        """Return the formula for a machine of `cores`; `longest` is the longest wait seen, seconds, or None."""


@dataclass(frozen=True, slots=True)
class Named:
    """A named order that every batch system has."""

    name: str

    def formula(self, cores: int, longest: float | None = None) -> str:
        """Return the name."""
        del cores, longest
        return self.name


@dataclass(frozen=True, slots=True)
class General:
    """A general formula of PBS's family."""

    usual: float = 30.0  #: hours of waiting after which a job of ten hours on an eighth of the machine counts twice
    share: float = 0.7  #: fraction of the longest wait after which ageing doubles the priority

    def formula(self, cores: int, longest: float | None = None) -> str:
        """Return the formula in the names of PBS's job_sort_formula; without `longest` it has no ageing factor."""
        waited = f"eligible_time / ({self.usual * HOUR:.0f} * (max(walltime, 1) / 36000) ** 0.8)"
        urgency = f"(1 + ({waited}) ** 2.5 * (ncpus / {cores / 8:g}) ** 1.2)"
        order = f"{urgency} / (max(walltime, 1) * ncpus ** 0.7)"
        return order if longest is None else f"{order} * (1 + (eligible_time / {ageing(self.share, longest)}) ** 5)"


@dataclass(frozen=True, slots=True)
class Points:
    """A sum of points that a site can explain to users: for hours waited, minus those for hours of walltime and cores.

    No ageing factor is needed: the job that has waited longest goes first in the end.
    """

    share: float  #: longer wait of a job with a day more of walltime, as a fraction of the longest wait
    width: float = 0.0  #: longer wait of a job of the whole machine, as a fraction of the longest wait

    def formula(self, cores: int, longest: float | None = None) -> str:
        """Return the formula with small whole numbers; without `longest` it assumes a day."""
        hours = seen(longest) / HOUR
        waited, requested = ratio(self.share * hours / 24)
        text = term(waited, "eligible_time", HOUR) + term(-requested, "walltime", HOUR)
        if self.width:
            text += term(-float(f"{waited * self.width * hours / cores:.1g}"), "ncpus")
        return text.removeprefix(" + ")


def ageing(share: float, longest: float) -> int:
    """Return the ageing constant, seconds: a fraction of the longest wait, at least half a day.

    It is rounded to whole hours near quarter powers of two, so that parts of a history mostly have equal orders.
    """
    hours = max(share * longest, LEAST) / HOUR
    return max(HOUR * round(2 ** (round(4 * math.log2(hours)) / 4)), LEAST)


def seen(longest: float | None) -> int:
    """Return the longest wait for points, seconds, rounded as `ageing` is; a day if None."""
    return ageing(1.0, DAY if longest is None else longest)


def usual_longest(longest: float, days: float) -> float:
    """Extrapolate the longest wait, seconds, of a log of so many days to half a year."""
    return float(longest * max(USUAL / max(days, FEWEST), 1.0) ** GROWTH)


@dataclass(frozen=True, slots=True)
class Classes:
    """An order of Slurm's family."""

    share: float = 0.2  #: points for halving the walltime, as a fraction of the longest wait

    def formula(self, cores: int = 0, longest: float | None = None) -> str:
        """Return the formula, a sum; without `longest` it assumes a day."""
        del cores
        points = round(self.share * seen(longest))
        return Multifactor(tuple((SHORTEST * 2**i, points * (CLASSES - i)) for i in range(CLASSES))).formula


@dataclass(frozen=True, slots=True)
class Weights:
    """An order of Maui's family; its weights are fractions of the longest wait."""

    expansion: float = 0.01  #: weight of the expansion factor
    length: float = 0.4  #: negative weight of a day of walltime

    def formula(self, cores: int = 0, longest: float | None = None) -> str:
        """Return the formula, a sum; without `longest` it assumes a day."""
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
    """An order with a reservation delay."""

    order: Order
    delay: int = 0  #: seconds

    @property
    def sums(self) -> bool:
        """Whether the order is a sum of points that a site can explain to users."""
        return isinstance(self.order, Points)

    @property
    def name(self) -> str:
        """The key in the table of priors: kind and parameters."""
        shown = [f"{each.name}={getattr(self.order, each.name)}" for each in fields(self.order)]  # type: ignore[arg-type]
        return ", ".join([type(self.order).__name__.lower(), *shown, f"delay={self.delay // HOUR}h"])


def _with_delays(*orders: Order) -> tuple[Member, ...]:
    return tuple(Member(order, delay) for order in orders for delay in (0, DAY))


AGEING = (0.35, 0.5, 0.7, 1.0, 1.4)  # shares of the longest wait

#: Families by the kind of order that a batch system can express.
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
