"""Figures as SVG text in one style, the same bytes for the same numbers whatever the user's matplotlib settings.

Colours are Okabe and Ito's, distinct for colour-blind readers; markers and hatches make them distinct in print.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

INK, FAINT, PAPER = "#1b1f24", "#c9ced6", "#fdfdfc"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#8c8c8c")
MARKERS = "os^Dv<>P"
HATCHES = ("", "//", "..", "xx", "\\\\", "++", "--", "oo")

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


def grouped_bars(
    groups: Sequence[str],
    series: Mapping[str, Sequence[float]],
    *,
    label: str,
    line: Sequence[float] | None = None,
    line_label: str = "current",
) -> str:
    """Draw a bar per series in each group (a period, a queue), and a line of reference values across the bars.

    A series has a value per group, else ValueError is raised; NaN leaves a gap. `label` has the unit.
    """
    wide = max(1, len(series))
    values = {name: np.asarray(row, dtype=np.float64) for name, row in series.items()}
    if line is not None:
        values[line_label] = np.asarray(line, dtype=np.float64)
    wrong = [name for name, row in values.items() if row.shape != (len(groups),)]
    if wrong:
        raise ValueError(f"{wrong[0]}: {values[wrong[0]].size} values for {len(groups)} groups")

    def paint(axes: Any) -> None:  # noqa: ANN401
        step = 0.84 / wide
        place = np.arange(len(groups), dtype=np.float64)
        for i, name in enumerate(series):
            axes.bar(
                place + (i - (wide - 1) / 2) * step,
                np.nan_to_num(values[name]),
                0.92 * step,
                color=COLOURS[i % len(COLOURS)],
                hatch=HATCHES[i // len(COLOURS) % len(HATCHES)],
                edgecolor=PAPER,
                lw=0,
                label=_label(name),
            )
        if line is not None:
            axes.hlines(values[line_label], place - 0.45, place + 0.45, color=INK, lw=1.4, label=line_label)
        crowded = sum(map(len, groups)) > 70
        axes.set_xticks(place, groups, rotation=45 if crowded else 0, ha="right" if crowded else "center")
        axes.tick_params(axis="x", length=0)
        axes.set_ylabel(label)
        axes.grid(axis="y")
        _legend_above(axes, [*series, *([line_label] if line is not None else [])])

    return draw(paint, (max(7.2, min(12.0, 0.16 * len(groups) * wide + 1.5)), 3.6))


def _label(name: str) -> str:
    """Return a name as a legend shows it: matplotlib hides those that begin with an underscore."""
    return f" {name}" if name.startswith("_") else name


def _legend_above(axes: Any, names: Sequence[str]) -> None:  # noqa: ANN401
    """Put the legend over the axes, in as many columns as the longest of `names` allows."""
    columns = max(1, min(6, len(names), int(axes.figure.get_figwidth() * 17 / (6 + max(map(len, names), default=0)))))
    axes.figure.legend(loc="outside upper left", ncols=columns, fontsize=8, handlelength=1.8, columnspacing=1.4)
