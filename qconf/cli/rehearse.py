"""`qconf rehearse`: an export is loaded into a private server by its own plan, tried, and rolled back."""

from __future__ import annotations

from pathlib import Path

import click

from qconf.cli.options import PATH
from qconf.errors import InputError


@click.command("rehearse")
@click.argument("directory", metavar="DIR", type=PATH)
@click.option("--current", type=PATH, metavar="FILE", help="What the server holds: the file that the export was given.")
@click.option("--nodes", metavar="FILE", help="pbsnodes -av output, for the nodes and their cores.")
def command(directory: Path, current: Path | None, nodes: str | None) -> None:
    """Load the PBS export in DIR into a private OpenPBS by its PLAN.md, try its examples, and roll it back.

    PBS_EXEC names the installation of OpenPBS. Server, scheduler and nodes are simulated in namespaces of their own,
    which needs root: nothing outside is touched, and nothing is left. Exit code 1 where anything goes otherwise than
    the plan says.
    """
    from qconf.export.nodes import read_nodes
    from qconf.export.pbs.rehearsal import rehearse

    if not directory.is_dir():
        raise InputError("no such directory", file=directory, fix="give the directory of an export")
    found = rehearse(directory, current=current, nodes=None if nodes is None else read_nodes(nodes))
    undone = {True: "rolled back", False: "not rolled back", None: "no rollback, since it was made without --current"}
    click.echo(
        f"OpenPBS {found.version}: {found.statements} statements, {found.blocks} blocks of the plan, "
        f"{found.examples} examples in their queue, " + undone[found.rolled_back]
    )
    for statement in found.refused:
        click.echo(f"of the present server, not taken here: {statement}")
    for problem in found.problems:
        click.echo(f"problem: {problem}", err=True)
    if found.problems:
        raise SystemExit(1)
