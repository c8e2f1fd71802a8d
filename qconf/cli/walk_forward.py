"""What ``qconf backtest`` and ``qconf compare`` share: options, the base configuration, the output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from qconf.cli.options import history_warnings, report_history, retired_option, with_options

if TYPE_CHECKING:
    from qconf.backtest import Backtest
    from qconf.config import SiteConfig
    from qconf.history import History, Records

F = TypeVar("F", bound=Callable[..., Any])

ASSUMED = (
    "No --config: the queues that the log names, on one machine under fcfs-easy, are assumed as the current setting. "
    "They are assumed to have no limits, since what the log shows of them is not known beforehand; of queues without "
    "limits only the first can be split, so dqr and hybrid find less."
)
_OPTIONS = (
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
    click.option(
        "-o", "--out", type=click.Path(path_type=Path), help="Run directory.  [default: reports/<history>-COMMAND]"
    ),
    click.option("--resume", is_flag=True, help="Go on from what an interrupted run had finished."),
    click.option("--json", "as_json", is_flag=True, help="Print run.json on stdout instead of the table."),
    retired_option("--order", use="dqr's order of visits is --visit-order"),
)


def walk_forward_options(function: F) -> F:
    """Add the options of both commands: strategies, output and computation."""
    return with_options(_OPTIONS, function)


def names(strategies: str | None, *, current: bool) -> tuple[str, ...] | None:
    """Split and check ``--strategies``; None where it is not given. With `current`, what the site has is among them."""
    from qconf.strategies import check_names

    if strategies is None:
        return None
    found = tuple(name.strip() for name in strategies.split(",") if name.strip())
    if not found:
        raise click.UsageError("--strategies names none")
    check_names(found)
    return ("current", *found) if current else found


def base_of(config_path: Path | None, records: Records, cores: int | None) -> SiteConfig:
    """Read the configuration; without one, the queues that the records name, on one machine, without limits.

    The ranges of sizes and walltimes that `derive_config` finds are those of jobs yet to come: unknown when the first
    periods were trained on.
    """
    from parsim.workload import MAX_DURATION
    from qconf.cli.options import load_config

    base = load_config(config_path, records, cores)
    if config_path is not None:
        return base
    open_to_all = {"cores": (1, base.machine.cores), "walltime": (0, MAX_DURATION)}
    queues = sorted(base.queues, key=lambda queue: queue.name)
    return base.replace(queues=tuple(queue.model_copy(update=open_to_all) for queue in queues))


def finish(
    directory: Path,
    found: Backtest,
    history: History,
    *,
    config_path: Path | None,
    timings: dict[str, float],
    as_json: bool,
) -> None:
    """Write the run directory, then print the table, or run.json."""
    from qconf.report.run_directory import write_run
    from qconf.report.terminal import print_backtest

    assumed = config_path is None
    run = write_run(
        directory,
        found,
        history,
        inputs={} if config_path is None else {"configuration": config_path},
        timings=timings,
        warnings=[*([ASSUMED] if assumed else []), *history_warnings(history)],
        assumed_current=assumed,
    )
    if as_json:
        click.echo((directory / "run.json").read_text(encoding="utf-8"), nl=False)
        return
    report_history(history, found.base, derived=assumed)
    click.echo(f"{ASSUMED}\n" if assumed else "")
    print_backtest(found)
    table = next(name for name in run.files if name in {"backtest.csv", "comparison.csv"})
    click.echo(f"\nWritten to {directory}: report.html, {table}, figures/, run.json")


def paths(history: Sequence[Path], config_path: Path | None) -> list[Path]:
    """List what a run reads, and so may not overwrite."""
    return [*history, *([] if config_path is None else [config_path])]
