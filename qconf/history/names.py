"""Queue names as a batch system accepts them."""

from __future__ import annotations

import re
from collections.abc import Sequence

LONGEST_NAME = 15  #: characters that PBS takes
LEGAL = re.compile(rf"[A-Za-z][A-Za-z0-9_-]{{0,{LONGEST_NAME - 1}}}")


def legal_names(names: Sequence[str]) -> dict[str, str]:
    """Map each name of a history to a legal and unique one, itself where legal; the empty one stays out.

    >>> legal_names(["normal", "3", "[fque:1]", "fque-1"])
    {'normal': 'normal', '3': 'q3', '[fque:1]': 'fque-1-2', 'fque-1': 'fque-1'}
    """
    distinct = [name for name in dict.fromkeys(names) if name]
    taken = {name for name in distinct if LEGAL.fullmatch(name)}
    result: dict[str, str] = {}
    for name in distinct:
        result[name] = name if name in taken else _invent(name, taken)
        taken.add(result[name])
    return result


def renamed(name: str, legal: str) -> str:
    """Say that a queue is known by another name than that in the log."""
    return f"queue name made legal: {name!r} is {legal}"


def _invent(name: str, taken: set[str]) -> str:
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-_") or "queue"
    stem = (stem if stem[0].isascii() and stem[0].isalpha() else f"q{stem}")[:LONGEST_NAME]
    candidate, number = stem, 2
    while candidate in taken:
        tail = f"-{number}"
        candidate, number = stem[: LONGEST_NAME - len(tail)] + tail, number + 1
    return candidate
