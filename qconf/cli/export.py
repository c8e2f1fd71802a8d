"""`qconf export`: a configuration as scripts for the batch system, to review, load and undo."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from qconf.cli.options import PATH, F, output_option, with_options
from qconf.export import DEFAULT_TARGET, Exporter, exporter, targets


def target_options(*names: str) -> Callable[[F], F]:
    """Add ``--target``, and the options of all exporters or, given `names`, those of these names."""
    every = {each.name: each for target in targets() for each in fields(exporter(target))}

    def option(name: str) -> Callable[[F], F]:
        default, about = every[name].default, every[name].metadata
        choices = about.get("choices")
        text = f"{about['help']}  [{' and '.join(_having(name))}{f'; default: {default}' if choices else ''}]"
        kind = click.Choice(choices) if choices else None
        shown = about.get("metavar")
        return click.option(f"--{name}", multiple=default == (), type=kind, metavar=shown, help=text)

    system = click.Choice(targets())
    about = "Batch system to export to."
    target = click.option("--target", type=system, default=DEFAULT_TARGET, show_default=True, help=about)
    return with_options(target, *map(option, names or every))


def _having(option: str) -> list[str]:
    return [target for target in targets() if option in {each.name for each in fields(exporter(target))}]


def files_of(target: str, given: Mapping[str, Any]) -> dict[str, Path]:
    """Return the files that options of the target name, by the name of the option."""
    readable = [each.name for each in fields(exporter(target)) if each.metadata["read"] and given.get(each.name)]
    return {name: path for name in readable if (path := Path(given[name])).is_file()}


def chosen(target: str, given: Mapping[str, Any]) -> Exporter:
    """Return the exporter of the target with the options that were given; files that they name are read."""
    words = {name: value for name, value in given.items() if value not in (None, ())}
    for name in words:
        if target not in _having(name):
            raise click.UsageError(f"--{name} is no option of --target {target}, but of {' and '.join(_having(name))}")
    return exporter(target).of(**words)


def _renamed(context: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise click.UsageError("No such option: --format. It is --target now.", context)


@click.command("export")
@click.argument("config", type=PATH)
@target_options()
@click.option("--format", hidden=True, expose_value=False, callback=_renamed, help="The former name of --target.")
@output_option("Directory of the files.  [default: reports/<name of the configuration>/<target>]")
def command(*, config: Path, target: str, output: Path | None, **given: Any) -> None:  # noqa: ANN401 - of the exporters
    """Write the queues of CONFIG for a batch system, with the plan to load them and to undo it.

    No command is run. Read PLAN.md first.
    """
    chosen_exporter = chosen(target, given)

    from qconf.config import load
    from qconf.export.directory import write_export

    export = chosen_exporter.export(load(config))
    directory = output or Path("reports") / config.stem / target
    write_export(directory, export.files, inputs=[config, *files_of(target, given).values()])
    for note in export.notes:
        click.echo(f"note: {note}", err=True)
    for name in export.files:
        click.echo(str(directory / name))
