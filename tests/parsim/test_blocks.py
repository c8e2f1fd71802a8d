"""The running jobs in blocks, many and few of them, against a list in Python."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from parsim import Queue, System, Workload, naive, simulate
from parsim.engine.fast.blocks import ROOM, Blocks, add_job, blocks_of, remove_job, when_idle
from parsim.engine.simulation import kernel

BITS, NOW = 12, 5


@kernel
def _add(blocks, key, cores):
    add_job(blocks, key, cores)


@kernel
def _remove(blocks, key):
    remove_job(blocks, key)


@kernel
def _when_idle(blocks, free, need):
    return when_idle(blocks, free, need, BITS)


def listed(blocks: Blocks) -> list[tuple[int, int]]:
    """Return the keys and cores in the order of the directory, and check what it says of each block."""
    found: list[tuple[int, int]] = []
    count = int(blocks.count[0])
    assert sorted(blocks.number.tolist()) == list(range(blocks.number.size))
    for place in range(count):
        begin, filled = int(blocks.number[place] * ROOM), int(blocks.filled[place])
        assert filled <= ROOM
        assert filled or (count, len(found)) == (1, 0)
        entries = slice(begin, begin + filled)
        assert blocks.total[place] == blocks.cores[entries].sum()
        assert not filled or blocks.least[place] == blocks.keys[begin]
        found += zip(blocks.keys[entries].tolist(), blocks.cores[entries].tolist(), strict=True)
    assert all(blocks.filled[place] + blocks.filled[place + 1] > ROOM // 2 for place in range(count - 1))
    return found


@pytest.mark.parametrize(("most", "ends"), [(1, 400), (20, 40), (70, 3), (400, 400), (400, 20)])
@pytest.mark.parametrize("seed", range(3))
def test_as_a_list_in_order(most: int, ends: int, seed: int) -> None:
    """Blocks are split and joined; of some ends there are more jobs than a block has room for."""
    rng = Random(seed)
    blocks = blocks_of(most)
    known: list[tuple[int, int]] = []  # key and cores
    job, grows, used = 0, True, 1
    for step in range(1500):
        grows = len(known) < most - 1 and (grows or len(known) < rng.randrange(1 + most // 6))
        if rng.random() < (0.7 if grows else 0.3) and len(known) < most:
            end = NOW + ends if rng.random() < 0.3 else rng.randrange(NOW, NOW + ends)  # often the last of all
            key, cores = end << BITS | job, rng.randrange(1, 40)
            _add(blocks, key, cores)
            known = sorted([*known, (key, cores)])
            job += 1
        elif known:
            key, _ = known.pop(rng.randrange(len(known)))
            _remove(blocks, key)
        used = max(used, int(blocks.count[0]))
        if step > 150 and step % 7:  # what is wrong stays, and to list all takes long
            continue
        assert listed(blocks) == known
        if known:
            free = rng.randint(0, 5)
            need = rng.randint(free + 1, free + sum(cores for _, cores in known))
            sums = ((key >> BITS, free + sum(cores for _, cores in known[: i + 1])) for i, (key, _) in enumerate(known))
            instant = next(end for end, total in sums if total >= need)
            assert _when_idle(blocks, free, need) == (
                instant,
                free + sum(cores for key, cores in known if key >> BITS <= instant),
            )
    assert used >= min(2, most // 40) + (most > 300) * 8


def test_a_block_whose_last_job_ends_is_joined() -> None:
    blocks = blocks_of(40)
    keys = [end << BITS for end in range(int(ROOM) + 1)]
    for key in keys:
        _add(blocks, key, 1)
    assert blocks.filled[:2].tolist() == [ROOM, 1]
    _remove(blocks, keys.pop())
    assert listed(blocks) == [(key, 1) for key in keys]
    assert blocks.count.tolist() == [1]


@pytest.mark.parametrize("order", ["lxf", "(eligible_time + walltime) / walltime ** 1.3"])
def test_as_naive_where_hundreds_run(order: str) -> None:
    rng = np.random.default_rng(7)
    n = 350
    walltime = rng.integers(1, 400, n)
    runtime = np.maximum(1, (walltime * rng.choice([0.1, 0.5, 1.0], n)).astype(np.int64))
    cores = np.where(rng.random(n) < 0.02, rng.integers(50, 190, n), 1)
    jobs = Workload(np.sort(rng.integers(0, 80, n)), cores, runtime, walltime, np.zeros(n, dtype=np.int64))
    system = System(190, [Queue()], order=order)
    found = simulate(jobs, system)
    running = [int(((found.start <= now) & (now < found.end)).sum()) for now in range(0, 400, 10)]
    assert max(running) > 3 * int(ROOM)
    assert (found.start > jobs.submit).sum() > n // 2
    assert found.start.tolist() == naive.simulate(jobs, system).start


def test_there_is_room_where_blocks_have_as_few_jobs_as_they_may() -> None:
    """A block and the next have 17 jobs at least: 1 and 16 in turn."""
    for most in (*range(1, 200), 8192, 93_312):
        fewest = int(ROOM) // 2 + 1
        assert blocks_of(most).number.size >= 2 * (most // fewest) + 2
