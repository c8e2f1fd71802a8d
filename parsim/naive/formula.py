"""Formulas of the reference simulator, evaluated node by node at each call (rule "undefined operations")."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from functools import cache


class UndefinedError(Exception):
    """An operation of a formula has no value."""


def _defined(function: Callable[..., float], *arguments: float) -> float:
    try:
        value = function(*arguments)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise UndefinedError from None
    if not math.isfinite(value):
        raise UndefinedError
    return value


def power(x: float, y: float) -> float:
    """Return x to the power y; y = 2 is a product, y = 2.5 a product with a square root."""
    if y == 2.5:
        return x * x * math.sqrt(x)
    return x * x if y == 2 else math.pow(x, y)


BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: power,
}
COMPARE = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
FUNCTIONS = {
    "min": lambda *values: min(values),
    "max": lambda *values: max(values),
    "abs": abs,
    "pow": power,
    "log": math.log,
    "sqrt": math.sqrt,
    "floor": lambda value: float(math.floor(value)),
}


def _value(node: ast.AST, names: dict[str, float]) -> float:
    match node:
        case ast.Constant(value=bool()):
            raise ValueError("a formula has no True and False")
        case ast.Constant(value=int() | float() as number):
            return _defined(float, number)
        case ast.Name(id=name):
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand, names)
        case ast.BinOp(left=left, op=op, right=right):
            return _defined(BINARY[type(op)], _value(left, names), _value(right, names))
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            values = [_value(operand, names) for operand in (left, *comparators)]
            pairs = zip(ops, values, values[1:], strict=False)
            return float(all(COMPARE[type(op)](a, b) for op, a, b in pairs))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _value(body if _value(test, names) else orelse, names)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return _defined(FUNCTIONS[name], *(_value(argument, names) for argument in args))
    raise ValueError(f"a formula has no {type(node).__name__}")


@cache
def _tree(formula: str) -> ast.expr:
    return ast.parse(formula.strip(), mode="eval").body


def formula_value(formula: str, **names: float) -> float:
    """Evaluate ``formula`` in float64; 0 if an executed operation is undefined (rule "undefined operations")."""
    try:
        return _value(_tree(formula), {name: float(value) for name, value in names.items()})
    except UndefinedError:
        return 0.0
