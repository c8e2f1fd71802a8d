"""Throttles: limits of jobs of several queues, of users or of groups, counted as jobs start and end.

Where there are none, the place of `Throttles` is None, for which numba leaves all of this out. Numbers ("rule 45")
refer to docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.kernels.compiled import routine, step

THROTTLE = np.dtype(
    [
        ("max_run", np.int64),  # of each limit, `UNLIMITED` without one
        ("max_run_amount", np.int64),
        ("max_run_work", np.int64),
        ("max_eligible", np.int64),
        ("max_queued", np.int64),
        ("jobs", np.int64),  # that run, or are head jobs of the present pass
        ("amount", np.int64),  # of these
        ("running", np.int64),  # amount of those that run
        ("ends", np.int64),  # each of these times the expected end of its job
        ("planned", np.int64),  # amounts of the head jobs times their walltimes
        ("eligible", np.int64),  # jobs that wait in a list
        ("queued", np.int64),  # and those that run
    ],
    align=True,
)
NO_THROTTLE = -1
UNLIMITED = np.iinfo(np.int64).max  #: no count is above it, not even one that has gone round
EXEMPT_RUN, EXEMPT_AMOUNT, EXEMPT_WORK, EXEMPT_ELIGIBLE, EXEMPT_QUEUED = 1, 2, 4, 8, 16


class Throttles(NamedTuple):
    """What throttles count: each so much of one resource, cores or another."""

    each: NDArray[np.void]  # (k,) THROTTLE: of all jobs of some queues, or of a user or a group
    rows: NDArray[np.int32]  # (n, m): those in which a job counts, or `NO_THROTTLE`
    amounts: NDArray[np.int64]  # (n, m): how much it counts there
    is_out: NDArray[np.bool_]  # (n,): whether a job is kept out of the lists; empty where none is
    outside: NDArray[np.int32]  # (n,): those that are, the first `progress.outside` entries, in order
    exempt: NDArray[np.uint8]  # (n, m): `EXEMPT` bits, of the limits that do not concern a job; empty for none


@step
def count_throttled(throttles, jobs, j, start, sign):
    """Add job j to, or take it from, what counts in its throttles; without a start it is a head job."""
    if throttles is None:
        return
    for column in range(throttles.rows.shape[1]):
        row = throttles.rows[j, column]
        if row >= 0:
            add_to(throttles.each, row, throttles.amounts[j, column], np.int64(jobs[j].walltime), start, sign)


@routine
def add_to(each, row, amount, walltime, start, sign):
    """Add a job to, or take it from, what counts in one throttle."""
    throttle = each[row]
    throttle.jobs += sign
    throttle.amount += sign * amount
    if start < 0:
        throttle.planned += sign * amount * walltime
    else:
        throttle.eligible -= sign > 0  # it starts, and waits no more
        throttle.queued -= sign < 0
        throttle.running += sign * amount
        throttle.ends += sign * amount * (start + walltime)


@step
def exemptions(throttles, j, column):
    """Return the bits of the limits from which job j is exempt (rule 51)."""
    return throttles.exempt[j, column] if throttles.exempt.size > 0 else np.uint8(0)


@step
def is_above(throttle, jobs, amount, work, exempt):
    """Whether so many jobs, so much of their resource, and that times seconds are above a limit that is not exempt."""
    return (
        (jobs > throttle.max_run and not exempt & EXEMPT_RUN)
        or (amount > throttle.max_run_amount and not exempt & EXEMPT_AMOUNT)
        or (work > throttle.max_run_work and not exempt & EXEMPT_WORK)
    )


@routine
def is_throttled(throttles, j, others, walltime, now):
    """Whether a throttle forbids job j to start now; it counts already if there are no `others` than it (rule 45)."""
    if throttles is None:
        return False
    for column in range(throttles.rows.shape[1]):
        row = throttles.rows[j, column]
        if row < 0:
            continue
        throttle = throttles.each[row]
        amount = others * throttles.amounts[j, column]
        work = throttle.ends - throttle.running * now + throttle.planned + amount * walltime
        if is_above(throttle, throttle.jobs + others, throttle.amount + amount, work, exemptions(throttles, j, column)):
            return True
    return False


@step
def is_out(throttles, j):
    """Whether job j is kept out of the lists (rule 47)."""
    if throttles is None:
        return False
    return throttles.is_out.size > 0 and throttles.is_out[j]


@routine
def may_enter(throttles, j):
    """Whether the throttles of job j let it wait in a list (rule 47)."""
    if throttles is None:
        return True
    for column in range(throttles.rows.shape[1]):
        row = throttles.rows[j, column]
        if row >= 0:
            throttle = throttles.each[row]
            exempt = exemptions(throttles, j, column)
            if throttle.eligible >= throttle.max_eligible and not exempt & EXEMPT_ELIGIBLE:
                return False
            if throttle.queued >= throttle.max_queued and not exempt & EXEMPT_QUEUED:
                return False
    return True


@step
def count_entered(throttles, j):
    """Job j waits in a list, or runs already and is about to be counted as started."""
    if throttles is None:
        return
    for column in range(throttles.rows.shape[1]):
        row = throttles.rows[j, column]
        if row >= 0:
            throttles.each[row].eligible += 1
            throttles.each[row].queued += 1
