"""Tables as Markdown has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    """Write a table of which the first `left` columns are texts and the others numbers; no line end follows it.

    >>> print(table(["", "wait"], [["auto", "1.5"]]))
    |  | wait |
    |---|---:|
    | auto | 1.5 |
    """
    rule = ["---"] * left + ["---:"] * (len(titles) - left)
    lines = [f"| {' | '.join(row)} |" for row in (titles, *rows)]
    return "\n".join([lines[0], f"|{'|'.join(rule)}|", *lines[1:]])
