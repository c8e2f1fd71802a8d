"""A small family of waiting-list orders that PBS can express, and how to choose one of it from a noisy month.

``queue_priority ** p * (eligible_time + a * walltime) / walltime ** b * ncpus ** -g``, and a number of hours from which
the longest waiting goes first. Month to month few parameters travel: the family is small, its scores are smoothed by a
quadratic surface over the parameters (neighbours differ by the chance of who met whom), and parameters far from a good
general one pay for their distance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product

import numpy as np
from numpy.typing import NDArray

AGES = (0.3, 1.0, 3.0)  # a: how much of its walltime a job has waited when it comes
LENGTHS = (1.0, 1.3, 1.6, 2.0)  # b: how much shorter jobs are preferred; 1 is the expansion factor
WIDTHS = (0.0, 0.15, 0.3, 0.5)  # g: how much narrower jobs are preferred
PATIENCE = (None, 96, 48)  # hours of waiting after which a job goes before all that waited less
PRIORITIES = (0, 1)  # p: whether the queues' priorities count
DISTANCE = 0.02  # what a standard deviation away from `GENERAL` costs, squared, in log score
RIDGE = 1e-3


@dataclass(frozen=True, slots=True)
class Order:
    """One member of the family."""

    age: float = 1.0
    length: float = 1.3
    width: float = 0.0
    patience: int | None = None
    priority: int = 0

    def formula(self) -> str:
        """Write it as a formula of names that PBS's job_sort_formula knows."""
        age = "walltime" if self.age == 1 else f"{self.age:g} * walltime"
        text = f"(eligible_time + {age}) / max(walltime, 1) ** {self.length:g}"
        if self.width:
            text += f" * ncpus ** -{self.width:g}"
        if self.priority:
            text = f"queue_priority * {text}"
        if self.patience is not None:
            text = f"(1e12 + eligible_time) if eligible_time > {self.patience * 3600} else {text}"
        return text


#: Good on every public log that it was tried on, with nothing tuned.
GENERAL = Order()


def family(*, priorities: bool) -> list[Order]:
    """Return all members; without `priorities` only those that ignore the queues' priorities."""
    powers = PRIORITIES if priorities else PRIORITIES[:1]
    return [Order(a, b, g, x, p) for p, b, g, a, x in product(powers, LENGTHS, WIDTHS, AGES, PATIENCE)]


def _features(orders: Sequence[Order]) -> NDArray[np.float64]:
    """Parameters, each with mean 0 and deviation 1 (0 where all are alike), shape (members, 5)."""
    raw = np.array([[o.length, o.width, np.log(o.age), PATIENCE.index(o.patience), o.priority] for o in orders])
    spread = raw.std(axis=0)
    scaled: NDArray[np.float64] = (raw - raw.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return scaled


def smooth(orders: Sequence[Order], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fit a quadratic surface over the parameters to noisy values; shapes (members, k) in and out."""
    x = _features(orders)
    squares = [x[:, i] * x[:, j] for i, j in combinations_with_replacement(range(x.shape[1]), 2)]
    design = np.column_stack([np.ones(len(x)), x, *squares])
    normal = design.T @ design + RIDGE * np.eye(design.shape[1])
    fitted: NDArray[np.float64] = design @ np.linalg.solve(normal, design.T @ values)
    return fitted


def remoteness(orders: Sequence[Order]) -> NDArray[np.float64]:
    """Squared distance from `GENERAL` in standard deviations, shape (members,); priorities are no distance."""
    x = _features(orders)[:, :4]
    away: NDArray[np.float64] = ((x - x[list(orders).index(GENERAL)]) ** 2).sum(axis=1)
    return away
