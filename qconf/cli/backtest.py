"""``qconf backtest``: what tuning each period on the one before would have brought."""

from __future__ import annotations

from typing import Any

import click

from qconf.cli.settings import StrategyCommand
from qconf.cli.source import NO_LOG, READING, Source, history_option, source_options
from qconf.cli.walk_forward import WalkForward, walk_forward_options


@click.command("backtest", cls=StrategyCommand)
@source_options(
    history_option("Log of many months: CSV, SWF, PBS accounting or sacct"),
    "config_path",
    "cores",
    click.option(
        "--period",
        default="month",
        show_default=True,
        metavar="month|30d",
        help="Calendar months, or so many days each from the first job on.",
    ),
    "start",
    "end",
    *READING,
    "anonymous",
)
@walk_forward_options
def command(*, source: Source, period: str, **given: Any) -> None:  # noqa: ANN401 - the options of `WalkForward`
    """Train every strategy on each period of a long log and evaluate it on the next.

    Nothing of a test period reaches the training. `static` is trained on the first period only. For a strategy that
    has no proposal the current configuration stands in, which is shown and counted.
    """
    from functools import partial

    from qconf.backtest import backtest
    from qconf.history import clean

    if not source.history:
        raise click.UsageError(NO_LOG)
    walk_forward = WalkForward("backtest", source, **given)
    records = source.records()
    base = walk_forward.base(records)
    jobs = source.cut(clean(records, base))
    evaluate = partial(backtest, period=period)
    walk_forward.run(base, jobs, evaluate, jobs, periods=jobs.periods(period), span=jobs.span)
