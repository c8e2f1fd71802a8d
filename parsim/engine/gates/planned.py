"""Checks gates at later instants, as PBS plans limits: with expected ends of running jobs, and plans of head jobs.

Names of rules refer to docs/reference/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.engine.gates.counters import exemptions, is_above
from parsim.engine.simulation import NEVER, routine, step

NOW, LATER = 0, 1  #: rows of `Gates.counts`


@step
def count_running(gates, j):
    """Set the counts `NOW` of job j's gates to those of the running jobs."""
    for column in range(gates.rows.shape[1]):
        row, count = gates.rows[j, column], gates.counts[NOW, column]
        if row >= 0:
            count.jobs, count.amount, count.ends = gates.each[row].jobs, gates.each[row].running, gates.each[row].ends


@step
def add_count(gates, at, j, other, end, sign):
    """Add another job and its expected end to row `at` of the counts of job j's gates, or remove it (`sign` -1)."""
    for column in range(gates.rows.shape[1]):
        if gates.rows[j, column] >= 0 and gates.rows[other, column] == gates.rows[j, column]:
            count, amount = gates.counts[at, column], sign * gates.amounts[other, column]
            count.jobs += sign
            count.amount += amount
            count.ends += amount * end


@routine
def count_later(s, plans, j, moment):
    """Set the counts `LATER` of job j's gates to those of the jobs expected to run past a moment."""
    gates, running, bits = s.gates, plans.running, s.settings.bits
    low = (np.int64(1) << bits) - 1
    for column in range(gates.rows.shape[1]):
        count = gates.counts[LATER, column]
        count.jobs = count.amount = count.ends = 0
    for i in range(s.progress.running - 1, -1, -1):
        end = running.keys[i] >> bits
        if end <= moment:
            break
        add_count(gates, LATER, j, running.keys[i] & low, end, 1)


@routine
def is_above_at(s, plans, j, until, moment, at, exact):
    """Whether job j, running until `until`, exceeds a bound at a moment, with row `at` of the counts and the plans.

    If not `exact`, the counts include jobs that have ended by then: True means that job j may exceed a bound.
    """
    gates, promises = s.gates, plans.promises
    for column in range(gates.rows.shape[1]):
        row = gates.rows[j, column]
        if row < 0:
            continue
        jobs, amount = gates.counts[at, column].jobs + 1, gates.counts[at, column].amount + gates.amounts[j, column]
        ends = gates.counts[at, column].ends + gates.amounts[j, column] * until
        for k in range(s.partitions.size):
            other = promises[k].job
            if other >= 0 and other != j and gates.rows[other, column] == row and is_last_plan(s, promises, k, moment):
                jobs += 1
                amount += gates.amounts[other, column]
                ends += gates.amounts[other, column] * promises[k].end
        work = ends - amount * moment if exact else NEVER
        if is_above(gates.each[row], jobs, amount, work, exemptions(gates, j, column)):
            return True
    return False


@step
def is_last_plan(s, promises, k, moment):
    """Whether plan k covers a moment, and is the last to end of its job's plans that do."""
    counts = promises[k].begin <= moment < promises[k].end
    for o in range(s.partitions.size):
        if o != k and promises[o].job == promises[k].job and promises[o].begin <= moment < promises[o].end:
            counts &= promises[o].end < promises[k].end or (promises[o].end == promises[k].end and k < o)
    return counts


@step
def share_gates(gates, j, other):
    """Whether two jobs have a gate in common."""
    shared = False
    for column in range(gates.rows.shape[1]):
        shared |= gates.rows[j, column] >= 0 and gates.rows[other, column] == gates.rows[j, column]
    return shared


@routine
def is_held_later(s, plans, j, instant):
    """Whether job j, started at this instant, would exceed a bound when a head job begins.

    Rules "limits beside plans" and "limits of a throttle".

    The counts `NOW` must include all jobs that run at the instant.
    """
    until = instant + s.jobs[j].walltime
    for k in range(s.partitions.size):
        other = plans.promises[k]
        if (
            other.job < 0
            or other.job == j
            or not instant < other.begin < until
            or not share_gates(s.gates, j, other.job)
        ):
            continue
        if is_above_at(s, plans, j, until, other.begin, NOW, False):
            count_later(s, plans, j, other.begin)
            if is_above_at(s, plans, j, until, other.begin, LATER, True):
                return True
    return False


@routine
def is_held_beside(s, plans, j, now):
    """Whether job j, started now, would exceed a bound at any time beside the plans (rule "limits beside plans")."""
    count_running(s.gates, j)
    return is_above_at(s, plans, j, now + s.jobs[j].walltime, now, NOW, True) or is_held_later(s, plans, j, now)
