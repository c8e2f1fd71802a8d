"""The order of a waiting list that changes as time passes: ratios, priority factor, and interpreted formulas."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

FCFS, SJF, LJF, LXF, WFP3, FORMULA = range(6)

# Instructions of a formula: postfix, on a stack.
(ELIGIBLE_TIME, COLUMN, CONSTANT, ADD, SUBTRACT, MULTIPLY, DIVIDE, POWER, NEGATE,
 LESS, LESS_EQUAL, EQUAL, NOT_EQUAL, SELECT, MINIMUM, MAXIMUM, ABSOLUTE, LOGARITHM, ROOT) = range(19)  # fmt: skip

CHUNK = 64  # jobs that one instruction is applied to before the next


@njit(cache=True, nogil=True, inline="always")
def _defined(x):
    """Turn what is no finite number into NaN, which every later operation hands on."""
    return x if math.isfinite(x) else np.nan


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
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


@njit(cache=True, nogil=True, inline="always")
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


@njit(cache=True, nogil=True, inline="always")
def _times2(a, a_low, b):
    """Product of an unevaluated sum and a float, again such a sum."""
    high, low = _times(a, b)
    low += a_low * b
    total = high + low
    return total, low - (total - high)


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def refresh_values(s, ranking, p, at, end, now):
    """Set ``s.value`` of the waiting jobs ``at:end`` of list p to what sorts them at this instant, largest first."""
    order = s.settings[1]
    if p == s.parts.shape[0] - 1 and s.settings[9] == 0:  # the pool of a hybrid machine: priority factor
        for i in range(at, end):
            j = s.waiting[0, i]
            q = s.jobs[j, 4]
            wait = np.float64(now - s.jobs[j, 0])
            s.value[i] = wait * ranking.priority[q] / np.float64(min(s.jobs[j, 3], s.queues[q, 6]))
        return
    if order == FORMULA:
        for first in range(at, end, CHUNK):
            count = min(CHUNK, end - first)
            for i in range(count):
                j = s.waiting[0, first + i]
                held = s.held[1, j]
                if s.held[0, j] >= 0:
                    held += now - s.held[0, j]
                ranking.eligible[i] = np.float64(now - s.jobs[j, 0] - held)
            jobs = s.waiting[0, first : first + count]
            interpret(ranking.code, ranking.constants, ranking.columns, jobs, ranking.eligible, ranking.stack, count)
            for i in range(count):
                value = ranking.stack[0, i]
                s.value[first + i] = 0.0 if math.isnan(value) else value
        return
    for i in range(at, end):
        j = s.waiting[0, i]
        wait = np.float64(now - s.jobs[j, 0])
        walltime = np.float64(s.jobs[j, 3])
        if order == SJF:
            s.value[i] = -walltime
        elif order == LJF:
            s.value[i] = walltime
        elif order == LXF:
            s.value[i] = (wait + walltime) / walltime
        elif order == WFP3:
            s.value[i] = wfp3(wait, walltime, np.float64(s.jobs[j, 1]))
        else:
            s.value[i] = 0.0
