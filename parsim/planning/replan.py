"""Planning schedulers that plan the whole waiting list again at every event, in the order of a policy."""

from __future__ import annotations

import numpy as np

from parsim.engine.compile.compiled import on_disk
from parsim.engine.lists.alike import NO_JOB, Lines, count_lines, join, leave
from parsim.engine.resources.profile import Profile
from parsim.engine.resources.running import add_running, last_instant, pop_key, push_key, remove_running
from parsim.engine.resources.windows import apply_windows, next_instant
from parsim.engine.simulation import NEVER, Running, step
from parsim.planning.planner import BOUNDS, FIXED, TUNING, WIDTHS, Planner
from parsim.planning.self_tuning import choose_by_bounds, tune
from parsim.planning.whole_plan import find_open, plan_starts


@on_disk
def replan(jobs, first, begin, of, ranks, weight, machine, bits, settings, windows, taken, instants, start):
    """Simulate a scheduler that plans its whole waiting list again at every submission and completion.

    Parameters
    ----------
    jobs : ndarray(JOB), shape (n,)
        Ascending by submit after the first `first`; no job wider than the machine.
    first, begin
        As `parsim.planning.multiqueue.multiqueue` takes them.
    of : ndarray(int32), shape (n,)
        Line of each job, as `parsim.engine.lists.alike.Lines` has it; one each for self-tuning, which plans all jobs.
    ranks : ndarray(int64), shape (3, n)
        Place of each job in the order of FCFS, SJF, LJF.
    weight : ndarray(float64), shape (n,)
        What a second of delay of each job adds to the score of a plan; 0 for the makespan.
    machine : int
        Cores.
    bits : int
        Number of low bits of a key that hold a job.
    settings : SETTINGS
    windows, taken, instants
        As `parsim.prepare.state.Begun` has them.
    start : ndarray(int64), shape (n,)
        Filled with each job's start; -1 if the loop left the instants that a key can hold before.

    Returns
    -------
    cases : ndarray(int64), shape (3, 8, 3)
        Decisions by policy in use before, set of the policies of least score (bits; 0 without scores), policy chosen.
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
    """Simulate, and fill `start`, `cases`, `starts` and `seconds`. `ends` is a heap of real ends."""
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
        some = 0 if tunes else find_open(planner, policy, waiting, idle)
        if not tunes and some == 0:
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
            # Beside running jobs alone cores only become idle, so the first segment has the fewest. No job starts
            # where windows leave no core idle.
            falling = base if windows.size else 1
            begun = plan_starts(planner, waiting, some, base, falling, policy, ranks[policy], bits)
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
    """Replace started jobs of `order` by the next of their lines, in their turns; return the number of entries."""
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
def collect_begun(planner, count, policy, row, now):
    """Set `begun` to the jobs that are planned for now; return how many."""
    begun = 0
    for j in planner.orders[policy, :count]:
        if planner.planned[row, j] == now:
            planner.begun[begun] = j
            begun += 1
    return begun


@step
def find_widths(jobs, width):
    """Fill `width`, of zeros: 2**width is the greatest power of two up to each job's cores."""
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
    """Write the cores idle beside the running jobs over time, by expected ends, to `base`; return the size."""
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
