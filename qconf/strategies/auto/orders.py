"""A general order of the waiting list, a small family of others, and how to choose from a noisy period.

PBS can express them all. The general order is ``(1 + (eligible_time / patience) ** 2.5 * (ncpus / eighth) ** 1.2) /
(walltime * ncpus ** 0.7)``. Of jobs that have just come, short and narrow ones go first. A job that has waited as long
as jobs of its walltime can be expected to wait counts twice, and soon many times; wide jobs sooner. That this time
grows with the walltime comes from Argonne's utility function (WFP3, ``(wait / walltime) ** 3 * cores``).

The family is ``(eligible_time + a * walltime) / walltime ** b * ncpus ** -g * (1 + (eligible_time / c) ** 2)``: the
expansion factor with a preference for short and for narrow jobs, and an ageing term, so that no job waits much longer
than c. From one period to the next few parameters travel. So the family is small; its scores are smoothed by a
quadratic surface over the parameters, since neighbours differ by chance; parameters far from the middle are penalised
by their distance, and all of them for not being the general order, the less the more jobs there are. Where many
periods are known, what they have in common is followed where it has forecast better than the last one alone.

References
----------
Tang, Lan, Desai and Buettner, "Fault-aware, utility-based job scheduling on Blue Gene/P systems", Cluster 2009.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

AGES = (0.3, 1.0, 3.0)  # a: how much of its walltime a job has waited when it comes
LENGTHS = (1.0, 1.3, 1.6, 2.0, 2.4)  # b: how much shorter jobs are preferred; 1 is the expansion factor
WIDTHS = (0.0, 0.15, 0.3, 0.5)  # g: how much narrower jobs are preferred
AGEING = (None, 96, 48, 36)  # c: hours after which waiting itself makes a job more urgent
DISTANCE_PENALTY = 0.04  # what a standard deviation away from `MIDDLE` costs, squared, in log score
PRIOR_PENALTY = 0.5  # log score by which one of the family must be better than the general order
JOBS = 2500  # on as many jobs; on twice as many, which say twice as much, by half
RIDGE = 1e-3


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


#: What the general order does, in words.
GENERAL_ORDER = (
    "this order is: short and narrow jobs first; on an eighth of the machine a job of 10 h counts twice when it has "
    "waited 15 h, one of 1 h after 2.4 h, and soon many times; a wider one sooner"
)


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
    surface = make_pipeline(PolynomialFeatures(2), Ridge(RIDGE, fit_intercept=False))
    fitted: NDArray[np.float64] = surface.fit(_features(orders), values).predict(_features(orders))
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


def prior_penalties(jobs: float, prior_penalty: float = PRIOR_PENALTY) -> NDArray[np.float64]:
    """Return the candidates' penalties where periods have so many jobs, log score, shape (candidates,)."""
    return np.array([0.0, *(prior_penalty * JOBS / jobs + DISTANCE_PENALTY * prior_distance(family()))])


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
