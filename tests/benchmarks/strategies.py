"""Time of strategies on the months of a log, without compilation: ``python -m tests.benchmarks.strategies NAME``.

``auto [TRACE] [WORKERS]``
    On a public log beside the project, KTH-SP2 or SDSC-SP2, with configurations per second.
``hybrid [WORKERS]``
    With all steps (dp-nlp, splits, merges, the search of the pool) on generated months, by nodes and by the 35 232
    cores.
``regret [MONTHS]``
    The distance of dp-nlp from the best division under its constraints, on generated months. Waits are weighted means
    over the epochs of a month, the training set; CPU seconds include the exact search for the best division.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

from qconf.config import SiteConfig, load
from qconf.evaluation.period import Period, TrainingSet
from qconf.history import clean, read
from qconf.strategies import Proposal, propose
from qconf.strategies.auto.families import FAMILIES
from qconf.synth import generate, write_history
from tests.beside import ROOT, TRACES

FEWEST = 1000  # jobs; months with fewer are left out
USUAL = 2500  # auto's speed is given for months of this many jobs
CRAY = ROOT / "configs" / "cray-xc40.yaml"


def months(path: Path, base: SiteConfig) -> Iterator[tuple[str, TrainingSet]]:
    """Yield the months of a log with their labels, as training sets."""
    history = clean(read([path]), base)
    for label, start, end in history.periods("month"):
        yield label, TrainingSet(Period.of(history.between(start, end), base))


def timed(name: str, training: TrainingSet, **options: int) -> tuple[Proposal, float, float]:
    """Run a strategy; return its proposal, wall-clock seconds and CPU seconds."""
    wall, used = time.perf_counter(), time.process_time()
    found = propose(name, training, options)
    return found, time.perf_counter() - wall, time.process_time() - used


def auto(name: str = "SDSC-SP2", workers: str = "2") -> None:
    """Print a row per month, then the sums."""
    (path,) = TRACES.glob(f"{name}-*.swf.gz")
    periods = list(months(path, load(ROOT / "configs" / f"{name.lower()}.yaml")))
    periods = [(label, training) for label, training in periods if len(training) >= FEWEST]
    propose("auto", periods[0][1].between(0, 2**62), {})  # compiles, on a copy of the month
    print(f"{'month':8} {'jobs':>5} {'tried':>6} {'wall s':>7} {'CPU s':>6} {f'a second of {USUAL} jobs':>22}")
    total = seconds = 0.0
    for label, training in periods:
        found, wall, used = timed("auto", training, workers=int(workers))
        tried = len(FAMILIES["formula"]) + sum(step["step"] == "compare" for step in found.decisions)
        scaled = tried * len(training) / USUAL
        total, seconds = total + scaled, seconds + wall
        print(f"{label:8} {len(training):5} {tried:6} {wall:7.2f} {used:6.2f} {scaled / wall:22.0f}")
    print(f"all: {seconds:.1f} s, {total / seconds:.0f} configurations of {USUAL} jobs a second")


def hybrid(workers: str = "2") -> None:
    """Print a row per month, by nodes and by cores."""
    nodes = load(CRAY)
    cores = nodes.replace(machine={**nodes.machine.model_dump(), "whole_nodes": False})
    print(f"{'month':8} {'by':>5} {'jobs':>5} {'wall s':>7} {'CPU s':>6} {'pool':>6}")
    with tempfile.TemporaryDirectory() as folder:
        path = write_history(generate(months=9), Path(folder) / "log.csv")
        for base, unit in ((nodes, "nodes"), (cores, "cores")):
            first, *_, before, last = months(path, base)
            propose("hybrid", first[1], {"samples": 20})
            for label, training in (before, last):
                found, wall, used = timed("hybrid", training, workers=int(workers))
                (pool,) = [step for step in found.decisions if step["step"] == "pool"]
                print(f"{label:8} {unit} {len(training):5} {wall:7.1f} {used:6.1f} {pool['cores']:6}", flush=True)


def regret(count: str = "9") -> None:
    """Print a row per month, and the mean."""
    with tempfile.TemporaryDirectory() as folder:
        periods = list(months(write_history(generate(months=int(count)), Path(folder) / "log.csv"), load(CRAY)))
    propose("dp-nlp", periods[0][1].between(0, 2**62))
    percents = []
    print(f"{'month':8} {'dp-nlp s':>9} {'optimum s':>9} {'above %':>8} {'slack':>6} {'samples':>7} {'CPU s':>6}")
    for label, training in periods:
        found, _, used = timed("dp-nlp", training)
        steps = {step["step"]: step for step in found.decisions}
        above = steps["regret"]
        percents.append(above["above_constrained_percent"])
        print(
            f"{label:8} {above['weighted_wait']:9.0f} {above['constrained_optimum']:9.0f} {percents[-1]:8.2f} "
            f"{steps['bounds']['slack']:6.3f} {steps['minimum']['samples']:7} {used:6.1f}"
        )
    print(f"mean above the constrained optimum: {mean(percents):.2f} %")


if __name__ == "__main__":
    {"auto": auto, "hybrid": hybrid, "regret": regret}[sys.argv[1]](*sys.argv[2:])
