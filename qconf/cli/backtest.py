"""``qconf backtest``: what tuning each period on the one before would have brought."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from qconf.cli.options import StrategyCommand, log_options, machine_options, span_options
from qconf.cli.walk_forward import walk_forward_options


@click.command("backtest", cls=StrategyCommand)
@click.option(
    "--history",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Log of many months: CSV, SWF, PBS accounting or sacct; several times for several files.",
)
@machine_options
@click.option(
    "--period",
    default="month",
    show_default=True,
    metavar="month|30d",
    help="Calendar months, or so many days each from the first job on.",
)
@span_options
@log_options
@walk_forward_options
def command(
    *,
    history: tuple[Path, ...],
    config_path: Path | None,
    cores: int | None,
    period: str,
    start: str | None,
    end: str | None,
    timezone: str,
    strategies: str | None,
    warmup_days: int,
    out: Path | None,
    settings: dict[str, Any],
    resume: bool,
    as_json: bool,
) -> None:
    """Train every strategy on each period of a long log and evaluate it on the next.

    Nothing of a test period reaches the training. `static` is trained on the first period only. For a strategy that
    has no proposal the current configuration stands in, which is shown and counted.
    """
    from time import perf_counter

    from qconf.backtest import backtest
    from qconf.cli.options import cut, stem
    from qconf.cli.progress import Progress, resumable
    from qconf.cli.walk_forward import base_of, finish, names, paths
    from qconf.history import clean, read
    from qconf.recommend.checkpoint import Checkpoint, fingerprint
    from qconf.report.run_directory import check_target, names_of
    from qconf.strategies import check

    if not history:
        raise click.UsageError("Missing option '--history'.")
    wanted = names(strategies, current=config_path is not None)
    directory = resumable(out or Path("reports", f"{stem(history[0])}-backtest"))
    check_target(directory, paths(history, config_path), names_of("backtest"))
    began = perf_counter()
    records = read(history, timezone=timezone)
    base = base_of(config_path, records, cores)
    whole = clean(records, base)
    jobs = cut(whole, None, start, end)
    loaded = perf_counter()
    check(wanted or (), settings, base)
    about = fingerprint(jobs.sources, base, settings, periods=jobs.periods(period), span=jobs.span)
    checkpoint = Checkpoint(directory, about, resume=resume)
    with Progress("backtest") as progress:
        found = backtest(
            jobs,
            base,
            period=period,
            strategies=wanted,
            settings=settings,
            warmup_days=warmup_days,
            checkpoint=checkpoint,
            progress=progress.step,
        )
    timings = {"read": loaded - began, "backtest": perf_counter() - loaded}
    finish(directory, found, jobs, config_path=config_path, timings=timings, as_json=as_json)
    checkpoint.clear()
