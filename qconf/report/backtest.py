"""A walk-forward as tables, figures and a page."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from parsim.metrics import METRICS
from qconf.backtest import REFERENCES, Average, Backtest, FoldResult
from qconf.evaluation.score import OBJECTIVE_TEXTS
from qconf.history import History
from qconf.report.drawing import COLOURS, INK, MARKERS, draw
from qconf.report.figures import grouped_bars
from qconf.report.html import page, settings_rows, steps
from qconf.report.tables import notes
from qconf.report.terminal import WIDTH, console, print_table
from qconf.report.wording import ABSENT, hours, number, percent, queue_label

BARS = 150  #: a figure of more bars shows the best strategies only
SHOWN = 5  #: how many, then
HIGHEST = 3.0  #: ratios above are drawn at the edge

CAPTIONS = {
    "mean-wait": "Mean wait per judged period.",
    "ratio": "Mean wait per judged period as part of that under fcfs-easy: below the line is better. "
    f"Ratios above {HIGHEST:g} stand at the edge.",
}


def backtest_frame(found: Backtest) -> pd.DataFrame:
    """Return every metric of every strategy in every period: period, strategy, queue, metric, value.

    Queue ``all`` is the whole; a queue of that name is ``all (queue)``. Seconds, shares in 0..1, NaN where there is
    no such value.
    """
    rows = (
        (verdict.period, verdict.strategy, queue, metric, values[metric])
        for verdict in found.results
        for queue, values in _queues(verdict)
        for metric in METRICS
    )
    return pd.DataFrame(list(rows), columns=["period", "strategy", "queue", "metric", "value"])


def _queues(verdict: FoldResult) -> Iterator[tuple[str, dict[str, float]]]:
    yield "all", verdict.summary.overall
    for queue, values in verdict.summary.queues.items():
        yield queue_label(queue), values


def columns(found: Backtest) -> list[str]:
    """Titles of the summary table; with one period there is no best and no worst."""
    titles = ["wait h", *(f"/{name.removeprefix('fcfs-')}" for name in REFERENCES), "bounded sld", "/easy"]
    titles += ["max wait h", "/easy", "util %"]
    return titles if len(found.folds) == 1 else [*titles, "worse %", "worst period"]


def cells(found: Backtest, average: Average) -> list[str]:
    """Write the row of a strategy in the summary table."""
    means, easy = average.means, average.against["fcfs-easy"]
    out = [hours(means["mean_wait"])]
    out += [_ratio(average.against[name].ratios["mean_wait"]) for name in REFERENCES]
    out += [number(means["mean_bounded_slowdown"]), _ratio(easy.ratios["mean_bounded_slowdown"])]
    out += [hours(means["max_wait"]), _ratio(easy.ratios["max_wait"]), percent(means["utilization_window"])]
    if len(found.folds) > 1:
        worst = ABSENT if average.strategy == "fcfs-easy" else f"{easy.worst[0]} {_change(easy.worst[1])}"
        out += [f"{100 * easy.worse:.0f}", worst]
    return out


def _ratio(value: float) -> str:
    return f"{value:.3f}" if value < 100 else f"{value:.0f}"


def _change(reduction: float) -> str:
    """Write a reduction as the change it is: less is minus."""
    return f"{-100 * reduction + 0.0:+.0f} %"


def summary_table(found: Backtest) -> Table:
    """Every strategy over all periods."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("strategy", no_wrap=True)
    for title in columns(found):
        table.add_column(title, justify="right", no_wrap=True)
    for average in found.averages:
        plain = average.strategy in REFERENCES
        table.add_row(Text(mark(found, average)), *cells(found, average), style="dim" if plain else "")
    return table


def mark(found: Backtest, average: Average) -> str:
    """Name a strategy: * where no batch system can be told what it does, # where it changes what is fixed."""
    own = [verdict for verdict in found.results if verdict.strategy == average.strategy]
    star = "*" if any(verdict.not_exportable for verdict in own) else ""
    return average.strategy + star + ("#" if any(verdict.fixed for verdict in own) else "")


def sentences(found: Backtest) -> list[str]:
    """Say what the table does not: on whom it rests, what was left out, where a strategy had no answer."""
    folds = found.folds
    jobs = sum(fold.jobs for fold in folds)
    if len(folds) > 1:
        text = (
            f"{len(folds)} judged periods, {folds[0].label} to {folds[-1].label}, {jobs} jobs. Columns with / are "
            "ratios of means over the periods, /easy to fcfs-easy; worse % are the periods in which "
            f"{OBJECTIVE_TEXTS[found.objective]} is more than under fcfs-easy."
        )
        out = [text, _best(found)]
    else:
        text = (
            f"{folds[0].training_jobs} jobs learned from, {jobs} judged; {folds[0].warmup_jobs} before these fill the "
            "machine and are not counted. Columns with / are ratios, /easy to fcfs-easy."
        )
        out = [text]
    out += [f"left out: {label}: {why}" for label, why in found.skipped]
    out += found.notes
    starred = {verdict.not_exportable: verdict.strategy for verdict in found.results if verdict.not_exportable}
    out += [f"* {why}" for why in starred]
    out += list(_fixed(found))
    out += list(_noted(found))
    if all(fold.warmup_jobs == 0 for fold in folds) and found.settings["warmup_days"]:
        out += ["No job was submitted shortly before what is judged: the machine is empty at its beginning."]
    return out


def _noted(found: Backtest) -> Iterator[str]:
    """Tell what strategies noted, and in how many periods; several that noted the same together."""
    said: dict[str, dict[str, set[str]]] = {}
    for verdict in found.results:
        for name, note in notes([(verdict.strategy, verdict.decisions)]):
            said.setdefault(note, {}).setdefault(name, set()).add(verdict.period)
    for note, who in said.items():
        periods = set().union(*who.values())
        yield f"{', '.join(who)} noted, in {len(periods)} of {len(found.folds)} periods: {note}"


def _fixed(found: Backtest) -> Iterator[str]:
    """Say of each strategy what it changes that is fixed; several that change the same together."""
    paths: dict[str, dict[str, None]] = {}
    for verdict in found.results:
        if verdict.fixed:
            paths.setdefault(verdict.strategy, {}).update(dict.fromkeys(verdict.fixed))
    names: dict[tuple[str, ...], list[str]] = {}
    for name, changed in paths.items():
        names.setdefault(tuple(sorted(changed)), []).append(name)
    for fixed, who in names.items():
        verb = "changes" if len(who) == 1 else "change"
        yield f"# {', '.join(who)} {verb} what is fixed, and may not be recommended: {', '.join(fixed)}"


def _best(found: Backtest) -> str:
    best = max(found.averages, key=lambda average: average.against["fcfs-easy"].reduction)
    parts = []
    for name in REFERENCES:
        if name != best.strategy:
            beside = best.against[name]
            best_period, worst_period = (f"{label} {_change(value)}" for label, value in (beside.best, beside.worst))
            parts.append(f"{_change(beside.reduction)} against {name} (best {best_period}, worst {worst_period})")
    return f"Least {OBJECTIVE_TEXTS[found.objective]}, as the mean of the periods' changes: {best.strategy}, {'; '.join(parts)}."


def print_backtest(found: Backtest, to: Console | None = None) -> None:
    """Print the table and what has to be said about it."""
    to = to or console()
    print_table(to, summary_table(found))
    to.print()
    for sentence in sentences(found):
        text = textwrap.fill(sentence, min(to.width, WIDTH), subsequent_indent="  ", break_on_hyphens=False)
        to.print(Text(text), soft_wrap=True)


def walk_figures(found: Backtest) -> dict[str, str]:
    """Draw mean waits as grouped bars and ratios as lines, per period: name to SVG text."""
    waits = _per_period(found)
    if not all(math.isfinite(value) for row in waits.values() for value in row):
        return {}
    shown = [name for name in waits if name != "fcfs-easy"]
    if len(shown) * len(found.folds) > BARS:
        best = sorted(shown, key=lambda name: float(np.mean(waits[name])))[:SHOWN]
        shown = [name for name in shown if name in best]
    labels = [fold.label for fold in found.folds]
    bars = grouped_bars(
        labels,
        {name: [value / 3600 for value in waits[name]] for name in shown},
        label="mean wait, hours",
        line=[value / 3600 for value in waits["fcfs-easy"]],
        line_label="fcfs-easy",
    )
    drawn = {"mean-wait": bars}
    if len(labels) > 1:
        drawn["ratio"] = _ratio_figure(labels, waits)
    return drawn


def _per_period(found: Backtest) -> dict[str, list[float]]:
    waits: dict[str, list[float]] = {name: [] for name in found.strategies}
    for verdict in found.results:
        waits[verdict.strategy].append(verdict.summary["mean_wait"])
    return waits


def _ratio_figure(labels: Sequence[str], waits: Mapping[str, Sequence[float]]) -> str:
    def paint(axes: Any) -> None:  # noqa: ANN401 - matplotlib has no types here
        place = np.arange(len(labels))
        reference = np.maximum(np.asarray(waits["fcfs-easy"], dtype=np.float64), 1.0)
        others = [name for name in waits if name != "fcfs-easy"]
        for i, name in enumerate(others):
            ratio = np.maximum(np.asarray(waits[name], dtype=np.float64), 1.0) / reference
            look = {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}
            style = ("-", "--", ":")[i // len(COLOURS) % 3]
            axes.plot(place, np.minimum(ratio, HIGHEST), **look, ls=style, ms=4, lw=1.1, label=name)
        axes.axhline(1.0, color=INK, lw=1, ls=(0, (4, 3)))
        axes.set_ylim(0, HIGHEST * 1.02)
        axes.set_xticks(place, labels, rotation=45, ha="right")
        axes.set_ylabel("mean wait / that of fcfs-easy")
        axes.grid(axis="y")
        axes.figure.legend(loc="outside upper left", ncols=6, fontsize=8, handlelength=1.8, columnspacing=1.4)

    return draw(paint, (max(7.2, min(12.0, 0.3 * len(labels) + 3)), 4.0))


def render_walk(
    found: Backtest, history: History, drawn: Mapping[str, str], warnings: Sequence[str] = (), *, one: bool = False
) -> str:
    """Write the page: one file that opens offline; of `one` period alone, or of as many as there are."""
    rows = [
        {
            "name": mark(found, average),
            "baseline": average.strategy in REFERENCES,
            "cells": cells(found, average),
        }
        for average in found.averages
    ]
    folds = [
        {
            "fold": fold,
            "waits": [
                hours(verdict.summary["mean_wait"]) + (" °" if verdict.fallback else "")
                for verdict in found.results
                if verdict.period == fold.label
            ],
        }
        for fold in found.folds
    ]
    return page(
        "walk.html.j2",
        drawn,
        CAPTIONS,
        found=found,
        one=one,
        history=history,
        titles=columns(found),
        rows=rows,
        folds=folds,
        sentences=sentences(found),
        settings=settings_rows(found.settings),
        warnings=list(warnings),
        against=[
            {
                "strategy": average.strategy,
                "cells": [_against_cells(average, name) for name in REFERENCES],
            }
            for average in found.averages
        ],
        references=REFERENCES,
        objective=OBJECTIVE_TEXTS[found.objective],
        decisions=[
            (verdict.strategy, steps(verdict.decisions))
            for verdict in found.results
            if verdict.period == found.folds[-1].label and verdict.decisions
        ],
    )


def _against_cells(average: Average, reference: str) -> tuple[str, str, str]:
    if average.strategy == reference:
        return ABSENT, ABSENT, ABSENT
    against = average.against[reference]
    return (
        _change(against.reduction),
        f"{against.best[0]} {_change(against.best[1])}",
        f"{against.worst[0]} {_change(against.worst[1])}",
    )
