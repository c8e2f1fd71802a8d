"""The polynomial that stands for the simulator: mean wait of one epoch as a function of the partition sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

DEGREES = (1, 2, 3)
PENALTIES = (1e-6, 1e-4, 1e-2, 1.0, 100.0)
FOLDS = 5


@dataclass(frozen=True, eq=False)
class Surrogate:
    """A fitted polynomial of degree at most 3 in the fractions of the machine, the last one left out (they sum to 1).

    Attributes
    ----------
    degree : int
    penalty : float
        Of the ridge regression; both chosen by cross-validation.
    r2, rmse : float
        Cross-validated; R^2 below 0 is worse than a constant. RMSE in seconds.
    """

    degree: int
    penalty: float
    r2: float
    rmse: float
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    powers: NDArray[np.int64]
    coefficients: NDArray[np.float64]
    intercept: float

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


def fit(fractions: NDArray[np.float64], waits: NDArray[np.float64], seed: int) -> Surrogate:
    """Fit a surrogate; degree and penalty by cross-validation over `FOLDS` folds.

    Parameters
    ----------
    fractions : ndarray(float64), shape (samples, k)
    waits : ndarray(float64), shape (samples,)
    seed : int
        Of the folds.
    """
    x = fractions[:, :-1]
    model = Pipeline(
        [("scale", StandardScaler()), ("powers", PolynomialFeatures(include_bias=False)), ("ridge", Ridge())]
    )
    search = GridSearchCV(
        model,
        {"powers__degree": DEGREES, "ridge__alpha": PENALTIES},
        scoring=("r2", "neg_root_mean_squared_error"),
        refit="neg_root_mean_squared_error",
        cv=KFold(min(FOLDS, len(x)), shuffle=True, random_state=seed % 2**32),
    ).fit(x, waits)
    best = search.best_estimator_
    at = search.best_index_
    return Surrogate(
        degree=int(search.best_params_["powers__degree"]),
        penalty=float(search.best_params_["ridge__alpha"]),
        r2=float(search.cv_results_["mean_test_r2"][at]),
        rmse=float(-search.cv_results_["mean_test_neg_root_mean_squared_error"][at]),
        mean=best["scale"].mean_,
        scale=best["scale"].scale_,
        powers=best["powers"].powers_,
        coefficients=best["ridge"].coef_,
        intercept=float(best["ridge"].intercept_),
    )
