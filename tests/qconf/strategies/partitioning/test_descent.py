"""Cores move between queues as long as that helps."""

import numpy as np
import pytest

from qconf.strategies.partitioning.descent import descend


def anything(units):
    return bool((units >= 0).all())


def test_the_step_is_halved_until_nothing_helps():
    units, wait, _ = descend(lambda u: abs(int(u[0]) - 5), np.array([16, 0]), anything, step=8, most=1000)
    assert (units.tolist(), wait) == ([5, 11], 0)


@pytest.mark.parametrize("seed", range(5))
def test_a_bowl_is_descended_to_its_bottom(seed):
    goal = np.random.default_rng(seed).multinomial(40, [0.25] * 4)
    units, wait, tried = descend(
        lambda u: float(((u - goal) ** 2).sum()), np.array([40, 0, 0, 0]), anything, step=8, most=10_000
    )
    assert (units.tolist(), wait) == (goal.tolist(), 0)
    assert tried < 10_000


def test_what_may_not_be_is_not_tried_and_no_more_than_allowed():
    asked = []

    def wait(units):
        asked.append(units.tolist())
        return float(units[0])

    units, _, tried = descend(wait, np.array([9, 0]), lambda u: u[0] >= 4, step=4, most=100)
    assert units.tolist() == [4, 5]
    assert min(each[0] for each in asked) == 4
    assert len(asked) == tried == len({tuple(each) for each in asked})
    asked.clear()
    assert descend(wait, np.array([9, 0]), anything, step=1, most=3)[2] == len(asked) == 3
