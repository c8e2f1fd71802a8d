"""Speed of `auto` on the months of a public log: seconds, and configurations a second.

``python -m tests.benchmarks.auto [trace] [workers]``, for example KTH-SP2 1. Compiling is not timed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from qconf.config import load
from qconf.evaluation.period import Period, TrainingSet
from qconf.history import clean, read
from qconf.strategies import propose
from qconf.strategies.auto.families import FAMILIES
from tests.beside import TRACES

ROOT = Path(__file__).resolve().parents[2]
FEWEST = 1000  # jobs; months with fewer are left out
USUAL = 2500  # jobs to which speeds are scaled


def main(name: str, workers: int) -> None:
    """Print a row per month, then the sums."""
    base = load(ROOT / "configs" / f"{name.lower()}.yaml")
    (path,) = TRACES.glob(f"{name}-*.swf.gz")
    history = clean(read([path]), base)
    print(f"{'month':8} {'jobs':>5} {'tried':>6} {'wall s':>7} {'CPU s':>6} {f'a second of {USUAL} jobs':>22}")
    periods = [
        (label, TrainingSet(Period.of(history.between(start, end), base)))
        for label, start, end in history.periods("month")
    ]
    periods = [(label, training) for label, training in periods if len(training) >= FEWEST]
    propose("auto", periods[0][1].between(0, 2**62), {})
    total = seconds = 0.0
    for label, training in periods:
        wall, used = time.perf_counter(), time.process_time()
        found = propose("auto", training, {"workers": workers})
        wall, used = time.perf_counter() - wall, time.process_time() - used
        tried = len(FAMILIES["formula"]) + sum(step["step"] == "compare" for step in found.decisions)
        scaled = tried * len(training) / USUAL
        total, seconds = total + scaled, seconds + wall
        print(f"{label:8} {len(training):5} {tried:6} {wall:7.2f} {used:6.2f} {scaled / wall:22.0f}")
    print(f"all: {seconds:.1f} s, {total / seconds:.0f} configurations of {USUAL} jobs a second")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "SDSC-SP2", int(sys.argv[2]) if len(sys.argv) > 2 else 2)
