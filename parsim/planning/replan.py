"""Planning schedulers that plan the whole waiting list again at every event, in the order of a policy."""

from __future__ import annotations

import numpy as np

from parsim.engine.compile.compiled import on_disk
from parsim.engine.lists.alike import NO_JOB, Lines, count_lines, join, leave
from parsim.engine.resources.profile import Profile
from parsim.engine.resources.running import add_running, remove_running
from parsim.engine.resources.windows import apply_windows
from parsim.engine.simulation import NEVER, Running, step
from parsim.planning.clock import advance, expected_end, next_ended, next_submitted, run
from parsim.planning.planner import BOUNDS, FIXED, TUNING, WIDTHS, Planner
from parsim.planning.self_tuning import choose_by_bounds, tune
from parsim.planning.whole_plan import find_open, plan_starts


@on_disk
def replan(clock, of, ranks, weight, settings):
    """Simulate a scheduler that plans its whole waiting list again at every submission and completion; fill `start`.

    Parameters
    ----------
    clock : parsim.planning.clock.Clock
    of : ndarray(int32), shape (n,)
        Line of each job, as `parsim.engine.lists.alike.Lines` has it; one each for self-tuning, which plans all jobs.
    ranks : ndarray(int64), shape (3, n)
        Place of each job in the order of FCFS, SJF, LJF.
    weight : ndarray(float64), shape (n,)
        What a second of delay of each job adds to the score of a plan; 0 for the makespan.
    settings : SETTINGS

    Returns
    -------
    cases : ndarray(int64), shape (3, 8, 3)
        Decisions by policy in use before, set of the policies of least score (bits; 0 without scores), policy chosen.
    starts, seconds : ndarray(int64), shape (3,)
        Jobs started under each policy, and how long it was in use.
    """
    jobs, n = clock.jobs, clock.jobs.size
    most = clock.ends.size
    cases, starts, seconds = np.zeros((3, 8, 3), np.int64), np.zeros(3, np.int64), np.zeros(3, np.int64)
    running = Running(np.empty(most, np.int64), np.empty(most, np.int64))
    count = count_lines(of)
    segments = most + 2 * clock.outages.windows.size
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
        np.empty(most, np.int64),
        np.empty(3, np.float64),
    )
    find_widths(jobs, planner.width)
    event_loop(clock, planner, ranks, running, cases, starts, seconds)
    return cases, starts, seconds


@step
def event_loop(clock, planner, ranks, running, cases, starts, seconds):
    """Simulate, and fill `start`, `cases`, `starts` and `seconds`."""
    jobs, settings, at, windows = clock.jobs, planner.settings, clock.at, clock.outages.windows
    fixed = settings.kind == FIXED
    policy = settings.policy
    idle = np.int64(clock.machine)
    for j in range(at.arriving):
        idle -= begin_beside(clock, running, j, clock.start[j])
    waiting = 0  # entries of an order
    waits = 0  # jobs
    total = np.int64(0)  # their walltimes
    at.now = clock.begin
    while advance(clock, waits, NEVER):
        now = at.now
        seconds[policy] += now - at.before
        j = next_ended(clock)
        while j >= 0:
            remove_running(running, 0, at.running + 1, (expected_end(clock, j) << clock.bits) | j)
            idle += jobs[j].cores
            j = next_ended(clock)
        j = next_submitted(clock)
        submitted = j >= 0
        while j >= 0:
            if not join(planner.lines, j):
                for p in range(3):
                    if not fixed or p == policy:
                        insert(planner.orders[p], waiting, j, ranks[p])
                waiting += 1
            waits += 1
            total += jobs[j].walltime
            j = next_submitted(clock)
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
        base = left_by_running(planner.base, running, at.running, idle, now, clock.bits)
        if windows.size:
            base, _ = apply_windows(planner.base, base, windows, clock.outages.taken, clock.begin - 1, now)
        if tunes:
            least, chosen, row = tune(planner, waiting, base, policy, now)
            cases[policy, least, chosen] += 1
            policy = chosen
            begun = collect_begun(planner, waiting, policy, row, now)
        else:
            # Beside running jobs alone cores only become idle, so the first segment has the fewest. No job starts
            # where windows leave no core idle.
            falling = base if windows.size else 1
            begun = plan_starts(planner, waiting, some, base, falling, policy, ranks[policy], clock.bits)
        if begun == 0:
            continue

        for j in planner.begun[:begun]:
            starts[policy] += 1
            idle -= begin_beside(clock, running, j, now)
            total -= jobs[j].walltime
        waits -= begun
        left = waiting
        for p in range(3):
            if not fixed or p == policy:
                left = drop_started(planner, planner.orders[p], waiting, ranks[p], clock.start)
        waiting = left
        for j in planner.begun[:begun]:
            leave(planner.lines, j)


@step
def begin_beside(clock, running, j, instant):
    """Start job j at an instant, beside the jobs that run; return its cores."""
    clock.start[j] = instant
    cores = np.int64(clock.jobs[j].cores)
    add_running(running, 0, clock.at.running, (expected_end(clock, j) << clock.bits) | j, cores)
    run(clock, j)
    return cores


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
    """Set `begun` to the jobs planned for now in `row` of `planned`, in the order of a policy; return how many."""
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
