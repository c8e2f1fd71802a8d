"""The surrogate of the simulator: a polynomial for the mean wait of one epoch in the partition sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qconf.evaluation.polynomial import Floats, exponents, products, ridge, terms

DEGREES = (1, 2, 3)
PENALTIES = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0)


@dataclass(frozen=True, eq=False)
class Surrogate:
    """A fitted polynomial of degree at most 3 in the fractions of the machine, the last one left out (they sum to 1).

    Degree and penalty (of the ridge regression) are chosen by cross-validation.
    """

    degree: int
    penalty: float
    r2: float  # cross-validated; below 0 is worse than a constant
    rmse: float  # cross-validated, seconds
    mean: Floats
    scale: Floats
    powers: NDArray[np.int64]
    coefficients: Floats
    intercept: float
    crossed: Floats  # what is expected at each sample by a fit without it, seconds, shape (samples,)

    def __call__(self, fractions: Floats) -> float:
        """Return the mean wait that the polynomial expects, seconds; fractions of shape (k,)."""
        return self.intercept + self._sum(self.powers, self.coefficients, fractions)

    def gradient(self, fractions: Floats) -> Floats:
        """Return the derivative by each fraction, shape (k,); the last is 0."""
        out = np.zeros(fractions.size)
        for i in range(fractions.size - 1):
            lowered = self.powers.copy()
            lowered[:, i] = np.maximum(lowered[:, i] - 1, 0)
            out[i] = self._sum(lowered, self.powers[:, i] * self.coefficients, fractions) / self.scale[i]
        return out

    def _sum(self, powers: NDArray[np.int64], coefficients: Floats, fractions: Floats) -> float:
        z = (fractions[:-1] - self.mean) / self.scale
        return float(products(terms(z[None], powers), coefficients[:, None])[0, 0])


def fit(
    fractions: Floats, waits: Floats, degrees: Sequence[int] = DEGREES, penalties: Sequence[float] = PENALTIES
) -> Surrogate:
    """Fit a surrogate to waits, shape (samples,), at fractions, shape (samples, k).

    Degree and penalty are chosen by leave-one-out cross-validation (of a ridge regression: in closed form).
    """
    own = fractions[:, :-1]
    mean = own.sum(axis=0) / len(own)
    spread = np.sqrt(((own - mean) ** 2).sum(axis=0) / len(own))
    scale = np.where(spread > 0, spread, 1.0)
    z = (own - mean) / scale
    found = []
    for degree in degrees:
        powers = exponents(z.shape[1], degree)[1:]  # without the constant: the intercept is not penalised
        features = terms(z, powers)
        for penalty in penalties:
            coefficients, intercept, errors = ridge(features, waits[:, None], penalty)
            error = float((errors**2).sum()) / len(waits)
            found.append((error, degree, penalty, powers, coefficients[:, 0], float(intercept[0]), errors[:, 0]))
    error, degree, penalty, powers, chosen, level, errors = min(found, key=lambda each: each[0])
    variance = float(((waits - waits.sum() / waits.size) ** 2).sum() / waits.size)
    return Surrogate(
        degree=degree,
        penalty=penalty,
        r2=1.0 - error / variance if variance > 0 else 1.0,
        rmse=float(np.sqrt(error)),
        mean=mean,
        scale=scale,
        powers=powers,
        coefficients=chosen,
        intercept=level,
        crossed=waits - errors,
    )
