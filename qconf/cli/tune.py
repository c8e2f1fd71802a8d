"""``qconf tune``: recommends a configuration for last month's jobs, or says to keep the current one."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from qconf.cli.export import chosen, files_of, target_options
from qconf.cli.messages import say, warn
from qconf.cli.options import PATH, Number, Terse, retired_option, stem
from qconf.cli.progress import progress
from qconf.cli.run_command import RunCommand, run_options
from qconf.cli.settings import StrategyCommand, parts_of
from qconf.cli.source import Source, history_options
from qconf.cli.workers import ADDRESS, working
from qconf.errors import InputError

if TYPE_CHECKING:
    from qconf.config import SiteConfig
    from qconf.export import Exporter
    from qconf.history import History
    from qconf.recommend import Recommendation
    from qconf.recommend.fidelity import Fidelity
    from qconf.recommend.last import Realised
    from qconf.report.exported import Exported

EXITS = {"CHANGE": 10, "CHECK": 11, "KEEP": 0}  #: exit codes with ``--exit-code``

OF_TARGET = ("current", "scheduler", "nodes", "qos", "shares")  #: options of the exporter

EXAMPLES = """\b
Examples:
  qconf tune month.csv --config site.yaml              # the sample without both
  qconf tune year.swf.gz --config site.yaml --month 2026-10 -q --exit-code
"""


EXIT_CODE = click.option("--exit-code", is_flag=True, help="Exit with 10: CHANGE, 11: CHECK, 0: KEEP, 1: errors.")


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
@target_options(*OF_TARGET)
@run_options("reports/<history>", "Print all tables of the report too.", EXIT_CODE)
@retired_option("--strategy", use="name one or several by --strategies")
def command(*, source: Source, target: str, exit_code: bool, **given: Any) -> None:  # noqa: ANN401 - of `Tune`
    """Simulate a month of jobs under many configurations, and write the best one."""
    about = {name: given.pop(name) for name in OF_TARGET}
    # ``--scheduler`` is a batch system's file, or the address of a Dask cluster.
    cluster = about.pop("scheduler") if ADDRESS.match(about["scheduler"] or "") else None
    _check_current(source, target, about["current"])
    exporter = chosen(target, about)
    warn(filter(None, [exporter.missing]))
    if source.history:
        called = "-".join(filter(None, (stem(source.history[0]), source.month)))
    else:
        source = _sample(source)
        called = stem(source.history[-1])
    files = files_of(target, about)
    run = Tune(name="tune", called=called, source=source, scheduler=cluster, exporter=exporter, files=files, **given)
    run.read()
    verdict = run.tune()
    if exit_code:
        click.get_current_context().exit(EXITS[verdict])


def _check_current(source: Source, target: str, current: str | None) -> None:
    """Raise InputError if what the server holds now cannot be compared, or not written."""
    if current is None:
        return
    if source.config_path is None and source.history:
        raise InputError(
            "what the server holds now is given, but not the configuration that it stands for",
            field="--current",
            value=current,
            fix=f"make one with qconf init --from-{target}, look it over, and give it with --config",
        )
    if source.anonymous is not None:
        raise InputError(
            "what the server holds now may name users and groups, and a rollback has to name them again",
            field="--current",
            value=current,
            fix="leave it out, or --anonymous",
        )


def _sample(source: Source) -> Source:
    """Return the sample's log, and its configuration unless another is given."""
    from qconf.history.sample import MONTH, SAMPLE_CONFIG, known

    month = source.month or (MONTH if source.start is source.end is None else None)
    return replace(source, history=known(month), month=month, config_path=source.config_path or SAMPLE_CONFIG)


@dataclass(kw_only=True)
class Tune(RunCommand):
    """One run of the command; fields not set by `read` are its options."""

    ASSUMED = (
        "No configuration was given: current is assumed to be fcfs-easy, one machine and one list in the order of "
        "submission. Every gain is against that."
    )

    exporter: Exporter
    files: dict[str, Path]  #: that the exporter reads
    may_change: tuple[str, ...]
    guard: float
    least_gain: float
    scope: str
    last: Path | None
    base: SiteConfig = field(init=False)
    whole: History = field(init=False)  #: the jobs of all months
    earlier: list[History] = field(init=False)  #: of the months before the one that is tuned
    before: Realised | None = field(init=False)  #: what became of the last run's recommendation

    def read(self) -> None:
        """Read the jobs of the month and of the months before, print what was read, and check the run."""
        from qconf.export.precision import met
        from qconf.history import clean
        from qconf.history.deriving import check_size
        from qconf.prediction.runtimes import with_estimates

        records = self.source.records()
        self.base = base = self.source.config(records)
        check_size(records, base)
        self.whole = with_estimates(clean(records, base), base)
        jobs = self.source.cut(self.whole)
        self.exporter = self.exporter.meeting(met(jobs), self.whole if self.source.anonymous is None else None)
        self.earlier = [] if self.source.month is None else self.whole.months_before(jobs.span[0])
        self.report(base, jobs, *self.earlier, brief=not self.verbose)
        if self.earlier and self.verbose and not self.quiet:
            first, count = self.earlier[0], sum(map(len, self.earlier))
            since = first.date(first.span[0])[:7]
            say(f"{count} jobs of the months before, from {since} on, are there for auto", err=self.as_json)
            sys.stdout.flush()
        self.warnings = [*filter(None, [self.exporter.missing]), *self.warnings]

        # Imported only now, since it takes long: what was read is printed first.
        from qconf.recommend import default_strategies
        from qconf.recommend.last import realised
        from qconf.report.recorded import promised
        from qconf.report.run_directory import RECORD

        files, self.before = self.files, None
        if self.last is not None:
            files |= {"last run": self.last / RECORD}
            self.before = realised(promised(self.last), records, jobs.span, None if self.assumed else base)
        self.named = default_strategies() if self.named is None else self.named
        spans = [each.span for each in (*self.earlier, jobs)]
        self.check(base, self.named, files, spans=spans, may_change=self.may_change)

    def tune(self) -> str:
        """Find the recommendation, write the run directory, and print what was found; return the verdict."""
        from qconf.evaluation.guard_rails import GuardRails
        from qconf.recommend import recommend
        from qconf.report.exported import Exported

        here = working(self.settings, self.backend, self.scheduler)
        with progress("tuning", quiet=self.quiet) as step, here as settings:
            self.wait()
            recommendation = recommend(
                self.log,
                self.base,
                earlier=self.earlier,
                strategies=self.named,
                settings=settings,
                guards=GuardRails(factor=self.guard),
                scope=self.scope,
                least_gain=self.least_gain / 100,
                check=self.exporter.check,
                needs=self.exporter.needs,
                may_change=self.may_change,
                checkpoint=self.checkpoint,
                progress=step,
                nearness=self._fidelity,
            )
            recommendation = replace(recommendation, last=self.before)
            seconds = perf_counter() - self.loaded
            exported = Exported.of(recommendation, self.exporter)
            run = self.write(recommendation, seconds, exported)
        self._print(recommendation, exported)
        if run.backups:
            say(f"Edited since the last run, backups: {', '.join(run.backups)}", err=self.as_json)
        self.checkpoint.clear()
        return recommendation.verdict

    def _fidelity(self) -> Fidelity | None:
        from parsim.compiling import load, needed
        from qconf.recommend.fidelity import fidelity
        from qconf.report.html import load_templates

        # Loaded before workers fork, so they have it: kernels, imports, templates.
        load(needed(self.base.system()))
        load_templates("tune")
        return fidelity(self.whole, self.base, self.log.span)

    def _print(self, recommendation: Recommendation, exported: Exported) -> None:
        from qconf.inert import inert
        from qconf.report.exported import QUEUES
        from qconf.report.terminal import print_advice, print_recommendation, print_verdict
        from qconf.report.verdict import advise

        if self.as_json:
            self.print_json()
        elif self.quiet:
            print_verdict(advised := advise(recommendation, exported))
            for text in advised.queues:
                say(text)
        else:
            click.echo("")
            print_advice(recommendation, exported, inert(str(self.directory)))
            if self.verbose:
                click.echo("")
                print_recommendation(recommendation, exported)
        if not self.as_json and (self.verbose or self.quiet):
            target = self.exporter.target
            others = "" if exported.queues is None else f", {QUEUES}/"
            written = f"report.html, config.yaml, comparison.csv, {target}/ (see {target}/PLAN.md){others}"
            say(f"Written to {self.directory}: {written}")
