"""`qconf export`: a configuration as scripts for the batch system, to review, load and undo."""

from __future__ import annotations

from pathlib import Path

import click

_FILE = click.Path(path_type=Path)


@click.command("export")
@click.argument("config", type=_FILE)
@click.option("--format", "kind", type=click.Choice(["pbs", "slurm"]), default="pbs", show_default=True)
@click.option(
    "--current",
    type=_FILE,
    help="What the server holds: output of qmgr -c 'print server'; only the difference is written.",
)
@click.option("--nodes", metavar="FILE|PATTERN", help="Names, pbsnodes -av output, or a pattern like nid[00001-01468].")
@click.option(
    "--binding",
    type=click.Choice(["qlist", "limits"]),
    default="qlist",
    show_default=True,
    help="PBS: partitions by a resource of the nodes, or by limits of running cores, which reserve nothing.",
)
@click.option("--route", metavar="NAME", help="PBS: the Route queue; the one that is there unless told, else route.")
@click.option(
    "--remove",
    metavar="NAME",
    multiple=True,
    help="PBS: close this queue too, which the configuration lacks.",
)
@click.option(
    "-o",
    "--out",
    "--output",
    "output",
    type=_FILE,
    help="Directory of the files; reports/<name of the configuration>/<format> unless told.",
)
def command(
    *,
    config: Path,
    kind: str,
    current: Path | None,
    nodes: str | None,
    binding: str,
    route: str | None,
    remove: tuple[str, ...],
    output: Path | None,
) -> None:
    """Write the queues of CONFIG for PBS or Slurm, with the plan to load them and the way back.

    Nothing is run. Read PLAN.md first.
    """
    if kind == "slurm" and (current or route or remove or binding != "qlist"):
        raise click.UsageError("--current, --binding, --route and --remove belong to --format pbs")

    from qconf.config import load
    from qconf.export.folder import write_export
    from qconf.export.pbs.nodes import read_nodes
    from qconf.export.pbs.scripts import prepare_pbs
    from qconf.export.pbs.server import Server

    site = load(config)
    listed = None if nodes is None else read_nodes(nodes)
    if kind == "pbs":
        export = prepare_pbs(
            site,
            current=None if current is None else Server.read(current),
            nodes=listed,
            binding="limits" if binding == "limits" else "qlist",
            route=route,
            remove=remove,
        )
    else:
        from qconf.export.slurm.scripts import prepare_slurm

        export = prepare_slurm(site, nodes=listed)
    target = output or Path("reports") / config.stem / kind
    given = (config, current, None if nodes is None else Path(nodes))
    write_export(target, export.files, inputs=[path for path in given if path is not None])
    for note in export.notes:
        click.echo(f"note: {note}", err=True)
    for name in export.files:
        click.echo(str(target / name))
