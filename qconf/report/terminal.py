"""What a terminal shows of a recommendation and of a backtest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table

from qconf.backtest import REFERENCES, Average, Backtest
from qconf.recommend import Recommendation
from qconf.recommend.fidelity import Fidelity
from qconf.report import backtest, verdict
from qconf.report.changes import changes
from qconf.report.columns import COMPARISON
from qconf.report.layout import console, new_table, print_lines, print_list, print_table, print_text
from qconf.report.nodes import node_tables, printed
from qconf.report.wording import ABSENT, gain_text, interval_text, notes


def print_recommendation(
    recommendation: Recommendation, to: Console | None = None, near: Fidelity | None = None
) -> None:
    """Print the verdict and what stands beside it, the tables, what changes, and why rows are ineligible."""
    to = to or console()
    rows = recommendation.rows
    print_verdict(recommendation, to, near)
    for title, lines in verdict.sections(recommendation, near):
        print_lines(to, f"{title}:", lines)
    to.print()
    print_table(to, _strategies(recommendation))
    if recommendation.ladder:
        to.print()
        print_table(to, _ladder(recommendation))
    for table in node_tables(recommendation):
        to.print()
        print_table(to, printed(table))
    if recommendation.verdict == "CHANGE":
        print_list(to, "What changes:", list(changes(recommendation)))
    print_list(to, "x ineligible, because:", [(row.name, row.ineligible) for row in rows if row.ineligible])
    print_list(to, "What the strategies noted:", list(notes((row.name, row.decisions) for row in rows)))


def print_verdict(recommendation: Recommendation, to: Console | None = None, near: Fidelity | None = None) -> None:
    """Print the verdict, in doubt where the simulation is far from what was recorded, and its reason."""
    to = to or console()
    for text in (*verdict.headline(recommendation, near), *verdict.best_queues(recommendation)):
        print_text(to, text, "  " if text.startswith("Best") else "")


def _strategies(recommendation: Recommendation) -> Table:
    """Every strategy in the test period: ``>`` is what to load, ``x`` is ineligible."""
    headings = [*(column.heading for column in COMPARISON), "gain %", "resampled (90 %)"]
    table = new_table(("", "strategy"), headings)
    for row in recommendation.rows:
        style = "bold" if row.name == recommendation.winner else ("dim" if row.ineligible else "")
        cells = [ABSENT if row.test is None else column.write(row.test[column.key]) for column in COMPARISON]
        gain = None if row.name == "current" else row.gain
        cells += [gain_text(gain), interval_text(row.bootstrap, short=True)]
        mark = ">" if row.name == recommendation.winner else "x" if row.ineligible else ""
        table.add_row(mark, row.marked, *cells, style=style)
    return table


def _ladder(recommendation: Recommendation) -> Table:
    """Every rung that was tried, with its gain and what it gains over the rungs below."""
    table = new_table(("", "change", "by"), ("gain % (90 %)", "over rungs below"), title="From small to large:")
    for rung, title in zip(recommendation.ladder, recommendation.rung_titles, strict=True):
        row = rung.row
        mark = (
            ">"
            if row.name == recommendation.winner and row.config == recommendation.config
            else "x"
            if row.ineligible
            else ""
        )
        table.add_row(mark, rung.name, title, *(interval_text(each, short=True) for each in (row.bootstrap, rung.step)))
    return table


def print_backtest(found: Backtest, to: Console | None = None) -> None:
    """Print the table of a backtest, that of its periods where there are several, and what a reader has to know."""
    to = to or console()
    print_table(to, _averages(found, backtest.headings(), backtest.cells))
    if len(found.folds) > 1:
        to.print()
        print_table(to, _averages(found, backtest.PERIOD_HEADINGS, backtest.period_cells))
    to.print()
    for sentence in backtest.sentences(found):
        print_text(to, sentence, "  ")


def _averages(found: Backtest, headings: Sequence[str], cells: Callable[[Average], Sequence[str]]) -> Table:
    """Return a table with a row for each strategy."""
    table = new_table(("strategy",), headings)
    for average in found.averages:
        style = "dim" if average.strategy in REFERENCES else ""
        table.add_row(backtest.mark(found, average), *cells(average), style=style)
    return table
