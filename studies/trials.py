"""How often the verdict is right: KEEP if there is nothing to gain, CHANGE if there is.

The months are generated, so the truth is known: the best configuration is what `auto` finds on many months together. On
other months of the same generator, the study counts how often ``qconf tune`` keeps that configuration, and how often it
changes one that was worsened until the best one gains a stated part of the mean wait.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click
import pandas as pd

from qconf.config import SiteConfig
from qconf.config import load as load_config
from qconf.errors import QconfError
from qconf.evaluation.period import Period, TrainingSet
from qconf.history import History, clean
from qconf.parallel import parallel_map
from qconf.recommend import Recommendation, recommend
from qconf.strategies import propose
from qconf.synth import generate_month, preset_named
from qconf.synth.presets import Preset
from qconf.text import markdown_table, write_whole
from studies import output
from studies.output import DOCS, REPORTS, ROOT, fingerprint, hash_of, load, paragraph, run, save
from studies.paper.plan import CRAY

PRESET = "cray-xc40"
LEAST_LOAD = 0.8  # offered load of every month
STRATEGIES = ("auto",)
TRAINING = 24  # months used to find the best configuration
#: The rules of the verdict were chosen with seeds 2, 4, 5 and 6, earlier rules with 3.
SEEDS = {"training": 1, "test": 7}
STEPS = 12  # bisection steps to worsen the base
FARTHEST = 2.0  # largest power of the cores in the worsened order
WIDE = 0.125  # share of the machine above which all jobs have the same priority


@dataclass(frozen=True)
class Trials:
    """A kind of trials: number of histories, months of each, and the best configuration's gain over the base."""

    gain: float  #: relative reduction of the mean wait over all histories; 0: the base is the best configuration
    months: int  #: months of each history
    count: int  #: number of histories


@dataclass(frozen=True)
class Tally:
    """The results of trials of one kind."""

    trials: Trials
    order: str  #: the base's order
    winners: list[str]  #: the recommended strategy of each history, ``current`` for KEEP
    ineligible: int  #: histories with KEEP by guard rails alone: an ineligible strategy gains beyond chance

    @property
    def changed(self) -> int:
        """The number of histories with the verdict CHANGE."""
        return sum(winner != "current" for winner in self.winners)


ALL = (
    Trials(0.0, 1, 100),
    Trials(0.2, 3, 100),
    *(Trials(gain, 1, 25) for gain in (0.1, 0.2, 0.3, 0.4)),
)


def run_all(
    trials: Sequence[Trials], training: int, work: Path, workers: int, progress: Callable[[str], None]
) -> list[Tally]:
    """Run all trials; results are stored in the folder `work`, and read while the code is the same."""
    # Only the order is tuned: starvation periods would bound how much worse another order can be.
    start = load_config(ROOT / "configs" / CRAY).replace(policy="may-change")
    preset = busy(preset_named(PRESET))
    stored = work / "trials.json"
    key = fingerprint([code(), start.model_dump(mode="json"), training])
    found = load(stored, key) or {"tallies": []}
    done = [Tally(**{**each, "trials": Trials(**each["trials"])}) for each in found["tallies"]]
    best: SiteConfig | None = None
    for each in trials:
        if any(tally.trials == each for tally in done):
            continue
        if best is None:
            progress(f"trials: the best configuration of {training} months")
            everything = history(preset, SEEDS["training"], range(training), start)
            best = propose("auto", TrainingSet(Period.of(everything, start)), {"workers": workers}).config
        progress(f"trials: {each.count} histories, {each.months} months each, gain {100 * each.gain:.0f} %")
        done.append(tally_of(each, best, preset, workers))
        save(stored, key, {"tallies": [asdict(tally) for tally in done]})
    return [tally for each in trials for tally in done if tally.trials == each]


def code() -> str:
    """Return a hash of the code that a verdict may depend on."""
    return hash_of(ROOT / "parsim", ROOT / "qconf")


def busy(preset: Preset) -> Preset:
    """Return the preset with only the months whose offered load is at least `LEAST_LOAD`."""
    return replace(preset, months=tuple(month for month in preset.months if month.load >= LEAST_LOAD))


def history(preset: Preset, seed: int, months: range, base: SiteConfig) -> History:
    """Generate consecutive months; return them read and cleaned like any log."""
    frame = pd.concat([generate_month(preset, index, seed) for index in months], ignore_index=True)
    return clean(output.records_of(frame), base)


def worsened(best: SiteConfig, gain: float, periods: Sequence[Period], workers: int) -> SiteConfig:
    """Return a base that favours wider jobs, so much that `best` gains `gain` over it on all these periods.

    Raises QconfError if no such base is bad enough.
    """

    def total(config: SiteConfig) -> float:
        return float(sum(parallel_map(workers, _total_wait, [(period, config) for period in periods])))

    def wider_first(power: float) -> SiteConfig:
        alike = int(WIDE * best.machine.cores)
        return best.replace(order=f"({best.order}) * min(ncpus, {alike}) ** {power:.4f}")

    if not gain:
        return best
    least, low, high = total(best), 0.0, FARTHEST
    for _ in range(STEPS):
        power = (low + high) / 2
        if 1 - least / total(wider_first(power)) < gain:
            low = power
        else:
            high = power
    if 1 - least / total(wider_first(high)) < gain:
        raise QconfError(f"no base is so much worse that {gain:.0%} are to be gained")
    return wider_first(high)


def _total_wait(period: Period, config: SiteConfig) -> int:
    return int(period.simulate(config).wait.sum())


def tally_of(trials: Trials, best: SiteConfig, preset: Preset, workers: int) -> Tally:
    """Run the trials of one kind."""
    spans = [range(i * trials.months, (i + 1) * trials.months) for i in range(trials.count)]
    generated = [(preset, SEEDS["test"], span, best) for span in spans]
    histories = parallel_map(workers, history, generated, processes=True)
    base = worsened(best, trials.gain, [Period.of(each, best) for each in histories], workers)
    verdicts = parallel_map(workers, verdict, [(each, base) for each in histories], processes=True)
    return Tally(trials, base.order, [winner for winner, _ in verdicts], sum(guarded for _, guarded in verdicts))


def verdict(past: History, base: SiteConfig) -> tuple[str, bool]:
    """Return the winner's name, and whether guard rails alone keep the base."""
    found: Recommendation = recommend(past, base, strategies=STRATEGIES)
    certain = [row for row in found.rows if row.bootstrap is not None and row.bootstrap.certain]
    return found.winner, found.verdict == "KEEP" and any(row.ineligible for row in certain)


def page(tallies: Sequence[Tally], training: int, name: str) -> str:
    """Return the page as Markdown."""
    titles = ["months in the history", "to be gained", "CHANGE", "KEEP", "of these by guard rails alone"]
    rows = [
        [
            str(t.trials.months),
            f"{100 * t.trials.gain:.0f} %",
            f"{t.changed} of {t.trials.count}",
            f"{t.trials.count - t.changed} of {t.trials.count}",
            str(t.ineligible),
        ]
        for t in tallies
    ]
    about = paragraph(ABOUT.format(training=training, load=LEAST_LOAD))
    return TEXT.format(command=name, about=about, table=markdown_table(titles, rows, left=0))


ABOUT = """\
The base is what `auto` finds on {training} generated months together; then the same, made worse until the former gains
a stated part of the mean wait over it on all test histories: wider jobs go ever more ahead of narrower ones, up to an
eighth of the machine. Every test history has another seed and an offered load of at least {load:g}. Where there is
nothing to gain the right verdict is KEEP, else CHANGE. Of one month strategies are evaluated on the last twenty days,
ten at a time.
"""
TEXT = """# KEEP and CHANGE: how often the verdict is right

Written by

    {command}

{about}
{table}
"""


@click.command("studies.trials")
@click.option("--count", type=click.IntRange(1), help="Histories of each kind.  [default: 100 or 25]")
@click.option(
    "--training", default=TRAINING, show_default=True, type=click.IntRange(1), help="Months to find the best on."
)
@output.folder("--out", DOCS, "Folder of trials.md.")
@output.folder("--work", REPORTS / "study", "Where finished trials are stored.", "reports/study")
@output.workers()
def command(*, count: int | None, training: int, out: Path, work: Path, workers: int) -> None:
    """Count how often `qconf tune` keeps what is best and changes what is not; an hour or two on two cores."""
    work.mkdir(parents=True, exist_ok=True)
    trials = [replace(each, count=count or each.count) for each in ALL]
    found = run_all(trials, training, work, workers, lambda text: click.echo(text, err=True))
    name = "python -m studies.trials" + (f" --count {count}" if count else "")
    name += f" --training {training}" if training != TRAINING else ""
    write_whole(out / "trials.md", page(found, training, name))
    click.echo(f"written: {out / 'trials.md'}")


if __name__ == "__main__":
    run(command)
