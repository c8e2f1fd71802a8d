"""Options that name a log, and how they become a history and its configuration."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qconf.cli.messages import warn
from qconf.cli.options import CORES, PATH, F, Parsed, Terse, with_options
from qconf.errors import InputError

if TYPE_CHECKING:
    from qconf.config import SiteConfig
    from qconf.history import History, Records
    from qconf.history.anonymous import Names

DATED = (-62135510400, 253402214400)  # 1-01-02 to 9999-12-31: all seconds with a date in every zone
#: The module that compiles the strategies' kernels, and its seconds; compiled together with the simulator's.
STRATEGIES = {"qconf.strategies.compiling": 5}
NO_LOG = "Missing a log: FILE, or --history FILE."
_FORMATS = click.Choice(("auto", "swf", "pbs", "sacct", "csv"))


@dataclass(frozen=True)
class Source:
    """The log, machine and period that the options of a command name; each method may raise QconfError."""

    history: Sequence[Path] = ()
    config_path: Path | None = None
    cores: int | None = None
    month: str | None = None
    start: str | None = None
    end: str | None = None
    timezone: str | None = None
    date_format: str | None = None
    columns: Mapping[str, str] | None = None
    units: Mapping[str, str] | None = None
    cores_per_node: int | None = None
    unpacked: int | None = None
    strict: bool = False
    preset: str | None = None  #: of strategies; may change the partitioning of the site
    changes: Mapping[str, str] | None = None  #: changes of the configuration, by path
    anonymous: Names | None = None  #: replaces users and groups
    site: SiteConfig | None = None  #: a configuration given directly, without a file

    @property
    def reading(self) -> dict[str, Any]:
        """The arguments of `read`: as the options say, else the configuration's `history`."""
        from qconf.history import as_configured

        given = {name: getattr(self, name) for name in READING}
        return given | as_configured(self._configured, self.timezone, self.cores_per_node)

    @property
    def inputs(self) -> list[Path]:
        """The paths of the log and of the configuration."""
        return [*self.history, *([self.config_path] if self.config_path else [])]

    def load(self) -> tuple[History, SiteConfig]:
        """Read and clean the log; return the jobs of the period, and the given or derived configuration."""
        whole, config = self.whole()
        return self.cut(whole), config

    def whole(self) -> tuple[History, SiteConfig]:
        """Return the same as `load`, with the jobs of all periods."""
        from qconf.history import clean
        from qconf.prediction.runtimes import with_estimates

        records = self.records()
        config = self.config(records)
        return with_estimates(clean(records, config), config), config

    def records(self, kind: str = "auto") -> Records:
        """Read the log; return its records."""
        from qconf.history import read

        if not self.history:
            raise click.UsageError(NO_LOG)
        found = read(self.history, format=kind, **self.reading)
        return found if self.anonymous is None else self.anonymous.records(found)

    def config(self, records: Records) -> SiteConfig:
        """Return the given configuration, or one derived from the records, with `changes` and `preset` applied."""
        from qconf.history import derive_config

        config = derive_config(records, self.cores) if self._configured is None else self._configured
        if self._configured is None and not (self.cores or records.machine_cores):
            text = (
                f"machine of {config.machine.cores} cores: the most that ran at once in the log; --cores gives its size"
            )
            warn([text])
        if self.changes:
            from qconf.config import with_changes

            config = with_changes(config, self.changes)
        if self.preset is None:
            return config
        from qconf.strategies.presets import preset

        return preset(self.preset).site(config)

    def preset_warnings(self, base: SiteConfig) -> list[str]:
        """Return a warning if the preset changes the site, so that the result is not for loading."""
        given = self._configured
        if self.preset is None or given is None or given.grid == base.grid:
            return []
        text = (
            f"--preset {self.preset}: processors are given one by one, though the configuration gives whole nodes of "
            f"{given.grid}: what is written is to be studied, and not for this machine"
        )
        return [text]

    def compile(self, *, quiet: bool = False) -> Callable[[], None]:
        """Start to compile missing kernels of the configuration; return a function that waits for them."""
        from joblib import cpu_count

        from parsim.compiling import Compiling, missing, needed, seconds

        names = missing(needed(None if self._configured is None else self._configured.system()))
        if not names:
            return lambda: None
        if not quiet:
            text = "compiling the simulator for this processor, once: about a minute of computing, in parallel"
            click.echo(text, err=True)
        running = Compiling(seconds(names) | STRATEGIES, cpu_count())
        click.get_current_context().call_on_close(running.stop)
        return running.wait

    @cached_property
    def _configured(self) -> SiteConfig | None:
        """The given configuration, or None. Raises InputError if options contradict it."""
        from qconf.config import load

        if self.config_path is None:
            return self.site
        config = load(self.config_path)
        for name in ("cores", "cores_per_node"):
            given, size = getattr(self, name), getattr(config.machine, name)
            if name in config.machine.model_fields_set and given not in (None, size):
                message, option = f"the configuration says {size}", f"--{name.replace('_', '-')}"
                fix = f"leave it out; qconf simulate --set machine.{name}={given} tries it"
                raise InputError(message, file=self.config_path, field=option, value=given, fix=fix)
        return config if self.anonymous is None else self.anonymous.config(config)

    def cut(self, history: History) -> History:
        """Return the jobs of the period; the whole history if no period is given."""
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
    """Return ``--history`` with this help, and the same files as arguments."""
    return with_options(
        click.argument("files", nargs=-1, type=PATH, metavar="[FILE]..."),
        click.option("--history", multiple=True, type=PATH, help=f"{text}; repeatable."),
    )


def format_option(text: str) -> Callable[[F], F]:
    """Return ``--format`` (kind) with this help."""
    return click.option("--format", "kind", type=_FORMATS, default="auto", show_default=True, help=text)


def _names(_context: click.Context, _option: click.Parameter, wanted: bool) -> Names | None:
    from qconf.history.anonymous import Names

    return Names() if wanted else None


def pairs(text: str, alone: str) -> dict[str, str] | None:
    """Return the pairs of ``walltime=time_limit,cores=``; a single word is the value of `alone`, other text None."""
    if "=" not in text:
        return {alone: text} if alone and text else None
    parts = [part.partition("=") for part in re.split(r",(?=\s*\w+=)", text)]
    return {name.strip(): value.strip() for name, _, value in parts}


def _bytes(text: str) -> int:
    from qconf.history.chunks import mebibytes

    return mebibytes(text) << 20


#: The options of `Source`, by the names of its fields.
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
        metavar="ZONE",
        help="Zone of local times and dates.  [default: UTC]",
    ),
    "date_format": click.option(
        "--date-format",
        metavar="FORMAT",
        help="Of times in tables: strptime, or epoch.",
    ),
    "columns": click.option(
        "--columns",
        type=Parsed("columns", lambda text: pairs(text, "preset"), "is not like walltime=time_limit,cores=num_cores"),
        metavar="OURS=ITS",
        help="Columns of a table, or the name of a public trace.",
    ),
    "units": click.option(
        "--units",
        type=Parsed("units", lambda text: pairs(text, ""), "is not like walltime=min,memory=gb"),
        metavar="OURS=UNIT",
        help="Of numbers in a table, like walltime=min.",
    ),
    "cores_per_node": click.option(
        "--cores-per-node", type=CORES, cls=Terse, metavar="N", help="Of a table that counts nodes."
    ),
    "unpacked": click.option(
        "--unpacked",
        type=Parsed("size", _bytes, "is no size like 8gb"),
        metavar="SIZE",
        help="Most that a packed file unpacks to, like 8gb.",
    ),
    "strict": click.option("--strict", is_flag=True, help="Stop at the first record that cannot be read."),
    "anonymous": click.option(
        "--anonymous",
        is_flag=True,
        callback=_names,
        help="Replace users and groups by numbers everywhere.",
    ),
}
#: The options that say how to read a log.
READING = ("timezone", "date_format", "columns", "units", "cores_per_node", "unpacked", "strict")


def source_options(*options: str | Callable[[Any], Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds options; those named are `Source` fields, which come as one, `source`."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def command(**given: Any) -> Any:  # noqa: ANN401 - whatever the command takes and returns
            found = {name: given.pop(name) for name in (*_SOURCE, "preset", "changes") if name in given}
            if files := given.pop("files", ()):
                found["history"] = (*found["history"], *files)
            return function(source=Source(**found), **given)

        chosen: list[Callable[[Any], Any]] = [_SOURCE[each] if isinstance(each, str) else each for each in options]
        decorated: Callable[..., Any] = with_options(*chosen)(command)
        return decorated

    return add


FIELDS = tuple(_SOURCE)  #: the names of all source options
history_options = source_options(*FIELDS)
