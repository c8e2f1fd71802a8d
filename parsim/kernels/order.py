"""The order of a waiting list that changes as time passes: ratios, priority factor, and interpreted formulas."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from parsim.kernels.layout import (
    CORES,
    HELD_FOR,
    HELD_SINCE,
    MAX_WALLTIME,
    ORDER,
    QUEUE,
    SUBMIT,
    WALLTIME,
    inlined,
)

FCFS, SJF, LJF, LXF, WFP3, FORMULA = range(6)  # values of `settings[ORDER]`

# Instructions of a formula: postfix, on a stack.
(ELIGIBLE_TIME, COLUMN, CONSTANT, ADD, SUBTRACT, MULTIPLY, DIVIDE, POWER, NEGATE,
 LESS, LESS_EQUAL, EQUAL, NOT_EQUAL, SELECT, MINIMUM, MAXIMUM, ABSOLUTE, LOGARITHM, ROOT) = range(19)  # fmt: skip

CHUNK = 64  # jobs that one instruction is applied to before the next


@inlined
def _defined(x):
    """Turn what is no finite number into NaN, which every later operation hands on."""
    return x if math.isfinite(x) else np.nan


@njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
def interpret(code, constants, columns, jobs, eligible, stack, count):
    """Run a formula for up to `CHUNK` jobs; the values are left in ``stack[0, :count]``, NaN where undefined.

    Parameters
    ----------
    code : ndarray(int64), shape (k, 2)
        Operation and operand.
    constants : ndarray(float64)
    columns : ndarray(float64), shape (m, n)
    jobs : ndarray(int32), shape (count,)
        Columns of `columns`.
    eligible : ndarray(float64), shape (count,)
        Eligible time of each job, seconds.
    stack : ndarray(float64), shape (depth, CHUNK)
    count : int
    """
    top = -1
    for k in range(code.shape[0]):
        op = code[k, 0]
        if op <= CONSTANT:
            top += 1
            if op == ELIGIBLE_TIME:
                for i in range(count):
                    stack[top, i] = eligible[i]
            elif op == COLUMN:
                column = columns[code[k, 1]]
                for i in range(count):
                    stack[top, i] = column[jobs[i]]
            else:
                value = constants[code[k, 1]]
                for i in range(count):
                    stack[top, i] = value
            continue
        a = stack[top]
        if op == NEGATE:
            for i in range(count):
                a[i] = -a[i]
            continue
        if op >= ABSOLUTE:
            for i in range(count):
                if op == ABSOLUTE:
                    a[i] = abs(a[i])
                elif op == LOGARITHM:
                    a[i] = math.log(a[i]) if a[i] > 0.0 else np.nan
                else:
                    a[i] = math.sqrt(a[i]) if a[i] >= 0.0 else np.nan
            continue
        if op == SELECT:  # value if true, condition, value if false
            top -= 2
            for i in range(count):
                condition = stack[top + 1, i]
                if math.isnan(condition):
                    stack[top, i] = np.nan
                elif condition == 0.0:
                    stack[top, i] = stack[top + 2, i]
            continue
        top -= 1
        b = a
        a = stack[top]
        if op == ADD:
            for i in range(count):
                a[i] = _defined(a[i] + b[i])
        elif op == SUBTRACT:
            for i in range(count):
                a[i] = _defined(a[i] - b[i])
        elif op == MULTIPLY:
            for i in range(count):
                a[i] = _defined(a[i] * b[i])
        elif op == DIVIDE:
            for i in range(count):
                a[i] = _defined(a[i] / b[i])
        elif op == POWER:
            for i in range(count):
                a[i] = _power(a[i], b[i])
        else:
            for i in range(count):
                x, y = a[i], b[i]
                if math.isnan(x) or math.isnan(y):
                    a[i] = np.nan
                elif op == LESS:
                    a[i] = 1.0 if x < y else 0.0
                elif op == LESS_EQUAL:
                    a[i] = 1.0 if x <= y else 0.0
                elif op == EQUAL:
                    a[i] = 1.0 if x == y else 0.0
                elif op == NOT_EQUAL:
                    a[i] = 1.0 if x != y else 0.0
                elif op == MINIMUM:
                    a[i] = y if y < x else x
                else:
                    a[i] = y if y > x else x


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True, _nrt=False)
def _power(x, y):
    """Return x to the y; NaN is handed on even where C says that NaN to the 0 is 1."""
    if math.isnan(x) or math.isnan(y):
        return np.nan
    return _defined(math.pow(x, y))


@njit(cache=True, nogil=True)
def evaluate(code, constants, columns, stack):
    """Evaluate a formula that has no eligible time for every job; shape (n,). Undefined stays NaN."""
    n = columns.shape[1]
    out = np.empty(n)
    jobs = np.empty(CHUNK, np.int32)
    eligible = np.zeros(CHUNK)
    for first in range(0, n, CHUNK):
        count = min(CHUNK, n - first)
        for i in range(count):
            jobs[i] = first + i
        interpret(code, constants, columns, jobs, eligible, stack, count)
        for i in range(count):
            out[first + i] = stack[0, i]
    return out


@inlined
def _times(a, b):
    """Exact product of two floats as an unevaluated sum (Dekker 1971)."""
    product = a * b
    t = 134217729.0 * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = 134217729.0 * b
    b_high = t - (t - b)
    b_low = b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@inlined
def _times2(a, a_low, b):
    """Product of an unevaluated sum and a float, again such a sum."""
    high, low = _times(a, b)
    low += a_low * b
    total = high + low
    return total, low - (total - high)


@inlined
def wfp3(wait, walltime, cores):
    """Return ``wait**3 * cores / walltime**3`` of whole numbers, rounded once, so that equal ratios compare equal."""
    n, n_low = _times(wait, wait)
    n, n_low = _times2(n, n_low, wait)
    n, n_low = _times2(n, n_low, cores)
    d, d_low = _times(walltime, walltime)
    d, d_low = _times2(d, d_low, walltime)
    quotient = n / d
    p, p_low = _times2(d, d_low, quotient)
    return quotient + ((n - p) + (n_low - p_low)) / d


@inlined
def refresh_values(
    jobs, queues, settings, waiting, value, code, constants, columns, scratch, by_factor, at, end, now
):
    """Set `value` of the waiting jobs ``at:end`` to what sorts them at this instant, largest first.

    `by_factor`: by the priority factor of the pool, whatever the order (rule 7 of docs/simulator.md).
    """
    order = settings[ORDER]
    if by_factor:
        for i in range(at, end):
            j = waiting[0, i]
            wait = np.float64(now - jobs[j, SUBMIT])
            bound = np.float64(min(jobs[j, WALLTIME], queues[jobs[j, QUEUE], MAX_WALLTIME]))
            value[i] = wait * columns[0, j] / bound
    elif order == FORMULA:
        eligible, stack = scratch[0], scratch[1:]
        for first in range(at, end, CHUNK):
            count = min(CHUNK, end - first)
            for i in range(count):
                j = waiting[0, first + i]
                held = jobs[j, HELD_FOR]
                if jobs[j, HELD_SINCE] >= 0:
                    held += now - jobs[j, HELD_SINCE]
                eligible[i] = np.float64(now - jobs[j, SUBMIT] - held)
            members = waiting[0, first : first + count]
            interpret(code, constants, columns, members, eligible, stack, count)
            for i in range(count):
                v = stack[0, i]
                value[first + i] = 0.0 if math.isnan(v) else v
    else:
        for i in range(at, end):
            j = waiting[0, i]
            wait = np.float64(now - jobs[j, SUBMIT])
            walltime = np.float64(jobs[j, WALLTIME])
            if order == SJF:
                value[i] = -walltime
            elif order == LJF:
                value[i] = walltime
            elif order == LXF:
                value[i] = (wait + walltime) / walltime
            elif order == WFP3:
                value[i] = wfp3(wait, walltime, np.float64(jobs[j, CORES]))
            else:
                value[i] = 0.0
