"""Many running jobs of one list by expected end: in blocks of a few, so that few entries move at a time.

A directory has the blocks in order, with the least key, the number of jobs and the cores of each, so that searches skip
blocks. If there are several blocks, none is empty, and two neighbours have more than half as many jobs as one has
room for, so that blocks are few.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.simulation import routine, step

ROOM = np.uint64(32)  #: jobs of a block
HALF = np.uint64(16)
ONE = np.uint64(1)
NONE = np.uint64(0)


class Blocks(NamedTuple):
    """The running jobs; b is a place in the directory, ``number[b] * ROOM`` the first entry of the block there."""

    keys: NDArray[np.int64]  # (blocks * ROOM,) ascending in each block: expected ends
    cores: NDArray[np.int32]  # (blocks * ROOM,)
    number: NDArray[np.uint64]  # (blocks,): the block at each place; after `count` places the unused blocks
    least: NDArray[np.int64]  # (blocks,): key of the first job in the block at each place
    filled: NDArray[np.uint64]  # (blocks,): number of its jobs
    total: NDArray[np.int64]  # (blocks,): sum of their cores
    count: NDArray[np.uint64]  # (1,): places in use


def blocks_of(jobs: int) -> Blocks:
    """Return empty blocks for at most so many running jobs."""
    most = (jobs >> 3) + 3
    entries = most * int(ROOM)
    return Blocks(
        np.empty(entries, np.int64),
        np.empty(entries, np.int32),
        np.arange(most, dtype=np.uint64),
        np.zeros(most, np.int64),
        np.zeros(most, np.uint64),
        np.zeros(most, np.int64),
        np.ones(1, np.uint64),
    )


@step
def place_of(blocks, key):
    """Return the place of the block in which a key is, or would be."""
    b = blocks.count[0] - ONE
    while b > 0 and blocks.least[b] > key:
        b -= ONE
    return b


@step
def add_job(blocks, key, cores):
    """Insert a job that starts, with the key of its expected end."""
    b = place_of(blocks, key)
    if blocks.filled[b] == ROOM:
        b = make_room(blocks, b, key)
    begin = blocks.number[b] * ROOM
    i = begin + blocks.filled[b]
    while i > begin and blocks.keys[i - ONE] > key:
        blocks.keys[i] = blocks.keys[i - ONE]
        blocks.cores[i] = blocks.cores[i - ONE]
        i -= ONE
    blocks.keys[i] = key
    blocks.cores[i] = cores
    blocks.filled[b] += ONE
    blocks.total[b] += cores
    blocks.least[b] = blocks.keys[begin]


@routine
def make_room(blocks, b, key):
    """Split the full block at place b; return the place of the block for the key."""
    count = blocks.count[0]
    unused = blocks.number[count]
    for k in range(count, b + ONE, -1):
        blocks.number[k] = blocks.number[k - 1]
        blocks.least[k] = blocks.least[k - 1]
        blocks.filled[k] = blocks.filled[k - 1]
        blocks.total[k] = blocks.total[k - 1]
    blocks.number[b + ONE] = unused
    blocks.count[0] = count + ONE
    begin, other = blocks.number[b] * ROOM, unused * ROOM
    # A key after all others gets a new block, and leaves the last one full.
    kept = ROOM if b + ONE == count and blocks.keys[begin + ROOM - ONE] < key else HALF
    moved = np.int64(0)
    for k in range(kept, ROOM):
        blocks.keys[other + k - kept] = blocks.keys[begin + k]
        blocks.cores[other + k - kept] = blocks.cores[begin + k]
        moved += blocks.cores[begin + k]
    blocks.filled[b], blocks.filled[b + ONE] = kept, ROOM - kept
    blocks.total[b] -= moved
    blocks.total[b + ONE] = moved
    blocks.least[b + ONE] = key if kept == ROOM else blocks.keys[other]
    return b + ONE if blocks.least[b + ONE] <= key else b


@step
def remove_job(blocks, key):
    """Remove the job with this key, which must be there."""
    b = place_of(blocks, key)
    begin = blocks.number[b] * ROOM
    i = begin
    while blocks.keys[i] != key:
        i += ONE
    blocks.total[b] -= blocks.cores[i]
    blocks.filled[b] -= ONE
    end = begin + blocks.filled[b]
    while i < end:
        blocks.keys[i] = blocks.keys[i + ONE]
        blocks.cores[i] = blocks.cores[i + ONE]
        i += ONE
    blocks.least[b] = blocks.keys[begin]
    if b + ONE < blocks.count[0] and is_one_block(blocks.filled[b], blocks.filled[b + ONE]):
        join_next(blocks, b)
    elif b > 0 and is_one_block(blocks.filled[b], blocks.filled[b - ONE]):
        join_next(blocks, b - ONE)


@step
def is_one_block(filled, beside):
    """Whether to join a block of `filled` jobs with a neighbour of `beside` jobs."""
    return filled == 0 or filled + beside <= HALF


@routine
def join_next(blocks, b):
    """Move the jobs of the block after place b into the block there."""
    begin, other = blocks.number[b] * ROOM + blocks.filled[b], blocks.number[b + ONE] * ROOM
    for k in range(blocks.filled[b + ONE]):
        blocks.keys[begin + k] = blocks.keys[other + k]
        blocks.cores[begin + k] = blocks.cores[other + k]
    blocks.filled[b] += blocks.filled[b + ONE]
    blocks.total[b] += blocks.total[b + ONE]
    blocks.least[b] = blocks.keys[blocks.number[b] * ROOM]
    unused = blocks.number[b + ONE]
    last = blocks.count[0] - ONE
    for k in range(b + ONE, last):
        blocks.number[k] = blocks.number[k + 1]
        blocks.least[k] = blocks.least[k + 1]
        blocks.filled[k] = blocks.filled[k + 1]
        blocks.total[k] = blocks.total[k + 1]
    blocks.number[last] = unused
    blocks.count[0] = last


@step
def when_idle(blocks, free, need, bits):
    """Return when `need` cores, more than `free`, are idle by expected ends; and the cores that are idle then."""
    idle = np.int64(free)
    b = NONE
    while idle + blocks.total[b] < need:
        idle += blocks.total[b]
        b += ONE
    i = blocks.number[b] * ROOM
    end = i + blocks.filled[b]
    while idle < need:
        idle += blocks.cores[i]
        i += ONE
    instant = blocks.keys[i - ONE] >> bits
    while True:
        while i < end and (blocks.keys[i] >> bits) == instant:
            idle += blocks.cores[i]
            i += ONE
        b += ONE
        if i < end or b == blocks.count[0] or (blocks.least[b] >> bits) != instant:
            return instant, idle
        i = blocks.number[b] * ROOM
        end = i + blocks.filled[b]
