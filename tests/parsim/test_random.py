"""Random cases of every discipline: simulator, reference and verifier agree. ``python -m tests.fuzz`` has thousands."""

from __future__ import annotations

import pytest

from parsim.prepare import one_list, packing
from tests import fuzz


def seeds(discipline: str) -> range:
    if discipline.startswith(fuzz.NEEDS):
        return range(4)
    return range(7 if discipline.startswith(fuzz.BEGUN) else 15)


@pytest.mark.parametrize("discipline", fuzz.TESTED)
def test_random_cases(discipline: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in seeds(discipline):
        case = fuzz.case(discipline, seed)
        fast, slow = case.simulate(), case.reference()
        assert fuzz.same(fast, slow), seed
        if seed % 3 == 0:  # the verifier asks the reference again
            assert case.check(fast) == [], seed
            assert not fuzz.misses(case, slow, seed), seed
        with monkeypatch.context() as every_queue_is_deep:
            every_queue_is_deep.setattr(packing, "LOOKS", -1)
            every_queue_is_deep.setattr(one_list, "MANY", 0)
            assert fuzz.same(case.simulate(), slow), seed


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    "discipline",
    [
        *("depth-typed", "nothing-typed", "nothing-preempt", "owned-depth", "owned-queues", "owned-queue-nodes"),
        *("kept-queues", "kept-depth", "kept-owned-queues", "kept-queue-nodes", "kept-owned-queue-nodes"),
        *("shortpool-queues", "shortpool-queues-hybrid", "shortpool-depth"),
    ],
)
def test_parts_that_are_seldom_together(discipline: str) -> None:
    assert not [seed for seed in range(8) if fuzz.differs(discipline, seed)]


def test_an_interruption_before_the_state_begins_is_wrong() -> None:
    assert not fuzz.unnoticed("state:active-preempt", 44)
