"""``qconf compare``: trains on one log and evaluates on a later one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from qconf.cli.options import PATH
from qconf.cli.settings import StrategyCommand
from qconf.cli.source import READING, Source, source_options
from qconf.cli.walk_forward import WalkForward, evaluate, walk_forward_options


@click.command("compare", cls=StrategyCommand)
@source_options(
    click.argument("first", metavar="[LOG]", required=False, type=PATH),
    click.argument("second", metavar="[NEXT]", required=False, type=PATH),
    click.option(
        "--history",
        multiple=True,
        type=PATH,
        help="Log to train on, the same as LOG: CSV, SWF, PBS accounting or sacct; several times for several files.",
    ),
    click.option(
        "--next",
        "later",
        multiple=True,
        type=PATH,
        help="Log to evaluate on, the same as NEXT; it begins after the other ends.",
    ),
    "config_path",
    "cores",
    *READING,
    "anonymous",
)
@walk_forward_options
def command(
    *,
    source: Source,
    first: Path | None,
    second: Path | None,
    later: tuple[Path, ...],
    **given: Any,  # noqa: ANN401 - as in backtest
) -> None:
    """Train every strategy on one log and evaluate it on the jobs of another, later one.

    The last days of the first log fill the machine and are not counted.
    """
    from qconf.backtest import prepare_two
    from qconf.history import clean
    from qconf.prediction.runtimes import with_estimates

    source = replace(source, history=(*source.history, *filter(None, (first,))))
    later = (*later, *filter(None, (second,)))
    for option, paths in (("--history", source.history), ("--next", later)):
        if not paths:
            raise click.UsageError(f"Missing option '{option}'.")
    both = replace(source, history=(*source.history, *later))
    walk_forward = WalkForward(name="compare", source=both, **given)
    records = source.records(), replace(source, history=later).records()
    base = walk_forward.base(both.records() if source.config_path is None else records[0])
    parts = [with_estimates(clean(each, base), base) for each in records]
    spans = [(each.epoch, *each.span) for each in parts]
    walk_forward.prepare(base, parts[0].joined(parts[1]), prepare_two, *parts, spans=spans)
    evaluate([walk_forward])
    walk_forward.show()
    walk_forward.checkpoint.clear()
