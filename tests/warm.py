"""Compile the kernels into the cache on disk before test processes start: each of them would compile the same ones."""

from __future__ import annotations

import sys

from joblib import cpu_count

from parsim.compiling import Compiling, collect_seldom, missing
from tests import fuzz

#: Disciplines whose first case takes a version of a kernel that no group does; those that take longest first.
VERSIONS = (*("shortpool", "placed-alike", "preempt-throttled", "typed-alike", "needs:easy", "needs:queues"),)


def warm() -> None:
    """Compile what is not compiled.

    Raises
    ------
    RuntimeError
        A process failed.
    """
    groups = missing()
    running = Compiling([*VERSIONS, *groups] if groups else (), cpu_count(), dict.fromkeys(VERSIONS, "tests.warm"))
    running.wait()
    if running.failed:
        raise RuntimeError(f"these kernels do not compile: {', '.join(running.failed)}")


if __name__ == "__main__":
    collect_seldom()
    for name in sys.argv[1:]:
        fuzz.case(name, 0).simulate()
    if not sys.argv[1:]:
        warm()
