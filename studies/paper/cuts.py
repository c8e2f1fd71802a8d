"""How much of a figure depends on where the periods begin: the same logs, cut elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from qconf.backtest import COMPARED, Average
from qconf.text import markdown_table
from studies.output import paragraph
from studies.paper.pieces import Piece, PieceResult
from studies.paper.plan import FIXED

SHOWN = ("lxf-easy", "fixed order", "auto")
ABOUT = paragraph(
    f"""The same logs once more, cut into calendar months, and into 30 days from the first submit or from some days
    later. Cells are mean wait / bounded slowdown / longest wait as parts of `fcfs-easy`'s, each a ratio of means over
    the periods. The fixed order is `{FIXED}` on one machine without queues, nothing tuned. One job more or less changes
    for days which jobs wait at the same time, so a figure of one cut is good to about the deviation that is shown, and
    a smaller difference is none."""
)


def section(found: Sequence[PieceResult]) -> str:
    """Write a table for each log: a row for each way to cut it, their mean and standard deviation."""
    lines = ["## Where the periods begin\n", ABOUT]
    for site, of_site in groupby(found, lambda result: result.piece.what):
        rows, ratios = [], []
        for cut, results in groupby(of_site, lambda result: _cut(result.piece)):
            averages = _averages(results)
            ratios.append([[averages[name].against["fcfs-easy"].ratios[each] for each in COMPARED] for name in SHOWN])
            auto = averages["auto"]
            rows.append(_row(cut, str(auto.periods), ratios[-1], f"{100 * auto.against['fcfs-easy'].worse:.0f}"))
        rows.append(_row("*mean*", "", np.mean(ratios, axis=0)))
        rows.append(_row("*standard deviation*", "", np.std(ratios, axis=0, ddof=1)))
        lines += [f"### {site}\n", markdown_table(["cut into", "periods", *SHOWN, "auto worse %"], rows), ""]
    return "\n".join(lines)


def _cut(piece: Piece) -> str:
    if piece.period == "month":
        return "calendar months"
    return f"{piece.period.removesuffix('d')} days, from day {piece.begin}"


def _averages(results: Iterable[PieceResult]) -> dict[str, Average]:
    """Averages of one cut by name; what is ``current`` on a machine without queues is the fixed order."""
    return {
        "fixed order" if result.piece.formula and name == "current" else name: average
        for result in results
        for name, average in result.averages().items()
    }


def _row(
    what: str, periods: str, values: Sequence[Sequence[float]] | NDArray[np.float64], worse: str = ""
) -> list[str]:
    cells = (" / ".join(f"{value:.3f}" for value in each) for each in values)
    return [what, periods, *cells, worse]
