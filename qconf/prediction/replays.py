"""Replays: predictions for earlier instants of a log, compared with the starts that followed."""

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
from qconf.prediction.calibration import Calibration
from qconf.prediction.runtimes import RunTimes
from qconf.prediction.starts import DAY, DAYS, Present, interval, likely_starts

Column = NDArray[np.int64]

SPAN = 90 * DAY  #: the last part of a log, from which instants are drawn
INSTANTS = 60
RUNS = 40  #: most simulations at an instant; fewer for many jobs
FEWEST_RUNS = 10
WORK = 40_000  #: limit on jobs times simulations of an instant


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
