"""``qconf tune``: recommends a configuration for last month's jobs, or says to keep the current one."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import click

from qconf.cli.export import chosen, files_of, target_options
from qconf.cli.messages import history_warnings, report_history, say, warn, warn_changed
from qconf.cli.options import PATH, Number, Terse, retired_option, stem
from qconf.cli.progress import progress, resumable
from qconf.cli.settings import StrategyCommand, parts_of, strategy_names, strategy_settings
from qconf.cli.source import Source, history_options
from qconf.cli.workers import ADDRESS, backend_option, working
from qconf.errors import InputError

ASSUMED = (
    "No configuration was given: current is assumed to be fcfs-easy, one machine and one list in the order of "
    "submission. Every gain is against that."
)


EXITS = {"CHANGE": 10, "CHECK": 11, "KEEP": 0}  #: exit codes with ``--exit-code``

EXAMPLES = """\b
Examples:
  qconf tune month.csv --config site.yaml              # the sample without both
  qconf tune year.swf.gz --config site.yaml --month 2026-10 -q --exit-code
"""


def _may_change(_context: click.Context, _option: click.Parameter, text: str | None) -> tuple[str, ...]:
    from qconf.config import POLICY

    if parts_of(text or "") == ("all",):
        return tuple(POLICY)
    return parts_of(text or "", POLICY, "is no part of a policy", field="--may-change", more=", all")


@click.command("tune", cls=StrategyCommand, epilog=EXAMPLES)
@history_options
@click.option(
    "--strategies",
    metavar="A,B,...",
    help="Which, beside the baselines.  [default: all]",
)
@click.option(
    "--may-change",
    metavar="A,B,...",
    callback=_may_change,
    help="Parts of the policy, or all, that may change.",
)
@click.option(
    "--guard",
    default=1.5,
    show_default=True,
    cls=Terse,
    type=Number(1.0),
    metavar="FACTOR",
    help="Most by which long waits may grow.",
)
@click.option(
    "--least-gain",
    default=2.0,
    show_default=True,
    cls=Terse,
    type=Number(0.0, 100.0),
    metavar="PERCENT",
    help="Least gain that is worth a change.",
)
@click.option(
    "--answer",
    "scope",
    type=click.Choice(("any", "queues")),
    default="any",
    show_default=True,
    help="Recommend any change, or queues.",
)
@click.option(
    "--last",
    type=PATH,
    metavar="RUN",
    help="An earlier run: what became of its recommendation.",
)
@target_options("current", "scheduler", "nodes", "qos", "shares")
@click.option("-o", "--out", type=PATH, help="Run directory.  [default: reports/<history>]")
@backend_option
@click.option("--resume", is_flag=True, help="Go on from what an interrupted run had finished.")
@click.option("--json", "as_json", is_flag=True, help="Print run.json on stdout, all else on stderr.")
@click.option("-q", "--quiet", is_flag=True, help="Print the verdict and where it is written; warnings.")
@click.option("--exit-code", is_flag=True, help="Exit with 10: CHANGE, 11: CHECK, 0: KEEP, 1: errors.")
@click.option("-v", "--verbose", is_flag=True, help="Print all tables of the report too.")
@retired_option("--order", use="dqr's order of visits is --visit-order")
@retired_option("--strategy", use="name one or several by --strategies")
def command(
    source: Source,
    strategies: str | None,
    may_change: tuple[str, ...],
    guard: float,
    least_gain: float,
    scope: str,
    last: Path | None,
    target: str,
    out: Path | None,
    settings: dict[str, Any],
    resume: bool,
    as_json: bool,
    backend: str | None,
    quiet: bool,
    exit_code: bool,
    verbose: bool,
    **given: Any,  # noqa: ANN401 - of the exporters
) -> None:
    """Simulate a month of jobs under many configurations, and write the best one."""
    from time import perf_counter

    from qconf.export.precision import met
    from qconf.history import clean
    from qconf.history.deriving import check_size
    from qconf.history.sample import MONTH, SAMPLE_CONFIG, known
    from qconf.inert import inert
    from qconf.prediction.runtimes import with_estimates

    # ``--scheduler`` is a batch system's file, or the address of a Dask cluster.
    cluster = given.pop("scheduler") if ADDRESS.match(given["scheduler"] or "") else None

    if given["current"] is not None and source.config_path is None and source.history:
        raise InputError(
            "what the server holds now is given, but not the configuration that it stands for",
            field="--current",
            value=given["current"],
            fix=f"make one with qconf init --from-{target}, look it over, and give it with --config",
        )
    if given["current"] is not None and source.anonymous is not None:
        raise InputError(
            "what the server holds now may name users and groups, and a rollback has to name them again",
            field="--current",
            value=given["current"],
            fix="leave it out, or --anonymous",
        )
    exporter = chosen(target, given)
    warn(missing := [exporter.missing] if exporter.missing else [])
    began = perf_counter()
    assumed = source.config_path is None and bool(source.history)
    name = "" if not source.history else "-".join(filter(None, (stem(source.history[0]), source.month)))
    if not source.history:
        month = source.month or (MONTH if source.start is source.end is None else None)
        source = replace(source, history=known(month), month=month, config_path=source.config_path or SAMPLE_CONFIG)
        name = stem(source.history[-1])
    directory = out or Path("reports", name)
    wait = source.compile(quiet=quiet)
    named = strategy_names(strategies)
    records = source.records()
    base = source.config(records)
    check_size(records, base)
    log = with_estimates(clean(records, base), base)
    jobs = source.cut(log)
    exporter = exporter.meeting(met(jobs), log if source.anonymous is None else None)
    earlier = [] if source.month is None else log.months_before(jobs.span[0])
    loaded = perf_counter()
    warnings = [*source.preset_warnings(base), *history_warnings(base, jobs, *earlier)]
    report_history(jobs, base, warnings, derived=assumed, quiet=quiet, err=as_json, brief=not verbose)
    if earlier and verbose and not quiet:
        since, count = earlier[0].date(earlier[0].span[0])[:7], sum(map(len, earlier))
        say(f"{count} jobs of the months before, from {since} on, are there for auto", err=as_json)
    if assumed and not quiet:
        say(ASSUMED, err=as_json, indent="")
    sys.stdout.flush()

    # Imported only now, since it takes long: what was read is printed first.
    from parsim.compiling import load, needed
    from qconf.evaluation.guard_rails import GuardRails
    from qconf.evaluation.order import order_warnings
    from qconf.history.records import SourceInfo
    from qconf.parallel import working as in_calls
    from qconf.recommend import default_strategies, recommend
    from qconf.recommend.checkpoint import fingerprint
    from qconf.recommend.fidelity import Fidelity, fidelity
    from qconf.recommend.last import realised
    from qconf.report.exported import QUEUES, Exported
    from qconf.report.html import load_templates
    from qconf.report.recorded import promised
    from qconf.report.run_directory import RECORD, check_target, names_of, write_run
    from qconf.report.terminal import print_advice, print_recommendation, print_verdict
    from qconf.report.verdict import advise
    from qconf.strategies import check

    warn(found := order_warnings(base, jobs.workload(base)))
    warnings += found
    settings = strategy_settings(source.config_path, settings, preset=source.preset, orders=exporter.orders)
    before = None if last is None else realised(promised(last), records, jobs.span, None if assumed else base)
    files = ({} if source.config_path is None else {"configuration": source.config_path}) | files_of(target, given)
    files |= {} if last is None else {"last run": last / RECORD}
    inputs = {what: SourceInfo.of(path) for what, path in files.items()}
    check_target(directory, [*source.history, *files.values()], names_of("tune", exporter))
    wanted = default_strategies() if named is None else named
    check(wanted, settings, base)
    spans = [each.span for each in (*earlier, jobs)]
    key = fingerprint(jobs.sources, base, settings, spans=spans, may_change=may_change, **source.reading)
    exporter.check(base)  # raises before anything is written
    checkpoint = resumable(directory, key, resume=resume)

    @cache
    def grade() -> Fidelity | None:
        # Loaded before workers fork, so they have it: kernels, imports, templates.
        load(needed(base.system()))
        load_templates("tune")
        return fidelity(log, base, jobs.span)

    with progress("tuning", quiet=quiet) as step, working(settings, backend, cluster) as settings:
        wait()
        recommendation = recommend(
            jobs,
            base,
            earlier=earlier,
            strategies=wanted,
            settings=settings,
            guards=GuardRails(factor=guard),
            scope=scope,
            least_gain=least_gain / 100,
            check=exporter.check,
            needs=exporter.needs,
            may_change=may_change,
            checkpoint=checkpoint,
            progress=step,
            nearness=grade,
        )
        recommendation = replace(recommendation, last=before)
        seconds = perf_counter() - loaded
        timings = {"read": loaded - began, "tune": seconds, "one thread": seconds - in_calls.seconds}
        exported = Exported.of(recommendation, exporter)
        run = write_run(
            directory,
            recommendation,
            jobs,
            inputs=inputs,
            timings=timings,
            warnings=[*missing, *([ASSUMED] if assumed else []), *warnings],
            assumed_current=assumed,
            exported=exported,
        )
    warn_changed([*jobs.sources, *inputs.values()])
    others = "" if exported.queues is None else f", {QUEUES}/"
    written = f"report.html, config.yaml, comparison.csv, {target}/ (see {target}/PLAN.md){others}"
    place = inert(str(directory))
    if as_json:
        click.echo((directory / "run.json").read_text(encoding="utf-8"), nl=False)
    elif quiet:
        print_verdict(advised := advise(recommendation, exported))
        for text in advised.queues:
            say(text)
    else:
        click.echo("")
        print_advice(recommendation, exported, place)
        if verbose:
            click.echo("")
            print_recommendation(recommendation, exported)
    if not as_json and (verbose or quiet):
        say(f"Written to {directory}: {written}")
    if run.backups:
        say(f"Edited since the last run, backups: {', '.join(run.backups)}", err=as_json)
    checkpoint.clear()
    if exit_code:
        click.get_current_context().exit(EXITS[recommendation.verdict])
