"""Cores move between queues as long as that helps."""

import numpy as np
import pytest

from qconf.strategies.partitioning.descent import descend


def anything(nodes):
    return bool((nodes >= 0).all())


def test_the_step_is_halved_until_nothing_helps():
    nodes, wait, _ = descend(lambda u: abs(int(u[0]) - 5), np.array([16, 0]), anything, step=8, most=1000)
    assert (nodes.tolist(), wait) == ([5, 11], 0)


@pytest.mark.parametrize("seed", range(5))
def test_the_minimum_of_a_convex_function_is_found(seed):
    goal = np.random.default_rng(seed).multinomial(40, [0.25] * 4)
    nodes, wait, tried = descend(
        lambda u: float(((u - goal) ** 2).sum()), np.array([40, 0, 0, 0]), anything, step=8, most=10_000
    )
    assert (nodes.tolist(), wait) == (goal.tolist(), 0)
    assert tried < 10_000


def test_only_allowed_divisions_are_tried_and_no_more_than_the_most():
    calls = []

    def wait(nodes):
        calls.append(nodes.tolist())
        return float(nodes[0])

    nodes, _, tried = descend(wait, np.array([9, 0]), lambda u: u[0] >= 4, step=4, most=100)
    assert nodes.tolist() == [4, 5]
    assert min(each[0] for each in calls) == 4
    assert len(calls) == tried == len({tuple(each) for each in calls})
    calls.clear()
    assert descend(wait, np.array([9, 0]), anything, step=1, most=3)[2] == len(calls) == 3
