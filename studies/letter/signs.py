"""Where the signs of two of the paper's comparisons turn: hybrid against the shared machine, dp-nlp against mqb."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import mean

from qconf.text import markdown_table
from studies.letter.plan import SHARED, WALLTIMES, Cell
from studies.output import paragraph
from studies.paper.pieces import PieceResult


@dataclass(frozen=True)
class Point:
    """A point of the grid: mean waits over its months, seconds."""

    cell: Cell
    hybrid: float
    dp_nlp: float
    mqb: float
    shared: float

    @property
    def against_shared(self) -> float:
        """Per cent by which hybrid waits longer than the shared machine."""
        return 100 * (self.hybrid / self.shared - 1)

    @property
    def against_mqb(self) -> float:
        """Per cent by which dp-nlp waits longer than mqb."""
        return 100 * (self.dp_nlp / self.mqb - 1)


def points(found: Iterable[tuple[Cell, PieceResult, PieceResult]]) -> list[Point]:
    """Return the points of the results."""
    out = []
    for cell, letter, shared in found:
        waits = letter.by_period("mean_wait").mean()
        other = shared.by_period("mean_wait").mean()
        out.append(Point(cell, waits["hybrid"], waits["dp-nlp"], waits["mqb"], other["current"]))
    return out


def tables(grid: Sequence[Point]) -> str:
    """Write hybrid against each shared machine, then dp-nlp against mqb, by load and walltimes."""
    columns = list(dict.fromkeys((point.cell.load, point.cell.walltimes) for point in grid))
    titles = [f"{load:g}, {WALLTIMES[walltimes]}" for load, walltimes in columns]

    def cells(of: Callable[[Point], float], shared: str) -> list[str]:
        rows = []
        for load, walltimes in columns:
            here = [
                of(point)
                for point in grid
                if (point.cell.load, point.cell.walltimes, point.cell.shared) == (load, walltimes, shared)
            ]
            rows.append(f"{mean(here):+.0f} ({min(here):+.0f} to {max(here):+.0f})")
        return rows

    shared = [[what, *cells(lambda point: point.against_shared, what)] for what in SHARED]
    first = next(iter(SHARED))
    mqb = [["dp-nlp against mqb", *cells(lambda point: point.against_mqb, first)]]
    return "\n".join(
        [
            markdown_table(["hybrid against shared: the shared machine", *titles], shared),
            "",
            markdown_table(["", *titles], mqb),
            "",
        ]
    )


def _by_load(points: Sequence[Point]) -> str:
    """Count the points in which the sign holds, by load."""
    parts = []
    for load in sorted({point.cell.load for point in points}):
        held = [point.against_shared < 0 for point in points if point.cell.load == load]
        parts.append(f"{sum(held)} of {len(held)} at load {load:g}")
    return ", ".join(parts)


def region(grid: Sequence[Point]) -> str:
    """Say in which part of the grid the paper's signs hold."""
    lines = []
    for what in SHARED:
        here = [point for point in grid if point.cell.shared == what]
        held = [point for point in here if point.against_shared < 0]
        most = min(point.against_shared for point in here)
        near = sum(point.against_shared <= -55 for point in here)
        text = (
            f"* {what}: in {len(held)} of {len(here)} points hybrid waits less ({_by_load(here)}), at most by "
            f"{max(0.0, -most):.0f} %; in {near} by the paper's 55 % or more."
        )
        lines.append(paragraph(text, indent="  "))
    plain = [point for point in grid if point.cell.shared == next(iter(SHARED))]
    turned = sum(point.against_mqb < 0 for point in plain)
    least = min(point.against_mqb for point in plain)
    lines.append(f"* dp-nlp waits less than mqb in {turned} of {len(plain)} points; at the least {least:+.0f} %.")
    return "".join(lines) + "\n"
