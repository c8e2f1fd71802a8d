"""Period by period: wait of every strategy as a table, and wait, slowdown and utilization as figures."""

from __future__ import annotations

from qconf.report.columns import Column, columns
from qconf.text import markdown_table
from studies.drawing import grouped_bars
from studies.paper.pieces import PieceResult

#: Strategies in the figures: those that the paper compares, and ours.
DRAWN = ("shared", "mqb", "static", "pp", "dp-nlp", "dqr", "hybrid", "auto")


#: Metrics that are shown for each period, with their decimals.
METRICS = {"mean_wait": 2, "mean_bounded_slowdown": 1, "utilization_window": 1}


def tables(found: PieceResult) -> str:
    """Write the table of mean waits, and a figure per metric."""
    waits, *_ = columns(*METRICS)
    out = [f"### Period by period: {waits.caption}\n", _table(waits, found)]
    out += [f"![{column.caption}, period by period](figures/{_figure(column)})\n" for column in columns(*METRICS)]
    return "\n".join(out)


def _table(column: Column, found: PieceResult) -> str:
    """Write a row per period, a column per strategy."""
    values = found.by_period(column.key).map(lambda value: column.write(value, METRICS[column.key]))
    return markdown_table(["period", *values.columns], [[str(period), *row] for period, row in values.T.items()]) + "\n"


def _figure(column: Column) -> str:
    """Name the file of a metric's figure."""
    return f"study-{column.key.replace('_', '-')}.svg"


def figures(found: PieceResult) -> dict[str, str]:
    """Draw a figure per metric: file name to SVG text."""
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
