"""Count the elements of waiting lists, their blocks and profiles that a visit reads; unlike a time, it is exact.

Kernels are interpreted and every queue counts as deep from the first event, so that a few hundred jobs use the
algorithms for ten thousands. Each single element that is read counts; slices and running jobs do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from parsim import Schedule, Workload
from parsim.engine.fast import listed
from parsim.engine.resources.profile import Profile
from parsim.engine.simulation import Waiting
from parsim.planning.conservative import Plan
from parsim.planning.made_room import Noted
from parsim.planning.plan import PlannedRun
from parsim.planning.planner import Planner
from parsim.prepare import one_list, packing
from tests.interpreted import interpreting

COUNTED = (Waiting, listed.Listed, listed.Directory, Profile, Plan, Noted, Planner)


class _Column(np.ndarray):  # type: ignore[type-arg]
    """An array that counts reads of its elements."""

    read = 0  #: reads of all arrays

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        if not isinstance(found, np.ndarray):
            _Column.read += 1
        return found

    def __iter__(self) -> Iterator[Any]:
        return map(self.__getitem__, range(len(self)))


def _new(cls: Any, *columns: Any, **named: Any) -> Any:
    """Replacement of a named tuple's `__new__`: its arrays become counting ones."""
    columns += tuple(named[field] for field in cls._fields[len(columns) :])
    plain = [isinstance(column, np.ndarray) and not column.dtype.names for column in columns]
    return tuple.__new__(
        cls, [column.view(_Column) if counts else column for column, counts in zip(columns, plain, strict=True)]
    )


@contextmanager
def counting() -> Iterator[None]:
    """Interpret kernels within the context, and count their reads."""
    depths = {"DEEP": 2, "SHALLOW": 1, "MANY": 32}
    deep = ((packing, "LOOKS", -1), (one_list, "MANY", 0), *((listed, *each) for each in depths.items()))
    with interpreting(), pytest.MonkeyPatch.context() as patch:
        for each in deep:
            patch.setattr(*each)
        for each in COUNTED:
            patch.setattr(each, "__new__", _new)
        yield


def reads_a_visit(run: Callable[[Workload], Any], workload: Workload) -> float:
    """Return the elements that a simulation reads per instant with a submit or end."""
    _Column.read = 0
    result = run(workload)
    schedule: Schedule = result.schedule if isinstance(result, PlannedRun) else result
    return _Column.read / np.union1d(schedule.submit, schedule.end).size
