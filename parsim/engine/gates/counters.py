"""Gates, which may hold a job that would fit: counters with bounds, in which jobs count as they start and end.

Running limits of queues and of their users, throttles and quotas are all gates. Names of rules refer to
docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.compile.compiled import routine, step

GATE = np.dtype(
    [
        ("max_run", np.int64),  # the five bounds are `UNLIMITED` where none is set
        ("max_run_amount", np.int64),
        ("max_run_work", np.int64),  # amount times seconds to the expected end
        ("jobs", np.int64),  # running jobs, and head jobs of the present pass
        ("amount", np.int64),  # sum of the amounts of these jobs
        ("max_eligible", np.int64),
        ("max_queued", np.int64),
        ("running", np.int64),  # sum of the amounts of the running jobs
        ("ends", np.int64),  # sum of their amounts times their expected ends
        ("planned", np.int64),  # sum of the amounts of the head jobs times their walltimes
        ("eligible", np.int64),  # jobs that wait in a list
        ("queued", np.int64),  # jobs that wait in a list or run
    ],
    align=True,
)
#: Sums over some jobs of a gate: their number, their amounts, and their amounts times their expected ends.
COUNT = np.dtype([("jobs", np.int64), ("amount", np.int64), ("ends", np.int64)], align=True)
NO_GATE = -1
IN, OUT, REFUSED = np.uint8(0), np.uint8(1), np.uint8(2)  #: `REFUSED`: out, and by `max_queued` at some instant
UNLIMITED = np.iinfo(np.int64).max  #: no count is above it, not even one that has overflowed
EXEMPT_RUN, EXEMPT_AMOUNT, EXEMPT_WORK, EXEMPT_ELIGIBLE, EXEMPT_QUEUED = 1, 2, 4, 8, 16


class Gates(NamedTuple):
    """All gates, and those of each job: in each column it counts an amount of one resource in at most one gate."""

    each: NDArray[np.void]  # (k,) GATE
    rows: NDArray[np.int32]  # (n, m): the gates of each job, or `NO_GATE`
    amounts: NDArray[np.int64]  # (n, m): the amount that it counts there
    is_out: NDArray[np.uint8]  # (n,): `IN`, `OUT` or `REFUSED`: whether a job is kept out of the lists; or empty
    outside: NDArray[np.int32]  # (n,): the jobs that are, in order: the first `progress.outside` entries
    exempt: NDArray[np.uint8]  # (n, m): `EXEMPT` bits of the bounds that do not concern a job; empty for none
    over_time: np.bool_  # whether gates count expected ends, or waiting jobs
    counts: NDArray[np.void]  # (2, m) COUNT: sums for the gates of one job at an instant, and at a later moment


@step
def count_in_gates(gates, jobs, j, start, sign):
    """Add job j to the counts of its gates (`sign` 1), or remove it (-1); a head job has a negative `start`."""
    for column in range(gates.rows.shape[1]):
        row = gates.rows[j, column]
        if row >= 0:
            gate, amount = gates.each[row], gates.amounts[j, column]
            gate.jobs += sign
            gate.amount += sign * amount
            if gates.over_time:
                count_over_time(gates.each, row, amount, np.int64(jobs[j].walltime), start, sign)


@routine
def count_over_time(each, row, amount, walltime, start, sign):
    """Count a start (`sign` 1) or end (-1) in `eligible`, `queued` and sums over time; a head job in `planned`."""
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
    """Whether jobs, amount or work (amount times seconds) are above a bound of a gate that is not in bits `exempt`."""
    above = jobs > gate.max_run or amount > gate.max_run_amount or work > gate.max_run_work
    return above and (
        exempt == 0
        or (jobs > gate.max_run and not exempt & EXEMPT_RUN)
        or (amount > gate.max_run_amount and not exempt & EXEMPT_AMOUNT)
        or (work > gate.max_run_work and not exempt & EXEMPT_WORK)
    )


@step
def is_gated(gates, j, others, walltime, now):
    """Whether a gate forbids job j to start now; `others` is 0 if the job counts already, else 1.

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
    """Whether a gate has so many jobs that job j may not even be submitted (rule "admission to lists")."""
    for column in range(gates.rows.shape[1]):
        row = gates.rows[j, column]
        if row >= 0 and gates.each[row].queued >= gates.each[row].max_queued:
            if not exemptions(gates, j, column) & EXEMPT_QUEUED:
                return True
    return False


@step
def count_entered(gates, j):
    """Count job j as waiting in a list; also done for jobs of a state, before their starts are counted."""
    for column in range(gates.rows.shape[1]):
        row = gates.rows[j, column]
        if row >= 0:
            gates.each[row].eligible += 1
            gates.each[row].queued += 1
