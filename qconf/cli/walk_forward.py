"""What ``qconf backtest`` and ``qconf compare`` share: options, the base configuration, the run, the output."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
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
    from qconf.backtest import Backtest
    from qconf.config import SiteConfig
    from qconf.history import History, Records

ASSUMED = (
    "No --config: the queues that the log names, on one machine under fcfs-easy, are assumed as the current setting. "
    "They are assumed to have no limits, since what the log shows of them is not known beforehand; of queues without "
    "limits only the first can be split, so dqr and hybrid find less."
)
walk_forward_options = with_options(
    click.option(
        "--strategies",
        metavar="A,B,...",
        help="Which to compare; fcfs-easy, shared and static always are, and current with --config. "
        "Planning disciplines, such as planned-sjf and dynp, may be named too.  [default: all]",
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
    click.option("-q", "--quiet", is_flag=True, help="Print where the result is written; warnings."),
    retired_option("--order", use="dqr's order of visits is --visit-order"),
)


@dataclass
class WalkForward:
    """One run of either command; the fields after the source are the options of both.

    Raises QconfError where the run directory holds something else, or a strategy is unknown.
    """

    name: str
    source: Source  #: all that is read
    strategies: str | None
    warmup_days: int
    warm_up: bool
    out: Path | None
    settings: dict[str, Any]
    resume: bool
    as_json: bool
    quiet: bool
    backend: str | None
    scheduler: str | None

    def __post_init__(self) -> None:
        self.directory = self.out or Path("reports", f"{stem(self.source.history[0])}-{self.name}")
        self.began = perf_counter()
        self.wait = self.source.compile(quiet=self.quiet)

    def _names(self) -> tuple[str, ...] | None:
        """Return what ``--strategies`` names; what the site has is always among them."""
        found = strategy_names(self.strategies)
        return found if found is None or self.source.config_path is None else ("current", *found)

    def base(self, records: Records) -> SiteConfig:
        """Read the configuration; without one, the queues that the records name, on one machine, without limits.

        The ranges of sizes and walltimes that `derive_config` finds are those of jobs yet to come: unknown when the
        first periods were trained on.
        """
        from parsim.workload import MAX_DURATION

        base = self.source.config(records)
        if self.source.config_path is not None:
            return base
        open_to_all = {"cores": (1, base.machine.cores), "walltime": (0, MAX_DURATION)}
        queues = sorted(base.queues, key=lambda queue: queue.name)
        return base.replace(queues=tuple(queue.model_copy(update=open_to_all) for queue in queues))

    def run(
        self, base: SiteConfig, history: History, evaluate: Callable[..., Backtest], *given: object, **about: object
    ) -> None:
        """Evaluate, write the run directory, then print the table, or run.json; `about` is for the fingerprint."""
        loaded, config = perf_counter(), self.source.config_path
        assumed = config is None
        warnings = [*self.source.preset_warnings(base), *history_warnings(base, history)]
        if self.quiet:
            warn([*([] if assumed else base.warnings()), *warnings])
        else:
            report_history(history, base, warnings=warnings, derived=assumed, err=self.as_json)
            if assumed:
                say(ASSUMED, err=self.as_json, indent="")
        sys.stdout.flush()

        # What is heavy to import comes after what was read is printed.
        from qconf.evaluation.order import order_warnings
        from qconf.history.records import SourceInfo
        from qconf.recommend.checkpoint import fingerprint
        from qconf.report.run_directory import check_target, names_of, write_run
        from qconf.report.terminal import print_backtest
        from qconf.strategies import check

        warn(found := order_warnings(base, history.workload(base)))
        warnings += found
        names, settings = self._names(), strategy_settings(config, self.settings, preset=self.source.preset)
        check_target(self.directory, self.source.inputs, names_of(self.name))
        check(names or (), settings, base)
        key = fingerprint(history.sources, base, settings, **about, **self.source.reading)
        inputs = {} if config is None else {"configuration": SourceInfo.of(config)}
        checkpoint = resumable(self.directory, key, resume=self.resume)
        here = working(settings, self.backend, self.scheduler)
        with progress(self.name, quiet=self.quiet) as step, here as settings:
            self.wait()
            options = {
                "strategies": names,
                "settings": settings,
                "warmup_days": self.warmup_days,
                "from_log": not self.warm_up,
            }
            result = evaluate(*given, base, **options, checkpoint=checkpoint, progress=step)
            run = write_run(
                self.directory,
                result,
                history,
                inputs=inputs,
                timings={"read": loaded - self.began, self.name: perf_counter() - loaded},
                warnings=[*([ASSUMED] if assumed else []), *warnings],
                assumed_current=assumed,
            )
        warn_changed([*history.sources, *inputs.values()])
        if self.as_json:
            click.echo((self.directory / "run.json").read_text(encoding="utf-8"), nl=False)
        else:
            if not self.quiet:
                click.echo("")
                print_backtest(result)
                click.echo("")
            table = next(name for name in run.files if name in {"backtest.csv", "comparison.csv"})
            say(f"Written to {self.directory}: report.html, {table}, figures/, run.json")
        checkpoint.clear()
