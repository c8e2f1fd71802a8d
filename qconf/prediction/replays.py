"""Replays: predictions for earlier instants of a log, and intervals that their errors calibrate.

Normalised conformal prediction (Papadopoulos, Vovk and Gammerman, JAIR 40, 2011): the score of a start is its distance
from the middle over the width of that half of the interval. Later instants weigh more, since users change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from parsim import UNSTARTED, System, Workload, simulate
from qconf.config import SiteConfig
from qconf.evaluation.calendar import dedicated
from qconf.evaluation.period import fitting
from qconf.history import History
from qconf.prediction.runtimes import RunTimes
from qconf.prediction.starts import DAY, DAYS, Present, interval, likely_starts

Column = NDArray[np.int64]
Floats = NDArray[np.float64]

SPAN = 90 * DAY  #: the last part of a log, from which instants are drawn
INSTANTS = 60
RUNS = 40  #: most simulations at an instant; fewer for many jobs
FEWEST_RUNS = 10
WORK = 40_000  #: limit on jobs times simulations of an instant
FEWEST = 50  #: least number of past predictions; with fewer, simulated intervals stay unchanged
SLACK = 60.0  #: seconds added to each half of an interval, since some have no width
HALF = 20.0  #: half-life of a prediction's weight, in later instants


@dataclass(frozen=True)
class Log:
    """The jobs of a log as known at an instant; times in Unix seconds."""

    workload: Workload
    start: Column  #: `UNSTARTED` if later or unknown
    end: Column  #: `UNSTARTED` if later or unknown
    user: NDArray[np.str_]
    name: NDArray[np.str_]

    @classmethod
    def of(cls, history: History, config: SiteConfig, now: int) -> Self:
        """Take the jobs submitted before `now`; a log without starts gets those of a simulation."""
        jobs, w = history.jobs, history.workload(config)
        start, end = (jobs[key].to_numpy(dtype=np.int64) for key in ("start", "end"))
        if (start < 0).all():
            found = dedicated(config.system(), config.shortpools, history.span, history.epoch, history.timezone)
            schedule = simulate(w, found)
            start, end = schedule.start, schedule.end
        name = jobs["name"].to_numpy(dtype=str) if "name" in jobs else np.full(len(jobs), "")
        rows = np.flatnonzero(w.submit + history.epoch < now)
        start, end = (
            np.where((start < 0) | (end < 0) | (each + history.epoch > now), UNSTARTED, each + history.epoch)[rows]
            for each in (start, end)
        )
        w = w.take(rows)
        return cls(
            replace(w, submit=w.submit + history.epoch),
            np.maximum(start, w.submit + history.epoch),
            end,
            jobs["user"].to_numpy(dtype=str)[rows],
            name[rows],
        )

    def ended(self, now: int) -> NDArray[np.intp]:
        """Return the rows of the jobs that ended by `now`, in the order of their ends."""
        rows = np.flatnonzero(self.end <= now)
        return rows[np.argsort(self.end[rows], kind="stable")]

    def past(
        self, now: int, users: Mapping[str, int] | None = None, queue: NDArray[np.int64] | None = None
    ) -> Workload:
        """Return the jobs of the last `DAYS` that ended by `now`, with user numbers and queues of another workload."""
        rows = np.flatnonzero((self.end <= now) & (self.workload.submit >= now - DAYS * DAY))
        w = self.workload.take(rows)
        if users is not None:
            numbers = dict(users)
            named = [numbers.setdefault(user, len(numbers)) if user else -1 for user in self.user[rows].tolist()]
            w = replace(w, user=np.array(named, dtype=np.int64))
        return w if queue is None else replace(w, queue=queue[rows])

    def teach(self, model: RunTimes, rows: NDArray[np.intp]) -> None:
        """Train a model on the jobs at these rows."""
        w = self.workload.take(rows)
        share = w.effective_runtime / w.walltime
        columns = (w.cores.tolist(), w.walltime.tolist(), share.tolist())
        for job in zip(self.user[rows].tolist(), self.name[rows].tolist(), *columns, strict=True):
            model.add(*job)

    def present(self, now: int, cores: int) -> tuple[Present, NDArray[np.intp]]:
        """Return the jobs that ran or waited at `now`, and their rows."""
        rows = np.flatnonzero((self.workload.submit < now) & (self.end > now))
        w = self.workload.take(rows)
        state = fitting(w, self.start[rows], now, cores)
        return Present(w, state, self.user[rows].tolist(), self.name[rows].tolist()), rows


@dataclass(frozen=True)
class Calibration:
    """The factor by which both halves of intervals are widened, from past predictions."""

    factor: float = 1.0
    count: int = 0  #: number of past predictions; 0 if they are too few

    @classmethod
    def of(cls, level: float, now: Column, low: Floats, middle: Floats, high: Floats, true: Column) -> Calibration:
        """Fit the factor to past predictions, made at the instants `now`, of starts that were then `true`.

        Jobs that wait at one instant are late together, so few instants prove little: one more instant is assumed, with
        every start outside its interval.
        """
        if true.size < FEWEST:
            return cls()
        _, instant = np.unique(now, return_inverse=True)
        weights = 0.5 ** ((instant.max() - np.arange(instant.max() + 1)) / HALF)
        instants = weights.sum() ** 2 / (weights**2).sum()
        late, early = (true - middle) / (high - middle + SLACK), (middle - true) / (middle - low + SLACK)
        part = (instants * level + 1) / (instants + 1)
        return cls(quantile(np.maximum(late, early), weights[instant], part), true.size)

    def widened(self, now: int, low: Floats, middle: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return (low, high) of the widened intervals, none of which begins before `now`."""
        if not self.count:
            return low, high
        below, above = self.factor * (middle - low + SLACK), self.factor * (high - middle + SLACK)
        return np.maximum(now, middle - below), middle + above


def quantile(values: Floats, weights: Floats, part: float) -> float:
    """Return the smallest value at which the cumulated weight reaches `part` of the total."""
    order = np.argsort(values, kind="stable")
    up_to = np.cumsum(weights[order])
    return float(values[order][min(int(np.searchsorted(up_to, part * up_to[-1])), values.size - 1)])


def replay(
    log: Log,
    system: System,
    now: int,
    levels: Sequence[float],
    *,
    instants: int = INSTANTS,
    seed: int = 0,
    workers: int = 1,
) -> tuple[RunTimes, dict[float, Calibration]]:
    """Predict again at random instants of the last months; return a model of all ended jobs, and the calibrations."""
    model, ends = RunTimes(), log.ended(now)
    if not ends.size:
        return model, {}
    first, last = int(log.workload.submit.min()), int(log.end[ends[-1]])
    first = max(first + (last - first) // 10, last - SPAN)
    count = instants if first < last else 0
    chosen = np.sort(np.random.default_rng([seed, instants]).integers(first, max(last, first + 1), count))
    parts, trained = [], 0
    for number, at in enumerate(chosen.tolist()):
        until = int(np.searchsorted(log.end[ends], at, side="right"))
        log.teach(model, ends[trained:until])
        trained = until
        present, rows = log.present(at, system.cores)
        true = log.start[rows]
        over = present.waiting & (true < UNSTARTED) & (true >= at)
        if not over.any():
            continue
        runs = int(np.clip(WORK // rows.size, FEWEST_RUNS, RUNS))
        past = log.past(at)
        likely = likely_starts(present, system, model, past=past, runs=runs, seed=seed + number + 1, workers=workers)[
            :, over
        ]
        spans = [each for level in levels for each in interval(likely, level)]
        parts.append((np.full(int(over.sum()), at), np.median(likely, axis=0), true[over], *spans))
    log.teach(model, ends[trained:])
    if not parts:
        return model, {}
    at, middle, true, *spans = (np.concatenate(column) for column in zip(*parts, strict=True))
    pairs = zip(levels, spans[::2], spans[1::2], strict=True)
    return model, {level: Calibration.of(level, at, low, middle, high, true) for level, low, high in pairs}
