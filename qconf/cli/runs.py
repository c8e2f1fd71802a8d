"""``qconf runs``: lists recommendations month by month, with their promised and realised effects."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from qconf.cli.messages import say, warn
from qconf.cli.options import PATH


@click.command("runs")
@click.argument("directories", nargs=-1, type=PATH, metavar="[DIR]...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of the table.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV instead of the table.")
def command(directories: tuple[Path, ...], as_json: bool, as_csv: bool) -> None:
    """List runs of qconf tune: what each recommended and promised, and what happened then.

    DIR is the directory of a run, or a folder of such directories; reports unless given. What happened to a promise is
    in the run of a later month that was made with --last: no log is read.
    """
    if as_json and as_csv:
        raise click.UsageError("--json cannot be combined with --csv.")

    from qconf.report import runs
    from qconf.report.layout import console, print_table
    from qconf.text import as_json as to_json

    found = runs.past_runs(directories or (Path("reports"),), left_out=lambda why: warn([why]))
    if as_json:
        click.echo(to_json({"runs": [asdict(past) for past in found]}), nl=False)
    elif as_csv:
        click.echo(runs.as_csv(found), nl=False)
    else:
        print_table(console(), runs.table(found))
        if text := runs.summary(found):
            click.echo("")
            say(text, indent="")
