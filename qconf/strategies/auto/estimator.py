"""The estimator of `auto`: what each order is worth at a site, from many logs and from the site's own months.

What is estimated of each member of a family is how the logarithms of mean wait, bounded slowdown and longest wait, and
of the excess of the longest waits over what the site has seen, differ from first come, first served. The prior is the
mean of these over many machines (``prior.json``, which ``python -m studies.advice`` writes). It counts as `STRENGTH`
months of the site; every month that is known counts as one, or less where it has few jobs. A month without waits has
differences of 0 and moves nothing.
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
Prior = Callable[[tuple[Member, ...]], Floats]  #: of members, shape (members, 4)

PRIOR = Path(__file__).with_name("prior.json")
COLUMNS = ("wait", "slowdown", "longest", "excess")  #: of a prior, and of `measures.logarithms`
STRENGTH = 4.0  #: months of a site that the prior counts as
WISHED = 1.0  #: the same where the site gives queues or groups weights, of which the prior knows nothing
LATE = 0.01  #: by which reservations after a delay must be better, log score: they demand more of a site
MONTH = 2500  #: jobs from which on a month counts as one


@cache
def prior_of(members: tuple[Member, ...]) -> Floats:
    """Return the prior of these members; shape (members, 4)."""
    known = json.loads(PRIOR.read_text(encoding="utf-8"))["orders"]
    return np.array([known[member.name] for member in members])


def posterior(prior: Floats, months: Floats, jobs: Sequence[int], strength: float = STRENGTH) -> Floats:
    """Return what is expected of each member at a site, by a prior that counts as `strength` months.

    Shapes are (members, k) and (months, members, k or more): what was measured at the site in months of so many `jobs`.
    What follows the columns of the prior is the mean of the months alone.
    """
    weights = np.minimum(np.asarray(jobs) / MONTH, 1.0)
    total = (weights[:, None, None] * months).sum(axis=0)
    k = prior.shape[-1]
    own = total[:, k:] / max(weights.sum(), 1e-9)
    return np.hstack([(strength * prior + total[:, :k]) / (strength + weights.sum()), own])


def prices(expected: Floats, weights: Floats) -> Floats:
    """Return what is minimised: wait, slowdown, excess and missed targets by their weights; shape (members,).

    The longest wait itself is not among them: what is no longer than what the site has seen costs nothing.
    """
    wait, slowdown, tails = weights
    missed: Floats = expected[..., 4:].sum(axis=-1)
    return np.asarray(wait * expected[..., 0] + slowdown * expected[..., 1] + tails * expected[..., 3] + missed)


def ranked(members: Sequence[Member], expected: Floats, weights: Floats) -> Floats:
    """Return the prices by which members are chosen; shape (members,)."""
    found: Floats = prices(expected, weights) + LATE * np.array([each.delay > 0 for each in members])
    return found
