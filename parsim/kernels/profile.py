"""Idle cores over time, and where a job fits in them.

A step function in two arrays: segment `k` begins at ``times[k]`` and has ``free[k]`` idle cores. The last
one lasts for ever with every core idle, since every expected end lies before it, so every search ends.
"""

# mypy: allow-untyped-decorators

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@njit(cache=True, nogil=True, inline="always")
def fit(times: Ints, free: Ints, size: int, first: int, need: int, length: int, limit: int) -> tuple[int, int]:
    """Find the first segment, from `first` on, at whose begin `need` cores idle for `length` seconds.

    Returns
    -------
    i, j : int
        The job begins with segment `i` and uses those before `j`; -1 where it cannot begin before `limit`.
    """
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


@njit(cache=True, nogil=True, inline="always")
def reserve(times: Ints, free: Ints, size: int, i: int, j: int, need: int, length: int) -> int:
    """Take `need` cores from the segments i..j-1 that `fit` found, cut at the job's end; return the size."""
    end = times[i] + length
    if j == size or times[j] > end:
        for k in range(size, j, -1):
            times[k] = times[k - 1]
            free[k] = free[k - 1]
        times[j] = end
        free[j] = free[j - 1]
        size += 1
    for k in range(i, j):
        free[k] -= need
    return size


@njit(cache=True, nogil=True)
def change(times: Ints, free: Ints, size: int, begin: int, end: int, cores: int) -> int:
    """Add `cores` idle cores (or take ``-cores``) throughout [begin, end), keeping neighbours different."""
    i = 0
    while i < size and times[i] < begin:
        i += 1
    if i == size or times[i] > begin:
        size = _cut(times, free, size, i, begin)
    j = i
    while j < size and times[j] < end:
        j += 1
    if j == size or times[j] > end:
        size = _cut(times, free, size, j, end)
    for k in range(i, j):
        free[k] += cores
    if free[j] == free[j - 1]:
        size = _join(times, free, size, j)
    if i > 0 and free[i] == free[i - 1]:
        size = _join(times, free, size, i)
    return size


@njit(cache=True, nogil=True)
def _cut(times: Ints, free: Ints, size: int, at: int, instant: int) -> int:
    """Begin a segment at `instant`, inside segment ``at - 1``."""
    for k in range(size, at, -1):
        times[k] = times[k - 1]
        free[k] = free[k - 1]
    times[at] = instant
    free[at] = free[at - 1]
    return size + 1


@njit(cache=True, nogil=True)
def _join(times: Ints, free: Ints, size: int, at: int) -> int:
    """Let segment `at` be part of the one before it."""
    for k in range(at, size - 1):
        times[k] = times[k + 1]
        free[k] = free[k + 1]
    return size - 1


@njit(cache=True, nogil=True)
def forget(times: Ints, free: Ints, size: int, now: int) -> int:
    """Let the function begin at `now`, at or after its begin; return the new size."""
    past = 0
    while past + 1 < size and times[past + 1] <= now:
        past += 1
    if past > 0:
        for k in range(past, size):
            times[k - past] = times[k]
            free[k - past] = free[k]
    times[0] = now
    return size - past
