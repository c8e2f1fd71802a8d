"""Check that ``qconf tune`` ends in time: every partitioning strategy on few jobs, many queues, a million cores.

``python -m tests.benchmarks.ends [--limit SECONDS] [--cases NAME ...] [--strategies NAME ...]``. Every cell is a
process ``qconf tune --strategies NAME``, killed at the limit; the strategy ``tune`` means the default command. A cell
shows wall-clock seconds / CPU seconds.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from qconf.synth import write_history

STRATEGIES = ("tune", "pp", "static", "dp-nlp", "dqr", "hybrid", "exact")
DAYS, LOAD = 30, 1.0
WIDEST = 1 / 4  # of the machine


class Case(NamedTuple):
    """The size of a case: numbers of jobs, queues and cores."""

    jobs: int
    queues: int
    cores: int


CASES = {
    "few-jobs": Case(31, 4, 35_184),
    "two-queues": Case(3_000, 2, 100_000),
    "one-queue": Case(20_000, 1, 93_312),
    "million-2": Case(5_000, 2, 1_000_000),
    "million-5": Case(5_000, 5, 1_000_000),
    "million-10": Case(5_000, 10, 1_000_000),
    "many-queues": Case(5_000, 20, 1_000_000),
    "few-on-million": Case(300, 5, 1_000_000),
}


def history(case: Case, seed: int = 0) -> pd.DataFrame:
    """Return a month of jobs as history CSV columns; each queue has a range of widths, wider queues fewer jobs.

    Widths are log-uniform up to a quarter of the machine; run times are lognormal, scaled to the load.
    """
    rng = np.random.default_rng(seed)
    edges = np.geomspace(1, case.cores * WIDEST, case.queues + 1)
    share = edges[1:] ** -0.2
    queue = np.sort(rng.choice(case.queues, case.jobs, p=share / share.sum()))
    queue[: case.queues] = np.arange(case.queues)  # no queue is empty
    cores = np.maximum(1, (edges[queue] * (edges[queue + 1] / edges[queue]) ** rng.random(case.jobs)).astype(np.int64))
    runtime = np.exp(1.2 * rng.standard_normal(case.jobs))
    runtime = np.clip(runtime * LOAD * DAYS * 86400 * case.cores / (runtime @ cores), 60, 7 * 86400).astype(np.int64)
    submit = 1_577_836_800 + np.sort(rng.integers(0, DAYS * 86400, case.jobs))
    order = rng.permutation(case.jobs)
    columns = {
        "job_id": np.arange(1, case.jobs + 1),
        "submit": submit,
        "runtime": runtime[order],
        "walltime": 2 * runtime[order],
        "cores": cores[order],
        "queue": [f"q{i:02}" for i in queue[order]],
        "user": [f"u{i:02}" for i in rng.integers(0, 40, case.jobs)],
    }
    return pd.DataFrame(columns)


def computed() -> float:
    """Return the CPU seconds of all ended child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds(log: Path, case: Case, strategy: str, limit: float) -> str:
    """Tune, and return the text of a cell: wall-clock/CPU seconds, or the limit or error."""
    chosen = [] if strategy == "tune" else ["--strategies", strategy]
    with tempfile.TemporaryDirectory() as folder:
        given = ["--history", str(log), "--cores", str(case.cores), *chosen, "-o", f"{folder}/run"]
        began, before = time.perf_counter(), computed()
        try:
            words = [sys.executable, "-m", "qconf", "tune", *given]
            done = subprocess.run(words, capture_output=True, text=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            return f"> {limit:.0f}"
        wall, used = time.perf_counter() - began, computed() - before
    return f"{wall:.1f}/{used:.1f}" if done.returncode == 0 else f"exit {done.returncode}: {done.stderr.strip()[-200:]}"


def main() -> None:
    """Print a row per case with a column per strategy."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.ends", description=__doc__)
    parser.add_argument("--limit", type=float, default=120, help="seconds after which a run is ended")
    parser.add_argument("--cases", nargs="*", choices=CASES, default=[*CASES])
    parser.add_argument("--strategies", nargs="*", default=[*STRATEGIES])
    given = parser.parse_args()
    print(f"{'case':15} {'jobs':>6} {'queues':>6} {'cores':>8}", *(f"{name:>11}" for name in given.strategies))
    for name in given.cases:
        case = CASES[name]
        print(f"{name:15} {case.jobs:6} {case.queues:6} {case.cores:8}", end="", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            log = write_history(history(case), Path(folder) / f"{name}.csv.gz")
            for strategy in given.strategies:
                print(f" {seconds(log, case, strategy, given.limit):>11}", end="", flush=True)
        print(flush=True)


if __name__ == "__main__":
    main()
