"""``qconf tune``: last month's jobs in, the best queue configuration for them out, or "keep what you have"."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from qconf.cli.export import chosen, files_of, target_options
from qconf.cli.options import (
    PATH,
    Number,
    Source,
    StrategyCommand,
    history_options,
    history_warnings,
    parts_of_policy,
    report_history,
    retired_option,
    stem,
    strategy_names,
)
from qconf.cli.progress import not_resumable, progress, resumable
from qconf.errors import InputError

ASSUMED = (
    "No configuration was given: current is assumed to be fcfs-easy, one machine and one list in the order of "
    "submission. Every gain is against that."
)


@click.command("tune", cls=StrategyCommand)
@history_options
@click.option(
    "--strategies",
    metavar="A,B,...",
    help="Which to compare; current and the baselines always are.  [default: all that apply to one period]",
)
@click.option(
    "--may-change",
    metavar="A,B,...",
    callback=parts_of_policy,
    help="Parts of the site's policy that may be changed without need: limits, user-limits, starvation, priorities, "
    "or all.  [default: those of the configuration's policy]",
)
@click.option(
    "--guard",
    default=1.5,
    show_default=True,
    type=Number(1.0),
    metavar="FACTOR",
    help="Most by which a queue's 95 % wait, and the longest wait, may grow.",
)
@click.option(
    "--least-gain",
    default=2.0,
    show_default=True,
    type=Number(0.0, 100.0),
    metavar="PERCENT",
    help="Gain below which a change is not worth what it costs: loading it drains the machine.",
)
@target_options("current", "nodes")
@click.option("-o", "--out", type=PATH, help="Run directory.  [default: reports/<history>]")
@click.option("--resume", is_flag=True, help="Go on from what an interrupted run had finished.")
@click.option("--json", "as_json", is_flag=True, help="Print run.json on stdout instead of tables.")
@retired_option("--order", use="dqr's order of visits is --visit-order")
@retired_option("--strategy", use="name one or several by --strategies")
def command(
    source: Source,
    strategies: str | None,
    may_change: tuple[str, ...],
    guard: float,
    least_gain: float,
    target: str,
    out: Path | None,
    settings: dict[str, Any],
    resume: bool,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - of the exporters
) -> None:
    """Simulate a month of jobs under many queue configurations and write the best one for the batch system.

    Every strategy is trained on the first two thirds of the history and evaluated on the last third. What gains
    there must do so beyond chance: the test days are resampled and simulated again. Less than nine days are too
    few. Of a longer log, --month YYYY-MM takes the month that is tuned on; auto also looks at what the months
    before it have in common. Without --history the sample that ships with the project is used. Without --config,
    the queues found in the history are taken as one machine under EASY backfilling.
    """
    from time import perf_counter

    from qconf.evaluation.guard_rails import GuardRails
    from qconf.history.sample import SAMPLE, SAMPLE_CONFIG
    from qconf.recommend import default_strategies, recommend
    from qconf.recommend.checkpoint import Checkpoint, fingerprint
    from qconf.recommend.fidelity import fidelity
    from qconf.report.exported import Exported
    from qconf.report.run_directory import check_target, names_of, write_run
    from qconf.report.terminal import filled, print_recommendation
    from qconf.report.wording import fidelity_text
    from qconf.strategies import check

    named = strategy_names(strategies)
    if given["current"] is not None and source.config_path is None and source.history:
        raise InputError(
            "what the server holds now is given, but not the configuration that it stands for",
            field="--current",
            value=given["current"],
            fix=f"make one with qconf init --from-{target}, look it over, and give it with --config",
        )
    exporter = chosen(target, given)
    began = perf_counter()
    assumed = source.config_path is None and bool(source.history)
    if not source.history:
        source = replace(source, history=(SAMPLE,), config_path=source.config_path or SAMPLE_CONFIG)
    directory = resumable(out or Path("reports", "-".join(filter(None, (stem(source.history[0]), source.month)))))
    log, base = source.whole()
    jobs = source.cut(log)
    loaded = perf_counter()
    inputs = ({} if source.config_path is None else {"configuration": source.config_path}) | files_of(target, given)
    check_target(directory, [*source.history, *inputs.values()], names_of("tune", exporter))
    wanted = default_strategies() if named is None else named
    check(wanted, settings, base)
    earlier = [] if source.month is None else log.months_before(jobs.span[0])
    spans = [each.span for each in (*earlier, jobs)]
    checkpoint = Checkpoint(
        directory, fingerprint(jobs.sources, base, settings, spans=spans, may_change=may_change), resume=resume
    )
    with progress("tuning") as step:
        recommendation = recommend(
            jobs,
            base,
            earlier=earlier,
            strategies=wanted,
            settings=settings,
            guards=GuardRails(factor=guard),
            least_gain=least_gain / 100,
            check=exporter.check,
            needs=exporter.needs,
            may_change=may_change,
            checkpoint=checkpoint,
            progress=step,
        )
    near = fidelity(log, base, jobs.span)
    timings = {"read": loaded - began, "tune": perf_counter() - loaded}
    exported = Exported.of(recommendation, exporter)
    run = write_run(
        directory,
        recommendation,
        jobs,
        inputs=inputs,
        timings=timings,
        warnings=[*([ASSUMED] if assumed else []), *history_warnings(base, jobs, *earlier)],
        fidelity=near,
        assumed_current=assumed,
        exported=exported,
    )
    checkpoint.clear()
    not_resumable()
    if as_json:
        click.echo((directory / "run.json").read_text(encoding="utf-8"), nl=False)
        return
    report_history(jobs, base, derived=assumed, earlier=earlier)
    if earlier:
        since = earlier[0].date(earlier[0].span[0])[:7]
        click.echo(f"{sum(map(len, earlier))} jobs of the months before, from {since} on, are there for auto")
    if near is not None:
        click.echo(filled(fidelity_text(near)))
    click.echo(f"{ASSUMED}\n" if assumed else "")
    print_recommendation(recommendation)
    if run.backups:
        click.echo(f"\nEdited since the last run, backups: {', '.join(run.backups)}")
    if exported.not_exportable:
        click.echo(f"\nNot exportable to {exporter.name}: {exported.not_exportable}")
    written = f"report.html, config.yaml, comparison.csv, {target}/ (see {target}/PLAN.md)"
    click.echo(f"\nWritten to {directory}: {written}")
