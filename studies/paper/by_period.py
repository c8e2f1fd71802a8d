"""Period by period: what the paper's Figures 7 to 13 show, as tables and figures, and its Table III."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from qconf.report.figures import grouped_bars
from qconf.strategies import settings as all_settings
from qconf.text import markdown_table
from studies.paper.pieces import PieceResult
from studies.paper.plan import CLAIMS, Claim

#: Strategies in the figures: those that the paper compares, and ours.
DRAWN = ("shared", "mqb", "static", "pp", "dp-nlp", "dqr", "hybrid", "auto")


@dataclass(frozen=True)
class Measure:
    """A metric that is shown for each period."""

    metric: str
    title: str
    scale: float
    digits: int

    @property
    def figure(self) -> str:
        """File name of its figure."""
        return f"study-{self.metric.replace('_', '-')}.svg"

    def table(self, found: PieceResult) -> str:
        """Write a row per period, a column per strategy."""
        values = found.by_period(self.metric) * self.scale
        rows = [[str(period), *(f"{value:.{self.digits}f}" for value in row)] for period, row in values.T.items()]
        return markdown_table(["period", *values.columns], rows) + "\n"


MEASURES = (
    Measure("mean_wait", "mean wait, hours", 1 / 3600, 2),
    Measure("mean_bounded_slowdown", "mean bounded slowdown", 1.0, 1),
    Measure("utilization_window", "utilization, %", 100.0, 1),
)


def tables(found: PieceResult) -> str:
    """Write a table and a figure per metric."""
    out = []
    for each in MEASURES:
        out += [f"### Period by period: {each.title}\n", each.table(found)]
        out += [f"![{each.title}, period by period](figures/{each.figure})\n"]
    return "\n".join(out)


def folded(found: PieceResult) -> str:
    """Write the tables of a long log, folded up."""
    out = []
    for each in MEASURES:
        out += [f"<details><summary>Period by period: {each.title}</summary>\n", each.table(found), "</details>\n"]
    return "\n".join(out)


def figures(found: PieceResult) -> dict[str, str]:
    """Draw a figure per metric: file name to SVG text."""
    out = {}
    for each in MEASURES:
        values = found.by_period(each.metric) * each.scale
        out[each.figure] = grouped_bars(
            found.periods,
            {name: values[name].tolist() for name in DRAWN if name in values},
            label=each.title,
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
            metric = claim.metric.removesuffix("_window").replace("_", " ")
            cells = [f"{change[label]:+.0f}" if label in change else "" for label in found.periods]
            rows.append([f"{claim.strategy} against {claim.reference}", metric, *cells])
    return "\n".join([*lines, markdown_table(["", "of", *found.periods], rows, left=2), ""])


def parameters(settings: Mapping[str, Any]) -> str:
    """Write the parameters as the paper's Table III does, with ours where the paper has none."""
    options = all_settings(settings)
    reference = options["reference"] or "the queue with most core-seconds"
    split_on = {"walltime": "walltime, which a scheduler can enforce", "runtime": "real run time"}[options["split_on"]]
    carve = {"partitions": "the partitions without it", "live": "partitions and pool"}[options["carve"]]
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
        ("a chunk is evaluated with", "the partitions without it", carve),
        ("a job that may enter the pool", "starts where it can first", entry),
    )
    table = markdown_table(["parameter", "paper", "here"], rows, left=3)
    return "\n".join(["### Parameters (the paper's Table III)\n", table, ""])
