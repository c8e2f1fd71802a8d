"""``qconf backtest``: tunes each period and evaluates on the next, at one site or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from qconf.cli.options import stem
from qconf.cli.settings import StrategyCommand
from qconf.cli.source import NO_LOG, READING, Source, history_option, source_options
from qconf.cli.walk_forward import WalkForward, evaluate, walk_forward_options
from qconf.errors import InputError


def _paths(_context: click.Context, _option: click.Parameter, text: str | None) -> tuple[Path | None, ...]:
    return () if text is None else tuple(Path(part.strip()) if part.strip() else None for part in text.split(","))


@click.command("backtest", cls=StrategyCommand)
@source_options(
    history_option("Log of many months"),
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
@click.option(
    "--histories",
    metavar="A,B,...",
    callback=_paths,
    help="Logs of several sites, evaluated at once.",
)
@click.option("--configs", metavar="A,B,...", callback=_paths, help="Their configurations, in that order.")
@click.option(
    "--chain",
    is_flag=True,
    help="Reconfigure period by period: begin with the result of the one before.",
)
@walk_forward_options
def command(
    *,
    source: Source,
    histories: tuple[Path | None, ...],
    configs: tuple[Path | None, ...],
    period: str,
    chain: bool,
    out: Path | None,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - the options of `WalkForward`
) -> None:
    """Train every strategy on each period of a long log and evaluate it on the next.

    Nothing of a test period reaches the training. `static` is trained on the first period only. For a strategy that
    has no proposal the current configuration stands in, which is shown and counted.
    """
    from functools import partial

    from qconf.backtest import prepare_periods
    from qconf.history import clean
    from qconf.prediction.runtimes import with_estimates
    from qconf.report.sites import check_sites

    directory = out or Path("reports", "sites-backtest")
    sites = _sites(source, histories, configs)
    runs = {
        name: WalkForward(name="backtest", source=site, **given, out=directory / name if name else out, as_json=as_json)
        for name, site in sites.items()
    }
    if histories:
        check_sites(directory, [path for site in sites.values() for path in site.inputs])
    for name, run in runs.items():
        if name and not run.quiet:
            click.echo(f"{name}:", err=as_json)
        records = run.source.records()
        base = run.base(records)
        jobs = run.source.cut(with_estimates(clean(records, base), base))
        prepare = partial(prepare_periods, period=period, chain=chain)
        run.prepare(base, jobs, prepare, jobs, periods=jobs.periods(period), span=jobs.span, chain=chain)
    evaluate(list(runs.values()))
    if histories:
        _show_sites(runs, directory)
    else:
        runs[""].show()
    for run in runs.values():
        run.checkpoint.clear()


def _sites(source: Source, histories: Sequence[Path | None], configs: Sequence[Path | None]) -> dict[str, Source]:
    """Return the source of each site by name; a single site has the empty name."""
    if not histories:
        if configs:
            raise click.UsageError("--configs goes with --histories; the configuration of one log is --config.")
        if not source.history:
            raise click.UsageError(NO_LOG)
        return {"": source}
    if source.history or source.config_path is not None or source.cores is not None:
        raise click.UsageError(
            "--histories names all logs, and --configs their machines: leave FILE, --history, --config and --cores out."
        )
    if configs and len(configs) != len(histories):
        raise click.UsageError(f"--histories names {len(histories)} logs, --configs {len(configs)} configurations.")
    found: dict[str, Source] = {}
    for log, config in zip(histories, configs or (None,) * len(histories), strict=True):
        if log is None:
            raise click.UsageError("--histories has an empty name.")
        if stem(log) in found:
            fix = "copy it, or link to it, by another name"
            raise InputError("another site has this name, after which its directory is called", file=log, fix=fix)
        found[stem(log)] = replace(source, history=(log,), config_path=config)
    return found


def _show_sites(runs: dict[str, WalkForward], directory: Path) -> None:
    """Write and print the comparison of strategies over all sites."""
    from qconf.cli.messages import say
    from qconf.report.sites import print_sites, write_sites

    first = next(iter(runs.values()))
    results = {name: run.result for name, run in runs.items()}
    written = write_sites(directory, results, [path for run in runs.values() for path in run.source.inputs])
    if first.as_json:
        click.echo(written.read_text(encoding="utf-8"), nl=False)
        return
    if not first.quiet:
        click.echo("")
        print_sites(results)
        click.echo("")
    say(f"Written to {directory}: sites.csv, sites.json, and a directory for each site: {', '.join(results)}")
