"""Speed-up by workers: ``python -m tests.benchmarks.workers COMMAND ...``, a ``tune`` or ``backtest`` without --out.

It runs the command alternately with one worker and with two. It prints the seconds between reading and writing, the
fraction of them on one thread only, and the CPU seconds of all processes; then the ratios of the medians.

    python -m tests.benchmarks.workers tune SDSC.swf.gz --config configs/sdsc-sp2.yaml --month 1998-09
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ROUNDS = 3
WORKERS = (1, 2)


def measured(words: list[str], workers: int) -> tuple[float, float, float]:
    """Run a command; return wall-clock seconds, the fraction on one thread, and CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        before = os.times()
        line = [sys.executable, "-m", "qconf", *words, "--quiet", "--workers", str(workers), "--out", folder]
        subprocess.run(line, check=True, capture_output=True)
        after = os.times()
        found = json.loads(Path(folder, "timings.json").read_text())
    seconds = found[words[0]]
    computed = after.children_user + after.children_system - before.children_user - before.children_system
    return seconds, found["one thread"] / seconds, computed


def main() -> None:
    words = sys.argv[1:]
    found: dict[int, list[tuple[float, float, float]]] = {workers: [] for workers in WORKERS}
    for _ in range(ROUNDS):
        for workers in WORKERS:
            found[workers].append(measured(words, workers))
            seconds, share, computed = found[workers][-1]
            print(f"{workers} workers: {seconds:6.2f} s, one thread {100 * share:4.1f} %, computed {computed:6.2f} s")
    one, several = ([median(column) for column in zip(*found[workers], strict=True)] for workers in WORKERS)
    ratios = f"seconds {several[0] / one[0]:.2f}, computed {several[2] / one[2]:.2f}"
    print(f"{WORKERS[1]} workers to one: {ratios}")
    print(f"share of one worker's seconds on one thread only: {100 * one[1]:.1f} %")


if __name__ == "__main__":
    main()
