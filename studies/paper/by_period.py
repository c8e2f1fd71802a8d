"""Period by period: what the paper's Figures 7 to 13 show, as tables and figures, and its Table III."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from qconf.report.columns import COLUMNS, Column, columns
from qconf.strategies import settings as all_settings
from qconf.text import markdown_table
from studies.drawing import grouped_bars
from studies.paper.pieces import PieceResult
from studies.paper.plan import CLAIMS, Claim

#: Strategies in the figures: those that the paper compares, and ours.
DRAWN = ("shared", "mqb", "static", "pp", "dp-nlp", "dqr", "hybrid", "auto")


#: Metrics that are shown for each period, with their decimals.
METRICS = {"mean_wait": 2, "mean_bounded_slowdown": 1, "utilization_window": 1}


def tables(found: PieceResult) -> str:
    """Write a table and a figure per metric."""
    out = []
    for column in columns(*METRICS):
        out += [f"### Period by period: {column.caption}\n", _table(column, found)]
        out += [f"![{column.caption}, period by period](figures/{_figure(column)})\n"]
    return "\n".join(out)


def folded(found: PieceResult) -> str:
    """Write the tables of a long log, folded up."""
    out = []
    for column in columns(*METRICS):
        out += [
            f"<details><summary>Period by period: {column.caption}</summary>\n",
            _table(column, found),
            "</details>\n",
        ]
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


def changes(claim: Claim, found: PieceResult) -> pd.Series:
    """Per cent by which the strategy's metric differs from the reference's, per period."""
    values = found.by_period(claim.metric)
    if not {claim.strategy, claim.reference} <= set(values):
        return pd.Series(dtype=float)
    reference = values[claim.reference]
    change = 100 * (values[claim.strategy] / reference.where(reference != 0) - 1)
    return change.drop(list(claim.without), errors="ignore").dropna()


def pairs(found: PieceResult) -> str:
    """Write the change that each of the paper's pairs of strategies makes in each period, per cent."""
    lines = [
        "### The paper's pairs, period by period\n",
        "Change in per cent; minus is less. The paper's Figures 7 to 13 draw these pairs.\n",
    ]
    rows = []
    for claim in CLAIMS:
        change = changes(claim, found)
        if len(change):
            cells = [f"{change[label]:+.0f}" if label in change else "" for label in found.periods]
            rows.append([f"{claim.strategy} against {claim.reference}", COLUMNS[claim.metric].name, *cells])
    return "\n".join([*lines, markdown_table(["", "of", *found.periods], rows, left=2), ""])


def parameters(settings: Mapping[str, Any]) -> str:
    """Write the parameters as the paper's Table III does, with ours where the paper has none."""
    options = all_settings(settings)
    reference = options["reference"] or "the queue with most core-seconds"
    split_on = {"walltime": "walltime, which a scheduler can enforce", "runtime": "real run time"}[options["split_on"]]
    carve = {"partitions": "the partitions without it", "live": "partitions and pool", "search": "no chunks: searched"}
    entry = {"either": "starts where it can first", "move": "leaves its partition's list"}[options["pool_entry"]]
    rows = (
        ("samples of partition sets", "100", str(options["samples"])),
        ("epochs and their weights", "3 of 10 days: 1/3, 2/3, 3/3", ", ".join(f"{w:.3g}" for w in options["weights"])),
        ("degree of the polynomials", "at most 3", str(options["degree"] or "1 to 3, by cross-validation")),
        ("tau_util of the lower bounds", "not given", f"{options['tau_util']:g}"),
        ("slack of proportions", "0, which nothing satisfies", f"{options['slack']:g}, or the least with a solution"),
        ("chunkSize", "5 cores", str(options["chunk"] or "a node of 24 cores: nodes are given whole")),
        ("degPercent", "30 %", f"{100 * options['degradation']:g} %"),
        ("tau", "half the priority of `medium`", f"half the priority of {reference}"),
        ("dqr splits by", "run time", split_on),
        ("a chunk is evaluated with", "the partitions without it", carve[options["carve"]]),
        ("a job that may enter the pool", "starts where it can first", entry),
    )
    table = markdown_table(["parameter", "paper", "here"], rows, left=3)
    return "\n".join(["### Parameters (the paper's Table III)\n", table, ""])
