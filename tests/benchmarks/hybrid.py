"""Speed of hybrid with all its steps on a generated month: dp-nlp, splits, merges, the search of the pool.

``python -m tests.benchmarks.hybrid [workers]``: by nodes, and by the 35 232 cores. Compiling is not timed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from qconf.config import load
from qconf.evaluation.period import Period, TrainingSet
from qconf.history import clean, read
from qconf.strategies import propose
from qconf.synth import generate, write_history

CONFIG = Path(__file__).resolve().parents[2] / "configs" / "cray-xc40.yaml"
MONTHS = 9


def main(workers: int) -> None:
    """Print a row per month, by nodes and by cores."""
    nodes = load(CONFIG)
    cores = nodes.replace(machine={**nodes.machine.model_dump(), "whole_nodes": False})
    print(f"{'month':8} {'by':>5} {'jobs':>5} {'wall s':>7} {'CPU s':>6} {'pool':>6}")
    with tempfile.TemporaryDirectory() as folder:
        path = write_history(generate(months=MONTHS), Path(folder) / "log.csv")
        for base, unit in ((nodes, "nodes"), (cores, "cores")):
            history = clean(read([path]), base)
            periods = history.periods("month")
            _, start, end = periods[0]
            propose("hybrid", TrainingSet(Period.of(history.between(start, end), base)), {"samples": 20})
            for label, start, end in periods[-2:]:
                training = TrainingSet(Period.of(history.between(start, end), base))
                wall, used = time.perf_counter(), time.process_time()
                found = propose("hybrid", training, {"workers": workers})
                wall, used = time.perf_counter() - wall, time.process_time() - used
                (pool,) = [step for step in found.decisions if step["step"] == "pool"]
                print(f"{label:8} {unit} {len(training):5} {wall:7.1f} {used:6.1f} {pool['cores']:6}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
