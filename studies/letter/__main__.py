"""``python -m studies.letter``: runs the unfinished pieces, and writes paper.md and its figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import click

from qconf.history import clean, read
from qconf.text import write_whole
from studies import output
from studies.letter import figures, page, plan
from studies.output import DOCS, REPORTS, run, write_figures
from studies.paper import pieces
from studies.paper.pieces import Piece, PieceResult


@click.command("studies.letter")
@click.option("--quick", is_flag=True, help="A few months of everything, in minutes.")
@output.folder("--out", DOCS, "Folder of paper.md.")
@output.folder("--work", None, "Where finished pieces are.", "reports/letter")
@output.workers("Threads.")
@click.option("--finished", is_flag=True, help="Run nothing: write the page of what is finished; it names the rest.")
def command(*, quick: bool, out: Path, work: Path | None, workers: int, finished: bool) -> None:
    """Run the paper to the letter and its readings, and write the results as paper.md."""
    work = work or REPORTS / ("letter-quick" if quick else "letter")
    work.mkdir(parents=True, exist_ok=True)
    left: list[str] = []

    def result(piece: Piece) -> PieceResult | None:
        if finished and not (work / f"{piece.name}.json").is_file():
            left.append(piece.what or piece.name)
            return None
        settings: Mapping[str, object] = {"workers": workers, **piece.settings}
        found = pieces.run(replace(piece, settings=settings), work, work)
        if found is None:
            raise RuntimeError(f"{piece.name}: no log was generated")
        return found

    columns = {name: found for name, piece in plan.claims(quick=quick).items() if (found := result(piece))}
    seeds = ((reading, list(filter(None, map(result, wanted)))) for reading, wanted in plan.readings(quick=quick))
    readings = [(reading, found) for reading, found in seeds if found]
    first = next(iter(columns.values()))
    base = first.piece.base()
    history = clean(read([first.piece.log(work, work)]), base)
    drawn = [*figures.workload(history, base), *figures.compared(first)]
    write_figures(out / "figures", {file: svg for file, _, svg in drawn})
    text = page.write(
        columns,
        readings,
        [(file, title) for file, title, _ in drawn],
        command="python -m studies.letter" + (" --quick" if quick else ""),
        quick=quick,
        left=left,
    )
    write_whole(out / "paper.md", text)
    click.echo(f"written: {out / 'paper.md'}")


if __name__ == "__main__":
    run(command)
