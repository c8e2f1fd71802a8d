"""Planning schedulers: at every event the whole waiting list is planned again, in the order of a policy.

References
----------
Streit, "A Self-Tuning Job Scheduler Family with Dynamic Policy Switching", JSSPP 2002, LNCS 2537 (bounds,
deciders); "Evaluation of an Unfair Decider Mechanism for the Self-Tuning dynP Job Scheduler", HCW 2004
(preferred policies).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from parsim.kernels.profile import Profile, copy_profile, fit, reserve
from parsim.kernels.running import add_running, pop_key, push_key, remove_running
from parsim.kernels.state import NEVER, Running, routine, step
from parsim.kernels.windows import UNKNOWN_END, apply_windows, next_instant

FCFS, SJF, LJF = 0, 1, 2  # rows of `ranks` and of all that is counted per policy
FIXED, BOUNDS, TUNING = 0, 1, 2  # how the policy of a pass is found
SIMPLE, ADVANCED, PREFERRED = 0, 1, 2  # deciders of self-tuning dynP
WIDTHS = 32  # powers of two up to a number of cores
BLOCK = 16  # jobs planned between two looks at whether any other can start now

SETTINGS = np.dtype(
    [
        ("kind", np.int64),
        ("policy", np.int64),  #: the first one
        ("lower", np.int64),  #: bounds of the mean walltime, seconds
        ("upper", np.int64),
        ("least", np.int64),  #: waiting jobs without which nothing is decided
        ("decider", np.int64),
        ("preferred", np.int64),
        ("tie", np.float64),  #: scores closer than this share of the least are equal to it
        ("full", np.bool_),  #: decide where a job ended, too
        ("makespan", np.bool_),  #: the makespan scores a plan, else the weighted sum of the delays
        ("standing", np.bool_),  #: what is scored in the place of FCFS is the list as it stands
    ],
    align=True,
)


class Planner(NamedTuple):
    """What every plan reads, and where it is made."""

    jobs: NDArray[np.void]  # (n,) JOB
    weight: NDArray[np.float64]  # (n,): what a second of delay of each job adds to the score of a plan
    settings: np.void
    width: NDArray[np.int64]  # (n,): 2**width is the greatest power of two within the job's cores
    orders: NDArray[np.int64]  # (3, n): the waiting jobs in the order of each policy
    planned: NDArray[np.int64]  # (3, n): start of each job in the plan of each policy
    base: Profile  # idle cores beside the running jobs
    idle: Profile  # and beside the jobs planned so far
    earliest: NDArray[np.int64]  # (WIDTHS,): a segment before which no job of 2**width cores or more can begin
    shortest: NDArray[np.int64]  # (n / BLOCK + 1, WIDTHS): least walltime of each width from a block of the order on
    scores: NDArray[np.float64]  # (3,)


@njit(cache=True, nogil=True)
def replan(jobs, first, begin, ranks, weight, machine, bits, settings, windows, taken, instants, start):
    """Simulate a scheduler that plans its whole waiting list again at every submission and completion.

    Parameters
    ----------
    jobs : ndarray(JOB), shape (n,)
        Ascending by submit, but for the first; no job wider than the machine.
    first, begin
        As `parsim.kernels.multiqueue.multiqueue` takes them.
    ranks : ndarray(int64), shape (3, n)
        Place of each job in the order of FCFS, SJF, LJF.
    weight : ndarray(float64), shape (n,)
        What a second of delay of each job adds to the score of a plan; 0 for the makespan.
    machine : int
        Cores.
    bits : int
        Low bits of a key that hold a job.
    settings : SETTINGS
    windows, taken, instants
        As `parsim.resuming.Begun` has them.
    start : ndarray(int64), shape (n,)
        Filled with each job's start.

    Returns
    -------
    cases : ndarray(int64), shape (3, 8, 3)
        Decisions by policy in use before, set of the policies of least score (bits; 0 where nothing is
        scored), policy chosen.
    starts, seconds : ndarray(int64), shape (3,)
        Jobs started under each policy, and how long it was in use.
    """
    n = jobs.size
    most = min(n, machine)
    cases, starts, seconds = np.zeros((3, 8, 3), np.int64), np.zeros(3, np.int64), np.zeros(3, np.int64)
    ends = np.empty(most + 1, np.int64)
    running = Running(np.empty(most + 1, np.int64), np.empty(most + 1, np.int64))
    segments = most + 2 * windows.size + 1
    planner = Planner(
        jobs,
        weight,
        settings,
        np.zeros(n, np.int64),
        np.empty((3, n), np.int64),
        np.empty((3, n), np.int64),
        Profile(np.empty(segments, np.int64), np.empty(segments, np.int64)),
        Profile(np.empty(n + segments + 2, np.int64), np.empty(n + segments + 2, np.int64)),
        np.empty(WIDTHS, np.int64),
        np.empty((n // BLOCK + 1, WIDTHS), np.int64),
        np.empty(3, np.float64),
    )
    find_widths(jobs, planner.width)
    event_loop(
        planner, first, begin, ranks, machine, bits, windows, taken, instants, ends, running, start, cases, starts,
        seconds,
    )  # fmt: skip
    return cases, starts, seconds


@step
def event_loop(
    planner, resumed, begin, ranks, machine, bits, windows, taken, instants, ends, running, start, cases, starts,
    seconds,
):  # fmt: skip
    """Simulate; fills `start` and what is counted. `ends` is a heap of real ends."""
    jobs, settings, n = planner.jobs, planner.settings, planner.jobs.size
    low = (np.int64(1) << bits) - 1
    size = 0  # running jobs
    fixed = settings.kind == FIXED
    policy = settings.policy
    idle = np.int64(machine)
    while size < resumed:
        push_key(ends, size, ((start[size] + jobs[size].runtime) << bits) | size)
        key = ((start[size] + jobs[size].walltime) << bits) | size
        add_running(running, 0, size, key, np.int64(jobs[size].cores))
        idle -= jobs[size].cores
        size += 1
    waiting = 0
    arriving = resumed
    passed = 0
    now = np.int64(begin)
    while arriving < n or size > 0 or waiting > 0:
        before = now
        now = max(begin, np.int64(jobs[arriving].submit)) if arriving < n else NEVER
        if size > 0:
            now = min(now, ends[0] >> bits)
        now = min(now, next_instant(instants, passed))
        while next_instant(instants, passed) <= now:
            passed += 1
        seconds[policy] += now - before
        while size > 0 and (ends[0] >> bits) == now:
            j = ends[0] & low
            pop_key(ends, size)
            remove_running(running, 0, size, ((start[j] + jobs[j].walltime) << bits) | j)
            idle += jobs[j].cores
            size -= 1
        submitted = arriving < n and jobs[arriving].submit <= now
        while arriving < n and jobs[arriving].submit <= now:
            for p in range(3):
                if not fixed or p == policy:
                    insert(planner.orders[p], waiting, arriving, ranks[p])
            waiting += 1
            arriving += 1
        if waiting == 0:
            continue

        base = left_by_running(planner.base, running, size, idle, now, bits)
        if windows.size:
            base, _ = apply_windows(planner.base, base, windows, taken, begin - 1, now)
        decides = waiting >= settings.least and (submitted or settings.full)
        if settings.kind == TUNING and decides:
            least, chosen, row = tune(planner, waiting, base, policy, now)
            cases[policy, least, chosen] += 1
            policy = chosen
        else:
            if settings.kind == BOUNDS and decides:
                chosen = choose_by_bounds(planner, waiting)
                cases[policy, 0, chosen] += 1
                policy = chosen
            if planner.base.free[0] <= 0:
                continue
            plan_starts(planner, waiting, base, policy)
            row = policy

        left = waiting
        for p in range(3):
            if fixed and p != policy:
                continue
            left = 0
            for k in range(waiting):
                j = planner.orders[p, k]
                if planner.planned[row, j] != now:
                    planner.orders[p, left] = j
                    left += 1
                elif p == policy:
                    start[j] = now
                    starts[policy] += 1
                    idle -= jobs[j].cores
                    push_key(ends, size, ((now + jobs[j].runtime) << bits) | j)
                    add_running(running, 0, size, ((now + jobs[j].walltime) << bits) | j, np.int64(jobs[j].cores))
                    size += 1
        waiting = left


@step
def find_widths(jobs, width):
    """Fill `width`: 2**width is the greatest power of two within each job's cores."""
    for j in range(jobs.size):
        while jobs[j].cores >> width[j] > 1:
            width[j] += 1


@step
def insert(order, count, j, rank):
    """Insert job j into ``order[:count]``, ascending by `rank`."""
    k = count
    while k > 0 and rank[order[k - 1]] > rank[j]:
        order[k] = order[k - 1]
        k -= 1
    order[k] = j


@step
def left_by_running(base, running, size, idle, now, bits):
    """Set from which instants on how many cores are idle, by the expected ends; return how many instants."""
    base.times[0] = now
    base.free[0] = idle
    segments = 1
    for k in range(size):
        instant = running.keys[k] >> bits
        if instant != base.times[segments - 1]:
            base.times[segments] = instant
            base.free[segments] = base.free[segments - 1]
            segments += 1
        base.free[segments - 1] += running.cores[k]
    return segments


@step
def tune(planner, waiting, base, policy, now):
    """Plan by each policy and let the decider choose by the scores (JSSPP 2002).

    Returns
    -------
    least, chosen, row : int
        Policies of least score, as bits; the policy; the row of `planned` that has the plan to follow.
    """
    settings, scores = planner.settings, planner.scores
    open_ended = planner.base.times[base - 1] >= UNKNOWN_END
    least_score = np.inf
    for turn in range(3):
        # The policy in use goes first: plans that come out worse than its own end early.
        p = policy if turn == 0 else (turn - 1 if turn <= policy else turn)
        if settings.standing and p == FCFS and policy != FCFS:
            scores[FCFS] = scores[policy]
            continue
        most = np.inf if settings.standing or open_ended else least_score * (1.0 + 1e-9)
        scores[p] = np.inf
        if plan(planner, planner.orders[p], waiting, base, p == SJF, False, most, planner.planned[p]):
            scores[p] = score(planner, waiting, planner.planned[p], now)
        least_score = min(least_score, scores[p])
    if open_ended:
        score_planned(planner, waiting, policy if settings.standing else np.int64(FCFS), now)
        least_score = min(scores[FCFS], scores[SJF], scores[LJF])
    least = 0
    for p in range(3):
        if scores[p] <= least_score * (1.0 + settings.tie):
            least |= 1 << p
    chosen = decide(least, policy, settings.decider, settings.preferred)
    return least, chosen, (LJF if settings.standing and chosen != policy else chosen)


@step
def decide(least, policy, decider, preferred):
    """Choose a policy; bit p of `least` is set if policy p has the least score, `policy` is in use."""
    if decider == PREFERRED and least >> preferred & 1:
        return preferred
    if decider != SIMPLE and least >> policy & 1:
        return policy
    if least & 1:
        return np.int64(FCFS)
    return np.int64(SJF if least & 2 else LJF)


@step
def score(planner, waiting, planned, now):
    """Score a plan, summed in the order of FCFS whatever the policy: equal plans score equal."""
    total = 0.0
    for k in range(waiting):
        j = planner.orders[FCFS, k]
        total = add_score(planner, j, planned[j] - now, total)
    return total


@step
def add_score(planner, j, delay, total):
    """Add what job j adds to the score of a plan that delays it by so many seconds."""
    if planner.settings.makespan:
        return max(total, float(delay + planner.jobs[j].walltime))
    return total + planner.weight[j] * delay


@routine
def score_planned(planner, waiting, first, now):
    """Score the plans by the jobs that have a start in each; what is scored for FCFS is the plan in row `first`."""
    planned, scores = planner.planned, planner.scores
    scores[:] = 0.0
    for k in range(waiting):
        j = planner.orders[FCFS, k]
        if max(planned[first, j], planned[SJF, j], planned[LJF, j]) < UNKNOWN_END:
            scores[FCFS] = add_score(planner, j, planned[first, j] - now, scores[FCFS])
            scores[SJF] = add_score(planner, j, planned[SJF, j] - now, scores[SJF])
            scores[LJF] = add_score(planner, j, planned[LJF, j] - now, scores[LJF])


@step
def choose_by_bounds(planner, waiting):
    """Choose by the mean walltime of the waiting jobs: short ones SJF, long ones LJF, else FCFS."""
    total = 0
    for k in range(waiting):
        total += planner.jobs[planner.orders[FCFS, k]].walltime
    if total <= planner.settings.lower * waiting:
        return np.int64(SJF)
    return np.int64(FCFS if total <= planner.settings.upper * waiting else LJF)


@step
def plan_starts(planner, waiting, base, policy):
    """Plan by one policy the jobs that start now; of the others it may leave out any."""
    order = planner.orders[policy]
    find_shortest(planner, order, waiting)
    plan(planner, order, waiting, base, policy == SJF, True, np.inf, planner.planned[policy])


@step
def find_shortest(planner, order, count):
    """Fill row `k` of `shortest` with the least walltime of each width from block `k` of the order on."""
    shortest = planner.shortest
    block = (count - 1) // BLOCK
    for b in range(WIDTHS):
        shortest[block, b] = NEVER
    for k in range(count - 1, -1, -1):
        if k // BLOCK < block:
            block -= 1
            for b in range(WIDTHS):
                shortest[block, b] = shortest[block + 1, b]
        j = order[k]
        b = planner.width[j]
        shortest[block, b] = min(shortest[block, b], np.int64(planner.jobs[j].walltime))


@routine
def plan(planner, order, count, base, ascending, now_only, most, planned):
    """Plan the jobs of `order` one after the other into `planned`; False once the score has passed `most`.

    ``earliest[b]`` stays true while segments are cut, since their numbers only grow, and while cores are taken. Where
    the walltimes of the order are `ascending`, a job cannot begin before a planned one that is no wider.

    With `now_only` the plan ends as soon as it sees that no other job can start now. And once all cores are taken at
    some instant, a job that begins before it ends before it, and one that begins after it does not matter. Jobs that
    are not planned get -1.
    """
    jobs, idle, earliest = planner.jobs, planner.idle, planner.earliest
    size = copy_profile(idle, planner.base, base)
    total = 0.0
    now = idle.times[0]
    limit = NEVER
    for b in range(WIDTHS):
        earliest[b] = 0
    for k in range(count):
        if now_only and k % BLOCK == 0:
            limit = find_limit(idle, size, planner.shortest[k // BLOCK])
            if limit == now:
                for rest in range(k, count):
                    planned[order[rest]] = -1
                return True
        job = order[k]
        need, walltime = np.int64(jobs[job].cores), np.int64(jobs[job].walltime)
        if walltime > limit - now:
            planned[job] = -1
            continue
        b = planner.width[job]
        first = earliest[b]
        while idle.free[first] < 1 << b:
            first += 1
        earliest[b] = first
        i, j = fit(idle, size, first, need, walltime, limit)
        if i < 0:
            planned[job] = -1
            continue
        if ascending:
            if need > 1 << b:
                b += 1
            while b < WIDTHS and earliest[b] < i:
                earliest[b] = i
                b += 1
        planned[job] = idle.times[i]
        total += planner.weight[job] * (idle.times[i] - now)
        if total > most:
            return False
        size = reserve(idle, size, i, j, need, walltime)
    return True


@step
def find_limit(idle, size, shortest):
    """Find the instant before which every job must end that can still start now; now if none can.

    It is the first at which no core idles. `shortest` has the least walltime for each width of those to plan.
    """
    times, free = idle
    any_fits = False
    b = WIDTHS - 1
    for i in range(size):
        while free[i] < 1 << b:
            any_fits = any_fits or shortest[b] <= times[i] - times[0]
            b -= 1
            if b < 0:
                return times[i] if any_fits else times[0]
    while b >= 0 and not any_fits:
        any_fits = shortest[b] < NEVER
        b -= 1
    return NEVER if any_fits else times[0]
