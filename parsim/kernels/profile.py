"""Idle cores over time, and where a job fits in them.

A step function: segment `k` begins at ``times[k]`` and has ``free[k]`` idle cores. The last one lasts for ever
with every core idle, since every expected end lies before it, so every search ends. Loops count without a sign: the
compiler then need not provide for entries counted from the end, and moves several at once, five times as fast.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.kernels.running import ONE
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
    i, last = np.uint64(first), np.uint64(size)
    while True:
        while free[i] < need:
            i += ONE
        if times[i] >= limit:
            return np.int64(-1), np.int64(-1)
        end = times[i] + length
        j = i + ONE
        while j < last and times[j] < end and free[j] >= need:
            j += ONE
        if j == last or times[j] >= end:
            return np.int64(i), np.int64(j)
        i = j + ONE  # segment j is too narrow


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
    """Add `cores` idle cores (or take ``-cores``) throughout [begin, end); return the size, neighbours different."""
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
    """Let segment `at` be part of the one before it."""
    times, free = profile
    for k in range(np.uint64(at), np.uint64(size - 1)):
        times[k] = times[k + ONE]
        free[k] = free[k + ONE]
    return size - 1


@routine
def forget(profile, size, now):
    """Let the function begin at `now`, at or after its begin; return the size."""
    times, free = profile
    past = 0
    while past + 1 < size and times[past + 1] <= now:
        past += 1
    if past > 0:
        gone = np.uint64(past)
        for k in range(np.uint64(size - past)):
            times[k] = times[k + gone]
            free[k] = free[k + gone]
    times[0] = now
    return size - past
