"""The surrogate of the simulator: a polynomial for the mean wait of one epoch as a function of partition sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DEGREES = (1, 2, 3)
PENALTIES = (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0)
NO_PENALTY = 1e-9  # least penalty, which linearly dependent columns need
DIGITS = 7  # significant digits of a BLAS result; further ones depend on the processor
TIED = 4  # significant digits of errors; of penalties with equal errors the largest is taken
ENOUGH = 1.5  # least samples for each coefficient, beyond the first degree
FEWEST = 8  # least samples for a fit
NEAR = 12  # nearest samples, or half of all, with the largest weights in a fit near the best


class UnfittedError(Exception):
    """No polynomial can be fitted; the message has the reason."""


@dataclass(frozen=True, eq=False)
class Surrogate:
    """A fitted polynomial, of degree at most 3, in the fractions of the machine; the last is left out (they sum to 1).

    Cross-validation chose degree and penalty (of the ridge regression). With `logs` it predicts the logarithm of a
    second plus the wait, limited to the sampled range plus its spread on each side: no wait is negative or out of
    proportion.
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
    logs: bool
    least: float  # limits of the polynomial's value
    most: float
    crossed: Floats  # prediction for each sample by a fit without it, seconds, shape (samples,)

    def __call__(self, fractions: Floats) -> float:
        """Return the predicted mean wait, seconds; fractions of shape (k,)."""
        value = self._polynomial(fractions)
        return float(np.expm1(np.clip(value, self.least, self.most))) if self.logs else value

    def gradient(self, fractions: Floats) -> Floats:
        """Return the derivative by each fraction, shape (k,); the last is 0."""
        out = np.zeros(fractions.size)
        value = self._polynomial(fractions)
        if not self.least <= value <= self.most:
            return out
        for i in range(fractions.size - 1):
            lowered = self.powers.copy()
            lowered[:, i] = np.maximum(lowered[:, i] - 1, 0)
            out[i] = (self._terms(lowered, fractions) * self.powers[:, i] * self.coefficients).sum() / self.scale[i]
        return out * np.exp(value) if self.logs else out

    def _polynomial(self, fractions: Floats) -> float:
        return float(self.intercept + (self._terms(self.powers, fractions) * self.coefficients).sum())

    def _terms(self, powers: NDArray[np.int64], fractions: Floats) -> Floats:
        z = (fractions[:-1] - self.mean) / self.scale
        by_power = np.cumprod(np.vstack([np.ones_like(z), *[z] * self.degree]), axis=0)
        return np.asarray(by_power[powers, np.arange(z.size)].prod(axis=1))


def fit(
    fractions: Floats,
    waits: Floats,
    degrees: Sequence[int] = DEGREES,
    penalties: Sequence[float] = PENALTIES,
    *,
    logs: bool = True,
    weights: Floats | None = None,
    most: int | None = None,
) -> Surrogate:
    """Fit a surrogate to waits, shape (samples,), at fractions, shape (samples, k).

    Leave-one-out cross-validation chooses degree and penalty. A degree is skipped, unless it is the only one, if it has
    more coefficients than `most` or too many for the samples. `weights` are of the samples. Raises UnfittedError if
    there are too few samples, `most` is below the coefficients of the first degree, or a wait is not finite.
    """
    from sklearn import config_context
    from sklearn.linear_model import Ridge, RidgeCV
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    own, count = fractions[:, :-1], len(waits)
    if count < max(FEWEST, fractions.shape[1] + 1):
        raise UnfittedError(f"{count} divisions are too few for a polynomial in {fractions.shape[1]} sizes")
    if most is not None and most < fractions.shape[1]:
        raise UnfittedError(f"{most} jobs are fewer than the {fractions.shape[1]} parameters of a polynomial")
    if not np.isfinite(waits).all():
        raise UnfittedError("a mean wait is no number")
    goal = np.round(np.log1p(waits), 9) if logs else waits

    def pipeline(degree: int, last: object) -> Pipeline:
        features = PolynomialFeatures(degree, include_bias=False)
        return Pipeline([("scaled", StandardScaler()), ("terms", features), ("fit", last)])

    alphas = [max(penalty, NO_PENALTY) for penalty in penalties]
    found = []
    with config_context(assume_finite=True, skip_parameter_validation=True):
        for degree in degrees:
            coefficients = comb(own.shape[1] + degree, degree)
            if len(degrees) > 1 and degree > 1 and (ENOUGH * coefficients > count or coefficients > (most or count)):
                continue
            crossed = RidgeCV(alphas, scoring=_unscored, store_cv_results=True)
            fitted = pipeline(degree, crossed).fit(own, goal, fit__sample_weight=weights)
            by_others = crossed.cv_results_.reshape(count, len(alphas))
            errors = np.average((by_others - goal[:, None]) ** 2, axis=0, weights=weights)
            errors = np.array([float(f"{error:.{TIED - 1}e}") for error in errors])
            best = errors.size - 1 - int(np.argmin(errors[::-1]))
            found.append((errors[best], degree, penalties[best], alphas[best], by_others[:, best]))
        error, degree, penalty, alpha, by_others = min(found, key=lambda each: each[0])
        if len(degrees) * len(alphas) > 1:
            fitted = pipeline(degree, Ridge(alpha)).fit(own, goal, fit__sample_weight=weights)
    scaled, terms, last = (step for _, step in fitted.steps)
    if not np.isfinite(last.coef_).all():
        raise UnfittedError("its coefficients are no numbers")
    variance = float(np.average((goal - np.average(goal, weights=weights)) ** 2, weights=weights))
    spread = float(np.ptp(goal))
    floor, ceiling = (max(0.0, goal.min() - spread), goal.max() + spread) if logs else (-np.inf, np.inf)
    seconds = np.expm1(np.clip(by_others, floor, ceiling)) if logs else by_others
    return Surrogate(
        degree=degree,
        penalty=penalty,
        r2=1.0 - float(error) / variance if variance > 0 else 1.0,
        rmse=float(np.sqrt(((seconds - waits) ** 2).mean())),
        mean=scaled.mean_,
        scale=scaled.scale_,
        powers=terms.powers_.astype(np.int64),
        coefficients=_stable(last.coef_),
        intercept=float(_stable(np.array([last.intercept_]))[0]),
        logs=logs,
        least=float(floor),
        most=float(ceiling),
        crossed=seconds,
    )


def near(fractions: Floats, best: int) -> Floats:
    """Return weights of the samples that fall with the distance from sample `best`, in standard deviations."""
    spread = fractions.std(axis=0)
    apart = (fractions - fractions[best]) / np.where(spread > 0, spread, 1.0)
    distance = np.sqrt((apart**2).mean(axis=1))
    reach = np.sort(distance)[min(max(NEAR, len(distance) // 2), len(distance) - 1)]
    return np.asarray(1 / (1 + (distance / max(float(reach), 1e-12)) ** 4))


def _unscored(*_: object, **__: object) -> float:
    """Return no score: of a cross-validation only the predictions are used."""
    return 0.0


def _stable(values: Floats) -> Floats:
    """Round all values to `DIGITS` significant digits of the largest."""
    largest = float(np.abs(values).max(initial=0.0))
    return np.round(values, DIGITS - 1 - int(np.floor(np.log10(largest)))) if largest > 0 else values
