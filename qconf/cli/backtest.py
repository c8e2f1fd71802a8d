"""``qconf backtest``: what tuning each period on the one before would have brought."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from qconf.cli.options import StrategyCommand, log_options, machine_options, span_options
from qconf.cli.walk_forward import WalkForward, base_of, walk_forward_options


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
    **given: Any,  # noqa: ANN401 - the options of `WalkForward`
) -> None:
    """Train every strategy on each period of a long log and evaluate it on the next.

    Nothing of a test period reaches the training. `static` is trained on the first period only. For a strategy that
    has no proposal the current configuration stands in, which is shown and counted.
    """
    from functools import partial

    from qconf.backtest import backtest
    from qconf.cli.options import cut
    from qconf.history import clean, read

    if not history:
        raise click.UsageError("Missing option '--history'.")
    walk_forward = WalkForward("backtest", history, config_path, **given)
    records = read(history, timezone=timezone)
    base = base_of(config_path, records, cores)
    jobs = cut(clean(records, base), None, start, end)
    evaluate = partial(backtest, period=period)
    walk_forward.run(base, jobs, evaluate, jobs, periods=jobs.periods(period), span=jobs.span)
