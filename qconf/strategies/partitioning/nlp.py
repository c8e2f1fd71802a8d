"""The paper's program: minimise the weighted surrogates under sum, bounds and proportionality, from many starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qconf.strategies.partitioning.descent import descend
from qconf.strategies.partitioning.feasible import Feasible, Floats
from qconf.strategies.partitioning.sizes import Sizes
from qconf.strategies.partitioning.surrogate import Surrogate

STEPS = 100  # most iterations of a search
ENOUGH = 1e-9  # relative gain of a step below which a search ends
NEAR = 1  # decimals of the nodes at which a search ends; further ones depend on the processor


CONVERGED = (0, 8)  # exit states of SLSQP at a minimum, up to rounding
NODES = 4  # first step of the descent from the end of a search
MOVES = 500  # most divisions of a descent


@dataclass(frozen=True, eq=False)
class Minima:
    """Divisions with the least wait by the surrogates, best first, and how the searches ended."""

    divisions: list[Sizes]  # distinct, in nodes, within the constraints
    expected: list[float]  # weighted mean wait by the surrogates, seconds
    converged: int  # number of searches that ended at a minimum
    starts: int


def expected(surrogates: Sequence[tuple[float, Surrogate]], fractions: Floats) -> float:
    """Return the weighted mean wait predicted by the surrogates, seconds."""
    return float(sum(weight * surrogate(fractions) for weight, surrogate in surrogates))


def minimise(
    surrogates: Sequence[tuple[float, Surrogate]],
    feasible: Feasible,
    starts: Sequence[Sizes],
    rounding: str = "remainders",
) -> Minima:
    """Minimise ``sum(weight * surrogate(P / total))`` from every start, by SLSQP with analytic gradients.

    A search that ends in NaN is left out. Its end is rounded to whole nodes within the constraints, then nodes move
    while the prediction falls: searches end slightly differently on other processors, minima in whole nodes do not.

    References
    ----------
    Kondameedi and Vadhiyar, CCGrid 2017, section II.A, equations 1 to 6. Kraft, "A software package for sequential
    quadratic programming", DFVLR-FB 88-28, 1988.
    """
    from scipy.optimize import minimize

    if not surrogates:
        return Minima([], [], 0, 0)
    total, (rows, limits) = feasible.total, feasible.rows
    constraints: list[Any] = [{"type": "eq", "fun": lambda x: x.sum() - 1, "jac": np.ones_like}]
    if len(rows):
        constraints.append({"type": "ineq", "fun": lambda x: limits / total - rows @ x, "jac": lambda _: -rows})
    unit = max((abs(expected(surrogates, np.asarray(start) / total)) for start in starts), default=0.0) or 1.0

    def objective(fractions: Floats) -> float:
        return expected(surrogates, fractions) / unit

    def slope(fractions: Floats) -> Floats:
        return np.asarray(sum(weight * surrogate.gradient(fractions) for weight, surrogate in surrogates)) / unit

    def by_surrogates(nodes: Sizes) -> float:
        return round(expected(surrogates, nodes / total), 3)

    found: dict[tuple[int, ...], float] = {}
    converged = 0
    for start in starts:
        end = minimize(
            objective,
            np.asarray(start) / total,
            jac=slope,
            method="SLSQP",
            bounds=[(float(low / total), 1.0) for low in feasible.low],
            constraints=constraints,
            options={"maxiter": STEPS, "ftol": ENOUGH},
        )
        if not (np.isfinite(end.fun) and np.isfinite(end.x).all()):
            continue
        division = feasible.rounded(np.round(end.x * total, NEAR), rounding)
        if division is not None:
            converged += end.status in CONVERGED
            division, wait, _ = descend(by_surrogates, division, feasible.keeps, step=NODES, most=MOVES)
            found[tuple(division.tolist())] = wait
    ranked = sorted(found, key=lambda division: (found[division], division))
    return Minima(
        [np.array(division, dtype=np.int64) for division in ranked],
        [found[division] for division in ranked],
        converged,
        len(starts),
    )
