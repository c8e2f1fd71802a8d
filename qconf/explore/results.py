"""What jobs would have waited: values first, then intervals; why one job waited; a tune from a state; an export.

It uses the functions of ``qconf simulate``, ``tune`` and ``export``, in copies of the server's process, and yields
messages for the page.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from parsim import metrics
from parsim.compiling import load, needed
from parsim.metrics.bottleneck import by_run
from qconf.config import SiteConfig, dump
from qconf.errors import InputError, QconfError
from qconf.evaluation.bootstrap import Failed, NoDaysError
from qconf.evaluation.feasibility import never_start
from qconf.evaluation.guard_rails import GuardRails, GuardValues
from qconf.evaluation.holdout import WARMUP, Holdout, Split, splits_of
from qconf.evaluation.impact import GROWTH, impact, metrics_of
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import Period, TrainingSet
from qconf.evaluation.robustness import denser
from qconf.evaluation.timeline import timeline
from qconf.explore.site import Site
from qconf.explore.states import ALL, TEST
from qconf.export.directory import write_export
from qconf.history import History, binding_limits
from qconf.history.times import instant, zone
from qconf.recommend import recommend
from qconf.recommend.checkpoint import Checkpoint
from qconf.recommend.evaluator import Evaluator
from qconf.report.charts import clock
from qconf.report.exported import Exported
from qconf.report.run_directory import write_run
from qconf.report.wording import reasons_in_words
from qconf.strategies import Proposal

Message = dict[str, Any]
FIRST = 20  #: resamples after which intervals are first shown
KEPT, STRETCHES = 8, 3  #: results of copies (schedules and others), and evaluators, that are kept between changes
MOVED = 5  #: jobs named with the most increased waits, and with the most reduced waits
#: The metrics whose intervals are computed first.
MEASURED = ("mean_wait", "mean_bounded_slowdown", "max_wait", "utilization_window")


class Wanted(NamedTuple):
    """Two configurations to simulate on a stretch of the history, at `load` per cent of its load."""

    after: SiteConfig
    before: SiteConfig
    stretch: str = ALL
    load: int = 100


class Memory(dict[str, Any]):
    """A `Store` for chunks of resamples that lasts as long as this process."""

    put = dict.__setitem__

    def kept(self, key: str, work: Callable[[], Any]) -> Any:  # noqa: ANN401 - as `Store`
        """Do the work; the caller stores the result."""
        del key
        return work()


class Results:
    """Computes the results that the page shows for one site."""

    def __init__(self, site: Site) -> None:
        self.site = site
        base = site.base.replace(fidelity=None)
        binding = tuple(dict.fromkeys(path for each in (site.history, *site.earlier) for path in binding_limits(each)))
        period, *earlier = (Period.of(each, base, binding) for each in (site.history, *site.earlier))
        self.period, self.earlier = period, tuple(earlier)
        self.ids: list[str] = site.history.jobs["job_id"].tolist()
        self.evaluators: OrderedDict[tuple[str, int], Evaluator] = OrderedDict()
        self.known: OrderedDict[object, Any] = OrderedDict()

    def keep(self, key: object, value: object) -> None:
        """Store a result of a copy of this process, for the next copy."""
        _put(self.known, key, value, KEPT)

    def prepare(self, wanted: Wanted) -> None:
        """Compute, once, what all copies of this process need. Raises InputError if there is nothing to simulate."""
        load(needed(wanted.after.system()))
        evaluator = self.evaluator(wanted.stretch, wanted.load)
        for name in ("use", "weight", "core_seconds", *(["node_type"] if self.site.base.nodes else [])):
            getattr(evaluator.test.period, name)
        _ = evaluator.test.counted

    def evaluator(self, stretch: str, percent: int) -> Evaluator:
        """Return the evaluator of a stretch of the history; for the test period, that of ``qconf tune``."""
        key = stretch, percent
        if key not in self.evaluators:
            _put(self.evaluators, key, self._evaluator(stretch, percent), STRETCHES)
        return self.evaluators[key]

    def _evaluator(self, stretch: str, percent: int) -> Evaluator:
        period, (first, last) = self.period, self.site.history.span
        if percent != 100:
            period = replace(period, workload=denser(period.workload, percent - 100))
            last = int(period.workload.submit[-1])
        training = TrainingSet(period, self.earlier)
        if stretch == TEST:
            splits = {name: split for name, split in splits_of(training, first, last).items() if split.enough}
            if "last" not in splits:
                raise InputError("the history is too short to have a test period", field="stretch", value=stretch)
        else:
            start, end, warmup = first, last + 1, 0
            if stretch != ALL:
                start, end = (first + (each - first) * 100 // percent for each in self._days(stretch))
                warmup = WARMUP
            test = Holdout.of(period, start, end, warmup)
            if not test.counted.any():
                raise InputError("no job was submitted then", field="stretch", value=stretch)
            splits = {"last": Split(training, test)}
        store = cast("Checkpoint", Memory())  # resampling needs only the methods of `Store`
        return Evaluator(training, splits, {**self.site.settings}, GuardRails(), None, None, store)

    def check(self, stretch: str) -> None:
        """Raise InputError unless this is a stretch of the history."""
        if stretch not in (ALL, TEST):
            self._days(stretch)

    def _days(self, stretch: str) -> tuple[int, int]:
        history = self.site.history
        try:
            start, end = (instant(day, zone(history.timezone)) - history.epoch for day in stretch.split("/"))
        except ValueError as error:
            fix = "give two days like 2026-03-01/2026-03-08"
            raise InputError("is no stretch of time", field="stretch", value=stretch, fix=fix) from error
        if end <= start:
            raise InputError("ends before it begins", field="stretch", value=stretch)
        return start, end

    def outcome(self, config: SiteConfig, stretch: str, percent: int) -> Outcome:
        """Return the outcome of a configuration, simulated unless it is known."""
        test, key = self.evaluator(stretch, percent).test, (config, stretch, percent)
        if key not in self.known:
            try:
                self.keep(key, Proposal(config).simulate(test.period))
            except ValueError as error:
                raise QconfError(f"the configuration cannot run these jobs: {error}") from error
        return Outcome(test.period, self.known[key], test.counted)

    def stream(self, wanted: Wanted) -> Iterator[Message]:
        """Yield the values, then the intervals after some resamples and after all.

        The caller has to `keep` messages of kind ``known``.
        """
        began, there = time.perf_counter(), {*self.known}
        before, after = (self.outcome(each, *wanted[2:]) for each in (wanted.before, wanted.after))
        yield self._numbers(wanted, before, after) | {"seconds": time.perf_counter() - began}
        for key in self.known.keys() - there:
            yield {"kind": "known", "key": key, "value": self.known[key]}
        if wanted.after != wanted.before:
            yield from self._ranges(wanted, before, after)

    def _numbers(self, wanted: Wanted, before: Outcome, after: Outcome) -> Message:
        found, evaluator, best = impact(before, after), self.evaluator(*wanted[2:]), self.site.recommended
        overall = {"before": _overall(before, wanted.before), "after": _overall(after, wanted.after)}
        groups = found.record()
        if best is not None:
            recommended = self.outcome(best, *wanted[2:])
            overall["recommended"] = _overall(recommended, best)
            for group, other in zip(groups, impact(before, recommended).groups, strict=True):
                group["recommended"] = dict(other.after)
        period = self.period
        return {
            "kind": "numbers",
            "jobs": len(after.jobs),
            "objective": evaluator.options.objective,
            "overall": overall,
            "groups": groups,
            "losers": [
                {"name": f"{'queue ' * (group.kind == 'queue')}{group.name}", "worst": group.worst}
                for group in found.losers
            ],
            "resource": found.resource,
            "never": never_start(period.base, wanted.after, period.workload),
            "time": _over_time(before, after, wanted, self.site.history),
            "map": _map(before, wanted.before, wanted.after),
            "moved": self._moved(before, after, self._ids(evaluator)),
        }

    @staticmethod
    def _moved(before: Outcome, after: Outcome, ids: Sequence[str]) -> list[dict[str, Any]]:
        """Return the jobs whose waits grow and shrink most."""
        change = after.wait - before.wait
        order = np.argsort(change, kind="stable")
        chosen = [*order[::-1][:MOVED].tolist(), *order[:MOVED].tolist()]
        rows = np.arange(len(before.period))[before.rows]
        return [
            {
                "job": ids[rows[i]],
                "queue": before.period.base.names[int(before.jobs.queue[i])],
                "cores": int(before.jobs.cores[i]),
                "before": int(before.wait[i]),
                "after": int(after.wait[i]),
            }
            for i in dict.fromkeys(chosen)
            if change[i]
        ]

    def _ids(self, evaluator: Evaluator) -> list[str]:
        """Return the identifiers of the jobs of a test period, warm-up included."""
        test, submit = evaluator.test, evaluator.training.workload.submit
        first = int(np.searchsorted(submit, test.start - test.warmup))
        return self.ids[first : first + len(test.period)]

    def _ranges(self, wanted: Wanted, before: Outcome, after: Outcome) -> Iterator[Message]:
        evaluator, seen = self.evaluator(*wanted[2:]), ("seen", *wanted[2:])
        if seen in self.known:
            vars(evaluator)["seen"] = self.known[seen]
        else:
            yield {"kind": "known", "key": seen, "value": evaluator.seen}
        bootstrap = evaluator.bootstrap
        if isinstance(bootstrap, NoDaysError):
            yield {"kind": "ranges", "failed": f"whether that is chance is unknown: {bootstrap}"}
            return
        bootstrap.more = _by_queue
        bootstrap.base, wholly = Proposal(wanted.before), bootstrap.resamples
        key = (wanted.before, wanted.stretch, wanted.load, "resamples")
        chunk: NDArray[np.float64] = self.known.get(key, np.empty((0, 0)))
        for count in (min(FIRST, wholly), wholly):
            bootstrap.resamples, bootstrap.before = count, chunk[:count] if len(chunk) >= count else np.empty((0, 0))
            (result,) = bootstrap.compare_all({"proposal": [Proposal(wanted.after)] * len(bootstrap.tests)})
            if isinstance(result, Failed):
                yield {"kind": "ranges", "failed": f"it cannot be simulated on other days: {result}"}
                return
            if len(chunk) < count == wholly:
                yield {"kind": "known", "key": key, "value": bootstrap.before}
            then, now = (GuardValues.of(each.summary) for each in (before, after))
            rails = evaluator.guards.broken(then, now, evaluator.test.days, evaluator.seen)
            yield {
                "kind": "ranges",
                "resamples": count,
                "of": wholly,
                "gain": {name: getattr(result, name) for name in ("expected", "low", "high", "sure", "certain")},
                "changes": _changes(bootstrap.before, result.numbers, [*bootstrap.names]),
                "rails": [*rails.values()],
            }

    def explain(self, wanted: Wanted, job_id: str) -> Iterator[Message]:
        """Explain why a job started when it did, before and after. Raises InputError if there is no such job."""
        evaluator = self.evaluator(*wanted[2:])
        period, names = evaluator.test.period, self._ids(evaluator)
        if job_id not in names:
            raise InputError("no simulated job has this name", field="job", value=job_id)
        row, found = names.index(job_id), []
        for config in (wanted.before, wanted.after):
            proposal, schedule = Proposal(config), self.outcome(config, *wanted[2:]).schedule
            reasons = proposal.explain(period, schedule, row, names)
            said = [*reasons_in_words(reasons, self.site.history.date)]
            found.append({"wait": int(schedule.wait[row]), "reasons": said})
        yield {"kind": "explained", "job": job_id, "before": found[0], "after": found[1]}

    def export(self, config: SiteConfig, directory: Path) -> Message:
        """Write the files of ``qconf export`` for a configuration. Raises ExportError if it is not exportable."""
        found = self.site.exporter.export(config)
        files = {"config.yaml": dump(config)} | found.files
        write_export(directory, files)
        return {
            "directory": str(directory),
            "files": sorted(files),
            "notes": [*found.notes],
            "plan": found.files.get("PLAN.md", ""),
        }


def tuned(site: Site, config: SiteConfig, directory: Path, report: Callable[[Message], None]) -> Message:
    """Read the log again, tune from a configuration, and write the run; `report` gets progress messages."""
    history, earlier = site.read(config)
    found = recommend(
        history,
        config,
        earlier=earlier,
        settings=site.settings,
        guards=GuardRails(),
        check=site.exporter.check,
        needs=site.exporter.needs,
        progress=lambda what, share: report({"kind": "tuning", "what": what, "share": share}),
    )
    write_run(directory, found, history, exported=Exported.of(found, site.exporter))
    return {
        "kind": "tuned",
        "verdict": found.verdict,
        "lead": found.lead,
        "title": found.row.title or found.winner,
        "text": dump(found.config) if found.proposes else "",
        "directory": str(directory),
    }


def _put(known: OrderedDict[Any, Any], key: object, value: object, most: int) -> None:
    """Insert a value, and remove the oldest ones beyond `most`."""
    known[key] = value
    while len(known) > most:
        known.popitem(last=False)


def _overall(outcome: Outcome, config: SiteConfig) -> dict[str, float]:
    """Return the metrics of all jobs as in a summary; utilization is of the configuration's own machine."""
    mean, slowdown = outcome.means().tolist()
    counted = np.ones(len(outcome.schedule), dtype=np.bool_) if outcome.counted is None else outcome.counted
    taken, there = by_run(outcome.schedule, config.system(), outcome.period.resource)
    return {
        "mean_wait": mean,
        "median_wait": float(np.median(outcome.wait)),
        "p95_wait": metrics.p95(outcome.wait),
        "max_wait": float(outcome.wait.max()),
        "mean_bounded_slowdown": slowdown,
        "utilization_window": metrics.utilization_window(outcome.schedule, there, counted, taken=taken),
    }


def _by_queue(outcome: Outcome) -> list[float]:
    """Return the metrics of all jobs, then of each queue."""
    queue = outcome.jobs.queue
    of = [queue >= 0, *(queue == i for i in range(len(outcome.period.base.queues)))]
    return [value for rows in of for value in metrics_of(outcome, rows).values()]


def _changes(before: NDArray[np.float64], after: NDArray[np.float64], queues: Sequence[str]) -> dict[str, Any]:
    """Return the change of each metric at 5, 50 and 95 % of the resamples, and whether it is beyond chance."""
    names = [*GROWTH, *(f"{key} of {name}" for name in queues for key in GROWTH)]
    columns = {name: before.shape[1] - len(names) + i for i, name in enumerate(names)}
    columns |= {name: i for i, name in enumerate(MEASURED)}
    found = {}
    for name, i in columns.items():
        change = after[:, i] - before[:, i]
        if np.isfinite(change).any():
            low, middle, high = np.nanpercentile(change, [5.0, 50.0, 95.0]).tolist()
            found[name] = {"low": low, "middle": middle, "high": high, "beyond": low > 0 or high < 0}
    return found


def _over_time(before: Outcome, after: Outcome, wanted: Wanted, history: History) -> dict[str, Any]:
    """Return use and waiting over time, before and after; use is of each configuration's own machine."""
    lines, shares = [], []
    for outcome, config in ((before, wanted.before), (after, wanted.after)):
        found, resource = timeline(outcome), outcome.period.resource
        there = [by_run(outcome.schedule, each.system(), resource)[1] for each in (outcome.period.base, config)]
        lines.append(found)
        shares.append(found.used * there[0] / there[1])
    return {
        "edges": [clock(edge, history.timezone) for edge in (lines[0].edges + history.epoch).tolist()],
        "used": [np.round(each, 4).tolist() for each in shares],
        "queued": [np.round(each.queued / 3600, 1).tolist() for each in lines],
        "waiting": [np.round(each.waiting, 2).tolist() for each in lines],
        "nodes": {
            f"{resource} of nodes {name}": [np.round(each.by_type[name, resource], 4).tolist() for each in lines]
            for name, resource in lines[0].by_type
        },
    }


def _map(outcome: Outcome, *configs: SiteConfig) -> dict[str, Any]:
    """Return the number of jobs in each cell of walltime and cores, and the ranges of queues."""
    jobs = outcome.jobs
    edges = [
        np.geomspace(max(1, int(values.min())), max(int(values.max()), int(values.min()) + 1) * 1.02, cells + 1)
        for values, cells in ((jobs.walltime, 36), (jobs.cores, 24))
    ]
    counts = np.histogram2d(jobs.walltime, jobs.cores, edges)[0]
    cells = [
        [float(edges[0][i]), float(edges[0][i + 1]), float(edges[1][k]), float(edges[1][k + 1]), int(counts[i, k])]
        for i, k in zip(*np.nonzero(counts), strict=True)
    ]
    ranges = [
        [{"name": queue.name, "walltime": queue.walltime, "cores": queue.cores} for queue in config.queues]
        for config in configs
    ]
    return {"cells": cells, "before": ranges[0], "after": ranges[1]}
