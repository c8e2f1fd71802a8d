"""Gates: what may hold a job that would fit. Each is a counter with bounds, in which jobs count as they start and end.

Running limits of queues and of their users, throttles and quotas are all gates. Names of rules refer to
docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.compile.compiled import apart, routine, step

GATE = np.dtype(
    [
        ("max_run", np.int64),  # of each bound, `UNLIMITED` without one
        ("max_run_amount", np.int64),
        ("max_run_work", np.int64),
        ("jobs", np.int64),  # that run, or are head jobs of the present pass
        ("amount", np.int64),  # of these
        ("max_eligible", np.int64),
        ("max_queued", np.int64),
        ("running", np.int64),  # amount of those that run
        ("ends", np.int64),  # each of these times the expected end of its job
        ("planned", np.int64),  # amounts of the head jobs times their walltimes
        ("eligible", np.int64),  # jobs that wait in a list
        ("queued", np.int64),  # and those that run
    ],
    align=True,
)
#: What some jobs are in a gate together: how many, their amounts, and these times the expected ends.
COUNT = np.dtype([("jobs", np.int64), ("amount", np.int64), ("ends", np.int64)], align=True)
NO_GATE = -1
IN, OUT, REFUSED = np.uint8(0), np.uint8(1), np.uint8(2)  #: the last by `max_queued`, at some instant
UNLIMITED = np.iinfo(np.int64).max  #: no count is above it, not even one that has gone round
EXEMPT_RUN, EXEMPT_AMOUNT, EXEMPT_WORK, EXEMPT_ELIGIBLE, EXEMPT_QUEUED = 1, 2, 4, 8, 16


class Gates(NamedTuple):
    """The gates of all jobs: in each column a job counts in one gate at most, so much of one resource."""

    each: NDArray[np.void]  # (k,) GATE
    rows: NDArray[np.int32]  # (n, m): those in which a job counts, or `NO_GATE`
    amounts: NDArray[np.int64]  # (n, m): how much it counts there
    is_out: NDArray[np.uint8]  # (n,): whether a job is kept out of the lists: `IN`, `OUT` or `REFUSED`; empty for none
    outside: NDArray[np.int32]  # (n,): those that are, the first `progress.outside` entries, in order
    exempt: NDArray[np.uint8]  # (n, m): `EXEMPT` bits, of the bounds that do not concern a job; empty for none
    over_time: np.bool_  # whether expected ends count, or jobs that wait
    counts: NDArray[np.void]  # (2, m) COUNT: what the gates of one job have at an instant, or at a later moment


@step
def count_in_gates(gates, jobs, j, start, sign):
    """Add job j to, or take it from, what counts in its gates; without a start it is a head job."""
    for column in range(gates.rows.shape[1]):
        row = gates.rows[j, column]
        if row >= 0:
            gate, amount = gates.each[row], gates.amounts[j, column]
            gate.jobs += sign
            gate.amount += sign * amount
            if gates.over_time:
                count_over_time(gates.each, row, amount, np.int64(jobs[j].walltime), start, sign)


@apart
def count_over_time(each, row, amount, walltime, start, sign):
    """Add a job to, or take it from, what counts in one gate by expected ends, and what waits."""
    gate = each[row]
    if start < 0:
        gate.planned += sign * amount * walltime
    else:
        gate.eligible -= sign > 0  # it starts, and waits no more
        gate.queued -= sign < 0
        gate.running += sign * amount
        gate.ends += sign * amount * (start + walltime)


@step
def exemptions(gates, j, column):
    """Return the bits of the bounds from which job j is exempt (rule "exemptions by QOS")."""
    return gates.exempt[j, column] if gates.exempt.size > 0 else np.uint8(0)


@step
def is_above(gate, jobs, amount, work, exempt):
    """Whether so many jobs, so much of their resource, and that times seconds are above a bound that is not exempt."""
    above = jobs > gate.max_run or amount > gate.max_run_amount or work > gate.max_run_work
    return above and (
        exempt == 0
        or (jobs > gate.max_run and not exempt & EXEMPT_RUN)
        or (amount > gate.max_run_amount and not exempt & EXEMPT_AMOUNT)
        or (work > gate.max_run_work and not exempt & EXEMPT_WORK)
    )


@step
def is_gated(gates, j, others, walltime, now):
    """Whether a gate forbids job j to start now; it counts already if there are no `others` than it.

    Rules "held by limits", "limits of a throttle" and "quotas and licences".
    """
    for column in range(gates.rows.shape[1]):
        row = gates.rows[j, column]
        if row >= 0:
            gate = gates.each[row]
            jobs, amount, work = gate.jobs + others, gate.amount + others * gates.amounts[j, column], np.int64(0)
            if gate.max_run_work < UNLIMITED:
                work = gate.ends - gate.running * now + gate.planned + (amount - gate.amount) * walltime
            if is_above(gate, jobs, amount, work, exemptions(gates, j, column)):
                return True
    return False


@step
def is_out(gates, j):
    """Whether job j is kept out of the lists (rule "admission to lists")."""
    return gates.is_out.size > 0 and gates.is_out[j] != IN


@routine
def may_enter(gates, j):
    """Whether the gates of job j let it wait in a list (rule "admission to lists")."""
    for column in range(gates.rows.shape[1]):
        row = gates.rows[j, column]
        if row >= 0:
            gate = gates.each[row]
            exempt = exemptions(gates, j, column)
            if gate.eligible >= gate.max_eligible and not exempt & EXEMPT_ELIGIBLE:
                return False
            if gate.queued >= gate.max_queued and not exempt & EXEMPT_QUEUED:
                return False
    return True


@routine
def is_refused(gates, j):
    """Whether so many jobs wait or run that job j may not be submitted (rule "admission to lists")."""
    for column in range(gates.rows.shape[1]):
        row = gates.rows[j, column]
        if row >= 0 and gates.each[row].queued >= gates.each[row].max_queued:
            if not exemptions(gates, j, column) & EXEMPT_QUEUED:
                return True
    return False


@step
def count_entered(gates, j):
    """Job j waits in a list, or runs already and is about to be counted as started."""
    for column in range(gates.rows.shape[1]):
        row = gates.rows[j, column]
        if row >= 0:
            gates.each[row].eligible += 1
            gates.each[row].queued += 1
