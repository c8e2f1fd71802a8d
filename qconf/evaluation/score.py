"""The log score of a schedule, which searches minimise.

It is a weighted sum of the logarithms of mean wait, of mean bounded slowdown, and of the longest waits beyond those
that the site has seen. With logarithms a tenth less counts the same at any level, so the ranking of two schedules does
not depend on the reference. A shorter mean wait is no gain if a few jobs then wait for days; a wait as long as the site
has seen costs nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parsim.metrics import Summary

#: Weights of mean wait and mean bounded slowdown in an objective.
OBJECTIVES = {"mean-wait": (1.0, 0.0), "bounded-slowdown": (0.0, 1.0), "mixed": (0.5, 0.5)}
#: The objectives in sentences.
OBJECTIVE_TEXTS = {
    "mean-wait": "mean wait",
    "bounded-slowdown": "mean bounded slowdown",
    "mixed": "the mix of wait and slowdown",
}
#: Weights of the logarithms of mean wait and mean bounded slowdown: each stabilises the other.
WEIGHTS = {"mean-wait": (1.0, 0.4), "bounded-slowdown": (0.3, 2.0), "mixed": (1.0, 1.0)}
#: The metrics of an objective.
MEANS = ("mean_wait", "mean_bounded_slowdown")
#: Their names in a summary if the site's configuration gives queues or groups of users weights.
WEIGHTED = ("weighted_mean_wait", "weighted_mean_bounded_slowdown")
LONGEST = 0.35  # weight of the logarithm of the longest wait, if no earlier months show what the site has seen
TAILS = 2.0  #: weight of the excess, unless `--tails` says otherwise
GRACE = 3600.0  # seconds added to longest waits, so that small ones count little
FLOORS = np.array([60.0, 1.0, GRACE])  # added to wait (s), slowdown and longest wait (s) before taking logarithms


def gain(after: NDArray[np.float64], before: NDArray[np.float64], objective: str) -> NDArray[np.float64]:
    """Return the fraction by which an objective falls; -1 if it was 0 and rises, NaN without jobs.

    The last axis has mean wait and mean bounded slowdown.
    """
    ratios = np.divide(after, before, out=np.where(after > 0, 2.0, 1.0), where=(before > 0) | np.isnan(before))
    gained: NDArray[np.float64] = 1.0 - (ratios * np.array(OBJECTIVES[objective])).sum(axis=-1)
    return gained


def means(summary: Summary) -> NDArray[np.float64]:
    """Return mean wait (seconds) and mean bounded slowdown, weighted if the site has weights, shape (2,)."""
    found = summary.overall
    return np.array([found.get(weighted, found[plain]) for weighted, plain in zip(WEIGHTED, MEANS, strict=True)])


def reduction(mine: Summary, theirs: Summary, objective: str) -> float:
    """Return the `gain` of one schedule over another."""
    return float(gain(means(mine), means(theirs), objective))


def log_ratios(now: NDArray[np.float64], then: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log((now + floor) / (then + floor)) of mean wait, slowdown and, if given, longest wait (last axis)."""
    floors = FLOORS[: now.shape[-1]]
    ratios: NDArray[np.float64] = np.log((now + floors) / (then + floors))
    return ratios


def excess(longest: NDArray[np.float64], seen: NDArray[np.float64]) -> float:
    """Return the mean over queues of log(longest / longest seen wait), at least 0 for each queue; shapes (Q,), seconds.

    Both waits have `GRACE` added: a slightly longer wait costs little.
    """
    return float(np.maximum(np.log((longest + GRACE) / (seen + GRACE)), 0.0).mean())


def weights(objective: str, tails: float = LONGEST) -> NDArray[np.float64]:
    """Return the weights of mean wait, slowdown and tails in the log score, shape (3,)."""
    return np.array([*WEIGHTS[objective], tails])
