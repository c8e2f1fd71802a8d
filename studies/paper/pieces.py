"""The pieces of the study: walk-forwards, each stored when finished, so an interrupted study resumes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import click
import pandas as pd

from parsim.metrics import Summary
from qconf.backtest import Average, FoldResult, averages, backtest
from qconf.config import SiteConfig
from qconf.config import load as load_config
from qconf.errors import InputError
from qconf.history import History, clean, read
from qconf.history.history import DAY, FEWEST
from qconf.recommend import checkpoint
from qconf.strategies import names
from qconf.strategies.plain import undistinguished
from qconf.strategies.presets import PAPER
from qconf.synth import generate_month, write_history
from studies.output import ROOT, fingerprint, hash_of, load, save

GENERATED = "generated"
GENERATED_MONTHS = 9
#: ``current`` is ``shared`` in all of the study's configurations.
STRATEGIES = tuple(name for name in names(default=True) if name != "current")
#: Strategies whose decisions are stored for the page.
REPORTED = ("dp-nlp", "dqr", "hybrid")


@dataclass(frozen=True)
class Generated:
    """The parameters of a generated log."""

    preset: str = "cray-xc40"  #: a preset of `qconf.synth`
    seed: int = 0
    load: float | None = None  #: offered load of every month, or less if its walltimes do not allow it; None: its own

    def write(self, months: int, work: Path) -> Path:
        """Write the first `months` months into the folder `work`; return the path."""
        path = work / f"{self.preset}-{months}-{self.seed}-{self.load or 'own'}.csv.gz"
        return write_history(pd.concat([self._month(index) for index in range(months)], ignore_index=True), path)

    def _month(self, index: int) -> pd.DataFrame:
        if self.load is None:
            return generate_month(self.preset, index, self.seed)
        for percent in range(round(100 * self.load), 0, -1):
            try:
                return generate_month(self.preset, index, self.seed, percent / 100)
            except InputError:  # the walltimes do not allow this load
                continue
        raise InputError("out of reach of every month", field="load", value=self.load)


@dataclass(frozen=True)
class Piece:
    """A walk-forward of the study."""

    name: str  #: also the name of its file
    source: str  #: `GENERATED`, or the name of a log in the folder of traces
    config: str  #: the file in configs/
    periods: int | None = None  #: number of periods, None: all; the first is for training only
    strategies: tuple[str, ...] = STRATEGIES
    settings: Mapping[str, Any] = field(default_factory=dict)  #: options of the strategies; others have their defaults
    what: str = ""  #: label in tables
    period: str = "month"  #: or days like ``30d``, from the first submit after `begin`
    begin: int = 0  #: jobs of so many days after the first submit are left out
    formula: str = ""  #: if given, ``current`` is one machine without queues in this order
    made_by: Generated = field(default_factory=Generated)  #: parameters if `source` is `GENERATED`
    letter: bool = False  #: whether the site is changed by the preset `paper`: processors given one by one
    chain: bool = False  #: whether each period's base is the proposal for the previous period
    site: Mapping[str, Any] = field(default_factory=dict)  #: changed fields of the configuration; `max_run` by a factor

    def base(self) -> SiteConfig:
        """Read the configuration, and change it as the fields say."""
        base = load_config(ROOT / "configs" / self.config)
        base = PAPER.site(base) if self.letter else base
        changes = dict(self.site)
        if "max_run" in changes:
            part = changes.pop("max_run")
            limits = [
                None if part is None or q.max_run is None else max(1, round(part * q.max_run)) for q in base.queues
            ]
            queues = [q.model_copy(update={"max_run": most}) for q, most in zip(base.queues, limits, strict=True)]
            base = base.with_queues(queues)
        base = base.replace(**changes)
        return undistinguished(base, self.formula) if self.formula else base

    def log(self, traces: Path, work: Path) -> Path:
        """Return the path of the log; a generated one is written into the folder `work`."""
        if self.source != GENERATED:
            return traces / self.source
        return self.made_by.write(self.periods or GENERATED_MONTHS, work)


@dataclass(frozen=True)
class PieceResult:
    """The results of a piece, one per test period and strategy."""

    piece: Piece
    results: list[FoldResult]
    skipped: list[tuple[str, str]]
    jobs: int

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """The metrics of the evaluated jobs: rows (period, strategy), a column per metric."""
        rows = pd.MultiIndex.from_tuples([(each.period, each.strategy) for each in self.results])
        return pd.DataFrame([each.summary.overall for each in self.results], index=rows)

    def by_period(self, metric: str) -> pd.DataFrame:
        """Return a metric: a row per test period, a column per strategy, in the order of the piece."""
        columns = dict.fromkeys(each.strategy for each in self.results)
        return self.metrics[metric].unstack().reindex(index=self.periods, columns=list(columns))

    @property
    def periods(self) -> list[str]:
        """The labels of the test periods."""
        return list(dict.fromkeys(each.period for each in self.results))

    def averages(self) -> dict[str, Average]:
        """Return each strategy's averages over the test periods, by name."""
        return {each.strategy: each for each in averages(self.results, "mean-wait")}

    def steps(self, name: str, strategy: str) -> Iterator[dict[str, Any]]:
        """Yield the steps with this name in a strategy's decisions."""
        for result in self.results:
            if result.strategy == strategy:
                yield from (step for step in result.decisions if step.get("step") == name)


def show(text: str) -> None:
    """Print a line of progress; a terminal shows it in place of the previous line."""
    click.echo(f"{text:<78}"[:78] + ("\r" if sys.stderr.isatty() else "\n"), err=True, nl=False)


def run(piece: Piece, traces: Path, work: Path, progress: Callable[[str], None] = show) -> PieceResult | None:
    """Run a piece, or read its results from the folder `work` if the code is the same; None without its log."""
    base = piece.base()
    path = piece.log(traces, work)
    if not path.is_file():
        progress(f"{piece.name}: {path} is not there, left out")
        return None
    history = _cut(clean(read([path]), base), piece)
    own = {name: getattr(piece, name) for name in ("periods", "period", "begin", "chain")}
    depends_on = checkpoint.fingerprint(history.sources, base, piece.settings, **own, code=code())
    stored = work / f"{piece.name}.json"
    key = fingerprint(depends_on | {"strategies": piece.strategies})
    found = _stored(piece, stored, key, base)
    if found is not None:
        return found
    progress(f"{piece.name}: {len(history)} jobs")
    # Pieces that differ only in their strategies share a folder of finished proposals.
    finished = checkpoint.Checkpoint(work / fingerprint(depends_on)[:12], depends_on, resume=True)
    done = backtest(
        history,
        base,
        period=piece.period,
        strategies=piece.strategies,
        settings=piece.settings,
        chain=piece.chain,
        checkpoint=finished,
        progress=lambda what, share: progress(f"{piece.name}: {100 * share:.0f} % {what}"),
    )
    results = [
        {
            "period": each.period,
            "strategy": each.strategy,
            "overall": each.summary.overall,
            "fallback": each.fallback,
            "decisions": each.decisions if each.strategy in REPORTED else [],
            "seconds": each.seconds,
        }
        for each in done.results
    ]
    jobs = sum(fold.jobs for fold in done.folds)
    save(stored, key, {"jobs": jobs, "skipped": done.skipped, "results": results})
    found = _stored(piece, stored, key, base)
    if found is None:
        raise RuntimeError(f"{stored} cannot be read back")
    return found


def _cut(history: History, piece: Piece) -> History:
    """Return the history from the piece's beginning to the end of its last period."""
    if piece.begin:
        history = history.between(history.span[0] + piece.begin * DAY, None)
    if piece.periods is None:
        return history
    submit = history.jobs["submit"]
    bounds = [(start, end) for _, start, end in history.periods(piece.period)]
    enough = [end for start, end in bounds if submit.between(start, end - 1).sum() >= FEWEST]
    return history.between(None, enough[: piece.periods or None][-1])


def _stored(piece: Piece, path: Path, key: str, base: SiteConfig) -> PieceResult | None:
    found = load(path, key)
    if found is None:
        return None
    results = [
        FoldResult(
            each["period"],
            each["strategy"],
            Summary({name: float("nan") if value is None else value for name, value in each["overall"].items()}, {}),
            base,
            each["fallback"],
            decisions=each["decisions"],
            seconds=each["seconds"],
        )
        for each in found["results"]
    ]
    return PieceResult(piece, results, [(label, why) for label, why in found["skipped"]], int(found["jobs"]))


def code() -> str:
    """Return a hash of the code that results depend on."""
    packages = ("config", "history", "synth", "evaluation", "strategies", "backtest")
    return hash_of(ROOT / "parsim", *(ROOT / "qconf" / name for name in packages))
