"""``qconf compare``: train on one log, evaluate on the next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from qconf.cli.options import StrategyCommand, log_options, machine_options
from qconf.cli.walk_forward import walk_forward_options


@click.command("compare", cls=StrategyCommand)
@click.option(
    "--history",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Log to train on: CSV, SWF, PBS accounting or sacct; several times for several files.",
)
@click.option(
    "--next",
    "later",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Log to evaluate on; it begins after the other ends. Several times for several files.",
)
@machine_options
@log_options
@walk_forward_options
def command(
    *,
    history: tuple[Path, ...],
    later: tuple[Path, ...],
    config_path: Path | None,
    cores: int | None,
    timezone: str,
    strategies: str | None,
    warmup_days: int,
    out: Path | None,
    settings: dict[str, Any],
    resume: bool,
    as_json: bool,
) -> None:
    """Train every strategy on one log and evaluate it on the jobs of another, later one.

    The last days of the first log fill the machine and are not counted.
    """
    from time import perf_counter

    from qconf.backtest import compare, join
    from qconf.cli.options import stem
    from qconf.cli.progress import Progress, resumable
    from qconf.cli.walk_forward import base_of, finish, names, paths
    from qconf.history import clean, read
    from qconf.recommend.checkpoint import Checkpoint, fingerprint
    from qconf.report.run_directory import check_target, names_of
    from qconf.strategies import check

    for option, given in (("--history", history), ("--next", later)):
        if not given:
            raise click.UsageError(f"Missing option '{option}'.")
    wanted = names(strategies, current=config_path is not None)
    directory = resumable(out or Path("reports", f"{stem(history[0])}-compare"))
    check_target(directory, paths([*history, *later], config_path), names_of("compare"))
    began = perf_counter()
    records = read(history, timezone=timezone), read(later, timezone=timezone)
    known = records[0] if config_path is not None else read([*history, *later], timezone=timezone)
    base = base_of(config_path, known, cores)
    jobs, later_jobs = (clean(each, base) for each in records)
    both = join(jobs, later_jobs)
    loaded = perf_counter()
    check(wanted or (), settings, base)
    spans = [(each.epoch, *each.span) for each in (jobs, later_jobs)]
    checkpoint = Checkpoint(directory, fingerprint(both.sources, base, settings, spans=spans), resume=resume)
    with Progress("compare") as progress:
        found = compare(
            jobs,
            later_jobs,
            base,
            strategies=wanted,
            settings=settings,
            warmup_days=warmup_days,
            checkpoint=checkpoint,
            progress=progress.step,
        )
    timings = {"read": loaded - began, "compare": perf_counter() - loaded}
    finish(directory, found, both, config_path=config_path, timings=timings, as_json=as_json)
    checkpoint.clear()
