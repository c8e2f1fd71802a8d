from itertools import product

import numpy as np
import pytest

from qconf.strategies.partitioning.divide import (
    Grid,
    best_division,
    best_proportional_division,
    nearly_best_proportional_division,
)


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


def test_a_grid_has_the_division_that_it_is_around_and_no_size_outside_its_range():
    nodes, low, high = np.array([50, 7, 43]), np.array([10, 5, 42]), np.array([90, 95, 100])
    grid = Grid.around(nodes, 4, low, high)
    assert all(size in sizes for size, sizes in zip(nodes, grid.sizes, strict=True))
    for sizes, a, b in zip(grid.sizes, low, high, strict=True):
        assert a <= sizes[0] < a + 4
        assert b - 4 < sizes[-1] <= b
        assert (np.diff(sizes) == 4).all()
    steps = (nodes - grid.first) // 4
    assert steps.sum() == grid.total
    assert (grid.nodes(steps) == nodes).all()


@pytest.mark.parametrize("seed", range(20))
def test_on_a_grid_the_best_proportional_division_is_the_best_of_those_on_it(seed):
    rng = np.random.default_rng(seed)
    total, unit, slack = 60, 4, 0.6
    share = np.array([0.2, 0.3, 0.5])
    low, nodes = np.array([2, 3, 4]), np.array([12, 17, 31])
    grid = Grid.around(nodes, unit, low, np.full(3, total))
    cost = [np.round(rng.random(sizes.size), 3) for sizes in grid.sizes]
    waits = [dict(zip(sizes.tolist(), column, strict=True)) for sizes, column in zip(grid.sizes, cost, strict=True)]
    every_one = [each for each in product(*waits) if sum(each) == total]
    kept = [each for each in every_one if min((np.array(each) + 1) / share) >= 0.4 * max((np.array(each) - 1) / share)]
    sizes, value, complete = best_proportional_division(cost, grid, low, share, slack, tolerance=1)
    assert complete
    assert tuple(sizes.tolist()) in kept
    assert value == pytest.approx(min(sum(w[s] for w, s in zip(waits, each, strict=True)) for each in kept))


def test_a_search_that_adds_up_too_many_costs_is_cut_short_and_says_so():
    rng = np.random.default_rng(0)
    share = np.array([0.2, 0.3, 0.5])
    grid = Grid(np.zeros(3, dtype=np.int64), 1, np.full(3, 101), 100)
    cost, low = [rng.random(101) for _ in range(3)], np.ones(3, dtype=np.int64)
    _, best, complete = best_proportional_division(cost, grid, low, share, 0.5)
    sizes, value, all_tried = best_proportional_division(cost, grid, low, share, 0.5, most=10_000)
    assert complete
    assert not all_tried
    assert sizes.sum() == 100
    assert value >= best


@pytest.mark.parametrize("seed", range(20))
def test_convex_costs_at_a_few_sizes_lead_near_the_best_proportional_division(seed):
    rng = np.random.default_rng(seed)
    total, low, slack = 400, np.array([5, 5, 5]), 0.5
    share = rng.dirichlet([2, 2, 2])
    work = 1000 * share * rng.uniform(0.3, 3, 3)
    everywhere = [each / np.arange(1, total + 2) for each in work]
    grid = Grid(np.zeros(3, dtype=np.int64), 1, np.full(3, total + 1), total)
    best, least, _ = best_proportional_division(everywhere, grid, low, share, slack, tolerance=1)
    few = [np.unique(np.round(np.geomspace(5, total, 40)).astype(np.int64))] * 3
    cost = [column[few[0]] for column in everywhere]
    found = nearly_best_proportional_division(few, cost, low, total, share, slack, within=best.astype(float))
    assert found.sum() == pytest.approx(total)
    assert (found >= low).all()
    assert sum(
        np.interp(size, np.arange(total + 1), column) for size, column in zip(found, everywhere, strict=True)
    ) <= (1.02 * least)
