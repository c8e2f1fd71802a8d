"""``qconf init``: writes a first configuration, from a batch system or a history, to edit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from qconf.cli.export import chosen
from qconf.cli.options import PATH, F, json_option, output_option, with_options
from qconf.cli.source import READING, Source, history_option, source_options
from qconf.errors import InputError
from qconf.export import Derived, exporter, targets


def _from(target: str) -> Callable[[F], F]:
    text = f"From {exporter(target).name}: {exporter(target).source}{exporter(target).also}."
    return click.option(f"--from-{target}", target, type=PATH, metavar="FILE", help=text)


@click.command("init")
@with_options(*map(_from, targets()))
@source_options(history_option("Log of jobs; alone, it gives a queue per queue name in it"), "cores", *READING)
@click.option(
    "--nodes",
    metavar="FILE",
    help="pbsnodes -av output, for the sizes of machine and partitions where the batch system's own lacks them.",
)
@click.option("--scheduler", metavar="FILE", help="The scheduler's sched_config, for what a PBS server does not hold.")
@click.option(
    "--shares", type=PATH, metavar="FILE", help="Shares of users: PBS's resource_group, or sacctmgr's associations."
)
@click.option("--qos", type=PATH, metavar="FILE", help="Qualities of service: output of sacctmgr --parsable2 show qos.")
@click.option(
    "--downtimes",
    type=PATH,
    metavar="FILE",
    multiple=True,
    help="Nodes and reservations: sacctmgr show event, scontrol show reservation, PBS accounting or server logs; "
    "shortpools, of pbs_rstat -F or an export's PLAN.md too.",
)
@click.option("--hours", type=PATH, metavar="FILE", help="An export's qconf-hours: limits that hold for some hours.")
@click.option("--name", metavar="NAME", help="Name of the machine.")
@click.option("--force", is_flag=True, help="Replace a configuration that is there.")
@output_option("File to write.  [default: standard output]")
@json_option
def command(
    *,
    source: Source,
    nodes: str | None,
    scheduler: str | None,
    shares: Path | None,
    qos: Path | None,
    downtimes: tuple[Path, ...],
    hours: Path | None,
    name: str | None,
    force: bool,
    output: Path | None,
    as_json: bool,
    **given: Path | None,
) -> None:
    """Write a first configuration, from what a batch system holds or from a history.

    Warnings about what contradicts itself there go to standard error and to the head of the file.
    """
    servers = {target: path for target, path in given.items() if path is not None}
    if len(servers) > 1 or not (servers or source.history):
        options = ", ".join(f"--from-{target}" for target in targets())
        raise click.UsageError(f"give one of {options} and --history")
    listed = {name: words for name, words in (("nodes", nodes), ("scheduler", scheduler)) if words is not None}
    if (listed or shares or qos) and not servers:
        listed |= {name: "" for name, file in (("shares", shares), ("qos", qos)) if file}
        raise click.UsageError(f"--{next(iter(listed))} needs what the batch system holds")
    if output is not None and output.exists() and not force:
        raise InputError("is there already", file=output, fix="name another file, or add --force")

    from qconf.config import dump
    from qconf.text import write_whole

    if servers:
        ((target, path),) = servers.items()
        records = source.records() if source.history else None
        cores = records.machine_cores if source.cores is None and records else source.cores
        server = chosen(target, listed)
        found = server.read(path, cores=cores, name=name, shares=shares, qos=qos, records=records)
        origin = path.name
        if found.config.is_fair and not found.config.shares:
            equal = "shares: every user has an equal one; --shares gives those of the batch system"
            found = Derived(found.config, (*found.warnings, equal))
    else:
        found, origin = _of_history(source, name), ", ".join(path.name for path in source.history)
    if downtimes:
        from qconf.history.closures import numbered, read_downtimes, read_shortpools, span

        numbers = numbered(found.config) if found.config.nodes else None
        period = span(source.records()) if source.history else None
        times, odd = read_downtimes(downtimes, found.config.machine, source.timezone or "UTC", numbers, period)
        kept = read_shortpools(downtimes, found.config.machine) or found.config.shortpools
        found = Derived(found.config, (*found.warnings, *odd)).dedicated(times, kept)
    if hours is not None:
        from qconf.export.hours import read_hours
        from qconf.export.nodes import read_text

        limits = tuple(read_hours(read_text(hours)))
        found = Derived(found.config.replace(hours=limits), found.warnings)
    title = f"A first configuration, made by qconf init from {origin}. Edit it."
    comment = "\n* ".join([title, *found.warnings])
    text = dump(found.config, "".join(c if c.isprintable() or c == "\n" else "?" for c in comment))
    if output is not None:
        write_whole(output, text)
    if as_json:
        from qconf.text import as_json as to_json

        about = {"file": None if output is None else str(output), "warnings": found.warnings}
        click.echo(to_json({**about, "config": found.config.model_dump(mode="json")}), nl=False)
        return
    for warning in found.warnings:
        click.echo(f"warning: {warning}", err=True)
    click.echo(text if output is None else str(output), nl=output is not None)


def _of_history(source: Source, name: str | None) -> Derived:
    from qconf.history import remarks

    records = source.records()
    config = source.config(records)
    found = remarks(records, config)
    if name is not None:
        config = config.replace(machine=config.machine.model_copy(update={"name": name}))
    return Derived(config, (*found, *config.warnings()))
