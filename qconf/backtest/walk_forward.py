"""Walk-forward: train every strategy on one period and evaluate it on the next, for all periods of a history.

No job of a test period reaches the training. A proposal depends only on the jobs of the training period, on the periods
before it, and on the base configuration.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from parsim.metrics import Summary
from qconf.backtest.results import FIXED, REFERENCES, Backtest, Fold, FoldResult, averages, notes
from qconf.config import SiteConfig
from qconf.errors import InputError
from qconf.evaluation.feasibility import fixed_violations
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import NotApplicableError, Period, TrainingSet, UnroutableError
from qconf.history import History
from qconf.history.history import DAY, FEWEST, Window
from qconf.parallel import Shared, parallel_map
from qconf.prediction.runtimes import with_estimates
from qconf.recommend.checkpoint import Checkpoint, Failure
from qconf.strategies import Proposal, check, grouped_by_package, names, propose, registry
from qconf.strategies import settings as all_settings
from qconf.strategies.ahead import Computed, compute_ahead, learn
from qconf.strategies.plain import undistinguished

WARMUP_DAYS = 3
Progress = Callable[[str, float], None]  #: called with the name of the finished call and the finished fraction


class Options(TypedDict, total=False):
    """Options that `backtest` and `compare` share."""

    strategies: Sequence[str] | None  #: None: all; `REFERENCES` are always added
    settings: Mapping[str, Any] | None  #: options of the strategies by name
    warmup_days: int  #: days before a test period whose jobs fill the machine and are not counted
    from_log: bool  #: whether a test period starts with the jobs running in the log, if the log has starts
    chain: bool  #: whether a strategy starts from its result for the period before, as in the paper
    checkpoint: Checkpoint | None  #: finished proposals of an interrupted run


def backtest(history: History, base: SiteConfig, *, progress: Progress | None = None, **options: Any) -> Backtest:  # noqa: ANN401
    """Train on each period of a history and evaluate on the next; see `prepare_periods`."""
    return _alone(prepare_periods(history, base, **options), progress)


def compare(
    history: History, later: History, base: SiteConfig, *, progress: Progress | None = None, **options: Unpack[Options]
) -> Backtest:
    """Train on one history and evaluate on another; see `prepare_two`."""
    return _alone(prepare_two(history, later, base, **options), progress)


def _alone(prepared: Prepared, progress: Progress | None) -> Backtest:
    return evaluate_all([prepared], prepared.settings["workers"], progress or (lambda *_: None))[0]


def prepare_periods(
    history: History, base: SiteConfig, *, period: str = "month", fewest: int = FEWEST, **options: Unpack[Options]
) -> Prepared:
    """Prepare to train on each period of a history and to evaluate on the next.

    The history is cleaned with `base`, whose limits count as fixed in a period that they keep jobs out of. A `period`
    is ``month``, or days such as ``30d`` from the first submit on. Periods with fewer than `fewest` jobs are skipped:
    the next test period has the last one before them for training. Only `auto` uses earlier periods too; ``static`` is
    trained once, on the first. Raises `InputError` if a strategy or the objective is unknown, or fewer than two periods
    have enough jobs.
    """
    return _prepared(history, base, history.periods(period), fewest, {"period": period}, **options)


def prepare_two(history: History, later: History, base: SiteConfig, **options: Unpack[Options]) -> Prepared:
    """Prepare to train on one history and to evaluate on a later one; both are cleaned with `base`.

    Raises `InputError` if the second history does not begin after the first ends, or either has too few jobs.
    """
    both = with_estimates(history.joined(later), base)
    boundary = later.span[0] + later.epoch - history.epoch
    periods = [Window("history", history.span[0], boundary), Window("next", boundary, both.span[1] + 1)]
    few = min(len(history), len(later))
    if few < 2:
        raise InputError("too few jobs to train or to evaluate on", value=few, fix="give longer logs")
    return _prepared(both, base, periods, 2, {}, **options)


def _prepared(
    history: History,
    base: SiteConfig,
    periods: Sequence[Window],
    fewest: int,
    recorded: dict[str, Any],
    *,
    strategies: Sequence[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    warmup_days: int = WARMUP_DAYS,
    from_log: bool = True,
    chain: bool = False,
    checkpoint: Checkpoint | None = None,
) -> Prepared:
    """Cut a history into folds, and check the strategies and their settings."""
    chosen = all_settings(settings)
    wanted = tuple(dict.fromkeys((*REFERENCES, *(names(default=True) if strategies is None else strategies))))
    check(wanted, chosen, base)
    if chain and chosen["split_on"] == "runtime":
        message = "no period can begin from queues that are told apart by actual run times"
        raise InputError(message, field="chain", fix="leave it out, or split on walltime")
    compared = tuple(name for name in names() if name in wanted)
    folds, skipped = plan_folds(history, periods, fewest, warmup_days)
    about = {"warmup_days": warmup_days, "from_log": from_log, "chain": chain, "fewest_jobs": fewest}
    about |= recorded | {"strategies": list(compared)}
    bounds = {label: (start, end) for label, start, end in periods}
    training = _training_sets(history, base, [bounds[fold.training] for fold in folds], chosen["epoch_days"])
    test = _test_periods(history, base, folds, warmup_days * DAY, from_log=from_log)
    counts = [len(each) - int(each.counted(fold.start).sum()) for fold, each in zip(folds, test, strict=True)]
    folds = [replace(fold, warmup_jobs=count) for fold, count in zip(folds, counts, strict=True)]
    every = _Folds(tuple(folds), tuple(training), tuple(test), chosen, checkpoint)
    return Prepared(base, every, compared, chain, skipped, chosen | about)


def _training_sets(
    history: History, base: SiteConfig, spans: Sequence[tuple[int, int]], epoch_days: int | None
) -> list[TrainingSet]:
    """Cut these spans out of a history, each with the spans before it as earlier periods."""
    found: list[TrainingSet] = []
    for start, end in spans:
        earlier = (*found[-1].earlier, found[-1].period) if found else ()
        known = None if epoch_days is None else Period.of(history.between(None, end), base)
        found.append(TrainingSet(Period.of(history.between(start, end), base), earlier, known=known))
    return found


def _test_periods(
    history: History, base: SiteConfig, folds: Sequence[Fold], warmup: int, *, from_log: bool
) -> list[Period]:
    """Cut the test periods out, each with the jobs running in the log at its begin, or else its warm-up."""
    whole, found = Period.of(history, base), []
    for fold in folds:
        warm = Period.of(history.between(fold.start - warmup, fold.end), base)
        begun = whole.beginning(fold.start, fold.end, warmup) if from_log else warm
        found.append(warm if begun.state is None else replace(begun, binding=warm.binding))
    return found


@dataclass(frozen=True, eq=False)
class _Folds:
    """The training sets and test periods of all folds, the settings and the checkpoint."""

    folds: tuple[Fold, ...]
    training: tuple[TrainingSet, ...]
    test: tuple[Period, ...]  #: test periods, with their warm-up
    settings: Mapping[str, Any]
    checkpoint: Checkpoint | None = None

    def kept(self, i: int, name: str) -> Proposed | None:
        """Return an interrupted run's proposal of a strategy for fold `i`, or its failure; None if not kept."""
        found = None if self.checkpoint is None else self.checkpoint.get(self._key(i, name))
        return _one(found) if isinstance(found, Mapping | Failure) else None

    def keep(self, i: int, name: str, proposal: Proposed) -> None:
        """Store a worker's proposal, unless the worker stored it."""
        if self.checkpoint is not None:
            self.checkpoint.put(self._key(i, name), {"": proposal} if isinstance(proposal, Proposal) else proposal)

    def proposed(self, i: int, name: str, base: SiteConfig | None = None) -> Proposed:
        """Train a strategy on a fold, from `base` if given, and store its proposal or failure."""
        training = self.training[i]
        if base is not None:
            training = replace(training.under(base), site=training.base)

        def work() -> Mapping[str, Proposal] | Failure:
            try:
                return {"": propose(name, training, self.settings)}
            except (NotApplicableError, UnroutableError) as error:
                return error

        return _one(work() if self.checkpoint is None else self.checkpoint.kept(self._key(i, name), work))

    def _key(self, i: int, name: str) -> str:
        return f"{name}-{self.folds[i].training}"


Proposed = Proposal | Failure  #: a proposal, or the reason why there is none
Found = list[list[tuple[Proposed, FoldResult]]]  #: results of a call, by fold, then strategy


def _one(kept: Mapping[str, Proposal] | Failure) -> Proposed:
    return kept if isinstance(kept, Failure) else kept[""]


class _Call(NamedTuple):
    """A unit of work for one worker: train strategies for these folds, and evaluate them."""

    folds: tuple[int, ...]
    names: tuple[str, ...]  #: strategies of one family, which share cached results
    how: str = "each"  #: trained for ``each`` fold, ``once`` for the first, or as a ``chain``


@dataclass(frozen=True, eq=False)
class Prepared:
    """A prepared walk-forward: all strategies on all folds."""

    base: SiteConfig
    every: _Folds
    names: tuple[str, ...]
    chain: bool  #: whether strategies other than the references start from their result of the fold before
    skipped: list[tuple[str, str]]
    settings: dict[str, Any]

    def calls(self, workers: int) -> list[_Call]:
        """Return the units of work; several workers get whole families, whose strategies share results."""
        folds = range(len(self.every.folds))
        moving = [name for name in self.names if self.chain and name not in REFERENCES]
        single = [name for name in self.names if name not in ("static", *moving)]
        # A single worker gets the smallest units, so that an interrupted run loses least.
        groups = grouped_by_package(single) if workers > 1 else [(name,) for name in single]
        each = [_Call((i,), own) for i in folds for own in groups]
        chains = [_Call(tuple(folds), (name,), "chain") for name in moving]
        return [_Call(tuple(folds), ("static",), "once"), *each, *chains]

    def cost(self, call: _Call) -> float:
        """Return the expected duration of a call relative to others: training jobs times the strategies' costs."""
        trained = call.folds[:1] if call.how == "once" else call.folds
        jobs = [len(each) + sum(map(len, each.earlier)) for each in (self.every.training[i] for i in trained)]
        return sum(jobs) * sum(registry()[name].cost for name in call.names)

    def known(self, call: _Call) -> dict[tuple[int, str], Proposed]:
        """Return the proposals and failures of an interrupted run, by fold and strategy."""
        found = {place: self.every.kept(*place) for place in product(call.folds, call.names)}
        return {place: each for place, each in found.items() if each is not None}

    def keep(self, call: _Call, known: Mapping[tuple[int, str], Proposed], found: Found) -> None:
        """Store the proposals that workers could not store, so that an interrupted run can resume."""
        for i, results in zip(call.folds, found, strict=True):
            for name, (proposal, _) in zip(call.names, results, strict=True):
                if (i, name) not in known:
                    self.every.keep(i, name, proposal)

    def result(self, found: Sequence[tuple[_Call, Found]]) -> Backtest:
        """Assemble the `Backtest` from the results of all calls."""
        by_place = {
            (i, name): result
            for call, each in found
            for i, results in zip(call.folds, each, strict=True)
            for name, (_, result) in zip(call.names, results, strict=True)
        }
        results = [by_place[i, name] for i in range(len(self.every.folds)) for name in self.names]
        objective, tails = self.settings["objective"], self.settings["tails"]
        return Backtest(
            folds=list(self.every.folds),
            skipped=self.skipped,
            results=results,
            averages=averages(results, objective, fixed_orders(self.every.folds, self.every.test), tails),
            base=self.base,
            objective=objective,
            notes=notes(results),
            settings=self.settings,
        )


def evaluate_all(several: Sequence[Prepared], workers: int, progress: Progress = lambda *_: None) -> list[Backtest]:
    """Run all calls of several walk-forwards in one pool of workers; `progress` is called after each."""
    calls = [(one, call) for one in several for call in one.calls(workers)]
    if workers > 1:  # else in the order of the folds
        calls.sort(key=lambda each: each[0].cost(each[1]), reverse=True)
    shared, ahead = {}, {}
    for one in several:
        every = one.every if workers <= 1 else replace(one.every, settings={**one.every.settings, "workers": 1})
        own = [name for name in one.names if not one.chain or name in REFERENCES]
        shared[one] = Shared(every)
        ahead[one] = compute_ahead(every.training, own, every.settings, workers)
    known = [one.known(call) for one, call in calls]
    total, done = sum(one.cost(call) for one, call in calls) or 1.0, [0.0]

    def keep(k: int, found: Found) -> None:
        one, call = calls[k]
        one.keep(call, known[k], found)
        done[0] += one.cost(call)
        what = one.every.folds[call.folds[0]].label if call.how == "each" else call.how
        progress(f"{what} {', '.join(call.names)}", done[0] / total)

    tasks = [(shared[one], ahead[one], call, own) for (one, call), own in zip(calls, known, strict=True)]
    found = parallel_map(workers, _made, tasks, processes=True, done=keep)
    return [
        one.result([(call, each) for (of, call), each in zip(calls, found, strict=True) if of is one])
        for one in several
    ]


def _made(
    shared: Shared[_Folds], ahead: Shared[list[Computed]], call: _Call, known: Mapping[tuple[int, str], Proposed]
) -> Found:
    """Train the strategies of a call and evaluate them on its folds; one worker's task."""
    every = shared.value
    learn(ahead, every.training)
    found: Found = []
    for i in call.folds:
        results = []
        for place, name in enumerate(call.names):
            began, before = time.perf_counter(), found[-1][place][0] if found else None
            if (i, name) in known:
                proposal = known[i, name]
            elif before is not None and call.how == "once":
                proposal = before
            else:
                proposals = (results[place][0] for results in reversed(found))
                last = next((each.config for each in proposals if isinstance(each, Proposal)), None)
                proposal = every.proposed(i, name, last)
            result = evaluate(every.folds[i], name, every.test[i], proposal)
            results.append((proposal, replace(result, seconds=time.perf_counter() - began)))
        found.append(results)
    return found


def plan_folds(
    history: History, periods: Sequence[Window], fewest: int, warmup_days: int
) -> tuple[list[Fold], list[tuple[str, str]]]:
    """Pair each period with the last one before it that has enough jobs; list the others with the reason.

    Raises `InputError` if fewer than two periods have enough jobs.
    """
    counted = [(window, history.count(window.start, window.end)) for window in periods]
    skipped = [(each.label, f"{jobs} jobs, at least {fewest} are needed") for each, jobs in counted if jobs < fewest]
    enough = [(window, jobs) for window, jobs in counted if jobs >= fewest]
    if len(enough) < 2:
        raise InputError(
            f"{len(enough)} of {len(periods)} periods have at least {fewest} jobs, two are needed",
            file=history.first_file,
            fix="give a longer history, or shorter periods such as --period 7d",
        )
    folds = [
        Fold(*test, jobs, history.count(test.start - warmup_days * DAY, test.start), training.label, training_jobs)
        for (training, training_jobs), (test, jobs) in pairwise(enough)
    ]
    return folds, skipped


def fixed_orders(folds: Sequence[Fold], periods: Sequence[Period]) -> dict[str, list[Summary]]:
    """Simulate each order of `FIXED` on all test periods, with one list of jobs and equal priorities."""

    def summary(order: str, fold: Fold, each: Period) -> Summary:
        return evaluate(fold, order, each, Proposal(undistinguished(each.base, order))).summary

    return {order: [summary(order, *each) for each in zip(folds, periods, strict=True)] for order in FIXED}


def evaluate(fold: Fold, name: str, period: Period, proposed: Proposed) -> FoldResult:
    """Simulate a proposal on a test period with its warm-up; if there is none or it fails, the current one."""
    base = period.base
    fallback, proposal = ("", proposed) if isinstance(proposed, Proposal) else (str(proposed), Proposal(base))
    try:
        schedule = proposal.simulate(period)
    except UnroutableError as error:
        fallback, proposal = str(error), Proposal(base)
        schedule = proposal.simulate(period)
    counted = period.counted(fold.start)
    outcome, log = Outcome(period, schedule, counted), [*proposal.decisions, *proposal.refused(period, counted)]
    return FoldResult(
        period=fold.label,
        strategy=name,
        summary=outcome.summary,
        config=proposal.config,
        fallback=fallback,
        not_exportable=proposal.not_exportable,
        decisions=log,
        fixed=tuple(fixed_violations(base, proposal.config, period.binding)),
        daily=_daily(outcome, fold),
    )


def _daily(outcome: Outcome, fold: Fold) -> NDArray[np.float64]:
    """Sum weights, waits and slowdowns of the jobs of each day of a fold, shape (days, 3)."""
    day = (outcome.jobs.submit - fold.start) // DAY
    weight = np.ones(day.size) if outcome.period.weight is None else outcome.period.weight[outcome.rows]
    sums = (weight, weight * outcome.wait, weight * outcome.slowdown)
    return np.column_stack([np.bincount(day, each) for each in sums])
