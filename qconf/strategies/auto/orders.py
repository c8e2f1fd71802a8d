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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

AGES = (0.3, 1.0, 3.0)  # a: walltimes that a job counts as having waited when it comes
LENGTHS = (1.0, 1.3, 1.6, 2.0, 2.4)  # b: how much shorter jobs are preferred; 1 is the expansion factor
WIDTHS = (0.0, 0.15, 0.3, 0.5)  # g: how much narrower jobs are preferred
AGEING = (0.6, 0.5, 0.4, 0.3)  # c: shares of the usual longest wait after which waiting itself doubles the urgency
GENERAL_AGEING = 0.5  # the same of the general order
RECENT = 3  # periods, the last ones, whose longest waits together are the usual one
DISTANCE_PENALTY = 0.04  # in log score, for each squared standard deviation away from the middle
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

    @property
    def parameters(self) -> tuple[float, ...]:
        """Logarithms of what is a factor."""
        return float(np.log(self.age)), self.length, self.width, float(np.log(self.ageing))


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


class Member(Protocol):
    """An order of a family."""

    def formula(self, longest: int | None = None) -> str:
        """Return it as a formula; `longest` is the usual longest wait, seconds."""

    @property
    def parameters(self) -> tuple[float, ...]:
        """What tells it from the others, in units in which steps are alike."""


@dataclass(frozen=True, eq=False)
class Family:
    """A few orders that differ in parameters, and the general order before them, which they must beat."""

    general: Callable[[int, int | None], str]  #: of the cores of a machine, and the usual longest wait, seconds
    members: tuple[Member, ...]
    middle: Member  #: one of them, from which the distance penalty counts

    def candidates(self, cores: int, longest: int | None = None) -> list[str]:
        """Return all orders that are tried: the general one, then the members; without `longest` some are the same."""
        return [self.general(cores, longest), *(member.formula(longest) for member in self.members)]

    @cached_property
    def features(self) -> NDArray[np.float64]:
        """Parameters, each with mean 0 and deviation 1, shape (members, k)."""
        raw = np.array([member.parameters for member in self.members])
        scaled: NDArray[np.float64] = (raw - raw.mean(axis=0)) / raw.std(axis=0)
        return scaled

    @cached_property
    def distance(self) -> NDArray[np.float64]:
        """Squared distance from the middle in standard deviations, shape (members,)."""
        away: NDArray[np.float64] = ((self.features - self.features[self.members.index(self.middle)]) ** 2).sum(axis=1)
        return away

    @cached_property
    def smoother(self) -> NDArray[np.float64]:
        """What takes the members' values to those of the ridge regression on all terms up to the second degree."""
        terms = np.column_stack([np.ones(len(self.members)), self.features])
        rows, columns = np.triu_indices(terms.shape[1])
        terms = terms[:, rows] * terms[:, columns]
        penalised = terms.T @ terms + RIDGE * np.eye(terms.shape[1])
        smoother: NDArray[np.float64] = terms @ np.linalg.solve(penalised, terms.T)
        return smoother

    def smooth(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Fit a quadratic surface over the parameters to the members' noisy values; shapes (members, n) in and out."""
        fitted: NDArray[np.float64] = self.smoother @ values
        return fitted

    def smoothed(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Smooth the candidates' values except the general order's; shapes (candidates, n) in and out."""
        return np.vstack([values[:1], self.smooth(values[1:])])

    def penalties(self, jobs: float, prior_penalty: float = PRIOR_PENALTY) -> NDArray[np.float64]:
        """Return the candidates' penalties for periods of this many jobs, in log score, shape (candidates,)."""
        return np.array([0.0, *(prior_penalty * JOBS / jobs + DISTANCE_PENALTY * self.distance)])


#: What PBS's ``job_sort_formula`` can express.
FORMULAS = Family(general, tuple(Order(*each) for each in product(AGES, LENGTHS, WIDTHS, AGEING)), Order())


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
