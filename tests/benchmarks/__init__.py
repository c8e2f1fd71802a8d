"""Benchmarks, each a command of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping


def alternating(runs: Mapping[str, Callable[[], object]], repeat: int) -> dict[str, float]:
    """Run each in turn, again and again, and return the fewest seconds of each; the first round compiles."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(1 + repeat):
        for name, run in runs.items():
            began = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - began)
    return {name: min(found[1:]) for name, found in seconds.items()}
