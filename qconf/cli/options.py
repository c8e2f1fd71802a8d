"""Option types and options that several commands share."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)
CORES = click.IntRange(1, 2**31 - 1)


class Number(click.FloatRange):
    """A finite number in a range; click's own type takes NaN as lying in every range."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401
        """Return the value as a float."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is no finite number", param, ctx)
        return number


class Terse(click.Option):
    """An option whose help leaves out its range, which the error message names."""

    def get_help_extra(self, ctx: click.Context) -> Any:  # noqa: ANN401 - of click
        """Return click's extra help without the range."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


class Parsed(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A value that `parse` reads from a word. If `parse` raises or returns None, the message ends with `is_not`."""

    def __init__(self, name: str, parse: Callable[[str], object], is_not: str) -> None:
        self.name, self.parse, self.is_not = name, parse, is_not

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Return the parsed value; a default is returned as it is."""
        try:
            found = self.parse(value) if isinstance(value, str) else value
        except (ValueError, ArithmeticError):
            found = None
        return self.fail(f"{value!r} {self.is_not}", param, ctx) if found is None else found


def with_options(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return a decorator that adds these options, in the order of the help."""
    return lambda function: reduce(lambda command, option: option(command), reversed(options), function)


def retired_option(*names: str, use: str) -> Callable[[F], F]:
    """Return a hidden option that is refused with a message; `use` says what replaces it."""

    def refuse(context: click.Context, option: click.Parameter, value: str | None) -> None:
        del option
        if value is not None:
            raise click.UsageError(f"{names[0]} is retired: {use}", context)

    # Taken with or without a value, and checked before other options.
    return click.option(
        *names, is_flag=False, flag_value="", is_eager=True, hidden=True, expose_value=False, callback=refuse, help=use
    )


def output_option(text: str, *, required: bool = False, **kind: Any) -> Callable[[F], F]:  # noqa: ANN401 - of click.Path
    """Return the option ``--out`` (output) with this help."""
    path = click.Path(path_type=Path, **kind)
    return click.option("-o", "--out", "--output", "output", type=path, required=required, help=text)


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")


def stem(path: Path) -> str:
    """Return the file name without the endings of logs, to name output after a history; ``..`` is resolved first."""
    name = Path(os.path.abspath(path)).name  # noqa: PTH100 - a link keeps its name
    for ending in (".gz", ".csv", ".swf", ".txt", ".log"):
        name = name.removesuffix(ending)
    return name or "history"
