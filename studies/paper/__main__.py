"""``python -m studies.paper``: run the study, or resume it, and write study.md."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from qconf.text import write_whole
from studies.output import DOCS, REPORTS, ROOT, run, write_figures
from studies.paper import by_period, page, pieces, plan
from studies.paper.pieces import Piece, PieceResult


@click.command("studies.paper")
@click.option("--quick", is_flag=True, help="A few periods of everything, in minutes.")
@click.option("--out", type=click.Path(path_type=Path), default=DOCS, help="Folder of study.md.")
@click.option(
    "--traces",
    type=click.Path(path_type=Path),
    default=ROOT.parent / "shared" / "traces",
    help="Folder of the public logs; those that are not there are left out.  [default: ../shared/traces]",
)
@click.option(
    "--work", type=click.Path(path_type=Path), help="Where finished pieces are stored.  [default: reports/study]"
)
@click.option(
    "--workers", default=2, show_default=True, type=click.IntRange(1), help="Threads; no effect on the results."
)
def command(*, quick: bool, out: Path, traces: Path, work: Path | None, workers: int) -> None:
    """Evaluate every strategy on generated months and on public logs, and write the results as study.md."""
    work = work or REPORTS / ("study-quick" if quick else "study")
    work.mkdir(parents=True, exist_ok=True)
    settings = {"workers": workers, **plan.PAPER}

    def progress(text: str) -> None:
        end = "\r" if sys.stderr.isatty() else "\n"
        click.echo(f"{text:<78}"[:78] + end, err=True, nl=False)

    def results(wanted: Iterable[Piece]) -> list[PieceResult]:
        return [found for piece in wanted if (found := pieces.run(piece, traces, work, progress))]

    generated = pieces.run(plan.generated(settings, quick=quick), traces, work, progress)
    sensitivity = results(plan.sensitivity(settings, quick=quick))
    logs = results(plan.logs(settings, quick=quick))
    elsewhere = results(plan.cuts(settings, quick=quick))
    scope = page.QUICK.format(periods=plan.QUICK_PERIODS, sensitivity=plan.QUICK_SENSITIVITY) if quick else page.WHOLE
    name = "python -m studies.paper" + (" --quick" if quick else "")
    text = page.write(generated, sensitivity, logs, elsewhere, command=name, scope=scope)
    if generated is not None:
        write_figures(out / "figures", by_period.figures(generated))
    write_whole(out / "study.md", text)
    click.echo(f"written: {out / 'study.md'}")


if __name__ == "__main__":
    run(command)
