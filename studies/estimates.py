"""The errors of predicted run times, and their effect as part of the order of jobs, on public logs.

Each job of a log is predicted from the jobs that ended before it was submitted, by the mean and the median of similar
jobs, and month by month by quantile gradient boosting. Each month but the first is then simulated under orders that
read the predictions, the walltime or the true run time; plans keep the walltime.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import click
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from qconf.evaluation.score import TAILS, weights
from qconf.history import History
from qconf.prediction.runtimes import STEPS, Means, RunTimes, predictions
from qconf.strategies.auto.families import General, Member, Order
from qconf.text import markdown_table
from studies.advice import Log, public, rows_of
from studies.output import run, traces, workers

Floats = NDArray[np.float64]

LOGS = ("KTH-SP2", "SDSC-SP2", "HPC2N", "Theta-2022")
LATEST = 15_000  #: most jobs that boosting is trained on
LAST = 3  #: previous run times of the user that boosting reads


@dataclass(frozen=True)
class Expecting:
    """An order with the estimate in place of the walltime."""

    order: Order | None  #: None: lxf

    def formula(self, cores: int, longest: float | None = None) -> str:
        """Return the formula of the order for a machine of `cores`."""
        text = "(eligible_time + walltime) / walltime" if self.order is None else self.order.formula(cores, longest)
        return text.replace("walltime", "estimate")


ORDERS = {"lxf": Member(Expecting(None)), "general": Member(Expecting(General()))}


class Median(RunTimes):
    """Predicts the median of similar jobs."""

    def estimate(self, user: str, name: str, cores: int, walltime: int) -> int:
        """Return the median run time, seconds."""
        return max(1, round(float(self.quantiles(user, name, cores, walltime)[STEPS // 2]) * walltime))


def boosted(history: History, mean: Floats) -> Floats:
    """Predict each month by boosting, trained on jobs that ended before it; months with few such jobs by `mean`."""
    jobs = history.jobs
    submit, end, walltime = (jobs[name].to_numpy() for name in ("submit", "end", "walltime"))
    codes = [pd.factorize(jobs[name])[0] for name in ("user", "group", "queue")]
    logs = [np.log(each) for each in (jobs["cores"], walltime, np.maximum(mean, 1))]
    read = np.column_stack([np.array(predictions(history, _Last())), *codes, *logs, submit // 3600 % 24])
    target, found = np.log(np.maximum(np.minimum(jobs["runtime"], walltime), 1)), mean.copy()
    for _, first, last in history.periods("month"):
        rows, known = (submit >= first) & (submit < last), np.flatnonzero((end >= 0) & (end <= first))[-LATEST:]
        if known.size > 500 and rows.any():
            model = HistGradientBoostingRegressor(
                loss="quantile", quantile=0.5, max_iter=80, max_leaf_nodes=24, min_samples_leaf=30, random_state=0
            )
            found[rows] = np.exp(model.fit(read[known], target[known]).predict(read[rows]))
    return np.clip(found, 1, walltime)


class _Last:
    """Keeps the last run times of each user, as features of `boosted`."""

    def __init__(self) -> None:
        self.of: dict[str, deque[float]] = {}

    def add(self, user: str, name: str, cores: int, walltime: int, share: float) -> None:
        del name, cores
        self.of.setdefault(user, deque(maxlen=LAST)).appendleft(np.log(max(1.0, share * walltime)))

    def estimate(self, user: str, name: str, cores: int, walltime: int) -> list[float]:
        del name, cores, walltime
        return [*self.of.get(user, ()), *[np.nan] * LAST][:LAST]


def models(log: Log) -> dict[str, Floats]:
    """Return each model's predictions of all jobs, seconds, at most the walltime."""
    jobs = log.history.jobs
    found = {
        name: np.array(predictions(log.history, model)) for name, model in (("mean", Means()), ("median", Median()))
    }
    walltime = jobs["walltime"].to_numpy()
    found = {name: np.clip(np.where(each > 0, each, walltime), 1, walltime) for name, each in found.items()}
    found["boosting"] = boosted(log.history, found["mean"].astype(float))
    return {"walltime": walltime} | found | {"true": np.minimum(jobs["runtime"].to_numpy(), walltime)}


def quality(log: Log, found: Mapping[str, Floats]) -> list[str]:
    """Return the table row of a log: errors in hours, shares of jobs that run longer, boosting's error less mean's."""
    true, ends = found["true"], [end for *_, end in log.history.periods("month")]
    months = np.searchsorted(ends, log.history.jobs["submit"])
    error = {name: np.abs(each - true) / 3600 for name, each in found.items()}
    models = ("mean", "median", "boosting")
    shown = [f"{error[name].mean():.2f} / {100 * (found[name] < true).mean():.0f} %" for name in models]
    frame = pd.Series(error["boosting"] - error["mean"]).groupby(months).mean()
    ratio = " / ".join(f"{np.median(found[name] / true):.1f}" for name in ("walltime", "mean"))
    interval = _interval(np.asarray(frame, dtype=np.float64))
    return [log.name, ratio, f"{error['walltime'].mean():.2f}", *shown, interval]


def _interval(each: Floats) -> str:
    return f"{each.mean():+.2f} ± {each.std(ddof=1) / each.size**0.5:.2f}"


def worth(log: Log, found: Mapping[str, Floats], workers: int) -> list[list[str]]:
    """Return a table row for each order and prediction: ratios to fcfs, and the score against the walltime's."""
    rows = {}
    for name, each in found.items():
        jobs = log.history.jobs.assign(estimate=np.round(each).astype(np.int64))
        months = replace(log, history=replace(log.history, jobs=jobs)).months
        rows[name] = rows_of(months, list(ORDERS.values()), workers)
    wait, slowdown, tails = weights("mean-wait", TAILS)
    table = []
    for place, order in enumerate(ORDERS):
        price = {name: each[:, place] @ np.array([wait, slowdown, 0, tails]) for name, each in rows.items()}
        for name, each in rows.items():
            ratios = " / ".join(f"{ratio:.2f}" for ratio in np.exp(each[:, place, :3].mean(axis=0)))
            against = "" if name == "walltime" else _interval(price[name] - price["walltime"])
            table.append([log.name, order, name, ratios, against])
    return table


@click.command("studies.estimates")
@click.option("--logs", default=",".join(LOGS), show_default=True, help="Public logs, with commas.")
@traces
@workers()
def command(*, logs: str, traces: Path, workers: int) -> None:
    """Print the tables of docs/research/prediction.md on predicted run times in the order."""
    of_quality, of_worth = [], []
    for name in logs.split(","):
        log = public(name, traces)
        found = models(log)
        of_quality.append(quality(log, found))
        of_worth += worth(log, found, workers)
        click.echo(f"{of_quality[-1]}\n{of_worth[-2 * len(found) :]}", err=True)
    titles = ["log", "walltime, mean / run time", "walltime", "mean", "median", "boosting", "boosting against mean"]
    click.echo(markdown_table(titles, of_quality))
    click.echo(markdown_table(["log", "order", "reads", "wait / slowdown / longest", "against walltime"], of_worth))


if __name__ == "__main__":
    run(command)
