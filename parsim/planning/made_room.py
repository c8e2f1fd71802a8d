"""Which waiting jobs may find room that was made: what conservative backfilling need not search for all others.

A job begins earlier than its last search found only where more cores idle since. Either they idle up to its planned
start: one look at the segment before that tells. Or there is a place as long as the job, which ends before: whenever
more cores idle, the places around them are held against what all waiting jobs need, and those that go into one note
where it begins. Where few jobs wait, or many alike, searches are quicker.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.resources.profile import find_near
from parsim.engine.resources.running import ONE
from parsim.engine.simulation import NEVER, routine, step

DEEP = 100  #: waiting jobs from which on notes are quicker
OCTAVES = 32  #: powers of two up to a number of cores, or a walltime
NOTES = np.dtype(
    [
        ("turn", np.int64),  #: number of the last event at which room was noted
        ("narrowest", np.int64),  #: fewest cores of a job that may go into a place; NEVER where none may
    ],
    align=True,
)


class Needs(NamedTuple):
    """What waiting jobs need; entry k of four columns is of entry k of the list."""

    cores: NDArray[np.int64]
    walltime: NDArray[np.int64]
    latest: NDArray[np.int64]  # start with which it ends where it is planned to begin
    since: NDArray[np.int64]  # begin of the first place noted since its last search; NEVER for none, 0 if not known
    kept: NDArray[np.int64]  # (n,): that of each job, between events
    at: NDArray[np.int64]  # (n,): segment of the profile before the planned start of each job, nearly
    largest: NDArray[np.int64]  # (octaves, OCTAVES): `latest` of all with less than 2**i cores and 2**j seconds
    notes: NDArray[np.void]  # (1,) NOTES


@step
def octave(number):
    """Return how many bits a positive number has, or the last octave."""
    return min(math.frexp(np.float64(number))[1], OCTAVES - 1)


@step
def survey(needs, plan, waits, now, turn):
    """Note what waiting jobs need."""
    notes = needs.notes[0]
    known = notes.turn == turn - 1
    notes.turn = turn
    notes.narrowest = NEVER
    cores, walltime, latest, since, largest = needs.cores, needs.walltime, needs.latest, needs.since, needs.largest
    largest[:, :] = -1
    for k in range(np.uint64(waits)):
        line = plan.alike[plan.lines[k]]
        cores[k], walltime[k], latest[k] = line.cores, line.walltime, plan.planned[k] - line.walltime
        since[k] = needs.kept[plan.waiting[k]] if known else 0
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
def note_room(needs, waits, idle, size, first, behind, more):
    """Note which jobs may have room now that `more` cores idle in the segments first..behind-1."""
    narrowest = needs.notes[0].narrowest
    if narrowest == NEVER:
        return
    times, free = idle
    left, right = np.uint64(first), np.uint64(behind)
    level = least = free[left]
    for k in range(left + ONE, right):
        level = max(level, free[k])
        least = min(least, free[k])
    least = max(least - more, narrowest - 1)  # there was room for as few before
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
        if needs.largest[octave(level), octave(length)] >= begin:
            _note_place(needs, waits, level, below, begin, length)
        level = below


@step
def _note_place(needs, waits, level, below, begin, length):
    """Note a place for those with at most `level` cores, and more than `below`."""
    cores, walltime, latest, since = needs.cores, needs.walltime, needs.latest, needs.since
    for k in range(np.uint64(waits)):
        goes = (cores[k] <= level) & (cores[k] > below) & (walltime[k] <= length) & (latest[k] >= begin)
        since[k] = min(since[k], begin if goes else NEVER)


@step
def reach_back(needs, k, j, idle, size, drift, begin):
    """Return since when the cores of a job idle up to its planned start, which it is if they do not, and the drift.

    The drift is how far its segment is from where it was; that of the job before is nearly the same.
    """
    at = np.uint64(find_near(idle, size, max(needs.at[j] + drift, np.int64(0)), begin)) - ONE
    drift = np.int64(at) - needs.at[j]
    needs.at[j] = at
    instant = begin
    while idle.free[at] >= needs.cores[k]:
        instant = idle.times[at]
        if at == 0:
            break
        at -= ONE
    return instant, drift
