"""Compile the kernels into the cache on disk before test processes start: each of them would compile the same ones."""

from __future__ import annotations

import sys

from joblib import cpu_count

from parsim.compiling import GROUPS, Compiling, collect_seldom, load, missing
from tests import fuzz

#: Disciplines whose first case takes a version of a kernel that no group does; those that take longest first.
VERSIONS = (
    *("throttled-held-reserve", "placed-alike", "preempt-throttled", "typed-alike", "throttled-divided"),
    *("typed-queues", "queue-nodes", "depth-throttled"),
)


def warm() -> None:
    """Compile what is not compiled.

    Raises
    ------
    RuntimeError
        A process failed.
    """
    groups = missing()
    running = Compiling([*VERSIONS, *groups] if groups else (), cpu_count(), "tests.warm")
    running.wait()
    if running.failed:
        raise RuntimeError(f"these kernels do not compile: {', '.join(running.failed)}")


if __name__ == "__main__":
    collect_seldom()
    load(name for name in sys.argv[1:] if name in GROUPS)
    for name in sys.argv[1:]:
        if name in VERSIONS:
            fuzz.case(name, 0).simulate()
    if not sys.argv[1:]:
        warm()
