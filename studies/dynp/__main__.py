"""``python -m studies.dynp``: `qconf policies` with generated job sets, load sweeps and a grid of bounds."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from parsim import Workload
from qconf.cli import policies
from qconf.cli.source import Source, history_options
from studies.dynp.figures import grid_figure, response_figure, use_figure
from studies.dynp.jobsets import JOB_SETS, generate_job_set
from studies.dynp.sweeps import GRID_LOWER, GRID_UPPER, SWEPT, bounds_grid, sweep
from studies.output import REPORTS, run, write_figures

if TYPE_CHECKING:
    from rich.table import Table


@click.command("studies.dynp")
@history_options
@click.option(
    "--job-set",
    type=click.Choice(tuple(JOB_SETS)),
    help="Instead of a history: a generated set of 96 nodes with the means of Streit's two.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of --job-set.")
@policies.planning_options
@click.option("--sweep", "with_sweep", is_flag=True, help="Response time against load, factors 0.75 to 0.25.")
@click.option("--grid", "with_grid", is_flag=True, help="dynP over its grid of lower and upper bounds.")
@click.option(
    "-o",
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=REPORTS / "policies",
    help="Folder of the figures.  [default: reports/policies]",
)
def command(
    *,
    job_set: str | None,
    seed: int,
    shrink: Decimal | None,
    with_sweep: bool,
    with_grid: bool,
    out: Path,
    workers: int,
    as_json: bool,
    source: Source,
) -> None:
    """Compare planning disciplines on a history or a generated job set; sweep the load, try a grid of bounds."""
    if job_set is None:
        workload, document = policies.read_workload(source, quiet=as_json)
    else:
        if source != Source(timezone=source.timezone):
            raise click.UsageError("--job-set is used instead of a history and its options")
        workload, cores = generate_job_set(JOB_SETS[job_set], seed), JOB_SETS[job_set].machine
        document = {"source": f"{job_set}, seed {seed}", "jobs": len(workload), "cores": cores}
    workload, tables = policies.compare(workload, document, shrink, workers)
    if with_sweep:
        tables += _sweep(workload, document, out, workers)
    if with_grid:
        tables.append(_grid(workload, document, out, workers))
    policies.show(document, tables, as_json=as_json)
    if not as_json:
        for path in document.get("figures", ()):
            click.echo(path)


def _sweep(workload: Workload, document: dict[str, Any], out: Path, workers: int) -> list[Table]:
    """Run the sweep, add it to the document, write its figures; return its tables."""
    swept = sweep(workload, document["cores"], workers=workers)
    document["sweep"] = [
        {"shrink": float(factor), "disciplines": [result.as_json() for result in results]} for factor, results in swept
    ]
    names = [policy.name for policy in SWEPT]
    dynp = next(i for i, policy in enumerate(SWEPT) if policy.kind == "bounds")
    figures = {"response.svg": response_figure(swept), "use.svg": use_figure(swept, names[dynp])}
    document.setdefault("figures", []).extend(write_figures(out, figures))
    load = policies.table("mean response time in hours (utilization in %) by shrinking factor", ("shrink", *names))
    use = policies.table(f"share of time in use under {names[dynp]}, %", ("shrink", "util %", "FCFS", "SJF", "LJF"))
    for factor, results in swept:
        used = [f"{100 * result.metrics['utilization']:.1f}" for result in results]
        response = [f"{result.metrics['art'] / 3600:.2f}" for result in results]
        load.add_row(f"{factor:.2f}", *(f"{hours} ({percent})" for hours, percent in zip(response, used, strict=True)))
        use.add_row(f"{factor:.2f}", used[dynp], *policies.shares(results[dynp].seconds))
    return [load, use]


def _grid(workload: Workload, document: dict[str, Any], out: Path, workers: int) -> Table:
    """Run the grid of bounds, add it to the document, write its figure; return its table."""
    grid = bounds_grid(workload, document["cores"], workers=workers)
    document["grid"] = [{"lower": low, "upper": high, **result.as_json()} for (low, high), result in grid.items()]
    document.setdefault("figures", []).extend(write_figures(out, {"bounds.svg": grid_figure(grid)}))
    title = "dynP with bounds: mean response time in hours (SLDwA); lower bounds down, upper across, in seconds"
    found = policies.table(title, ("lower", *map(str, GRID_UPPER)))
    for low in GRID_LOWER:
        row = [grid.get((low, high)) for high in GRID_UPPER]
        cells = ("" if r is None else f"{r.metrics['art'] / 3600:.2f} ({r.metrics['sld_wa']:.2f})" for r in row)
        found.add_row(str(low), *cells)
    return found


if __name__ == "__main__":
    run(command)
