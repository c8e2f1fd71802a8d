"""A backtest's periods: each strategy in a small panel of its own, as ratios to what it is compared with.

Of one period there is nothing to follow: all strategies are rows of one panel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from parsim.metrics.bottleneck import bottleneck
from qconf.backtest import Backtest
from qconf.history import History
from qconf.report.backtest import running
from qconf.report.figures.base import Figure
from qconf.report.figures.workload import core_hours
from qconf.report.frames import period_frame
from qconf.report.svg import Drawing, Scale, ticks
from qconf.report.wording import number

COLUMNS, TALL, GAP = 3, 96, 56
ROW = 24  #: height of a strategy's row, of one period
HIGHEST = 3.0  #: ratios above are drawn at the edge
EASY = "fcfs-easy"
#: Metric to name, unit of its floor (a minute, a slowdown of 1), and what is drawn of it.
RATIOS = {"mean_wait": ("mean wait", 60.0), "mean_bounded_slowdown": ("bounded slowdown", 1.0)}


def backtest_figures(found: Backtest, history: History) -> dict[str, Figure]:
    """Draw ratios of mean wait and slowdown, and utilization, strategy by strategy, and what was submitted."""
    jobs = history.workload(found.base)
    use = bottleneck(jobs, found.base.system())
    workload = core_hours(jobs, use, found.base.names, history.epoch, history.timezone)
    return {figure.name: figure for figure in (*_figures(found), workload)}


def _figures(found: Backtest) -> Iterator[Figure]:
    present, one = running(found), len(found.folds) == 1
    drawn, periods, better = (_rows, "the test period", "1") if one else (_panels, "each test period", "the line")
    references = {EASY: "before"} | ({} if present == EASY else {present: "after"})
    for metric, (name, floor) in RATIOS.items():
        table = period_frame(found, metric) + floor
        ratios = {other: table.div(table[other], axis=0) for other in references}
        if not np.isfinite(table.to_numpy()).any():
            continue
        text = (
            f"{name[0].upper()}{name[1:]} in {periods} as part of that under {' and '.join(references)}: below "
            f"{better} is better. {'A minute is' if floor > 1 else 'One is'} added to both. Ratios above {HIGHEST:g} "
            "stand at the edge."
        )
        yield Figure(metric.replace("_", "-"), drawn(found, ratios, references, (0, HIGHEST), 1.0).svg(text), text)
    used = 100 * period_frame(found, "utilization_window")
    others = {other: used[[other] * len(used.columns)].set_axis(used.columns, axis=1) for other in references}
    low = float(np.floor(np.nanmin(used.to_numpy()) / 10) * 10) if np.isfinite(used.to_numpy()).any() else 0.0
    text = f"Utilization in {periods}, %, and that under {' and '.join(references)}."
    looks = {"strategy": "plain", **references}
    frames = {"strategy": used, **others}
    yield Figure("utilization", drawn(found, frames, looks, (low, 100.0), None).svg(text), text)


def _panels(
    found: Backtest,
    frames: dict[str, pd.DataFrame],
    looks: dict[str, str],
    bounds: tuple[float, float],
    rule: float | None,
) -> Drawing:
    """Draw a panel for each strategy, with a line of dots for each frame."""
    labels = [fold.label for fold in found.folds]
    names = [name for name in found.strategies if name not in looks]
    drawing = Drawing(0)
    kind = "over " if rule is not None else ""
    top = drawing.legend([(f"line {look}", f"{kind}{other}") for other, look in looks.items()]) + 22
    wide = (drawing.width - 34) / COLUMNS
    for i, name in enumerate(names):
        left, row = 34 + wide * (i % COLUMNS), i // COLUMNS
        x = Scale(-0.5, len(labels) - 0.5, left, left + wide - 22)
        y = Scale(*bounds, top + TALL + row * (TALL + GAP), top + row * (TALL + GAP))
        last = i + COLUMNS >= len(names)
        marks = ticks(*bounds, 4) if i % COLUMNS == 0 else [(value, "") for value, _ in ticks(*bounds, 4)]
        panel = drawing.panel(x, y, title=name, y_ticks=marks, grid="y", x_ticks=_periods(labels) if last else ())
        if rule is not None:
            panel.rule(y=rule)
        for other, frame in frames.items():
            values = frame[name].tolist()
            panel.line(range(len(values)), values, looks[other], other)
            for k, value in enumerate(values):
                if math.isfinite(value):
                    title = f"{name}, {labels[k]}: {number(value)}" + (f" of {other}" if rule is not None else " %")
                    panel.dot(k, value, f"dot {looks[other]}", title, 2.4)
        drawing.height = y.start + 30
    return drawing


def _rows(
    found: Backtest,
    frames: dict[str, pd.DataFrame],
    looks: dict[str, str],
    bounds: tuple[float, float],
    rule: float | None,
) -> Drawing:
    """Draw a row for each strategy, with a dot for each frame: of one period."""
    names = [name for name in found.strategies if rule is None or name not in looks]
    drawing = Drawing(0)
    kind = "over " if rule is not None else ""
    top = drawing.legend([(f"dot {look}", f"{kind}{other}") for other, look in looks.items()]) + 4
    x = Scale(*bounds, 110, drawing.width - 16)
    y = Scale(len(names), 0, top + ROW * len(names), top)
    unit = "ratio" if rule is not None else "%"
    panel = drawing.panel(x, y, x_ticks=ticks(*bounds), grid="x", x_title=unit)
    if rule is not None:
        panel.rule(x=rule)
    for i, name in enumerate(names):
        drawing.text(x.start - 8, y.at(i + 0.5) + 4, name, "end ink")
        for k, (other, frame) in enumerate(frames.items()):
            value = float(frame[name].iloc[0])
            if math.isfinite(value):
                title = f"{name}: {number(value)}" + (f" of {other}" if rule is not None else f" %, {other}")
                panel.dot(value, i + 0.3 + 0.4 * k / max(len(frames) - 1, 1), f"dot {looks[other]}", title)
    drawing.height = y.start + 36
    return drawing


def _periods(labels: Sequence[str], most: int = 3) -> list[tuple[float, str]]:
    step = -(-len(labels) // most)
    return [(float(i), label) for i, label in enumerate(labels)][::step]
