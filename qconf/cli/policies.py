"""``qconf policies``: compares planning schedulers on a history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from qconf.cli.messages import report_cleaning
from qconf.cli.options import Parsed, retired_option, with_options
from qconf.cli.source import Source, history_options

if TYPE_CHECKING:
    from rich.table import Table

    from parsim import Workload
    from qconf.evaluation.planning import DisciplineResult

#: Metrics of the table, with their decimals.
METRICS = {
    "sld_wa": 4,
    "art": 2,
    "mean_wait": 2,
    "p95_wait": 1,
    "max_wait": 1,
    "mean_bounded_slowdown": 2,
    "utilization": 2,
}
STUDY = "python -m studies.dynp"


def _factor(text: str) -> Decimal | None:
    factor = Decimal(text)
    return factor if factor.is_finite() and 0 < factor <= 100 else None


FACTOR = Parsed("factor", _factor, "is no number above 0 and up to 100")  #: a Decimal, so exact
planning_options = with_options(
    click.option("--shrink", type=FACTOR, help="Multiply the times between submissions: 0.75 is a third more load."),
    click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Simulations at a time."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables."),
)
_retired_options = with_options(
    *(
        retired_option(*names, use=f"`{STUDY} {names[0]}` in a checkout does this")
        for names in (("--job-set",), ("--seed",), ("--sweep",), ("--grid",), ("--out", "-o"))
    )
)


@click.command("policies")
@history_options
@planning_options
@_retired_options
def command(*, shrink: Decimal | None, workers: int, as_json: bool, source: Source) -> None:
    """Compare schedulers that plan their whole waiting list: FCFS, SJF, LJF, conservative, the dynP family.

    Jobs run on one machine without queues and limits. SLDwA is the mean slowdown weighted by core-seconds,
    ART the mean response time.
    """
    workload, document = read_workload(source, quiet=as_json)
    _, tables = compare(workload, document, shrink, workers)
    show(document, tables, as_json=as_json)


def read_workload(source: Source, *, quiet: bool) -> tuple[Workload, dict[str, Any]]:
    """Read the jobs; return the workload and the first part of the JSON document."""
    past, config = source.load()
    if not quiet:
        report_cleaning(past, config, derived=source.config_path is None)
    workload = past.workload(config)
    return workload, {
        "source": ", ".join(path.name for path in source.history),
        "jobs": len(workload),
        "cores": config.machine.cores,
        "read": past.read,
        "dropped": dict(past.reasons),
        "changed": dict(past.changed),
    }


def compare(
    workload: Workload, document: dict[str, Any], factor: Decimal | None, workers: int
) -> tuple[Workload, list[Table]]:
    """Simulate every discipline and add the results to the document; return the simulated jobs and the tables."""
    from qconf.evaluation import planning

    title = "{source}: {jobs} jobs on {cores} cores".format_map(document)
    if factor is not None:
        workload = planning.shrink(workload, factor)
        title += f", times between submissions multiplied by {factor}"
    results = planning.compare(workload, document["cores"], workers=workers)
    document |= {"shrink": float(factor or 1), "disciplines": [result.as_json() for result in results]}
    return workload, [_results(title, results), _switching(results), _in_use(results)]


def show(document: Mapping[str, Any], tables: Iterable[Table], *, as_json: bool) -> None:
    """Print the document or the tables."""
    if as_json:
        import json

        click.echo(json.dumps(document, indent=2, allow_nan=False))
        return
    from qconf.report.layout import console, print_table

    to = console()
    for each in tables:
        print_table(to, each)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]] = ()) -> Table:
    """Return a table of numbers; the first column holds the names of the rows."""
    from qconf.report.layout import new_table

    return new_table(columns[:1], columns[1:], rows, title=title)


def shares(counts: Mapping[str, int] | None) -> list[str]:
    """Return each count as a percentage of their sum, as text."""
    counts = counts or {}
    total = max(sum(counts.values()), 1)
    return [f"{100 * count / total:.1f}" for count in counts.values()]


def _results(title: str, results: Sequence[DisciplineResult]) -> Table:
    from qconf.report.columns import columns

    shown = columns(*METRICS)
    rows = (
        [each.name, *(column.write(each.metrics[column.key], METRICS[column.key]) for column in shown)]
        for each in results
    )
    return table(title, ("discipline", *(column.heading for column in shown)), rows)


def _switching(results: Sequence[DisciplineResult]) -> Table:
    rows = (
        [each.name, str(each.decisions), *(f"{100 * n / each.decisions:.1f}" for n in (each.kept, *to.values()))]
        for each in results
        if each.decisions and (to := each.switched_to) is not None
    )
    columns = ("discipline", "decisions", "kept", "to FCFS", "to SJF", "to LJF")
    return table("how they switch: decisions, %", columns, rows)


def _in_use(results: Sequence[DisciplineResult]) -> Table:
    rows = (
        [each.name, *shares(each.starts), *shares(each.seconds)]
        for each in results
        if each.decisions and each.switched_to is not None
    )
    columns = ("discipline", "jobs F", "S", "L", "time F", "S", "L")
    return table("jobs started and time in use under FCFS, SJF and LJF, %", columns, rows)
