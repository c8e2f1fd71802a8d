"""What ``qconf tune``, ``backtest`` and ``compare`` share, which write a run directory: options, checks, output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

import click

from qconf.cli.messages import history_warnings, report_history, say, warn, warn_changed
from qconf.cli.options import PATH, F, retired_option, stem, with_options
from qconf.cli.progress import resumable
from qconf.cli.settings import strategy_names, strategy_settings
from qconf.cli.source import Source
from qconf.cli.workers import backend_option

if TYPE_CHECKING:
    from qconf.backtest import Backtest
    from qconf.config import SiteConfig
    from qconf.export import Exporter
    from qconf.history import History
    from qconf.history.records import SourceInfo
    from qconf.recommend import Recommendation
    from qconf.recommend.checkpoint import Checkpoint
    from qconf.report.exported import Exported
    from qconf.report.run_directory import Run


def run_options(directory: str, verbose: str, *more: Callable[[F], F]) -> Callable[[F], F]:
    """Return a decorator that adds the options of `RunCommand`: the default of ``--out``, the help of ``--verbose``."""
    return with_options(
        click.option("-o", "--out", type=PATH, help=f"Run directory.  [default: {directory}]"),
        backend_option,
        *more,
        click.option("--resume", is_flag=True, help="Go on from what an interrupted run had finished."),
        click.option("--json", "as_json", is_flag=True, help="Print run.json on stdout, all else on stderr."),
        click.option("-q", "--quiet", is_flag=True, help="Print the verdict and where it is written; warnings."),
        click.option("-v", "--verbose", is_flag=True, help=verbose),
        retired_option("--order", use="dqr's order of visits is --visit-order"),
    )


@dataclass(kw_only=True)
class RunCommand:
    """One run of such a command; the fields from `strategies` to `scheduler` are options.

    Raises QconfError if the run directory holds something else, or a strategy is unknown.
    """

    ASSUMED: ClassVar[str]  #: what is assumed without a configuration

    name: str  #: of the command
    source: Source  #: the log and configuration to read
    strategies: str | None
    out: Path | None
    settings: dict[str, Any]
    resume: bool
    as_json: bool
    quiet: bool
    verbose: bool
    backend: str | None
    scheduler: str | None  #: the address of a Dask cluster
    exporter: Exporter | None = None
    called: str = ""  #: the run directory in reports/, if not HISTORY-COMMAND
    #: The strategies of ``--strategies``; None: all.
    named: tuple[str, ...] | None = field(init=False)
    #: `perf_counter` when the log was read. Fields from here on are set by `report`, those after `log` by `check`.
    loaded: float = field(init=False)
    log: History = field(init=False)
    warnings: list[str] = field(init=False)
    inputs: dict[str, SourceInfo] = field(init=False)
    checkpoint: Checkpoint = field(init=False)

    def __post_init__(self) -> None:
        self.directory = self.out or Path("reports", self.called or f"{stem(self.source.history[0])}-{self.name}")
        self.began = perf_counter()
        self.wait = self.source.compile(quiet=self.quiet)
        self.named = strategy_names(self.strategies)

    @property
    def assumed(self) -> bool:
        """Whether no configuration was given."""
        return self.source.config_path is None

    def report(self, base: SiteConfig, history: History, *earlier: History, brief: bool = False) -> None:
        """Print what was read: the jobs of the run; `earlier` ones are looked at for warnings."""
        self.loaded, self.log = perf_counter(), history
        self.warnings = [*self.source.preset_warnings(base), *history_warnings(base, history, *earlier)]
        given = {"derived": self.assumed, "quiet": self.quiet, "err": self.as_json, "brief": brief}
        report_history(history, base, self.warnings, **given)
        if self.assumed:
            self.warnings.insert(0, self.ASSUMED)
            if not self.quiet:
                say(self.ASSUMED, err=self.as_json, indent="")
        sys.stdout.flush()

    def check(self, base: SiteConfig, strategies: Sequence[str], files: Mapping[str, Path], **about: object) -> None:
        """Check all that can be checked before the run: order, settings, run directory, strategies, export.

        `files` are read beside the log and the configuration, by what they are; `about` is part of the fingerprint.
        """
        # Imported only now, since it takes long: what was read is printed first.
        from qconf.evaluation.order import order_warnings
        from qconf.history.records import SourceInfo
        from qconf.recommend.checkpoint import fingerprint
        from qconf.report.run_directory import check_target, names_of
        from qconf.strategies import check

        warn(found := order_warnings(base, self.log.workload(base)))
        self.warnings += found
        config, exporter = self.source.config_path, self.exporter
        orders = {} if exporter is None else {"orders": exporter.orders}
        self.settings = strategy_settings(config, self.settings, preset=self.source.preset, **orders)
        files = ({} if config is None else {"configuration": config}) | dict(files)
        self.inputs = {what: SourceInfo.of(path) for what, path in files.items()}
        check_target(self.directory, [*self.source.history, *files.values()], names_of(self.name, exporter))
        check(strategies, self.settings, base)
        key = fingerprint(self.log.sources, base, self.settings, **about, **self.source.reading)
        if exporter is not None:
            exporter.check(base)
        self.checkpoint = resumable(self.directory, key, resume=self.resume)

    def write(self, result: Recommendation | Backtest, seconds: float, exported: Exported | None = None) -> Run:
        """Write the run directory of what was found in so many seconds."""
        from qconf.parallel import working as in_calls
        from qconf.report.run_directory import write_run

        timings = {"read": self.loaded - self.began, self.name: seconds, "one thread": seconds - in_calls.seconds}
        run = write_run(
            self.directory,
            result,
            self.log,
            inputs=self.inputs,
            timings=timings,
            warnings=self.warnings,
            assumed_current=self.assumed,
            exported=exported,
        )
        warn_changed([*self.log.sources, *self.inputs.values()])
        return run

    def print_json(self) -> None:
        """Print run.json."""
        click.echo((self.directory / "run.json").read_text(encoding="utf-8"), nl=False)
