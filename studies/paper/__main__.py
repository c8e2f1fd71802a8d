"""``python -m studies.paper``: run the study, or go on with it, and write study.md."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from qconf.errors import QconfError
from qconf.strategies import Options
from qconf.text import write_whole
from studies.paper import monthly, page, plan
from studies.paper.pieces import ROOT, Outcome, Piece, run


@click.command("study")
@click.option("--quick", is_flag=True, help="A few months of everything, in minutes.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=ROOT / "docs", help="Folder of study.md.  [default: docs]"
)
@click.option(
    "--traces",
    type=click.Path(path_type=Path),
    default=ROOT.parent / "shared" / "traces",
    help="Folder of the public logs; those that are not there are left out.  [default: ../shared/traces]",
)
@click.option(
    "--work", type=click.Path(path_type=Path), help="Where finished pieces are kept.  [default: reports/study]"
)
@click.option(
    "--workers", default=2, show_default=True, type=click.IntRange(1), help="Threads; no effect on the answer."
)
def command(*, quick: bool, out: Path, traces: Path, work: Path | None, workers: int) -> None:
    """Judge every strategy on generated months and on public logs, and write what came out as study.md."""
    work = work or ROOT / "reports" / ("study-quick" if quick else "study")
    work.mkdir(parents=True, exist_ok=True)
    options = Options(workers=workers, **plan.PAPER)

    def tell(text: str) -> None:
        end = "\r" if sys.stderr.isatty() else "\n"
        click.echo(f"{text:<78}"[:78] + end, err=True, nl=False)

    def outcomes(pieces: Iterable[Piece]) -> list[Outcome]:
        return [found for piece in pieces if (found := run(piece, traces, work, tell))]

    generated = run(plan.generated(options, quick=quick), traces, work, tell)
    settings = outcomes(plan.sensitivity(options, quick=quick))
    logs = outcomes(plan.logs(options, quick=quick))
    elsewhere = outcomes(plan.cuts(options, quick=quick))
    scope = page.QUICK.format(months=plan.QUICK_MONTHS, sensitivity=plan.QUICK_SENSITIVITY) if quick else page.WHOLE
    asked = "python -m studies.paper" + (" --quick" if quick else "")
    text = page.write(generated, settings, logs, elsewhere, command=asked, scope=scope, options=options)
    if generated is not None:
        for name, drawn in monthly.figures(generated).items():
            write_whole(out / "figures" / name, drawn)
    write_whole(out / "study.md", text)
    click.echo(f"written: {out / 'study.md'}")


if __name__ == "__main__":
    try:
        command()
    except QconfError as error:
        click.echo(f"studies.paper: {error}", err=True)
        sys.exit(1)
