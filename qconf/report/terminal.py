"""Recommendations and backtests as printed in a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from rich.console import Console
from rich.table import Table
from rich.text import Text

from qconf.backtest import REFERENCES, Average, Backtest
from qconf.recommend import Recommendation, Row
from qconf.report import backtest
from qconf.report.changes import changes
from qconf.report.columns import COMPARISON
from qconf.report.exported import QUEUES, Exported
from qconf.report.layout import console, new_table, print_lines, print_list, print_table, print_text
from qconf.report.nodes import node_tables, printed
from qconf.report.points import typical_table
from qconf.report.verdict import Advice, advise, sections
from qconf.report.wording import ABSENT, fidelity_text, gain_text, interval_text, notes

#: Styles of verdicts in a terminal with colours.
STYLES = {"CHANGE": "bold green", "KEEP": "bold blue", "CHECK": "bold yellow"}
WORSE = "Worse off:"
#: Strategies of the first screen, in addition to the recommendation and the best queue configuration.
FIRST = ("current", "fcfs-easy", "lxf-easy", "hybrid")


def print_advice(found: Recommendation, exported: Exported | None, place: str) -> None:
    """Print the first screen: advice, the main strategies, gains of the others, and where to read on."""
    to = console()
    first = advise(found, exported)
    print_verdict(first)
    _print_losers(first, to)
    for text in first.queues:
        print_text(to, text, "  ")
    shown = [row for row in found.rows if row.name in (*FIRST, found.winner)]
    if (best := found.queues) is not None and best.row.config not in [row.config for row in shown]:
        shown.append(replace(best.row, name=QUEUES, same_as=""))
    if len(found.rows) > 1:
        to.print()
        print_table(to, _strategies(found, shown))
        others = [row for row in found.rows if row not in shown]
        gains = [f"{row.marked} {gain_text(row.gain)}{' x' * bool(row.ineligible)}" for row in others]
        if others:
            print_text(to, f"Gain % of the others (x: ineligible): {', '.join(gains)}.", "  ")
    print_text(to, f"In {place}: report.html; -v prints its tables here", "  ")
    print_text(to, f"Load: {first.load}", "  ")
    print_text(to, f"Undo: {first.undo}", "  ")


def print_verdict(first: Advice) -> None:
    """Print verdict, gain and the facts behind them."""
    to = console()
    print_text(to, " ".join([first.headline, *first.facts[:1]]), style=STYLES[first.verdict])
    for text in first.facts[1:]:
        print_text(to, text, "  ")


def _print_losers(first: Advice, to: Console) -> None:
    for i, text in enumerate(first.losers):
        print_text(to, f"{'' if i else WORSE:{len(WORSE)}} {text}", " " * (len(WORSE) + 1))


def print_recommendation(found: Recommendation, exported: Exported | None = None) -> None:
    """Print the sections beside the advice, all tables, the changes, and why rows are ineligible."""
    to = console()
    rows = found.rows
    if found.near is not None:
        print_text(to, fidelity_text(found.near), "  ")
    if found.proposes:
        print_text(to, found.reason)
    for title, lines in sections(found, exported):
        print_lines(to, f"{title}:", lines)
    to.print()
    print_table(to, _strategies(found, rows))
    if found.ladder:
        to.print()
        print_table(to, _ladder(found))
    for table in node_tables(found):
        to.print()
        print_table(to, printed(table))
    if found.proposes:
        print_list(to, "What changes:", list(changes(found)))
        if found.config.order != found.base.order and (typical := typical_table(found.config)) is not None:
            to.print()
            print_table(to, printed(typical))
    print_list(to, "x ineligible, because:", [(row.name, row.ineligible) for row in rows if row.ineligible])
    print_list(to, "What the strategies noted:", list(notes((row.name, row.decisions) for row in rows)))
    if found.proposes and exported is not None and exported.export.notes:
        print_lines(to, f"What {exported.exporter.name} does otherwise than was simulated:", exported.export.notes)


def _strategies(found: Recommendation, rows: Sequence[Row]) -> Table:
    """Return a table of strategies in the test period: ``>`` is the one to load, ``x`` is ineligible."""
    headings = [*(column.heading for column in COMPARISON), "gain %", "resampled (90 %)"]
    table = new_table(("", "strategy"), headings)
    for row in rows:
        mark = _mark(found, row)
        cells: list[str | Text] = [
            ABSENT if row.test is None else column.write(row.test[column.key]) for column in COMPARISON
        ]
        gain = None if row.name == "current" else row.gain
        style = "red" if (gain or 0.0) < 0 else "green" if gain else ""
        cells += [Text(gain_text(gain), style), interval_text(row.bootstrap, short=True)]
        table.add_row(mark, row.marked, *cells, style={">": "bold", "x": "dim"}.get(mark, ""))
    return table


def _ladder(found: Recommendation) -> Table:
    """Return a table of every rung with a row, its gain, and its gain over the rungs below."""
    rows = []
    for rung, title in zip(found.ladder, found.rung_titles, strict=True):
        gains = (interval_text(each, short=True) for each in (rung.row.bootstrap, rung.step))
        rows.append((_mark(found, rung.row), rung.name, title, *gains))
    headings = ("gain % (90 %)", "over rungs below")
    return new_table(("", "change", "by"), headings, rows, title="From small to large:")


def _mark(found: Recommendation, row: Row) -> str:
    if row.name == found.winner and row.config == found.config:
        return ">"
    return "x" if row.ineligible else ""


def print_backtest(found: Backtest, *, verbose: bool) -> None:
    """Print verdict and table of a backtest; if `verbose`, also the table of periods and notes."""
    to = console()
    first = backtest.advise(found)
    print_verdict(first)
    _print_losers(first, to)
    to.print()
    print_table(to, _averages(found, backtest.headings(), backtest.cells))
    if len(found.folds) > 1 and verbose:
        to.print()
        print_table(to, _averages(found, backtest.PERIOD_HEADINGS, lambda row: backtest.against(row, "fcfs-easy")[1:]))
    texts = backtest.sentences(found) if verbose else backtest.qualifications(found)
    for text in ("", *texts) if texts else ():
        print_text(to, text, "  ")


def _averages(found: Backtest, headings: Sequence[str], cells: Callable[[Average], Sequence[str]]) -> Table:
    """Return a table with a row for each strategy."""
    table = new_table(("strategy",), headings)
    for average in found.averages:
        style = "dim" if average.strategy in REFERENCES else ""
        table.add_row(backtest.mark(found, average), *cells(average), style=style)
    return table
