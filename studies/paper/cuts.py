"""How results depend on where the periods begin: the same logs, cut elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from qconf.backtest import COMPARED, Average
from qconf.text import markdown_table
from studies.output import paragraph
from studies.paper.pieces import PieceResult
from studies.paper.plan import FIXED

SHOWN = ("lxf-easy", "fixed order", "auto")
ABOUT = paragraph(
    f"""The same logs once more, cut into calendar months, and into 30 days from the first submit or from some days
    later. Cells are mean wait / bounded slowdown / longest wait as parts of `fcfs-easy`'s, the mean of the cuts and
    their standard deviation: a smaller difference of one cut is none. The fixed order is `{FIXED}` on one machine
    without queues, nothing tuned."""
)


def section(found: Sequence[PieceResult]) -> str:
    """Return the section of the page: per log, mean and standard deviation over the cuts."""
    rows = []
    for site, of_site in groupby(found, lambda result: result.piece.what):
        ratios = []
        for _, results in groupby(of_site, lambda result: (result.piece.period, result.piece.begin)):
            averages = _averages(results)
            ratios.append([[averages[name].against["fcfs-easy"].ratios[each] for each in COMPARED] for name in SHOWN])
        rows.append(_row(site, str(len(ratios)), np.mean(ratios, axis=0)))
        rows.append(_row("deviation", "", np.std(ratios, axis=0, ddof=1)))
    return "\n".join(["## Where the periods begin\n", ABOUT, markdown_table(["log", "cuts", *SHOWN], rows), ""])


def _averages(results: Iterable[PieceResult]) -> dict[str, Average]:
    """Return the averages of one cut by name; `current` of a piece with a formula is the fixed order."""
    return {
        "fixed order" if result.piece.formula and name == "current" else name: average
        for result in results
        for name, average in result.averages().items()
    }


def _row(what: str, cuts: str, values: NDArray[np.float64]) -> list[str]:
    cells = (" / ".join(f"{value:.3f}" for value in each) for each in values)
    return [what, cuts, *cells]
