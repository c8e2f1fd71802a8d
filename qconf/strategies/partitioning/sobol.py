"""Scrambled Sobol points: up to 16 dimensions those of ``scipy.stats.qmc``, which takes half a second to import."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BITS = 30  # of a coordinate

#: Of each dimension: a primitive polynomial, its coefficients as bits, and the first direction numbers. The first
#: dimension is van der Corput's, whose direction numbers are all 1.
DIRECTIONS: tuple[tuple[int, tuple[int, ...]], ...] = (
    (1, (1,) * BITS),
    (3, (1,)),
    (7, (1, 3)),
    (11, (1, 3, 1)),
    (13, (1, 1, 1)),
    (19, (1, 1, 3, 3)),
    (25, (1, 3, 5, 13)),
    (37, (1, 1, 5, 5, 17)),
    (41, (1, 1, 5, 5, 5)),
    (47, (1, 1, 7, 11, 19)),
    (55, (1, 1, 5, 1, 1)),
    (59, (1, 1, 1, 3, 11)),
    (61, (1, 3, 5, 5, 31)),
    (67, (1, 3, 3, 9, 7, 49)),
    (91, (1, 1, 1, 15, 21, 21)),
    (97, (1, 3, 1, 13, 27, 49)),
)


def sobol(count: int, dimensions: int, seed: int) -> NDArray[np.float64]:
    """Return points of a scrambled Sobol sequence in the unit cube, the first ones, shape (count, dimensions).

    Of more than 16 dimensions, sixteen at a time are those of another scrambled sequence, its points in random order.

    References
    ----------
    Joe and Kuo, "Constructing Sobol sequences with better two-dimensional projections", SIAM J. Sci. Comput. 30, 2008:
    the direction numbers. Matousek, "On the L2-discrepancy for anchored boxes", J. Complexity 14, 1998: the scrambling,
    by a random lower triangular matrix for each dimension, and a random shift. Antonov and Saleev 1979: the order.
    Owen, "Latin supercube sampling for very high-dimensional simulations", ACM TOMACS 8, 1998: several sequences.
    """
    random = np.random.default_rng(seed).spawn(1)[0]
    powers = 1 << np.arange(BITS)
    shifts = random.integers(2, size=(dimensions, BITS), dtype=np.uint32) @ powers
    matrices = np.tril(random.integers(2, size=(dimensions, BITS, BITS), dtype=np.uint32), -1)
    matrices[:, range(BITS), range(BITS)] = 1
    directions = np.array([_directions(*DIRECTIONS[d % len(DIRECTIONS)]) for d in range(dimensions)])
    bits = directions[:, None, :] >> np.arange(BITS)[::-1, None] & 1  # of each direction, from the highest on
    scrambled = powers[::-1] @ (matrices @ bits % 2)
    numbers = np.arange(count)
    gray = numbers ^ numbers >> 1
    chosen = np.where(gray[:, None, None] >> np.arange(BITS) & 1, scrambled, 0)
    points = (np.bitwise_xor.reduce(chosen, axis=2) ^ shifts) / (1 << BITS)
    for d in range(len(DIRECTIONS), dimensions, len(DIRECTIONS)):
        points[:, d : d + len(DIRECTIONS)] = points[random.permutation(count), d : d + len(DIRECTIONS)]
    return np.asarray(points)


def _directions(polynomial: int, first: tuple[int, ...]) -> list[int]:
    """Return the direction numbers of a dimension, as integers of so many bits."""
    degree = polynomial.bit_length() - 1
    found = list(first)
    while len(found) < BITS:
        number = found[-degree] ^ found[-degree] << degree
        for i in range(1, degree):
            if polynomial >> (degree - i) & 1:
                number ^= found[-i] << i
        found.append(number)
    return [number << (BITS - 1 - j) for j, number in enumerate(found)]
