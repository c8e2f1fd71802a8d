"""How far dp-nlp is from the best division under its constraints, on the generated months.

``python -m tests.benchmarks.regret [months]``. Waits are weighted means over the epochs of a month, which is the
training set. Seconds are CPU seconds, the exact search for the best division among them.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from statistics import mean

from qconf.config import load
from qconf.evaluation.period import Period, TrainingSet
from qconf.history import clean, read
from qconf.strategies import propose
from qconf.synth import generate, write_history

CONFIG = Path(__file__).resolve().parents[2] / "configs" / "cray-xc40.yaml"


def main(months: int) -> None:
    """Print a row per month, and the mean."""
    base = load(CONFIG)
    with tempfile.TemporaryDirectory() as folder:
        history = clean(read([write_history(generate(months=months), Path(folder) / "log.csv")]), base)
    percents = []
    _, start, end = history.periods("month")[0]
    propose("dp-nlp", TrainingSet(Period.of(history.between(start, end), base)))  # compiles
    print(f"{'month':8} {'dp-nlp s':>9} {'optimum s':>9} {'above %':>8} {'slack':>6} {'samples':>7} {'CPU s':>6}")
    for label, start, end in history.periods("month"):
        training = TrainingSet(Period.of(history.between(start, end), base))
        began = time.process_time()
        steps = {step["step"]: step for step in propose("dp-nlp", training, {}).decisions}
        taken = time.process_time() - began
        regret = steps["regret"]
        percents.append(regret["above_constrained_percent"])
        print(
            f"{label:8} {regret['weighted_wait']:9.0f} {regret['constrained_optimum']:9.0f} {percents[-1]:8.2f} "
            f"{steps['bounds']['slack']:6.3f} {steps['minimum']['samples']:7} {taken:6.1f}"
        )
    print(f"mean above the constrained optimum: {mean(percents):.2f} %")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
