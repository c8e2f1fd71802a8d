"""Polynomials fitted by least squares with a ridge penalty: the same bytes whatever the processor.

A BLAS has other kernels for each processor, which round otherwise, and then other minima and other ties follow. These
loops add up in one order. numba neither reorders nor contracts them.
"""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from parsim.engine.compile.compiled import on_disk

Floats = NDArray[np.float64]
NEGLIGIBLE = 1e-10  # part of the mean diagonal that is always added to it: a column may be a sum of others


def exponents(variables: int, degree: int) -> NDArray[np.int64]:
    """Return the powers of all products of at most `degree` variables, shape (terms, variables), the constant first."""
    rows = [
        np.bincount(np.array(chosen, dtype=np.int64), minlength=variables)
        for d in range(degree + 1)
        for chosen in combinations_with_replacement(range(variables), d)
    ]
    return np.array(rows, dtype=np.int64).reshape(-1, variables)


@on_disk
def terms(points, powers):  # type: ignore[no-untyped-def]
    """Return the products of each point, shapes (n, variables) and (terms, variables) to (n, terms)."""
    out = np.ones((points.shape[0], powers.shape[0]))
    for row in range(points.shape[0]):
        for term in range(powers.shape[0]):
            for variable in range(powers.shape[1]):
                for _ in range(powers[term, variable]):
                    out[row, term] *= points[row, variable]
    return out


@on_disk
def products(a, b):  # type: ignore[no-untyped-def]
    """Return ``a @ b`` with every sum in the order of the rows of `b`, shapes (n, k) and (k, m) to (n, m)."""
    out = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            for column in range(b.shape[1]):
                out[i, column] += a[i, j] * b[j, column]
    return out


@on_disk
def _solved(matrix, right):  # type: ignore[no-untyped-def]
    """Solve a symmetric positive definite system by its Cholesky factor, shapes (k, k) and (k, m) to (k, m)."""
    k = matrix.shape[0]
    low = np.zeros((k, k))
    for i in range(k):
        for j in range(i + 1):
            rest = matrix[i, j]
            for m in range(j):
                rest -= low[i, m] * low[j, m]
            low[i, j] = np.sqrt(max(rest, 1e-300)) if i == j else rest / low[j, j]
    found = right.copy()
    for column in range(right.shape[1]):
        for i in range(k):
            for m in range(i):
                found[i, column] -= low[i, m] * found[m, column]
            found[i, column] /= low[i, i]
        for i in range(k - 1, -1, -1):
            for m in range(i + 1, k):
                found[i, column] -= low[m, i] * found[m, column]
            found[i, column] /= low[i, i]
    return found


def ridge(features: Floats, values: Floats, penalty: float) -> tuple[Floats, Floats, Floats]:
    """Fit ``intercept + features @ coefficients`` to `values`; shapes (n, k) and (n, m), the penalty on coefficients.

    Returns coefficients, shape (k, m), intercepts, shape (m,), and for each row the error of a fit to the others, in
    closed form, shape (n, m).
    """
    n, k = features.shape
    middle, level = features.sum(axis=0) / n, values.sum(axis=0) / n
    rows, goal = np.ascontiguousarray(features - middle), np.ascontiguousarray(values - level)
    across = np.ascontiguousarray(rows.T)
    gram = products(across, rows) if k <= n else products(rows, across)
    least = NEGLIGIBLE * max(float(np.trace(gram)) / max(len(gram), 1), 1e-300)
    penalised = gram + max(penalty, least) * np.eye(len(gram))
    # From values to coefficients, shape (k, n): the two are equal, and the system is that with fewer unknowns.
    inverse = _solved(penalised, across) if k <= n else products(across, _solved(penalised, np.eye(n)))
    coefficients = products(inverse, goal)
    leverage = 1 / n + (rows * inverse.T).sum(axis=1)
    errors = (goal - products(rows, coefficients)) / np.maximum(1 - leverage[:, None], NEGLIGIBLE)
    return coefficients, level - (middle[:, None] * coefficients).sum(axis=0), errors
