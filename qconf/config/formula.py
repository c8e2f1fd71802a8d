"""Formulas of a waiting list's order: the part of Python that PBS's job_sort_formula and parsim both read."""

from __future__ import annotations

import ast
import difflib
import re

#: Names of a job's values.
NAMES = ("queue_priority", "job_priority", "eligible_time", "walltime", "ncpus")
#: Functions and how many arguments they take, least and most.
FUNCTIONS = {
    "max": (2, 99),
    "min": (2, 99),
    "pow": (2, 2),
    "log": (1, 1),
    "log10": (1, 1),
    "exp": (1, 1),
    "sqrt": (1, 1),
}
FUNCTIONS |= {"abs": (1, 1), "floor": (1, 1), "ceil": (1, 1)}

_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_LONGEST = 2000
_PLAIN = re.compile(r"[A-Za-z0-9_ .,+*/%()<>=!-]+")


def check_formula(text: str) -> None:
    """Raise ValueError, with what is wrong, unless `text` is a formula that can be simulated and exported."""
    if len(text) > _LONGEST or not _PLAIN.fullmatch(text):
        raise ValueError(
            f"a formula is one line of at most {_LONGEST} letters, digits and + - * / % ( ) . , < > = ! _"
        )
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise ValueError(f"not a formula: {getattr(error, 'msg', 'too deep')}") from error
    try:
        _check(tree)
    except RecursionError as error:
        raise ValueError("not a formula: nested too deeply") from error


def _check(node: ast.expr) -> None:
    match node:
        case ast.Constant(value=bool()):
            raise ValueError("True and False have no place in a formula")
        case ast.Constant(value=int() | float() as value):
            if not abs(value) < 1e300:
                raise ValueError("a number in a formula is at most 1e300")
        case ast.Name(id=name):
            if name not in NAMES:
                close = difflib.get_close_matches(name, NAMES, n=1)
                meant = f", did you mean {close[0]}?" if close else f"; known are {', '.join(NAMES)}"
                raise ValueError(f"a formula knows no {name!r}{meant}")
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _OPERATORS):
            _check(left)
            _check(right)
        case ast.UnaryOp(op=ast.UAdd() | ast.USub() | ast.Not(), operand=operand):
            _check(operand)
        case ast.BoolOp(values=parts):
            for part in parts:
                _check(part)
        case ast.Compare(left=first, ops=ops, comparators=others) if all(
            isinstance(op, _COMPARISONS) for op in ops
        ):
            for part in (first, *others):
                _check(part)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            for part in (test, body, orelse):
                _check(part)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            least, most = FUNCTIONS[name]
            if not least <= len(args) <= most:
                raise ValueError(f"{name}() takes {least if least == most else f'{least} or more'} arguments")
            for argument in args:
                _check(argument)
        case _:
            raise ValueError(
                f"a formula has no {ast.unparse(node)[:40]!r}, but numbers, names, + - * / **, comparisons, "
                f"... if ... else ... and {', '.join(FUNCTIONS)}"
            )
