"""Orders of waiting lists: constant orders, ratios that change with time, and interpreted formulas."""

from __future__ import annotations

import math

import numpy as np

from parsim.engine.compile.compiled import ieee_routine, ieee_step, on_disk
from parsim.engine.fairshare import fill
from parsim.engine.simulation import BLOCK, BY_SUBMIT, comes_before, routine, step

FCFS, SJF, LJF, LXF, WFP3 = range(5)  # values of `settings.order`
FACTOR = 5  # order of the pool's list, by priority factor (rule "priority factor")
FORMULA, FAIRSHARE = 6, 7  # values of `settings.order`; FAIRSHARE keeps the groups of constant orders, FORMULA does not
NEAR = 1e-14  # relative difference of ratios below which they are compared exactly

# Instructions of a formula: postfix, on a stack.
(ELIGIBLE_TIME, COLUMN, CONSTANT, ADD, SUBTRACT, MULTIPLY, DIVIDE, POWER, NEGATE,
 LESS, LESS_EQUAL, EQUAL, NOT_EQUAL, SELECT, MINIMUM, MAXIMUM,
 ABSOLUTE, LOGARITHM, ROOT, FLOOR) = range(20)  # fmt: skip

BATCH = 64  # jobs that one instruction is applied to before the next


@step
def _defined(x):
    """Return x, or NaN if it is not finite; every later operation keeps NaN."""
    return x if math.isfinite(x) else np.nan


@ieee_routine
def interpret(code, constants, columns, jobs, eligible, stack, count):
    """Run a formula for up to `BATCH` jobs; leave their values in ``stack[0, :count]``, NaN where undefined.

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
    stack : ndarray(float64), shape (depth, BATCH)
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
                elif op == FLOOR:
                    a[i] = np.floor(a[i])
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


@ieee_step
def _half(x):
    """Return x to the power of 2.5, three times as fast as C does; NaN for negative x."""
    return _defined(x * x * math.sqrt(x)) if x >= 0.0 else np.nan


@ieee_step
def _power(x, y):
    """Return x to the power of y; NaN stays NaN, although C has NaN to the 0 as 1. Powers of 2 and 2.5 multiply."""
    if math.isnan(x) or math.isnan(y):
        return np.nan
    if y == 2.0:
        return _defined(x * x)
    if y == 2.5:
        return _half(x)
    return _defined(math.pow(x, y))


@on_disk
def evaluate(code, constants, columns, stack):
    """Return the value of a formula without eligible time for each job, shape (n,); NaN where undefined."""
    n = columns.shape[1]
    out = np.empty(n)
    jobs = np.empty(BATCH, np.int32)
    eligible = np.zeros(BATCH)
    for first in range(0, n, BATCH):
        count = min(BATCH, n - first)
        for i in range(count):
            jobs[i] = first + i
        interpret(code, constants, columns, jobs, eligible, stack, count)
        for i in range(count):
            out[first + i] = stack[0, i]
    return out


@step
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


@step
def _times2(a, a_low, b):
    """Product of an unevaluated sum and a float, again such a sum."""
    high, low = _times(a, b)
    low += a_low * b
    total = high + low
    return total, low - (total - high)


@step
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


@step
def refresh_values(s, kind, first, last, now):
    """Set `value` of the waiting entries ``first:last`` for this instant; the largest goes first."""
    if kind <= LJF:
        return
    if kind >= FORMULA:
        _refresh_formula(s, kind, first, last, now)
        return
    waiting = s.waiting
    value, origin, slope = waiting.value[first:last], waiting.origin[first:last], waiting.slope[first:last]
    instant = np.float64(now)
    if kind != WFP3:
        for k in range(value.size):
            value[k] = (instant - origin[k]) * slope[k]
    else:
        for k in range(value.size):
            wait = instant - origin[k]
            value[k] = wait * wait * wait * slope[k]


@routine
def refresh_value(s, kind, i, now):
    """Set `value` of one waiting entry."""
    refresh_values(s, kind, i, i + 1, now)


@routine
def _refresh_formula(s, kind, first, last, now):
    waiting, formula = s.waiting, s.formula
    eligible, stack = formula.eligible, formula.stack
    calculated = np.float64(now - since_calculated(s.settings, now))
    for begin in range(first, last, BATCH):
        count = min(BATCH, last - begin)
        for i in range(count):
            eligible[i] = calculated - waiting.origin[begin + i]
            if s.held.size > 0:
                eligible[i] -= np.float64(_held_for(s.held[waiting.job[begin + i]], now))
            eligible[i] = max(eligible[i], 0.0)
        members = waiting.job[begin : begin + count]
        fill(s.fair, formula.columns, members, count, now)
        interpret(formula.code, formula.constants, formula.columns, members, eligible, stack, count)
        for i in range(count):
            v = stack[0, i]
            waiting.value[begin + i] = 0.0 if math.isnan(v) else v
            if waiting.group[begin + i] & BY_SUBMIT:
                waiting.value[begin + i] = 0.0


@step
def since_calculated(settings, now):
    """Return how many seconds old the eligible times are that formulas read now (rule "eligible time")."""
    return (now + settings.calc_phase) % settings.calc_period if settings.calc_period > 0 else np.int64(0)


@step
def _held_for(held, now):
    """Return the seconds for which limits have held a job (rule "eligible time")."""
    return held.before + (now - held.since if held.since >= 0 else 0)


@step
def is_ratio(kind):
    """Whether the values of an order are ratios of whole numbers."""
    return LJF < kind < FORMULA


@step
def before(context, i, k):
    """Whether entry i goes before entry k of a list; `context` is (s, kind, now). Close ratios are compared exactly."""
    s, kind, now = context
    waiting = s.waiting
    if waiting.group[i] != waiting.group[k]:
        return waiting.group[i] > waiting.group[k]
    a, b = waiting.value[i], waiting.value[k]
    if a != b and (not is_ratio(kind) or abs(a - b) > NEAR * max(a, b)):
        return a > b
    if is_ratio(kind) and not waiting.group[i] & BY_SUBMIT:
        exact = compare_ratios(s.jobs, s.queues, kind, waiting.job[i], waiting.job[k], now)
        if exact != 0:
            return exact > 0
    return comes_before(s, waiting.job[i], waiting.job[k])


@step
def first_entry(s, kind, first, last, queue, now):
    """Return the entry that goes first among those of ``first:last`` that are not passed, or -1.

    `queue` leaves only the entries of one queue, -1 all.
    """
    group, value, of = s.waiting.group, s.waiting.value, s.waiting.queue
    margin = 1.0 - 2.0 * NEAR if is_ratio(kind) else 1.0
    best = np.int64(-1)
    greatest = np.int32(-1)
    bound = 0.0
    for begin in range(first, last, BLOCK):
        end = begin + BLOCK
        if best >= 0 and not any_before(group[begin:end], value[begin:end], of[begin:end], greatest, bound, queue):
            continue
        for i in range(begin, min(end, last)):
            g = group[i]
            if g < greatest or g < 0 or (g == greatest and value[i] < bound):
                continue
            if queue >= 0 and of[i] != queue:
                continue
            if g == greatest and value[i] == bound and comes_before(s, s.waiting.job[best], s.waiting.job[i]):
                continue
            if g > greatest or before((s, kind, now), i, best):
                best = i
                greatest = g
                bound = value[i] * margin
    return best


@step
def any_before(group, value, of, greatest, bound, queue):
    """Whether any of `BLOCK` entries, whose queues are `of`, may go before group `greatest` and value `bound`."""
    hits = np.int32(0)
    for k in range(BLOCK):
        goes = (group[k] > greatest) | ((group[k] == greatest) & (value[k] >= bound))
        hits += np.int32(goes & ((queue < 0) | (of[k] == np.int32(queue))))
    return hits > 0


@step
def _product(a, b):
    """Both halves of the 128 bits of ``a * b``."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a_high, a_low, b_high, b_low = a >> half, a & mask, b >> half, b & mask
    low = a_low * b_low
    left = a_high * b_low + (low >> half)
    right = a_low * b_high + (left & mask)
    return a_high * b_high + (left >> half) + (right >> half), (right << half) | (low & mask)


@routine
def compare_ratios(jobs, queues, kind, j, k, now):
    """Return 1, 0 or -1: whether the exact ratio of job j is above, equal to, or below that of job k."""
    a, b = jobs[j], jobs[k]
    if kind == WFP3:
        x = wfp3(np.float64(now - a.submit), np.float64(a.walltime), np.float64(a.cores))
        y = wfp3(np.float64(now - b.submit), np.float64(b.walltime), np.float64(b.cores))
        return np.int64(x > y) - np.int64(x < y)
    wait_a, wait_b = now - a.submit, now - b.submit
    bound_a, bound_b = np.int64(a.walltime), np.int64(b.walltime)
    weight_a = weight_b = np.int64(1)
    if kind == FACTOR:
        queue_a, queue_b = queues[a.queue], queues[b.queue]
        weight_a, weight_b = queue_a.weight, queue_b.weight
        bound_a, bound_b = min(bound_a, queue_a.max_walltime), min(bound_b, queue_b.max_walltime)
    if max(wait_a, wait_b) >= 2**31:  # beyond 68 years of waiting the products could leave 128 bits
        return np.int64(0)
    high_a, low_a = _product(np.uint64(wait_a * bound_b), np.uint64(weight_a))
    high_b, low_b = _product(np.uint64(wait_b * bound_a), np.uint64(weight_b))
    if high_a != high_b:
        return np.int64(1) if high_a > high_b else np.int64(-1)
    return np.int64(low_a > low_b) - np.int64(low_a < low_b)
