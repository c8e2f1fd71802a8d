"""Likely run times: the fraction of its walltime that a job runs, from similar jobs that have ended.

`RunTimes` gives quantiles of the fraction, to draw from; `Means` gives its mean, for orders.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from qconf.config import SiteConfig
from qconf.history import History

Floats = NDArray[np.float64]
Column = NDArray[np.int64]
Kind = tuple[object, ...]
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

MOST = 60  #: number of last jobs of a kind that count
HALF = 15.0  #: half-life of a job's weight, in later jobs of its kind
PRIOR = 4.0  #: weight of all less similar kinds together, in jobs
STEPS = 32  #: steps between the quantiles
TOGETHER = 0.3  #: correlation of a user's run times: jobs of a campaign succeed or fail together


def kinds(user: object, name: object, cores: int, walltime: int) -> list[Kind]:
    """Return the kinds that a job belongs to, the most similar first: by user, name, size and walltime."""
    size = int(cores).bit_length()
    found: list[Kind] = [(user, name, size, walltime), (user, name, walltime)] if name else []
    return [*found, (user, size, walltime), (user, walltime), (user, size), (user,), (size, walltime // 3600), ()]


@dataclass
class RunTimes:
    """Fractions of their walltimes that jobs ran, by kind of job."""

    shares: dict[Kind, list[float]] = field(default_factory=dict)
    #: Fractions run so far by running jobs: if only the ended ones counted, short run times would prevail.
    open: dict[Kind, list[float]] = field(default_factory=dict)

    def add(self, user: str, name: str, cores: int, walltime: int, share: float) -> None:
        """Train on a job that ran for the fraction `share` of its walltime."""
        for kind in kinds(user, name, cores, walltime):
            known = self.shares.setdefault(kind, [])
            known.append(min(1.0, max(1e-6, share)))
            if len(known) > 4 * MOST:
                del known[: len(known) - MOST]

    def watch(self, running: Iterable[tuple[str, str, int, int, int]]) -> None:
        """Set the running jobs: user, name, cores, walltime and seconds run so far of each."""
        self.open = {}
        for user, name, cores, walltime, elapsed in running:
            for kind in kinds(user, name, cores, walltime):
                self.open.setdefault(kind, []).append(elapsed / max(1, walltime))

    def quantiles(self, user: str, name: str, cores: int, walltime: int, elapsed: int = 0) -> Floats:
        """Return quantiles, at equal steps, of the fraction of its walltime that such a job runs, shape (STEPS + 1,).

        They are above the fraction of `elapsed`. The more jobs of a kind are known, the more weight it has; less
        similar kinds share the remaining weight.
        """
        least = elapsed / max(1, walltime)
        shares, weights, closed, rest = [], [], [], 1.0
        for kind in kinds(user, name, cores, walltime):
            ended = np.array(self.shares.get(kind, ())[-MOST:])
            unended = np.array(self.open.get(kind, ())[-MOST:])
            weight = np.concatenate((AGED[MOST - ended.size :], np.ones(unended.size)))
            both = np.concatenate((ended, unended))
            longer = both > least
            total = float(weight[longer].sum())
            if not total:
                continue
            part = rest * total / (total + PRIOR)
            shares.append(both[longer])
            weights.append(weight[longer] * (part / total))
            closed.append((np.arange(both.size) < ended.size)[longer])
            rest -= part
        if not shares:
            return least + (1.0 - least) * np.linspace(0, 1, STEPS + 1)
        return final_fractions(np.concatenate(shares), np.concatenate(weights), np.concatenate(closed))


ALL = "*"  #: stands for all users


def likeness(user: str, cores: int, walltime: int) -> list[tuple[str, str]]:
    """Return the classes (user, text of size and walltime) of a job for `Means`, the most similar first."""
    size = int(cores).bit_length()
    words = f"{size}:{walltime}", f":{walltime}", f"{size}:", ":"
    return [*((user, word) for word in words), (ALL, f"{size}:{walltime // 3600}h"), (ALL, ":")]


@dataclass
class Means:
    """Mean fractions of their walltimes that jobs ran, by class of job, weighted as in `RunTimes`."""

    #: Weight of the jobs and mean fraction, by class (`likeness`).
    known: dict[tuple[str, str], tuple[float, float]] = field(default_factory=dict)

    def add(self, user: str, name: str, cores: int, walltime: int, share: float) -> None:
        """Train on a job that ran for the fraction `share` of its walltime; the name is ignored."""
        del name
        for kind in likeness(user, cores, walltime):
            weight, mean = self.known.get(kind, (0.0, 0.0))
            weight = weight * AGED[-2] + 1
            self.known[kind] = weight, mean + (min(1.0, share) - mean) / weight

    def estimate(self, user: str, name: str, cores: int, walltime: int) -> int:
        """Return the expected run time of a job in seconds, at most its walltime; 0 before any training."""
        del name
        share, rest = 0.0, 1.0
        for kind in likeness(user, cores, walltime):
            weight, mean = self.known.get(kind, (0.0, 0.0))
            part = rest * weight / (weight + PRIOR)
            share, rest = share + part * mean, rest - part
        return max(1, round(walltime * share / (1 - rest))) if rest < 1 else 0

    def lines(self) -> list[str]:
        """Return the model as text, a line for each user: class, weight and mean, separated by tabs."""
        found: dict[str, list[str]] = {}
        for (user, word), (weight, mean) in self.known.items():
            found.setdefault(user, [user]).append(f"{word}={weight:.3g},{mean:.3g}")
        return ["\t".join(words) + "\t" for _, words in sorted(found.items())]


class Learner(Protocol[T_co]):
    """A model that is trained job by job, and predicts a job."""

    def add(self, user: str, name: str, cores: int, walltime: int, share: float) -> None:
        """Train on a job that ran for the fraction `share` of its walltime."""

    def estimate(self, user: str, name: str, cores: int, walltime: int) -> T_co:
        """Predict a job."""


def predictions(history: History, model: Learner[T]) -> list[T]:
    """Predict each job of a history from the jobs that ended before its submission; `model` ends up trained on all."""
    jobs = history.jobs
    rows = list(zip(*(jobs[name].tolist() for name in ("user", "cores", "walltime", "runtime")), strict=True))
    end = jobs["end"].to_numpy(dtype=np.int64)
    ended = np.flatnonzero(end >= 0)
    ended = ended[np.argsort(end[ended], kind="stable")]
    before = np.searchsorted(end[ended], jobs["submit"].to_numpy(), side="right")
    found: list[T] = []
    trained = 0
    for until in (*before.tolist(), ended.size):
        for user, cores, walltime, runtime in (rows[row] for row in ended[trained:until].tolist()):
            model.add(user, "", cores, walltime, runtime / max(1, walltime))
        trained = until
        if len(found) < len(rows):
            user, cores, walltime, _ = rows[len(found)]
            found.append(model.estimate(user, "", cores, walltime))
    return found


def with_estimates(history: History, *configs: SiteConfig) -> History:
    """Return a history with the estimated run time of each job, if the order of a configuration reads it."""
    if not any(config.reads_estimate for config in configs):
        return history
    return replace(history, jobs=history.jobs.assign(estimate=predictions(history, Means())))


AGED = 0.5 ** (np.arange(MOST - 1, -1, -1) / HALF)  #: weights of the last jobs of a kind, the oldest first


def final_fractions(shares: Floats, weights: Floats, closed: NDArray[np.bool_]) -> Floats:
    """Return quantiles of the final fractions of ended (`closed`) and of running jobs.

    Kaplan and Meier, JASA 53, 1958: the weight of a running job goes to the jobs that ran for longer; if there is none,
    its end is uniform up to the walltime.
    """
    order = np.lexsort((~closed, shares))
    shares, weights, closed = shares[order], weights[order], closed[order]
    at_risk = np.cumsum(weights[::-1])[::-1]
    left = np.cumprod(1 - np.where(closed, np.minimum(1.0, weights / at_risk), 0.0))  # still running after each
    points, cumulated = shares[closed], 1 - left[closed]
    rest, longest = float(left[-1]), float(shares[-1])
    if rest > 1e-9:
        up = np.array([0.25, 0.5, 0.75, 1.0])
        points = np.concatenate((points, longest + (1 - longest) * up))
        cumulated = np.concatenate((cumulated, 1 - rest + rest * up))
    levels = np.linspace(0, 1, STEPS + 1)
    return np.asarray(points[np.minimum(np.searchsorted(cumulated, levels - 1e-9), points.size - 1)])


def correlated_uniforms(rng: np.random.Generator, user: Column) -> Floats:
    """Return a uniform number for each job, correlated for jobs of one user (a Gaussian copula)."""
    of_user = rng.standard_normal(int(user.max(initial=-1)) + 2)[user]  # -1, of no user, is the last
    of_job = rng.standard_normal(user.size)
    return np.asarray(ndtr(TOGETHER**0.5 * of_user + (1 - TOGETHER) ** 0.5 * of_job))


def sample(of: Floats, uniform: Floats) -> Floats:
    """Return a fraction for each job, from its `quantiles`, shape (n, STEPS + 1), and a uniform number in [0, 1)."""
    place = np.minimum(uniform, 1 - 1e-9) * STEPS
    low = place.astype(np.int64)
    row = np.arange(uniform.size)
    return np.asarray(of[row, low] + (place - low) * (of[row, low + 1] - of[row, low]))
