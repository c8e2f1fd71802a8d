"""Whether the value of a formula never falls while a job waits.

Interval arithmetic: each instruction is applied to the ranges of its operands over all jobs and instants. A formula
that may be undefined counts as falling. The C library's powers and logarithms count as rising where the true ones do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from parsim.engine import order as op
from parsim.model.fairshare import ACTIVE_NAME, USE_NAMES
from parsim.model.formula import Formula


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds of a value over all jobs and instants; whether any single job's value never falls, or never rises."""

    low: float
    high: float
    rises: bool = True  # or stays: never falls
    falls: bool = True  # or stays: never rises

    @property
    def stays(self) -> bool:
        """Whether the value of each job is constant."""
        return self.rises and self.falls


_FULL = Range(-1e9, 1e9)
#: Ranges of users' values. Only jobs of one user are compared, for which a value is equal at any instant: it "stays".
_USES = {name: _FULL if name == "fairshare_target" else Range(0.0, 1.0) for name in USE_NAMES}
_USES[ACTIVE_NAME] = Range(0.0, 1e9)


class _UndefinedError(Exception):
    """The value may be undefined somewhere."""


def never_falls(formula: Formula, columns: NDArray[np.float64], longest: float) -> bool:
    """Whether the value of no job falls with time, apart from changes that are equal for all jobs of its user.

    Parameters
    ----------
    formula : Formula
    columns : ndarray(float64), shape (m, n)
        Values of `Formula.columns`.
    longest : float
        Upper bound of waits, seconds.

    Returns
    -------
    bool
        False also where the answer is unknown.
    """
    if not formula.uses_eligible_time:
        return True
    stack: list[Range] = []
    try:
        for operation, operand in formula.code.tolist():
            if operation == op.ELIGIBLE_TIME:
                stack.append(Range(0.0, longest, falls=False))
            elif operation == op.COLUMN and operand >= len(formula.column_codes):
                stack.append(_USES[formula.uses[operand - len(formula.column_codes)]])
            elif operation == op.COLUMN:
                stack.append(Range(float(columns[operand].min()), float(columns[operand].max())))
            elif operation == op.CONSTANT:
                stack.append(Range(float(formula.constants[operand]), float(formula.constants[operand])))
            elif operation in (op.NEGATE, op.ABSOLUTE, op.LOGARITHM, op.ROOT, op.FLOOR):
                stack.append(_of_one(operation, stack.pop()))
            elif operation == op.SELECT:
                no, condition, yes = stack.pop(), stack.pop(), stack.pop()
                stack.append(_select(yes, condition, no))
            else:
                right, left = stack.pop(), stack.pop()
                stack.append(_of_two(operation, left, right))
            if not (math.isfinite(stack[-1].low) and math.isfinite(stack[-1].high)):
                return False
    except (_UndefinedError, OverflowError, ZeroDivisionError):
        return False
    return stack.pop().rises


def _negative(a: Range) -> Range:
    return Range(-a.high, -a.low, a.falls, a.rises)


def _of_one(operation: int, a: Range) -> Range:
    if operation == op.NEGATE or (operation == op.ABSOLUTE and a.high <= 0):
        return _negative(a)
    if operation == op.ABSOLUTE:
        if a.low >= 0:
            return a
        return Range(0.0, max(-a.low, a.high), a.stays, a.stays)
    if operation == op.FLOOR:
        return replace(a, low=float(math.floor(a.low)), high=float(math.floor(a.high)))
    if a.low < 0 or (operation == op.LOGARITHM and a.low == 0):
        raise _UndefinedError
    function = math.log if operation == op.LOGARITHM else math.sqrt
    return replace(a, low=function(a.low), high=function(a.high))


def _of_two(operation: int, a: Range, b: Range) -> Range:
    both = (a.rises and b.rises, a.falls and b.falls)
    if operation == op.ADD:
        return Range(a.low + b.low, a.high + b.high, *both)
    if operation == op.SUBTRACT:
        return _of_two(op.ADD, a, _negative(b))
    if operation == op.MULTIPLY:
        return _times(a, b, [x * y for x, y in product((a.low, a.high), (b.low, b.high))])
    if operation == op.DIVIDE:
        if b.low <= 0 <= b.high:
            raise _UndefinedError
        quotients = [x / y for x, y in product((a.low, a.high), (b.low, b.high))]
        return _times(a, Range(1 / b.high, 1 / b.low, b.falls, b.rises), quotients)
    if operation == op.POWER:
        return _power(a, b)
    if operation == op.MINIMUM:
        return Range(min(a.low, b.low), min(a.high, b.high), *both)
    if operation == op.MAXIMUM:
        return Range(max(a.low, b.low), max(a.high, b.high), *both)
    if operation in (op.LESS, op.LESS_EQUAL):
        return Range(0.0, 1.0, a.falls and b.rises, a.rises and b.falls)
    stays = a.stays and b.stays
    return Range(0.0, 1.0, stays, stays)


def _times(a: Range, b: Range, corners: list[float]) -> Range:
    """Return the product, whose greatest and least values are among `corners`."""
    low, high = min(corners), max(corners)
    if a.low >= 0 and b.low >= 0:
        return Range(low, high, a.rises and b.rises, a.falls and b.falls)
    for constant, other in ((a, b), (b, a)):
        if constant.stays and constant.low >= 0:
            return Range(low, high, other.rises, other.falls)
        if constant.stays and constant.high <= 0:
            return Range(low, high, other.falls, other.rises)
    return Range(low, high, a.stays and b.stays, a.stays and b.stays)


def _power(a: Range, b: Range) -> Range:
    if not b.stays or a.low < 0 or (a.low == 0 and b.low < 0):
        raise _UndefinedError
    corners = [x**y for x, y in product((a.low, a.high), (b.low, b.high))]
    if b.low >= 0:
        return Range(min(corners), max(corners), a.rises, a.falls)
    if b.high <= 0:
        return Range(min(corners), max(corners), a.falls, a.rises)
    # Between a base below 1 and one above it the powers meet in 1.
    return Range(min(*corners, 1.0), max(*corners, 1.0), a.stays, a.stays)


def _select(yes: Range, condition: Range, no: Range) -> Range:
    low, high = min(yes.low, no.low), max(yes.high, no.high)
    rises, falls = yes.rises and no.rises, yes.falls and no.falls
    if condition.stays:
        return Range(low, high, rises, falls)
    if condition.low >= 0 and condition.rises:  # from one value to the other, once
        return Range(low, high, rises and yes.low >= no.high, falls and yes.high <= no.low)
    if condition.low >= 0 and condition.falls:
        return Range(low, high, rises and no.low >= yes.high, falls and no.high <= yes.low)
    return Range(low, high, rises=False, falls=False)
