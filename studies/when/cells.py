"""The grid: loads, limits, seeds and readings of a merge; a row of it is the mean wait of a strategy at a point."""

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
#: Readings of the paper's condition for a merge: ranges of cores that touch, or only those with a size in common.
MERGES = ("adjacent", "common")
ONCE = ("fcfs-easy", "shared", "static", "pp", "dp-nlp", "auto")  # a merge has no part in them
MERGING = ("dqr", "hybrid")


@dataclass(frozen=True, order=True)
class Cell:
    """A point of the grid."""

    seed: int
    limits: float
    load: float


@dataclass(frozen=True)
class Row(Cell):
    """The mean wait of a strategy over the evaluated months of a cell."""

    strategy: str  #: with the reading of a merge where it merges: ``hybrid common``
    months: int
    wait: float  #: seconds

    @property
    def key(self) -> tuple[Cell, str, int]:
        """What it is of."""
        return Cell(self.seed, self.limits, self.load), self.strategy, self.months


def columns() -> list[tuple[str, str, str]]:
    """Return (name, strategy, reading of a merge) of what is compared."""
    merging = [(f"{name} {merge}", name, merge) for name in MERGING for merge in MERGES]
    return [*((name, name, MERGES[0]) for name in ONCE[:-1]), *merging, (ONCE[-1], ONCE[-1], MERGES[0])]


def measured(cell: Cell, names: Sequence[str], months: int, work: Path) -> list[Row]:
    """Train strategies on each month of a cell, and evaluate them on the next."""
    made_by = Generated("cray-xc40", cell.seed, cell.load)
    piece = Piece("when", GENERATED, CRAY, months, made_by=made_by, site={"max_run": cell.limits})
    base = piece.base()
    folds = prepare_periods(clean(read([piece.log(work, work)]), base), base).every
    waits: dict[str, list[float]] = {name: [] for name in names}
    for fold, training, around in zip(folds.folds, folds.training, folds.around, strict=True):
        for name, strategy, merge in columns():
            if name in waits:
                proposed = _proposed(strategy, training, {"merge_cores": merge})
                waits[name].append(evaluate(fold, strategy, around, proposed).summary["mean_wait"])
    return [
        Row(cell.seed, cell.limits, cell.load, name, months, round(sum(each) / len(each), 1))
        for name, each in waits.items()
    ]


def _proposed(strategy: str, training: TrainingSet, settings: Mapping[str, object]) -> Proposal | NotApplicableError:
    """Return what a strategy proposes; without the regret of dp-nlp, which takes longest and is not shown."""
    try:
        found = variants(strategy, training, settings, appraise=False) if strategy != "auto" else {}
        return found[""] if found else propose(strategy, training, settings)
    except NotApplicableError as error:
        return error


def load(path: Path) -> dict[tuple[Cell, str, int], Row]:
    """Read the rows of a table that is there; a last line that was cut off is left out."""
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
    """Write a table of rows."""
    lines = [",".join(each.name for each in fields(Row)), *(",".join(map(str, astuple(row))) for row in sorted(rows))]
    return "\n".join(lines) + "\n"
