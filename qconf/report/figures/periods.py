"""Figures of a backtest: a small panel for each strategy, with ratios to its references over the periods.

With a single period, all strategies are rows of one panel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from parsim.metrics.bottleneck import bottleneck
from qconf.backtest import Backtest
from qconf.history import History
from qconf.report.backtest import current_strategy
from qconf.report.charts import STROKES, Figure, Spec, colour, layers, number, panels
from qconf.report.charts import name as name_axis
from qconf.report.figures.workload import core_hours
from qconf.report.frames import period_frame
from qconf.report.wording import number as number_text

HIGHEST = 3.0  #: higher ratios are drawn here
EASY = "fcfs-easy"
#: Name and floor (added to both sides of a ratio) by metric.
RATIOS = {"mean_wait": ("mean wait", 60.0), "mean_bounded_slowdown": ("bounded slowdown", 1.0)}


def backtest_figures(found: Backtest, history: History) -> dict[str, Figure]:
    """Return figures of wait, slowdown and utilization by strategy, and of the submitted work."""
    jobs = history.workload(found.base)
    use = bottleneck(jobs, found.base.system())
    workload = core_hours(jobs, use, found.base.names, history.epoch, history.timezone)
    return {figure.name: figure for figure in (*_figures(found), workload)}


def _figures(found: Backtest) -> Iterator[Figure]:
    present, one = current_strategy(found), len(found.folds) == 1
    periods = "the test period" if one else "each test period"
    references = {EASY: "before"} | ({} if present == EASY else {present: "after"})
    for metric, (name, floor) in RATIOS.items():
        table = period_frame(found, metric) + floor
        ratios = {other: table.div(table[other], axis=0) for other in references}
        if not np.isfinite(table.to_numpy()).any():
            continue
        text = (
            f"{name[0].upper()}{name[1:]} in {periods} as part of that under {' and '.join(references)}: below 1 is "
            f"better. {'A minute is' if floor > 1 else 'One is'} added to both. Ratios above {HIGHEST:g} stand at the "
            "edge."
        )
        over = {f"over {other}": ratio for other, ratio in ratios.items()}
        looks = {f"over {other}": look for other, look in references.items()}
        names = [each for each in found.strategies if each not in references]
        yield Figure(metric.replace("_", "-"), _drawn(found, names, over, looks, (0, HIGHEST), 1.0), text)
    used = 100 * period_frame(found, "utilization_window")
    others = {other: used[[other] * len(used.columns)].set_axis(used.columns, axis=1) for other in references}
    low = float(np.floor(np.nanmin(used.to_numpy()) / 10) * 10) if np.isfinite(used.to_numpy()).any() else 0.0
    text = f"Utilization in {periods}, %, and that under {' and '.join(references)}."
    frames, looks = {"strategy": used, **others}, {"strategy": "q0", **references}
    yield Figure("utilization", _drawn(found, list(found.strategies), frames, looks, (low, 100.0), None), text)


def _drawn(
    found: Backtest,
    names: Sequence[str],
    frames: dict[str, pd.DataFrame],
    looks: dict[str, str],
    bounds: tuple[float, float],
    rule: float | None,
) -> Spec:
    """Draw a panel for each strategy with a line for each frame; with one period a row for each strategy."""
    labels = [fold.label for fold in found.folds]
    unit = "" if rule else " %"
    rows = [
        {"panel": name, "what": what, "period": label, "value": min(max(value, bounds[0]), bounds[1])}
        | {"says": f"{name}, {label}\n{what}: {number_text(value)}{unit}"}
        for name in names
        for what, frame in frames.items()
        for label, value in zip(labels, frame[name].tolist(), strict=True)
        if math.isfinite(value)
    ]
    value = number("value", domain=bounds, tickCount=4, grid=True)
    color = colour("what", looks)
    one = len(labels) == 1
    zero = {} if rule is None else {"mark": {"type": "rule", "strokeDash": [4, 3]}}
    rules = [{**zero, "encoding": {"x" if one else "y": {"datum": rule}}}] if zero else []
    if one:
        y = name_axis("panel", sort=names, domain=False, ticks=False)
        dot = {"mark": {"type": "point", "filled": True, "size": 70, "opacity": 1}}
        encoding = {"x": value, "y": y, "color": color, "shape": {**color, "scale": {"domain": list(looks)}}}
        encoding["tooltip"] = {"field": "says"}
        return {"data": {"values": rows}, **layers({**dot, "encoding": encoding}, *rules, height={"step": 22})}
    x = name_axis("period", sort=labels, labelAngle=0)
    color["legend"] = STROKES
    dashes = {**color, "scale": {"domain": list(looks)}}
    encoding = {"x": x, "y": value, "color": color, "strokeDash": dashes, "tooltip": {"field": "says"}}
    line = {"mark": {"type": "line", "point": {"size": 25}}, "encoding": encoding}
    return panels(rows, names, layers(line, *rules, height=90))
