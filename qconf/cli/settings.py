"""The settings of strategies: their options, their help, and the configuration's ``strategies:``."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

import click

from qconf.cli.options import Number, Parsed
from qconf.errors import InputError

WORKERS = 2  # the default
PRESET = "The CCGrid 2017 paper to the letter, without whole nodes; settings that are given take its place."


def _weights(text: str) -> tuple[float, ...] | None:
    numbers = tuple(map(float, text.split(",")))
    return numbers if all(math.isfinite(number) and number > 0 for number in numbers) else None


_WEIGHTS = Parsed("numbers", _weights, "is not like 1,2,3: a positive number for each epoch, the oldest first")


#: Options of tables of jobs, which the help of the settings shows.
_OF_TABLES = ("date_format", "columns", "units", "cores_per_node", "unpacked")


class StrategyCommand(click.Command):
    """A command with a flag for every option of every strategy; it gets those given as the dict `settings`.

    The flags are shown by ``--help-strategies`` only, and added only if one of them is given, since importing the
    strategies takes long. That help shows the options of tables of jobs, too. The command itself completes its settings
    by `strategy_settings`.
    """

    def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401 - of click
        super().__init__(*given, **named)
        for option in _of_tables(self):
            option.hidden = True
        text = "Show the options of strategies, and of tables of jobs."
        self.params.append(
            click.Option(
                ["--help-strategies"], is_flag=True, is_eager=True, expose_value=False, callback=_help, help=text
            )
        )
        self.params.append(click.Option(["--preset"], type=click.Choice(("paper",)), help=PRESET, hidden=True))
        self.flags: list[str] = []

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; the flags are added if an argument is no other option."""
        self.params = [parameter for parameter in self.params if parameter.name not in self.flags]
        self.flags = []
        known = {name for parameter in self.get_params(ctx) for name in (*parameter.opts, *parameter.secondary_opts)}
        if any(word.startswith("--") and word.partition("=")[0] not in known for word in args):
            from qconf.strategies import option_fields

            flags = {name: strategy_flag(each) for name, each in option_fields().items()}
            self.flags = list(flags)
            self.params += flags.values()
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - whatever the command returns
        """Run the command with the settings that are given."""
        given = {name: ctx.params.pop(name) for name in self.flags}
        unless = click.core.ParameterSource.DEFAULT
        ctx.params["settings"] = {n: value for n, value in given.items() if ctx.get_parameter_source(n) != unless}
        return super().invoke(ctx)


def _of_tables(command: click.Command) -> list[click.Option]:
    return [each for each in command.params if isinstance(each, click.Option) and each.name in _OF_TABLES]


def _help(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    del parameter
    if value:
        click.echo(settings_help(ctx))
        ctx.exit()


def settings_help(ctx: click.Context) -> str:
    """Return the help of all settings, grouped by the strategies that have them."""
    from qconf.strategies import registry

    having: dict[str, tuple[Field[Any], list[str]]] = {}
    for strategy in registry().values():
        for each in fields(strategy.Options):
            having.setdefault(each.name, (each, []))[1].append(strategy.name)
    groups: dict[str, list[Field[Any]]] = {}
    for each, names in having.values():
        groups.setdefault("every strategy" if len(names) == len(registry()) else ", ".join(names), []).append(each)
    formatter = ctx.make_formatter()
    formatter.write_text(
        "Settings of the strategies. Each is an option of this command, and may stand in the configuration, where an "
        "option that is given takes its place:"
    )
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text("strategies: {samples: 200, pool_entry: move}")
    with formatter.section("Settings that belong together"):
        formatter.write_dl([("--preset [paper]", PRESET)])
    for title, found in groups.items():
        with formatter.section(title[0].upper() + title[1:] if title == "every strategy" else title):
            records = [strategy_flag(each, hidden=False).get_help_record(ctx) for each in found]
            formatter.write_dl([record for record in records if record is not None])
    if tables := _of_tables(ctx.command):
        with formatter.section("Options of tables of jobs, none of them a setting"):
            formatter.write_dl([(f"{each.opts[0]} {each.metavar}", each.help or "") for each in tables])
    return formatter.getvalue().rstrip("\n")


def strategy_flag(each: Field[Any], *, hidden: bool = True) -> click.Option:
    """Return the command line option of a field of a strategy's options."""
    about, default = each.metadata, WORKERS if each.name == "workers" else each.default
    known = [choice for choice in about["choices"] if choice is not None]
    kind: click.ParamType[Any]
    if isinstance(default, tuple):
        kind = _WEIGHTS
    elif known and isinstance(known[0], str):
        kind = click.Choice(known)
    elif "float" in str(each.type):
        kind = Number(about["least"], None if about["most"] == math.inf else about["most"])
    elif "int" in str(each.type):
        low, high = (known[0], known[-1]) if known else (about["least"], about["most"])
        kind = click.IntRange(low, None if high == math.inf else int(high))
    else:
        kind = click.STRING
    shown = about["shown"]
    return click.Option(
        [f"--{each.name.replace('_', '-')}"],
        type=kind,
        default=default,
        show_default=not shown and default is not None,
        help=about["help"] + (f"  [default: {shown}]" if shown else ""),
        hidden=hidden,
    )


def strategy_settings(
    config_path: Path | None, given: Mapping[str, Any], *, preset: str | None = None, **defaults: object
) -> dict[str, Any]:
    """Return all settings: each as given, else by the preset, the configuration, `defaults` or its default.

    `defaults` replace defaults of strategies.

    Raises `ConfigError` if the configuration has a setting that no strategy has, or an invalid value.
    """
    from qconf.config import load
    from qconf.config.problems import did_you_mean
    from qconf.strategies import option_fields, settings
    from qconf.strategies.presets import preset as preset_named

    known, found = option_fields(), {}

    def check(name: str, value: object) -> str:
        """Read a setting of the file as on the command line; return what is wrong with it, or an empty text."""
        key = name.replace("-", "_")
        if key not in known:
            return f"no such setting{did_you_mean(key, known)}; known are {', '.join(known)}"
        if key in found:
            return "given twice"
        text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        try:
            found[key] = strategy_flag(known[key]).type.convert(text, None, None)
        except click.BadParameter as error:
            return error.message
        return ""

    if config_path is not None:
        load(config_path, check)
    return settings({"workers": WORKERS} | defaults | found | dict(preset_named(preset).settings) | dict(given))


def strategy_names(text: str | None) -> tuple[str, ...] | None:
    """Split and check ``--strategies``; None where it is not given."""
    if text is None:
        return None
    from qconf.strategies import check_names

    found = parts_of(text)
    if not found:
        raise click.UsageError("--strategies names none")
    check_names(found)
    return found


def parts_of(
    text: str, known: Collection[str] = (), is_not: str = "", *, field: str = "", more: str = ""
) -> tuple[str, ...]:
    """Split a list between commas; raise InputError for a part that is not known, if some are given."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    for part in found:
        if known and part not in known:
            raise InputError(is_not, field=field, value=part, fix=f"choose among {', '.join(known)}{more}")
    return found
