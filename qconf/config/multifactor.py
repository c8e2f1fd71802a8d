"""Orders that Slurm's multifactor priority can express, written as formulas.

A point of priority is a second of waiting, as far as waiting counts: ``PriorityWeightAge`` equals ``PriorityMaxAge``.
All other terms are whole points, so Slurm's rounding down to integers changes no order. Jobs of short walltimes get
points through the QOS of their class. Partitions of a higher ``PriorityTier`` go before all others.

References
----------
Slurm, "Multifactor Priority Plugin".
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Self

MAX_AGE = 30 * 86400  # seconds of waiting that count
TIER = 10_000_000_000  # points of a unit of `queue_priority`: more than Slurm's 32 bits of all other points
MOST = 2**32 - 1  # points that a priority has at most
_CLASS = re.compile(r"([0-9]+) if walltime <= ([0-9]+) else ")


@dataclass(frozen=True)
class Multifactor:
    """An order by waiting time and class of walltime.

    Attributes
    ----------
    classes : tuple of (int, int)
        Longest walltime of each class in seconds, whole minutes, and its points; the shortest and its most first.
        Longer jobs have none.
    max_age : int
        Seconds of waiting that count.
    tiers : bool
        Whether jobs of queues of higher priority go before all others.
    fair_share : int
        Points of a user who has used nothing: ``PriorityWeightFairshare``.
    """

    classes: tuple[tuple[int, int], ...] = ()
    max_age: int = MAX_AGE
    tiers: bool = False
    fair_share: int = 0

    @property
    def most(self) -> int:
        """Points of the jobs of the shortest class."""
        return max((points for _, points in self.classes), default=0)

    def behind(self, walltime: int) -> int:
        """Return the points that a job of this walltime, seconds, has less than those of the shortest class."""
        return self.most - next((points for longest, points in self.classes if walltime <= longest), 0)

    @property
    def formula(self) -> str:
        """The order as a formula."""
        tier = f"{TIER} * queue_priority + " if self.tiers else ""
        choice = "".join(f"{points} if walltime <= {longest} else " for longest, points in self.classes)
        shares = f" + {self.fair_share} * fair_share" if self.fair_share else ""
        return f"{tier}min(eligible_time, {self.max_age})" + (f" + ({choice}0)" if choice else "") + shares

    @classmethod
    def of(cls, order: str) -> Self | None:
        """Return the order that a formula is; None for one that Slurm cannot express."""
        age = re.search(r"min\(eligible_time, ([0-9]+)\)", order)
        if age is None:
            return None
        found = cls(
            tuple((int(longest), int(points)) for points, longest in _CLASS.findall(order)),
            int(age[1]),
            "queue_priority" in order,
            int(shares[1]) if (shares := re.search(r"([0-9]+) \* fair_share", order)) else 0,
        )
        return found if found.possible and _same(found.formula, order) else None

    @property
    def possible(self) -> bool:
        """Whether the classes fall, end at whole minutes, and all points fit into Slurm's priority."""
        walltimes, points = [each[0] for each in self.classes], [each[1] for each in self.classes]
        return (
            self.max_age > 0
            and walltimes == sorted(set(walltimes))
            and points == sorted(set(points), reverse=True)
            and all(each > 0 and each % 60 == 0 for each in walltimes)
            and min(points, default=1) > 0
            and self.max_age + self.most + self.fair_share < MOST
        )


def _same(formula: str, other: str) -> bool:
    """Whether two formulas differ in blanks and parentheses at most."""
    try:
        return ast.dump(ast.parse(formula, mode="eval")) == ast.dump(ast.parse(other.strip(), mode="eval"))
    except (SyntaxError, ValueError):
        return False
