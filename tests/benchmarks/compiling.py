"""Time of the kernels' first compilation: ``python -m tests.benchmarks.compiling [GROUP ...]``.

Prints CPU seconds of the compiling process without imports, and the number of versions (a function for one set of
argument types), for each group of `parsim.compiling.GROUPS`; for named groups also by function, without callees.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from numba.core import event

from parsim.compiling import GROUPS, collect_seldom, needed


class Clock(event.Listener):  # type: ignore[misc]
    """Measures the compile time of each function, without its callees."""

    def __init__(self) -> None:
        self.taken: dict[str, list[float]] = {}  # function -> seconds of each version
        self._stack: list[tuple[float, float]] = []  # begin, seconds of callees

    def on_start(self, _: Any) -> None:
        self._stack.append((time.process_time(), 0.0))

    def on_end(self, ended: Any) -> None:
        function = ended.data["dispatcher"].py_func
        began, callees = self._stack.pop()
        whole = time.process_time() - began
        self.taken.setdefault(f"{function.__module__}.{function.__name__}", []).append(whole - callees)
        if self._stack:
            above, seconds = self._stack[-1]
            self._stack[-1] = above, seconds + whole


def one(group: str) -> dict[str, list[float]]:
    """Compile a group in this process; return by function the seconds of its versions."""
    collect_seldom()
    clock = Clock()
    event.register("numba:compile", clock)
    GROUPS[group].call()
    return clock.taken


def measured(group: str) -> dict[str, list[float]]:
    """Do the same as `one` in a separate process, without a disk cache."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        line = [sys.executable, "-m", __spec__.name, "one", group]
        done = subprocess.run(line, env=environment, check=True, capture_output=True, text=True)
        found: dict[str, list[float]] = json.loads(done.stdout)
        return found


def main() -> None:
    groups = sys.argv[1:]
    if groups[:1] == ["one"]:
        print(json.dumps(one(groups[1])))
        return
    totals = {}
    for group in groups or GROUPS:
        found = measured(group)
        totals[group] = sum(map(sum, found.values()))
        print(f"{group:24} {totals[group]:6.1f} s {sum(map(len, found.values())):4} versions", flush=True)
        for name, taken in sorted(found.items(), key=lambda each: -sum(each[1])) if groups else ():
            print(f"  {name:46} {sum(taken):6.2f} s {len(taken):3}")
    if not groups:
        print(f"{'all':24} {sum(totals.values()):6.1f} s")
        print(f"{'qconf tune':24} {sum(totals[group] for group in needed()):6.1f} s")


if __name__ == "__main__":
    main()
