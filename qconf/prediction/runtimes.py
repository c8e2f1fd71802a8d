"""Run times as they are: which share of its walltime a job runs, by jobs like it that have ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Column = NDArray[np.int64]

ENOUGH = 8  #: jobs like it, from which on these alone say how long a job runs
MOST = 60  #: the last ones of them
STEPS = 32  #: of the quantiles that are drawn from


@dataclass(frozen=True)
class Ended:
    """Jobs that have ended, in the order of their ends; what they have in common is compared as text."""

    user: NDArray[np.str_]
    name: NDArray[np.str_]
    cores: Column
    walltime: Column
    runtime: Column

    def __len__(self) -> int:
        """Return the number of jobs."""
        return self.runtime.size


def kinds(user: object, name: object, cores: int, walltime: int) -> list[tuple[object, ...]]:
    """Return what a job is like, the closest likeness first."""
    size = int(cores).bit_length()
    found: list[tuple[object, ...]] = [(user, name, size, walltime), (user, name, walltime)] if name else []
    return [*found, (user, size, walltime), (user, walltime), (user, size), (user,), (size, walltime // 3600), ()]


@dataclass
class RunTimes:
    """Shares of their walltimes that jobs ran, by what the jobs were like."""

    shares: dict[tuple[object, ...], list[float]] = field(default_factory=dict)
    #: Shares for which jobs have run that have not ended: of jobs alike that started together the short ones end first.
    open: dict[tuple[object, ...], list[float]] = field(default_factory=dict)

    @classmethod
    def of(cls, ended: Ended) -> RunTimes:
        """Train on jobs that have ended."""
        model = cls()
        share = np.clip(ended.runtime / np.maximum(1, ended.walltime), 1e-6, 1.0)
        rows = zip(ended.user, ended.name, ended.cores.tolist(), ended.walltime.tolist(), share.tolist(), strict=True)
        for user, name, cores, walltime, ran in rows:
            model.add(str(user), str(name), cores, walltime, ran)
        return model

    def add(self, user: str, name: str, cores: int, walltime: int, share: float) -> None:
        """Train on one job more."""
        for kind in kinds(user, name, cores, walltime):
            known = self.shares.setdefault(kind, [])
            known.append(share)
            if len(known) > 4 * MOST:
                del known[: len(known) - MOST]

    def watch(self, running: Iterable[tuple[str, str, int, int, int]]) -> None:
        """Take note of the jobs that run: user, name, cores, walltime and seconds so far of each."""
        self.open = {}
        for user, name, cores, walltime, elapsed in running:
            for kind in kinds(user, name, cores, walltime):
                self.open.setdefault(kind, []).append(elapsed / max(1, walltime))

    def like(self, user: str, name: str, cores: int, walltime: int, elapsed: int = 0) -> Floats:
        """Return equally likely shares that a job like this one runs, above what it has run already; ascending."""
        least = elapsed / max(1, walltime)
        best: tuple[list[float], list[float]] = ([], [])
        for kind in kinds(user, name, cores, walltime):
            known = [share for share in self.shares.get(kind, [])[-MOST:] if share > least]
            if len(known) > len(best[0]):
                best = known, [share for share in self.open.get(kind, ()) if share > least]
            if len(best[0]) >= ENOUGH:
                break
        if not best[0]:
            return least + (1.0 - least) * np.array([0.1, 0.3, 0.5, 0.7, 0.9, 1.0])
        return likely(np.array(best[0]), np.array(best[1]))


def likely(ended: Floats, unended: Floats) -> Floats:
    """Return equally likely shares, ascending: those of jobs that ended, and what the others may come to.

    Kaplan and Meier, JASA 53, 1958: what stands behind a job that has not ended is divided among those that ran for
    longer; what none did may end anywhere up to the walltime.
    """
    if not unended.size:
        return np.sort(ended)
    shares = np.concatenate((ended, unended))
    closed = np.concatenate((np.ones(ended.size), np.zeros(unended.size)))
    order = np.lexsort((1 - closed, shares))
    shares, closed = shares[order], closed[order]
    left = np.cumprod(1 - closed / np.arange(shares.size, 0, -1))  # still running after each
    points, cumulated = shares[closed > 0], 1 - left[closed > 0]
    rest = float(left[-1])
    if rest > 0:
        longest = float(shares[-1])
        tail = longest + (1 - longest) * np.array([0.25, 0.5, 0.75, 1.0])
        points = np.concatenate((points, tail))
        cumulated = np.concatenate((cumulated, 1 - rest + rest * np.array([0.25, 0.5, 0.75, 1.0])))
    levels = (np.arange(MOST) + 0.5) / MOST
    return np.asarray(points[np.minimum(np.searchsorted(cumulated, levels), points.size - 1)])


def quantiles(shares: Floats) -> Floats:
    """Return the quantiles of shares at equal steps, linear between those known, shape (STEPS + 1,)."""
    return np.asarray(np.interp(np.linspace(0, shares.size - 1, STEPS + 1), np.arange(shares.size), shares))


def sample(of: Floats, uniform: Floats) -> Floats:
    """Return a share for each job from its `quantiles`, shape (n, STEPS + 1), for uniform numbers in [0, 1)."""
    place = uniform * STEPS
    low = place.astype(np.int64)
    row = np.arange(uniform.size)
    return np.asarray(of[row, low] + (place - low) * (of[row, low + 1] - of[row, low]))
