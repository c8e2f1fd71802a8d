"""Figures of recommendations and backtests: of each its specification and its caption."""

from __future__ import annotations

from collections.abc import Iterator

from parsim.metrics.bottleneck import bottleneck
from qconf.history import History
from qconf.recommend import Recommendation, default_strategies
from qconf.report.charts import Figure
from qconf.report.figures.base import hues
from qconf.report.figures.checks import recorded_figure, surrogate_figure
from qconf.report.figures.formula import formula_figure
from qconf.report.figures.gains import gain_figures
from qconf.report.figures.gantt import gantt
from qconf.report.figures.machine import curves_figure, machine_bar, path_figure
from qconf.report.figures.over_time import over_time
from qconf.report.figures.periods import backtest_figures
from qconf.report.figures.tails import tails_figure
from qconf.report.figures.waits import glance_figure, waits_figure
from qconf.report.figures.workload import core_hours, queue_map
from qconf.report.story import story
from qconf.strategies import baselines


def figures(found: Recommendation, history: History | None = None) -> dict[str, Figure]:
    """Draw every figure that there are numbers for, by name; of jobs' ids, users and days the history tells."""
    return {figure.name: figure for figure in _figures(found, history)}


def _figures(found: Recommendation, history: History | None) -> Iterator[Figure]:
    change = found.proposes
    yield from gain_figures(found)
    if change and (order := formula_figure(found.config)) is not None:
        yield order
    other = found.without_scripts
    if other is not None and other.config is not None:
        order = formula_figure(other.config, "order-without-scripts")
        yield from [order] if order is not None else []
    names = found.base.names
    weights = [1.0] * len(names)
    epoch, where = (0, "UTC") if history is None else (history.epoch, history.timezone)
    if found.present is not None:
        weights = found.present.outcome.period.core_seconds.tolist()
        shown = [("before", found.present)]
        if found.changed is not None:
            shown.append(("after", found.changed))
        outcomes = [(name, each.outcome) for name, each in shown]
        yield glance_figure(outcomes)
        yield over_time(outcomes, epoch, where)
        yield waits_figure(outcomes)
        yield gantt(shown, history, epoch, where)
    if history is not None and len(history):
        jobs = history.workload(found.base)
        yield core_hours(jobs, bottleneck(jobs, found.base.system()), names, epoch, where)
        yield queue_map(jobs, found.base, found.config)
    looks = hues(names, weights)
    configs = [("before", found.base), *([("after", found.config)] if change else [])]
    yield machine_bar(configs, looks)
    if partitioned(found) and found.curves:
        for what in ("waits", "utilizations"):
            yield curves_figure(found.curves, what, dict(configs), looks)
    partitions = story(found)
    if partitions is not None and (path := path_figure(partitions)) is not None:
        yield path
    yield from _surrogates(found)
    prices = (tails_figure(row.decisions) for row in found.rows if row.name == "auto")
    yield from (figure for figure in prices if figure is not None)
    if found.near is not None and (figure := recorded_figure(found.near, looks)) is not None:
        yield figure


def partitioned(found: Recommendation) -> bool:
    """Whether partitions are there, are proposed by what may be recommended, or were wanted: strategies were named."""
    usual = {*default_strategies(), *baselines(found.base), "current"}
    named = set(found.settings.get("strategies", usual)) != usual
    divided = [row for row in found.rows if row.config is not None and row.config.mode != "shared"]
    return found.base.mode != "shared" or any(row.eligible or named for row in divided)


def _surrogates(found: Recommendation) -> Iterator[Figure]:
    """Draw the surrogates of the first strategy that has some: the others begin with the same."""
    for row in found.rows:
        if (figure := surrogate_figure(row.decisions)) is not None:
            yield figure
            return


__all__ = ["Figure", "backtest_figures", "figures", "partitioned"]
