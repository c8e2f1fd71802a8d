"""`qconf init`: a first configuration from what there is, to edit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from qconf.errors import InputError

if TYPE_CHECKING:
    from qconf.config import SiteConfig

_FILE = click.Path(path_type=Path)


@click.command("init")
@click.option("--from-pbs", "pbs", type=_FILE, help="Output of qmgr -c 'print server'.")
@click.option("--from-slurm", "slurm", type=_FILE, help="A slurm.conf.")
@click.option("--history", multiple=True, type=_FILE, help="Log of jobs; alone, it gives a queue per queue name in it.")
@click.option("--cores", type=click.IntRange(1, 2**31 - 1), help="Cores of the machine, where nothing else says it.")
@click.option(
    "--nodes",
    metavar="FILE",
    help="With --from-pbs: pbsnodes -av output, for the sizes of machine and partitions.",
)
@click.option("--name", metavar="NAME", help="Name of the machine.")
@click.option("--force", is_flag=True, help="Replace a configuration that is there.")
@click.option("-o", "--out", "--output", "output", type=_FILE, help="File to write; standard output unless told.")
def command(
    *,
    pbs: Path | None,
    slurm: Path | None,
    history: tuple[Path, ...],
    cores: int | None,
    nodes: str | None,
    name: str | None,
    force: bool,
    output: Path | None,
) -> None:
    """Write a first configuration, from a PBS server, a slurm.conf or a history.

    What contradicts itself there is said on standard error and in the head of the file.
    """
    if bool(pbs) + bool(slurm) > 1 or not (pbs or slurm or history):
        raise click.UsageError("give one of --from-pbs, --from-slurm and --history")
    if nodes and not pbs:
        raise click.UsageError("--nodes belongs to --from-pbs")
    if output is not None and output.exists() and not force:
        raise InputError("is there already", file=output, fix="name another file, or add --force")

    from qconf.config import dump
    from qconf.text import write_whole

    if cores is None and history and (pbs or slurm):
        from qconf.history import read

        cores = read(list(history)).machine_cores
    config, warnings, source = _derive(pbs=pbs, slurm=slurm, history=history, cores=cores, nodes=nodes, name=name)
    comment = "\n".join(
        [
            f"A first configuration, made by qconf init from {source}. Edit it.",
            *(f"* {text}" for text in warnings),
        ]
    )
    text = dump(config, "".join(c if c.isprintable() or c == "\n" else "?" for c in comment))
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    if output is None:
        click.echo(text, nl=False)
    else:
        write_whole(output, text)
        click.echo(str(output))


def _derive(
    *,
    pbs: Path | None,
    slurm: Path | None,
    history: tuple[Path, ...],
    cores: int | None,
    nodes: str | None,
    name: str | None,
) -> tuple[SiteConfig, list[str], str]:
    if pbs is not None:
        from qconf.export.pbs.init import init_pbs
        from qconf.export.pbs.nodes import read_nodes
        from qconf.export.pbs.server import Server

        listed = None if nodes is None else read_nodes(nodes)
        found = init_pbs(Server.read(pbs), cores=cores, nodes=listed, name=name or "pbs")
        return found.config, found.warnings, pbs.name
    if slurm is not None:
        from qconf.export.slurm.init import init_slurm

        found = init_slurm(slurm, cores=cores, name=name)
        return found.config, found.warnings, slurm.name
    from qconf.history import derive_config, read, remarks

    records = read(list(history))
    config = derive_config(records, cores)
    told = remarks(records, config)
    if name is not None:
        config = config.replace(machine=config.machine.model_copy(update={"name": name}))
    return config, [*told, *config.warnings()], ", ".join(path.name for path in history)
