"""Speed of hybrid with all its steps on a generated month: dp-nlp, splits, merges, carving.

``python -m tests.benchmarks.hybrid [workers]``: chunks of a node, and of 5 of the 35 232 cores. Compiling is not timed.
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
    """Print a row per month and chunk size."""
    nodes = load(CONFIG)
    cores = nodes.replace(machine={**nodes.machine.model_dump(), "whole_nodes": False})
    print(f"{'month':8} {'chunk':>9} {'jobs':>5} {'wall s':>7} {'CPU s':>6} {'chunks':>6}")
    with tempfile.TemporaryDirectory() as folder:
        path = write_history(generate(months=MONTHS), Path(folder) / "log.csv")
        for base, chunk in ((nodes, "24 cores"), (cores, "5 cores")):
            history = clean(read([path]), base)
            periods = history.periods("month")
            _, start, end = periods[0]
            propose("hybrid", TrainingSet(Period.of(history.between(start, end), base)), {"samples": 20})
            for label, start, end in periods[-2:]:
                training = TrainingSet(Period.of(history.between(start, end), base))
                wall, used = time.perf_counter(), time.process_time()
                found = propose("hybrid", training, {"workers": workers, "chunk": int(chunk.split()[0])})
                wall, used = time.perf_counter() - wall, time.process_time() - used
                (pool,) = [step for step in found.decisions if step["step"] == "pool"]
                chunks = pool["cores"] // int(chunk.split()[0])
                print(f"{label:8} {chunk:>9} {len(training):5} {wall:7.1f} {used:6.1f} {chunks:6}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
