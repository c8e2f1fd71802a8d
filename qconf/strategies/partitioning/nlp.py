"""The paper's program: least weighted surrogates under sum, bounds and proportionality, by SLSQP from many starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from qconf.strategies.partitioning.bounds import Bounds, proportional_matrix
from qconf.strategies.partitioning.sizes import Sizes, apportion
from qconf.strategies.partitioning.surrogate import Surrogate


@dataclass(frozen=True, eq=False)
class Minima:
    """Divisions of least surrogate wait, best first, and how the searches end."""

    divisions: list[Sizes]  # distinct, in nodes, within the bounds
    expected: list[float]  # weighted mean wait by the surrogates, seconds
    converged: int  # searches that SLSQP reports as a success
    starts: int


def minimise(
    surrogates: Sequence[tuple[float, Surrogate]], bounds: Bounds, total: int, starts: Sequence[Sizes]
) -> Minima:
    """Minimise ``sum(weight * surrogate(P / total))`` from every start.

    A search that raises, or that ends in NaN, is left out. Minima are rounded to whole nodes.

    References
    ----------
    Kondameedi and Vadhiyar, CCGrid 2017, equations 1 to 6.
    """
    if not surrogates:
        return Minima([], [], 0, 0)
    matrix, limit = proportional_matrix(bounds.share, bounds.slack, 1 / total)

    def objective(fractions: NDArray[np.float64]) -> float:
        return sum(weight * surrogate(fractions) for weight, surrogate in surrogates)

    def slope(fractions: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(sum(weight * surrogate.gradient(fractions) for weight, surrogate in surrogates))

    constraints = [{"type": "eq", "fun": lambda f: f.sum() - 1.0, "jac": lambda f: np.ones(f.size)}]
    if len(matrix):
        constraints.append({"type": "ineq", "fun": lambda f: limit - matrix @ f, "jac": lambda _: -matrix})
    found: dict[tuple[int, ...], float] = {}
    converged = 0
    scale = max(1.0, abs(objective(np.asarray(starts[0]) / total)))  # SLSQP's tolerances are absolute
    for start in starts:
        try:
            end = scipy.optimize.minimize(  # type: ignore[call-overload]
                lambda f: objective(f) / scale,
                np.asarray(start, dtype=np.float64) / total,
                jac=lambda f: slope(f) / scale,
                method="SLSQP",
                bounds=[(low / total, 1.0) for low in bounds.low],
                constraints=constraints,
                options={"maxiter": 200, "ftol": 1e-9},
            )
        except (ValueError, ArithmeticError, RuntimeError):  # the first is LAPACK on NaN
            continue
        if np.isfinite(end.x).all() and np.isfinite(end.fun) and end.x.sum() > 0:
            converged += bool(end.success)
            division = apportion(np.clip(end.x, 0, 1), total, bounds.low)
            found[tuple(division.tolist())] = objective(division / total)
    ranked = sorted(found, key=lambda division: (found[division], division))
    return Minima(
        [np.array(division, dtype=np.int64) for division in ranked],
        [found[division] for division in ranked],
        converged,
        len(starts),
    )
