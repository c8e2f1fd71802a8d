"""The paper's program: least weighted surrogates under sum, bounds and proportionality, from many starts.

The search is the spectral projected gradient method. A projection onto the constraints is found by Hildreth's: each of
them in turn, until none moves the point. Neither needs a BLAS, so that the answer is the same on any processor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parsim.kernels.compiled import on_disk
from qconf.strategies.partitioning.bounds import Bounds, proportional_matrix
from qconf.strategies.partitioning.sizes import Sizes, apportion
from qconf.strategies.partitioning.surrogate import Surrogate

Floats = NDArray[np.float64]
STEPS = 300  # of one search at most
SWEEPS = 5000  # of one projection at most
MEMORY = 8  # steps, to the worst of which a step is compared: a little uphill now is far downhill later
ENOUGH = 1e-4  # part of the descent that the slope promises
NEAR = 0.01  # nodes by which a search may miss its end


@dataclass(frozen=True, eq=False)
class Minima:
    """Divisions of least surrogate wait, best first, and how the searches end."""

    divisions: list[Sizes]  # distinct, in nodes, within the bounds
    expected: list[float]  # weighted mean wait by the surrogates, seconds
    converged: int  # searches that end where no direction within the constraints goes down
    starts: int


def minimise(
    surrogates: Sequence[tuple[float, Surrogate]],
    bounds: Bounds,
    total: int,
    starts: Sequence[Sizes],
    rounding: str = "remainders",
) -> Minima:
    """Minimise ``sum(weight * surrogate(P / total))`` from every start.

    A search that ends in NaN is left out. Minima are rounded to whole nodes.

    References
    ----------
    Kondameedi and Vadhiyar, CCGrid 2017, section II.A, equations 1 to 6. Birgin, Martinez and Raydan, "Nonmonotone
    Spectral Projected Gradient Methods on Convex Sets", SIAM J. Optim. 10(4), 2000.
    """
    if not surrogates:
        return Minima([], [], 0, 0)
    matrix, limit = proportional_matrix(bounds.share, bounds.slack, 1 / total, one_sided=bounds.one_sided)
    rows = np.vstack([matrix, -np.eye(bounds.low.size)])
    limits = np.concatenate([limit, -bounds.low / total])

    def objective(fractions: Floats) -> float:
        return sum(weight * surrogate(fractions) for weight, surrogate in surrogates)

    def slope(fractions: Floats) -> Floats:
        return np.asarray(sum(weight * surrogate.gradient(fractions) for weight, surrogate in surrogates))

    def projected(point: Floats) -> Floats:
        return np.asarray(project(point, rows, limits, NEAR / total))

    found: dict[tuple[int, ...], float] = {}
    converged = 0
    for start in starts:
        end, ended = _descended(objective, slope, projected, np.asarray(start) / total, NEAR / total)
        if np.isfinite(objective(end)):
            converged += ended
            division = apportion(np.clip(end, 0, 1), total, bounds.low, rounding)
            found[tuple(division.tolist())] = objective(division / total)
    ranked = sorted(found, key=lambda division: (found[division], division))
    return Minima(
        [np.array(division, dtype=np.int64) for division in ranked],
        [found[division] for division in ranked],
        converged,
        len(starts),
    )


def _descended(
    objective: Callable[[Floats], float],
    slope: Callable[[Floats], Floats],
    projected: Callable[[Floats], Floats],
    start: Floats,
    near: float,
) -> tuple[Floats, bool]:
    """Return the best point of one search, and whether it ended in a minimum."""
    point = projected(start)
    value, gradient = objective(point), slope(point)
    best, least = point, value
    known = [value]
    scale = 1 / max(float(np.abs(gradient).max()), 1e-12)
    for _ in range(STEPS):
        move = projected(point - scale * gradient) - point
        promised = float((gradient * move).sum())
        if not np.isfinite(promised) or np.abs(move).max() < near or promised >= 0:
            return best, bool(np.isfinite(promised))
        part, worst = 1.0, max(known[-MEMORY:])
        while (value := objective(point + part * move)) > worst + ENOUGH * part * promised and part > near:
            part /= 2
        if part <= near:
            return best, True
        moved, before = part * move, gradient
        point, gradient = point + moved, slope(point + moved)
        known.append(value)
        if value < least:
            best, least = point, value
        bend = float((moved * (gradient - before)).sum())
        scale = float((moved**2).sum()) / bend if bend > 0 else 1 / max(float(np.abs(gradient).max()), 1e-12)
    return best, False


@on_disk
def project(point, rows, limits, near):  # type: ignore[no-untyped-def]
    """Return the nearest point with ``rows @ x <= limits`` that sums to 1."""
    found, pushed = point.copy(), np.zeros(limits.size)
    for _ in range(SWEEPS):
        total = 0.0
        for j in range(found.size):
            total += found[j]
        shift = (1.0 - total) / found.size
        for j in range(found.size):
            found[j] += shift
        most = abs(shift)
        for i in range(limits.size):
            over, square = -limits[i], 0.0
            for j in range(found.size):
                over += rows[i, j] * found[j]
                square += rows[i, j] * rows[i, j]
            push = max(over / square, -pushed[i])
            pushed[i] += push
            for j in range(found.size):
                found[j] -= push * rows[i, j]
            most = max(most, abs(push))
        if most < near / 10:
            break
    return found
