"""Planning schedulers: at every event the whole waiting list is planned anew, in the order of a policy.

References
----------
Streit, "A Self-Tuning Job Scheduler Family with Dynamic Policy Switching", JSSPP 2002, LNCS 2537 (bounds,
deciders); "Evaluation of an Unfair Decider Mechanism for the Self-Tuning dynP Job Scheduler", HCW 2004
(preferred policies).
"""

# mypy: allow-untyped-decorators

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from parsim.kernels.layout import CORES, NEVER, RUNTIME, SUBMIT, WALLTIME
from parsim.kernels.profile import Ints, fit, reserve

Floats = NDArray[np.float64]

FCFS, SJF, LJF = 0, 1, 2  # rows of `ranks` and of all that is counted per policy
FIXED, BOUNDS, TUNING = 0, 1, 2  # how the policy of a pass is found
SIMPLE, ADVANCED, PREFERRED = 0, 1, 2  # deciders of self-tuning dynP

# Entries of `settings`.
SETTINGS = 10
KIND, POLICY, LOWER, UPPER, LEAST, DECIDER, FAVOURITE, FULL, MAKESPAN, STANDING = range(SETTINGS)

# Columns of a set of running jobs, latest first.
WHEN, WHO = 0, 1
WIDTHS = 32  # powers of two up to a number of cores
BLOCK = 16  # jobs planned between two looks at whether anybody else can start now


@njit(cache=True, nogil=True, inline="always")
def _insert(order: Ints, count: int, job: int, rank: Ints) -> None:
    """Insert `job` into ``order[:count]``, ascending by `rank`."""
    k = count
    while k > 0 and rank[order[k - 1]] > rank[job]:
        order[k] = order[k - 1]
        k -= 1
    order[k] = job


@njit(cache=True, nogil=True, inline="always")
def _run(running: Ints, count: int, when: int, job: int) -> None:
    """Insert `job` into ``running[:count]``, latest first."""
    k = count
    while k > 0 and running[k - 1, WHEN] < when:
        running[k, WHEN] = running[k - 1, WHEN]
        running[k, WHO] = running[k - 1, WHO]
        k -= 1
    running[k, WHEN] = when
    running[k, WHO] = job


@njit(cache=True, nogil=True, inline="always")
def _drop(running: Ints, count: int, job: int) -> None:
    """Remove `job` from ``running[:count]``."""
    k = count - 1
    while running[k, WHO] != job:
        k -= 1
    for m in range(k, count - 1):
        running[m, WHEN] = running[m + 1, WHEN]
        running[m, WHO] = running[m + 1, WHO]


@njit(cache=True, nogil=True, inline="always")
def _shortest(order: Ints, count: int, jobs: Ints, width: Ints, shortest: Ints) -> None:
    """Fill row `k` of `shortest` with the least walltime of each width from block `k` of the order on."""
    block = (count - 1) // BLOCK
    shortest[block, :] = NEVER
    for k in range(count - 1, -1, -1):
        if k // BLOCK < block:
            block -= 1
            shortest[block, :] = shortest[block + 1, :]
        job = order[k]
        shortest[block, width[job]] = min(shortest[block, width[job]], jobs[job, WALLTIME])


@njit(cache=True, nogil=True)
def _window(times: Ints, free: Ints, size: int, shortest: Ints) -> int:
    """Find the instant before which all must end that can still start now; now if nobody can.

    It is the first at which no core idles. `shortest` has the least walltime for each width of those to plan.
    """
    anyone = False
    b = WIDTHS - 1
    for i in range(size):
        while free[i] < 1 << b:
            anyone = anyone or shortest[b] <= times[i] - times[0]
            b -= 1
            if b < 0:
                return int(times[i] if anyone else times[0])
    while b >= 0 and not anyone:
        anyone = shortest[b] < NEVER
        b -= 1
    return NEVER if anyone else int(times[0])


@njit(cache=True, nogil=True)
def _plan(
    order: Ints,
    count: int,
    ascending: bool,
    jobs: Ints,
    width: Ints,
    times: Ints,
    free: Ints,
    size: int,
    heads: Ints,
    shortest: Ints,
    now_only: bool,
    worth: Floats,
    most: float,
    planned: Ints,
) -> bool:
    """Plan the jobs of `order` one after the other into `planned`; False once the score has passed `most`.

    ``heads[b]`` is a segment before which no job of 2**b cores or more can begin. That stays true while
    segments are cut, since their numbers only grow, and while cores are taken. Where the walltimes of the
    order are `ascending`, a job cannot begin before one that is no wider and was planned before it.

    With `now_only` the plan ends as soon as it sees that nobody else can start now. And once all cores are taken
    at some instant, who begins before it ends before it, and who begins after it is of no concern. Jobs that
    are not planned get -1.
    """
    score = 0.0
    now = times[0]
    limit = NEVER
    heads[:] = 0
    for k in range(count):
        if now_only and k % BLOCK == 0:
            limit = _window(times, free, size, shortest[k // BLOCK])
            if limit == now:
                for rest in range(k, count):
                    planned[order[rest]] = -1
                return True
        job = order[k]
        need = jobs[job, CORES]
        if jobs[job, WALLTIME] > limit - now:
            planned[job] = -1
            continue
        b = width[job]
        first = heads[b]
        while free[first] < 1 << b:
            first += 1
        heads[b] = first
        i, j = fit(times, free, size, first, need, jobs[job, WALLTIME], limit)
        if i < 0:
            planned[job] = -1
            continue
        if ascending:
            if need > 1 << b:
                b += 1
            while b < WIDTHS and heads[b] < i:
                heads[b] = i
                b += 1
        planned[job] = times[i]
        score += worth[job] * (times[i] - now)
        if score > most:
            return False
        size = reserve(times, free, size, i, j, need, jobs[job, WALLTIME])
    return True


@njit(cache=True, nogil=True)
def _score(order: Ints, count: int, jobs: Ints, planned: Ints, now: int, worth: Floats, makespan: bool) -> float:
    """Score a plan, summed in the given order whatever the policy: equal plans score equal."""
    score = 0.0
    for k in range(count):
        job = order[k]
        if makespan:
            score = max(score, float(planned[job] - now + jobs[job, WALLTIME]))
        else:
            score += worth[job] * (planned[job] - now)
    return score


@njit(cache=True, nogil=True, inline="always")
def _decide(least: int, policy: int, decider: int, favourite: int) -> int:
    """Choose a policy; bit p of `least` is set if policy p has the least score, `policy` is in use."""
    if decider == PREFERRED and least >> favourite & 1:
        return favourite
    if decider != SIMPLE and least >> policy & 1:
        return policy
    if least & 1:
        return FCFS
    return SJF if least & 2 else LJF


@njit(cache=True, nogil=True, inline="always")
def _least(scores: Floats, most: float) -> int:
    """Return the policies whose score is at most this, as bits."""
    least = 0
    for p in range(3):
        if scores[p] <= most:
            least |= 1 << p
    return least


@njit(cache=True, nogil=True, inline="always")
def _by_bounds(order: Ints, count: int, jobs: Ints, lower: int, upper: int) -> int:
    """Choose by the mean walltime of the waiting jobs: short ones SJF, long ones LJF, else FCFS."""
    total = 0
    for k in range(count):
        total += jobs[order[k], WALLTIME]
    if total <= lower * count:
        return SJF
    return FCFS if total <= upper * count else LJF


@njit(cache=True, nogil=True, inline="always")
def _left_by_running(expected: Ints, running: int, jobs: Ints, now: int, idle: int, times: Ints, free: Ints) -> int:
    """Write down from which instants on how many cores are idle, by the expected ends; return how many instants."""
    times[0] = now
    free[0] = idle
    size = 1
    for k in range(running - 1, -1, -1):
        if expected[k, WHEN] != times[size - 1]:
            times[size] = expected[k, WHEN]
            free[size] = free[size - 1]
            size += 1
        free[size - 1] += jobs[expected[k, WHO], CORES]
    return size


@njit(cache=True, nogil=True)
def replan(
    jobs: Ints, ranks: Ints, worth: Floats, machine: int, tie: float, settings: Ints
) -> tuple[Ints, Ints, Ints, Ints]:
    """Simulate a scheduler that plans its whole waiting list anew at every submission and completion.

    Parameters
    ----------
    jobs : ndarray(int64), shape (n, 4)
        Submit, cores, run time (at most the walltime), walltime. Ascending by submit.
    ranks : ndarray(int64), shape (3, n)
        Place of each job in the order of FCFS, SJF, LJF.
    worth : ndarray(float64), shape (n,)
        What a second of delay of each job adds to the score of a plan; 0 for the makespan.
    machine : int
        Cores; no job is wider.
    tie : float
        Scores closer than this share of the least are equal to it.
    settings : ndarray(int64), shape (SETTINGS,)
        See the constants above.

    Returns
    -------
    start : ndarray(int64), shape (n,)
    cases : ndarray(int64), shape (3, 8, 3)
        Decisions by policy in use before, set of the policies of least score (bits; 0 where nothing is
        scored), policy chosen.
    starts, seconds : ndarray(int64), shape (3,)
        Jobs started under each policy, and how long it was in use.
    """
    n = jobs.shape[0]
    kind, decider, favourite = settings[KIND], settings[DECIDER], settings[FAVOURITE]
    makespan, standing = settings[MAKESPAN] == 1, settings[STANDING] == 1
    start = np.full(n, -1, np.int64)
    cases = np.zeros((3, 8, 3), np.int64)
    starts = np.zeros(3, np.int64)
    seconds = np.zeros(3, np.int64)

    orders = np.empty((3, n), np.int64)  # the waiting jobs in the order of each policy
    waiting = 0
    at_once = min(n, machine)
    ends = np.empty((at_once, 2), np.int64)
    expected = np.empty((at_once, 2), np.int64)
    running = 0
    base_times = np.empty(at_once + 1, np.int64)
    base_free = np.empty(at_once + 1, np.int64)
    times = np.empty(n + 2, np.int64)
    free = np.empty(n + 2, np.int64)
    heads = np.empty(WIDTHS, np.int64)
    shortest = np.empty((n // BLOCK + 1, WIDTHS), np.int64)
    planned = np.empty((3, n), np.int64)
    scores = np.empty(3, np.float64)
    width = np.zeros(n, np.int64)  # 2**width: greatest power of two within the job's cores
    for job in range(n):
        while jobs[job, CORES] >> width[job] > 1:
            width[job] += 1

    idle = machine
    policy = settings[POLICY]
    arriving = 0
    now = jobs[0, SUBMIT] if n else 0
    while arriving < n or running > 0:
        before = now
        if running == 0 or (arriving < n and jobs[arriving, SUBMIT] < ends[running - 1, WHEN]):
            now = jobs[arriving, SUBMIT]
        else:
            now = ends[running - 1, WHEN]
        seconds[policy] += now - before
        while running > 0 and ends[running - 1, WHEN] == now:
            job = ends[running - 1, WHO]
            idle += jobs[job, CORES]
            _drop(expected, running, job)
            running -= 1
        submitted = arriving < n and jobs[arriving, SUBMIT] == now
        while arriving < n and jobs[arriving, SUBMIT] == now:
            for p in range(3):
                if kind != FIXED or p == policy:
                    _insert(orders[p], waiting, arriving, ranks[p])
            waiting += 1
            arriving += 1
        if waiting == 0:
            continue

        base = _left_by_running(expected, running, jobs, now, idle, base_times, base_free)
        decides = waiting >= settings[LEAST] and (submitted or settings[FULL] == 1)
        if kind == TUNING and decides:
            least_score = np.inf
            for turn in range(3):
                # The policy in use goes first: plans that come out worse than its own end early.
                p = policy if turn == 0 else (turn - 1 if turn <= policy else turn)
                if standing and p == FCFS and policy != FCFS:
                    scores[FCFS] = scores[policy]
                    continue
                times[:base] = base_times[:base]
                free[:base] = base_free[:base]
                most = np.inf if standing else least_score * (1.0 + 1e-9)
                whole = _plan(
                    orders[p],
                    waiting,
                    p == SJF,
                    jobs,
                    width,
                    times,
                    free,
                    base,
                    heads,
                    shortest,
                    False,
                    worth,
                    most,
                    planned[p],
                )
                scores[p] = np.inf
                if whole:
                    scores[p] = _score(orders[FCFS], waiting, jobs, planned[p], now, worth, makespan)
                least_score = min(least_score, scores[p])
            least = _least(scores, least_score * (1.0 + tie))
            chosen = _decide(least, policy, decider, favourite)
            cases[policy, least, chosen] += 1
            plan = planned[LJF if standing and chosen != policy else chosen]
            policy = chosen
        else:
            if kind == BOUNDS and decides:
                chosen = _by_bounds(orders[FCFS], waiting, jobs, settings[LOWER], settings[UPPER])
                cases[policy, 0, chosen] += 1
                policy = chosen
            order = orders[policy]
            if idle == 0:
                continue
            _shortest(order, waiting, jobs, width, shortest)
            times[:base] = base_times[:base]
            free[:base] = base_free[:base]
            plan = planned[policy]
            _plan(
                order,
                waiting,
                policy == SJF,
                jobs,
                width,
                times,
                free,
                base,
                heads,
                shortest,
                True,
                worth,
                np.inf,
                plan,
            )

        left = waiting
        for p in range(3):
            if kind != FIXED or p == policy:
                left = 0
                for k in range(waiting):
                    job = orders[p, k]
                    if plan[job] != now:
                        orders[p, left] = job
                        left += 1
                    elif p == policy:
                        start[job] = now
                        starts[policy] += 1
                        idle -= jobs[job, CORES]
                        _run(ends, running, now + jobs[job, RUNTIME], job)
                        _run(expected, running, now + jobs[job, WALLTIME], job)
                        running += 1
        waiting = left
    return start, cases, starts, seconds
