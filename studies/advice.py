"""The stored prior of `auto`, and the value of `auto` on logs that are left out of its prior.

Every month of each log is simulated under all members of a family, with ageing by the longest waits of the months
before. The prior is the mean over months, then over the logs of each machine, then over machines; ``--write`` stores
it. In the tables each machine is left out of its own prior: `auto`, trained on the months before each month with the
prior of the others, is compared with orders that need no training.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import click
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from parsim.metrics import Summary
from qconf.backtest import prepare_periods
from qconf.backtest.results import log_scores
from qconf.backtest.walk_forward import evaluate, fixed_orders
from qconf.config import SiteConfig
from qconf.evaluation.period import Period
from qconf.evaluation.score import TAILS, weights
from qconf.history import History, clean, derive_config, read
from qconf.history.history import FEWEST
from qconf.strategies.auto.estimator import COLUMNS, MONTH, PRIOR, Prior, posterior, ranked
from qconf.strategies.auto.families import FAMILIES, AutoOptions, Member, usual_longest
from qconf.strategies.auto.frame import Frame
from qconf.strategies.auto.measures import Measure, logarithms, of_first_come, of_orders
from qconf.strategies.auto.search import POINTS, PRICES, climb
from qconf.synth import generate_month, preset_named
from qconf.text import markdown_table, write_whole
from studies import output
from studies.output import REPORTS, ROOT, fingerprint, hash_of, load, run, save

Floats = NDArray[np.float64]

#: Public logs by the beginnings of their file names, with the cores of the machine if the log's header lacks them.
LOGS = {"KTH-SP2": None, "SDSC-SP2": None, "HPC2N": None, "Theta-2022": 4360, "NASA": None, "lublin_256": None}
#: Generated machines: the number of months, and offered loads besides the machine's own.
PRESETS: Mapping[str, tuple[int, tuple[float, ...]]] = {
    "cray-xc40": (9, (0.5, 0.6, 0.7, 0.8, 0.9)),
    "mixed": (7, (0.6, 0.7, 0.8, 0.9, 1.0)),
    "curie": (3, (0.6, 0.7, 0.8, 0.9, 1.0)),
    "metacentrum": (4, ()),
    "ricc": (3, ()),
}
SEED = 11


@dataclass(frozen=True, eq=False)
class Log:
    """The log of a machine."""

    name: str
    machine: str
    history: History
    base: SiteConfig

    @property
    def months(self) -> list[Period]:
        """The calendar months with at least `FEWEST` jobs."""
        spans = [(each.start, each.end) for each in self.history.periods("month")]
        return [
            Period.of(self.history.between(*each), self.base) for each in spans if self.history.count(*each) >= FEWEST
        ]


def public(name: str, traces: Path) -> Log:
    """Read a public log; its configuration is derived."""
    records = read(sorted(traces.glob(f"{name}*.swf*"))[:1])
    base = derive_config(records, LOGS[name])
    return Log(name, name, clean(records, base), base)


def generated(preset: str, offered: float | None) -> Log:
    """Generate the months of a machine, at its own loads (None) or all at one."""
    months, _ = PRESETS[preset]
    frame = pd.concat([generate_month(preset, i, SEED, offered) for i in range(months)], ignore_index=True)
    records = output.records_of(frame)
    base = derive_config(records, preset_named(preset).cores)
    return Log(f"{preset} at {offered or 'its own loads'}", preset, clean(records, base), base)


def rows_of(months: Sequence[Period], members: Sequence[Member], workers: int) -> Floats:
    """Measure the members on each month but the first, aged by those before; shape (months - 1, members, 4)."""
    found, seen, days = [], np.zeros(len(months[0].base.queues)), 0.0
    for before, month in pairwise(months):
        seen, days = np.maximum(seen, of_first_come(before).longest), days + before.days
        known = np.maximum(seen, of_first_come(month).longest)
        orders = [
            each.order.formula(month.base.machine.cores, usual_longest(float(seen.max()), days)) for each in members
        ]
        places: dict[int, list[int]] = {}
        for i, each in enumerate(members):
            places.setdefault(each.delay, []).append(i)
        here: dict[int, Measure] = {}
        for delay, own in places.items():
            system = Frame(delay=delay).config(month, orders[0]).system()
            here |= zip(own, of_orders(month, system, tuple(orders[i] for i in own), workers), strict=True)
        found.append([logarithms(month, each, known)[: len(COLUMNS)] for _, each in sorted(here.items())])
    return np.array(found)


@dataclass(frozen=True, eq=False)
class Measured:
    """The measures of the members of all families on the months of a log."""

    name: str
    machine: str
    jobs: list[int]  #: number per month
    rows: Mapping[str, Floats]  #: by family, shape (months, members, 4)


def measured(name: str, machine: str, make: Callable[[], Log], work: Path, workers: int) -> Measured:
    """Measure a log; the result is stored in the folder `work`, and read while code and settings are the same."""
    stored = work / f"advice-{name.replace(' ', '-')}.json"
    named = {family: [each.name for each in members] for family, members in FAMILIES.items()}
    key = fingerprint(
        [hash_of(ROOT / "parsim", ROOT / "qconf" / "strategies" / "auto"), named, SEED, PRESETS.get(machine)]
    )
    found = load(stored, key)
    if found is None:
        months = make().months
        rows = {family: rows_of(months, members, workers) for family, members in FAMILIES.items()}
        found = {"jobs": list(map(len, months[1:])), "rows": {family: each.tolist() for family, each in rows.items()}}
        save(stored, key, found)
    return Measured(name, machine, found["jobs"], {family: np.array(each) for family, each in found["rows"].items()})


def prior_from(logs: Sequence[Measured], family: str, without: str = "") -> Floats:
    """Return the mean over machines of the mean over their logs and months; shape (members, 4)."""
    by_machine: dict[str, list[Floats]] = {}
    for each in logs:
        if each.machine != without:
            mean = np.average(each.rows[family], axis=0, weights=np.minimum(np.array(each.jobs) / MONTH, 1.0))
            by_machine.setdefault(each.machine, []).append(mean)
    return np.array(np.mean([np.mean(own, axis=0) for own in by_machine.values()], axis=0))


def prior_text(logs: Sequence[str], orders: Mapping[str, Sequence[float]]) -> str:
    """Return the prior as JSON, one line per order."""
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(orders[name])}" for name in sorted(orders))
    return f'{{"columns": {json.dumps(COLUMNS)},\n"logs": {json.dumps(logs)},\n"orders": {{\n{rows}\n}}}}\n'


def _looked_up(names: tuple[str, ...], values: Floats, members: tuple[Member, ...]) -> Floats:
    return values[[names.index(each.name) for each in members]]


def looked_up(family: str, values: Floats) -> Prior:
    """Return the prior of a family's members, as a function that `auto` calls."""
    return partial(_looked_up, tuple(each.name for each in FAMILIES[family]), values)


def advice(log: Log, prior: Prior, options: AutoOptions) -> dict[str, list[Summary]]:
    """Evaluate `auto`, trained on the months before each month, and the fixed orders; summaries by name and month."""
    every = prepare_periods(log.history, log.base, strategies=["fcfs-easy"]).every
    found = fixed_orders(every.folds, every.test)
    for name, kind in (("auto", ""), ("points", POINTS)):
        found[name] = [
            evaluate(fold, "auto", test, climb(training, options, prior=prior)[kind]).summary
            for fold, test, training in zip(every.folds, every.test, every.training, strict=True)
        ]
    return found


METRICS = ("mean_wait", "mean_bounded_slowdown", "max_wait")


def ratios(found: Mapping[str, Sequence[Summary]], name: str) -> str:
    """Return mean wait, mean slowdown and longest wait, means over the months, as parts of fcfs's, as text."""
    now, then = (np.mean([[month[m] for m in METRICS] for month in found[each]], axis=0) for each in (name, "fcfs"))
    return " / ".join(f"{each:.2f}" for each in now / np.maximum(then, 1e-9))


def advice_row(name: str, found: Mapping[str, Sequence[Summary]], options: AutoOptions) -> list[str]:
    """Return the table row of a log."""
    scores = log_scores(found, found["fcfs"], options.objective, options.tails)
    best = min((each for each in found if each not in ("auto", "points")), key=scores.__getitem__)
    regret = np.expm1(scores["auto"] - scores[best])
    return [
        name,
        str(len(found["auto"])),
        *(ratios(found, each) for each in ("auto", "points", "lxf", best)),
        best,
        f"{100 * regret:+.1f} %",
    ]


def curve(log: Measured, prior: Floats, family: str, objective: str) -> list[str]:
    """Return a cell for each weight of the tails: measures of the member chosen by the months before."""
    cells, rows = [], log.rows[family]
    for tails in PRICES:
        chosen: list[Floats] = []
        for i in range(len(rows)):
            expected = posterior(prior, rows[:i], log.jobs[:i])
            chosen.append(rows[i][int(np.argmin(ranked(FAMILIES[family], expected, weights(objective, tails))))])
        wait, slowdown, longest, _ = np.exp(np.mean(chosen, axis=0))
        cells.append(f"{wait:.2f} / {slowdown:.2f} / {longest:.2f}")
    return cells


@click.command("studies.advice")
@click.option("--logs", default=",".join(LOGS), show_default=True, help="Public logs of the tables, with commas.")
@click.option("--family", default="formula", show_default=True, type=click.Choice(tuple(FAMILIES)))
@click.option("--objective", default="mean-wait", show_default=True)
@click.option("--tails", default=TAILS, show_default=True, type=float)
@click.option("--write", is_flag=True, help="Store the prior of all machines where auto reads it.")
@output.traces
@output.folder("--work", REPORTS / "study", "Where finished logs are stored.", "reports/study")
@output.workers()
def command(
    *, logs: str, family: str, objective: str, tails: float, write: bool, traces: Path, work: Path, workers: int
) -> None:
    """Print the tables of docs/research/auto.md: the advice by log, and the curve of the tails."""
    work.mkdir(parents=True, exist_ok=True)
    makes: list[tuple[str, str, Callable[[], Log]]] = [(name, name, partial(public, name, traces)) for name in LOGS]
    for preset, (_, loads) in PRESETS.items():
        for each in (None, *loads):
            makes.append((f"{preset}-{each or 'own'}", preset, partial(generated, preset, each)))  # noqa: PERF401
    found: list[Measured] = []
    for name, machine, make in makes:
        found.append(measured(name, machine, make, work, workers))
        click.echo(f"{name}: {len(found[-1].jobs)} months", err=True)
    if write:
        orders = {
            each.name: row
            for kind, members in FAMILIES.items()
            for each, row in zip(members, prior_from(found, kind).round(4).tolist(), strict=True)
        }
        write_whole(PRIOR, prior_text([name for name, *_ in makes], orders))
    options = AutoOptions(orders=family, objective=objective, tails=tails, workers=workers)
    rows, curves = [], []
    for name in filter(None, logs.split(",")):
        values = prior_from(found, family, without=name)
        log = next(each for each in found if each.name == name)
        rows.append(advice_row(name, advice(public(name, traces), looked_up(family, values), options), options))
        curves.append([name, *curve(log, values, family, objective)])
        click.echo(" ".join(rows[-1]), err=True)
    titles = ["log", "months", "auto", "its points", "lxf", "best order that stays", "which", "against it"]
    click.echo(markdown_table(titles, rows))
    click.echo(markdown_table(["log", *(f"{each:g}" for each in PRICES)], curves))


if __name__ == "__main__":
    run(command)
