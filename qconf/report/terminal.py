"""Where tables are printed: on a terminal, or as plain text of one width."""

from __future__ import annotations

import re
import sys
import textwrap

from rich.console import Console
from rich.table import Table

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


def print_table(to: Console, table: Table) -> None:
    """Print a table with every cell whole: a terminal too narrow for it breaks the lines, and nothing is cut off."""
    width = to.width
    to.width = max(width, to.measure(table, options=to.options.update(max_width=UNBOUNDED)).maximum)
    to.print(table)
    to.width = width
