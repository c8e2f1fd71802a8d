"""Notes which waiting jobs may move after cores became idle, so that conservative backfilling searches only for these.

A job can start earlier than its last search found only where more cores idle since. If these idle up to its planned
start, the segment before shows it. Else there is a place as long as the job that ends before: whenever more cores idle,
the places around them are compared with all waiting jobs, and the begin is noted for each job that fits. With few
waiting jobs, or many alike, searches are faster than notes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.resources.profile import find_near
from parsim.engine.resources.running import ONE
from parsim.engine.simulation import NEVER, routine, step

DEEP = 100  #: waiting jobs from which on notes are faster
OCTAVES = 32  #: powers of two up to a number of cores, or a walltime
NOTES = np.dtype(
    [
        ("turn", np.int64),  #: number of the last event at which room was noted
        ("narrowest", np.int64),  #: fewest cores of a job that may move into a place; NEVER if no job may
    ],
    align=True,
)


class Noted(NamedTuple):
    """What is noted of waiting jobs; entry k of the first four columns is of entry k of the list."""

    cores: NDArray[np.int64]
    walltime: NDArray[np.int64]
    latest: NDArray[np.int64]  # latest start with which the job ends by its planned start
    since: NDArray[np.int64]  # begin of the first place noted since the last search; NEVER for none, 0 if unknown
    kept: NDArray[np.int64]  # (n,): `since` of each job, between events
    at: NDArray[np.int64]  # (n,): segment before each job's planned start, or one near it
    largest: NDArray[np.int64]  # (octaves, OCTAVES): largest `latest` of jobs below 2**i cores and 2**j seconds
    notes: NDArray[np.void]  # (1,) NOTES


@step
def octave(number):
    """Return the number of bits of a positive number, at most the last octave."""
    return min(math.frexp(np.float64(number))[1], OCTAVES - 1)


@step
def note_jobs(noted, plan, waits, now, turn):
    """Note cores, walltime and latest start of all waiting jobs, at the event with number `turn`."""
    notes = noted.notes[0]
    known = notes.turn == turn - 1
    notes.turn = turn
    notes.narrowest = NEVER
    cores, walltime, latest, since, largest = noted.cores, noted.walltime, noted.latest, noted.since, noted.largest
    largest[:, :] = -1
    for k in range(np.uint64(waits)):
        line = plan.alike[plan.lines[k]]
        cores[k], walltime[k], latest[k] = line.cores, line.walltime, plan.planned[k] - line.walltime
        since[k] = noted.kept[plan.waiting[k]] if known else 0
        if latest[k] >= now:
            i, j = octave(line.cores), octave(line.walltime)
            largest[i, j] = max(largest[i, j], latest[k])
            notes.narrowest = min(notes.narrowest, line.cores)
    for i in range(len(largest)):
        for j in range(1, OCTAVES):
            largest[i, j] = max(largest[i, j], largest[i, j - 1])
    for i in range(1, len(largest)):
        for j in range(OCTAVES):
            largest[i, j] = max(largest[i, j], largest[i - 1, j])


@routine
def note_room(noted, waits, idle, size, first, behind, more):
    """Note which jobs may have room now that `more` cores are idle in the segments first..behind-1."""
    narrowest = noted.notes[0].narrowest
    if narrowest == NEVER:
        return
    times, free = idle
    left, right = np.uint64(first), np.uint64(behind)
    level = least = free[left]
    for k in range(left + ONE, right):
        level = max(level, free[k])
        least = min(least, free[k])
    least = max(least - more, narrowest - 1)  # room for fewer cores is not new
    times[size] = NEVER
    while level > least:
        while left > 0 and free[left - ONE] >= level:
            left -= ONE
        while right < size and free[right] >= level:
            right += ONE
        below = least
        if left > 0:
            below = max(below, free[left - ONE])
        if right < size:
            below = max(below, free[right])
        begin, length = times[left], times[right] - times[left]
        if noted.largest[octave(level), octave(length)] >= begin:
            _note_place(noted, waits, level, below, begin, length)
        level = below


@step
def _note_place(noted, waits, level, below, begin, length):
    """Note a place for the jobs with at most `level` cores, and more than `below`, that fit its length."""
    cores, walltime, latest, since = noted.cores, noted.walltime, noted.latest, noted.since
    for k in range(np.uint64(waits)):
        goes = (cores[k] <= level) & (cores[k] > below) & (walltime[k] <= length) & (latest[k] >= begin)
        since[k] = min(since[k], begin if goes else NEVER)


@step
def reach_back(noted, k, j, idle, size, drift, begin):
    """Return from when the cores of entry k, job j, idle up to its planned start `begin`, or `begin`; and the drift.

    The drift is by how many places the job's segment has moved; that of the job before, an argument, is about the same.
    """
    at = np.uint64(find_near(idle, size, max(noted.at[j] + drift, np.int64(0)), begin)) - ONE
    drift = np.int64(at) - noted.at[j]
    noted.at[j] = at
    instant = begin
    while idle.free[at] >= noted.cores[k]:
        instant = idle.times[at]
        if at == 0:
            break
        at -= ONE
    return instant, drift
