"""A general order of the waiting list, a small family of others, and how to choose from a noisy period.

PBS can express all of them. The general order is ``(1 + (eligible_time / T) ** 2.5 * (ncpus / eighth) ** 1.2) /
(walltime * ncpus ** 0.7)``, where T is the wait that is usual for a walltime, and an eighth is of the machine. Of jobs
that have just come, short and narrow ones go first. A job that has waited for T counts twice, and soon many times; a
wide job sooner. That T grows with the walltime comes from Argonne's utility function (WFP3, ``(wait / walltime) ** 3 *
cores``).

The family is ``(eligible_time + a * walltime) / walltime ** b * ncpus ** -g``: the expansion factor with a preference
for short and for narrow jobs.

Each is multiplied by an ageing factor ``1 + (eligible_time / c) ** 3``, so that no job waits much longer than the
longest does first come, first served: c is a share of that wait. One month's longest wait says little about the next
one's, so it is the mean over the last ones. Where all queues have starvation periods, which a formula keeps, these are
the bound, and there is no second one: the factor is left out.

Few parameters stay good from one period to the next, so the family is small. Its scores are smoothed by a quadratic
surface over the parameters, since neighbours differ by chance. Parameters far from the middle pay a distance penalty,
and the whole family a prior penalty against the general order; the more jobs there are, the smaller is the latter.
Where many periods are known, all of them decide together if they forecast better than the last one alone.

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

AGES = (0.3, 1.0, 3.0)  # a: walltimes that a job counts as having waited when it comes
LENGTHS = (1.0, 1.3, 1.6, 2.0, 2.4)  # b: how much shorter jobs are preferred; 1 is the expansion factor
WIDTHS = (0.0, 0.15, 0.3, 0.5)  # g: how much narrower jobs are preferred
AGEING = (0.6, 0.5, 0.4, 0.3)  # c: shares of the usual longest wait after which waiting itself doubles the urgency
GENERAL_AGEING = 0.5  # the same of the general order
RECENT = 3  # periods, the last ones, whose longest waits together are the usual one
DISTANCE_PENALTY = 0.04  # in log score, for each squared standard deviation away from `MIDDLE`
PRIOR_PENALTY = 0.5  # log score by which one of the family must be better than the general order ...
JOBS = 2500  # ... on this many jobs; on twice as many, half of it
RIDGE = 1e-3


@dataclass(frozen=True, slots=True)
class Order:
    """One member of the family."""

    age: float = 1.0
    length: float = 2.0
    width: float = 0.15
    ageing: float = 0.5

    def formula(self, longest: int | None = None) -> str:
        """Return it as a formula in the names of PBS's job_sort_formula.

        `longest` is the usual longest wait, seconds; without one the order does not age.
        """
        age = "walltime" if self.age == 1 else f"{self.age:g} * walltime"
        text = f"(eligible_time + {age}) / max(walltime, 1) ** {self.length:g}"
        if self.width:
            text += f" * ncpus ** -{self.width:g}"
        return text + _ageing(self.ageing, longest)


MIDDLE = Order()


def usual_longest(waits: Sequence[float]) -> int:
    """Return the geometric mean of the longest waits of the last periods, an hour at least; seconds.

    It is rounded to whole hours near half powers of two, so that parts of a history mostly share their orders.
    """
    hours = np.maximum(np.asarray(waits[-RECENT:]) / 3600, 1.0)
    return 3600 * round(2 ** (round(2 * float(np.log2(hours).mean())) / 2))


def _ageing(share: float, longest: int | None) -> str:
    return "" if longest is None else f" * (1 + (eligible_time / {share * longest:.0f}) ** 3)"


def general(cores: int, longest: int | None = None) -> str:
    """Return the order for a machine of `cores` that was chosen on several logs together, for no site in particular.

    A job of ten hours on an eighth of the machine counts twice when it has waited fifteen hours. `longest` is the usual
    longest wait, seconds; without one the order does not age beyond that.
    """
    waited = "eligible_time / (54000 * (max(walltime, 1) / 36000) ** 0.8)"
    order = f"(1 + ({waited}) ** 2.5 * (ncpus / {cores / 8:g}) ** 1.2) / (max(walltime, 1) * ncpus ** 0.7)"
    return order + _ageing(GENERAL_AGEING, longest)


def family() -> list[Order]:
    """Return all members."""
    return [Order(a, b, g, c) for a, b, g, c in product(AGES, LENGTHS, WIDTHS, AGEING)]


def _features(orders: Sequence[Order]) -> NDArray[np.float64]:
    """Parameters, each with mean 0 and deviation 1, shape (members, 4)."""
    raw = np.array([[np.log(o.age), o.length, o.width, np.log(o.ageing)] for o in orders])
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


def candidates(cores: int, longest: int | None = None) -> list[str]:
    """Return all orders that are tried: the general one, then the family; without `longest` some are the same."""
    return [general(cores, longest), *(order.formula(longest) for order in family())]


def smoothed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Smooth the candidates' values except the general order's; shapes (candidates, k) in and out."""
    return np.vstack([values[:1], smooth(family(), values[1:])])


def prior_penalties(jobs: float, prior_penalty: float = PRIOR_PENALTY) -> NDArray[np.float64]:
    """Return the candidates' penalties for periods of this many jobs, in log score, shape (candidates,)."""
    return np.array([0.0, *(prior_penalty * JOBS / jobs + DISTANCE_PENALTY * prior_distance(family()))])


def forecast_skill(scores: Sequence[NDArray[np.float64]], costs: NDArray[np.float64]) -> float:
    """Return how much better all periods so far forecast the next one than the last alone does: log scores, summed.

    `scores` are the smoothed scores of each period, the oldest first; all arrays have the shape (candidates,). `costs`
    are penalties, added once to the sum over periods: the more periods, the less they weigh.
    """
    total, found = np.zeros(len(costs)), 0.0
    for known, following in pairwise(scores):
        total += known
        found += following[np.argmin(known + costs)] - following[np.argmin(total + costs)]
    return float(found)
