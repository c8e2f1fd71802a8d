"""Figures as SVG text in one style, the same bytes for the same numbers whatever the user's matplotlib settings.

Colours are Okabe and Ito's, distinct for colour-blind readers; markers and hatches make them distinct in print.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

#: Ink, faint lines and paper: the report replaces these three by the colours of its page.
INK, FAINT, PAPER = "#1b1f24", "#c9ced6", "#fdfdfc"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#8c8c8c")
MARKERS = "os^Dv<>P"

STYLE: Any = {
    "svg.hashsalt": "qconf",
    "svg.fonttype": "path",
    "path.simplify": True,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), INK),
    **dict.fromkeys(("axes.edgecolor", "grid.color", "xtick.color", "ytick.color"), FAINT),
    **dict.fromkeys(("axes.facecolor", "figure.facecolor"), PAPER),
    **dict.fromkeys(("text.parse_math", "axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    **dict.fromkeys(("figure.constrained_layout.h_pad", "figure.constrained_layout.w_pad"), 0.08),
    "axes.axisbelow": True,
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.6,
}


def draw(paint: Callable[[Any], None], size: tuple[float, float]) -> str:
    """Let `paint` draw on fresh axes of `size` inches, and return SVG text without dates."""
    with mpl.rc_context({**mpl.rcParamsDefault, **STYLE}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a name in a script that the font lacks
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasSVG(figure)  # type: ignore[no-untyped-call, unused-ignore]
        paint(figure.add_subplot())
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"
