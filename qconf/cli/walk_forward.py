"""What ``qconf backtest`` and ``qconf compare`` share: options, the base configuration, the run, the output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from qconf.cli.options import (
    PATH,
    Source,
    history_warnings,
    report_history,
    retired_option,
    stem,
    strategy_names,
    with_options,
)
from qconf.cli.progress import progress, resumable

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
        help="Days of jobs before a test period that fill the machine and are not counted.",
    ),
    click.option("-o", "--out", type=PATH, help="Run directory.  [default: reports/<history>-COMMAND]"),
    click.option("--resume", is_flag=True, help="Go on from what an interrupted run had finished."),
    click.option("--json", "as_json", is_flag=True, help="Print run.json on stdout instead of the table."),
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
    out: Path | None
    settings: dict[str, Any]
    resume: bool
    as_json: bool

    def __post_init__(self) -> None:
        from qconf.report.run_directory import check_target, names_of

        self.options: dict[str, Any] = {
            "strategies": self._names(),
            "settings": self.settings,
            "warmup_days": self.warmup_days,
        }
        self.directory = resumable(self.out or Path("reports", f"{stem(self.source.history[0])}-{self.name}"))
        check_target(self.directory, self.source.inputs, names_of(self.name))
        self.began = perf_counter()

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
        from qconf.recommend.checkpoint import Checkpoint, fingerprint
        from qconf.report.run_directory import write_run
        from qconf.report.terminal import print_backtest
        from qconf.strategies import check

        loaded, config = perf_counter(), self.source.config_path
        assumed = config is None
        check(self.options["strategies"] or (), self.settings, base)
        key = fingerprint(history.sources, base, self.settings, **about)
        checkpoint = Checkpoint(self.directory, key, resume=self.resume)
        with progress(self.name) as step:
            found = evaluate(*given, base, **self.options, checkpoint=checkpoint, progress=step)
        run = write_run(
            self.directory,
            found,
            history,
            inputs={} if config is None else {"configuration": config},
            timings={"read": loaded - self.began, self.name: perf_counter() - loaded},
            warnings=[*([ASSUMED] if assumed else []), *history_warnings(found.base, history)],
            assumed_current=assumed,
        )
        checkpoint.clear()
        if self.as_json:
            click.echo((self.directory / "run.json").read_text(encoding="utf-8"), nl=False)
            return
        report_history(history, found.base, derived=assumed)
        click.echo(f"{ASSUMED}\n" if assumed else "")
        print_backtest(found)
        table = next(name for name in run.files if name in {"backtest.csv", "comparison.csv"})
        click.echo(f"\nWritten to {self.directory}: report.html, {table}, figures/, run.json")
