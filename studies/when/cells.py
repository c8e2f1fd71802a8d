"""The grid of loads, limits and seeds; a row is the mean wait of a strategy in a cell of the grid."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from qconf.backtest.walk_forward import evaluate, prepare_periods
from qconf.evaluation.period import NotApplicableError, TrainingSet
from qconf.history import clean, read
from qconf.strategies import Proposal, propose, variants
from studies.paper.pieces import GENERATED, Generated, Piece
from studies.paper.plan import CRAY

LOADS = (0.65, 0.75, 0.85, 0.95, 1.05)
LIMITS = {1.0: "as configured", 0.5: "halved", 0.25: "quartered"}  #: factor of every `max_run`
SEEDS = (0, 1, 2, 3, 4)
MONTHS = 3  # the first is for training only
#: Readings of the paper's condition for a merge: ranges of cores may touch, or must have a size in common.
MERGES = ("adjacent", "common")
ONCE = ("fcfs-easy", "shared", "static", "pp", "dp-nlp", "auto")  # strategies that merge no queues
MERGING = ("dqr", "hybrid")


@dataclass(frozen=True, order=True)
class Cell:
    """A point of the grid."""

    seed: int
    limits: float
    load: float


@dataclass(frozen=True)
class Row(Cell):
    """The mean wait of a strategy over a cell's evaluated months."""

    strategy: str  #: with the reading of a merge if the strategy merges: ``hybrid common``
    months: int
    wait: float  #: seconds

    @property
    def key(self) -> tuple[Cell, str, int]:
        """Cell, strategy and months."""
        return Cell(self.seed, self.limits, self.load), self.strategy, self.months


def columns() -> list[tuple[str, str, str]]:
    """Return (name, strategy, reading of a merge) of each compared column."""
    merging = [(f"{name} {merge}", name, merge) for name in MERGING for merge in MERGES]
    return [*((name, name, MERGES[0]) for name in ONCE[:-1]), *merging, (ONCE[-1], ONCE[-1], MERGES[0])]


def measured(cell: Cell, names: Sequence[str], months: int, work: Path) -> list[Row]:
    """Train the strategies on each month of a cell, evaluate them on the next; return a row per name."""
    made_by = Generated("cray-xc40", cell.seed, cell.load)
    piece = Piece("when", GENERATED, CRAY, months, made_by=made_by, site={"max_run": cell.limits})
    base = piece.base()
    folds = prepare_periods(clean(read([piece.log(work, work)]), base), base).every
    waits: dict[str, list[float]] = {name: [] for name in names}
    for fold, training, test in zip(folds.folds, folds.training, folds.test, strict=True):
        for name, strategy, merge in columns():
            if name in waits:
                proposed = _proposed(strategy, training, {"merge_cores": merge})
                waits[name].append(evaluate(fold, strategy, test, proposed).summary["mean_wait"])
    return [
        Row(cell.seed, cell.limits, cell.load, name, months, round(sum(each) / len(each), 1))
        for name, each in waits.items()
    ]


def _proposed(strategy: str, training: TrainingSet, settings: Mapping[str, object]) -> Proposal | NotApplicableError:
    """Return a strategy's proposal, or why it is not applicable; without dp-nlp's regret, which takes longest."""
    try:
        found = variants(strategy, training, settings, appraise=False) if strategy != "auto" else {}
        return found[""] if found else propose(strategy, training, settings)
    except NotApplicableError as error:
        return error


def load(path: Path) -> dict[tuple[Cell, str, int], Row]:
    """Return the rows of a table by key; none without a file, and without a last line that was cut off."""
    if not path.is_file():
        return {}
    found = {}
    for line in csv.reader(path.read_text(encoding="utf-8").splitlines()[1:]):
        if len(line) == len(fields(Row)):
            seed, limits, offered, name, months, wait = line
            row = Row(int(seed), float(limits), float(offered), name, int(months), float(wait))
            found[row.key] = row
    return found


def text_of(rows: Iterable[Row]) -> str:
    """Return the table of rows as CSV."""
    lines = [",".join(each.name for each in fields(Row)), *(",".join(map(str, astuple(row))) for row in sorted(rows))]
    return "\n".join(lines) + "\n"
