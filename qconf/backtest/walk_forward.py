"""Walk-forward: every strategy is trained on one period and evaluated on the next, for all periods of a history.

Nothing of a test period reaches the training. A proposal depends on the jobs of the training period, on those of the
periods before it and on the base configuration, and on nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise
from typing import Any, TypedDict, Unpack

from qconf.backtest.results import REFERENCES, Backtest, Fold, FoldResult, averages, notes
from qconf.config import SiteConfig
from qconf.errors import InputError
from qconf.evaluation.feasibility import fixed_violations
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import NotApplicableError, Period, TrainingSet, UnroutableError
from qconf.history import History
from qconf.history.periods import DAY, FEWEST, Window
from qconf.parallel import Shared, parallel_map
from qconf.recommend.checkpoint import Checkpoint, Failure
from qconf.strategies import Proposal, check, gathered, names, propose
from qconf.strategies import settings as all_settings
from qconf.strategies.ahead import Computed, compute_ahead, learn

WARMUP_DAYS = 3
Progress = Callable[[str, float], None]  #: called with what is being done and which share of all is done


class Options(TypedDict, total=False):
    """What `backtest` and `compare` have in common."""

    strategies: Sequence[str] | None  #: the `REFERENCES` are always among them; unless given, all
    settings: Mapping[str, Any] | None  #: options of the strategies by name
    warmup_days: int  #: days before a test period whose jobs fill the machine and are not counted
    from_log: bool  #: whether test periods begin with the jobs that ran by the log, where it tells starts
    chain: bool  #: whether a strategy starts from its result of the period before, as the paper reconfigures
    checkpoint: Checkpoint | None  #: finished proposals of an interrupted run
    progress: Progress | None


def backtest(
    history: History, base: SiteConfig, *, period: str = "month", fewest: int = FEWEST, **options: Unpack[Options]
) -> Backtest:
    """Train on each period of a history and evaluate on the next.

    Only `auto` uses the periods before the training period; ``static`` is trained on the first period alone. The
    history is cleaned with `base`, whose limits count as fixed in a period out of which they keep jobs. A `period` is
    ``month``, or days such as ``30d`` from the first submit on. Periods with less than `fewest` jobs are left out; the
    next test period has the one before them for training. Raises `InputError` where a strategy or the objective is
    unknown, or fewer than two periods have enough jobs.
    """
    return walk_forward(history, base, history.periods(period), fewest, {"period": period}, **options)


def compare(history: History, later: History, base: SiteConfig, **options: Unpack[Options]) -> Backtest:
    """Train on one history and evaluate on another that begins after it; both are cleaned with `base`.

    Raises `InputError` where the second does not begin after the first ends, or either has too few jobs.
    """
    both = history.joined(later)
    boundary = later.span[0] + later.epoch - history.epoch
    periods = [Window("history", history.span[0], boundary), Window("next", boundary, both.span[1] + 1)]
    few = min(len(history), len(later))
    if few < 2:
        raise InputError("too few jobs to train or to evaluate on", value=few, fix="give longer logs")
    return walk_forward(both, base, periods, 2, {}, **options)


def walk_forward(
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
    progress: Progress | None = None,
) -> Backtest:
    """Evaluate every strategy on each of the periods after the first; see `backtest`."""
    chosen = all_settings(settings)
    wanted = tuple(dict.fromkeys((*REFERENCES, *(names(default=True) if strategies is None else strategies))))
    check(wanted, chosen, base)
    if chain and chosen["split_on"] == "runtime":
        message = "no period can begin from queues that are told apart by actual run times"
        raise InputError(message, field="chain", fix="leave it out, or split on walltime")
    compared = tuple(name for name in names() if name in wanted)
    folds, skipped = plan_folds(history, periods, fewest, warmup_days)
    bounds = {label: (start, end) for label, start, end in periods}
    every = _Folds.of(history, base, folds, bounds, chosen, warmup_days=warmup_days, from_log=from_log)
    evaluated = _chained if chain else _evaluated
    results = evaluated(every, compared, chosen["workers"], checkpoint, progress or (lambda *_: None))
    about = {
        "warmup_days": warmup_days,
        "from_log": from_log,
        "chain": chain,
        "fewest_jobs": fewest,
        "strategies": list(compared),
    }
    used = chosen | recorded | about
    return Backtest(
        folds=list(every.folds),
        skipped=skipped,
        results=results,
        averages=averages(results, chosen["objective"]),
        base=base,
        objective=chosen["objective"],
        notes=notes(results),
        settings=used,
    )


@dataclass(frozen=True, eq=False)
class _Folds:
    """What strategies are trained and evaluated on, fold by fold."""

    folds: tuple[Fold, ...]
    training: tuple[TrainingSet, ...]
    around: tuple[Period, ...]  #: test periods, with their warm-up
    settings: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        history: History,
        base: SiteConfig,
        folds: Sequence[Fold],
        bounds: Mapping[str, tuple[int, int]],
        settings: Mapping[str, Any],
        *,
        warmup_days: int,
        from_log: bool,
    ) -> _Folds:
        """Cut a history; `bounds` are those of the periods by label."""
        training: list[TrainingSet] = []
        for fold in folds:
            earlier = (*training[-1].earlier, training[-1].period) if training else ()
            training.append(TrainingSet(Period.of(history.between(*bounds[fold.training]), base), earlier))
        whole, around = Period.of(history, base), []
        for fold in folds:
            warm = Period.of(history.between(fold.start - warmup_days * DAY, fold.end), base)
            begun = whole.beginning(fold.start, fold.end, warmup_days * DAY) if from_log else warm
            around.append(warm if begun.state is None else replace(begun, binding=warm.binding))
        folds = [
            replace(fold, warmup_jobs=len(each) - int(each.counted(fold.start).sum()))
            for fold, each in zip(folds, around, strict=True)
        ]
        return cls(tuple(folds), tuple(training), tuple(around), settings)


Proposed = Proposal | Failure  #: or why there is none


def _evaluated(
    every: _Folds, names: Sequence[str], workers: int, checkpoint: Checkpoint | None, progress: Progress
) -> list[FoldResult]:
    """Evaluate strategies on every fold: those of a family on one fold are a call."""
    if workers > 1:
        every = replace(every, settings={**every.settings, "workers": 1})
    ahead = compute_ahead(every.training, names, every.settings, workers)
    shared = Shared(every)
    known = [_kept(checkpoint, names, fold) for fold in every.folds]
    if "static" in names:  # trained once
        static = known[0].get("static")
        if static is None:
            static = _proposed("static", every.training[0], every.settings)
            _keep(checkpoint, "static", every.folds[0], static)
        known = [each | {"static": static} for each in known]
    # What strategies of a family share needs no other process; where there is but one, the finest steps are resumed.
    groups = gathered(names) if workers > 1 else [(name,) for name in names]
    calls = [(i, own) for i in range(len(every.folds)) for own in groups]
    if workers > 1:
        calls.reverse()  # what knows more periods takes longer
    finished = count(1)

    def keep(k: int, found: list[tuple[Proposed, FoldResult]]) -> None:
        i, own = calls[k]
        fold = every.folds[i]
        for name, (proposal, _) in zip(own, found, strict=True):
            if name not in known[i]:
                _keep(checkpoint, name, fold, proposal)
        progress(f"{fold.label} {', '.join(own)}", next(finished) / len(calls))

    tasks = [(shared, ahead, i, own, {n: known[i][n] for n in own if n in known[i]}) for i, own in calls]
    found = parallel_map(workers, _fold, tasks, processes=True, done=keep)
    by_place = {
        (i, name): result
        for (i, own), each in zip(calls, found, strict=True)
        for name, (_, result) in zip(own, each, strict=True)
    }
    return [by_place[i, name] for i in range(len(every.folds)) for name in names]


def _fold(
    shared: Shared[_Folds], ahead: Shared[list[Computed]], i: int, names: Sequence[str], known: Mapping[str, Proposed]
) -> list[tuple[Proposed, FoldResult]]:
    """Train these strategies for a fold, and evaluate them on it."""
    every = shared.value
    learn(ahead, every.training)
    found = []
    for name in names:
        began = time.perf_counter()
        proposal = known[name] if name in known else _proposed(name, every.training[i], every.settings)
        result = evaluate(every.folds[i], name, every.around[i], proposal)
        found.append((proposal, replace(result, seconds=time.perf_counter() - began)))
    return found


def _chained(
    every: _Folds, names: Sequence[str], workers: int, checkpoint: Checkpoint | None, progress: Progress
) -> list[FoldResult]:
    """Evaluate strategies on every fold, each from its result of the fold before; references stay as they are."""
    fixed = [name for name in names if name in REFERENCES]
    moving = [name for name in names if name not in REFERENCES]
    part = len(fixed) / len(names)
    results = _evaluated(every, fixed, workers, checkpoint, lambda what, share: progress(what, part * share))
    if workers > 1:
        every = replace(every, settings={**every.settings, "workers": 1})
    finished = count(1)

    def keep(k: int, found: list[tuple[Proposed, FoldResult]]) -> None:
        for fold, (proposal, _) in zip(every.folds, found, strict=True):
            _keep(checkpoint, moving[k], fold, proposal)
        progress(f"chain {moving[k]}", part + (1 - part) * next(finished) / len(moving))

    shared = Shared(every)
    known = [_kept(checkpoint, moving, fold) for fold in every.folds]
    tasks = [(shared, name, [each.get(name) for each in known]) for name in moving]
    found = parallel_map(workers, _links, tasks, processes=True, done=keep)
    by_place = {(each.period, each.strategy): each for each in results}
    by_place |= {(each.period, each.strategy): each for links in found for _, each in links}
    return [by_place[fold.label, name] for fold in every.folds for name in names]


def _links(shared: Shared[_Folds], name: str, known: Sequence[Proposed | None]) -> list[tuple[Proposed, FoldResult]]:
    """Train a strategy on one fold after the other, and evaluate it on each."""
    every, base, found = shared.value, None, []
    for fold, training, around, before in zip(every.folds, every.training, every.around, known, strict=True):
        began = time.perf_counter()
        proposal = before or _proposed(name, training, every.settings, base)
        base = proposal.config if isinstance(proposal, Proposal) else base
        result = evaluate(fold, name, around, proposal)
        found.append((proposal, replace(result, seconds=time.perf_counter() - began)))
    return found


def _kept(checkpoint: Checkpoint | None, names: Sequence[str], fold: Fold) -> dict[str, Proposed]:
    """Return the proposals that an interrupted run kept, and why there are none."""
    found: dict[str, Proposed] = {}
    for name in names if checkpoint is not None else ():
        kept = None if checkpoint is None else checkpoint.get(f"{name}-{fold.training}")
        if isinstance(kept, Failure):
            found[name] = kept
        elif isinstance(kept, Mapping):
            found[name] = kept[""]
    return found


def _keep(checkpoint: Checkpoint | None, name: str, fold: Fold, proposal: Proposed) -> None:
    if checkpoint is not None:
        checkpoint.put(f"{name}-{fold.training}", {"": proposal} if isinstance(proposal, Proposal) else proposal)


def _proposed(
    name: str, training: TrainingSet, settings: Mapping[str, Any], base: SiteConfig | None = None
) -> Proposed:
    try:
        return propose(name, training if base is None else training.under(base), settings)
    except (NotApplicableError, UnroutableError) as error:
        return error


def plan_folds(
    history: History, periods: Sequence[Window], fewest: int, warmup_days: int
) -> tuple[list[Fold], list[tuple[str, str]]]:
    """Pair each period with the one before it that has enough jobs; list those left out and why.

    Raises `InputError` where fewer than two periods have enough jobs.
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


def evaluate(fold: Fold, name: str, around: Period, proposed: Proposed) -> FoldResult:
    """Simulate a proposal on a test period with its warm-up; the current configuration if there is none or it fails."""
    base = around.base
    fallback, proposal = ("", proposed) if isinstance(proposed, Proposal) else (str(proposed), Proposal(base))
    try:
        schedule = proposal.simulate(around)
    except UnroutableError as error:
        fallback, proposal = str(error), Proposal(base)
        schedule = proposal.simulate(around)
    summary = Outcome(around, schedule, around.counted(fold.start)).summary
    fixed = tuple(fixed_violations(base, proposal.config, around.binding))
    return FoldResult(
        fold.label, name, summary, proposal.config, fallback, proposal.not_exportable, proposal.decisions, fixed=fixed
    )
