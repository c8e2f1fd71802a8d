"""The log score of a schedule: what is minimised.

It adds the logarithms of mean wait, mean bounded slowdown and what the longest waits are beyond those that the site has
seen, weighted. A tenth less of one is worth the same whatever the others are, so that which of two schedules is better
does not depend on the reference. A shorter mean wait is no gain where a few jobs wait for days in return; a wait as
long as the site knows costs nothing.
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
#: What a summary calls them where the site's configuration gives queues or groups of users weights.
WEIGHTED = ("weighted_mean_wait", "weighted_mean_bounded_slowdown")
LONGEST = 0.35  # weight of the logarithm of the longest wait, where no months before tell what the site has seen
TAILS = 2.0  #: weight of the excess, unless `--tails` says otherwise
GRACE = 3600.0  # seconds that the longest waits may grow in any case
FLOORS = np.array([60.0, 1.0, GRACE])  # added before logarithms are taken: seconds, a slowdown, seconds


def gain(after: NDArray[np.float64], before: NDArray[np.float64], objective: str) -> NDArray[np.float64]:
    """Return the share by which an objective falls; -1 where it was 0 and rises, NaN without jobs.

    The last axis has mean wait and mean bounded slowdown.
    """
    ratios = np.divide(after, before, out=np.where(after > 0, 2.0, 1.0), where=(before > 0) | np.isnan(before))
    gained: NDArray[np.float64] = 1.0 - (ratios * np.array(OBJECTIVES[objective])).sum(axis=-1)
    return gained


def means(summary: Summary) -> NDArray[np.float64]:
    """Return mean wait (seconds) and mean bounded slowdown, weighted where the site has weights, shape (2,)."""
    found = summary.overall
    return np.array([found.get(weighted, found[plain]) for weighted, plain in zip(WEIGHTED, MEANS, strict=True)])


def reduction(mine: Summary, theirs: Summary, objective: str) -> float:
    """Return the `gain` of one schedule over another."""
    return float(gain(means(mine), means(theirs), objective))


def log_ratios(now: NDArray[np.float64], then: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compare schedules by mean wait, slowdown and longest wait (the last axis, of length 3 or only the first 2)."""
    floors = FLOORS[: now.shape[-1]]
    ratios: NDArray[np.float64] = np.log((now + floors) / (then + floors))
    return ratios


def excess(longest: NDArray[np.float64], seen: NDArray[np.float64]) -> float:
    """Return the mean over queues of the logarithms of longest waits over those that were seen; shapes (Q,).

    A wait that is not longer, or not by much, counts 0.
    """
    return float(np.maximum(np.log((longest + GRACE) / (seen + GRACE)), 0.0).mean())


def weights(objective: str, tails: float = LONGEST) -> NDArray[np.float64]:
    """Weights of mean wait, slowdown and tails, shape (3,)."""
    return np.array([*WEIGHTS[objective], tails])
