"""Who goes first in a waiting list: constant orders, ratios that change as time passes, and interpreted formulas."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from parsim.kernels.layout import (
    CORES,
    HELD_FOR,
    HELD_SINCE,
    MAX_WALLTIME,
    QUEUE,
    STARVING,
    SUBMIT,
    WALLTIME,
    WEIGHT,
    inlined,
    inlined_in_loop,
)

FCFS, SJF, LJF, LXF, WFP3, FORMULA = range(6)  # values of `settings[ORDER]`
FACTOR = 6  # the pool's list, by priority factor, whatever the order (rule 7 of docs/reference/simulator.md)
NEAR = 1e-14  # relative difference from which values that are not exact decide

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
            squares = halves = True
            for i in range(count):
                squares &= b[i] == 2.0
                halves &= b[i] == 2.5
            for i in range(count):
                if squares:
                    a[i] = _defined(a[i] * a[i])
                elif halves:
                    a[i] = _half(a[i])
                else:
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
                    a[i] = min(x, y)
                else:
                    a[i] = max(x, y)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True, _nrt=False)
def _half(x):
    """Return x to the 2.5, three times as fast as C's power: NaN of what is negative."""
    return _defined(x * x * math.sqrt(x)) if x >= 0.0 else np.nan


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True, _nrt=False)
def _power(x, y):
    """Return x to the y; NaN is handed on even where C says that NaN to the 0 is 1. Squares and 2.5 are products."""
    if math.isnan(x) or math.isnan(y):
        return np.nan
    if y == 2.0:
        return _defined(x * x)
    if y == 2.5:
        return _half(x)
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


@inlined_in_loop
def refresh_values(s, kind, at, last, now):
    """Set `value` of the waiting entries ``at:last`` to what sorts them at this instant, largest first."""
    if kind <= LJF:
        return
    if kind == FORMULA:
        _refresh_formula(s, at, last, now)
        return
    value, origin, slope = s.value[at:last], s.origin[at:last], s.slope[at:last]
    instant = np.float64(now)
    if kind != WFP3:
        for k in range(value.size):
            value[k] = (instant - origin[k]) * slope[k]
    else:
        for k in range(value.size):
            wait = instant - origin[k]
            value[k] = wait * wait * wait * slope[k]


@inlined_in_loop
def _refresh_formula(s, at, last, now):
    scratch, w_job = s.scratch, s.w_job
    eligible, stack = scratch[0], scratch[1:]
    tracked = s.held.shape[0] > 0
    for begin in range(at, last, CHUNK):
        count = min(CHUNK, last - begin)
        for i in range(count):
            eligible[i] = np.float64(now) - s.origin[begin + i]
            if tracked:
                j = w_job[begin + i]
                held = s.held[j, HELD_FOR]
                if s.held[j, HELD_SINCE] >= 0:
                    held += now - s.held[j, HELD_SINCE]
                eligible[i] -= np.float64(held)
        members = w_job[begin : begin + count]
        interpret(s.code, s.constants, s.columns, members, eligible, stack, count)
        for i in range(count):
            v = stack[0, i]
            s.value[begin + i] = 0.0 if math.isnan(v) else v


@inlined_in_loop
def before(s, kind, i, k, now):
    """Whether entry i goes before entry k of the same list; where their ratios are equal but for rounding, by exact ones."""
    w_group, value, w_job = s.w_group, s.value, s.w_job
    if w_group[i] != w_group[k]:
        return w_group[i] > w_group[k]
    a, b = value[i], value[k]
    if a != b and (kind <= LJF or kind == FORMULA or abs(a - b) > NEAR * max(a, b)):
        return a > b
    if kind > LJF and kind != FORMULA and w_group[i] != STARVING:
        exact = compare_ratios(s, kind, w_job[i], w_job[k], now)
        if exact != 0:
            return exact > 0
    return w_job[i] < w_job[k]


@inlined_in_loop
def first(s, kind, at, last, now):
    """Return the entry that goes first among ``at:last``, passed ones left out; -1 if none is left."""
    value = s.value
    margin = 1.0 if kind <= LJF or kind == FORMULA else 1.0 - 2.0 * NEAR
    best = np.int64(-1)
    group = np.int32(-1)
    bound = 0.0
    for i in range(at, last):
        g = s.w_group[i]
        if g < group or g < 0 or (g == group and value[i] <= bound):
            continue
        if g > group or before(s, kind, i, best, now):
            best = i
            group = g
            bound = value[i] * margin
    return best


@inlined_in_loop
def sift(s, kind, root, size, now):
    """Restore the heap ``pick[:size]``, whose top goes first, below `root`."""
    pick = s.pick
    if root >= size:
        return
    top = pick[root]
    child = 2 * root + 1
    while child < size:
        if child + 1 < size and before(s, kind, pick[child + 1], pick[child], now):
            child += 1
        if not before(s, kind, pick[child], top, now):
            break
        pick[root] = pick[child]
        root = child
        child = 2 * root + 1
    pick[root] = top


@inlined
def _product(a, b):
    """Both halves of the 128 bits of ``a * b``."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a_high, a_low, b_high, b_low = a >> half, a & mask, b >> half, b & mask
    low = a_low * b_low
    left = a_high * b_low + (low >> half)
    right = a_low * b_high + (left & mask)
    return a_high * b_high + (left >> half) + (right >> half), (right << half) | (low & mask)


@njit(cache=True, nogil=True, _nrt=False)
def compare_ratios(s, kind, j, k, now):
    """Compare the exact ratios of two jobs: 1, 0 or -1."""
    jobs, queues = s.jobs, s.queues
    if kind == WFP3:
        a = wfp3(np.float64(now - jobs[j, SUBMIT]), np.float64(jobs[j, WALLTIME]), np.float64(jobs[j, CORES]))
        b = wfp3(np.float64(now - jobs[k, SUBMIT]), np.float64(jobs[k, WALLTIME]), np.float64(jobs[k, CORES]))
        return np.int64(a > b) - np.int64(a < b)
    wait_j, wait_k = now - jobs[j, SUBMIT], now - jobs[k, SUBMIT]
    bound_j, bound_k = np.int64(jobs[j, WALLTIME]), np.int64(jobs[k, WALLTIME])
    weight_j = weight_k = np.int64(1)
    if kind == FACTOR:
        q, r = jobs[j, QUEUE], jobs[k, QUEUE]
        weight_j, weight_k = queues[q, WEIGHT], queues[r, WEIGHT]
        bound_j, bound_k = min(bound_j, queues[q, MAX_WALLTIME]), min(bound_k, queues[r, MAX_WALLTIME])
    if max(wait_j, wait_k) >= 2**31:  # beyond 68 years of waiting the products could leave 128 bits
        return np.int64(0)
    high_j, low_j = _product(np.uint64(wait_j * bound_k), np.uint64(weight_j))
    high_k, low_k = _product(np.uint64(wait_k * bound_j), np.uint64(weight_k))
    if high_j != high_k:
        return np.int64(1) if high_j > high_k else np.int64(-1)
    return np.int64(low_j > low_k) - np.int64(low_j < low_k)
