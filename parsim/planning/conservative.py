"""Conservative backfilling: a job is promised a start when it is submitted, and no promise is ever broken.

References
----------
Mu'alem and Feitelson, IEEE TPDS 12(6), 2001, section 2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.compile.compiled import on_disk
from parsim.engine.lists.alike import count_lines
from parsim.engine.resources.profile import (
    RISE,
    Profile,
    change,
    change_at,
    find_near,
    find_segment,
    fit,
    forget,
    segment_of,
    set_rise,
)
from parsim.engine.resources.running import ONE
from parsim.engine.resources.windows import apply_windows
from parsim.engine.simulation import NEVER, routine, step
from parsim.planning.clock import advance, begin_job, expected_end, give_back, next_ended, next_submitted, resume
from parsim.planning.made_room import DEEP, NOTES, OCTAVES, Noted, note_jobs, note_room, octave, reach_back

#: A line of jobs alike, and the last search for an earlier start of some of them.
ALIKE = np.dtype(
    [
        ("cores", np.int64),
        ("walltime", np.int64),
        ("turn", np.int64),  #: number of the event of the search
        ("planned", np.int64),  #: planned start of these jobs before the search
        ("earliest", np.int64),  #: the search found no start before this instant
        ("at", np.int64),  #: segment of the profile at which the search ended
        ("freed", np.int64),  #: number of entries of `Plan.freed` then
    ],
    align=True,
)


class Plan(NamedTuple):
    """The waiting jobs, by submit, and their promised starts; entry k of the first three columns is of one job."""

    waiting: NDArray[np.int64]  # jobs
    planned: NDArray[np.int64]  # promised start of each
    lines: NDArray[np.int32]  # line of each
    idle: Profile  # cores idle beside the running and waiting jobs
    alike: NDArray[np.void]  # (lines,) ALIKE
    rises: NDArray[np.void]  # (4,) RISE: what the last move of a job changed
    freed: NDArray[np.int64]  # begins of the periods that became free as jobs moved at this event


@on_disk
def conservative(clock, of):
    """Simulate conservative backfilling; fill the clock's `start`.

    When a job ends before its expected end, each waiting job in turn, by submit, gives up its planned start and
    takes the earliest there is now, which is no later. A promise may then fall on an instant at which nothing else
    happens, so promises are events.

    Parameters
    ----------
    clock : parsim.planning.clock.Clock
    of : ndarray(int32), shape (n,)
        Line of each job, as `parsim.engine.lists.alike.Lines` has it.

    Returns
    -------
    promised : ndarray(int64), shape (n,)
        The start that each job was promised when it was submitted; of jobs that run at the begin, their start.
    """
    n = clock.jobs.size
    promised = clock.start.copy()
    longest = 2 * (n + clock.outages.windows.size) + 5
    plan = Plan(
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int32),
        # Each running or waiting job has at most two ends of its own, and a change cuts twice before it joins.
        Profile(np.empty(longest, np.int64), np.zeros(longest, np.int64)),
        np.zeros(count_lines(of), ALIKE),
        np.empty(4, RISE),
        np.empty(n, np.int64),
    )
    if 2 * len(plan.alike) < n:  # the loop without notes, which they would slow down
        event_loop(clock, of, plan, None, promised)
        return promised
    noted = Noted(
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.empty((octave(clock.machine) + 1, OCTAVES), np.int64),
        np.zeros(1, NOTES),
    )
    event_loop(clock, of, plan, noted, promised)
    return promised


@step
def event_loop(clock, of, plan, noted, promised):
    """Simulate, and fill `start` and `promised`."""
    jobs, outages = clock.jobs, clock.outages
    waiting, planned, lines, idle = plan.waiting, plan.planned, plan.lines, plan.idle
    size = resume(clock, idle)
    waits = turn = 0
    soonest = NEVER  # of the promises
    while advance(clock, waits, soonest):
        now = clock.at.now
        size = forget(idle, size, now)

        early = False
        until = more = np.int64(0)
        j = next_ended(clock)
        while j >= 0:
            if expected_end(clock, j) > now:
                early = True
                if noted is not None:
                    until = max(until, expected_end(clock, j))
                    more += jobs[j].cores
                size = give_back(clock, idle, size, j)
            j = next_ended(clock)
        known = False
        if outages.windows.size:
            size, known = apply_windows(idle, size, outages.windows, outages.taken, clock.at.before, now)
        if known:
            turn += 1
            soonest, size = promise_anew(jobs, plan, waits, size)
        elif early and waits > 0:
            turn += 1
            if noted is not None and waits >= DEEP:
                note_jobs(noted, plan, waits, now, turn)
                note_room(noted, waits, idle, size, 0, find_segment(idle, size, until), more)
                soonest, size = compress_different(plan, noted, waits, size, now)
            else:
                soonest, size = compress(plan, waits, size, now, turn)
        j = next_submitted(clock)
        while j >= 0:
            cores, walltime = np.int64(jobs[j].cores), np.int64(jobs[j].walltime)
            i, _ = fit(idle, size, 0, cores, walltime, NEVER)
            instant = idle.times[i]
            size = change(idle, size, instant, instant + walltime, -cores)
            promised[j] = instant
            soonest = min(soonest, instant)
            waiting[waits], planned[waits], lines[waits] = j, instant, of[j]
            plan.alike[of[j]].cores, plan.alike[of[j]].walltime = cores, walltime
            waits += 1
            j = next_submitted(clock)

        if soonest > now:
            continue
        soonest = NEVER
        kept = np.uint64(0)
        while planned[kept] > now:
            soonest = min(soonest, planned[kept])
            kept += ONE
        for k in range(kept, np.uint64(waits)):
            j = waiting[k]
            if planned[k] > now:
                waiting[kept], planned[kept], lines[kept] = j, planned[k], lines[k]
                kept += ONE
                soonest = min(soonest, planned[k])
            else:
                begin_job(clock, j)
        waits = np.int64(kept)


@routine
def promise_anew(jobs, plan, waits, size):
    """Plan all waiting jobs anew by submission (rule "planning round windows"); return as `compress` does."""
    planned, idle = plan.planned, plan.idle
    soonest = NEVER
    for k in range(waits):
        job = jobs[plan.waiting[k]]
        size = change(idle, size, planned[k], planned[k] + job.walltime, np.int64(job.cores))
    for k in range(waits):
        cores, walltime = np.int64(jobs[plan.waiting[k]].cores), np.int64(jobs[plan.waiting[k]].walltime)
        i, _ = fit(idle, size, 0, cores, walltime, NEVER)
        planned[k] = idle.times[i]
        size = change(idle, size, planned[k], planned[k] + walltime, -cores)
        soonest = min(soonest, planned[k])
    return soonest, size


@step
def compress(plan, waits, size, now, turn):
    """Move each waiting job, by submission, to the earliest start beside all others; `turn` numbers the events.

    Consecutive jobs of one line with the same start move together, as many as there is room for.

    Returns
    -------
    soonest, size : int
        The first planned start; the number of segments.
    """
    planned, lines, idle, freed = plan.planned, plan.lines, plan.idle, plan.freed
    soonest = NEVER
    places = np.int64(0)
    k, end = np.uint64(0), np.uint64(waits)
    while k < end:
        begin, line = planned[k], lines[k]
        behind = k + ONE
        while behind < end and planned[behind] == begin and lines[behind] == line:
            behind += ONE
        soonest = min(soonest, begin)
        if begin > now:
            # After a search for a job alike, planned no later, only periods that became free since make room earlier;
            # not the period that this job left, which is after all that it searched.
            tried = plan.alike[line]
            cores, walltime = tried.cores, tried.walltime
            earliest = now
            if tried.turn == turn and tried.planned <= begin:
                earliest = tried.earliest
                for place in freed[tried.freed : places]:
                    earliest = min(earliest, place - walltime + 1)
            tried.turn = turn
            tried.planned = begin
            at = tried.at
            while k < behind and earliest < begin:
                earliest, room, at = find_earlier(idle, size, at, earliest, cores, walltime, begin)
                if earliest < begin:
                    moved = min(np.int64(behind - k), room // cores)
                    size = bring_forward(idle, size, plan.rises, at, earliest, begin, walltime, moved * cores)
                    for _ in range(moved):
                        planned[k] = earliest
                        k += ONE
                    freed[places] = max(begin, earliest + walltime)
                    places += 1
                    soonest = min(soonest, earliest)
            tried.earliest = earliest
            tried.at = at
            tried.freed = places
        k = behind
    return soonest, size


@step
def compress_different(plan, noted, waits, size, now):
    """Do as `compress`, one job at a time, and search only for jobs that may move."""
    idle, planned = plan.idle, plan.planned
    soonest = NEVER
    drift = np.int64(0)
    for k in range(np.uint64(waits)):
        begin = planned[k]
        if begin > now:
            j = plan.waiting[k]
            earliest, drift = reach_back(noted, k, j, idle, size, drift, begin)
            earliest = min(earliest, max(now, noted.since[k]))
            if earliest < begin:
                cores, walltime = noted.cores[k], noted.walltime[k]
                earliest, _, at = find_earlier(idle, size, noted.at[j], earliest, cores, walltime, begin)
            if earliest < begin:
                size = bring_forward(idle, size, plan.rises, at, earliest, begin, walltime, cores)
                planned[k] = earliest
                noted.at[j] = at
                note_left(noted, plan, waits, size, begin == earliest + walltime, cores)
            noted.since[k] = NEVER
        soonest = min(soonest, planned[k])
    for k in range(np.uint64(waits)):
        noted.kept[plan.waiting[k]] = noted.since[k]
    return soonest, size


@step
def note_left(noted, plan, waits, size, joined, cores):
    """Note which jobs may move to where a job of `cores` was before its move; `joined`: its new period ends there."""
    idle, last = plan.idle, 2 if joined else 3
    first, behind = segment_of(idle, size, plan.rises[last - 1]), segment_of(idle, size, plan.rises[last])
    behind += idle.times[behind] < plan.rises[last].instant
    note_room(noted, waits, idle, size, first, behind, cores)


@step
def find_earlier(idle, size, at, earliest, cores, walltime, begin):
    """Find the first start at or after `earliest` of a job that is planned at `begin`; `begin` if there is none before.

    The job's cores are its own from `begin` on, so they need idle only until then. No branch of the loop depends on the
    idle cores, since processors cannot predict which of many segments are too short. The search is faster if `earliest`
    is near segment `at`.

    Returns
    -------
    instant, room, at : int
        The start; the least cores idle from it to `begin` or the job's end, 0 without an earlier start; and the segment
        at which the search ended.
    """
    times, free = idle
    i = np.uint64(find_near(idle, size, at, earliest))
    times[size] = NEVER
    instant = end = times[i]  # the job's cores idle from `instant` to `end`
    while end < begin and end - instant < walltime:
        idles = free[i] >= cores
        i += ONE
        end = times[i]
        instant = instant if idles else end
    if instant >= begin:
        return begin, np.int64(0), np.int64(i)
    i -= ONE
    room = free[i]
    while times[i] > instant:
        i -= ONE
        room = min(room, free[i])
    return instant, room, np.int64(i)


@step
def bring_forward(idle, size, rises, at, instant, begin, walltime, cores):
    """Move `cores` planned at `begin` to `instant`, which is earlier and near segment `at`; return the size."""
    end = instant + walltime
    set_rise(rises, 0, instant, -cores)
    set_rise(rises, 1, min(begin, end), cores)
    count = np.int64(2)
    if begin == end:
        rises[1].cores += cores
    else:
        set_rise(rises, count, max(begin, end), cores)
        count += 1
    set_rise(rises, count, begin + walltime, -cores)
    return change_at(idle, size, rises[: count + 1], at)
