"""The surrogate of the simulator: a polynomial for the mean wait of one epoch in the partition sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sklearn.linear_model import RidgeCV
    from sklearn.preprocessing import PolynomialFeatures

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
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    powers: NDArray[np.int64]
    coefficients: NDArray[np.float64]
    intercept: float
    crossed: NDArray[np.float64]  # what is expected at each sample by a fit without it, seconds, shape (samples,)

    def __call__(self, fractions: NDArray[np.float64]) -> float:
        """Return the mean wait that the polynomial expects, seconds; fractions of shape (k,)."""
        z = (fractions[:-1] - self.mean) / self.scale
        return float(self.intercept + np.prod(z**self.powers, axis=1) @ self.coefficients)

    def gradient(self, fractions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the derivative by each fraction, shape (k,); the last is 0."""
        z = (fractions[:-1] - self.mean) / self.scale
        out = np.zeros(fractions.size)
        for i in range(z.size):
            lowered = self.powers.copy()
            factor = lowered[:, i].astype(np.float64)
            lowered[:, i] = np.maximum(lowered[:, i] - 1, 0)
            out[i] = (factor * np.prod(z**lowered, axis=1)) @ self.coefficients / self.scale[i]
        return out


def fit(fractions: NDArray[np.float64], waits: NDArray[np.float64], degrees: Sequence[int] = DEGREES) -> Surrogate:
    """Fit a surrogate to waits, shape (samples,), at fractions, shape (samples, k).

    Degree and penalty are chosen by leave-one-out cross-validation (of a ridge regression: in closed form).
    """
    from sklearn.linear_model import RidgeCV
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    scaler = StandardScaler().fit(fractions[:, :-1])
    z = scaler.transform(fractions[:, :-1])
    best: tuple[float, int, RidgeCV, PolynomialFeatures] | None = None
    for degree in degrees:
        features = PolynomialFeatures(degree, include_bias=False).fit(z)
        model = RidgeCV(PENALTIES, store_cv_results=True).fit(features.transform(z), waits)
        error = float(model.cv_results_.mean(axis=0).min())
        if best is None or error < best[0]:
            best = error, degree, model, features
    if best is None:
        raise ValueError("no degree to fit")
    error, degree, model, features = best
    # Leaving a sample out enlarges its residual and does not turn its sign.
    left_out = np.sqrt(model.cv_results_[:, int(np.argmin(model.cv_results_.mean(axis=0)))])
    residuals = waits - model.predict(features.transform(z))
    spread = float(np.var(waits))
    return Surrogate(
        degree=degree,
        penalty=float(model.alpha_),
        r2=1.0 - error / spread if spread > 0 else 1.0,
        rmse=float(np.sqrt(error)),
        mean=scaler.mean_,
        scale=scaler.scale_,
        powers=features.powers_,
        coefficients=model.coef_,
        intercept=float(model.intercept_),
        crossed=waits - np.copysign(left_out, residuals),
    )
