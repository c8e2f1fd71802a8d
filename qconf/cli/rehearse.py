"""`qconf rehearse`: an export is loaded into a private server by its own plan, tried, and rolled back."""

from __future__ import annotations

import importlib
from pathlib import Path

import click

from qconf.cli.options import PATH, json_option
from qconf.errors import InputError


@click.command("rehearse")
@click.argument("directory", metavar="DIR", type=PATH)
@click.option("--current", type=PATH, metavar="FILE", help="The file that the export was given as --current.")
@click.option("--nodes", metavar="FILE", help="pbsnodes -av output, or names, for the nodes and their cores.")
@json_option
def command(directory: Path, current: Path | None, nodes: str | None, *, as_json: bool) -> None:
    """Load the export in DIR into a private OpenPBS or Slurm by its PLAN.md, try its examples, and roll it back.

    PBS_EXEC names the installation of OpenPBS; Slurm is the one of the system (Debian's slurm-wlm, and where limits are
    exported slurmdbd and mariadb-server). Server, scheduler and nodes are simulated in namespaces of their own, which
    needs root: nothing outside is touched, and nothing is left. In Slurm, jobs run and wait meanwhile, and none may be
    lost. Exit code 1 where anything goes otherwise than the plan says.
    """
    from qconf.export.nodes import read_nodes

    if not directory.is_dir():
        raise InputError("no such directory", file=directory, fix="give the directory of an export")
    of_slurm = ("partitions.conf", "new-conf", "accounts")
    target = "slurm" if any((directory / name).exists() for name in of_slurm) else "pbs"
    rehearse = importlib.import_module(f"qconf.rehearsal.{target}").rehearse
    found = rehearse(directory, current=current, nodes=None if nodes is None else read_nodes(nodes))
    if as_json:
        from qconf.text import as_json as to_json

        document = {"summary": found.summary, "refused": found.refused, "problems": found.problems}
        click.echo(to_json(document), nl=False)
    else:
        click.echo(found.summary)
        for statement in found.refused:
            click.echo(f"of the present server, not taken here: {statement}")
        for problem in found.problems:
            click.echo(f"problem: {problem}", err=True)
    if found.problems:
        raise SystemExit(1)
