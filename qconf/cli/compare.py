"""``qconf compare``: train on one log, evaluate on the next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from qconf.cli.options import StrategyCommand, log_options, machine_options
from qconf.cli.walk_forward import WalkForward, base_of, walk_forward_options


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
    **given: Any,  # noqa: ANN401 - the options of `WalkForward`
) -> None:
    """Train every strategy on one log and evaluate it on the jobs of another, later one.

    The last days of the first log fill the machine and are not counted.
    """
    from qconf.backtest import compare
    from qconf.history import clean, read

    for option, paths in (("--history", history), ("--next", later)):
        if not paths:
            raise click.UsageError(f"Missing option '{option}'.")
    walk_forward = WalkForward("compare", [*history, *later], config_path, **given)
    records = read(history, timezone=timezone), read(later, timezone=timezone)
    known = records[0] if config_path is not None else read([*history, *later], timezone=timezone)
    base = base_of(config_path, known, cores)
    parts = [clean(each, base) for each in records]
    spans = [(each.epoch, *each.span) for each in parts]
    walk_forward.run(base, parts[0].joined(parts[1]), compare, *parts, spans=spans)
