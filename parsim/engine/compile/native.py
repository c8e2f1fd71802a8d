"""What kernels use that numba has no code for: `parsim.engine.compile.lowering` has it."""

from __future__ import annotations

from abc import ABC
from typing import Any

from numpy.typing import NDArray


class ByPointer(ABC):  # noqa: B024 - named tuples have no bases: these are registered
    """Named tuples that kernels hand on as one pointer; numba makes an argument of every pointer and size of an array.

    The state of the general loop has 350 of these. Handed from each of a hundred functions to the next they were two
    thirds of what was compiled. Only kernels without reference counts take such a tuple: what calls them holds its
    arrays.
    """


by_pointer = ByPointer.register


def memmove(array: NDArray[Any], to: int, first: int, count: int) -> None:
    """Copy entries of a contiguous array to another place of it, which may overlap; kernels do so by C's function."""
    array[to : to + count] = array[first : first + count]
