"""The estimator of `auto`: the expected effect of each order at a site, from many logs and from the site's months.

For each member of a family it estimates the differences to first come, first served in the logarithms of mean wait,
bounded slowdown and longest wait, and the excess of the longest waits over those that the site has seen. The prior is
the mean over many machines (``prior.json``, written by ``python -m studies.advice``) and has the weight of `STRENGTH`
months. Each known month of the site has weight one, or less if it has few jobs. A month without waits has differences
of 0 and changes no ranking.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qconf.strategies.auto.families import Member

Floats = NDArray[np.float64]
Prior = Callable[[tuple[Member, ...]], Floats]  #: returns the prior of members, shape (members, 4)

PRIOR = Path(__file__).with_name("prior.json")
COLUMNS = ("wait", "slowdown", "longest", "excess")  #: columns of a prior and of `measures.logarithms`
STRENGTH = 4.0  #: weight of the prior, in months of a site
WISHED = 1.0  #: weight of the prior if the site weighs queues or groups, which the prior ignores
LATE = 0.01  #: penalty (log score) of a reservation delay, which demands more of a site
MONTH = 2500  #: least jobs of a month with weight one


@cache
def prior_of(members: tuple[Member, ...]) -> Floats:
    """Return the prior of these members; shape (members, 4)."""
    known = json.loads(PRIOR.read_text(encoding="utf-8"))["orders"]
    return np.array([known[member.name] for member in members])


def posterior(prior: Floats, months: Floats, jobs: Sequence[int], strength: float = STRENGTH) -> Floats:
    """Return the expected effects of each member at a site: means of `prior` and months, weighted.

    Shapes are (members, k) and (months, members, k or more); a month counts by its number of `jobs`, the prior as
    `strength` months. Columns beyond those of the prior are means over the months alone.
    """
    weights = np.minimum(np.asarray(jobs) / MONTH, 1.0)
    total = (weights[:, None, None] * months).sum(axis=0)
    k = prior.shape[-1]
    own = total[:, k:] / max(weights.sum(), 1e-9)
    return np.hstack([(strength * prior + total[:, :k]) / (strength + weights.sum()), own])


def prices(expected: Floats, weights: Floats) -> Floats:
    """Return the log score to minimise: wait, slowdown, excess and missed targets by their weights, shape (members,).

    The longest wait has no weight of its own: a wait as long as the site has seen costs nothing.
    """
    wait, slowdown, tails = weights
    missed: Floats = expected[..., 4:].sum(axis=-1)
    return np.asarray(wait * expected[..., 0] + slowdown * expected[..., 1] + tails * expected[..., 3] + missed)


def ranked(members: Sequence[Member], expected: Floats, weights: Floats) -> Floats:
    """Return the log scores by which members are chosen, with the penalty of a delay, shape (members,)."""
    found: Floats = prices(expected, weights) + LATE * np.array([each.delay > 0 for each in members])
    return found
