"""Run times as they are: which share of its walltime a job runs, by jobs like it that have ended.

Of a share either all quantiles are wanted (`RunTimes`), to draw from, or its mean (`Means`), for the order of jobs.
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

MOST = 60  #: the last jobs of a kind that count
HALF = 15.0  #: after so many later ones of its kind a job counts half
PRIOR = 4.0  #: jobs of a kind that count as much as all kinds of less likeness together
STEPS = 32  #: of the quantiles that are drawn from
TOGETHER = 0.3  #: correlation of run times of one user: jobs of a campaign succeed or fail together


def kinds(user: object, name: object, cores: int, walltime: int) -> list[Kind]:
    """Return what a job is like, the closest likeness first."""
    size = int(cores).bit_length()
    found: list[Kind] = [(user, name, size, walltime), (user, name, walltime)] if name else []
    return [*found, (user, size, walltime), (user, walltime), (user, size), (user,), (size, walltime // 3600), ()]


@dataclass
class RunTimes:
    """Shares of their walltimes that jobs ran, by what the jobs were like."""

    shares: dict[Kind, list[float]] = field(default_factory=dict)
    #: Shares for which jobs have run that have not ended: of jobs alike that started together the short ones end first.
    open: dict[Kind, list[float]] = field(default_factory=dict)

    def add(self, user: str, name: str, cores: int, walltime: int, share: float) -> None:
        """Train on one job more."""
        for kind in kinds(user, name, cores, walltime):
            known = self.shares.setdefault(kind, [])
            known.append(min(1.0, max(1e-6, share)))
            if len(known) > 4 * MOST:
                del known[: len(known) - MOST]

    def watch(self, running: Iterable[tuple[str, str, int, int, int]]) -> None:
        """Take note of the jobs that run: user, name, cores, walltime and seconds so far of each."""
        self.open = {}
        for user, name, cores, walltime, elapsed in running:
            for kind in kinds(user, name, cores, walltime):
                self.open.setdefault(kind, []).append(elapsed / max(1, walltime))

    def quantiles(self, user: str, name: str, cores: int, walltime: int, elapsed: int = 0) -> Floats:
        """Return quantiles at equal steps of the share that a job like this one runs, shape (STEPS + 1,).

        Above what it has run already. Each kind counts the more, the more jobs of it are known; those of less likeness
        have what it leaves.
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
        return likely(np.concatenate(shares), np.concatenate(weights), np.concatenate(closed))


ALL = "*"  #: stands for the user in what jobs of all users have


def likeness(user: str, cores: int, walltime: int) -> list[tuple[str, str]]:
    """Return what a job is like, the closest likeness first: a user, and a word for size and walltime."""
    size = int(cores).bit_length()
    words = f"{size}:{walltime}", f":{walltime}", f"{size}:", ":"
    return [*((user, word) for word in words), (ALL, f"{size}:{walltime // 3600}h"), (ALL, ":")]


@dataclass
class Means:
    """Means of the shares of their walltimes that jobs ran, by what the jobs were like, weighted as in `RunTimes`."""

    #: By user and word, the weight of the jobs and the mean.
    known: dict[tuple[str, str], tuple[float, float]] = field(default_factory=dict)

    def add(self, user: str, name: str, cores: int, walltime: int, share: float) -> None:
        """Train on one job more; its name plays no part."""
        del name
        for kind in likeness(user, cores, walltime):
            weight, mean = self.known.get(kind, (0.0, 0.0))
            weight = weight * AGED[-2] + 1
            self.known[kind] = weight, mean + (min(1.0, share) - mean) / weight

    def estimate(self, user: str, name: str, cores: int, walltime: int) -> int:
        """Return how many seconds a job is expected to run, at most its walltime; 0 where nothing is known."""
        del name
        share, rest = 0.0, 1.0
        for kind in likeness(user, cores, walltime):
            weight, mean = self.known.get(kind, (0.0, 0.0))
            part = rest * weight / (weight + PRIOR)
            share, rest = share + part * mean, rest - part
        return max(1, round(walltime * share / (1 - rest))) if rest < 1 else 0

    def lines(self) -> list[str]:
        """Write what is known, a line for each user: words with their weights and means, between tabs."""
        found: dict[str, list[str]] = {}
        for (user, word), (weight, mean) in self.known.items():
            found.setdefault(user, [user]).append(f"{word}={weight:.3g},{mean:.3g}")
        return ["\t".join(words) + "\t" for _, words in sorted(found.items())]


class Learner(Protocol[T_co]):
    """A model that is trained job by job, and predicts one."""

    def add(self, user: str, name: str, cores: int, walltime: int, share: float) -> None:
        """Train on one job more, which ran for a share of its walltime."""

    def estimate(self, user: str, name: str, cores: int, walltime: int) -> T_co:
        """Predict a job."""


def predictions(history: History, model: Learner[T]) -> list[T]:
    """Predict each job of a history by what had ended when it came; in the end a model knows all that ended."""
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
    """Return a history with the estimates of its jobs, where the order of a configuration reads them."""
    if not any(config.reads_estimate for config in configs):
        return history
    return replace(history, jobs=history.jobs.assign(estimate=predictions(history, Means())))


AGED = 0.5 ** (np.arange(MOST - 1, -1, -1) / HALF)  #: by how much each of the last jobs counts


def likely(shares: Floats, weights: Floats, closed: NDArray[np.bool_]) -> Floats:
    """Return the quantiles of shares of jobs that ended (`closed`), and of what the others may come to.

    Kaplan and Meier, JASA 53, 1958: what stands behind a job that has not ended is divided among those that ran for
    longer; what none did may end anywhere up to the walltime.
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


def together(rng: np.random.Generator, user: Column) -> Floats:
    """Return a uniform number for each job, those of one user alike (a Gaussian copula)."""
    of_user = rng.standard_normal(int(user.max(initial=-1)) + 2)[user]  # -1, of no user, is the last
    of_job = rng.standard_normal(user.size)
    return np.asarray(ndtr(TOGETHER**0.5 * of_user + (1 - TOGETHER) ** 0.5 * of_job))


def sample(of: Floats, uniform: Floats) -> Floats:
    """Return a share for each job from its `quantiles`, shape (n, STEPS + 1), for uniform numbers in [0, 1)."""
    place = np.minimum(uniform, 1 - 1e-9) * STEPS
    low = place.astype(np.int64)
    row = np.arange(uniform.size)
    return np.asarray(of[row, low] + (place - low) * (of[row, low + 1] - of[row, low]))
