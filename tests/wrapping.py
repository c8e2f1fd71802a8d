"""Wrap Markdown paragraphs and lists at 100 characters: ``python -m tests.wrapping FILE...``."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

WIDTH = 100
_FENCE = re.compile(r"\s*(```|~~~)")
_ITEM = re.compile(r"(\s*)([*-]|\d+\.)\s+(?=\S)")
_VERBATIM = re.compile(r"\s*$|#|\||!\[|<|>| {4}|---")
_GLUE = "\0"  # a non-breaking space


def wrapped(text: str, width: int = WIDTH) -> str:
    """Return the text with paragraphs and list items refilled; code, tables, headings and HTML are unchanged."""
    return "".join(f"{line}\n" for line in _lines(text.splitlines(), width))


def _lines(lines: list[str], width: int) -> Iterator[str]:
    for verbatim, block in groupby(_numbered(lines), key=lambda each: each[0]):
        if verbatim < 0:
            yield from (line for _, line in block)
        else:
            yield from _filled([line for _, line in block], width)


def _numbered(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield each line with the number of its paragraph or list item, -1 for an unchanged line."""
    number, fenced, within, item = 0, False, False, False
    for line in lines:
        if _FENCE.match(line):
            fenced = not fenced
            within = item = False
            yield -1, line
        elif fenced or (_VERBATIM.match(line) and not (within and item and line.startswith("    ") and line.strip())):
            within = item = False
            yield -1, line
        else:
            starts = _ITEM.match(line) is not None
            if starts or not within:
                number += 1
                item = starts
            within = True
            yield number, line


def _filled(lines: list[str], width: int) -> list[str]:
    text = " ".join(line.strip() for line in lines)
    found = _ITEM.match(lines[0])
    start = "" if found is None else found.group(0)
    text = text[len(start.lstrip()) :]
    text = re.sub(r"`[^`]*`|\]\([^)]*\)", lambda code: code.group(0).replace(" ", _GLUE), text)
    text = re.sub(r" (?=[-+*#|] |\d+[.)] |>)", _GLUE, text)  # would begin a list, heading or quotation
    filled = textwrap.wrap(
        text,
        width,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_GLUE, " ") for line in filled]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(wrapped(path.read_text(encoding="utf-8")), encoding="utf-8")
