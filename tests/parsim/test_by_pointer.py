"""Tuples that kernels hand on by pointer are those that Python made: the same arrays, and numbers as they were."""

from __future__ import annotations

import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from parsim import Pool, Queue, System, Workload
from parsim.engine.compile.compiled import kernel, routine, step
from parsim.engine.compile.lowering import Pointer
from parsim.engine.compile.native import by_pointer, memmove
from parsim.prepare.columns import prepare
from parsim.prepare.packing import pack


class Inner(NamedTuple):
    marks: NDArray[np.bool_]
    rate: float


@by_pointer
class Outer(NamedTuple):
    counts: NDArray[np.int64]
    inner: Inner
    limit: np.int64
    nothing: None
    table: NDArray[np.float64]


@step
def add(outer, i):
    outer.counts[i] += outer.limit
    outer.inner.marks[i] = True


@routine
def spread(outer, column):
    for row in range(outer.table.shape[0]):
        outer.table[row, column] = outer.inner.rate * row
    add(outer, column)


@kernel
def use(outer, times):
    for i in range(times):
        add(outer, i)
    spread(outer, 1)
    return outer.counts.sum() if outer.nothing is None else 0


@pytest.mark.parametrize("limit", [1, 2**40])
def test_functions_read_and_write_what_python_gave(limit):
    outer = Outer(np.zeros(4, np.int64), Inner(np.zeros(4, bool), 0.5), np.int64(limit), None, np.zeros((3, 4))[:, ::2])
    assert use(outer, 3) == 4 * limit
    assert outer.counts.tolist() == [limit, 2 * limit, limit, 0]
    assert outer.inner.marks.tolist() == [True, True, True, False]
    assert outer.table.tolist() == [[0, 0], [0, 0.5], [0, 1]]


def test_of_what_a_tuple_holds_as_many_references_are_left_as_before():
    outer = Outer(np.zeros(4, np.int64), Inner(np.zeros(4, bool), 0.5), np.int64(1), None, np.zeros((3, 2)))
    use(outer, 1)
    before = [sys.getrefcount(each) for each in (outer.counts, outer.inner.marks, outer.table)]
    for _ in range(1000):
        use(outer, 1)
    assert [sys.getrefcount(each) for each in (outer.counts, outer.inner.marks, outer.table)] == before


def test_what_counts_references_takes_none():
    outer = Outer(np.zeros(4, np.int64), Inner(np.zeros(4, bool), 0.5), np.int64(1), None, np.zeros((3, 2)))
    with pytest.raises(TypeError, match="without reference counts"):
        numba.njit(lambda outer: outer.counts.sum())(outer)


@kernel
def move(array, to, first, count):
    memmove(array, to, first, count)


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.float64])
@pytest.mark.parametrize(("to", "first"), [(0, 3), (3, 0), (2, 2)])
def test_entries_are_moved_where_they_overlap_too(kind, to, first):
    moved, expected = np.arange(9, dtype=kind), np.arange(9, dtype=kind)
    move(moved, to, first, 5)
    memmove(expected, to, first, 5)
    assert moved.tolist() == expected.tolist()
    assert expected[to : to + 5].tolist() == list(range(first, first + 5))


def test_only_neighbours_are_moved():
    with pytest.raises(numba.TypingError):
        move(np.arange(18)[::2], 0, 3, 5)


def test_a_state_is_handed_on_by_pointer():
    jobs = Workload(*np.array([[0, 1], [4, 1], [50, 9], [60, 10], [0, 0]]))
    system = System(5, [Queue(partition=4)], "hybrid", pool=Pool(1, 0))
    assert isinstance(numba.typeof(pack(prepare(jobs), system)), Pointer)
