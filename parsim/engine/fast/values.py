"""The values of waiting jobs under a formula: of all at an instant or, where that takes long, of the first only.

A value that never falls is bounded by that at a later instant. In an epoch, the time up to such an instant, the bounds
say which jobs may be first, and the values of these are computed until the first one is known. Numbers ("rule 8") refer
to docs/reference/simulator.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.fairshare import fill
from parsim.engine.order import CHUNK, interpret
from parsim.engine.simulation import BLOCK, LONGEST, apart, routine, step

PASSED = -np.inf  # in place of the value of an entry that has started, is the head or is held; all others are finite
NOT_HELD = np.inf


class Valued(NamedTuple):
    """The waiting list, in no order: of jobs alike the first."""

    job: NDArray[np.int32]
    cores: NDArray[np.int32]
    walltime: NDArray[np.int32]
    value: NDArray[np.float64]
    origin: NDArray[np.float64]  # submit, plus the seconds for which its limits held the job before
    held: NDArray[np.float64]  # instant from which its limits hold it, or `NOT_HELD`
    bound: NDArray[np.float64]  # its value at the end of the epoch, or infinity
    known: NDArray[np.bool_]  # in an epoch: whether `value` is that of this instant, else it is `bound`


def valued_of(n: int) -> Valued:
    """Return a list in which n jobs may wait; what is looked at by blocks of `BLOCK` entries has so many more."""
    padded = n + BLOCK
    return Valued(
        job=np.empty(n, np.int32),
        cores=np.empty(padded, np.int32),
        walltime=np.empty(padded, np.int32),
        value=np.empty(padded),
        origin=np.empty(n),
        held=np.empty(n),
        bound=np.empty(n),
        known=np.empty(n, np.bool_),
    )


class Chunk(NamedTuple):
    """Up to `CHUNK` jobs that a formula is evaluated for."""

    job: NDArray[np.int32]
    entry: NDArray[np.int32]


class Epoch(NamedTuple):
    """A while in which a value that never falls is bounded by that at its end, and computed for the first jobs only."""

    longest: int  # no job waits longer, seconds
    many: int  # so many instructions for the values of an instant are too many to compute all of these
    clock: NDArray[np.int64]  # `END`, `SPAN`, `WASTED`


END, SPAN, WASTED = range(3)  # its last instant, or -1 without one; its seconds; bounds that were looked behind


@step
def evaluate(s, last, now):
    """Set the values of the waiting jobs that are not held at this instant; 0 where undefined (rule 8)."""
    waiting, formula, chunk = s.waiting, s.formula, s.chunk
    if last == 1:
        waiting.value[0] = 0.0  # whatever it is, the job goes first
        return
    count = 0
    for i in range(last):
        if waiting.held[i] == NOT_HELD:
            chunk.job[count] = waiting.job[i]
            chunk.entry[count] = i
            formula.eligible[count] = now - waiting.origin[i]
            count += 1
        else:
            waiting.value[i] = PASSED
        if count == CHUNK or i + 1 == last:
            run_formula(s, count, now)
            for k in range(count):
                waiting.value[chunk.entry[k]] = defined(formula.stack[0, k])
            count = 0


@routine
def set_bounds(s, last, now):
    """Set the values of the waiting jobs that are not held to what they do not pass in this epoch.

    An epoch in which as many bounds were computed behind as there are jobs ends, and the next has half its seconds;
    else the next has twice as many.
    """
    waiting, formula, clock = s.waiting, s.formula, s.epoch.clock
    wasted = clock[WASTED] > last
    if wasted or now > clock[END]:
        clock[SPAN] = max(1, clock[SPAN] >> 1) if wasted else min(2 * clock[SPAN], LONGEST)
        clock[END] = now + clock[SPAN]
        clock[WASTED] = 0
        for begin in range(0, last, CHUNK):
            count = min(CHUNK, last - begin)
            for k in range(count):
                formula.eligible[k] = min(clock[END] - waiting.origin[begin + k], s.epoch.longest)
            job = waiting.job[begin : begin + count]
            interpret(formula.code, formula.constants, formula.columns, job, formula.eligible, formula.stack, count)
            for k in range(count):
                waiting.bound[begin + k] = defined(formula.stack[0, k])
    for i in range(last):
        waiting.value[i] = waiting.bound[i] if waiting.held[i] == NOT_HELD else PASSED
        waiting.known[i] = False


@apart
def settle(s, i, now):
    """Compute the value of entry i at this instant and, where that is not known, its bound."""
    waiting, formula, chunk, end = s.waiting, s.formula, s.chunk, s.epoch.clock[END]
    count = 1
    chunk.job[0] = waiting.job[i]
    formula.eligible[0] = now - waiting.origin[i]
    if end >= 0 and waiting.bound[i] == np.inf:
        count = 2
        chunk.job[1] = waiting.job[i]
        formula.eligible[1] = min(end - waiting.origin[i], s.epoch.longest)
    run_formula(s, count, now)
    waiting.value[i] = defined(formula.stack[0, 0])
    waiting.known[i] = True
    if count == 2:
        waiting.bound[i] = defined(formula.stack[0, 1])


@step
def value_of(s, j, eligible, now):
    """Return the value of a job of this eligible time."""
    s.chunk.job[0] = j
    s.formula.eligible[0] = eligible
    run_formula(s, 1, now)
    return defined(s.formula.stack[0, 0])


@step
def run_formula(s, count, now):
    """Leave the values of the first `count` jobs of the chunk in the formula's stack, NaN where undefined."""
    formula, job = s.formula, s.chunk.job
    fill(s.fair, formula.columns, job, count, now)
    interpret(formula.code, formula.constants, formula.columns, job, formula.eligible, formula.stack, count)


@step
def defined(v):
    """Return a value, or 0 where it is undefined (rule 8)."""
    return 0.0 if math.isnan(v) else v
