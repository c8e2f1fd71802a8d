"""Planning schedulers: at every event the whole waiting list is planned again, in the order of a policy.

References
----------
Streit, "On Job Scheduling for HPC-Clusters and the dynP Scheduler", HiPC 2001, section 5 (bounds);
"Enhancements to the Decision Process of the Self-Tuning dynP Scheduler", JSSPP 2004, section 3
(deciders, metrics).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.compile.compiled import on_disk
from parsim.engine.lists.alike import NO_JOB, Lines, count_lines, join, leave
from parsim.engine.resources.profile import Profile, copy_profile, fit, reserve
from parsim.engine.resources.running import add_running, last_instant, pop_key, push_key, remove_running
from parsim.engine.resources.windows import UNKNOWN_END, apply_windows, next_instant
from parsim.engine.simulation import NEVER, Running, routine, step

FCFS, SJF, LJF = 0, 1, 2  # rows of `ranks` and of all that is counted per policy
FIXED, BOUNDS, TUNING = 0, 1, 2  # how the policy of a pass is found
SIMPLE, ADVANCED, PREFERRED = 0, 1, 2  # deciders of self-tuning dynP
WIDTHS = 32  # powers of two up to a number of cores
BLOCK = 4  # jobs planned between two looks at which others can start now

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
    orders: NDArray[np.int64]  # (3, lines): the waiting jobs, of jobs alike the first, in the order of each policy
    planned: NDArray[np.int64]  # (3, n): start of each job in the plan of each policy, where plans are scored
    base: Profile  # idle cores beside the running jobs
    idle: Profile  # and beside the jobs planned so far
    earliest: NDArray[np.int64]  # (WIDTHS,): a segment before which no job of 2**width cores or more can begin
    drop: NDArray[np.int64]  # (WIDTHS,): instant from which fewer than 2**width cores idle
    lines: Lines  # `orders` has of jobs alike the first; the others follow it
    behind: NDArray[np.int64]  # (lines,): heap of keys: place in the order, job; the next to plan of each line
    segment: NDArray[np.int64]  # (lines,): a segment before which no other job of the line can begin
    closed: NDArray[np.int64]  # (lines,): latest instant at which no other job of the line could start
    open: NDArray[np.int64]  # (lines,): the first jobs of the lines of which another may start now
    begun: NDArray[np.int64]  # jobs that start now
    scores: NDArray[np.float64]  # (3,)


@on_disk
def replan(jobs, first, begin, of, ranks, weight, machine, bits, settings, windows, taken, instants, start):
    """Simulate a scheduler that plans its whole waiting list again at every submission and completion.

    Parameters
    ----------
    jobs : ndarray(JOB), shape (n,)
        Ascending by submit, but for the first; no job wider than the machine.
    first, begin
        As `parsim.planning.multiqueue.multiqueue` takes them.
    of : ndarray(int32), shape (n,)
        Which jobs are alike, `parsim.engine.lists.alike.Lines`; each its own for self-tuning, which looks at all.
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
        As `parsim.prepare.state.Begun` has them.
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
    count = count_lines(of)
    segments = most + 2 * windows.size + 1
    planner = Planner(
        jobs,
        weight,
        settings,
        np.zeros(n, np.int64),
        np.empty((3, count), np.int64),
        np.empty((3, n if settings.kind == TUNING else 0), np.int64),
        Profile(np.empty(segments, np.int64), np.empty(segments, np.int64)),
        Profile(np.empty(n + segments + 2, np.int64), np.empty(n + segments + 2, np.int64)),
        np.empty(WIDTHS, np.int64),
        np.empty(WIDTHS, np.int64),
        Lines(of, np.full(count, NO_JOB, np.int32), np.empty(n, np.int32)),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.full(count, -1, np.int64),
        np.empty(count, np.int64),
        np.empty(most + 1, np.int64),
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
    waiting = 0  # entries of an order
    waits = 0  # jobs
    total = np.int64(0)  # their walltimes
    arriving = resumed
    passed = 0
    now = np.int64(begin)
    horizon = last_instant(bits)
    while arriving < n or size > 0 or waiting > 0:
        before = now
        now = max(begin, np.int64(jobs[arriving].submit)) if arriving < n else NEVER
        if size > 0:
            now = min(now, ends[0] >> bits)
        now = min(now, next_instant(instants, passed))
        if now > horizon:
            break
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
            if not join(planner.lines, arriving):
                for p in range(3):
                    if not fixed or p == policy:
                        insert(planner.orders[p], waiting, arriving, ranks[p])
                waiting += 1
            waits += 1
            total += jobs[arriving].walltime
            arriving += 1
        if waiting == 0:
            continue

        decides = waits >= settings.least and (submitted or settings.full)
        tunes = settings.kind == TUNING and decides
        if settings.kind == BOUNDS and decides:
            chosen = choose_by_bounds(settings, total, waits)
            cases[policy, 0, chosen] += 1
            policy = chosen
        if not tunes and narrowest(jobs, planner.orders[policy, :waiting]) > idle:
            continue
        base = left_by_running(planner.base, running, size, idle, now, bits)
        if windows.size:
            base, _ = apply_windows(planner.base, base, windows, taken, begin - 1, now)
        if tunes:
            least, chosen, row = tune(planner, waiting, base, policy, now)
            cases[policy, least, chosen] += 1
            policy = chosen
            begun = collect_begun(planner, waiting, policy, row, now)
        else:
            # Beside running jobs alone cores only become idle, so that the first segment tells. Where windows leave
            # none idle, none starts.
            falling = base if windows.size else 1
            begun = plan_starts(planner, waiting, base, falling, policy, ranks[policy], bits)
        if begun == 0:
            continue

        for j in planner.begun[:begun]:
            start[j] = now
            starts[policy] += 1
            idle -= jobs[j].cores
            total -= jobs[j].walltime
            push_key(ends, size, ((now + jobs[j].runtime) << bits) | j)
            add_running(running, 0, size, ((now + jobs[j].walltime) << bits) | j, np.int64(jobs[j].cores))
            size += 1
        waits -= begun
        left = waiting
        for p in range(3):
            if not fixed or p == policy:
                left = drop_started(planner, planner.orders[p], waiting, ranks[p], start)
        waiting = left
        for j in planner.begun[:begun]:
            leave(planner.lines, j)


@step
def drop_started(planner, order, count, rank, start):
    """Let the next job of each line whose first has started wait in its turn; return the number of entries."""
    lines, followers = planner.lines, planner.open
    kept = 0
    following = 0
    for k in range(count):
        j = np.int64(order[k])
        if start[j] < 0:
            order[kept] = j
            kept += 1
            continue
        while start[j] >= 0 and lines.last[lines.of[j]] != j:
            j = np.int64(lines.following[j])
        if start[j] < 0:
            followers[following] = j
            following += 1
    for j in followers[:following]:
        insert(order, kept, j, rank)
        kept += 1
    return kept


@step
def narrowest(jobs, order):
    """Return the fewest cores of one of these jobs."""
    cores = jobs[order[0]].cores
    for j in order:
        cores = min(cores, jobs[j].cores)
    return cores


@step
def collect_begun(planner, count, policy, row, now):
    """Set `begun` to the jobs that are planned for now; return how many they are."""
    begun = 0
    for j in planner.orders[policy, :count]:
        if planner.planned[row, j] == now:
            planner.begun[begun] = j
            begun += 1
    return begun


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
    """Plan by each policy and let the decider choose by the scores (JSSPP 2004, section 3.2).

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
        if plan(planner, planner.orders[p], waiting, base, p == SJF, most, planner.planned[p]):
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
def choose_by_bounds(settings, total, waits):
    """Choose by the mean walltime of the waiting jobs: short ones SJF, long ones LJF, else FCFS."""
    if total <= settings.lower * waits:
        return np.int64(SJF)
    return np.int64(FCFS if total <= settings.upper * waits else LJF)


@routine
def plan(planner, order, count, base, ascending, most, planned):
    """Plan the jobs of `order` one after the other into `planned`; False once the score has passed `most`."""
    idle, earliest = planner.idle, planner.earliest
    size = copy_profile(idle, planner.base, base)
    total = 0.0
    now = idle.times[0]
    for b in range(WIDTHS):
        earliest[b] = 0
    for k in range(count):
        job = order[k]
        i, size = plan_job(planner, size, job, 0, ascending, NEVER)
        planned[job] = idle.times[i]
        total += planner.weight[job] * (idle.times[i] - now)
        if total > most:
            return False
    return True


@step
def plan_job(planner, size, job, first, ascending, limit):
    """Plan a job at its first place from segment `first` on.

    ``earliest[b]`` stays true while segments are cut, since their numbers only grow, and while cores are taken. Where
    the walltimes of the order are `ascending`, a job cannot begin before a planned one that is no wider.

    Returns
    -------
    i, size : int
        The segment that it begins with, -1 where it cannot begin before `limit`; the number of segments.
    """
    idle, earliest = planner.idle, planner.earliest
    need, walltime = np.int64(planner.jobs[job].cores), np.int64(planner.jobs[job].walltime)
    b = planner.width[job]
    begin = earliest[b]
    while idle.free[begin] < 1 << b:
        begin += 1
    earliest[b] = begin
    i, j = fit(idle, size, max(begin, first), need, walltime, limit)
    if i < 0:
        return i, size
    if ascending:
        if need > 1 << b:
            b += 1
        while b < WIDTHS and earliest[b] < i:
            earliest[b] = i
            b += 1
    return i, reserve(idle, size, i, j, need, walltime)


@routine
def plan_starts(planner, count, base, falling, policy, rank, bits):
    """Plan by one policy, as far as needed, and set `begun` to the jobs that start now; return how many they are.

    It ends as soon as it sees that no other job can start now. Once all cores are taken at some instant, a job that
    begins before it ends before it, and one that begins after it does not matter. Where a job does not, none does that
    is alike and has its turn later. In the `base` segments beside the running jobs cores become fewer before the one
    numbered `falling` only.
    """
    jobs, idle, lines, closed, behind = planner.jobs, planner.idle, planner.lines, planner.closed, planner.behind
    order = planner.orders[policy]
    low = (np.int64(1) << bits) - 1
    now = planner.base.times[0]
    for k in range(count):
        planner.open[k] = order[k]
    limit = find_drops(planner.base, falling, planner.drop)
    any_open = keep_open(planner, count, now)
    if any_open == 0:
        return 0
    size = copy_profile(idle, planner.base, base)
    for b in range(WIDTHS):
        planner.earliest[b] = 0
    begun = following = planned = 0
    check = BLOCK
    k = 0
    while True:
        if planned == check:
            check += BLOCK
            limit = find_drops(idle, size, planner.drop)
            any_open = keep_open(planner, any_open, now)
            if any_open == 0:
                return begun
        first = 0
        if following > 0 and (k == count or (behind[0] >> bits) < rank[order[k]]):
            job = behind[0] & low
            pop_key(behind, following)
            following -= 1
            first = planner.segment[lines.of[job]]
        elif k < count:
            job = order[k]
            k += 1
        else:
            return begun
        line = lines.of[job]
        i = np.int64(-1)
        if jobs[job].walltime <= limit - now:
            i, size = plan_job(planner, size, job, first, policy == SJF, limit)
            planned += 1
        is_last = lines.last[line] == job
        if i == 0:
            planner.begun[begun] = job
            begun += 1
        if i != 0 or is_last:
            closed[line] = now
        if i >= 0 and not is_last:
            planner.segment[line] = i
            job = np.int64(lines.following[job])
            push_key(behind, following, (rank[job] << bits) | job)
            following += 1


@step
def keep_open(planner, count, now):
    """Keep in `open` the lines of which another job may start now; return how many they are."""
    kept = 0
    for j in planner.open[:count]:
        if (
            planner.closed[planner.lines.of[j]] < now
            and planner.jobs[j].walltime <= planner.drop[planner.width[j]] - now
        ):
            planner.open[kept] = j
            kept += 1
    return kept


@step
def find_drops(idle, size, drop):
    """Find from which instant on fewer than each power of two cores idle; return that at which none does."""
    b = WIDTHS - 1
    for i in range(size):
        while idle.free[i] < 1 << b:
            drop[b] = idle.times[i]
            b -= 1
            if b < 0:
                return idle.times[i]
    while b >= 0:
        drop[b] = NEVER
        b -= 1
    return NEVER
