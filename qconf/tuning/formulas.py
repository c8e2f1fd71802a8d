"""A small family of waiting-list orders that PBS can express, and how to choose one of it from a noisy month.

``(eligible_time + a * walltime) / walltime ** b * ncpus ** -g * (1 + (eligible_time / c) ** 2)``: the expansion factor
with a taste for short and for narrow jobs, and an impatience that in the end lets nobody wait much longer than c. Month
to month few parameters travel: the family is small, its scores are smoothed by a quadratic surface over the parameters
(neighbours differ by the chance of who met whom), and parameters far from a good general one pay for their distance.
Where many months are known, what they have in common is followed where it has foretold better than the last one alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, pairwise, product

import numpy as np
from numpy.typing import NDArray

AGES = (0.3, 1.0, 3.0)  # a: how much of its walltime a job has waited when it comes
LENGTHS = (1.0, 1.3, 1.6, 2.0, 2.4)  # b: how much shorter jobs are preferred; 1 is the expansion factor
WIDTHS = (0.0, 0.15, 0.3, 0.5)  # g: how much narrower jobs are preferred
PATIENCE = (None, 96, 48, 36)  # c: hours after which waiting itself makes a job more urgent
DISTANCE = 0.04  # what a standard deviation away from `GENERAL` costs, squared, in log score
RIDGE = 1e-3
LEAD = 0.2  # log score by which all months together must have foretold better than the last alone, summed


@dataclass(frozen=True, slots=True)
class Order:
    """One member of the family."""

    age: float = 1.0
    length: float = 2.0
    width: float = 0.15
    patience: int | None = 48

    def formula(self, *, weighted: bool = False) -> str:
        """Write it as a formula of names that PBS's job_sort_formula knows; `weighted` by the queues' priorities."""
        age = "walltime" if self.age == 1 else f"{self.age:g} * walltime"
        text = f"(eligible_time + {age}) / max(walltime, 1) ** {self.length:g}"
        if self.width:
            text += f" * ncpus ** -{self.width:g}"
        if self.patience is not None:
            text += f" * (1 + (eligible_time / {self.patience * 3600}) ** 2)"
        return f"queue_priority * {text}" if weighted else text


#: Good on every public log that it was tried on, with nothing tuned.
GENERAL = Order()


def family() -> list[Order]:
    """Return all members."""
    return [Order(a, b, g, c) for a, b, g, c in product(AGES, LENGTHS, WIDTHS, PATIENCE)]


def _features(orders: Sequence[Order]) -> NDArray[np.float64]:
    """Parameters, each with mean 0 and deviation 1, shape (members, 4)."""
    raw = np.array([[np.log(o.age), o.length, o.width, 0.0 if o.patience is None else o.patience**-2] for o in orders])
    scaled: NDArray[np.float64] = (raw - raw.mean(axis=0)) / raw.std(axis=0)
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
    """Squared distance from `GENERAL` in standard deviations, shape (members,)."""
    x = _features(orders)
    away: NDArray[np.float64] = ((x - x[list(orders).index(GENERAL)]) ** 2).sum(axis=1)
    return away


def lead(scores: Sequence[NDArray[np.float64]], costs: NDArray[np.float64]) -> float:
    """How much better all months up to one foretold the next than that one alone did: log scores, summed.

    Parameters
    ----------
    scores : sequence of ndarray(float64), shape (members,)
        One for each month, the oldest first; smoothed.
    costs : ndarray(float64), shape (members,)
        What members pay whatever the months say: the less, the more months there are.
    """
    total, found = np.zeros(len(costs)), 0.0
    for known, following in pairwise(scores):
        total += known
        found += following[np.argmin(known + costs)] - following[np.argmin(total + costs)]
    return float(found)
