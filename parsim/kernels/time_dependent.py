"""EASY and FCFS on one list that is alone on its cores and whose order is a time-dependent priority, a formula.

This is the event loop of searches over formulas. It is twice as fast as `parsim.kernels.general`: nothing starves, is
held or may start elsewhere, so the list is a few columns in the order of submission.

References
----------
Mu'alem and Feitelson, IEEE TPDS 12(6), 2001, section 2; Srinivasan, Kettimuthu, Subramani and Sadayappan, HPDC 2002
(selective reservations).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from parsim.kernels.easy import begin_job, end_jobs, shadow_time
from parsim.kernels.order import CHUNK, interpret
from parsim.kernels.running import sift
from parsim.kernels.state import LONGEST, NEVER, Running, step

STARTED = -np.inf  # in place of the value of an entry whose job has started; all others are finite


class Valued(NamedTuple):
    """The waiting list, in the order of submission."""

    job: NDArray[np.int32]
    cores: NDArray[np.int32]
    walltime: NDArray[np.int32]
    value: NDArray[np.float64]


@njit(cache=True, nogil=True)
def time_dependent(jobs, machine, backfill, reservation_delay, bits, formula, start):
    """Schedule `jobs` on `machine` cores.

    Parameters
    ----------
    jobs, machine, backfill
        As `parsim.kernels.easy.easy` takes them.
    reservation_delay : int
        Seconds that a job has waited before it may be the head job.
    bits
        As `parsim.kernels.easy.easy` takes it.
    formula : Formula
        The largest value goes first.
    start
        As `parsim.kernels.easy.easy` takes it.
    """
    n = jobs.size
    most = min(n, machine)
    ends = np.empty(most + 1, np.int64)
    running = Running(np.empty(most + 1, np.int64), np.empty(most + 1, np.int32))
    waiting = Valued(np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n))
    candidates = np.empty(n, np.int32)
    event_loop(jobs, machine, backfill, reservation_delay, bits, formula, ends, running, waiting, candidates, start)


@step
def event_loop(jobs, machine, backfill, reservation_delay, bits, formula, ends, running, waiting, candidates, start):
    """Simulate; fills `start`. `ends` is a heap of real ends."""
    n = jobs.size
    free = np.int64(machine)
    size = 0  # running jobs
    last = np.int64(0)  # waiting jobs
    arriving = 0

    while arriving < n or size > 0:
        now = np.int64(jobs[arriving].submit) if arriving < n else NEVER
        if size > 0:
            now = min(now, ends[0] >> bits)
        free, size = end_jobs(jobs, ends, running, size, free, now, bits, start)
        while arriving < n and jobs[arriving].submit == now:
            waiting.job[last] = arriving
            waiting.cores[last] = jobs[arriving].cores
            waiting.walltime[last] = jobs[arriving].walltime
            last += 1
            arriving += 1
        if last == 0 or narrowest(waiting, last) > free:
            continue

        evaluate(jobs, waiting, last, formula, now)
        kept = last  # first entry whose job started
        eligible = count_eligible(jobs, waiting, last, now, reservation_delay)
        head = first_entry(waiting, eligible, last, free)
        while head >= 0 and waiting.cores[head] <= free:
            begin_job(jobs, waiting.job[head], now, bits, ends, running, size, start)
            free -= waiting.cores[head]
            size += 1
            waiting.value[head] = STARTED
            kept = min(kept, head)
            head = first_entry(waiting, eligible, last, free)
        if head >= 0 and backfill and free > 0:
            shadow, extra = shadow_time(running, size, free, np.int64(waiting.cores[head]), now, bits)
            slack = min(shadow - now, LONGEST)
            m = collect(waiting, last, free, slack, extra, candidates)
            while m > 0 and free > 0:
                i = candidates[0]
                m -= 1
                candidates[0] = candidates[m]
                sift(candidates, 0, m, goes_before, waiting.value)
                c = np.int64(waiting.cores[i])
                if c <= free and (waiting.walltime[i] <= slack or c <= extra):
                    begin_job(jobs, waiting.job[i], now, bits, ends, running, size, start)
                    free -= c
                    size += 1
                    if waiting.walltime[i] > slack:
                        extra -= c
                    waiting.value[i] = STARTED
                    kept = min(kept, np.int64(i))
        last = drop_started(waiting, kept, last)


@step
def narrowest(waiting, last):
    """Return the least cores of a waiting job."""
    least = LONGEST
    for i in range(last):
        least = min(least, np.int64(waiting.cores[i]))
    return least


@step
def evaluate(jobs, waiting, last, formula, now):
    """Set the values of the waiting jobs at this instant; 0 where undefined (rule 8 of docs/reference/simulator.md)."""
    for begin in range(0, last, CHUNK):
        count = min(CHUNK, last - begin)
        members = waiting.job[begin : begin + count]
        for i in range(count):
            formula.eligible[i] = np.float64(now - jobs[members[i]].submit)
        interpret(formula.code, formula.constants, formula.columns, members, formula.eligible, formula.stack, count)
        for i in range(count):
            v = formula.stack[0, i]
            waiting.value[begin + i] = 0.0 if math.isnan(v) else v


@step
def count_eligible(jobs, waiting, last, now, reservation_delay):
    """Count the entries, the first ones, that have waited long enough to be the head job (rule 3)."""
    if reservation_delay == 0:
        return last
    eligible = np.int64(0)
    while eligible < last and now - jobs[waiting.job[eligible]].submit >= reservation_delay:
        eligible += 1
    return eligible


@step
def first_entry(waiting, eligible, last, free):
    """Return the entry with the largest value, of equal ones the first, that fits or may be the head job; or -1."""
    best = np.int64(-1)
    largest = STARTED
    for i in range(eligible):
        if waiting.value[i] > largest:
            best = i
            largest = waiting.value[i]
    for i in range(eligible, last):
        if waiting.value[i] > largest and waiting.cores[i] <= free:
            best = i
            largest = waiting.value[i]
    return best


@step
def collect(waiting, last, free, slack, extra, candidates):
    """Make a heap of the entries that may start beside the head job; return how many. These only become fewer."""
    m = 0
    for i in range(last):
        c = np.int64(waiting.cores[i])
        if c <= free and (waiting.walltime[i] <= slack or c <= extra) and waiting.value[i] != STARTED:
            candidates[m] = i
            m += 1
    for k in range((m >> 1) - 1, -1, -1):
        sift(candidates, k, m, goes_before, waiting.value)
    return m


@step
def goes_before(value, i, k):
    """Whether entry i goes before entry k."""
    return value[i] > value[k] or (value[i] == value[k] and i < k)


@step
def drop_started(waiting, kept, last):
    """Close the gaps that started jobs left, the first at entry `kept`; return the end of the list."""
    for k in range(kept, last):
        if waiting.value[k] != STARTED:
            waiting.job[kept] = waiting.job[k]
            waiting.cores[kept] = waiting.cores[k]
            waiting.walltime[kept] = waiting.walltime[k]
            kept += 1
    return kept
