"""How often the answer is right: KEEP where nothing is to be gained, CHANGE where something is.

The generator is ours, so the truth is known: what `auto` finds on many months together is taken for the best that there
is. Fresh months of the same generator show how often ``qconf tune`` leaves it alone, and how often it changes a
configuration that was worsened until the best one gains a stated part of the mean wait on those months.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click
import pandas as pd

from qconf.config import SiteConfig, load
from qconf.errors import QconfError
from qconf.evaluation.period import Period, TrainingSet
from qconf.history import History, clean, read
from qconf.parallel import parallel_map
from qconf.recommend import Recommendation, recommend
from qconf.strategies import Options, propose
from qconf.synth import generate_month, preset_named, write_history
from qconf.synth.presets import Preset
from qconf.text import as_json, markdown_table, write_whole
from studies.paper.pieces import ROOT, hash_of
from studies.paper.plan import CRAY

PRESET = "cray-xc40"
LEAST_LOAD = 0.8  # offered load of every month
SEARCHED = ("auto", "auto-fitted", "auto-guarded")
LEARNED = 24  # months from which the best configuration is found
#: With 2, 4 and 5 the rules of the verdict were chosen, with 3 those before them were tried.
SEEDS = {"learned": 1, "fresh": 6}
STEPS = 12  # of the bisection that worsens the base
FARTHEST = 2.0  # largest power of the cores that worsens it
WIDE = 0.125  # share of the machine above which all jobs go first alike


@dataclass(frozen=True)
class Trials:
    """What is tried: how many histories of how many months, and what the best configuration gains there.

    Attributes
    ----------
    gain : float
        Of the mean wait, on all these histories together; 0 where the base is the best configuration itself.
    months : int
        Of each history.
    count : int
        Histories.
    """

    gain: float
    months: int
    count: int


@dataclass(frozen=True)
class Tally:
    """What was answered.

    Attributes
    ----------
    trials : Trials
    order : str
        Of the waiting list of the base.
    answers : list of str
        One for each history: the winner's name, ``current`` for KEEP.
    ineligible : int
        Histories that end with KEEP although a strategy that may not be recommended would have gained: the guard rails.
    """

    trials: Trials
    order: str
    answers: list[str]
    ineligible: int

    @property
    def changed(self) -> int:
        """Histories on which the answer was CHANGE."""
        return sum(answer != "current" for answer in self.answers)


ALL = (
    Trials(0.0, 1, 100),
    Trials(0.2, 3, 100),
    *(Trials(gain, 1, 25) for gain in (0.1, 0.2, 0.3, 0.4)),
)


def run(trials: Sequence[Trials], learned: int, work: Path, workers: int, tell: Callable[[str], None]) -> list[Tally]:
    """Make all trials; what is finished is kept in the folder `work` for as long as the code is the same."""
    start = load(ROOT / "configs" / CRAY)
    preset = busy(preset_named(PRESET))
    kept = work / "trials.json"
    key = hashlib.sha256(json.dumps([code(), start.model_dump(mode="json"), learned]).encode()).hexdigest()
    found = _load(kept, key)
    best: SiteConfig | None = None
    for each in trials:
        if any(tally.trials == each for tally in found):
            continue
        if best is None:
            tell(f"trials: the best configuration of {learned} months")
            everything = history(preset, SEEDS["learned"], range(learned), start)
            best = propose("auto", TrainingSet(Period.of(everything, start)), Options(workers=workers)).config
        tell(f"trials: {each.count} histories, {each.months} months each, gain {100 * each.gain:.0f} %")
        found.append(_tally(each, best, preset, workers))
        write_whole(kept, as_json({"key": key, "tallies": [asdict(tally) for tally in found]}))
    return [tally for each in trials for tally in found if tally.trials == each]


def code() -> str:
    """Hash of all that an answer may depend on."""
    return hash_of(ROOT / "parsim", ROOT / "qconf")


def busy(preset: Preset) -> Preset:
    """Return the machine with only those of its months that ask for enough."""
    return replace(preset, months=tuple(month for month in preset.months if month.load >= LEAST_LOAD))


def history(preset: Preset, seed: int, months: range, base: SiteConfig) -> History:
    """Generate consecutive months, and read them as any log is read."""
    frame = pd.concat([generate_month(preset, index, seed) for index in months], ignore_index=True)
    with tempfile.TemporaryDirectory() as folder:
        return clean(read([write_history(frame, Path(folder, "history.csv.gz"))]), base)


def worsened(best: SiteConfig, trials: Trials, months: Sequence[Period], workers: int) -> SiteConfig:
    """Let wider jobs go first, more and more, until `best` gains that much over it on these months together."""

    def total(config: SiteConfig) -> float:
        return float(sum(parallel_map(workers, _waited, [(month, config) for month in months])))

    def wider_first(power: float) -> SiteConfig:
        alike = int(WIDE * best.machine.cores)
        return best.replace(order=f"({best.order}) * min(ncpus, {alike}) ** {power:.4f}")

    if not trials.gain:
        return best
    least, low, high = total(best), 0.0, FARTHEST
    for _ in range(STEPS):
        power = (low + high) / 2
        if 1 - least / total(wider_first(power)) < trials.gain:
            low = power
        else:
            high = power
    if 1 - least / total(wider_first(high)) < trials.gain:
        raise QconfError(f"no base is so much worse that {trials.gain:.0%} are to be gained")
    return wider_first(high)


def _waited(period: Period, config: SiteConfig) -> int:
    return int(period.simulate(config).wait.sum())


def _tally(trials: Trials, best: SiteConfig, preset: Preset, workers: int) -> Tally:
    spans = [range(i * trials.months, (i + 1) * trials.months) for i in range(trials.count)]
    drawn = [(preset, SEEDS["fresh"], span, best) for span in spans]
    histories = parallel_map(workers, history, drawn, processes=True)
    months = [Period.of(each, best) for each in histories]
    base = worsened(best, trials, months, workers)
    answers = parallel_map(workers, _answer, [(each, base) for each in histories], processes=True)
    return Tally(trials, base.order, [winner for winner, _ in answers], sum(ineligible for _, ineligible in answers))


def _answer(fresh: History, base: SiteConfig) -> tuple[str, bool]:
    """Return the winner's name, and whether guard rails alone kept the base."""
    answer: Recommendation = recommend(fresh, base, strategies=SEARCHED)
    able = [row for row in answer.rows if row.bootstrap is not None and row.bootstrap.certain]
    return answer.winner, answer.verdict == "KEEP" and any(row.ineligible for row in able)


def _load(path: Path, key: str) -> list[Tally]:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["key"] != key:
            return []
        return [Tally(**{**each, "trials": Trials(**each["trials"])}) for each in kept["tallies"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def page(tallies: Sequence[Tally], learned: int, asked: str) -> str:
    """Write what came out, in Markdown."""
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
    return TEXT.format(command=asked, learned=learned, load=LEAST_LOAD, table=markdown_table(titles, rows, left=0))


TEXT = """# KEEP and CHANGE: how often the answer is right

Written by

    {command}

The base is what `auto` finds on {learned} generated months together; then the same, made worse until the former
gains a stated part of the mean wait over it on all fresh months together: wider jobs go ever more ahead of narrower
ones, up to an eighth of the machine. Every fresh history comes from the same generator with another seed, at an
offered load of at least {load:g}. Where there is nothing to gain the right answer is KEEP; where there is, CHANGE. One
month is noisy: judged are its last twenty days, ten at a time.

{table}
"""


@click.command("trials")
@click.option("--count", type=click.IntRange(1), help="Histories of each kind.  [default: 100 or 25]")
@click.option("--learned", default=LEARNED, show_default=True, type=click.IntRange(1), help="Months learned from.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=ROOT / "docs", help="Folder of trials.md.  [default: docs]"
)
@click.option(
    "--work", type=click.Path(path_type=Path), help="Where finished trials are kept.  [default: reports/study]"
)
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1), help="No effect on the answer.")
def command(*, count: int | None, learned: int, out: Path, work: Path | None, workers: int) -> None:
    """Tell how often `qconf tune` keeps what is best and changes what is not; an hour or two on two cores."""
    work = work or ROOT / "reports" / "study"
    work.mkdir(parents=True, exist_ok=True)
    trials = [replace(each, count=count or each.count) for each in ALL]
    found = run(trials, learned, work, workers, lambda text: click.echo(text, err=True))
    asked = "python -m studies.trials" + (f" --count {count}" if count else "")
    asked += f" --learned {learned}" if learned != LEARNED else ""
    write_whole(out / "trials.md", page(found, learned, asked))
    click.echo(f"written: {out / 'trials.md'}")


if __name__ == "__main__":
    command()
