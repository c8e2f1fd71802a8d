"""Command for a rehearsal: ``python -m tests.servers DIR --current FILE``."""

from __future__ import annotations

import importlib
from pathlib import Path

import click

from qconf.cli.options import PATH
from qconf.errors import InputError, QconfError
from qconf.export.nodes import read_nodes


@click.command()
@click.argument("directory", metavar="DIR", type=PATH)
@click.option("--current", type=PATH, metavar="FILE", help="The file that the export was given as --current.")
@click.option("--nodes", metavar="FILE", help="pbsnodes -av output, or names, for the nodes and their cores.")
def command(directory: Path, current: Path | None, nodes: str | None) -> None:
    """Load the export in DIR into a private OpenPBS or Slurm by its PLAN.md, try its examples, and roll it back.

    PBS_EXEC names the installation of OpenPBS; Slurm is the one of the system (Debian's slurm-wlm, and where limits are
    exported slurmdbd and mariadb-server). Server, scheduler and nodes are simulated in namespaces of their own, which
    needs root: nothing outside is touched, and nothing is left. In Slurm, jobs run and wait meanwhile, and none may be
    lost. Exit code 1 where anything goes otherwise than the plan says.
    """
    of_slurm = ("partitions.conf", "new-conf", "accounts")
    target = "slurm" if any((directory / name).exists() for name in of_slurm) else "pbs"
    rehearse = importlib.import_module(f"tests.servers.{target}").rehearse
    try:
        if not directory.is_dir():
            raise InputError("no such directory", file=directory, fix="give the directory of an export")
        found = rehearse(directory, current=current, nodes=None if nodes is None else read_nodes(nodes))
    except QconfError as error:
        raise click.ClickException(str(error)) from error
    click.echo(found.summary)
    for statement in found.refused:
        click.echo(f"of the present server, not taken here: {statement}")
    for problem in found.problems:
        click.echo(f"problem: {problem}", err=True)
    if found.problems:
        raise SystemExit(1)


if __name__ == "__main__":
    command()
