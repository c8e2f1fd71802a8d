"""Orders that are sums of points, such as some points per hour waited minus some per hour of walltime."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from parsim.model.formula import NAMES, expression
from parsim.model.system import ORDERS

HOUR = 3600
STARVING = "starving"  #: key of the points of a job that has waited for a given time
MOST = 20  #: up to this, `ratio` tries every whole number; above, it keeps two digits


def term(points: float, name: str, per: int = 1) -> str:
    """Format `points` for `per` units of a name as a signed term of a sum: `` + 2 * ncpus / 3600``."""
    sign, points = ("-" if points < 0 else "+"), abs(points)
    if 0 < points < 1:
        points, per = 1, round(per / points)
    return f" {sign} " + (f"{points:g} * " if points != 1 else "") + name + (f" / {per}" if per != 1 else "")


def ratio(wanted: float) -> tuple[int, int]:
    """Return the pair of small whole numbers whose ratio, second to first, is nearest to a positive number."""
    if wanted > MOST:
        size = 10 ** (math.floor(math.log10(wanted)) - 1)
        return 1, round(wanted / size) * size
    pairs = [(1, each) for each in range(1, MOST + 1)] + [(each, 1) for each in range(2, MOST + 1)] + [(2, 3), (3, 2)]
    return min(pairs, key=lambda pair: (abs(math.log(pair[1] / pair[0] / wanted)), pair))


@lru_cache(maxsize=256)
def points_of(order: str) -> Mapping[str, float] | None:
    """Return the points for a unit of each name in a formula, ``eligible_time`` (seconds) included.

    None if the formula is no such sum, or waiting gives no points.

    Points after a given wait, ``100 if eligible_time >= 86400 else 0``, are under `STARVING`.
    """
    if order in ORDERS and order != "fcfs":
        return None
    found: dict[str, float] = {}
    try:
        _add(expression("eligible_time" if order == "fcfs" else order), 1.0, found)
    except (SyntaxError, ValueError):
        return None
    if found.get("eligible_time", 0.0) <= 0:
        return None
    return MappingProxyType({name: each for name, each in found.items() if name and each})


def _add(node: ast.expr, factor: float, found: dict[str, float]) -> None:
    """Add the points of a term, times a factor; ValueError if it is not a sum of points."""
    if (constant := number(node)) is not None:
        found[""] = found.get("", 0.0) + factor * constant
        return
    match node:
        case ast.BinOp(left, ast.Add() | ast.Sub() as sign, right):
            _add(left, factor, found)
            _add(right, -factor if isinstance(sign, ast.Sub) else factor, found)
        case ast.UnaryOp(ast.USub(), inner):
            _add(inner, -factor, found)
        case ast.BinOp(left, ast.Mult(), inner) if (times := number(left)) is not None:
            _add(inner, factor * times, found)
        case ast.BinOp(inner, ast.Mult(), right) if (times := number(right)) is not None:
            _add(inner, factor * times, found)
        case ast.BinOp(inner, ast.Div(), right) if times := number(right):
            _add(inner, factor / times, found)
        case ast.Name(name) if name in NAMES:
            found[name] = found.get(name, 0.0) + factor
        case ast.IfExp(ast.Compare(ast.Name("eligible_time"), [ast.GtE()]), points, ast.Constant(0)) if times := number(
            points
        ):
            found[STARVING] = found.get(STARVING, 0.0) + factor * times
        case _:
            raise ValueError("no sum of points")


def number(node: ast.expr) -> float | None:
    """Return the value of a literal number; None for anything else."""
    try:
        return float(ast.literal_eval(node))
    except (ValueError, TypeError):
        return None
