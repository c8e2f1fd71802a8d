"""``qconf fidelity``: compares simulated with recorded starts, and calibrates the configuration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qconf.cli.messages import history_warnings, report_history, say, warn
from qconf.cli.options import PATH, Parsed, stem
from qconf.cli.progress import progress
from qconf.cli.settings import WORKERS, parts_of
from qconf.cli.source import Source, history_options

if TYPE_CHECKING:
    from qconf.fidelity.calibrate import Calibration
    from qconf.fidelity.verify import Verification

FILES = ("report.html", "fidelity.csv", "fidelity.json", "config.yaml")


def _lengths(text: str) -> tuple[int, int] | None:
    from qconf.config import parse_duration

    low, _, high = text.partition("..")
    shortest, longest = parse_duration(low), parse_duration(high or low)
    return (shortest, longest) if 0 < shortest <= longest else None


def _parts(_context: click.Context, _option: click.Parameter, text: str | None) -> tuple[str, ...]:
    from qconf.fidelity.family import PARTS

    return parts_of(text or ",".join(PARTS), PARTS, "is no part that is searched", field="--vary")


WINDOW = Parsed("window", _lengths, "is not like 2h..24h: the shortest and the longest window, or one length")
COUNT = click.IntRange(1, 100_000)


@click.command("fidelity")
@history_options
@click.option(
    "--window", "lengths", type=WINDOW, default="2h..24h", show_default=True, help="Lengths that are drawn from."
)
@click.option("--windows", "count", type=COUNT, default=60, show_default=True, help="How many, at most.")
@click.option("--farthest", "shown", type=click.IntRange(0, 1000), default=10, show_default=True, help="Jobs shown.")
@click.option("--calibrate", is_flag=True, help="Search for what the site probably runs.")
@click.option("--vary", metavar="A,B,...", callback=_parts, help="Parts that are searched.  [default: all]")
@click.option("--trials", type=COUNT, default=400, show_default=True, help="Configurations tried, at most.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Of the windows.")
@click.option("--workers", type=click.IntRange(1), default=WORKERS, show_default=True, help="Processes of the search.")
@click.option("-o", "--out", type=PATH, help="Folder to write.  [with --calibrate: reports/<history>-fidelity]")
@click.option("-q", "--quiet", is_flag=True, help="Print the grade and where it is written; warnings.")
@click.option("-v", "--verbose", is_flag=True, help="Print windows, queues, users and hours of day too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
def command(
    *,
    source: Source,
    calibrate: bool,
    vary: tuple[str, ...],
    trials: int,
    out: Path | None,
    quiet: bool,
    verbose: bool,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - of `verify` and `calibrate`
) -> None:
    """Compare simulated starts with recorded ones, in windows that begin with what ran by the log.

    Run times are exact and submissions known, so that what differs is the scheduler. --calibrate searches a small
    family of configurations on every other window, evaluates on those between, and writes the best with its grade.
    """
    from qconf.fidelity.grade import grade_warnings
    from qconf.fidelity.verify import verify
    from qconf.text import as_json as to_json
    from qconf.text import refuse_overwrite

    silent = quiet or as_json
    wait = source.compile(quiet=silent)
    log, config = source.whole()
    jobs = source.cut(log)
    warnings = [*history_warnings(config, jobs), *grade_warnings(config)]
    report_history(jobs, config, warnings, derived=source.config_path is None, quiet=silent)
    directory = out or (Path("reports", f"{stem(source.history[0])}-fidelity") if calibrate else None)
    if directory is not None:
        refuse_overwrite(source.inputs, [directory / name for name in FILES], "choose another folder with --out")
    workers = given.pop("workers")
    with progress("calibrating" if calibrate else "simulating", quiet=silent) as step:
        wait()
        found: Verification | Calibration
        if calibrate:
            from qconf.fidelity.calibrate import calibrate as search

            about = {"trials": trials, "parts": vary, "workers": workers, "progress": step}
            found = search(log, config, **given, within=jobs.span, **about)
        else:
            found = verify(log, config, **given, within=jobs.span)
    document = to_json(found.document())
    if directory is not None:
        _write(directory, found, document, warnings)
    if as_json:
        click.echo(document, nl=False)
        return
    from qconf.report.fidelity import print_fidelity, print_grade
    from qconf.report.layout import console

    if quiet:
        warn(found.verification.warnings)
        print_grade(found, console())
    else:
        print_fidelity(found, console(), verbose=verbose)
    if directory is not None:
        if not quiet:
            click.echo("")
        say(f"Written to {directory}: {', '.join(FILES)}")


def _write(directory: Path, found: Verification | Calibration, document: str, warnings: Sequence[str]) -> None:
    """Write the page, the table, the document and the configuration with its grade; all or none."""
    import pandas as pd

    from qconf.config import dump
    from qconf.fidelity.grade import with_grade
    from qconf.inert import csv_text
    from qconf.report.fidelity import render_fidelity
    from qconf.text import all_or_nothing

    verification = found.verification
    graded = with_grade(verification.config, verification.grade)
    table = csv_text(pd.DataFrame(list(verification.rows())))
    texts = render_fidelity(found, warnings), table, document, dump(graded, found.comment())
    with all_or_nothing(directory) as scratch:
        for name, text in zip(FILES, texts, strict=True):
            (scratch / name).write_text(text, encoding="utf-8")
