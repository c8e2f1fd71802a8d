"""Options that several commands share, and the way from them to a history."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, fields
from functools import cached_property, reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from qconf.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from qconf.config import SiteConfig
    from qconf.history import History, Records

F = TypeVar("F", bound=Callable[..., Any])

PATH = click.Path(path_type=Path)
CORES = click.IntRange(1, 2**31 - 1)
DROPPED = "dropped.csv"
DATED = (-62135510400, 253402214400)  # from 1-01-02 to 9999-12-31: others have no date in every zone
NO_LOG = "Missing a log: FILE, or --history FILE."
WORKERS = 2  # threads, unless told
_FORMATS = click.Choice(("auto", "swf", "pbs", "sacct", "csv"))


class Number(click.FloatRange):
    """A finite number in a range; click's own takes NaN for one that lies in every range."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401
        """Return it as a float."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is no finite number", param, ctx)
        return number


class Terse(click.Option):
    """An option whose help does not repeat the range that its error message names."""

    def get_help_extra(self, ctx: click.Context) -> Any:  # noqa: ANN401 - of click
        """Leave the range out."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


class Parsed(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A word of which `parse` makes a value; where it raises, or returns None, the word is refused: it `is_not`."""

    def __init__(self, name: str, parse: Callable[[str], object], is_not: str) -> None:
        self.name, self.parse, self.is_not = name, parse, is_not

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Return the value; a default is one already."""
        try:
            found = self.parse(value) if isinstance(value, str) else value
        except (ValueError, ArithmeticError):
            found = None
        return self.fail(f"{value!r} {self.is_not}", param, ctx) if found is None else found


def _weights(text: str) -> tuple[float, ...] | None:
    numbers = tuple(map(float, text.split(",")))
    return numbers if all(math.isfinite(number) and number > 0 for number in numbers) else None


_WEIGHTS = Parsed("numbers", _weights, "is not like 1,2,3: a positive number for each epoch, the oldest first")


class StrategyCommand(click.Command):
    """Has a flag for every option of every strategy; the command gets those given as `settings`, a dict by name.

    The flags are not in its help but in that of ``--help-strategies``, and they are added when one of them is given:
    the strategies are a heavy import. The command completes its settings by `strategy_settings`.
    """

    def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401 - of click
        super().__init__(*given, **named)
        text = "Show the settings of the strategies, options too."
        self.params.append(
            click.Option(
                ["--help-strategies"], is_flag=True, is_eager=True, expose_value=False, callback=_help, help=text
            )
        )
        self.flags: list[str] = []

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Add the flags if a word is the name of no other option; those of an earlier call go."""
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
        """Collect the settings that are given."""
        given = {name: ctx.params.pop(name) for name in self.flags}
        unless = click.core.ParameterSource.DEFAULT
        ctx.params["settings"] = {n: value for n, value in given.items() if ctx.get_parameter_source(n) != unless}
        return super().invoke(ctx)


def _help(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    del parameter
    if value:
        click.echo(settings_help(ctx))
        ctx.exit()


def settings_help(ctx: click.Context) -> str:
    """Write the settings of the strategies, by the strategies that have them."""
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
    for title, found in groups.items():
        with formatter.section(title[0].upper() + title[1:] if title == "every strategy" else title):
            records = [strategy_flag(each, hidden=False).get_help_record(ctx) for each in found]
            formatter.write_dl([record for record in records if record is not None])
    return formatter.getvalue().rstrip("\n")


def strategy_flag(each: Field[Any], *, hidden: bool = True) -> click.Option:
    """Derive a command line option from the field of a strategy's options."""
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


def strategy_settings(config_path: Path | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return every setting: the given one, else that of the configuration's ``strategies:``, else its default.

    Raises `ConfigError` for a setting of the file that no strategy has, or a value that it cannot have.
    """
    from qconf.config import load
    from qconf.config.problems import did_you_mean
    from qconf.strategies import option_fields, settings

    known, found = option_fields(), {}

    def check(name: str, value: object) -> str:
        """Take a setting of the file as if it were given on the command line; return what is wrong with it."""
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
    return settings({"workers": WORKERS} | found | dict(given))


def with_options(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return a decorator that adds these, in the order of the help."""
    return lambda function: reduce(lambda command, option: option(command), reversed(options), function)


def retired_option(*names: str, use: str) -> Callable[[F], F]:
    """Refuse an option that a command no longer has; `use` says what takes its place."""

    def refuse(context: click.Context, option: click.Parameter, value: str | None) -> None:
        del option
        if value is not None:
            raise click.UsageError(f"{names[0]} is retired: {use}", context)

    # With a value or without, before anything else is missed.
    return click.option(
        *names, is_flag=False, flag_value="", is_eager=True, hidden=True, expose_value=False, callback=refuse, help=use
    )


@dataclass(frozen=True)
class Source:
    """The log, the machine and the period that the options of a command name; each method may raise QconfError."""

    history: Sequence[Path] = ()
    config_path: Path | None = None
    cores: int | None = None
    month: str | None = None
    start: str | None = None
    end: str | None = None
    timezone: str = "UTC"
    date_format: str | None = None
    cores_per_node: int | None = None
    strict: bool = False

    @property
    def reading(self) -> dict[str, object]:
        """The options that decide how a log is read."""
        return {name: getattr(self, name) for name in READING}

    @property
    def inputs(self) -> list[Path]:
        """The files that are read."""
        return [*self.history, *([self.config_path] if self.config_path else [])]

    def load(self) -> tuple[History, SiteConfig]:
        """Read the log, take or derive the configuration, clean, and cut the period out."""
        whole, config = self.whole()
        return self.cut(whole), config

    def whole(self) -> tuple[History, SiteConfig]:
        """Do what `load` does, but leave all jobs in."""
        from qconf.history import clean

        records = self.records()
        config = self.config(records)
        return clean(records, config), config

    def records(self, kind: str = "auto") -> Records:
        """Read the log."""
        from qconf.history import read

        if not self.history:
            raise click.UsageError(NO_LOG)
        return read(
            self.history,
            format=kind,
            timezone=self.timezone,
            date_format=self.date_format,
            cores_per_node=self._cores_per_node,
            strict=self.strict,
        )

    def config(self, records: Records) -> SiteConfig:
        """Return the configuration, or derive one from the records."""
        from qconf.history import derive_config

        return derive_config(records, self.cores) if self._configured is None else self._configured

    @cached_property
    def _configured(self) -> SiteConfig | None:
        """The configuration that is given, which agrees with the options that are."""
        from qconf.config import load

        if self.config_path is None:
            return None
        config = load(self.config_path)
        for name in ("cores", "cores_per_node"):
            given, size = getattr(self, name), getattr(config.machine, name)
            if name in config.machine.model_fields_set and given not in (None, size):
                message, option = f"the configuration says {size}", f"--{name.replace('_', '-')}"
                raise InputError(message, file=self.config_path, field=option, value=given, fix="leave it out")
        return config

    @property
    def _cores_per_node(self) -> int | None:
        """By the option, or the configuration if it says so."""
        machine = None if self._configured is None else self._configured.machine
        if self.cores_per_node is not None or machine is None or "cores_per_node" not in machine.model_fields_set:
            return self.cores_per_node
        return machine.cores_per_node

    def cut(self, history: History) -> History:
        """Keep the period; the whole history where none is named."""
        if self.month is not None:
            if self.start is not None or self.end is not None:
                raise click.UsageError("--month cannot be combined with --from or --to.")
            return history.month(self.month)
        if self.start is None and self.end is None:
            return history
        first = None if self.start is None else _second("--from", self.start, history)
        last = None if self.end is None else _second("--to", self.end, history)
        if first is not None and last is not None and last <= first:
            message = f"the end does not come after the start, --from {self.start}"
            fix = "name a later time: what was submitted before it is taken"
            raise InputError(message, field="--to", value=self.end, fix=fix)
        return history.between(first, last)


def _second(name: str, text: str, history: History) -> int:
    from qconf.history.times import instant, zone

    fix = "write 2016-02-01, 2016-02-01T08:00:00 or epoch seconds"
    try:
        moment = int(text) if text.lstrip("-").isdigit() else instant(text, zone(history.timezone))
    except ValueError as error:
        raise InputError("is no time", field=name, value=text, fix=fix) from error
    if re.fullmatch(r"(19|20)[0-9]{6}", text):
        raise InputError("could be a date or an epoch second", field=name, value=text, fix=fix)
    if not DATED[0] <= moment <= DATED[1]:
        raise InputError("is no time that a log could have", field=name, value=text, fix=f"{fix}, not milliseconds")
    return moment - history.epoch


def history_option(text: str) -> Callable[[F], F]:
    """Return ``--history`` with this help, and the same as arguments."""
    return with_options(
        click.argument("files", nargs=-1, type=PATH, metavar="[FILE]..."),
        click.option("--history", multiple=True, type=PATH, help=f"{text}; repeatable."),
    )


def output_option(text: str, *, required: bool = False, **kind: Any) -> Callable[[F], F]:  # noqa: ANN401 - of click.Path
    """Return ``--out`` (output) with this help."""
    path = click.Path(path_type=Path, **kind)
    return click.option("-o", "--out", "--output", "output", type=path, required=required, help=text)


def format_option(text: str) -> Callable[[F], F]:
    """Return ``--format`` (kind) with this help."""
    return click.option("--format", "kind", type=_FORMATS, default="auto", show_default=True, help=text)


#: The options of the fields of `Source`, in their order.
_SOURCE: dict[str, Callable[[Any], Any]] = {
    "history": history_option("Log: CSV, SWF, PBS accounting or sacct"),
    "config_path": click.option("--config", "config_path", type=PATH, help="Configuration of the site (YAML)."),
    "cores": click.option(
        "--cores", type=CORES, cls=Terse, metavar="N", help="Cores of the machine, if nothing else says it."
    ),
    "month": click.option("--month", metavar="YYYY-MM", help="Only the jobs submitted in this calendar month."),
    "start": click.option("--from", "start", metavar="TIME", help="Only jobs from this date or epoch second on."),
    "end": click.option("--to", "end", metavar="TIME", help="Only jobs before this date or epoch second."),
    "timezone": click.option(
        "--timezone",
        default="UTC",
        show_default=True,
        metavar="ZONE",
        help="Zone of local times, dates and months.",
    ),
    "date_format": click.option(
        "--date-format",
        metavar="FORMAT",
        help="Of times in CSV: strptime, or epoch.",
    ),
    "cores_per_node": click.option("--cores-per-node", type=CORES, metavar="N", help="Of a CSV that counts nodes."),
    "strict": click.option("--strict", is_flag=True, help="Stop at the first record that cannot be read."),
}
#: Those that say how a log is to be read.
READING = ("timezone", "date_format", "cores_per_node", "strict")


def source_options(*options: str | Callable[[Any], Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add options, those of `Source` by their names there; the command gets them as one, `source`."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def command(**given: Any) -> Any:  # noqa: ANN401 - whatever the command takes and returns
            found = {name: given.pop(name) for name in _SOURCE if name in given}
            if files := given.pop("files", ()):
                found["history"] = (*found["history"], *files)
            return function(source=Source(**found), **given)

        chosen: list[Callable[[Any], Any]] = [_SOURCE[each] if isinstance(each, str) else each for each in options]
        decorated: Callable[..., Any] = with_options(*chosen)(command)
        return decorated

    return add


history_options = source_options(*_SOURCE)


#: What a script wants of ``tune``.
exit_options = with_options(
    click.option("-q", "--quiet", is_flag=True, help="Print the verdict and where it is written; warnings."),
    click.option("--exit-code", is_flag=True, help="Exit with 10 on CHANGE, 0 on KEEP, 1 on errors."),
)


def check_table(output: Path, inputs: Sequence[Path]) -> None:
    """Raise InputError where a table, or the list of dropped records beside it, would destroy something."""
    from qconf.history.records import DROPPED as COLUMNS
    from qconf.text import refuse_overwrite

    if output.name == DROPPED:
        raise InputError("is the name of the list of dropped records", file=output, fix="choose another name")
    beside = output.parent / DROPPED
    refuse_overwrite(inputs, (output, beside), "choose another name")
    if beside.is_file() and not beside.read_bytes().startswith(",".join(COLUMNS).encode()):
        fix = "choose another folder: the dropped records are listed in a file of this name"
        raise InputError("is there already and no list of dropped records", file=beside, fix=fix)


def write_table(output: Path, text: str, dropped: pd.DataFrame) -> None:
    """Write a table, gzipped if its name ends so, and the list of dropped records beside it; both or none."""
    import gzip

    from qconf.text import all_or_nothing

    data = text.encode()
    with all_or_nothing(output.parent) as scratch:
        (scratch / output.name).write_bytes(gzip.compress(data, mtime=0) if output.suffix == ".gz" else data)
        (scratch / DROPPED).write_bytes(dropped.to_csv(index=False, lineterminator="\n").encode())


def report_history(
    history: History, base: SiteConfig, *, warnings: Iterable[str] = (), derived: bool, err: bool = False
) -> None:
    """Print what was read, what was left out and changed, and the warnings; with `err` all of it on stderr."""
    first, last = history.span
    say(
        f"{len(history)} jobs from {history.date(first)[:10]} to {history.date(last)[:10]} on {base.machine.name} "
        f"({base.machine.cores} cores, {len(base.queues)} queue{'s' * (len(base.queues) != 1)})",
        err=err,
    )
    report_cleaning(history, base, derived=derived, err=err)
    warn(warnings)


def report_cleaning(history: History, base: SiteConfig, *, derived: bool, err: bool = False) -> None:
    """Print what was left out and changed and why, and what is odd about a configuration that was given."""
    of, in_ = (" of the whole log", " in the whole log") if history.outside else ("", "")
    for what, counts in ((f"left out{of}", history.reasons), (f"changed{in_}", history.changed)):
        counted = [f"{count} {reason}" for reason, count in counts.items() if count]
        if counted:
            say(f"{what}: {', '.join(counted)}", err=err)
    warn([] if derived else base.warnings())


def say(text: str, *, err: bool = False, indent: str = "  ") -> None:
    """Print a paragraph as wide as the terminal, or 80 columns; the lines after the first begin with `indent`."""
    from qconf.report.layout import filled

    click.echo(filled(text, indent=indent), err=err)


def warn(warnings: Iterable[str]) -> None:
    """Print warnings on stderr."""
    for warning in warnings:
        say(f"warning: {warning}", err=True)


def history_warnings(base: SiteConfig, *histories: History) -> list[str]:
    """Return what is suspicious about these histories, cleaned for one configuration; the first is evaluated."""
    from qconf.evaluation.targets import absent_members
    from qconf.history import binding_limits

    kept_out = dict.fromkeys(path for history in histories for path in binding_limits(history))
    text = (
        "{}: keeps jobs out of this history, and counts as fixed: what lifts it would be simulated without them. "
        "Raise it in the configuration to have them simulated"
    )
    return [*unknown_queues(histories[0]), *map(text.format, kept_out), *absent_members(histories[0], base)]


def unknown_queues(history: History) -> list[str]:
    """Warn that no job names a queue of the configuration."""
    from qconf.history.cleaning import UNKNOWN_QUEUE

    if history.changed.get(UNKNOWN_QUEUE, 0) < len(history) + history.outside:
        return []
    return ["no job names a queue of this configuration, so all are routed by their size: is it the right one?"]


def strategy_names(text: str | None) -> tuple[str, ...] | None:
    """Split and check ``--strategies``; None where it is not given."""
    from qconf.strategies import check_names

    if text is None:
        return None
    found = tuple(name.strip() for name in text.split(",") if name.strip())
    if not found:
        raise click.UsageError("--strategies names none")
    check_names(found)
    return found


def parts_of_policy(context: click.Context, option: click.Parameter, text: str | None) -> tuple[str, ...]:
    """Split and check ``--may-change``."""
    from qconf.config import POLICY

    del context, option
    found = tuple(part.strip() for part in (text or "").split(",") if part.strip())
    if found == ("all",):
        return tuple(POLICY)
    for part in found:
        if part not in POLICY:
            raise InputError(
                "is no part of a policy", field="--may-change", value=part, fix=f"choose among {', '.join(POLICY)}, all"
            )
    return found


def stem(path: Path) -> str:
    """Name what is made of a history after it, without the endings of logs; ``..`` by the folder's own name."""
    name = Path(os.path.abspath(path)).name  # noqa: PTH100 - a link keeps its name
    for ending in (".gz", ".csv", ".swf", ".txt", ".log"):
        name = name.removesuffix(ending)
    return name or "history"
