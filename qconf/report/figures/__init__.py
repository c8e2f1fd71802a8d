"""Figures of recommendations and backtests, each a specification and a caption."""

from __future__ import annotations

from collections.abc import Iterator

from parsim.metrics.bottleneck import bottleneck
from qconf.history import History
from qconf.recommend import Recommendation, default_strategies
from qconf.report.charts import Figure, hues
from qconf.report.figures.checks import recorded_figure, surrogate_figure
from qconf.report.figures.gains import gain_figures
from qconf.report.figures.gantt import gantt
from qconf.report.figures.machine import curves_figure, machine_bar, path_figure
from qconf.report.figures.orders import formula_figure, tails_figure
from qconf.report.figures.periods import backtest_figures
from qconf.report.figures.waits import glance_figure, over_time, waits_figure
from qconf.report.figures.workload import core_hours, queue_map
from qconf.report.story import story
from qconf.strategies import baselines


def figures(found: Recommendation, history: History | None = None) -> dict[str, Figure]:
    """Return every figure that has data, by name; the history provides jobs' ids, users and days."""
    return {figure.name: figure for figure in _figures(found, history) if figure is not None}


def _figures(found: Recommendation, history: History | None) -> Iterator[Figure | None]:
    change, other, names = found.proposes, found.without_scripts, found.base.names
    yield from gain_figures(found)
    yield formula_figure(found.config) if change else None
    if other is not None and other.config is not None:
        yield formula_figure(other.config, "order-without-scripts")
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
        yield curves_figure(found.curves, "waits", dict(configs), looks)
        yield curves_figure(found.curves, "utilizations", dict(configs), looks)
    if (partitions := story(found)) is not None:
        yield path_figure(partitions)
    # The surrogates of one strategy: the others begin with the same ones.
    yield next(filter(None, (surrogate_figure(row.decisions) for row in found.rows)), None)
    yield from (tails_figure(row.decisions) for row in found.rows if row.name == "auto")
    yield None if found.near is None else recorded_figure(found.near, looks)


def partitioned(found: Recommendation) -> bool:
    """Return whether partitions exist, are proposed by an eligible row, or were asked for by naming strategies."""
    usual = {*default_strategies(), *baselines(found.base), "current"}
    named = set(found.settings.get("strategies", usual)) != usual
    divided = [row for row in found.rows if row.config is not None and row.config.mode != "shared"]
    return found.base.mode != "shared" or any(row.eligible or named for row in divided)


__all__ = ["Figure", "backtest_figures", "figures", "partitioned"]
