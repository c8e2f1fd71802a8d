"""Draws the paper's figures from the generated months."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from qconf.config import SiteConfig
from qconf.evaluation.period import Period, TrainingSet
from qconf.history import History
from qconf.history.history import DAY
from qconf.recommend import Curve, curves
from qconf.report.charts import number
from qconf.report.columns import COLUMNS
from studies.drawing import grouped_bars, line_chart
from studies.paper.pieces import PieceResult


@dataclass(frozen=True)
class Comparison:
    """One of Figures 7 to 13: strategies compared by a metric."""

    number: int
    metric: str
    strategies: tuple[str, ...]


#: The paper's statements about them are in the tables of numbers and sentences.
COMPARISONS = (
    Comparison(7, "mean_wait", ("static", "pp", "dp-nlp", "dqr")),
    Comparison(8, "utilization_window", ("static", "pp", "dp-nlp", "dqr")),
    Comparison(9, "mean_wait", ("static", "shared", "hybrid")),
    Comparison(10, "mean_bounded_slowdown", ("static", "shared", "hybrid")),
    Comparison(11, "utilization_window", ("static", "shared", "hybrid")),
    Comparison(12, "mean_wait", ("mqb", "dp-nlp")),
    Comparison(13, "utilization_window", ("mqb", "hybrid")),
)


def workload(history: History, base: SiteConfig) -> Iterator[tuple[str, str, str]]:
    """Yield file, title and SVG text of the figures of the jobs: 1, 2, 4, 5, 6a and 6b."""
    month = history.periods("month")[0]
    alone = curves(TrainingSet(Period.of(history.between(month.start, month.end), base)))
    work = _work(history, base)
    by_month = work.resample("1MS").sum()
    labels = [str(at)[:7] for at in by_month.index]
    bars = {str(queue): (by_month[queue] / 1e6).tolist() for queue in by_month}
    each, hours = f"of each queue alone against its nodes, {month.label}", "core-hours of {} jobs, thousands"
    for place, title, svg in (
        ("1", f"wait {each}", _alone(alone, waits=True)),
        ("2", f"utilization {each}", _alone(alone, waits=False)),
        ("4", "core-hours a day", _lines(work.resample("1D").sum(), hours.format("the day's"))),
        ("5", "core-hours of each queue", grouped_bars(labels, bars, label="core-hours, millions")),
        ("6a", "core-hours in ten days", _lines(work.resample("10D").sum(), hours.format("ten days'"))),
        ("6b", "core-hours in a month", _lines(by_month, hours.format("the month's"))),
    ):
        yield f"paper-{place}.svg", f"Figure {place}: {title}", svg


def compared(found: PieceResult) -> Iterator[tuple[str, str, str]]:
    """Yield file, title and SVG text of Figures 7 to 13."""
    for each in COMPARISONS:
        column = COLUMNS[each.metric]
        values = found.by_period(each.metric).map(column.scaled)
        series = {name: values[name].tolist() for name in each.strategies if name in values}
        title = f"Figure {each.number}: {column.caption}, {', '.join(each.strategies)}"
        svg = grouped_bars(found.periods, series, label=column.caption)
        yield f"paper-{each.number}.svg", title, svg


def _work(history: History, base: SiteConfig) -> pd.DataFrame:
    """Return the core-hours of jobs: a row per job, indexed by submission, a column per queue."""
    jobs = history.workload(base)
    hours = jobs.cores * jobs.effective_runtime / 3600
    at = pd.to_datetime(history.epoch + jobs.submit, unit="s")
    return pd.DataFrame(
        {queue.name: np.where(jobs.queue == i, hours, 0.0) for i, queue in enumerate(base.queues)}, index=at
    )


def _lines(work: pd.DataFrame, label: str) -> str:
    days = [(at - work.index[0]).total_seconds() / DAY for at in work.index]
    rows = [
        {"x": day, "y": float(value) / 1e3, "line": str(queue)}
        for queue in work
        for day, value in zip(days, work[queue], strict=True)
    ]
    return line_chart(rows, number("x", "days"), number("y", label), 600, 280, markers=False)


def _alone(found: Sequence[Curve], *, waits: bool) -> str:
    rows = [
        {"x": size, "y": wait / 3600 if waits else 100 * part, "line": curve.queue}
        for curve in found
        for size, wait, part in zip(curve.sizes, curve.waits, curve.utilizations, strict=True)
        if np.isfinite(wait if waits else part)
    ]
    x = number("x", "cores of the partition", grid=True) | {"scale": {"type": "log", "nice": False}}
    y = number("y", "mean wait, h" if waits else "utilization, %")
    return line_chart(rows, x, y, 600, 280, markers=False)
