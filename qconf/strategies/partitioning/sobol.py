"""Points spread evenly over a cube: a scrambled Sobol sequence, number for number that of ``scipy.stats.qmc``.

`scipy.stats` takes a third of a second to import, in each process, and nothing else here needs it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BITS = 30  # of a coordinate

#: Of each dimension but the first: its primitive polynomial over GF(2), and the direction numbers that the recurrence
#: begins with (Joe and Kuo, SIAM J. Sci. Comput. 30(5), 2008: new-joe-kuo-6).
_DIRECTIONS = """
    3 1, 7 1 3, 11 1 3 1, 13 1 1 1, 19 1 1 3 3, 25 1 3 5 13, 37 1 1 5 5 17, 41 1 1 5 5 5, 47 1 1 7 11 19,
    55 1 1 5 1 1, 59 1 1 1 3 11, 61 1 3 5 5 31, 67 1 3 3 9 7 49, 91 1 1 1 15 21 21, 97 1 3 1 13 27 49,
    103 1 1 1 15 7 5, 109 1 3 1 15 13 25, 115 1 1 5 5 19 61, 131 1 3 7 11 23 15 103, 137 1 3 7 13 13 15 69,
    143 1 1 3 13 7 35 63, 145 1 3 5 9 1 25 53, 157 1 3 1 13 9 35 107, 167 1 3 1 5 27 61 31, 171 1 1 5 11 19 41 61,
    185 1 3 5 3 3 13 69, 191 1 1 7 13 1 19 1, 193 1 3 7 5 13 19 59, 203 1 1 3 9 25 29 41, 211 1 3 5 13 23 1 55,
    213 1 3 7 3 13 59 17
"""


def sobol(count: int, dimensions: int, seed: int) -> NDArray[np.float64]:
    """Return the first `count` points of the sequence, a power of two, scrambled by a seed; shape (count, dimensions).

    They are scrambled as Matousek (J. Complexity 14(4), 1998) has it: by a random lower triangular matrix over GF(2)
    for each dimension, then by a shift.
    """
    known = [[*map(int, each.split())] for each in _DIRECTIONS.split(",")]
    if dimensions > len(known) + 1:
        from scipy.stats import qmc  # noqa: PLC0415 - which has them for 21 201 dimensions

        return np.asarray(qmc.Sobol(dimensions, rng=np.random.default_rng(seed)).random(count))
    (rng,) = np.random.default_rng(seed).spawn(1)
    shift = rng.integers(0, 2, (dimensions, BITS), dtype=np.uint32) @ (1 << np.arange(BITS, dtype=np.uint32))
    mixing = np.tril(rng.integers(0, 2, (dimensions, BITS, BITS), dtype=np.uint32), -1) + np.eye(BITS, dtype=np.uint32)
    numbers = [[1] * BITS, *(_direction_numbers(*each) for each in known[: dimensions - 1])]
    high_first = np.arange(BITS - 1, -1, -1, dtype=np.uint32)
    bits = np.array(numbers, dtype=np.uint32)[:, None, :] << high_first >> high_first[:, None] & 1  # by bit and number
    columns = ((mixing @ bits % 2) << high_first[:, None]).sum(axis=1, dtype=np.uint32)
    places = np.arange(count, dtype=np.uint32)
    gray = (places ^ (places >> 1))[:, None] >> np.arange(BITS, dtype=np.uint32) & 1
    points = np.bitwise_xor.reduce(gray[:, None, :] * columns, axis=-1) ^ shift
    return np.asarray(points / 2.0**BITS)


def _direction_numbers(polynomial: int, *first: int) -> list[int]:
    """Continue direction numbers by the recurrence of a polynomial, up to `BITS` of them."""
    found, degree = list(first), len(first)
    for j in range(degree, BITS):
        number = found[j - degree]
        for k in range(1, degree + 1):
            if polynomial >> (degree - k) & 1:
                number ^= found[j - k] << k
        found.append(number)
    return found
