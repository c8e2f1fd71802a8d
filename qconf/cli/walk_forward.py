"""Parts that ``qconf backtest`` and ``qconf compare`` share: options, base configuration, run, output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from qconf.cli.messages import history_warnings, report_history, say, warn, warn_changed
from qconf.cli.options import PATH, retired_option, stem, with_options
from qconf.cli.progress import progress, resumable
from qconf.cli.settings import strategy_names, strategy_settings
from qconf.cli.source import Source
from qconf.cli.workers import backend_option, scheduler_option, working

if TYPE_CHECKING:
    from qconf.backtest import Backtest, Prepared
    from qconf.config import SiteConfig
    from qconf.history import History, Records
    from qconf.history.records import SourceInfo
    from qconf.recommend.checkpoint import Checkpoint

ASSUMED = (
    "No --config: the queues that the log names, on one machine under fcfs-easy, are assumed as the current setting. "
    "They are assumed to have no limits, since what the log shows of them is not known beforehand; of queues without "
    "limits only the first can be split, so dqr and hybrid find less."
)
walk_forward_options = with_options(
    click.option(
        "--strategies",
        metavar="A,B,...",
        help="Which to compare beside current and three references; planning disciplines may be named too.  "
        "[default: all]",
    ),
    click.option(
        "--warmup-days",
        default=3,
        show_default=True,
        type=click.IntRange(0, 365),
        metavar="DAYS",
        help="Days of jobs that fill the machine, where the log tells no starts.",
    ),
    click.option("--warm-up", is_flag=True, help="Let these fill it though the log tells starts."),
    click.option("-o", "--out", type=PATH, help="Run directory.  [default: reports/<history>-COMMAND]"),
    backend_option,
    scheduler_option,
    click.option("--resume", is_flag=True, help="Go on from what an interrupted run had finished."),
    click.option("--json", "as_json", is_flag=True, help="Print run.json on stdout, all else on stderr."),
    click.option("-q", "--quiet", is_flag=True, help="Print the verdict and where it is written; warnings."),
    click.option("-v", "--verbose", is_flag=True, help="Print the table of periods and all notes too."),
    retired_option("--order", use="dqr's order of visits is --visit-order"),
)


@dataclass
class WalkForward:
    """One run of either command; the fields from `strategies` to `scheduler` are the options of both.

    Raises QconfError if the run directory holds something else, or a strategy is unknown.
    """

    name: str
    source: Source  #: the log and configuration to read
    strategies: str | None
    warmup_days: int
    warm_up: bool
    out: Path | None
    settings: dict[str, Any]
    resume: bool
    as_json: bool
    quiet: bool
    verbose: bool
    backend: str | None
    scheduler: str | None
    #: The strategies to compare: those of ``--strategies`` and, with a configuration, `current`; None: all.
    named: tuple[str, ...] | None = field(init=False)
    #: `perf_counter` when the log was read. The fields from here on are set by `prepare`, `result` by `write`.
    loaded: float = field(init=False)
    log: History = field(init=False)
    prepared: Prepared = field(init=False)
    checkpoint: Checkpoint = field(init=False)
    inputs: dict[str, SourceInfo] = field(init=False)
    warnings: list[str] = field(init=False)
    result: Backtest = field(init=False)

    def __post_init__(self) -> None:
        self.directory = self.out or Path("reports", f"{stem(self.source.history[0])}-{self.name}")
        self.began = perf_counter()
        self.wait = self.source.compile(quiet=self.quiet)
        self.named = strategy_names(self.strategies)
        if self.named is not None and self.source.config_path is not None:
            self.named = ("current", *self.named)

    def base(self, records: Records) -> SiteConfig:
        """Return the configuration; without one, the records' queues on one machine, without limits.

        `derive_config` would find ranges of sizes and walltimes from all jobs, including those after the first training
        periods.
        """
        from parsim.model.workload import MAX_DURATION
        from qconf.history.deriving import check_size

        base = self.source.config(records)
        check_size(records, base)
        if self.source.config_path is not None:
            return base
        open_to_all = {"cores": (1, base.machine.cores), "walltime": (0, MAX_DURATION)}
        queues = sorted(base.queues, key=lambda queue: queue.name)
        return base.replace(queues=tuple(queue.model_copy(update=open_to_all) for queue in queues))

    def prepare(
        self, base: SiteConfig, history: History, prepare: Callable[..., Prepared], *given: object, **about: object
    ) -> None:
        """Print what was read, check the run, and prepare it; `about` is part of the fingerprint."""
        self.loaded, self.log, config = perf_counter(), history, self.source.config_path
        assumed = config is None
        warnings = [*self.source.preset_warnings(base), *history_warnings(base, history)]
        report_history(history, base, warnings, derived=assumed, quiet=self.quiet, err=self.as_json)
        if assumed and not self.quiet:
            say(ASSUMED, err=self.as_json, indent="")
        sys.stdout.flush()

        # Imported only now, since it takes long: what was read is printed first.
        from qconf.evaluation.order import order_warnings
        from qconf.history.records import SourceInfo
        from qconf.recommend.checkpoint import fingerprint
        from qconf.report.run_directory import check_target, names_of
        from qconf.strategies import check

        warn(found := order_warnings(base, history.workload(base)))
        self.warnings = [*([ASSUMED] if assumed else []), *warnings, *found]
        self.settings = settings = strategy_settings(config, self.settings, preset=self.source.preset)
        check_target(self.directory, self.source.inputs, names_of(self.name))
        check(self.named or (), settings, base)
        key = fingerprint(history.sources, base, settings, **about, **self.source.reading)
        self.inputs = {} if config is None else {"configuration": SourceInfo.of(config)}
        self.checkpoint = resumable(self.directory, key, resume=self.resume)
        self.prepared = prepare(
            *given,
            base,
            strategies=self.named,
            settings=settings,
            warmup_days=self.warmup_days,
            from_log=not self.warm_up,
            checkpoint=self.checkpoint,
        )

    def write(self, result: Backtest, timings: Mapping[str, float]) -> None:
        """Write the run directory; `timings` are seconds of the evaluation."""
        from qconf.report.run_directory import write_run

        self.result = result
        write_run(
            self.directory,
            result,
            self.log,
            inputs=self.inputs,
            timings={"read": self.loaded - self.began, **timings},
            warnings=self.warnings,
            assumed_current=self.source.config_path is None,
        )
        warn_changed([*self.log.sources, *self.inputs.values()])

    def show(self) -> None:
        """Print the table or run.json, and the run directory."""
        from qconf.report.backtest import advise
        from qconf.report.terminal import print_backtest, print_verdict

        if self.as_json:
            click.echo((self.directory / "run.json").read_text(encoding="utf-8"), nl=False)
            return
        if not self.quiet:
            click.echo("")
            print_backtest(self.result, verbose=self.verbose)
            click.echo("")
        else:
            print_verdict(advise(self.result))
        table = {"backtest": "backtest.csv", "compare": "comparison.csv"}[self.name]
        say(f"Written to {self.directory}: report.html, {table}, figures/, run.json")


def evaluate(runs: Sequence[WalkForward]) -> None:
    """Evaluate the prepared runs together, and write each; all runs have the same options."""
    from qconf.backtest import evaluate_all
    from qconf.parallel import working as in_calls

    first, began = runs[0], runs[-1].loaded
    here = working(first.settings, first.backend, first.scheduler)
    with progress(first.name, quiet=first.quiet) as step, here as settings:
        first.wait()
        found = evaluate_all([run.prepared for run in runs], settings["workers"], step)
        seconds = perf_counter() - began
        timings = {first.name: seconds, "one thread": seconds - in_calls.seconds}
        for run, result in zip(runs, found, strict=True):
            run.write(result, timings)
