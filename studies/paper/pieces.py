"""The study's pieces: one walk-forward each, kept when finished, so that an interrupted study goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import parsim
from parsim.metrics import Summary
from qconf.backtest import FEWEST, Average, FoldResult, averages, backtest
from qconf.config import SiteConfig, load
from qconf.history import History, clean, read
from qconf.history.history import DAY
from qconf.recommend.checkpoint import Checkpoint, question
from qconf.strategies import NAMES, Options
from qconf.strategies.fcfs_easy import undistinguished
from qconf.synth import generate, write_history
from qconf.text import as_json, write_whole

ROOT = Path(__file__).resolve().parents[2]
GENERATED = "generated"
#: ``current`` is ``shared`` in all of the study's configurations.
STRATEGIES = tuple(name for name in NAMES if name != "current")
#: Strategies whose decisions the page tells of.
TOLD = ("dp-nlp", "dqr")


@dataclass(frozen=True)
class Piece:
    """A walk-forward of the study.

    Attributes
    ----------
    name : str
        As a file name.
    source : str
        `GENERATED`, or the name of a log in the folder of traces.
    config : str
        The file in configs/.
    periods : int or None
        Only the first so many months, the first of which is only learned from.
    strategies : tuple of str
    options : Options
    what : str
        What distinguishes it, for a table.
    period : str
        ``month``, or days such as ``30d``, from the first submit that is left.
    begin : int
        Days after the first submit whose jobs are left out.
    formula : str
        If given, ``current`` is one machine without queues in this order.
    """

    name: str
    source: str
    config: str
    periods: int | None = None
    strategies: tuple[str, ...] = STRATEGIES
    options: Options = field(default_factory=Options)
    what: str = ""
    period: str = "month"
    begin: int = 0
    formula: str = ""


@dataclass(frozen=True)
class Outcome:
    """What a piece gave."""

    piece: Piece
    results: list[FoldResult]
    skipped: list[tuple[str, str]]
    jobs: int

    @property
    def periods(self) -> list[str]:
        """Labels of the judged months."""
        return list(dict.fromkeys(verdict.period for verdict in self.results))

    def averages(self) -> dict[str, Average]:
        """Compare the strategies over the months, by name."""
        return {each.strategy: each for each in averages(self.results, "mean-wait")}


def run(piece: Piece, traces: Path, work: Path, tell: Callable[[str], None]) -> Outcome | None:
    """Return what a piece gives, from `work` if it was finished there with the same code; None without its log."""
    base = load(ROOT / "configs" / piece.config)
    if piece.formula:
        base = undistinguished(base, piece.formula)
    if piece.source == GENERATED:
        path = write_history(generate(months=piece.periods or 9), work / f"generated-{piece.periods or 9}.csv.gz")
    else:
        path = traces / piece.source
    if not path.is_file():
        tell(f"{piece.name}: {path} is not there, left out")
        return None
    history = _cut(clean(read([path]), base), piece)
    asked = {
        **question(history.sources, base, piece.options),
        "periods": piece.periods,
        "period": piece.period,
        "begin": piece.begin,
        "code": code(),
    }
    kept = work / f"{piece.name}.json"
    key = hashlib.sha256(json.dumps(asked | {"strategies": piece.strategies}, sort_keys=True).encode()).hexdigest()
    found = _load(kept, key, base)
    if found is None:
        tell(f"{piece.name}: {len(history)} jobs")
        # The name of the folder is not part of the question: pieces that ask the same share their answers.
        checkpoint = Checkpoint(work / hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:12], asked,
                            resume=True)  # fmt: skip
        answer = backtest(
            history,
            base,
            period=piece.period,
            strategies=piece.strategies,
            options=piece.options,
            store=checkpoint,
            progress=lambda what, share: tell(f"{piece.name}: {100 * share:.0f} % {what}"),
        )
        text = as_json(
            {
                "key": key,
                "jobs": sum(fold.jobs for fold in answer.folds),
                "skipped": answer.skipped,
                "results": [_keep(verdict) for verdict in answer.results],
            }
        )
        write_whole(kept, text)
        found = _load(kept, key, base)
    if found is None:
        raise RuntimeError(f"{kept} cannot be read back")
    results, skipped, jobs = found
    return Outcome(piece, results, skipped, jobs)


def _cut(history: History, piece: Piece) -> History:
    """Leave out what comes before a piece's beginning, and after its first periods with enough jobs."""
    if piece.begin:
        history = history.between(history.span[0] + piece.begin * DAY, None)
    if piece.periods is None:
        return history
    submit = history.jobs["submit"]
    bounds = [(start, end) for _, start, end in history.periods(piece.period)]
    enough = [end for start, end in bounds if submit.between(start, end - 1).sum() >= FEWEST]
    return history.between(None, enough[: piece.periods or None][-1])


def _keep(verdict: FoldResult) -> dict[str, Any]:
    return {
        "period": verdict.period,
        "strategy": verdict.strategy,
        "overall": verdict.summary.overall,
        "instead": verdict.instead,
        "decisions": verdict.decisions if verdict.strategy in TOLD else [],
        "seconds": verdict.seconds,
    }


def _load(path: Path, key: str, base: SiteConfig) -> tuple[list[FoldResult], list[tuple[str, str]], int] | None:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["key"] != key:
            return None
        results = [
            FoldResult(
                each["period"],
                each["strategy"],
                Summary(
                    {name: float("nan") if value is None else value for name, value in each["overall"].items()}, {}
                ),
                base,
                each["instead"],
                decisions=each["decisions"],
                seconds=each["seconds"],
            )
            for each in kept["results"]
        ]
        return results, [(label, why) for label, why in kept["skipped"]], int(kept["jobs"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def code() -> str:
    """Hash of what computes: a piece is good for the code that it was made with."""
    rooms = ("config", "history", "synth", "evaluation", "strategies", "backtest")
    return hash_of(Path(parsim.__file__).parent, *(ROOT / "qconf" / name for name in rooms))


def hash_of(*folders: Path) -> str:
    """Hash of all modules in these folders."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()
