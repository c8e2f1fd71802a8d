"""Limits as PBS plans them: of running jobs by their expected ends, and of the plans of head jobs.

Numbers ("rule 22") refer to docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from parsim.kernels.needs import amount_of
from parsim.kernels.state import routine, step
from parsim.kernels.throttles import exemptions, is_above


class Counts(NamedTuple):
    """Jobs and cores of a queue, and of a user in it."""

    jobs: np.int64
    cores: np.int64
    user_jobs: np.int64
    user_cores: np.int64


@step
def add_counts(s, j, counts, mate, sign):
    """Count a job where it shares the limits of job j."""
    job, other = s.jobs[j], s.jobs[mate]
    if other.queue != job.queue:
        return counts
    cores = sign * np.int64(other.cores)
    same = np.int64(job.user >= 0 and other.user == job.user)
    return Counts(
        counts.jobs + sign, counts.cores + cores, counts.user_jobs + same * sign, counts.user_cores + same * cores
    )


@step
def count_running(s, j):
    """Job j and the running jobs that share its limits."""
    job, zero = s.jobs[j], np.int64(0)
    queue = s.queues[job.queue]
    counts = Counts(queue.jobs, queue.cores, zero, zero)
    if s.settings.user_limits and job.user >= 0:
        use = s.use[job.user * s.queues.size + job.queue]
        counts = Counts(queue.jobs, queue.cores, use.jobs, use.cores)
    return add_counts(s, j, counts, j, 1)


@step
def count_later(s, plans, j, moment):
    """Job j and the running jobs that share its limits and are expected to run past a moment."""
    running, bits, zero = plans.running, s.settings.bits, np.int64(0)
    counts = add_counts(s, j, Counts(zero, zero, zero, zero), j, 1)
    for i in range(s.progress.running - 1, -1, -1):
        if (running.keys[i] >> bits) <= moment:
            break
        counts = add_counts(s, j, counts, running.keys[i] & ((np.int64(1) << bits) - 1), 1)
    return counts


@step
def above_limits(s, plans, j, counts, moment):
    """Whether job j is above a limit beside what is counted and the head jobs that are to run at a moment."""
    promises = plans.promises
    for k in range(s.partitions.size):
        if is_first_plan(promises, j, k, moment):
            counts = add_counts(s, j, counts, promises[k].job, 1)
    queue = s.queues[s.jobs[j].queue]
    return (
        lacks_at(s, s.needs, plans, j, moment)
        or counts.jobs > queue.max_run
        or counts.cores > queue.max_run_cores
        or counts.user_jobs > queue.max_user_run
        or counts.user_cores > queue.max_user_cores
    )


@routine
def lacks_at(s, needs, plans, j, moment):
    """Whether less is left at a moment than job j asks for, by the expected ends and the plans (rules 22 and 41)."""
    if needs is None:
        return False
    running, bits, promises = plans.running, s.settings.bits, plans.promises
    low = (np.int64(1) << bits) - 1
    for k in range(needs.wanted_from[j], needs.wanted_from[j + 1]):
        quota = needs.wanted[k]
        used = needs.amounts[k]
        for i in range(s.progress.running - 1, -1, -1):
            if (running.keys[i] >> bits) <= moment:
                break
            used += amount_of(needs, running.keys[i] & low, quota)
        for p in range(s.partitions.size):
            if is_first_plan(promises, j, p, moment):
                used += amount_of(needs, promises[p].job, quota)
        if used > needs.quotas[quota].most:
            return True
    return False


@step
def is_first_plan(promises, j, k, moment):
    """Whether a plan of another job than j counts at a moment; of two of one job, in two lists, the first does."""
    plan = promises[k]
    counts = plan.job >= 0 and plan.job != j and plan.begin <= moment < plan.end
    for o in range(k):
        counts &= promises[o].job != plan.job or not promises[o].begin <= moment < promises[o].end
    return counts


@routine
def is_held_later(s, plans, j, instant):
    """Whether job j, begun at this instant, would be above a limit when a head job of its queue begins (rule 22)."""
    until = instant + s.jobs[j].walltime
    for k in range(s.partitions.size):
        other = plans.promises[k]
        if other.job < 0 or other.job == j or not instant < other.begin < until:
            continue
        shares = s.settings.wide_limits or s.jobs[other.job].queue == s.jobs[j].queue
        if shares and above_limits(s, plans, j, count_running(s, j), other.begin):
            if above_limits(s, plans, j, count_later(s, plans, j, other.begin), other.begin):
                return True
    return is_throttled_later(s, s.throttles, plans, j, instant)


@routine
def is_throttled_later(s, throttles, plans, j, instant):
    """Whether job j, begun at this instant, would be above a throttle then or when a head job begins (rule 45)."""
    if throttles is None:
        return False
    until = instant + s.jobs[j].walltime
    if is_throttled_at(s, throttles, plans, j, until, instant):
        return True
    for k in range(s.partitions.size):
        other = plans.promises[k]
        if other.job >= 0 and other.job != j and instant < other.begin < until:
            if is_throttled_at(s, throttles, plans, j, until, other.begin):
                return True
    return False


@routine
def is_throttled_at(s, throttles, plans, j, until, moment):
    """Whether job j, which ends at `until`, is above a throttle at a moment, beside what is expected to run then."""
    running, bits, promises = plans.running, s.settings.bits, plans.promises
    rows, amounts = throttles.rows, throttles.amounts
    low = (np.int64(1) << bits) - 1
    for column in range(rows.shape[1]):
        row = rows[j, column]
        if row < 0:
            continue
        jobs, amount = np.int64(1), amounts[j, column]
        work = amount * (until - moment)
        for i in range(s.progress.running - 1, -1, -1):
            end, other = running.keys[i] >> bits, running.keys[i] & low
            if end <= moment:
                break
            if rows[other, column] == row:
                jobs += 1
                amount += amounts[other, column]
                work += amounts[other, column] * (end - moment)
        for k in range(s.partitions.size):
            if promises[k].job >= 0 and promises[k].job != j and is_last_plan(s, promises, k, moment):
                other = promises[k].job
                if rows[other, column] == row:
                    jobs += 1
                    amount += amounts[other, column]
                    work += amounts[other, column] * (promises[k].end - moment)
        if is_above(throttles.each[row], jobs, amount, work, exemptions(throttles, j, column)):
            return True
    return False


@step
def is_last_plan(s, promises, k, moment):
    """Whether a plan counts at a moment, and is the one of its job that ends last."""
    counts = promises[k].begin <= moment < promises[k].end
    for o in range(s.partitions.size):
        if o != k and promises[o].job == promises[k].job and promises[o].begin <= moment < promises[o].end:
            counts &= promises[o].end < promises[k].end or (promises[o].end == promises[k].end and k < o)
    return counts
