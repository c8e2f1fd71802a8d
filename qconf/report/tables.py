"""A recommendation as tables: for the terminal, and in long form for other programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from parsim.metrics import METRICS
from qconf.recommend import Recommendation, Row
from qconf.report.changes import told
from qconf.report.terminal import console, filled, print_table
from qconf.report.wording import expected_text, gain_text, hours, number, percent, queue_label

#: Title, metric and how it is written: what a person compares strategies by.
COLUMNS = (
    ("mean wait h", "mean_wait", hours),
    ("p95 wait h", "p95_wait", hours),
    ("max wait h", "max_wait", hours),
    ("bounded sld", "mean_bounded_slowdown", number),
    ("util %", "utilization_window", percent),
)


def strategies_table(recommendation: Recommendation) -> Table:
    """Every strategy on the judged part: ``>`` is what to load, ``x`` may not be recommended."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("")
    table.add_column("strategy", no_wrap=True)
    for title, *_ in COLUMNS:
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("gain %", justify="right", no_wrap=True)
    table.add_column("resampled (90 % interval)", justify="right", no_wrap=True)
    for row in recommendation.rows:
        style = "bold" if row.name == recommendation.winner else ("dim" if row.ineligible else "")
        cells = [] if row.test is None else [write(row.test[key]) for _, key, write in COLUMNS]
        cells = cells or ["-"] * len(COLUMNS)
        cells += ["reference", "-"] if row.name == "current" else [gain_text(row.gain), expected_text(row.bootstrap)]
        table.add_row(_mark(recommendation, row), Text(row.name), *cells, style=style)
    return table


def _mark(recommendation: Recommendation, row: Row) -> str:
    if row.name == recommendation.winner:
        return ">"
    return "x" if row.ineligible else ""


def print_recommendation(recommendation: Recommendation, to: Console | None = None) -> None:
    """Print the verdict, its reason, the table, why some rows may not be recommended, and what had to be noted."""
    to = to or console()
    to.print(Text(filled(f"{recommendation.verdict}: {recommendation.reason}", to.width)), soft_wrap=True)
    to.print()
    print_table(to, strategies_table(recommendation))
    if recommendation.verdict == "CHANGE":
        _print_said(to, "What changes:", list(told(recommendation.base, recommendation.config)))
    _print_said(
        to, "x may not be recommended:", [(row.name, row.ineligible) for row in recommendation.rows if row.ineligible]
    )
    _print_said(to, "What the strategies noted:", list(notes((r.name, r.decisions) for r in recommendation.rows)))


def notes(logs: Iterable[tuple[str, Sequence[Mapping[str, Any]]]]) -> Iterator[tuple[str, str]]:
    """Yield (strategy, note) for what strategies say that a history, or a setting, is too poor for."""
    for name, decisions in logs:
        for note in dict.fromkeys(note for step in decisions for note in step.get("notes", ())):
            yield name, note


def _print_said(to: Console, title: str, said: Sequence[tuple[str, str]]) -> None:
    """Print what is said of each strategy or queue, those of which the same is said together."""
    if not said:
        return
    together: dict[str, list[str]] = {}
    for name, text in said:
        together.setdefault(text, []).append(name)
    to.print()
    to.print(title)
    named = [(", ".join(names), text) for text, names in together.items()]
    indent = " " * (min(24, max(len(names) for names, _ in named)) + 4)
    for names, reason in named:
        head = f"  {names}".ljust(len(indent) - 2) + "  "
        to.print(Text(filled(head + reason, to.width, indent)), soft_wrap=True)


def comparison_frame(recommendation: Recommendation) -> pd.DataFrame:
    """Return every metric of every strategy on the judged part, in long form.

    Returns
    -------
    DataFrame
        strategy, queue, metric, value. Queue ``all`` is the whole; a queue of that name is ``all (queue)``.
        Beside parsim's `METRICS` the whole has the ``gain`` of the objective and, where the judged days were drawn
        anew, ``resampled_gain_expected``, ``resampled_gain_low`` and ``resampled_gain_high``.
        Seconds, shares in 0..1; NaN where there is no such value. Strategies without numbers have no rows.
    """
    return pd.DataFrame(list(_comparison(recommendation)), columns=["strategy", "queue", "metric", "value"])


def _comparison(recommendation: Recommendation) -> Iterator[tuple[str, str, str, float]]:
    for row in recommendation.rows:
        if row.test is None:
            continue
        for metric in METRICS:
            yield row.name, "all", metric, row.test.overall[metric]
        if row.gain is not None:
            yield row.name, "all", "gain", row.gain
        if row.bootstrap is not None:
            for metric in ("expected", "low", "high"):
                yield row.name, "all", f"resampled_gain_{metric}", getattr(row.bootstrap, metric)
        for queue, values in row.test.queues.items():
            for metric in METRICS:
                yield row.name, queue_label(queue), metric, values[metric]
