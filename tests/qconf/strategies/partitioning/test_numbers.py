"""Sobol points and linear programs, which scipy has too: the points are its own, the programs as good."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import qmc

from qconf.strategies.partitioning.linear import minimise
from qconf.strategies.partitioning.sobol import sobol


@pytest.mark.parametrize("dimensions", [1, 2, 3, 9, 20, 32, 33])
def test_the_points_of_scipy(dimensions) -> None:
    for seed, power in ((0, 1), (1, 6), (2**31, 13)):
        expected = qmc.Sobol(dimensions, rng=np.random.default_rng(seed)).random_base2(power)
        assert np.array_equal(sobol(2**power, dimensions, seed), expected)


def program(rng):
    n, rows = int(rng.integers(1, 8)), int(rng.integers(0, 20))
    matrix = rng.integers(-3, 4, (rows, n)) * rng.choice([1.0, 0.37], (rows, n))
    limit = rng.choice([0.0, 0.0, 0.5, 1.0, -0.2], rows)
    goal = rng.integers(-2, 3, n).astype(float)
    return goal, matrix, limit, float(rng.choice([0.0, 0.3, 1.0]))


def test_programs_are_solved_as_scipy_solves_them() -> None:
    rng, solved = np.random.default_rng(0), 0
    for _ in range(500):
        goal, matrix, limit, total = program(rng)
        found = minimise(goal, matrix, limit, total)
        inequalities = {"A_ub": matrix, "b_ub": limit} if len(matrix) else {}
        expected = linprog(goal, A_eq=np.ones((1, goal.size)), b_eq=[total], **inequalities)
        assert (found is None) == (expected.status == 2)
        if found is not None:
            solved += 1
            assert goal @ found == pytest.approx(expected.fun, abs=1e-7)
            assert (found > -1e-9).all()
            assert found.sum() == pytest.approx(total)
            assert (matrix @ found <= limit + 1e-7).all()
    assert 100 < solved < 400
