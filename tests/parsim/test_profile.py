"""The profile of idle cores, changed at a few instants in one go, and searched, against a list of seconds."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from parsim.engine.resources.profile import RISE, Profile, change_at, find_near, fit, set_rise
from parsim.engine.simulation import kernel

END = 60  # second from which on nothing is planned
CORES = 5  # more than there are before
UNUSED = 2  # one of the levels


@kernel
def _change_at(profile, size, rises, at):
    return change_at(profile, size, rises, at)


@kernel
def _find_near(profile, size, at, instant):
    return find_near(profile, size, at, instant)


@kernel
def _fit(profile, size, need, length, limit):
    return fit(profile, size, 0, need, length, limit)


@kernel
def _set_rise(rises, k, instant, cores):
    set_rise(rises, k, instant, cores)


def profile_of(idle: list[int]) -> tuple[Profile, int]:
    """Return the segments of equal entries; behind them there is `UNUSED`."""
    begins = [second for second in range(len(idle)) if not second or idle[second] != idle[second - 1]]
    profile = Profile(np.full(len(begins) + 10, UNUSED), np.full(len(begins) + 10, UNUSED))
    profile.times[: len(begins)] = begins
    profile.free[: len(begins)] = [idle[second] for second in begins]
    return profile, len(begins)


@pytest.mark.parametrize("levels", [(0, 2), (3, 4), (0, 1, 2, 3)])
@pytest.mark.parametrize("stretch", [1, 2, 4])
def test_changes_are_those_of_a_list(levels: tuple[int, ...], stretch: int) -> None:
    """Few levels, so that segments are joined as often as they are cut, and others move forward and back between."""
    rng = Random(f"{levels} {stretch}")
    moved = set()
    for _ in range(400):
        idle = [*[rng.choice(levels) for _ in range(END // stretch + 1) for _ in range(stretch)][:END], CORES]
        profile, size = profile_of(idle)
        instants = sorted(rng.sample(range(END + 1), rng.randint(2, 4)))
        cores = [rng.choice((-1, 1, 2)) for _ in instants[2:]]
        cores.append(rng.choice([more for more in (-1, 1, 2) if more + sum(cores)]))
        cores.append(-sum(cores))
        rises = np.empty(len(instants), RISE)
        for k, each in enumerate(zip(instants, cores, strict=True)):
            _set_rise(rises, k, *each)
        expected = [
            now + sum(more for instant, more in zip(instants, cores, strict=True) if instant <= second)
            for second, now in enumerate(idle)
        ]
        after = _change_at(profile, size, rises, rng.randrange(size))
        wanted, count = profile_of(expected)
        assert after == count
        assert profile.times[:after].tolist() == wanted.times[:count].tolist()
        assert profile.free[:after].tolist() == wanted.free[:count].tolist()
        # What moves entries is not checked for bounds: it is by no more than what was there and what is.
        for column in profile:
            assert set(column[max(size, after) :].tolist()) == {UNUSED}
        moved |= {int(np.sign(by)) for by in rises["by"]}
    assert moved == {-1, 0, 1}


def test_a_segment_is_found_from_any_other() -> None:
    rng = Random(1)
    for size in range(1, 40):
        times = np.array(sorted(rng.sample(range(100), size)))
        profile = Profile(times, times)
        for instant in range(101):
            found = {_find_near(profile, size, at, instant) for at in range(size + 2)}
            assert found == {int(np.searchsorted(times, instant))}


@pytest.mark.parametrize("levels", [(1, 2, 3), (3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 1)])
def test_a_job_fits_where_each_second_has_room(levels: tuple[int, ...]) -> None:
    """Of some lengths many segments in a row have room, and one among them has not."""
    rng = Random(2)
    for _ in range(600):
        idle = [*[rng.choice(levels) for _ in range(END)], CORES]
        profile, size = profile_of(idle)
        need, length, limit = rng.randint(1, CORES), rng.randint(1, END), rng.randint(1, 2 * END)
        begins = profile.times[:size].tolist()
        first = next(second for second in begins if min(idle[second : second + length]) >= need)
        i, j = _fit(profile, size, need, length, limit)
        if first >= limit:
            assert (i, j) == (-1, -1)
        else:
            assert (begins[i], j) == (first, int(np.searchsorted(profile.times[:size], first + length)))
