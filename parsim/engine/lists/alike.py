"""Lines of waiting jobs that are alike, of which only the first can start.

Jobs alike have equal cores and walltime, and equal queues and users where these matter; PBS calls them an equivalence
class. They form a line, in the order of submission. Where no job passes another of its line, none starts in a pass in
which the first does not, since a pass only takes cores.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.compile.compiled import on_disk
from parsim.engine.simulation import step

NO_JOB = np.int32(-1)


class Lines(NamedTuple):
    """The lines of waiting jobs that are alike."""

    of: NDArray[np.int32]  # (n,): line of each job; each has its own where jobs alike may pass each other
    last: NDArray[np.int32]  # (lines,): last job of each line, or `NO_JOB`
    following: NDArray[np.int32]  # (n,): the next job in the line of each job


@on_disk
def find_alike(jobs, other, of):
    """Fill `of` with one number for all jobs of equal cores, walltime and `other`; return how many numbers."""
    size = 2
    while size < 2 * jobs.size:
        size *= 2
    slots = np.full(size, NO_JOB, np.int32)
    mask = np.uint64(size - 1)
    count = 0
    for j in range(jobs.size):
        job = jobs[j]
        key = np.uint64(job.cores) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(job.walltime)
        key = (key * np.uint64(0xC2B2AE3D27D4EB4F)) ^ np.uint64(other[j])
        key = key * np.uint64(0x9E3779B97F4A7C15)
        slot = (key >> np.uint64(29)) & mask
        while slots[slot] != NO_JOB:
            k = slots[slot]
            if jobs[k].cores == job.cores and jobs[k].walltime == job.walltime and other[k] == other[j]:
                break
            slot = (slot + np.uint64(1)) & mask
        if slots[slot] == NO_JOB:
            slots[slot] = j
            of[j] = count
            count += 1
        else:
            of[j] = of[slots[slot]]
    return count


@step
def count_lines(of):
    """Return the number of lines, given the line of each job."""
    last = -1
    for line in of:
        last = max(last, line)
    return last + 1


@step
def join(lines, j):
    """Append job j, which begins to wait, to its line; return whether a job alike waits before it."""
    line = lines.of[j]
    before = lines.last[line]
    lines.last[line] = j
    if before == NO_JOB:
        return False
    lines.following[before] = j
    return True


@step
def leave(lines, j):
    """Remove job j, the first of its line; return the next job, or `NO_JOB`."""
    line = lines.of[j]
    if lines.last[line] == j:
        lines.last[line] = NO_JOB
        return NO_JOB
    return lines.following[j]
