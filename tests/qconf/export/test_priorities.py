"""Whole priorities from 1 to 1023 keep the order of those of the configuration, and their ratios where they can."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qconf.config import QueueConfig
from qconf.export.priorities import scale


@given(st.lists(st.floats(1e-6, 1e9) | st.integers(1, 2000).map(float), min_size=1, max_size=12))
def test_scaling_keeps_the_order_and_the_ratios_it_claims(priorities):
    queues = [QueueConfig(name=f"q{i}", priority=p) for i, p in enumerate(priorities)]
    scaled = scale(queues)
    pairs = [(p, scaled.values[f"q{i}"]) for i, p in enumerate(priorities)]
    assert all(1 <= v <= 1023 for _, v in pairs)
    for p, v in pairs:
        for other, w in pairs:
            assert (p < other) == (v < w)
    if scaled.unit is not None:
        assert all(v * scaled.unit == Fraction(repr(p)) for p, v in pairs)


@pytest.mark.parametrize(
    ("priorities", "expected"),
    [
        ([40.0, 100.0], [40, 100]),
        ([2000.0, 1000.0], [2, 1]),
        ([0.1, 0.25], [2, 5]),
        ([1.0, 2.0, 99998.0, 99999.0], [1, 2, 1022, 1023]),
    ],
)
def test_scaling_by_hand(priorities, expected):
    queues = [QueueConfig(name=f"q{i}", priority=p) for i, p in enumerate(priorities)]
    assert list(scale(queues).values.values()) == expected
