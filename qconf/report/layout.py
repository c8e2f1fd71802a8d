"""Layout of texts and tables in a terminal: its width, or 80 columns without one."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from qconf.inert import inert
from qconf.text import grouped

WIDTH = 80  #: columns without a terminal
NARROWEST = 12  #: least width of a text column in a table
MOST = 100  #: most columns of a paragraph: longer lines are hard to read
NO_BREAK = "\N{NO-BREAK SPACE}"


def width() -> int:
    """Return the width of stdout's terminal in columns, else `WIDTH`."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or WIDTH
    except (AttributeError, OSError, ValueError):
        return WIDTH


def filled(text: str, columns: int | None = None, indent: str = "") -> str:
    """Break a text into lines of at most `columns` (default: the terminal's width) and `MOST`.

    No line breaks between a number and its unit, or within a word such as a path; lines after the first begin with
    `indent`.
    """
    glued = re.sub(r"(?<=[0-9]) (?=(?:%|h|s)(?![A-Za-z0-9]))", NO_BREAK, inert(text, lines=True))
    lines = textwrap.fill(
        glued,
        min(width() if columns is None else columns, MOST),
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return lines.replace(NO_BREAK, " ")


def listed(items: Iterable[tuple[str, str]], columns: int | None = None) -> list[str]:
    """Return a paragraph for each text of (name, text) items: on the left the names that have it, then the text."""
    named = [(", ".join(names), text) for text, names in grouped((text, name) for name, text in items).items()]
    indent = " " * (min(24, max((len(names) for names, _ in named), default=0)) + 4)
    return [filled(f"  {names}".ljust(len(indent) - 2) + f"  {text}", columns, indent) for names, text in named]


def styled(stream: TextIO) -> TextIO:
    """Return the stream that takes a terminal's colours, if `stream` itself takes plain text only."""
    return getattr(stream, "styled", stream)


class InertTable(Table):
    """A table whose cells are shown as plain text, without markup."""

    def add_row(self, *cells: Any, **given: Any) -> None:  # noqa: ANN401 - of rich
        """Add a row of plain texts."""
        super().add_row(*(Text(inert(str(cell)), style=getattr(cell, "style", "")) for cell in cells), **given)


def console() -> Console:
    """Return the console for tables: as wide as the terminal; without one, plain text of `WIDTH`."""
    if sys.stdout.isatty():
        return Console(highlight=False, file=styled(sys.stdout))
    return Console(width=WIDTH, highlight=False, color_system=None, force_terminal=False)


def new_table(
    texts: Sequence[str], numbers: Sequence[str], rows: Iterable[Sequence[str]] = (), *, title: str | None = None
) -> Table:
    """Return a table: columns of texts, then columns of numbers."""
    table = InertTable(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for heading in texts:
        table.add_column(heading, no_wrap=True, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def print_table(to: Console, table: Table) -> None:
    """Print a table with every cell whole.

    If the console is too narrow, columns move closer, then texts break; numbers never do, and a line that is still too
    long is not cut off. On a terminal narrower than `WIDTH` each row then becomes a paragraph with named cells.
    """
    available = to.width
    widest = [max(cell_len(str(cell)) for cell in (column.header, *column.cells)) for column in table.columns]
    gaps = len(widest) - 1
    if sum(widest) + 2 * gaps > available:
        table.padding = (0, 1, 0, 0)
        if sum(widest) + gaps > available:
            for i, column in enumerate(table.columns):
                if column.justify != "right":
                    column.no_wrap, column.overflow = False, "fold"
                    column.min_width = widest[i] = min(NARROWEST, widest[i])
    if to.is_terminal and sum(widest) + gaps > available and available < WIDTH:
        for cells in zip(*(map(str, column.cells) for column in table.columns), strict=True):
            row = [(column, cell) for column, cell in zip(table.columns, cells, strict=True) if cell not in ("", "-")]
            texts = [cell for column, cell in row if column.justify != "right"]
            numbers = [f"{column.header} {cell}" for column, cell in row if column.justify == "right"]
            print_text(to, ": ".join(filter(None, (" ".join(texts), ", ".join(numbers)))), "    ")
        return
    to.width = max(available, sum(widest) + gaps)
    to.print(table)
    to.width = available


def print_text(to: Console, text: str, indent: str = "", *, style: str = "") -> None:
    """Print a paragraph; lines after the first begin with `indent`. The first word gets the style."""
    shown = Text(filled(text, to.width, indent))
    shown.stylize(style, 0, len(text.partition(" ")[0]))
    to.print(shown, soft_wrap=True)


def print_list(to: Console, title: str, items: Sequence[tuple[str, str]]) -> None:
    """Print (name, text) items below a title; names with the same text share a line. Print nothing for no items."""
    if items:
        _print_below(to, title, listed(items, to.width))


def print_lines(to: Console, title: str, lines: Iterable[str]) -> None:
    """Print a title, and lines below it; continuation lines are indented further."""
    _print_below(to, title, (filled(f"  {line}", to.width, "    ") for line in lines))


def _print_below(to: Console, title: str, texts: Iterable[str]) -> None:
    to.print()
    to.print(Text(title))
    for text in texts:
        to.print(Text(text), soft_wrap=True)
