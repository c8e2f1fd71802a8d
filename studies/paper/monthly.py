"""Period by month: what the paper's Figures 7 to 13 show, as tables and figures, and its Table III."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from qconf.report.figures import grouped_bars
from qconf.strategies import Options
from qconf.text import markdown_table
from studies.paper.pieces import Outcome
from studies.paper.plan import CLAIMS, Claim

#: What the figures show of all the strategies: those that the paper compares, and ours.
DRAWN = ("shared", "mqb", "static", "pp", "dp-nlp", "dqr", "hybrid", "auto")


@dataclass(frozen=True)
class Measure:
    """A metric that is shown month by month."""

    metric: str
    title: str
    scale: float
    digits: int

    def write(self, value: float) -> str:
        """Write a value as a table shows it."""
        return f"{value * self.scale:.{self.digits}f}"


MEASURES = (
    Measure("mean_wait", "mean wait, hours", 1 / 3600, 2),
    Measure("mean_bounded_slowdown", "mean bounded slowdown", 1.0, 1),
    Measure("utilization_window", "utilization, %", 100.0, 1),
)


def tables(found: Outcome) -> str:
    """Write a table and a figure per metric."""
    out = []
    for measure in MEASURES:
        out += [f"### Period by month: {measure.title}\n", _table(found, measure)]
        out += [f"![{measure.title}, month by month](figures/study-{_file(measure)}.svg)\n"]
    return "\n".join(out)


def folded(found: Outcome) -> str:
    """Write the tables of a long log, folded up."""
    out = []
    for measure in MEASURES:
        out += [
            f"<details><summary>Period by month: {measure.title}</summary>\n",
            _table(found, measure),
            "</details>\n",
        ]
    return "\n".join(out)


def _table(found: Outcome, measure: Measure) -> str:
    """Write a row per month, a column per strategy."""
    names = list(dict.fromkeys(verdict.strategy for verdict in found.results))
    told = {(v.period, v.strategy): measure.write(v.summary[measure.metric]) for v in found.results}
    return (
        markdown_table(["month", *names], [[label, *(told[label, name] for name in names)] for label in found.periods])
        + "\n"
    )


def figures(found: Outcome) -> dict[str, str]:
    """Draw a figure per metric: file name to SVG text."""
    out = {}
    for measure in MEASURES:
        values = {(v.period, v.strategy): measure.scale * v.summary[measure.metric] for v in found.results}
        rows = {
            name: [values[label, name] for label in found.periods]
            for name in DRAWN
            if (found.periods[0], name) in values
        }
        line = [values[label, "fcfs-easy"] for label in found.periods]
        out[f"study-{_file(measure)}.svg"] = grouped_bars(
            found.periods, rows, label=measure.title, line=line, line_label="fcfs-easy"
        )
    return out


def _file(measure: Measure) -> str:
    return measure.metric.replace("_", "-")


def pairs(found: Outcome, changes: Callable[[Claim, Outcome], dict[str, float]]) -> str:
    """Write the change that each of the paper's pairs of strategies makes in each month, per cent."""
    lines = [
        "### The paper's pairs, month by month\n",
        "Change in per cent; minus is less. The paper's Figures 7 to 13 draw these pairs.\n",
    ]
    rows = []
    for claim in CLAIMS:
        row = changes(claim, found)
        cells = [f"{row[label]:+.0f}" if label in row else "" for label in found.periods]
        if row:
            metric = claim.metric.removesuffix("_window").replace("_", " ")
            rows.append([f"{claim.strategy} against {claim.reference}", metric, *cells])
    return "\n".join([*lines, markdown_table(["", "of", *found.periods], rows, left=2), ""])


def parameters(options: Options) -> str:
    """Write the parameters as the paper's Table III does, with ours where the paper has none."""
    reference = options.reference or "the queue with most core-seconds"
    split_on = {"walltime": "walltime, which a scheduler can enforce", "runtime": "real run time"}[options.split_on]
    judged = {"partitions": "the partitions without it", "live": "partitions and pool"}[options.carve]
    entry = {"either": "starts where it can first", "move": "leaves its partition's list"}[options.pool_entry]
    rows = (
        ("samples of partition sets", "100", str(options.samples)),
        ("epochs and their weights", "3 of 10 days: 1/3, 2/3, 3/3", ", ".join(f"{w:.3g}" for w in options.weights)),
        ("degree of the polynomials", "at most 3", str(options.degree or "1 to 3, by cross-validation")),
        ("tau_util of the lower bounds", "not given", f"{options.tau_util:g}"),
        ("slack of proportions", "0, which nothing satisfies", f"{options.slack:g}, or the least with a solution"),
        ("chunkSize", "5 cores", str(options.chunk or "a node of 24 cores: nodes are given whole")),
        ("degPercent", "30 %", f"{100 * options.degradation:g} %"),
        ("tau", "half the priority of `medium`", f"half the priority of {reference}"),
        ("dqr splits by", "run time", split_on),
        ("a chunk is judged by", "the partitions without it", judged),
        ("a job that may enter the pool", "starts where it can first", entry),
    )
    told = markdown_table(["parameter", "paper", "here"], rows, left=3)
    return "\n".join(["### Parameters (the paper's Table III)\n", told, ""])
