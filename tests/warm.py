"""Compile the kernels into the disk cache before test processes start; else each of them compiles all."""

from __future__ import annotations

from joblib import cpu_count

from parsim.compiling import Compiling, missing, seconds
from tests import fuzz

#: Disciplines whose first case needs a kernel version that no group compiles, with its compile time in seconds.
VERSIONS = {"typed-alike": 16}


def warm() -> None:
    """Compile the missing kernels, the slowest first; RuntimeError if a process fails."""
    groups = missing()
    names = seconds(groups) | ({f"tests.warm:{name}": taken for name, taken in VERSIONS.items()} if groups else {})
    running = Compiling(dict(sorted(names.items(), key=lambda each: -each[1])), cpu_count())
    running.wait()
    if running.failed:
        raise RuntimeError(f"of these some do not compile: {', '.join(running.failed)}")


def load(discipline: str) -> None:
    """Simulate the first case of a discipline, which compiles its version."""
    fuzz.case(discipline, 0).simulate()
