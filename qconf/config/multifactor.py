"""Orders that Slurm's multifactor priority can express, written as formulas.

A point of priority is a second of waiting: ``PriorityWeightAge`` equals ``PriorityMaxAge``. All other terms but fair
share and TRES are whole points, so Slurm's rounding down to integers changes no order. Short walltimes, few cores and
queues of a higher priority get points; Slurm gives the other jobs a nice value instead. Short expected run times get
points as a site factor. Partitions of a higher ``PriorityTier`` go before all others.

References
----------
Slurm, "Multifactor Priority Plugin".
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Self

from parsim.model.formula import expression

MAX_AGE = 30 * 86400  # seconds of waiting that count
TIER = 10_000_000_000  # points of a unit of `queue_priority` with tiers: more than all others in Slurm's 32 bits
MOST = 2**32 - 1  # most points of a priority
MOST_ADDED = 2**31 - 3  # most points of a site factor
_TRES = re.compile(r"([0-9]+) \* (ncpus|ngpus|mem) / ([0-9]+)")


def _classes(name: str, order: str) -> tuple[tuple[int, int], ...]:
    """Return (bound, points) of each class of a variable in a formula."""
    found = re.findall(rf"([0-9]+) if {name} <= ([0-9]+) else ", order)
    return tuple((int(bound), int(points)) for points, bound in found)


@dataclass(frozen=True)
class Multifactor:
    """A multifactor order: waiting time, and points by classes of jobs."""

    #: Longest walltime of each class in seconds, whole minutes, and its points. Bounds rise and points fall; longer
    #: jobs get none.
    classes: tuple[tuple[int, int], ...] = ()
    max_age: int = MAX_AGE  #: longest waiting time that counts, seconds
    tiers: bool = False  #: whether jobs of queues of higher priority go before all others
    sizes: tuple[tuple[int, int], ...] = ()  #: most cores of each class of sizes, and its points, as in `classes`
    weight: int = 0  #: points for a unit of a queue's priority
    fair_share: int = 0  #: points of a user without any use: ``PriorityWeightFairshare``
    qos: int = 0  #: points for a unit of a QOS's priority; times the greatest priority they are ``PriorityWeightQOS``
    #: ``ncpus``, ``ngpus`` or ``mem``, the points of a job that requests the total, and this total:
    #: ``PriorityWeightTRES``.
    tres: tuple[tuple[str, int, int], ...] = ()
    expected: tuple[tuple[int, int], ...] = ()  #: longest expected run time of each class, seconds, and its points

    @property
    def bonus(self) -> int:
        """Most points for an expected run time."""
        return max((points for _, points in self.expected), default=0)

    @property
    def most(self) -> int:
        """Most points for walltime and size together."""
        return sum(max((points for _, points in classes), default=0) for classes in (self.classes, self.sizes))

    def nice(self, walltime: int, cores: int) -> int:
        """Return `most` minus the points of a job of this walltime (seconds) and size: its nice value."""
        pairs = ((self.classes, walltime), (self.sizes, cores))
        return self.most - sum(next((points for bound, points in each if value <= bound), 0) for each, value in pairs)

    @property
    def formula(self) -> str:
        """The order as a formula."""
        terms = [f"{TIER} * queue_priority"] * self.tiers + [f"{self.weight} * queue_priority"] * (self.weight > 0)
        terms.append(f"min(eligible_time, {self.max_age})")
        for name, classes in (("walltime", self.classes), ("ncpus", self.sizes), ("estimate", self.expected)):
            choice = "".join(f"{points} if {name} <= {bound} else " for bound, points in classes)
            terms += [f"({choice}0)"] if choice else []
        terms += [f"{self.fair_share} * fair_share"] * (self.fair_share > 0)
        terms += [f"{self.qos} * qos_priority"] * (self.qos > 0)
        return " + ".join([*terms, *(f"{points} * {name} / {total}" for name, points, total in self.tres)])

    @classmethod
    def of(cls, order: str) -> Self | None:
        """Return the order of a formula; None if Slurm cannot express it."""
        age = re.search(r"min\(eligible_time, ([0-9]+)\)", order)
        if age is None:
            return None
        factors = [int(factor) for factor in re.findall(r"([0-9]+) \* queue_priority", order)]
        found = cls(
            _classes("walltime", order),
            int(age[1]),
            TIER in factors,
            _classes("ncpus", order),
            next((factor for factor in factors if factor != TIER), 0),
            int(shares[1]) if (shares := re.search(r"([0-9]+) \* fair_share", order)) else 0,
            int(points[1]) if (points := re.search(r"([0-9]+) \* qos_priority", order)) else 0,
            tuple((name, int(points), int(total)) for points, name, total in _TRES.findall(order)),
            _classes("estimate", order),
        )
        return found if found.possible and _same(found.formula, order) else None

    @property
    def possible(self) -> bool:
        """Whether all classes are valid, and all points fit into Slurm's priority."""
        return (
            self.max_age > 0
            and _fall(self.classes, 60)
            and _fall(self.sizes, 1)
            and _fall(self.expected, 1)
            and self.bonus < MOST_ADDED
            and all(points > 0 and total > 0 for _, points, total in self.tres)
            and sum((self.max_age, self.most, self.bonus, self.weight, self.fair_share, *(row[1] for row in self.tres)))
            < MOST
        )


def _fall(classes: tuple[tuple[int, int], ...], unit: int) -> bool:
    """Whether bounds are whole multiples of `unit` and rise, and points fall."""
    bounds, points = [each[0] for each in classes], [each[1] for each in classes]
    return (
        bounds == sorted(set(bounds))
        and points == sorted(set(points), reverse=True)
        and all(each > 0 and each % unit == 0 for each in bounds)
        and min(points, default=1) > 0
    )


def _same(formula: str, other: str) -> bool:
    """Whether two formulas are equal up to blanks, parentheses and the order of a sum's terms."""
    try:
        first, second = (expression(text.strip()) for text in (formula, other))
    except (SyntaxError, ValueError):
        return False
    return sorted(map(ast.dump, _addends(first))) == sorted(map(ast.dump, _addends(second)))


def _addends(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_addends(node.left), *_addends(node.right)]
    return [node]
