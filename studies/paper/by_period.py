"""Figures of wait, slowdown and utilization by period."""

from __future__ import annotations

from qconf.report.columns import Column, columns
from studies.drawing import grouped_bars
from studies.paper.pieces import PieceResult

#: Strategies in the figures: those that the paper compares, and ours.
DRAWN = ("shared", "mqb", "static", "pp", "dp-nlp", "dqr", "hybrid", "auto")


#: Metrics with a figure.
METRICS = ("mean_wait", "mean_bounded_slowdown", "utilization_window")


def shown() -> str:
    """Return the section of the page that shows the figures, as Markdown."""
    out = ["### Period by period\n"]
    out += [f"![{column.caption}, period by period](figures/{_figure(column)})\n" for column in columns(*METRICS)]
    return "\n".join(out)


def _figure(column: Column) -> str:
    """Return the file name of a metric's figure."""
    return f"study-{column.key.replace('_', '-')}.svg"


def figures(found: PieceResult) -> dict[str, str]:
    """Return the SVG text of a figure per metric, by file name."""
    out = {}
    for column in columns(*METRICS):
        values = found.by_period(column.key).map(column.scaled)
        out[_figure(column)] = grouped_bars(
            found.periods,
            {name: values[name].tolist() for name in DRAWN if name in values},
            label=column.caption,
            line=values["fcfs-easy"].tolist(),
            line_label="fcfs-easy",
        )
    return out
