from itertools import product

import numpy as np
import pytest

from qconf.strategies.partitioning.divide import Grid, best_division, best_proportional_division


def every(total, low, high):
    for sizes in product(*(range(a, b + 1) for a, b in zip(low, high, strict=True))):
        if sum(sizes) == total:
            yield np.array(sizes)


def cost_of(cost, sizes):
    return sum(column[size] for column, size in zip(cost, sizes, strict=True))


@pytest.mark.parametrize("seed", range(40))
def test_the_division_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    k, total = int(rng.integers(1, 5)), int(rng.integers(4, 14))
    cost = [np.round(rng.random(total + 1), 2) for _ in range(k)]
    low = rng.integers(0, 4, k)
    high = low + rng.integers(0, total, k)
    least = min((cost_of(cost, each) for each in every(total, low, high)), default=np.inf)
    sizes, value = best_division(cost, low, high, total)
    assert value == pytest.approx(least)
    if np.isfinite(least):
        assert sizes.sum() == total
        assert (sizes >= low).all()
        assert (sizes <= high).all()
        assert cost_of(cost, sizes) == pytest.approx(least)
    else:
        assert sizes is None


@pytest.mark.parametrize("tolerance", [0, 1])
@pytest.mark.parametrize("seed", range(150))
def test_the_proportional_division_is_the_best_of_all_proportional_ones(seed, tolerance):
    rng = np.random.default_rng(100 + seed)
    k, total = int(rng.integers(2, 5)), int(rng.integers(6, 16))
    cost = [np.round(rng.random(total + 1), 2) for _ in range(k)]
    share = rng.random(k) * (rng.random(k) > 0.25)
    share = share / share.sum() if share.sum() > 0 else share
    low, slack = rng.integers(1, 3, k), float(rng.choice([0.2, 0.5, 0.8]))
    bound = [i for i in range(k) if share[i] > 0]

    def keeps(sizes):
        return all(
            i == j or (sizes[i] + tolerance) / share[i] >= (1 - slack) * (sizes[j] - tolerance) / share[j] - 1e-9
            for i in bound
            for j in bound
        )

    feasible = [each for each in every(total, low, [total] * k) if keeps(each)]
    least = min((cost_of(cost, each) for each in feasible), default=np.inf)
    whole = Grid(np.zeros(k, dtype=np.int64), 1, np.full(k, total + 1), total)
    sizes, value, complete = best_proportional_division(cost, whole, low, share, slack, tolerance=tolerance)
    assert complete
    assert value == pytest.approx(least)
    assert (sizes is None) == (not feasible)
    if feasible:
        assert keeps(sizes)
