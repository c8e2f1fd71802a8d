"""``python -m studies.surrogate``: compares dp-nlp's surrogates with searches of as many simulations without them.

Each training set is divided in five ways: by samples alone; by moves of nodes between two queues alone, from `pp` or
the middle of the feasible divisions; by samples, then moves; by dp-nlp; and, with more simulations, by a hundred
samples and sixty moves. Results are waits relative to the best division, which `exact` finds for the same constraints.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np

from qconf.config import load
from qconf.evaluation.period import Period, TrainingSet
from qconf.history import clean, read
from qconf.strategies.partitioning import dp_nlp
from qconf.strategies.partitioning.descent import descend
from qconf.strategies.partitioning.feasible import feasible_samples
from qconf.strategies.partitioning.options import DpNlpOptions
from qconf.strategies.partitioning.program import Program
from qconf.strategies.partitioning.regret import optimum
from qconf.strategies.partitioning.sizes import Sizes
from qconf.synth import generate
from qconf.text import markdown_table
from studies.output import ROOT, records_of, run, traces
from studies.paper import plan

MONTHS = 15
FEWEST = 500  # least jobs of a month
#: Whether surrogates are used, and most samples and simulations; None: the defaults.
WAYS = {
    "samples alone": (False, 60, 60),
    "moves alone": (False, 0, 60),
    "20 samples, then moves": (False, 20, 60),
    "100 samples, then moves": (False, 100, 160),
    "dp-nlp": (True, None, None),
}


def sets(folder: Path) -> Iterator[tuple[str, TrainingSet]]:
    """Yield (log, training set) of each month of the generated and the public logs."""
    logs = [("generated", records_of(generate(months=MONTHS)), plan.CRAY)]
    known = ((name, folder / file, config) for name, file, config in plan.TRACES)
    logs += [(name, read([path]), config) for name, path, config in known if path.is_file()]
    for name, records, config in logs:
        base = load(ROOT / "configs" / config)
        history = clean(records, base)
        for _, start, end in history.periods("month"):
            month = history.between(start, end)
            if len(month) >= FEWEST:
                yield name, TrainingSet(Period.of(month, base))


class Searched(Program):
    """The program without surrogates: samples, if any, then a search by simulation from the best of them."""

    def run(self) -> tuple[Sizes, float]:
        """Simulate the samples, then moves of nodes between two queues while these help, down to a node."""
        for nodes in self.known.values():
            self.simulate([nodes])
        if self.samples:
            found = feasible_samples(self.samples, self.feasible, self.options.seed)
            new = [each for each in found if tuple(each.tolist()) not in self.simulated]
            self.simulate(new[: self.samples - len(self.known)])
        elif self.feasible.middle is not None:
            self.simulate([self.feasible.middle])
        inside = self.ranked()
        if inside and len(self.simulated) < self.budget:
            known, most = {key: self.wait(key) for key in self.simulated}, self.budget - len(self.simulated)
            first = max(1, self.space.total // 32)
            descend(self.found, inside[0], self.feasible.keeps, step=first, most=most, known=known)
        return self.decided()

    def found(self, nodes: Sizes) -> float:
        """Simulate a division; return its weighted mean wait, seconds."""
        self.simulate([nodes], "move")
        return self.wait(nodes)


def measure(training: TrainingSet, *, surrogates: bool, samples: int | None, simulations: int | None) -> list[float]:
    """Return the wait above the optimum (relative), the simulations, and whether a surrogate proposed the result."""
    space, feasible = dp_nlp.constraints(training, DpNlpOptions())
    best = optimum(training, space, feasible).wait
    options = DpNlpOptions(samples=samples or None, simulations=simulations)
    program = (Program if surrogates else Searched)(training, options, space)
    if samples == 0:
        program.samples, program.budget = 0, simulations or 0
    _, wait = program.run()
    (decided,) = (step.record() for step in program.log if step.record()["step"] == "decide")
    return [wait / best - 1 if best else 0.0, len(program.simulated), decided["proposed_by"] == "surrogate"]


@click.command()
@traces
def command(traces: Path) -> None:
    """Print the table."""
    found: dict[tuple[str, str], list[list[float]]] = {}
    for name, training in sets(traces):
        for way, (surrogates, samples, simulations) in WAYS.items():
            values = measure(training, surrogates=surrogates, samples=samples, simulations=simulations)
            found.setdefault((name, way), []).append(values)
    rows = []
    for (name, way), measured in found.items():
        above, simulated, chosen = np.array(measured).T
        within = f"{int((above <= 0.01).sum())} of {len(above)}"
        by = f"{int(chosen.sum())} of {len(above)}" if way == "dp-nlp" else ""
        rows.append([name, way, f"{simulated.mean():.0f}", f"{100 * above.mean():.2f}", within, by])
    headers = ["months", "way", "simulations", "above exact, %", "within 1 %", "the surrogate's before any move"]
    click.echo(markdown_table(headers, rows, left=2))


if __name__ == "__main__":
    run(command)
