"""A type and a function of kernels that numba lacks; `parsim.engine.compile.lowering` has their code."""

from __future__ import annotations

from abc import ABC
from typing import Any

from numpy.typing import NDArray


class ByPointer(ABC):  # noqa: B024 - named tuples have no bases: these are registered
    """Named tuples that kernels pass as one pointer; numba would pass every pointer and size of an array by itself.

    The state of the general loop has 350 of these. Passed through a hundred functions they were two thirds of the code.
    Only kernels without reference counts take such a tuple: their caller keeps its arrays alive.
    """


by_pointer = ByPointer.register


def memmove(array: NDArray[Any], to: int, first: int, count: int) -> None:
    """Copy `count` entries of a contiguous array from `first` to `to`; they may overlap. Kernels call C's memmove."""
    array[to : to + count] = array[first : first + count]
