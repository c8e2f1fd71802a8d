"""Values of waiting jobs under a formula: of all at an instant or, where that takes long, of those that may be first.

A value that never falls is bounded by the value at a later instant. In an epoch, the time up to such an instant, bounds
show which jobs may be first, and values are computed only for these. Names of rules refer to
docs/reference/simulator.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.fairshare import fill, find_values
from parsim.engine.fast.listed import JOBS, KEPT, MIXED, NOT_HELD, PASSED, USED, set_top
from parsim.engine.order import BATCH, interpret
from parsim.engine.simulation import BLOCK, LONGEST, routine, step


class Batch(NamedTuple):
    """Up to `BATCH` jobs, and their entries, for which a formula is evaluated together."""

    job: NDArray[np.int32]
    entry: NDArray[np.int32]


class Epoch(NamedTuple):
    """A period in which the values at its end are bounds, and values are computed only for jobs that may be first."""

    longest: int  # upper bound of waits, seconds
    exact: bool  # values do not change with time
    of_user: bool  # the value of a job is a value of its user
    many: int  # least number of instructions, over all waiting jobs, with which bounds are used
    clock: NDArray[np.int64]  # `END`, `SPAN`, `WASTED`, `PASS`, `SCANNED`


# Last instant of the epoch, or -1 without one; its seconds; values computed in it beyond the first of each scan; number
# of passes over the list, and of entries that they scanned.
END, SPAN, WASTED, PASS, SCANNED = range(5)


@step
def evaluate(s, now):
    """Set the bounds of jobs that are not held to their values now; 0 where undefined (rule "undefined operations")."""
    waiting, formula, batch, d = s.waiting, s.formula, s.batch, s.directory
    s.epoch.clock[END] = -1
    if d.state[JOBS] == 1:
        waiting.bound[0] = 0.0  # whatever it is, the job goes first
        return
    if s.epoch.of_user:
        for b in range(d.state[USED]):
            evaluate_users(s, b, now)
        return
    count = 0
    for b in range(d.state[USED]):
        for i in range(b * BLOCK, b * BLOCK + d.count[b]):
            if waiting.held[i] != NOT_HELD:
                waiting.bound[i] = PASSED
                continue
            batch.job[count] = waiting.job[i]
            batch.entry[count] = i
            formula.eligible[count] = now - waiting.origin[i]
            count += 1
            if count == BATCH:
                run_formula(s, count, now)
                write_bounds(s, count)
                count = 0
    run_formula(s, count, now)
    write_bounds(s, count)
    for b in range(d.state[USED]):
        set_top(s, b)


@step
def evaluate_users(s, b, now):
    """Set the bounds in block b to the values of the jobs' users."""
    d, bound = s.directory, s.waiting.bound
    begin, end = b * BLOCK, b * BLOCK + d.count[b]
    top = value_of_user(s, begin, now)
    if d.group[b] != MIXED and not s.limits.any:
        for i in range(begin, end):
            bound[i] = top
    else:
        for i in range(begin, end):
            bound[i] = value_of_user(s, i, now)
            top = max(top, bound[i])
    if d.state[KEPT]:
        d.top[b] = top


@step
def value_of_user(s, i, now):
    """Return the value of the user of entry i."""
    fair = s.fair
    user = np.int64(fair.user[s.waiting.job[i]])
    if fair.at[user] != now:
        find_values(fair, user, now)
    return defined(fair.values[fair.reads[0], user])


@step
def write_bounds(s, count):
    """Set the bounds of the batch's entries to the values in the formula's stack."""
    for k in range(count):
        s.waiting.bound[s.batch.entry[k]] = defined(s.formula.stack[0, k])


@routine
def set_bounds(s, now):
    """Begin an epoch, if the last one is over: set the bounds of waiting jobs to their values at its end.

    An epoch ends early if it has wasted as many computed values as there are jobs; then the next one has half its
    seconds, else twice as many.
    """
    waiting, formula, batch, clock, d = s.waiting, s.formula, s.batch, s.epoch.clock, s.directory
    wasted = clock[WASTED] > d.state[JOBS]
    if not wasted and now <= clock[END]:
        return
    clock[SPAN] = max(1, clock[SPAN] >> 1) if wasted else min(2 * clock[SPAN], LONGEST)
    clock[END] = now + clock[SPAN]
    clock[WASTED] = 0
    for b in range(d.state[USED]):
        for k in range(d.count[b]):
            i = b * BLOCK + k
            batch.job[k] = waiting.job[i]
            batch.entry[k] = i
            formula.eligible[k] = min(clock[END] - waiting.origin[i], s.epoch.longest)
        interpret(
            formula.code, formula.constants, formula.columns, batch.job, formula.eligible, formula.stack, d.count[b]
        )
        write_bounds(s, d.count[b])
        set_top(s, b)


@step
def value_at(s, i):
    """Return the value of entry i at this instant or, if it is not known, its bound."""
    waiting = s.waiting
    return waiting.value[i] if waiting.known[i] == s.epoch.clock[PASS] else waiting.bound[i]


@step
def is_known(s, i):
    """Whether the value of entry i at this instant is known."""
    clock = s.epoch.clock
    return clock[END] < 0 or s.waiting.known[i] == clock[PASS] or s.epoch.exact


@step
def is_exact(s):
    """Whether the bounds of all but new entries are their values."""
    return s.epoch.clock[END] < 0 or s.epoch.exact


@routine
def evaluate_entry(s, i, now):
    """Compute the value of entry i at this instant and, for a new entry, its bound."""
    waiting, formula, batch, clock = s.waiting, s.formula, s.batch, s.epoch.clock
    count = 1
    batch.job[0] = waiting.job[i]
    formula.eligible[0] = now - waiting.origin[i]
    if clock[END] >= 0 and waiting.bound[i] == np.inf:
        count = 2
        batch.job[1] = waiting.job[i]
        formula.eligible[1] = min(clock[END] - waiting.origin[i], s.epoch.longest)
    run_formula(s, count, now)
    waiting.value[i] = defined(formula.stack[0, 0])
    waiting.known[i] = clock[PASS]
    if waiting.bound[i] == np.inf:
        waiting.bound[i] = defined(formula.stack[0, count - 1])
        set_top(s, np.int64(i) // BLOCK)


@step
def value_of(s, j, eligible, now):
    """Return the value that job j has with this eligible time, seconds."""
    s.batch.job[0] = j
    s.formula.eligible[0] = eligible
    run_formula(s, 1, now)
    return defined(s.formula.stack[0, 0])


@step
def run_formula(s, count, now):
    """Compute the values of the first `count` jobs of the batch in the formula's stack, NaN where undefined."""
    formula, job = s.formula, s.batch.job
    fill(s.fair, formula.columns, job, count, now)
    interpret(formula.code, formula.constants, formula.columns, job, formula.eligible, formula.stack, count)


@step
def defined(v):
    """Return a value, or 0 where it is undefined (rule "undefined operations")."""
    return 0.0 if math.isnan(v) else v
