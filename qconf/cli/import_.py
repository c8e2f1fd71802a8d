"""``qconf import``: converts logs of batch systems to one history CSV."""

from __future__ import annotations

from pathlib import Path

import click

from qconf.cli.options import PATH, output_option
from qconf.cli.source import READING, Source, format_option, source_options
from qconf.cli.tables import DROPPED, check_table, write_table
from qconf.errors import InputError


@click.command("import")
@click.argument("history", metavar="SRC...", nargs=-1, required=True, type=PATH)
@output_option("History CSV to write, or .csv.gz.", required=True, dir_okay=False)
@format_option("Format of the logs.")
@source_options(*READING, "anonymous")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON document.")
def command(source: Source, output: Path, kind: str, as_json: bool) -> None:
    """Turn logs (files, .gz, a folder of daily ones) into one history CSV; list the rest in dropped.csv."""
    import json

    from qconf.history.history import history_lines

    check_table(output, source.history)
    records = source.records(kind)
    counts = records.reasons
    if records.table.empty:
        why = ", ".join(f"{n} {reason}" for reason, n in counts.items()) or "there is none"
        details = [detail for detail in records.dropped["detail"] if detail]
        why += f", of which the first: {details[0]}" if details else ""
        message, fix = f"no job among {records.read} records: {why}", "give the logs of days on which jobs ran"
        raise InputError(message, file=source.history[0], fix=fix)
    write_table(output, history_lines(records.table, records.epoch), records.dropped)
    running = int((records.table["state"] == "running").sum())
    summary = {
        "format": records.format,
        "files": len(records.sources),
        "read": records.read,
        "jobs": len(records.table),
        "still_running": running,
        "dropped": counts,
        "merged_lines": dict(records.merged),
        "changed": dict(records.changed),
        "machine_cores": records.machine_cores,
        "output": str(output),
    }
    if as_json:
        click.echo(json.dumps(summary, indent=2))
        return
    click.echo(f"{output}: {len(records.table)} jobs of {records.read} records ({records.format})")
    if running:
        click.echo(f"  {running:>9} of them still run at the end of the log: their end is unknown")
    for title, what in (("dropped", counts), ("merged", records.merged), ("changed", records.changed)):
        for reason, count in what.items():
            click.echo(f"  {count:>9} {title}: {reason}")
    if counts:
        click.echo(f"  dropped records are listed in {output.parent / DROPPED}")
    if records.machine_cores:
        click.echo(f"  by its header the machine has {records.machine_cores} cores: give that as --cores")
