"""The mistakes of a configuration, and the error that carries all of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from qconf.errors import InputError
from qconf.inert import shorten


class Problem(NamedTuple):
    """One mistake: line (None if unknown), path, value as written, and message."""

    line: int | None
    path: str
    value: str | None
    message: str

    def __str__(self) -> str:
        place = "" if self.line is None else f"line {self.line}: "
        value = "" if self.value is None else f" = {self.value}"
        return f"{place}{self.path}{value}: {self.message}" if self.path else f"{place}{self.message}"


class ConfigError(InputError):
    """All mistakes of one configuration, in the order of the file."""

    def __init__(self, source: str | Path | None, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        count = "1 mistake" if len(problems) == 1 else f"{len(problems)} mistakes"
        lines = "".join(f"\n  {problem}" for problem in problems)
        super().__init__(f"the configuration has {count}{lines}", file=source)

    def __reduce__(self) -> tuple[type[ConfigError], tuple[str | Path | None, list[Problem]], dict[str, object]]:
        """Make the error picklable, for workers."""
        return type(self), (self.file, self.problems), self.__dict__


def dotted(path: Iterable[str | int]) -> str:
    """Format a path for messages: ``queues[2].walltime``."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{shorten(step, 30)}" for step in path)
    return text.removeprefix(".")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``, did you mean ...?`` if one of the known words is close, else an empty text."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f", did you mean {close[0]}?" if close else ""
