"""``qconf policies``: what planning schedulers would give on a history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qconf.cli.options import history_options, load_history, tell_cleaning

if TYPE_CHECKING:
    from rich.table import Table

    from parsim import Workload
    from studies.dynp import Row

COLUMNS = (
    ("SLDwA", "sld_wa", 1, ".4f"),
    ("ART h", "art", 3600, ".2f"),
    ("mean wait h", "mean_wait", 3600, ".2f"),
    ("p95 wait h", "p95_wait", 3600, ".1f"),
    ("max wait h", "max_wait", 3600, ".1f"),
    ("bounded sld", "mean_bounded_slowdown", 1, ".2f"),
    ("util %", "utilization", 0.01, ".2f"),
)
JOB_SETS = ("set1", "set2")


class Factor(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A decimal number above 0, kept exact."""

    name = "factor"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Decimal:  # noqa: ANN401
        """Turn text into a Decimal."""
        try:
            factor = Decimal(value)
        except InvalidOperation:
            factor = Decimal(0)
        if not (factor.is_finite() and 0 < factor <= 100):
            self.fail(f"{value!r} is no number above 0 and up to 100", param, ctx)
        return factor


@click.command("policies")
@history_options
@click.option(
    "--job-set",
    type=click.Choice(JOB_SETS),
    help="Instead of a history: a generated set of 96 nodes with the means of Streit's two.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of --job-set.")
@click.option("--shrink", type=Factor(), help="Multiply the times between submissions: 0.75 is a third more load.")
@click.option("--sweep", "sweeps", is_flag=True, help="Response time against load, factors 0.75 to 0.25: two figures.")
@click.option("--grid", "grids", is_flag=True, help="dynP over its grid of lower and upper bounds: a table, a figure.")
@click.option(
    "-o",
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reports/policies"),
    show_default=True,
    help="Directory of the figures.",
)
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Simulations at a time.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
def command(
    *,
    history: tuple[Path, ...],
    config_path: Path | None,
    cores: int | None,
    month: str | None,
    start: str | None,
    end: str | None,
    timezone: str,
    job_set: str | None,
    seed: int,
    shrink: Decimal | None,
    sweeps: bool,
    grids: bool,
    out: Path,
    workers: int,
    as_json: bool,
) -> None:
    """Compare schedulers that plan their whole waiting list: FCFS, SJF, LJF, conservative, the dynP family.

    Jobs run on one machine without queues and limits. SLDwA is the mean slowdown weighted by core-seconds,
    ART the mean response time.
    """
    from studies import dynp as policies

    cleaned: dict[str, Any] = {}
    if job_set is None:
        past, config = load_history(history, config_path, cores, month=month, start=start, end=end, timezone=timezone)
        workload, machine = past.workload(config), config.machine.cores
        source = ", ".join(path.name for path in history)
        cleaned = {"read": past.read, "dropped": dict(past.reasons), "changed": dict(past.changed)}
        if not as_json:
            tell_cleaning(past, config, derived=config_path is None)
    else:
        if history or config_path or cores or month or start or end:
            raise click.UsageError("--job-set is used instead of a history and its options")
        described = policies.JOB_SETS[job_set]
        workload, machine = policies.generate_job_set(described, seed), described.machine
        source = f"{job_set}, seed {seed}"
    if shrink is not None:
        workload = policies.shrunk(workload, shrink)
    rows = policies.compare(workload, machine, workers=workers)
    answer: dict[str, Any] = {
        "source": source,
        "jobs": len(workload),
        "cores": machine,
        **cleaned,
        "shrink": float(shrink or 1),
        "disciplines": [row.as_json() for row in rows],
    }
    title = f"{source}: {len(workload)} jobs on {machine} cores"
    if shrink is not None:
        title += f", times between submissions multiplied by {shrink}"
    tables = [_results(title, rows), _switching(rows)]
    if sweeps:
        tables += _sweep(workload, machine, out, workers, answer)
    if grids:
        tables.append(_grid(workload, machine, out, workers, answer))
    if as_json:
        import json

        click.echo(json.dumps(answer, indent=2, allow_nan=False))
        return
    from qconf.report.terminal import console, print_table

    to = console()
    for table in tables:
        print_table(to, table)
    for path in answer.get("figures", ()):
        click.echo(path)


def _sweep(workload: Workload, machine: int, out: Path, workers: int, answer: dict[str, Any]) -> list[Table]:
    """Run the sweep, write its figures, and return its tables."""
    from qconf.text import write_whole
    from studies import dynp as policies
    from studies.dynp.figures import response_figure, use_figure

    swept = policies.sweep(workload, machine, workers=workers)
    answer["sweep"] = [
        {"shrink": float(factor), "disciplines": [row.as_json() for row in rows]} for factor, rows in swept
    ]
    bounded = next(policy.name for policy in policies.SWEPT if policy.kind == "bounds")
    for name, figure in (("response", response_figure(swept)), ("use", use_figure(swept, bounded))):
        path = out / f"{name}.svg"
        write_whole(path, figure)
        answer.setdefault("figures", []).append(str(path))
    names = [row.name for row in swept[0][1]]
    load = _table("mean response time in hours (utilization in %) by shrinking factor", ("shrink", *names))
    for factor, rows in swept:
        cells = [f"{row.metrics['art'] / 3600:.2f} ({100 * row.metrics['utilization']:.1f})" for row in rows]
        load.add_row(f"{factor:.2f}", *cells)
    use = _table(f"share of time in use under {bounded}, %", ("shrink", "util %", "FCFS", "SJF", "LJF"))
    for factor, rows in swept:
        row = rows[names.index(bounded)]
        use.add_row(f"{factor:.2f}", f"{100 * row.metrics['utilization']:.1f}", *_shares(row.seconds))
    return [load, use]


def _grid(workload: Workload, machine: int, out: Path, workers: int, answer: dict[str, Any]) -> Table:
    """Run the grid of bounds, write its figure, and return its table."""
    from qconf.text import write_whole
    from studies import dynp as policies
    from studies.dynp.figures import grid_figure

    grid = policies.bounds_grid(workload, machine, workers=workers)
    answer["grid"] = [{"lower": low, "upper": high, **row.as_json()} for (low, high), row in grid.items()]
    path = out / "bounds.svg"
    write_whole(path, grid_figure(grid))
    answer.setdefault("figures", []).append(str(path))
    title = "dynP with bounds: mean response time in hours (SLDwA); lower bounds down, upper across, in seconds"
    table = _table(title, ("lower", *map(str, policies.GRID_UPPER)))
    for low in policies.GRID_LOWER:
        found = [grid.get((low, high)) for high in policies.GRID_UPPER]
        table.add_row(
            str(low),
            *("" if row is None else f"{row.metrics['art'] / 3600:.2f} ({row.metrics['sld_wa']:.2f})" for row in found),
        )
    return table


def _table(title: str, columns: Sequence[str]) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for i, name in enumerate(columns):
        table.add_column(name, justify="right" if i else "left", no_wrap=not i)
    return table


def _results(title: str, rows: Sequence[Row]) -> Table:
    table = _table(title, ("discipline", *(name for name, *_ in COLUMNS)))
    for row in rows:
        cells = [f"{row.metrics[key] / unit:{style}}" for _, key, unit, style in COLUMNS]
        table.add_row(row.name, *cells)
    return table


def _switching(rows: Sequence[Row]) -> Table:
    columns = ("discipline", "decisions", "kept", "to FCFS", "to SJF", "to LJF", "jobs F/S/L", "time F/S/L")
    title = "how they switch, %: decisions; jobs started and time in use under FCFS/SJF/LJF"
    table = _table(title, columns)
    for row in rows:
        if row.decisions and row.switched_to is not None:
            moves = [f"{100 * n / row.decisions:.1f}" for n in (row.kept, *row.switched_to.values())]
            shares = ["/".join(_shares(counts)) for counts in (row.starts, row.seconds)]
            table.add_row(row.name, str(row.decisions), *moves, *shares)
    return table


def _shares(counts: Mapping[str, int] | None) -> list[str]:
    counts = counts or {}
    total = max(sum(counts.values()), 1)
    return [f"{100 * count / total:.1f}" for count in counts.values()]
