"""Idle cores over time, and where a job fits in them.

A step function: segment `k` begins at ``times[k]`` and has ``free[k]`` idle cores. The last one lasts for ever
with every core idle, since every expected end lies before it, so every search ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.kernels.state import routine, step


class Profile(NamedTuple):
    """The segments; functions take and return how many there are."""

    times: NDArray[np.int64]
    free: NDArray[np.int64]


@step
def copy_profile(to, profile, size):
    """Overwrite one step function by another; return the size."""
    for k in range(size):
        to.times[k] = profile.times[k]
        to.free[k] = profile.free[k]
    return size


@step
def find_segment(profile, size, instant):
    """Return the first segment that begins at or after this instant, or `size`."""
    low, high = np.int64(0), np.int64(size)
    while low < high:
        middle = (low + high) >> 1
        if profile.times[middle] < instant:
            low = middle + 1
        else:
            high = middle
    return low


@step
def fit(profile, size, first, need, length, limit):
    """Find the first segment, from `first` on, at whose begin `need` cores idle for `length` seconds.

    Returns
    -------
    i, j : int
        The job begins with segment `i` and uses those before `j`; -1 where it cannot begin before `limit`.
    """
    times, free = profile
    i = first
    while True:
        while free[i] < need:
            i += 1
        if times[i] >= limit:
            return -1, -1
        end = times[i] + length
        j = i + 1
        while j < size and times[j] < end and free[j] >= need:
            j += 1
        if j == size or times[j] >= end:
            return i, j
        i = j + 1  # segment j is too narrow


@step
def _cut(profile, size, at, instant):
    """Begin a segment at `instant`, inside segment ``at - 1``."""
    times, free = profile
    for k in range(size, at, -1):
        times[k] = times[k - 1]
        free[k] = free[k - 1]
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
    for k in range(i, j):
        free[k] -= need
    return size


@routine
def change(profile, size, begin, end, cores):
    """Add `cores` idle cores (or take ``-cores``) throughout [begin, end); return the size, neighbours different."""
    times, free = profile
    i = find_segment(profile, size, begin)
    if i == size or times[i] > begin:
        size = _cut(profile, size, i, begin)
    j = i
    while j < size and times[j] < end:
        j += 1
    if j == size or times[j] > end:
        size = _cut(profile, size, j, end)
    for k in range(i, j):
        free[k] += cores
    if free[j] == free[j - 1]:
        size = _join(profile, size, j)
    if i > 0 and free[i] == free[i - 1]:
        size = _join(profile, size, i)
    return size


@routine
def _join(profile, size, at):
    """Let segment `at` be part of the one before it."""
    times, free = profile
    for k in range(at, size - 1):
        times[k] = times[k + 1]
        free[k] = free[k + 1]
    return size - 1


@routine
def forget(profile, size, now):
    """Let the function begin at `now`, at or after its begin; return the size."""
    times, free = profile
    past = 0
    while past + 1 < size and times[past + 1] <= now:
        past += 1
    if past > 0:
        for k in range(past, size):
            times[k - past] = times[k]
            free[k - past] = free[k]
    times[0] = now
    return size - past
