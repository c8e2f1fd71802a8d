"""``python -m studies.paper``: run the study, or resume it, and write study.md."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from qconf.text import write_whole
from studies import output
from studies.output import DOCS, REPORTS, TRACES, run, write_figures
from studies.paper import by_period, page, pieces, plan
from studies.paper.pieces import Piece, PieceResult


@click.command("studies.paper")
@click.option("--quick", is_flag=True, help="A few periods of everything, in minutes.")
@output.folder("--out", DOCS, "Folder of study.md.")
@output.folder(
    "--traces", TRACES, "Folder of the public logs; those that are not there are left out.", "../shared/traces"
)
@output.folder("--work", None, "Where finished pieces are stored.", "reports/study")
@output.workers("Threads; no effect on the results.")
def command(*, quick: bool, out: Path, traces: Path, work: Path | None, workers: int) -> None:
    """Evaluate every strategy on generated months and on public logs, and write the results as study.md."""
    work = work or REPORTS / ("study-quick" if quick else "study")
    work.mkdir(parents=True, exist_ok=True)
    settings = {"workers": workers, **plan.PAPER}

    def results(wanted: Iterable[Piece]) -> list[PieceResult]:
        return [found for piece in wanted if (found := pieces.run(piece, traces, work))]

    generated = pieces.run(plan.generated(settings, quick=quick), traces, work)
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
