"""What a terminal shows: a recommendation, a backtest, and the tables and lines that all commands share."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from qconf.backtest import REFERENCES, Backtest
from qconf.recommend import Recommendation
from qconf.report import backtest
from qconf.report.changes import changes
from qconf.report.columns import COMPARISON
from qconf.report.wording import ABSENT, gain_text, interval_text, notes
from qconf.text import grouped

WIDTH = 110
NO_BREAK = "\N{NO-BREAK SPACE}"
UNBOUNDED = 1000  # characters, of no table


def filled(text: str, width: int = WIDTH, indent: str = "") -> str:
    """Break a text into lines, none between a number and its unit; those after the first begin with `indent`."""
    glued = re.sub(r"(?<=[0-9]) (?=(?:%|h|s)(?![A-Za-z0-9]))", NO_BREAK, text)
    lines = textwrap.fill(glued, min(width, WIDTH), subsequent_indent=indent, break_on_hyphens=False)
    return lines.replace(NO_BREAK, " ")


def console() -> Console:
    """Return the console of tables: as wide as the terminal, or plain text `WIDTH` wide where there is none."""
    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(width=WIDTH, highlight=False, color_system=None, force_terminal=False)


def new_table(texts: Sequence[str], numbers: Sequence[str], *, title: str | None = None, gap: int = 2) -> Table:
    """Return an empty table: columns of texts, then columns of numbers, `gap` characters between them."""
    table = Table(title=title, title_justify="left", box=None, padding=(0, gap, 0, 0), pad_edge=False)
    for heading in texts:
        table.add_column(heading, no_wrap=True)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def print_table(to: Console, table: Table) -> None:
    """Print a table with every cell whole: a terminal too narrow for it breaks the lines, and nothing is cut off."""
    width = to.width
    to.width = max(width, to.measure(table, options=to.options.update(max_width=UNBOUNDED)).maximum)
    to.print(table)
    to.width = width


def print_recommendation(recommendation: Recommendation, to: Console | None = None) -> None:
    """Print the verdict, its reason, the table, what changes, why rows are ineligible, and the strategies' notes."""
    to = to or console()
    rows = recommendation.rows
    to.print(Text(filled(f"{recommendation.verdict}: {recommendation.reason}", to.width)), soft_wrap=True)
    to.print()
    print_table(to, _strategies(recommendation))
    if recommendation.ladder:
        to.print()
        print_table(to, _ladder(recommendation))
    if recommendation.verdict == "CHANGE":
        _print_list(to, "What changes:", list(changes(recommendation)))
    _print_list(to, "x ineligible, because:", [(row.name, row.ineligible) for row in rows if row.ineligible])
    _print_list(to, "What the strategies noted:", list(notes((row.name, row.decisions) for row in rows)))


def _strategies(recommendation: Recommendation) -> Table:
    """Every strategy in the test period: ``>`` is what to load, ``x`` is ineligible."""
    headings = [*(column.heading for column in COMPARISON), "gain %", "resampled (90 % interval)"]
    table = new_table(("", "strategy"), headings)
    for row in recommendation.rows:
        style = "bold" if row.name == recommendation.winner else ("dim" if row.ineligible else "")
        cells = [ABSENT if row.test is None else column.write(row.test[column.key]) for column in COMPARISON]
        cells += ["reference", ABSENT] if row.name == "current" else [gain_text(row.gain), interval_text(row.bootstrap)]
        mark = ">" if row.name == recommendation.winner else "x" if row.ineligible else ""
        table.add_row(mark, Text(row.label), *cells, style=style)
    return table


def _ladder(recommendation: Recommendation) -> Table:
    """Every rung that was tried, with its gain and what it gains over the line above."""
    table = new_table(
        ("", "change", "by"), ("gain (90 % interval)", "over the line above"), title="From small to large:"
    )
    for rung in recommendation.ladder:
        row = rung.row
        mark = (
            ">"
            if row.name == recommendation.winner and row.config == recommendation.config
            else "x"
            if row.ineligible
            else ""
        )
        texts = (rung.name, f"{row.label}: {row.title}" if row.title else row.label)
        table.add_row(mark, *map(Text, texts), interval_text(row.bootstrap), interval_text(rung.step))
    return table


def _print_list(to: Console, title: str, items: Sequence[tuple[str, str]]) -> None:
    """Print a text for each strategy or queue, once for all that have the same."""
    if not items:
        return
    to.print()
    to.print(title)
    named = [(", ".join(names), text) for text, names in grouped((text, name) for name, text in items).items()]
    indent = " " * (min(24, max(len(names) for names, _ in named)) + 4)
    for names, text in named:
        label = f"  {names}".ljust(len(indent) - 2) + "  "
        to.print(Text(filled(label + text, to.width, indent)), soft_wrap=True)


def print_backtest(found: Backtest, to: Console | None = None) -> None:
    """Print the table of a backtest and what a reader has to know about it."""
    to = to or console()
    table = new_table(("strategy",), backtest.headings(found), gap=1)
    for average in found.averages:
        style = "dim" if average.strategy in REFERENCES else ""
        table.add_row(Text(backtest.mark(found, average)), *backtest.cells(found, average), style=style)
    print_table(to, table)
    to.print()
    for sentence in backtest.sentences(found):
        text = textwrap.fill(sentence, min(to.width, WIDTH), subsequent_indent="  ", break_on_hyphens=False)
        to.print(Text(text), soft_wrap=True)
