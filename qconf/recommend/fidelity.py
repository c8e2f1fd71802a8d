"""Recorded and simulated waits, for logs that have starts, and their grade."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from parsim import simulate
from qconf.config import SiteConfig
from qconf.errors import InputError
from qconf.evaluation.calendar import dedicated
from qconf.fidelity.grade import Grade
from qconf.fidelity.verify import grade_of
from qconf.history import History
from qconf.history.times import zone

FEWEST = 20  # least jobs with a known start, to conclude anything


@dataclass(frozen=True)
class Day:
    """The jobs of a queue submitted on one day, with a known start; waits in seconds, `real_mean` the recorded one."""

    queue: str
    date: str
    jobs: int
    real_mean: float
    mean: float


@dataclass(frozen=True)
class Fidelity:
    """Recorded (`real_`) and simulated waits of the jobs with a known start, seconds."""

    jobs: int
    real_mean: float
    real_median: float
    mean: float
    median: float
    correlation: float  #: Spearman's rank correlation of both waits; NaN if either is constant
    days: tuple[Day, ...] = ()  #: by queue, then date
    #: Grade of windows that begin with the log's running jobs; None if too few jobs start in them or the log is short.
    grade: Grade | None = None

    @property
    def doubtful(self) -> bool:
        """Whether the simulation is too far from the log to be trusted."""
        return self.grade is not None and self.grade.doubtful


def fidelity(history: History, config: SiteConfig, span: tuple[int, int]) -> Fidelity | None:
    """Simulate a history under `config`; None if too few starts are known.

    Jobs submitted within `span`, both ends included, are counted; the others fill the machine.
    """
    submit, start = (history.jobs[name].to_numpy() for name in ("submit", "start"))
    known = (start >= 0) & (start >= submit) & (submit >= span[0]) & (submit <= span[1])
    if known.sum() < FEWEST:
        return None
    jobs = history.workload(config)
    system = dedicated(config.system(), config.shortpools, history.span, history.epoch, history.timezone)
    schedule = simulate(jobs, system)
    real, simulated = (start - submit)[known], (schedule.start - submit)[known]
    grade = None
    with suppress(InputError):  # too short for a window
        grade = grade_of(history, config, span)
    ranks = pd.DataFrame({"real": real, "simulated": simulated}).corr("spearman").to_numpy()
    return Fidelity(
        jobs=int(known.sum()),
        real_mean=float(real.mean()),
        real_median=float(np.median(real)),
        mean=float(simulated.mean()),
        median=float(np.median(simulated)),
        correlation=float(ranks[0, 1]),
        days=tuple(_days(history, config, known, real, simulated)),
        grade=grade,
    )


def _days(
    history: History,
    config: SiteConfig,
    known: NDArray[np.bool_],
    real: NDArray[np.int64],
    simulated: NDArray[np.int64],
) -> Iterator[Day]:
    """Yield the mean waits of each queue and day, in the history's time zone."""
    jobs, where = history.jobs[known], zone(history.timezone)
    dates = [datetime.fromtimestamp(history.epoch + second, where).date().isoformat() for second in jobs["submit"]]
    table = pd.DataFrame({"queue": jobs["queue"].to_numpy(), "date": dates, "real": real, "mean": simulated})
    grouped = (
        table.groupby(["queue", "date"], sort=True, observed=True)
        .agg(jobs=("real", "size"), real=("real", "mean"), mean=("mean", "mean"))
        .reset_index()
    )
    for queue in config.names:
        own = grouped[grouped["queue"] == queue].drop(columns="queue")
        yield from (Day(queue, *row) for row in own.itertuples(index=False, name=None))
