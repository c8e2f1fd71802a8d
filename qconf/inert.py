"""Making texts from outside, such as names of users, jobs and files, harmless to show in a terminal, page or CSV."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

#: Control characters, and characters that are invisible or change the direction of a text.
_HIDDEN = (
    r"\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_UNSAFE = re.compile(f"[{_HIDDEN}]")
_UNSAFE_IN_LINES = re.compile(f"(?![\n\t])[{_HIDDEN}]")
#: Texts that a spreadsheet takes for a formula unless they are a `NUMBER`; a quote in front keeps them text.
FORMULA = "'*[=+\\-@\t\r\uff1d\uff0b\uff0d\uff20]"
NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"


def inert(text: str, *, lines: bool = False) -> str:
    r"""Return a text with invisible characters escaped as in JSON: ``\u001b``; with `lines` line ends and tabs stay.

    >>> print(inert("a\x1b[31mb\u202ec\n"))
    a\u001b[31mb\u202ec\n
    """
    return (_UNSAFE_IN_LINES if lines else _UNSAFE).sub(lambda found: json.dumps(found[0])[1:-1], text)


def shorten(text: str, most: int = 60) -> str:
    """Make a piece of input fit for a message: printable, and at most `most` characters."""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text if len(text) <= most else text[: most - 3] + "..."


def csv_text(table: pd.DataFrame) -> str:
    """Return a table as CSV without formulas for a spreadsheet and without invisible characters."""
    shown = guarded(table)
    names = shown.select_dtypes(exclude="number").columns
    cells = {name: shown[name].map(lambda cell: inert(cell) if isinstance(cell, str) else cell) for name in names}
    return str(shown.assign(**cells).to_csv(index=False, lineterminator="\n"))


def guarded(table: pd.DataFrame) -> pd.DataFrame:
    """Put a quote in front of each text that a spreadsheet would take for a formula."""
    found = {}
    for name in table.select_dtypes(exclude="number").columns:
        texts = table[name].astype("str")
        formula = texts.str.match(FORMULA) & ~texts.str.fullmatch(NUMBER)
        if formula.any():
            found[name] = table[name].astype("object").mask(formula, "'" + texts)
    return table.assign(**found)


def unguarded(texts: pd.Series[str]) -> pd.Series[str]:
    """Remove the quotes of `guarded`."""
    return texts.mask(texts.str.match("'" + FORMULA), texts.str[1:])
