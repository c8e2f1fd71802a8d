"""The days after another configuration is loaded: waits day by day, and how the backlog changes the gain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsim import UNSTARTED, Schedule, State, Workload, simulate
from parsim.metrics import bounded_slowdown
from qconf.config import SiteConfig
from qconf.errors import InputError
from qconf.evaluation.period import Period
from qconf.evaluation.score import gain
from qconf.history import History
from qconf.parallel import parallel_map
from qconf.prediction.present import Ahead, ahead
from qconf.prediction.replays import Log
from qconf.prediction.runtimes import RunTimes
from qconf.prediction.starts import DAY, Draw, Sampler, coming, simulate_from
from qconf.snapshot import Snapshot

Floats = NDArray[np.float64]

DAYS = 7  #: simulated days
RUNS = 30


@dataclass(frozen=True)
class Day:
    """A coming day under the current configuration and the other one; means over the simulations."""

    begin: int  #: Unix seconds
    submitted: float  #: jobs submitted
    wait: tuple[float, float]  #: mean wait of the submitted jobs, seconds
    waiting: tuple[float, float]  #: jobs waiting at the end of the day


@dataclass(frozen=True)
class Gained:
    """A gain in an objective over the simulations: mean, and 10th and 90th percentile."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Loading:
    """Simulations from a snapshot under the current configuration and another one."""

    days: tuple[Day, ...]
    gain: Gained  #: over waiting and coming jobs
    later: Gained  #: over coming jobs
    empty: Gained  #: over coming jobs on an empty machine: without the backlog
    left_out: int  #: jobs of the snapshot that one of the configurations cannot start
    runs: int

    def document(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {
            **{name: vars(getattr(self, name)) for name in ("gain", "later", "empty")},
            "days": [
                {
                    "begin": day.begin,
                    "submitted": day.submitted,
                    "mean_wait": dict(zip(("now", "then"), day.wait, strict=True)),
                    "waiting_at_end": dict(zip(("now", "then"), day.waiting, strict=True)),
                }
                for day in self.days
            ],
            "left_out": self.left_out,
            "runs": self.runs,
        }


def loading(
    snapshot: Snapshot,
    config: SiteConfig,
    other: SiteConfig,
    history: History,
    objective: str,
    *,
    runs: int = RUNS,
    days: int = DAYS,
    seed: int = 0,
    workers: int = 1,
) -> Loading:
    """Simulate the coming days under both configurations, with the same run times and coming jobs.

    Raises `InputError` if the log has no days before the snapshot, and `UnroutableError` if a job fits no queue of
    `other`.
    """
    both, left_out = _common(snapshot, config, other)
    now, users = snapshot.now, both[0].users
    log, model = Log.of(history, config, now), RunTimes()
    log.teach(model, log.ended(now))
    routed = Period.of(history, config).routed(other).queue
    pasts = log.past(now, users), log.past(now, users, routed)
    if not len(pasts[0]) or now - int(pasts[0].submit.min()) < DAY:
        raise InputError("has no jobs of the days before the snapshot", field="--history", fix="give the log up to now")
    sampler = Sampler(both[0].present, model, pasts[0], seed)

    def one(run: int) -> list[Floats]:
        drawn = sampler.draw(run, days)
        return [_simulated(each, past, drawn, days) for each, past in zip(both, pasts, strict=True)]

    found = np.array(parallel_map(workers, one, [(run,) for run in range(runs)]))  # run, configuration, row, column
    mean = found.mean(axis=0)
    table = [
        Day(
            now + day * DAY, mean[0, 3 + day, 0], (mean[0, 3 + day, 1], mean[1, 3 + day, 1]), tuple(mean[:, 3 + day, 2])
        )
        for day in range(days)
    ]
    gains = [gain(found[:, 1, row, :2], found[:, 0, row, :2], objective) for row in range(3)]
    of_all, later, empty = (Gained(float(each.mean()), *np.quantile(each, (0.1, 0.9)).tolist()) for each in gains)
    return Loading(tuple(table), of_all, later, empty, left_out, runs)


def _common(snapshot: Snapshot, config: SiteConfig, other: SiteConfig) -> tuple[tuple[Ahead, Ahead], int]:
    """Return the snapshot under both configurations, only with jobs that both can start, and the number of others."""
    found = ahead(snapshot, config), ahead(snapshot, other)
    able = {job.job_id for job in found[0].jobs} & {job.job_id for job in found[1].jobs}
    shared = replace(snapshot, jobs=tuple(job for job in snapshot.jobs if job.job_id in able))
    return (ahead(shared, config), ahead(shared, other)), len(snapshot.jobs) - len(able)


def _simulated(found: Ahead, past: Workload, drawn: Draw, days: int) -> Floats:
    """Return means over (waiting and coming, coming, coming on an empty machine) jobs, then a row for each day.

    Means are (wait, slowdown, 0); a day is (submitted jobs, mean wait, jobs waiting at its end). Shape (3 + days, 3).
    """
    present, now = found.present, found.now
    later = coming(present, past, drawn)
    schedule = simulate_from(present, later, drawn, found.system)
    alone = simulate(later, found.system, State(now, np.full(len(later), UNSTARTED), windows=present.state.windows))
    there = np.flatnonzero(present.waiting)
    come = np.arange(len(present.workload), len(schedule.start))
    counted = np.concatenate((there, come))
    rows = [_means(schedule, counted), _means(schedule, come), _means(alone, np.arange(len(later)))]
    submit, start = schedule.submit[counted], schedule.start[counted]
    for end in range(now + DAY, now + days * DAY + 1, DAY):
        of_day = (submit >= end - DAY) & (submit < end) & (counted >= len(present.workload))
        wait = float((start - submit)[of_day].mean()) if of_day.any() else 0.0
        rows.append((float(of_day.sum()), wait, float(((submit < end) & (start >= end)).sum())))
    return np.array(rows)


def _means(schedule: Schedule, rows: NDArray[np.intp]) -> tuple[float, float, float]:
    if not rows.size:
        return 0.0, 1.0, 0.0
    return float(schedule.wait[rows].mean()), float(bounded_slowdown(schedule)[rows].mean()), 0.0
