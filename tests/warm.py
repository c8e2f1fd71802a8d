"""Compile the kernels into the cache on disk before test processes start: each of them would compile the same ones."""

from __future__ import annotations

from joblib import cpu_count

from parsim.compiling import Compiling, missing, seconds
from tests import fuzz

#: Disciplines whose first case takes a version of a kernel that no group does, and about how long it compiles.
VERSIONS = {"shortpool": 34, "typed-alike": 16, "needs:easy": 13}


def warm() -> None:
    """Compile what is not compiled, what takes longest first.

    Raises
    ------
    RuntimeError
        A process failed.
    """
    groups = missing()
    names = seconds(groups) | ({f"tests.warm:{name}": taken for name, taken in VERSIONS.items()} if groups else {})
    running = Compiling(dict(sorted(names.items(), key=lambda each: -each[1])), cpu_count())
    running.wait()
    if running.failed:
        raise RuntimeError(f"of these some do not compile: {', '.join(running.failed)}")


def load(discipline: str) -> None:
    """Call a version."""
    fuzz.case(discipline, 0).simulate()
