"""Parts that ``qconf backtest`` and ``qconf compare`` share: options, base configuration, run, output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

import click

from qconf.cli.messages import say
from qconf.cli.options import with_options
from qconf.cli.progress import progress
from qconf.cli.run_command import RunCommand, run_options
from qconf.cli.workers import scheduler_option, working

if TYPE_CHECKING:
    from qconf.backtest import Backtest, Prepared
    from qconf.config import SiteConfig
    from qconf.history import History, Records

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
    run_options("reports/<history>-COMMAND", "Print the table of periods and all notes too.", scheduler_option),
)


@dataclass(kw_only=True)
class WalkForward(RunCommand):
    """One run of either command. With a configuration, `current` is compared, too."""

    ASSUMED = (
        "No --config: the queues that the log names, on one machine under fcfs-easy, are assumed as the current "
        "setting. They are assumed to have no limits, since what the log shows of them is not known beforehand; of "
        "queues without limits only the first can be split, so dqr and hybrid find less."
    )

    warmup_days: int
    warm_up: bool
    prepared: Prepared = field(init=False)  #: by `prepare`
    result: Backtest = field(init=False)  #: by `evaluate`

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.named is not None and not self.assumed:
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
        if not self.assumed:
            return base
        open_to_all = {"cores": (1, base.machine.cores), "walltime": (0, MAX_DURATION)}
        queues = sorted(base.queues, key=lambda queue: queue.name)
        return base.replace(queues=tuple(queue.model_copy(update=open_to_all) for queue in queues))

    def prepare(
        self, base: SiteConfig, history: History, prepare: Callable[..., Prepared], *given: object, **about: object
    ) -> None:
        """Print what was read, check the run, and prepare it; `about` is part of the fingerprint."""
        self.report(base, history)
        self.check(base, self.named or (), {}, **about)
        self.prepared = prepare(
            *given,
            base,
            strategies=self.named,
            settings=self.settings,
            warmup_days=self.warmup_days,
            from_log=not self.warm_up,
            checkpoint=self.checkpoint,
        )

    def show(self) -> None:
        """Print the table or run.json, and the run directory."""
        from qconf.report.backtest import advise
        from qconf.report.terminal import print_backtest, print_verdict

        if self.as_json:
            self.print_json()
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

    first = runs[0]
    here = working(first.settings, first.backend, first.scheduler)
    with progress(first.name, quiet=first.quiet) as step, here as settings:
        first.wait()
        results = evaluate_all([run.prepared for run in runs], settings["workers"], step)
        seconds = perf_counter() - runs[-1].loaded
        for run, result in zip(runs, results, strict=True):
            run.result = result
            run.write(result, seconds)
