"""Value of a sort formula, evaluated from its syntax tree."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable

from parsim.verify.fairshare import NAMES as SHARE_NAMES
from parsim.verify.qos import NAMES as QOS_NAMES

#: Arguments of a formula, in this order.
NAMES = (
    "queue_priority",
    "eligible_time",
    "walltime",
    "ncpus",
    "job_priority",
    *SHARE_NAMES,
    "active_jobs",
    *QOS_NAMES,
    "ngpus",
    "mem",
)

Values = tuple[float, ...]
Node = Callable[[Values], float]


def _power(x: float, y: float) -> float:
    """Return x to the y; a square is a product, and so is the power 2.5, rounded at every step."""
    if y == 2.5:
        return x * x * math.sqrt(x)
    return x * x if y == 2 else math.pow(x, y)


_BINARY: dict[type[ast.AST], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: _power,
}
_COMPARE: dict[type[ast.AST], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_FUNCTIONS: dict[str, tuple[Callable[..., float], int, int | None]] = {
    "min": (min, 2, None),
    "max": (max, 2, None),
    "abs": (abs, 1, 1),
    "pow": (_power, 2, 2),
    "log": (math.log, 1, 1),
    "sqrt": (math.sqrt, 1, 1),
    "floor": (lambda x: float(math.floor(x)), 1, 1),
}


class _UndefinedError(ArithmeticError):
    """An operation has no finite value."""


def compile_formula(text: str) -> Node:
    """Turn a formula into a function of `NAMES`.

    Numbers, ``+ - * / **``, comparisons of two (1 if true, else 0), ``a if b else c``, and the functions
    ``min max abs pow log sqrt floor``. An operation without a finite value makes the whole formula 0.

    Raises
    ------
    ValueError
        If the text is no such formula.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise ValueError(f"formula {text!r}: {error.msg}") from error
    body = _build(tree.body, text)

    def value(values: Values) -> float:
        try:
            return body(values)
        except (ArithmeticError, ValueError):
            return 0.0

    return value


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise _UndefinedError
    return value


def _build(node: ast.expr, text: str) -> Node:
    match node:
        case ast.Constant(value=int() | float()):
            number = float(node.value)  # type: ignore[arg-type]
            return lambda _: number
        case ast.Name(id=name) if name in NAMES:
            return operator.itemgetter(NAMES.index(name))
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            operand = _build(inner, text)
            return lambda v: -operand(v)
        case ast.UnaryOp(op=ast.UAdd(), operand=inner):
            return _build(inner, text)
        case ast.BinOp(op=op) if type(op) in _BINARY:
            binary, left, right = _BINARY[type(op)], _build(node.left, text), _build(node.right, text)
            return lambda v: _finite(binary(left(v), right(v)))
        case ast.IfExp():
            test, then, other = (_build(inner, text) for inner in (node.test, node.body, node.orelse))
            return lambda v: then(v) if test(v) else other(v)
        case ast.Compare(ops=[op], comparators=[other]) if type(op) in _COMPARE:
            holds, low, high = _COMPARE[type(op)], _build(node.left, text), _build(other, text)
            return lambda v: float(holds(low(v), high(v)))
        case ast.Call(func=ast.Name(id=name), keywords=[]) if name in _FUNCTIONS:
            function, least, most = _FUNCTIONS[name]
            arguments = [_build(inner, text) for inner in node.args]
            if len(arguments) >= least and (most is None or len(arguments) <= most):
                return lambda v: _finite(function(*(argument(v) for argument in arguments)))
    raise ValueError(f"formula {text!r}: {ast.unparse(node)!r} is not understood")
