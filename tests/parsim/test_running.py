"""The running jobs by expected end, many and few of them, against a list in Python."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from parsim.engine.resources.running import add_running, available, first_instant, remove_running
from parsim.engine.simulation import Running, kernel

BITS, NOW = 10, 5
MOST = 300
FIRST = 7  # another partition's running jobs stand before


@kernel
def _add(running, count, key, cores):
    add_running(running, FIRST, count, key, cores)


@kernel
def _remove(running, count, key):
    remove_running(running, FIRST, count, key)


@kernel
def _looked_up(running, count, free, need, instant):
    return (
        first_instant(running, FIRST, count, free, need, NOW, BITS),
        available(running, FIRST, count, free, instant, BITS),
    )


@pytest.mark.parametrize("seed", range(4))
def test_as_a_list_in_order(seed: int) -> None:
    rng = Random(seed)
    running = Running(np.full(FIRST + MOST, -1, dtype=np.int64), np.full(FIRST + MOST, -1, dtype=np.int32))
    known: list[tuple[int, int]] = []  # key and cores
    job, grows = 0, True
    for _ in range(1000):
        grows = len(known) < MOST - 1 and (grows or len(known) < rng.randrange(40))
        if rng.random() < (0.8 if grows else 0.2) and len(known) < MOST - 1:
            key, cores = rng.randrange(NOW, 400) << BITS | job % (1 << BITS), rng.randrange(1, 40)
            _add(running, len(known), key, cores)
            known = sorted([*known, (key, cores)])
            job += 1
        elif known:
            key, cores = known.pop(rng.randrange(len(known)))
            _remove(running, len(known) + 1, key)
        there = slice(FIRST, FIRST + len(known))
        assert list(zip(running.keys[there].tolist(), running.cores[there].tolist(), strict=True)) == known
        free, instant = rng.randint(1, 5), rng.randrange(NOW, 420)
        need = rng.randint(1, free + sum(c for _, c in known))
        found, idle = _looked_up(running, len(known), free, need, instant)
        assert idle == free + sum(c for key, c in known if key >> BITS <= instant)
        sums = [(key >> BITS, free + sum(c for _, c in known[: i + 1])) for i, (key, _) in enumerate(known)]
        assert found == (NOW if need <= free else next(end for end, total in sums if total >= need))
    assert (running.keys[:FIRST] == -1).all()
    assert (running.cores[:FIRST] == -1).all()
