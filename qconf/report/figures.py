"""Figures of recommendations and backtests as SVG text, in the style of `qconf.report.drawing`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from qconf.backtest import Backtest
from qconf.config import SiteConfig
from qconf.recommend import Curve, Recommendation
from qconf.report.drawing import COLOURS, INK, MARKERS, PAPER, draw
from qconf.report.frames import period_frame
from qconf.report.wording import hours
from qconf.strategies import baselines

HATCHES = ("", "//", "..", "xx", "\\\\", "++", "--", "oo")
PLAIN = "#9aa3ad"  #: what is there to compare with
WAIT_TICKS = {0: "0", 60: "1 min", 600: "10 min", 3600: "1 h", 36000: "10 h", 360000: "100 h", 3600000: "1000 h"}
DASHED: Any = {"color": INK, "lw": 1, "ls": (0, (4, 3))}
CUT = 6  #: a bar longer than this many times the current one is cut, its number stays
BARS = 150  #: a figure of more bars shows the best strategies only
SHOWN = 5  #: how many, then
HIGHEST = 3.0  #: ratios above are drawn at the edge


def figures(recommendation: Recommendation) -> dict[str, str]:
    """Draw every figure that the recommendation has the numbers for: name to SVG text."""
    drawn = {}
    if any(row.test is not None and math.isfinite(row.test["mean_wait"]) for row in recommendation.rows):
        drawn["mean-wait"] = mean_wait_figure(recommendation)
    if recommendation.curves:
        marks = {"current": recommendation.base, "recommended": recommendation.config}
        drawn["wait-by-size"] = curves_figure(recommendation.curves, "waits", marks)
        drawn["utilization-by-size"] = curves_figure(recommendation.curves, "utilizations", marks)
    return drawn


def backtest_figures(found: Backtest) -> dict[str, str]:
    """Draw mean waits as grouped bars and ratios as lines, per test period: name to SVG text."""
    waits = period_frame(found, "mean_wait")
    if not np.isfinite(waits.to_numpy()).all():
        return {}
    others = waits.drop(columns="fcfs-easy")
    shown = others
    if others.size > BARS:
        best = others.mean().nsmallest(SHOWN).index
        shown = others[[name for name in others if name in best]]
    drawn = {
        "mean-wait": grouped_bars(
            list(waits.index),
            {str(name): list(values / 3600) for name, values in shown.items()},
            label="mean wait, hours",
            line=list(waits["fcfs-easy"] / 3600),
            line_label="fcfs-easy",
        )
    }
    if len(waits) > 1:
        drawn["ratio"] = _ratio_figure(others.clip(lower=1.0).div(waits["fcfs-easy"].clip(lower=1.0), axis=0))
    return drawn


def _ratio_figure(ratios: pd.DataFrame) -> str:
    """Draw a line per column over the periods."""

    def paint(axes: Any) -> None:  # noqa: ANN401 - matplotlib has no types here
        for i, (name, values) in enumerate(ratios.clip(upper=HIGHEST).items()):
            style = ("-", "--", ":")[i // len(COLOURS) % 3]
            axes.plot(range(len(values)), values, **_look(i), ls=style, ms=4, lw=1.1, label=name)
        axes.axhline(1.0, **DASHED)
        axes.set_ylim(0, HIGHEST * 1.02)
        axes.set_xticks(range(len(ratios)), ratios.index, rotation=45, ha="right")
        axes.set_ylabel("mean wait / that of fcfs-easy")
        axes.grid(axis="y")
        _legend_above(axes, list(ratios.columns))

    return draw(paint, (max(7.2, min(12.0, 0.3 * len(ratios) + 3)), 4.0))


def _look(i: int) -> dict[str, str]:
    """Colour and marker of the `i`-th line."""
    return {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}


def mean_wait_figure(recommendation: Recommendation) -> str:
    """Draw the mean wait of each strategy in the test period; the current one is a line, baselines are grey."""
    found = [(row, math.nan if row.test is None else row.test["mean_wait"]) for row in recommendation.rows]
    rows = [(row, wait) for row, wait in found if math.isfinite(wait)]
    current = next((wait for row, wait in rows if row.name == "current"), None)
    longest = max(wait for _, wait in rows)
    edge = min(longest, CUT * current) if current else longest

    def paint(axes: Any) -> None:  # noqa: ANN401 - matplotlib has no types here
        for i, (row, wait) in enumerate(rows):
            winner, end = row.name == recommendation.winner, min(wait, edge) / 3600
            colour = COLOURS[1] if winner else (PLAIN if row.name in ("current", *baselines()) else COLOURS[0])
            bar = axes.barh(i, end, 0.66, color=colour, lw=0)
            if row.ineligible:
                bar[0].set(facecolor="none", edgecolor=colour, hatch="////", lw=0.8)
            text = hours(wait) + (" »" if wait > edge else "")
            box = {"facecolor": PAPER, "edgecolor": "none", "pad": 0.8}
            axes.annotate(text, (end, i), (5, 0), textcoords="offset points", va="center", bbox=box, zorder=4)
        if current is not None:
            axes.axvline(current / 3600, **DASHED)
        axes.set_yticks(range(len(rows)), [row.name for row, _ in rows])
        for label, (row, _) in zip(axes.get_yticklabels(), rows, strict=True):
            label.set_fontweight("bold" if row.name == recommendation.winner else "normal")
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        axes.margins(x=0.1)
        axes.grid(axis="x")
        cut = "; » a bar that is cut" if longest > edge else ""
        axes.set_xlabel(f"mean wait in the test period, hours{cut}")
        _legend(axes, recommendation, [row.ineligible for row, _ in rows], current is not None)

    return draw(paint, (7.2, 1.3 + 0.3 * len(rows)))


def _label(name: str) -> str:
    """Return a name as a legend shows it: matplotlib hides those that begin with an underscore."""
    return f" {name}" if name.startswith("_") else name


def _legend(axes: Any, recommendation: Recommendation, ineligible: Sequence[str], line: bool) -> None:  # noqa: ANN401
    best = "recommended" if recommendation.verdict == "CHANGE" else "kept"
    looks = {best: COLOURS[1], "baseline": PLAIN, "strategy": COLOURS[0]}
    handles: list[Any] = [Patch(color=colour, label=label) for label, colour in looks.items()]
    if any(ineligible):
        handles.append(Patch(facecolor="none", edgecolor=COLOURS[0], hatch="////", label="ineligible"))
    if line:
        handles.append(Line2D([], [], **DASHED, label="current"))
    axes.figure.legend(handles=handles, loc="outside upper left", ncols=len(handles), fontsize=8, handlelength=1.6)


def curves_figure(
    curves: Sequence[Curve],
    what: Literal["waits", "utilizations"],
    marks: Mapping[str, SiteConfig] | None = None,
) -> str:
    """Draw mean wait or utilization of each queue alone against its partition's size.

    The partition sizes of the configurations `marks` are marked; those of shared machines have none. As figures 1 and
    2 of Kondameedi and Vadhiyar, CCGrid 2017.
    """
    waits = what == "waits"
    shown = {name: config for name, config in (marks or {}).items() if config.mode != "shared"}

    drawn = [curve.waits if waits else [100 * use for use in curve.utilizations] for curve in curves]
    largest = max((value for values in drawn for value in values if math.isfinite(value)), default=0.0)

    def paint(axes: Any) -> None:  # noqa: ANN401
        _size_axis(axes, curves)
        if waits:
            axes.set_yscale("symlog", linthresh=60, linscale=0.5)
            ticks = [tick for tick in WAIT_TICKS if tick <= max(60.0, 3 * largest)]
            axes.set_yticks(ticks, [WAIT_TICKS[tick] for tick in ticks])
            axes.set_yticks([], minor=True)
            axes.set_ylim(-5, max(60.0, 1.6 * largest))
        else:
            axes.set_ylim(0, max(100.0, largest))
        axes.set_ylabel("mean wait of the queue alone" if waits else "utilization of the partition, %")
        axes.grid(axis="both")
        for i, (curve, values) in enumerate(zip(curves, drawn, strict=True)):
            look = _look(i)
            every = max(1, len(values) // 12)
            axes.plot(curve.sizes, values, **look, ms=4, lw=1.4, markevery=every, label=_label(curve.queue))
            for name, config in shown.items():
                size = next((queue.partition for queue in config.queues if queue.name == curve.queue), 0)
                at = _on_the_line(axes, curve.sizes, values, size)
                if at is not None:
                    axes.plot(size, at, ls="", zorder=5, mec=INK, mew=1.1, **_mark(name, look["color"]))
        for name in shown:
            axes.plot([], [], ls="", mec=INK, label=name, **_mark(name, PLAIN))
        _legend_above(axes, [*(curve.queue for curve in curves), *shown])

    return draw(paint, (5.8, 3.9))


def _mark(name: str, colour: str) -> dict[str, Any]:
    """Look of a configuration's partition size: a ring for what is there, a star for what is proposed."""
    if name == "current":
        return {"marker": "o", "ms": 9, "mfc": "none"}
    return {"marker": "*", "ms": 13, "mfc": colour}


def _on_the_line(axes: Any, sizes: Sequence[int], values: Sequence[float], size: int) -> float | None:  # noqa: ANN401
    """Value at `size` on the line as it is drawn, whatever the scales; None beside its ends."""
    points = np.array([(x, y) for x, y in zip(sizes, values, strict=True) if math.isfinite(y)], dtype=np.float64)
    if not len(points) or not points[0, 0] <= size <= points[-1, 0]:
        return None
    scaled = axes.transScale.transform(points)
    x = axes.transScale.transform((size, 1.0))[0]
    y = np.interp(x, scaled[:, 0], scaled[:, 1])
    return float(axes.transScale.inverted().transform((x, y))[1])


def _legend_above(axes: Any, names: Sequence[str]) -> None:  # noqa: ANN401
    """Put the legend over the axes, in as many columns as the longest of `names` allows."""
    columns = max(1, min(6, len(names), int(axes.figure.get_figwidth() * 17 / (6 + max(map(len, names), default=0)))))
    axes.figure.legend(loc="outside upper left", ncols=columns, fontsize=8, handlelength=1.8, columnspacing=1.4)


def _size_axis(axes: Any, curves: Sequence[Curve]) -> None:  # noqa: ANN401
    sizes = [size for curve in curves for size in curve.sizes if size > 0]
    axes.set_xlabel("partition size, cores")
    if not sizes or max(sizes) < 20 * min(sizes):
        return
    axes.set_xscale("log")
    low, high = math.log10(min(sizes)), math.log10(max(sizes))
    ticks = [m * 10**e for e in range(int(low) - 1, int(high) + 2) for m in (1, 2, 5)]
    ticks = [tick for tick in ticks if min(sizes) * 0.99 <= tick <= max(sizes) * 1.01]
    axes.set_xticks(ticks, [f"{tick:,.0f}".replace(",", "\N{THIN SPACE}") for tick in ticks])
    axes.set_xticks([], minor=True)


def grouped_bars(
    groups: Sequence[str],
    series: Mapping[str, Sequence[float]],
    *,
    label: str,
    line: Sequence[float] | None = None,
    line_label: str = "current",
) -> str:
    """Draw a bar per series in each group (a period, a queue), and a line of reference values across the bars.

    A series has a value per group, else ValueError is raised; NaN leaves a gap. `label` has the unit.
    """
    wide = max(1, len(series))
    values = {name: np.asarray(row, dtype=np.float64) for name, row in series.items()}
    if line is not None:
        values[line_label] = np.asarray(line, dtype=np.float64)
    wrong = [name for name, row in values.items() if row.shape != (len(groups),)]
    if wrong:
        raise ValueError(f"{wrong[0]}: {values[wrong[0]].size} values for {len(groups)} groups")

    def paint(axes: Any) -> None:  # noqa: ANN401
        step = 0.84 / wide
        place = np.arange(len(groups), dtype=np.float64)
        for i, name in enumerate(series):
            axes.bar(
                place + (i - (wide - 1) / 2) * step,
                np.nan_to_num(values[name]),
                0.92 * step,
                color=COLOURS[i % len(COLOURS)],
                hatch=HATCHES[i // len(COLOURS) % len(HATCHES)],
                edgecolor=PAPER,
                lw=0,
                label=_label(name),
            )
        if line is not None:
            axes.hlines(values[line_label], place - 0.45, place + 0.45, color=INK, lw=1.4, label=line_label)
        crowded = sum(map(len, groups)) > 70
        axes.set_xticks(place, groups, rotation=45 if crowded else 0, ha="right" if crowded else "center")
        axes.tick_params(axis="x", length=0)
        axes.set_ylabel(label)
        axes.grid(axis="y")
        _legend_above(axes, [*series, *([line_label] if line is not None else [])])

    return draw(paint, (max(7.2, min(12.0, 0.16 * len(groups) * wide + 1.5)), 3.6))
