"""A small family of waiting-list orders that PBS can express, and how to choose one of it from a noisy month.

``(1 + (eligible_time / patience) ** 2.5 * (ncpus / eighth) ** urgency) / walltime ** length / ncpus ** width``: of
those who come, short and narrow jobs go first; who has waited for as long as jobs of his walltime can be asked to
counts twice, and soon many times, wide jobs sooner. That patience grows with the walltime is Argonne's utility function
(WFP3, ``(wait / walltime) ** 3 * cores``): with one that is as long for every job, short ones wait longer and long ones
not less.

Month to month few parameters travel: the family is small, its scores are smoothed by a quadratic surface over the
parameters (neighbours differ by the chance of who met whom), and parameters far from a good general one pay for their
distance, the less the more jobs were watched. Where many months are known, what they have in common is followed
where it has foretold better than the last one alone.

References
----------
Tang, Lan, Desai and Buettner, "Fault-aware, utility-based job scheduling on Blue Gene/P systems", Cluster 2009.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, pairwise, product
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

LENGTHS = (0.6, 1.0)  # how much shorter jobs are preferred when they come
WIDTHS = (0.35, 0.7)  # how much narrower jobs are
PATIENCE = (7.5, 15)  # hours after which a job of ten hours on an eighth of the machine counts twice
GROWTH = 0.8  # power of the walltime by which patience grows
URGENCY = 1.2  # power of the cores by which wide jobs become urgent sooner
POWER = 2.5  # of the multiples that a job has waited
LONG = 36000  # the walltime that patience is told for, seconds
SHARE = 8  # the part of the machine that it is told for: an eighth
DISTANCE = 0.12  # what a standard deviation away from `GENERAL` costs, squared, in log score
JOBS = 2500  # after as many; after twice as many, which say twice as much, it is half
RIDGE = 1e-3
LEAD = 0.2  # log score by which all months together must have foretold better than the last alone, summed


class Member(Protocol):
    """One order of a family."""

    @property
    def point(self) -> tuple[float, ...]:
        """Where it lies among the others: its parameters, as far as they are from one another."""


@dataclass(frozen=True, slots=True)
class Order:
    """One member of the family."""

    length: float = 1.0
    width: float = 0.7
    patience: float = 15
    growth: float = GROWTH
    urgency: float = URGENCY

    @property
    def point(self) -> tuple[float, ...]:
        """What members differ in, patience by its logarithm."""
        return self.length, self.width, float(np.log(self.patience))

    def formula(self, cores: int, *, weighted: bool = False) -> str:
        """Write it as a formula of names that PBS's job_sort_formula knows.

        Parameters
        ----------
        cores : int
            Of the machine.
        weighted : bool
            Multiply by the priorities of the queues.
        """
        patience = f"{self.patience * 3600 / LONG:g} * max(walltime, 1)"
        if self.growth != 1:
            patience = f"{self.patience * 3600:g} * (max(walltime, 1) / {LONG}) ** {self.growth:g}"
        waited = f"(eligible_time / ({patience})) ** {POWER:g} * (ncpus / {cores / SHARE:g}) ** {self.urgency:g}"
        size = "max(walltime, 1)" + (f" ** {self.length:g}" if self.length != 1 else "")
        if self.width:
            size = f"({size} * ncpus ** {self.width:g})"
        text = f"(1 + {waited}) / {size}"
        return f"queue_priority * {text}" if weighted else text

    def meaning(self) -> str:
        """Say in words what it does, but for the priorities of queues."""
        first = "short and narrow jobs first" if self.width else "short jobs first"
        ten, one = (f"{self.patience * (3600 * hours / LONG) ** self.growth:.2g} h" for hours in (10, 1))
        twice = f"a job of 10 h counts twice when it has waited {ten}, one of 1 h after {one}"
        return f"{first}; {twice}, and soon many times, a wide one sooner"


#: Chosen on several logs together (``python -m tests.benchmarks.general``), for no site in particular.
GENERAL = Order()


def family() -> list[Order]:
    """Return all members."""
    return [Order(*each) for each in product(LENGTHS, WIDTHS, PATIENCE)]


def member(formula: str, cores: int) -> Order | None:
    """Find the member that a formula says on a machine of so many cores, with or without priorities of queues."""
    text = formula.removeprefix("queue_priority * ")
    return next((order for order in family() if order.formula(cores) == text), None)


def meaning(formula: str, cores: int) -> str:
    """Say in words what a member's formula does; empty of any other."""
    found = member(formula, cores)
    return "" if found is None else found.meaning()


def _features(members: Sequence[Member]) -> NDArray[np.float64]:
    """Points, each parameter with mean 0 and deviation 1, shape (members, parameters)."""
    raw = np.array([member.point for member in members])
    scaled: NDArray[np.float64] = (raw - raw.mean(axis=0)) / raw.std(axis=0)
    return scaled


def smooth(members: Sequence[Member], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fit a quadratic surface over the parameters to noisy values; shapes (members, k) in and out."""
    x = _features(members)
    squares = [x[:, i] * x[:, j] for i, j in combinations_with_replacement(range(x.shape[1]), 2)]
    design = np.column_stack([np.ones(len(x)), x, *squares])
    normal = design.T @ design + RIDGE * np.eye(design.shape[1])
    fitted: NDArray[np.float64] = design @ np.linalg.solve(normal, design.T @ values)
    return fitted


def remoteness(members: Sequence[Member], centre: Member) -> NDArray[np.float64]:
    """Squared distance from a point, one of them or not, in standard deviations; shape (members,)."""
    raw = np.array([member.point for member in members])
    away: NDArray[np.float64] = (((raw - centre.point) / raw.std(axis=0)) ** 2).sum(axis=1)
    return away


def costs(members: Sequence[Member], centre: Member, price: float, jobs: float) -> NDArray[np.float64]:
    """Return what the distance from `centre` costs where so many jobs were watched, in log score.

    Parameters
    ----------
    members : sequence of Member
    centre : Member
        One of them or not.
    price : float
        For a standard deviation away, squared, after `JOBS`.
    jobs : float

    Returns
    -------
    ndarray(float64), shape (members,)
    """
    return price * JOBS / jobs * remoteness(members, centre)


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
