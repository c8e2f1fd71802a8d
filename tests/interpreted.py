"""Run kernels as plain Python: no compilation after a change, but a hundred times slower.

``python -m tests.interpreted MODULE ARGUMENTS``, ``pytest -p tests.interpreted FILE``, or the fixture ``interpreted``.
Tests always interpret the versions of the general event loop that few of them use: each takes 15 to 30 s to compile,
longer than those tests run.
"""

from __future__ import annotations

import math
import runpy
import sys
import types
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache, partial
from importlib import import_module
from operator import itemgetter
from typing import Any

import numpy as np
import pytest

from parsim.engine import order
from parsim.engine.compile import compiled
from parsim.engine.simulation import Simulation
from parsim.planning import conservative

simulate = import_module("parsim.simulate")  #: the module; in the package, a function has its name


class _Array(np.ndarray):
    """An array of records whose fields are attributes."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


@cache
def _with_attributes(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a dtype whose records have their fields as attributes: those of `numpy.rec` take ten times as long."""
    fields = {name: property(itemgetter(name), partial(_set, name)) for name in dtype.names or ()}
    return np.dtype((type("Record", (np.void,), fields), dtype))


def _set(name: str, record: Any, value: Any) -> None:
    record[name] = value


def _records(value: Any) -> Any:
    """Make the fields of structured arrays attributes, as in numba."""
    if isinstance(value, np.ndarray | np.void) and value.dtype.names:
        array = np.asarray(value).view(_with_attributes(value.dtype), _Array)
        return array if isinstance(value, np.ndarray) else array[()]
    if isinstance(value, tuple):
        return type(value)(*map(_records, value)) if hasattr(value, "_fields") else tuple(map(_records, value))
    return value


def _call(self: compiled.Compiled, *arguments: Any) -> Any:
    return self.py_func(*(map(_records, arguments) if "sources" in self._options else arguments))


def _power(x: float, y: float) -> float:
    """Return x to the power y as C does, without exceptions."""
    try:
        return math.pow(x, y)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan


@contextmanager
def interpreting() -> Iterator[None]:
    """Interpret kernels within the context."""
    made = {each.__name__: lambda *given, of=each: _records(of(*given)) for each in (np.empty, np.zeros)}
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        patch.setattr(compiled.Compiled, "__call__", _call)
        patch.setattr(order, "math", types.SimpleNamespace(**{**vars(math), "pow": _power}))
        patch.setattr(conservative, "np", types.SimpleNamespace(**{**vars(np), **made}))
        yield


def is_seldom(state: Simulation, heads: object) -> bool:
    """Whether few tests use the version of the general event loop for this simulation."""
    seldom = (state.placing, state.preempting, state.windows, state.node_types if heads is not None else None)
    return any(each is not None for each in seldom)


def interpret_seldom() -> None:
    """From now on, interpret the versions of the general event loop that few tests use."""
    compiled_loop = simulate.events

    def events(state: Simulation, plans: object, heads: object, placed: object) -> None:
        with interpreting() if is_seldom(state, heads) else nullcontext():
            compiled_loop(state, plans, heads, placed)

    simulate.events = events


_ENTERED = ExitStack()  #: keeps a reference, since an unreferenced context ends at once


def interpret() -> None:
    """From now on, interpret kernels."""
    _ENTERED.enter_context(interpreting())


def pytest_configure() -> None:
    """Interpret kernels in all tests, if this module is a pytest plugin."""
    interpret()


if __name__ == "__main__":
    module, sys.argv = sys.argv[1], sys.argv[1:]
    with interpreting():
        runpy.run_module(module, run_name="__main__", alter_sys=True)
