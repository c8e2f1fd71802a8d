"""Full schedules of the waiting list, planned anew at every submission and completion.

Free cores over time are a step function held in two arrays: ``times[k]`` begins segment `k`, ``free[k]`` cores are idle in it;
the last segment lasts for ever and has every core idle, since every expected end lies before it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

FCFS, SJF, LJF = 0, 1, 2  #: rows of `ranks` and of everything that is counted per policy
FIXED, BOUNDS, TUNING = 0, 1, 2  #: how the policy of a pass is found
SIMPLE, ADVANCED, PREFERRED = 0, 1, 2  #: deciders of self-tuning dynP

# Positions in the `settings` of `replan`.
KIND, POLICY, LOWER, UPPER, THRESHOLD, DECIDER, FAVOURITE, FULL, MAKESPAN = range(9)


@njit(cache=True, nogil=True, inline="always")
def _fit(times, free, size, first, need, length):
    """First segment from `first` on at whose begin `need` cores are idle for `length` seconds, and the segment after the last used."""
    i = first
    while True:
        while free[i] < need:
            i += 1
        end = times[i] + length
        j = i + 1
        while j < size and times[j] < end and free[j] >= need:
            j += 1
        if j == size or times[j] >= end:
            return i, j
        i = j + 1  # segment j is too narrow


@njit(cache=True, nogil=True, inline="always")
def _reserve(times, free, size, i, j, need, length):
    """Take `need` cores out of segments i..j-1, cutting the last one at the end of the job; return the new size."""
    end = times[i] + length
    if j == size or times[j] > end:
        for k in range(size, j, -1):
            times[k] = times[k - 1]
            free[k] = free[k - 1]
        times[j] = end
        free[j] = free[j - 1]
        size += 1
    for k in range(i, j):
        free[k] -= need
    return size


@njit(cache=True, nogil=True, inline="always")
def _insert(order, count, job, rank):
    """Insert `job` into `order`, ascending by `rank`."""
    k = count
    while k > 0 and rank[order[k - 1]] > rank[job]:
        order[k] = order[k - 1]
        k -= 1
    order[k] = job


@njit(cache=True, nogil=True)
def _plan(order, count, cores, walltime, times, free, size, planned, worth, most, makespan, now_only):
    """Plan the jobs of `order` one after the other; False when the score has passed `most` on the way.

    With `now_only` the plan ends as soon as no core is idle now; jobs not planned get -1.
    """
    score = 0.0
    now = times[0]
    first = 0
    for k in range(count):
        job = order[k]
        while free[first] == 0:
            first += 1
        if now_only and first > 0:
            for rest in range(k, count):
                planned[order[rest]] = -1
            return True
        i, j = _fit(times, free, size, first, cores[job], walltime[job])
        planned[job] = times[i]
        if makespan:
            score = max(score, float(times[i] - now + walltime[job]))
        else:
            score += worth[job] * (times[i] - now)
        if score > most:
            return False
        size = _reserve(times, free, size, i, j, cores[job], walltime[job])
    return True


@njit(cache=True, nogil=True)
def _score(order, count, walltime, planned, now, worth, makespan):
    """Score of a plan, summed in submit order: equal plans score equal."""
    score = 0.0
    for k in range(count):
        job = order[k]
        if makespan:
            score = max(score, float(planned[job] - now + walltime[job]))
        else:
            score += worth[job] * (planned[job] - now)
    return score


@njit(cache=True, nogil=True, inline="always")
def _decide(least, old, decider, favourite):
    """Choose the next policy; bit p of `least` is set when policy p has the least score."""
    if decider == PREFERRED and least >> favourite & 1:
        return favourite
    if decider != SIMPLE and least >> old & 1:
        return old
    if least & 1:
        return FCFS
    return SJF if least & 2 else LJF


@njit(cache=True, nogil=True)
def replan(submit, cores, walltime, length, ranks, worth, machine, tie, settings):
    """Simulate a planning scheduler.

    Parameters
    ----------
    submit, cores, walltime, length : ndarray(int64), shape (n,)
        Ascending by submit; `length` is what each job really occupies its cores, at most its walltime.
    ranks : ndarray(int64), shape (3, n)
        Place of each job in the order of FCFS, SJF, LJF.
    worth : ndarray(float64), shape (n,)
        What a second of delay of each job adds to the score of a plan.
    machine : int
    tie : float
        Scores closer than this share of the lesser are equal.
    settings : ndarray(int64), shape (9,)
        See the constants above.

    Returns
    -------
    start : ndarray(int64), shape (n,)
    cases : ndarray(int64), shape (3, 8, 3)
        Decisions by (policy in use, set of the least scores, policy chosen); a set is a bit mask, 0 where no score is computed.
    starts, seconds : ndarray(int64), shape (3,)
        Jobs started under each policy, seconds it was in use.
    """
    n = submit.size
    kind, decider, favourite = settings[KIND], settings[DECIDER], settings[FAVOURITE]
    makespan = settings[MAKESPAN] == 1
    start = np.full(n, -1, np.int64)
    cases = np.zeros((3, 8, 3), np.int64)
    starts = np.zeros(3, np.int64)
    seconds = np.zeros(3, np.int64)

    orders = np.empty((3, n), np.int64)  # the waiting jobs under each policy
    waiting = 0
    at_once = min(n, machine)
    end = np.empty(at_once, np.int64)  # running jobs, latest first
    end_cores = np.empty(at_once, np.int64)
    end_job = np.empty(at_once, np.int64)
    expected = np.empty(at_once, np.int64)  # the same by expected end, latest first
    expected_cores = np.empty(at_once, np.int64)
    expected_job = np.empty(at_once, np.int64)
    running = 0
    base_times = np.empty(at_once + 1, np.int64)
    base_free = np.empty(at_once + 1, np.int64)
    times = np.empty(n + 2, np.int64)
    free = np.empty(n + 2, np.int64)
    planned = np.empty((3, n), np.int64)
    scores = np.empty(3, np.float64)

    idle = machine
    policy = settings[POLICY]
    arriving = 0
    now = submit[0] if n else 0
    while arriving < n or running > 0:
        before = now
        if running == 0 or (arriving < n and submit[arriving] < end[running - 1]):
            now = submit[arriving]
        else:
            now = end[running - 1]
        seconds[policy] += now - before

        while running > 0 and end[running - 1] == now:
            running -= 1
            idle += end_cores[running]
            k = running
            while expected_job[k] != end_job[running]:
                k -= 1
            for m in range(k, running):
                expected[m] = expected[m + 1]
                expected_cores[m] = expected_cores[m + 1]
                expected_job[m] = expected_job[m + 1]
        submitted = arriving < n and submit[arriving] == now
        while arriving < n and submit[arriving] == now:
            for p in range(3):
                if kind != FIXED or p == policy:
                    _insert(orders[p], waiting, arriving, ranks[p])
            waiting += 1
            arriving += 1
        if waiting == 0:
            continue

        # What the running jobs leave, by their expected ends.
        base_times[0] = now
        base_free[0] = idle
        base = 1
        for k in range(running - 1, -1, -1):
            if expected[k] != base_times[base - 1]:
                base_times[base] = expected[k]
                base_free[base] = base_free[base - 1]
                base += 1
            base_free[base - 1] += expected_cores[k]

        if kind == TUNING and (submitted or settings[FULL] == 1):
            least_score = np.inf
            for turn in range(3):
                # The policy in use goes first: its score ends the plans that are worse early.
                p = policy if turn == 0 else (turn - 1 if turn <= policy else turn)
                times[:base] = base_times[:base]
                free[:base] = base_free[:base]
                most = least_score * (1.0 + 1e-9)
                done = _plan(
                    orders[p], waiting, cores, walltime, times, free, base, planned[p], worth, most, makespan, False
                )
                scores[p] = np.inf
                if done:
                    scores[p] = _score(orders[FCFS], waiting, walltime, planned[p], now, worth, makespan)
                least_score = min(least_score, scores[p])
            least = 0
            for p in range(3):
                if scores[p] <= least_score * (1.0 + tie):
                    least |= 1 << p
            chosen = _decide(least, policy, decider, favourite)
            cases[policy, least, chosen] += 1
            policy = chosen
        else:
            if kind == BOUNDS and waiting >= settings[THRESHOLD]:
                total = 0
                for k in range(waiting):
                    total += walltime[orders[FCFS, k]]
                if total <= settings[LOWER] * waiting:
                    chosen = SJF
                elif total <= settings[UPPER] * waiting:
                    chosen = FCFS
                else:
                    chosen = LJF
                cases[policy, 0, chosen] += 1
                policy = chosen
            if idle == 0:
                continue
            times[:base] = base_times[:base]
            free[:base] = base_free[:base]
            _plan(
                orders[policy], waiting, cores, walltime, times, free, base, planned[policy], worth, np.inf, False, True
            )

        # Start what is planned for now, in one sweep over the lists.
        for p in range(3):
            if kind != FIXED or p == policy:
                kept = 0
                for k in range(waiting):
                    job = orders[p, k]
                    if planned[policy, job] != now:
                        orders[p, kept] = job
                        kept += 1
                    elif p == policy:
                        start[job] = now
                        idle -= cores[job]
                        k_end = running
                        while k_end > 0 and end[k_end - 1] < now + length[job]:
                            end[k_end] = end[k_end - 1]
                            end_cores[k_end] = end_cores[k_end - 1]
                            end_job[k_end] = end_job[k_end - 1]
                            k_end -= 1
                        end[k_end] = now + length[job]
                        end_cores[k_end] = cores[job]
                        end_job[k_end] = job
                        k_end = running
                        while k_end > 0 and expected[k_end - 1] < now + walltime[job]:
                            expected[k_end] = expected[k_end - 1]
                            expected_cores[k_end] = expected_cores[k_end - 1]
                            expected_job[k_end] = expected_job[k_end - 1]
                            k_end -= 1
                        expected[k_end] = now + walltime[job]
                        expected_cores[k_end] = cores[job]
                        expected_job[k_end] = job
                        running += 1
                        starts[policy] += 1
                if p == policy:
                    left = kept
        waiting = left
    return start, cases, starts, seconds
