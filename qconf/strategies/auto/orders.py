"""The general orders of the waiting list, of which `auto` chooses one.

PBS can express them: ``(1 + (eligible_time / T) ** 2.5 * (ncpus / eighth) ** 1.2) / (walltime * ncpus ** 0.7) * (1 +
(eligible_time / c) ** 5)``, where T is the wait that is usual for a walltime, and an eighth is of the machine. Of jobs
that have just come, short and narrow ones go first. A job that has waited for T counts twice, and soon many times; a
wide job sooner. That T grows with the walltime comes from Argonne's utility function (WFP3, ``(wait / walltime) ** 3 *
cores``). The last factor is ageing: c is a share of the longest wait to be expected in half a year, so that no job
waits much longer. Where all queues have starvation periods, which a formula keeps, these are the bound, and the factor
is left out.

References
----------
Tang, Lan, Desai and Buettner, "Fault-aware, utility-based job scheduling on Blue Gene/P systems", Cluster 2009.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from qconf.config.points import ratio, term

HOUR, DAY = 3600, 86400
LEAST = 12 * HOUR  #: of the ageing constant: quiet months do not make an order first come, first served
#: The longest wait of so many days is about ``(days / fewer) ** GROWTH`` times that of fewer (on thirteen logs).
USUAL, FEWEST, GROWTH = 180, 10, 0.37  # days, and an exponent


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
