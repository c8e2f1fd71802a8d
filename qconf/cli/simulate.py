"""``qconf simulate``: simulates a history once, and prints metrics or writes the schedule."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qconf.cli.messages import report_cleaning, say, warn
from qconf.cli.options import Number
from qconf.cli.settings import strategy_settings
from qconf.cli.source import FIELDS, Source, source_options
from qconf.cli.tables import DROPPED, check_table, write_table
from qconf.errors import InputError, QconfError

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from parsim import Reason, Schedule, Workload
    from parsim.metrics import Summary
    from parsim.metrics.usage import ShareUse
    from parsim.verify import Violation
    from qconf.config import SiteConfig
    from qconf.evaluation.period import Period
    from qconf.history import History
    from qconf.strategies import Proposal

SHOWN = 20  #: most violations that are printed
USERS = 10  #: most users in the table of shares, after all groups
#: The metrics that are printed.
METRICS = (
    *("jobs", "mean_wait", "median_wait", "p95_wait", "max_wait"),
    *("mean_bounded_slowdown", "bsld", "utilization_window", "loss_of_capacity"),
)


def _changes(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    for each in given:
        if "=" not in each:
            raise click.BadParameter(f"{each!r} is not like queues.small.max_run=60")
    return {path.strip(): value.strip() for path, _, value in (each.partition("=") for each in given)}


CHANGES = click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="PATH=VALUE",
    callback=_changes,
    help="Another value in the configuration, like queues.small.max_run=60 or machine.cores=40008; again for more.",
)


@click.command("simulate")
@source_options(*FIELDS, CHANGES)
@click.option(
    "--load",
    default=1.0,
    show_default=True,
    type=Number(0.1, 10),
    metavar="FACTOR",
    help="So many times the load: the times between submissions are divided by it.",
)
@click.option(
    "--strategy", default="current", show_default=True, help="Simulate what this strategy makes of the configuration."
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Of the strategy.  [default: as configured, else 0]")
@click.option("--workers", type=click.IntRange(1), default=2, show_default=True, help="Threads of the strategy.")
@click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="schedule.csv to write, or .csv.gz; dropped jobs go to dropped.csv beside it.",
)
@click.option(
    "--verify", is_flag=True, help="Check the schedule against the rules; exit 1 and write nothing if it breaks one."
)
@click.option("--explain", "job_id", metavar="JOB_ID", help="Print why this job started when it did.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
def command(
    *,
    source: Source,
    load: float,
    strategy: str,
    seed: int | None,
    workers: int,
    out: Path | None,
    verify: bool,
    job_id: str | None,
    as_json: bool,
) -> None:
    """Simulate the jobs of a history once, under a configuration, and print its metrics.

    With a strategy other than `current`, the configuration is first changed as the strategy proposes, trained on
    the same jobs: the result flatters it, use `qconf tune` to choose one.
    """
    from parsim import metrics
    from parsim.metrics.usage import share_uses
    from qconf.evaluation.order import order_warnings
    from qconf.evaluation.period import Period, TrainingSet
    from qconf.evaluation.robustness import denser
    from qconf.inert import csv_text
    from qconf.report.layout import console, print_table
    from qconf.report.nodes import printed, tables_of
    from qconf.strategies import propose
    from qconf.text import as_json as to_json

    if out is not None:
        check_table(out, source.inputs)
    past, base = source.load()
    jobs = Period.of(past, base, binding=())
    jobs = replace(jobs, workload=denser(jobs.workload, round(100 * load) - 100))
    settings = strategy_settings(source.config_path, {"workers": workers} | ({} if seed is None else {"seed": seed}))
    proposal = propose(strategy, TrainingSet(jobs), settings)
    config = proposal.config
    workload = proposal.routed(jobs)
    rows = [] if job_id is None else _rows(past, job_id)
    schedule = _simulate(jobs, proposal)
    broken = proposal.verify(jobs, schedule) if verify else []
    names = past.jobs["job_id"].tolist()
    explained = [] if broken else [proposal.explain(jobs, schedule, row, names) for row in rows]
    found = metrics.summary(workload, schedule, config.system(), resource=jobs.resource)
    shares = share_uses(workload, schedule, config.system()) if config.is_fair else []
    short = _of_shortpools(workload, schedule, config)
    warn(order_warnings(config, workload))
    if out is not None and not broken:
        table = schedule_table(past, workload, config, schedule)
        write_table(out, [csv_text(table)], past.dropped)
    if as_json:
        document = {
            "strategy": strategy,
            "jobs": len(past),
            "read": past.read,
            "outside_period": past.outside,
            "set": dict(source.changes or {}),
            "load": load,
            "dropped": dict(past.reasons),
            "changed": dict(past.changed),
            "config": config.model_dump(mode="json"),
            "overall": found.overall,
            "queues": found.queues,
            "nodes": {name: asdict(each) for name, each in found.nodes.items()} or None,
            "shares": [asdict(each) for each in shares] or None,
            "shortpools": short or None,
            "explained": [[asdict(reason) for reason in reasons] for reasons in explained] or None,
            "violations": [str(violation) for violation in broken] if verify else None,
        }
        click.echo(to_json(document), nl=False)
    elif not broken:
        for reasons in explained:
            _print_reasons(past, f"{job_id}", reasons)
        _print(strategy, past, config, load)
        report_cleaning(past, base, derived=source.config_path is None)
        click.echo("")
        print_table(console(), _metrics_table(found, short))
        for of_nodes in tables_of(found.nodes):
            click.echo("")
            print_table(console(), printed(of_nodes))
        if shares:
            click.echo("")
            print_table(console(), _shares_table(shares))
        if verify:
            click.echo("\nverified: the schedule breaks no rule")
        if out is not None:
            click.echo("")
            say(f"written: {out} and {out.parent / DROPPED}")
    if broken:
        _refuse(past, broken)


def _of_shortpools(workload: Workload, schedule: Schedule, config: SiteConfig) -> dict[str, dict[str, Any]]:
    """Return the metrics of jobs up to each shortpool's walltime, and of longer jobs, by names like "up to 1h"."""
    from parsim import metrics
    from qconf.config import format_duration

    found = {}
    for longest in sorted({each.walltime for each in config.shortpools}):
        is_short = workload.walltime <= longest
        for name, counted in (("up to", is_short), ("above", ~is_short)):
            if counted.any():
                of = metrics.summary(workload, schedule, config.system(), counted=counted)
                found[f"{name} {format_duration(longest)}"] = dict(of.overall)
    return found


def schedule_table(history: History, workload: Workload, config: SiteConfig, schedule: Schedule) -> pd.DataFrame:
    """Return the table of schedule.csv, in the row order and time scale of the input."""
    import numpy as np
    import pandas as pd

    from parsim.model.schedule import SPANNING

    names = np.asarray(schedule.partition_names, dtype=object)
    placement = names[schedule.partition] + ":" + schedule.cores.astype(str).astype(object)
    for job in np.flatnonzero(schedule.partition == SPANNING).tolist():
        placement[job] = ";".join(f"{name}:{cores}" for name, cores in schedule.placement(job).items())
    table = pd.DataFrame(
        {
            "job_id": history.jobs["job_id"].to_numpy(),
            "submit": schedule.submit,
            "start": schedule.start,
            "end": schedule.end,
            "wait": schedule.wait,
            "cores": schedule.cores,
            "queue": np.asarray(config.names, dtype=object)[workload.queue],
            "placement": placement,
        }
    )
    return table.iloc[np.argsort(history.jobs["row"].to_numpy(), kind="stable")]


def _simulate(jobs: Period, proposal: Proposal) -> Schedule:
    try:
        return proposal.simulate(jobs)
    except ValueError as error:
        raise QconfError(f"the configuration cannot run these jobs: {error}") from error


def _rows(history: History, job_id: str) -> list[int]:
    """Return the rows of the simulated jobs with this name; a log may have several."""
    rows = [row for row, name in enumerate(history.jobs["job_id"].tolist()) if name == job_id]
    if not rows:
        dropped = history.dropped[history.dropped["job_id"] == job_id]
        why = f"was dropped: {dropped['reason'].iloc[0]}" if len(dropped) else "no simulated job has this name"
        raise InputError(why, field="--explain", value=job_id, fix="choose a job_id of the log and the period")
    return rows


def _print_reasons(history: History, job_id: str, reasons: tuple[Reason, ...]) -> None:
    from qconf.config import format_duration
    from qconf.report.wording import reasons_in_words

    submit = reasons[0].begin
    say(f"job {job_id}, submitted {history.date(submit)}, waits {format_duration(reasons[-1].end - submit)}")
    for when, text in reasons_in_words(reasons, history.date):
        say(f"  {when}: {text}", indent="    ")
    click.echo("")


def _refuse(history: History, broken: list[Violation]) -> None:
    names = history.jobs["job_id"].tolist()
    for violation in broken[:SHOWN]:
        name = f" (job_id {names[violation.job]})" if violation.job >= 0 else ""
        click.echo(f"{violation}{name}", err=True)
    if len(broken) > SHOWN:
        click.echo(f"... and {len(broken) - SHOWN} more", err=True)
    raise QconfError(f"the schedule breaks its rules: {len(broken)} violations. Nothing was written.")


def _print(strategy: str, history: History, config: SiteConfig, load: float) -> None:
    from qconf.config import format_duration

    first, last = history.span
    denser = "" if load == 1 else f", at {load:g} times their load"
    say(f"{strategy}: {len(history)} jobs from {history.date(first)} to {history.date(last)}{denser}")
    say(
        f"{config.machine.name}, {config.machine.cores} cores, {config.mode}, order {config.order}"
        + (f", reservations after {format_duration(config.reservation_delay)}" if config.reservation_delay else "")
    )


def _metrics_table(found: Summary, short: dict[str, dict[str, Any]]) -> Table:
    from qconf.report.columns import PREEMPTION, columns
    from qconf.report.layout import new_table
    from qconf.report.wording import queue_label

    shown = columns(*METRICS, *PREEMPTION * (found["preempted"] > 0))
    table = new_table(("queue",), [column.heading for column in shown])
    rows = {"all": found.overall} | {queue_label(name): row for name, row in found.queues.items()}
    for name, row in (rows | {f"jobs {name}": row for name, row in short.items()}).items():
        cells = (column.write(row[column.key]) for column in shown)
        table.add_row(name, *cells, style="bold" if name == "all" else "")
    return table


def _shares_table(shares: list[ShareUse]) -> Table:
    """Return shares and use of all groups, and of the users farthest from their shares."""
    from qconf.report.layout import new_table

    users = sorted((each for each in shares if each.is_user), key=lambda each: -each.distance)
    table = new_table(("user or group",), ["share %", "use %", "apart %"])
    for each in [*(each for each in shares if not each.is_user), *users[:USERS]]:
        values = (f"{100 * value:.1f}" for value in (each.share, each.use, each.distance))
        table.add_row(each.name or "(none)", *values, style="" if each.is_user else "bold")
    if len(users) > USERS:
        table.add_row(f"{len(users) - USERS} more users", "", "", "")
    return table
