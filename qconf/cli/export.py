"""``qconf export``: writes a configuration as scripts for the batch system, to review, load and undo."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from qconf.cli.options import PATH, F, json_option, output_option, with_options
from qconf.export import DEFAULT_TARGET, Exporter, exporter, targets


def target_options(*names: str) -> Callable[[F], F]:
    """Return a decorator that adds ``--target`` and the options of all exporters, or only those in `names`."""
    every = {each.name: each for target in targets() for each in fields(exporter(target))}

    def option(name: str) -> Callable[[F], F]:
        default, about = every[name].default, every[name].metadata
        choices = about.get("choices")
        text = (
            f"{about['help']}  [{' and '.join(_having(name))}{f'; default: {default}' if default and choices else ''}]"
        )
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
    """Return the existing files that options of the target name, by option name."""
    readable = [each.name for each in fields(exporter(target)) if each.metadata["read"] and given.get(each.name)]
    return {name: path for name in readable if (path := Path(given[name])).is_file()}


def chosen(target: str, given: Mapping[str, Any]) -> Exporter:
    """Return the exporter of the target with the given options; it reads the files that they name."""
    words = {name: value for name, value in given.items() if value not in (None, ())}
    for name in words:
        if target not in _having(name):
            raise click.UsageError(f"--{name} is no option of --target {target}, but of {' and '.join(_having(name))}")
    return exporter(target).of(**words)


def _renamed(context: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise click.UsageError("No such option: --format. It is --target now.", context)


@click.command("export")
@click.argument("config", type=PATH, required=False)
@click.option("--run", type=PATH, metavar="DIRECTORY", help="Instead of CONFIG: the directory of a run of qconf tune.")
@click.option(
    "--strategy",
    metavar="NAME",
    help="With --run: the strategy of its table to export, eligible or not, or without-scripts, or queues.",
)
@target_options()
@click.option("--format", hidden=True, expose_value=False, callback=_renamed, help="The former name of --target.")
@output_option("Directory of the files.  [default: reports/<name of the configuration>/<target>]")
@json_option
def command(
    *,
    config: Path | None,
    run: Path | None,
    strategy: str | None,
    target: str,
    output: Path | None,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - of the exporters
) -> None:
    """Write the queues of CONFIG for a batch system, with the plan to load them and to undo it.

    No command is run. Read PLAN.md first. With --run and --strategy the configuration is that of a strategy in the
    table of an earlier run, and is written beside the scripts as config.yaml.
    """
    if (config is None) == (run is None) or (run is None) != (strategy is None):
        raise click.UsageError("Give CONFIG, or --run DIRECTORY and --strategy NAME.")
    if config is not None and config.is_dir():
        raise click.UsageError(f"{config} is a directory: give its config.yaml, or --run {config} --strategy NAME.")
    chosen_exporter = chosen(target, given)

    from qconf.config import dump, load
    from qconf.errors import ExportError
    from qconf.export.directory import write_export

    files, read = {}, files_of(target, given).values()
    if config is not None:
        site, name, source = load(config), config.stem, config
    elif run is not None and strategy is not None:
        from qconf.report.recorded import recorded
        from qconf.report.run_directory import RECORD

        row = recorded(run, strategy)
        site, name, source = row.config, f"{run.resolve().name}-{row.name}", run / RECORD
        why = f"\nineligible: {row.ineligible}" if row.ineligible else ""
        files["config.yaml"] = dump(site, f"{row.name}, as qconf tune proposed it in {run.resolve().name}{why}")
        if row.ineligible:
            click.echo(f"note: {row.name} is ineligible: {row.ineligible}", err=True)
    directory = output or Path("reports") / name / target
    try:
        export = chosen_exporter.export(site)
    except ExportError as error:
        if not files:
            raise
        write_export(directory, files, inputs=[source, *read])
        raise ExportError(f"{error}. Only the configuration was written: {directory / 'config.yaml'}") from error
    files |= export.files
    write_export(directory, files, inputs=[source, *read])
    if as_json:
        from qconf.text import as_json as to_json

        about = {"target": target, "notes": export.notes, "rollback": export.rollback}
        click.echo(to_json({"directory": str(directory), "files": list(files), **about}), nl=False)
        return
    for note in export.notes:
        click.echo(f"note: {note}", err=True)
    for name in files:
        click.echo(str(directory / name))
