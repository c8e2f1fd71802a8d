"""The waiting jobs of the one list, in blocks of a few, with a directory of the least cores of the jobs in each block.

All jobs of a block count in the same limits, so that a block whose limits are reached is skipped. For many blocks the
directory has the least cores of each block's jobs up to each of a few walltimes, and an upper bound of their values:
jobs that may start are found without a look at blocks of others. Jobs of a block are in no order; their values tell
which goes first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.simulation import BLOCK, LONGEST, routine, step

NO_BLOCK = np.int32(-1)
NOT_HELD = np.inf
PASSED = -np.inf  # no value is as small
NO_CORES = np.int32(LONGEST)  # replaces the cores of an entry without a job
CLASSES = 16  #: classes of walltimes, for which the directory has the least cores
ALL = np.uint64(CLASSES - 1)  #: the last class, up to all walltimes
MIXED = np.int64(0)  #: group of jobs of any user
MANY = 256  #: with as many waiting jobs each user has separate blocks, where a job's value is its user's
DEEP, SHALLOW = 16, 8  #: the directory is kept once there are more blocks than `DEEP`, until there are `SHALLOW`
JOBS, USED, KEPT = range(3)  # of `Directory.state`: entries; blocks in use; whether the directory is kept


class Listed(NamedTuple):
    """The waiting jobs, only the first of jobs alike; block b has the entries from ``b * BLOCK`` on."""

    job: NDArray[np.int32]
    cores: NDArray[np.int32]
    walltime: NDArray[np.int32]
    bound: NDArray[np.float64]  # value at this instant or, in an epoch, at its end; or infinity
    value: NDArray[np.float64]  # value in pass `known`
    known: NDArray[np.int64]  # number of the last pass that computed `value`
    origin: NDArray[np.float64]  # submit, plus the seconds for which limits held the job before
    held: NDArray[np.float64]  # instant from which limits hold the job, where eligible time is read, or `NOT_HELD`


class Directory(NamedTuple):
    """The blocks, those in use first, and bounds of the jobs in each; all blocks of a group but the last are full."""

    state: NDArray[np.int64]  # `JOBS`, `USED`, `KEPT`
    last: NDArray[np.int32]  # (groups,): the last block of each group, or `NO_BLOCK`
    count: NDArray[np.int64]  # (blocks,): number of jobs
    group: NDArray[np.int32]  # (blocks,): `group_of` its jobs
    before: NDArray[np.int32]  # (blocks,): the block of the group before this one, or `NO_BLOCK`
    behind: NDArray[np.int32]  # (blocks,): the block of the group after this one, or `NO_BLOCK`
    room: NDArray[np.int32]  # (blocks,): most cores of a job that limits let start
    noted: NDArray[np.int32]  # (blocks,): `room` when held jobs were last recorded, or -1
    top: NDArray[np.float64]  # (blocks,): upper bound of `bound`
    oldest: NDArray[np.int32]  # (blocks,): lower bound of the numbers of jobs
    least: NDArray[np.int32]  # (CLASSES, blocks): least cores of the jobs with walltimes up to those of each class
    longest: NDArray[np.int32]  # (CLASSES,): longest walltime of each class
    kind: NDArray[np.uint8]  # (n,): class of each job


class Wanted(NamedTuple):
    """Bounds of jobs that may start beside the head job, or be the head job: `widest`, and one of the next three."""

    widest: int  # most cores
    slack: int  # longest walltime
    extra: int  # most cores of a longer job
    eligible: int  # jobs with smaller numbers may be the head job
    kind: int  # first class with all walltimes up to `slack`


def listed_of(n: int, groups: int) -> Listed:
    """Return an empty list for n jobs of so many groups."""
    most = _blocks(n, groups) * BLOCK
    cores = np.full(most, NO_CORES)
    job, walltime = np.empty((2, most), np.int32)
    bound, value, origin, held = np.empty((4, most))
    return Listed(job, cores, walltime, bound, value, np.empty(most, np.int64), origin, held)


def directory_of(n: int, groups: int, longest: NDArray[np.int32], kind: NDArray[np.uint8]) -> Directory:
    """Return the directory of an empty list for n jobs of so many groups; `longest`, `kind`: see `Directory`."""
    most = _blocks(n, groups)
    before, behind, group, noted, oldest = np.empty((5, most), np.int32)
    return Directory(
        state=np.zeros(3, np.int64),
        last=np.full(groups, NO_BLOCK),
        count=np.zeros(most, np.int64),
        group=group,
        before=before,
        behind=behind,
        room=np.zeros(most, np.int32),
        noted=noted,
        top=np.full(most, PASSED),
        oldest=oldest,
        least=np.full((CLASSES, most), NO_CORES),
        longest=longest,
        kind=kind,
    )


def _blocks(n: int, groups: int) -> int:
    """Return the most blocks that are in use, plus as many as are compared at once."""
    return n // BLOCK + min(n, groups) + 1 + BLOCK


@step
def add_entry(s, j, group):
    """Add job j, submitted as the first of its line, to the last block of its group; return its entry."""
    d, waiting, job = s.directory, s.waiting, s.jobs[j]
    b = np.int64(d.last[group])
    if b == NO_BLOCK or d.count[b] == BLOCK:
        b = add_block(s, j, group)
    i = b * BLOCK + d.count[b]
    d.count[b] += 1
    d.state[JOBS] += 1
    waiting.job[i] = j
    waiting.cores[i] = job.cores
    waiting.walltime[i] = job.walltime
    waiting.origin[i] = job.submit
    waiting.held[i] = NOT_HELD
    waiting.bound[i] = np.inf
    waiting.known[i] = 0
    d.noted[b] = -1
    if d.state[KEPT]:
        include(s, b, i)
    return i


@step
def add_block(s, j, group):
    """Begin another block of a group, whose first job will be j; return its number."""
    d = s.directory
    b, other = d.state[USED], d.last[group]
    d.state[USED] += 1
    d.group[b] = group
    d.before[b] = other
    d.behind[b] = NO_BLOCK
    if other != NO_BLOCK:
        d.behind[other] = b
    d.last[group] = b
    d.count[b] = 0
    d.room[b] = room_of(s.limits, j)
    if d.state[KEPT]:
        forget(d, b)
    elif d.state[USED] > DEEP:
        d.state[KEPT] = 1
        for k in range(b):
            summarize(s, k)
        forget(d, b)
    return b


@step
def room_of(limits, j):
    """Return the most cores that the limits of job j allow a job that starts."""
    if not limits.any:
        return LONGEST
    jobs, cores = what_is_left(limits, j)
    return min(cores, LONGEST) if jobs > 0 else np.int64(0)


@step
def what_is_left(limits, j):
    """Return how many more jobs and cores the limits of job j allow."""
    own, users = limits.left[limits.rows[j, 0]], limits.left[limits.rows[j, 1]]
    return min(own.jobs, users.jobs), min(own.cores, users.cores)


@step
def remove_entry(s, i):
    """Remove entry i, whose job has left: move the last entry of its group there."""
    d = s.directory
    b = np.int64(i) // BLOCK
    last = np.int64(d.last[d.group[b]])
    end = last * BLOCK + d.count[last] - 1
    if i != end:
        copy_entry(s.waiting, i, end)
        if d.noted[last] < 0:
            d.noted[b] = -1
    s.waiting.cores[end] = NO_CORES
    d.count[last] -= 1
    d.state[JOBS] -= 1
    if d.state[KEPT]:
        summarize(s, b)
        if last != b:
            summarize(s, last)
    if d.count[last] == 0:
        remove_block(s, last)


@step
def remove_block(s, b):
    """Remove block b, the last of its group, which is empty: move the last block in use there."""
    d, waiting = s.directory, s.waiting
    d.last[d.group[b]] = d.before[b]
    if d.before[b] != NO_BLOCK:
        d.behind[d.before[b]] = NO_BLOCK
    d.state[USED] -= 1
    last = d.state[USED]
    if b != last:
        for k in range(d.count[last]):
            copy_entry(waiting, b * BLOCK + k, last * BLOCK + k)
            waiting.cores[last * BLOCK + k] = NO_CORES
        d.count[b] = d.count[last]
        d.group[b] = d.group[last]
        d.before[b] = d.before[last]
        d.behind[b] = d.behind[last]
        d.room[b] = d.room[last]
        d.noted[b] = d.noted[last]
        if d.before[b] != NO_BLOCK:
            d.behind[d.before[b]] = b
        if d.behind[b] == NO_BLOCK:
            d.last[d.group[b]] = b
        else:
            d.before[d.behind[b]] = b
        if d.state[KEPT]:
            summarize(s, b)
    if d.state[KEPT]:
        forget(d, last)
        d.state[KEPT] = d.state[USED] > SHALLOW


@step
def copy_entry(waiting, to, i):
    """Copy entry i to entry `to`."""
    waiting.job[to] = waiting.job[i]
    waiting.cores[to] = waiting.cores[i]
    waiting.walltime[to] = waiting.walltime[i]
    waiting.bound[to] = waiting.bound[i]
    waiting.value[to] = waiting.value[i]
    waiting.known[to] = waiting.known[i]
    waiting.origin[to] = waiting.origin[i]
    waiting.held[to] = waiting.held[i]


@step
def forget(d, b):
    """Reset the directory's bounds of block b, which has no job."""
    d.top[b] = PASSED
    d.oldest[b] = NO_CORES
    for k in range(CLASSES):
        d.least[k, b] = NO_CORES


@step
def include(s, b, i):
    """Extend the directory's bounds of block b to entry i."""
    d, waiting = s.directory, s.waiting
    d.top[b] = max(d.top[b], waiting.bound[i])
    d.oldest[b] = min(d.oldest[b], waiting.job[i])
    k = np.int64(d.kind[waiting.job[i]])
    while k < CLASSES and d.least[k, b] > waiting.cores[i]:
        d.least[k, b] = waiting.cores[i]
        k += 1


@routine
def summarize(s, b):
    """Compute the directory's bounds of block b from all its entries."""
    d, waiting = s.directory, s.waiting
    forget(d, b)
    for i in range(b * BLOCK, b * BLOCK + d.count[b]):
        d.top[b] = max(d.top[b], waiting.bound[i])
        d.oldest[b] = min(d.oldest[b], waiting.job[i])
        k = np.uint64(d.kind[waiting.job[i]])
        d.least[k, b] = min(d.least[k, b], waiting.cores[i])
    for k in range(1, CLASSES):
        d.least[k, b] = min(d.least[k, b], d.least[k - 1, b])


@step
def set_top(s, b):
    """Compute `top` of block b from the bounds of its entries, if the directory is kept."""
    d = s.directory
    if d.state[KEPT]:
        top = PASSED
        for i in range(b * BLOCK, b * BLOCK + d.count[b]):
            top = max(top, s.waiting.bound[i])
        d.top[b] = top


@step
def class_of(d, slack):
    """Return the first class with all walltimes up to `slack`."""
    k = np.uint64(0)
    while k < ALL and d.longest[k] < slack:
        k += np.uint64(1)
    return k


@step
def any_block_has(d, b, largest, wanted):
    """Whether any of the `BLOCK` blocks from b on may have a wanted job with a value of at least `largest`."""
    hit = False
    for k in range(np.uint64(BLOCK)):
        hit |= may_have(d, b + k, largest, wanted)
    return hit


@step
def may_have(d, b, largest, wanted):
    """Whether block b may have a wanted job with a value of at least `largest`."""
    least, most = d.least[ALL, b], min(d.room[b], wanted.widest)
    may = ((wanted.slack >= 0) & (d.least[wanted.kind, b] <= most)) | (least <= min(most, wanted.extra))
    return (d.top[b] >= largest) & (may | ((d.oldest[b] < wanted.eligible) & (least <= most)))


@step
def any_fits(s, free):
    """Whether `free` cores are enough for some job that its limits let start."""
    d, cores, most = s.directory, s.waiting.cores, np.int32(free)
    if d.state[KEPT]:
        for first in range(0, d.state[USED], BLOCK):
            hit = False
            for k in range(BLOCK):
                hit |= d.least[ALL, np.uint64(first + k)] <= min(d.room[first + k], most)
            if hit:
                return True
        return False
    for b in range(d.state[USED]):
        widest = min(d.room[b], most)
        hit = False
        for k in range(BLOCK):
            hit |= cores[b * BLOCK + k] <= widest
        if hit:
            return True
    return False


@step
def change_left(s, j, sign):
    """Add job j and its cores to what its limits allow (`sign` 1), or subtract them; update `room` of the blocks."""
    limits = s.limits
    if not limits.any:
        return
    own = limits.left[limits.rows[j, 0]]
    before = queue_room(own)
    for row in limits.rows[j]:
        left = limits.left[row]
        left.jobs += sign
        left.cores += sign * s.jobs[j].cores
    d = s.directory
    if queue_room(own) != before:
        for b in range(d.state[USED]):
            if limits.rows[s.waiting.job[b * BLOCK], 0] == limits.rows[j, 0]:
                d.room[b] = room_of(limits, s.waiting.job[b * BLOCK])
    else:
        b = d.last[group_of(s, j)]
        if b != NO_BLOCK:
            room = room_of(limits, j)
            while b != NO_BLOCK:
                d.room[b] = room
                b = d.before[b]


@step
def queue_room(own):
    """Return the most cores of a job that its queue's limits let start; `own` is what they still allow."""
    return min(own.cores, LONGEST) if own.jobs > 0 else np.int64(0)


@step
def group_of(s, j):
    """Return the group of job j: with limits, its user in its queue; else its user, if values are users'; else all."""
    if s.limits.any:
        return np.int64(s.limits.rows[j, 1])
    return np.int64(s.fair.user[j]) if s.epoch.of_user and s.directory.state[JOBS] >= MANY else MIXED
