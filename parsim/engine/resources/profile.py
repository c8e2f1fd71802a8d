"""Idle cores over time, and where a job fits in them.

A step function: segment `k` begins at ``times[k]`` and has ``free[k]`` idle cores. The last segment never ends, and all
cores are idle in it, since every expected end lies before, so every search ends. Loop counters are unsigned: then the
compiler need not provide for negative indices, and moves several entries at once, five times as fast. It cannot where
the distance of a move is a variable; there `memmove` is called, whose bounds numba does not check.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.compile.native import memmove
from parsim.engine.resources.running import ONE
from parsim.engine.simulation import NEVER, routine, step

STRETCH = np.uint64(8)  # segments that are looked at together


class Profile(NamedTuple):
    """The segments; functions take and return their number, `size`."""

    times: NDArray[np.int64]
    free: NDArray[np.int64]


#: A change of idle cores from an instant on; `change_at` fills the fields with comments.
RISE = np.dtype(
    [
        ("instant", np.int64),
        ("cores", np.int64),
        ("at", np.int64),  #: first segment at or after the instant
        ("first", np.int64),  #: first segment at or after the instant that is kept
        ("by", np.int64),  #: places by which it and the next segments move
        ("idle", np.int64),  #: idle cores of a segment to insert at the instant, else NEVER
    ],
    align=True,
)


@step
def copy_profile(to, profile, size):
    """Copy a step function `to` another; return the size."""
    for k in range(size):
        to.times[k] = profile.times[k]
        to.free[k] = profile.free[k]
    return size


@step
def find_segment(profile, size, instant):
    """Return the first segment that begins at or after this instant, or `size`."""
    return _bisect(profile, 0, size, instant)


@step
def _bisect(profile, low, high, instant):
    while low < high:
        middle = (low + high) >> 1
        if profile.times[middle] < instant:
            low = middle + 1
        else:
            high = middle
    return low


@step
def find_near(profile, size, at, instant):
    """Do as `find_segment`, faster if the result is near segment `at`."""
    times = profile.times
    low = high = min(at, size - 1)
    stride = np.int64(1)
    if times[low] < instant:
        high += stride
        while high < size and times[high] < instant:
            low = high
            stride += stride
            high += stride
        return _bisect(profile, low + 1, min(high, size), instant)
    low -= stride
    while low >= 0 and times[low] >= instant:
        high = low
        stride += stride
        low -= stride
    return _bisect(profile, max(low + 1, np.int64(0)), high, instant)


@step
def fit(profile, size, first, need, length, limit):
    """Find the first segment, from `first` on, from whose begin `need` cores are idle for `length` seconds.

    Returns
    -------
    i, j : int
        The job begins with segment `i` and covers those before `j`; -1 if it cannot begin before `limit`.
    """
    times, free = profile
    i, last = np.uint64(first), np.uint64(size)
    while True:
        while free[i] < need:
            i += ONE
        if times[i] >= limit:
            return np.int64(-1), np.int64(-1)
        end = times[i] + length
        j = i + ONE
        while j + STRETCH < last and times[j + STRETCH] < end and least_free(free, j) >= need:
            j += STRETCH
        while j < last and times[j] < end and free[j] >= need:
            j += ONE
        if j == last or times[j] >= end:
            return np.int64(i), np.int64(j)
        i = j + ONE  # segment j is too narrow


@step
def least_free(free, i):
    """Return the fewest idle cores of `STRETCH` segments from segment i on, which the compiler compares at once."""
    least = free[i]
    for k in range(STRETCH):
        least = min(least, free[i + k])
    return least


@step
def _cut(profile, size, at, instant):
    """Begin a segment at `instant`, inside segment ``at - 1``."""
    times, free = profile
    k = np.uint64(size)
    while k > np.uint64(at):
        times[k] = times[k - ONE]
        free[k] = free[k - ONE]
        k -= ONE
    times[at] = instant
    free[at] = free[at - 1]
    return size + 1


@step
def reserve(profile, size, i, j, need, length):
    """Take `need` cores from the segments i..j-1 that `fit` found, cut at the job's end; return the size."""
    times, free = profile
    end = times[i] + length
    if j == size or times[j] > end:
        size = _cut(profile, size, j, end)
    for k in range(np.uint64(i), np.uint64(j)):
        free[k] -= need
    return size


@routine
def change(profile, size, begin, end, cores):
    """Add `cores` idle cores (or take ``-cores``) throughout [begin, end), and join equal segments; return the size."""
    times, free = profile
    i = find_segment(profile, size, begin)
    if i == size or times[i] > begin:
        size = _cut(profile, size, i, begin)
    j = find_segment(profile, size, end)
    if j == size or times[j] > end:
        size = _cut(profile, size, j, end)
    for k in range(np.uint64(i), np.uint64(j)):
        free[k] += cores
    if free[j] == free[j - 1]:
        size = _join(profile, size, j)
    if i > 0 and free[i] == free[i - 1]:
        size = _join(profile, size, i)
    return size


@routine
def _join(profile, size, at):
    """Join segment `at` to the one before it."""
    _shift(profile, at + 1, size, -1)
    return size - 1


@routine
def forget(profile, size, now):
    """Drop what is before `now`, which is not before the first segment; return the size."""
    past = 0
    while past + 1 < size and profile.times[past + 1] <= now:
        past += 1
    if past > 0:
        _shift(profile, past, size, -past)
    profile.times[0] = now
    return size - past


@step
def set_rise(rises, k, instant, cores):
    """Set a rise to a change of idle cores from an instant on."""
    rises[k].instant = instant
    rises[k].cores = cores


@step
def change_at(profile, size, rises, at):
    """Apply a few rises of idle cores, and join equal segments; return the size. No segment moves more than once.

    The instants ascend, from one near segment `at` and not before the first segment, to one not after the begin of the
    last. No rise is 0, and their sum is 0.
    """
    times, free = profile
    count = rises.size
    by = level = np.int64(0)
    for k in range(count):
        rise = rises[k]
        at = find_near(profile, size, at, rise.instant)
        level += rise.cores
        rise.at = rise.first = at
        rise.idle = NEVER
        if times[at] > rise.instant:
            rise.idle = free[at - 1] + level
            by += 1
        elif at > 0 and free[at - 1] == free[at] + rise.cores:
            rise.first = at + 1
            by -= 1
        rise.by = by
    level = np.int64(0)
    for k in range(count - 1):
        level += rises[k].cores
        if level != 0:
            for m in range(np.uint64(rises[k].first), np.uint64(rises[k + 1].at)):
                free[m] += level
    # First moves to the front, from the first on; then moves to the back, from the last on.
    for k in range(count):
        if rises[k].by < 0:
            _shift(profile, rises[k].first, rises[k + 1].at if k + 1 < count else size, rises[k].by)
    for k in range(count - 1, -1, -1):
        if rises[k].by > 0:
            _shift(profile, rises[k].first, rises[k + 1].at if k + 1 < count else size, rises[k].by)
    for k in range(count):
        rise = rises[k]
        if rise.idle < NEVER:
            times[rise.at + rise.by - 1] = rise.instant
            free[rise.at + rise.by - 1] = rise.idle
    return size + by


@step
def segment_of(profile, size, rise):
    """Return the segment that has the instant of a rise, after `change_at`."""
    at = rise.first + rise.by
    return at if at < size and profile.times[at] == rise.instant else at - 1


@step
def _shift(profile, first, behind, by):
    """Move the segments first..behind-1 by `by` places."""
    memmove(profile.times, first + by, first, behind - first)
    memmove(profile.free, first + by, first, behind - first)
