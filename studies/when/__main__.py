"""``python -m studies.when``: computes missing rows, and writes when.md and its figure."""

from __future__ import annotations

import math
from dataclasses import astuple
from itertools import product
from pathlib import Path

import click

from qconf.errors import InputError
from qconf.parallel import parallel_map
from qconf.text import write_whole
from studies import output
from studies.output import DOCS, REPORTS, run, write_figures
from studies.when.cells import LIMITS, LOADS, MONTHS, SEEDS, Cell, Row, columns, load, measured, text_of
from studies.when.page import FIGURE, PAGE, ROWS, figure, page, waits


@click.command("studies.when")
@click.option("--quick", is_flag=True, help="Two loads, two limits and one seed, in minutes.")
@click.option("--seeds", help="Of the generated months, such as 0,1.")
@click.option("--loads", help="Such as 0.8,0.95.")
@click.option("--limits", help="Factors of every max_run, such as 1,0.5.")
@click.option(
    "--months", default=MONTHS, show_default=True, type=click.IntRange(2), help="The first for training only."
)
@click.option("--again", default="", help="Strategies whose kept rows are computed again, such as dp-nlp,hybrid.")
@click.option("--table", is_flag=True, help="Print the table of these points, and write no page.")
@output.folder("--out", DOCS, "Folder of when.md.")
@output.folder("--work", None, "Where rows are kept.", "reports/when")
@output.workers("Processes.")
def command(
    *,
    quick: bool,
    seeds: str | None,
    loads: str | None,
    limits: str | None,
    months: int,
    again: str,
    table: bool,
    out: Path,
    work: Path | None,
    workers: int,
) -> None:
    """Compare strategies over load, running limits and readings of a merge, and write when.md."""
    chosen = (
        _numbers("seeds", seeds, 0) or SEEDS[: 1 if quick else None],
        _numbers("limits", limits, 0.01) or list(LIMITS)[: 2 if quick else None],
        _numbers("loads", loads, 0.01) or (LOADS[1:4:2] if quick else LOADS),
    )
    unknown = set(filter(None, again.split(","))) - {strategy for _, strategy, _ in columns()}
    if unknown:
        raise InputError("is not compared here", field="again", value=min(unknown))
    work = work or REPORTS / "when"
    work.mkdir(parents=True, exist_ok=True)
    names = [name for name, _, _ in columns()]
    dropped = [name for name, strategy, _ in columns() if strategy in again.split(",")]
    known = {key: row for key, row in load(work / ROWS).items() if row.strategy not in dropped}
    write_whole(work / ROWS, text_of(known.values()))
    cells = [Cell(int(seed), *rest) for seed, *rest in product(*chosen)]
    missing = {cell: [name for name in names if (cell, name, months) not in known] for cell in cells}
    left = [(cell, own, months, work) for cell, own in missing.items() if own]

    def keep(i: int, rows: list[Row]) -> None:
        known.update({row.key: row for row in rows})
        with (work / ROWS).open("a", encoding="utf-8") as file:
            file.writelines(",".join(map(str, astuple(row))) + "\n" for row in rows)
        click.echo(f"{i + 1} of {len(left)}: {left[i][0]}", err=True)

    parallel_map(workers, measured, left, processes=True, done=keep)
    rows = [known[cell, name, months] for cell in cells for name in names]
    if table:
        click.echo(waits(rows))
        return
    write_figures(out / "figures", {FIGURE: figure(rows), ROWS: text_of(rows)})
    write_whole(out / PAGE, page(rows))
    click.echo(f"written: {out / PAGE}")


def _numbers(name: str, text: str | None, least: float) -> tuple[float, ...]:
    if text is None:
        return ()
    try:
        found = tuple(map(float, text.split(",")))
    except ValueError:
        found = (math.nan,)
    if not all(least <= each <= 2**32 for each in found):
        raise InputError("is no list of numbers", field=name, value=text, fix=f"give numbers from {least:g} on: 1,2")
    return found


if __name__ == "__main__":
    run(command)
