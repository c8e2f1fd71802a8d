"""A general waiting-list order, a small family of others, and how to choose from a noisy training.

PBS can express them all. The general one is ``(1 + (eligible_time / patience) ** 2.5 * (ncpus / eighth) ** 1.2) /
(walltime * ncpus ** 0.7)``: of those who come short and narrow jobs go first, and who has waited for as long as jobs of
his walltime can be asked to counts twice and soon many times, wide jobs sooner. That patience grows with the walltime
it has from Argonne's utility function (WFP3, ``(wait / walltime) ** 3 * cores``).

The family is ``(eligible_time + a * walltime) / walltime ** b * ncpus ** -g * (1 + (eligible_time / c) ** 2)``: the
expansion factor with a taste for short and for narrow jobs, and an impatience that in the end lets nobody wait much
longer than c. TrainingSet to training few parameters travel: the family is small, its scores are smoothed by a quadratic surface
over the parameters (neighbours differ by the chance of who met whom), parameters far from the middle pay for their
distance, and all of them for not being the general order, the less the more jobs were watched. Where many months are
known, what they have in common is followed where it has forecast_skill better than the last one alone.

References
----------
Tang, Lan, Desai and Buettner, "Fault-aware, utility-based job scheduling on Blue Gene/P systems", Cluster 2009.
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
AGEING = (None, 96, 48, 36)  # c: hours after which waiting itself makes a job more urgent
DISTANCE = 0.04  # what a standard deviation away from `MIDDLE` costs, squared, in log score
PRIOR_PENALTY = 0.5  # log score by which one of the family must be better than the general order
JOBS = 2500  # on as many jobs; on twice as many, which say twice as much, by half
RIDGE = 1e-3
LEAST_SKILL = 0.2  # log score by which all months together must have forecast_skill better than the last alone, summed


@dataclass(frozen=True, slots=True)
class Order:
    """One member of the family."""

    age: float = 1.0
    length: float = 2.0
    width: float = 0.15
    ageing: int | None = 48

    def formula(self) -> str:
        """Write it as a formula of names that PBS's job_sort_formula knows."""
        age = "walltime" if self.age == 1 else f"{self.age:g} * walltime"
        text = f"(eligible_time + {age}) / max(walltime, 1) ** {self.length:g}"
        if self.width:
            text += f" * ncpus ** -{self.width:g}"
        if self.ageing is not None:
            text += f" * (1 + (eligible_time / {self.ageing * 3600}) ** 2)"
        return text


MIDDLE = Order()


def general(cores: int) -> str:
    """Write the order that was chosen on several logs together, for no site in particular, for a machine of `cores`.

    A job of ten hours on an eighth of the machine counts twice when it has waited fifteen hours.
    """
    waited = "eligible_time / (54000 * (max(walltime, 1) / 36000) ** 0.8)"
    return f"(1 + ({waited}) ** 2.5 * (ncpus / {cores / 8:g}) ** 1.2) / (max(walltime, 1) * ncpus ** 0.7)"


def family() -> list[Order]:
    """Return all members."""
    return [Order(a, b, g, c) for a, b, g, c in product(AGES, LENGTHS, WIDTHS, AGEING)]


def _features(orders: Sequence[Order]) -> NDArray[np.float64]:
    """Parameters, each with mean 0 and deviation 1, shape (members, 4)."""
    raw = np.array([[np.log(o.age), o.length, o.width, 0.0 if o.ageing is None else o.ageing**-2] for o in orders])
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


def prior_distance(orders: Sequence[Order]) -> NDArray[np.float64]:
    """Squared distance from `MIDDLE` in standard deviations, shape (members,)."""
    x = _features(orders)
    away: NDArray[np.float64] = ((x - x[list(orders).index(MIDDLE)]) ** 2).sum(axis=1)
    return away


def candidates(cores: int) -> list[str]:
    """Write all orders that are tried: the general one, then the family."""
    return [general(cores), *(order.formula() for order in family())]


def smoothed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Smooth what the candidates gave, but for the general order's; shapes (candidates, k) in and out."""
    return np.vstack([values[:1], smooth(family(), values[1:])])


def costs(jobs: float) -> NDArray[np.float64]:
    """Return what the candidates pay where months of so many jobs were watched, log score, shape (candidates,)."""
    return np.array([0.0, *(PRIOR_PENALTY * JOBS / jobs + DISTANCE * prior_distance(family()))])


def forecast_skill(scores: Sequence[NDArray[np.float64]], costs: NDArray[np.float64]) -> float:
    """How much better all months up to one forecast_skill the next than that one alone did: log scores, summed.

    Parameters
    ----------
    scores : sequence of ndarray(float64), shape (candidates,)
        One for each training, the oldest first; smoothed.
    costs : ndarray(float64), shape (candidates,)
        What they pay whatever the months say: the less, the more months there are.
    """
    total, found = np.zeros(len(costs)), 0.0
    for known, following in pairwise(scores):
        total += known
        found += following[np.argmin(known + costs)] - following[np.argmin(total + costs)]
    return float(found)
