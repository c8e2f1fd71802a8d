"""Walk-forward: every strategy is trained on one period and evaluated on the next, for all periods of a history.

Nothing of a test period reaches the training. A proposal depends on the jobs of the training period, on those of the
periods before it and on the base configuration, and on nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypedDict, Unpack

from qconf.backtest.results import REFERENCES, Backtest, Fold, FoldResult, averages, notes
from qconf.config import SiteConfig
from qconf.errors import InputError
from qconf.evaluation.feasibility import fixed_violations
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import NotApplicableError, Period, TrainingSet, UnroutableError
from qconf.history import History
from qconf.history.periods import DAY, FEWEST, Window
from qconf.recommend.checkpoint import Checkpoint, cached_proposal
from qconf.strategies import Proposal, check, names
from qconf.strategies import settings as all_settings

WARMUP_DAYS = 3
Progress = Callable[[str, float], None]  #: called with what is being done and which share of all is done


class Options(TypedDict, total=False):
    """What `backtest` and `compare` have in common."""

    strategies: Sequence[str] | None  #: the `REFERENCES` are always among them; unless given, all
    settings: Mapping[str, Any] | None  #: options of the strategies by name
    warmup_days: int  #: days before a test period whose jobs fill the machine and are not counted
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
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> Backtest:
    """Evaluate every strategy on each of the periods after the first; see `backtest`."""
    chosen = all_settings(settings)
    wanted = tuple(dict.fromkeys((*REFERENCES, *(names(default=True) if strategies is None else strategies))))
    check(wanted, chosen, base)
    compared = tuple(name for name in names() if name in wanted)
    folds, skipped = plan_folds(history, periods, fewest, warmup_days)
    bounds = {label: (start, end) for label, start, end in periods}
    results: list[FoldResult] = []
    kept: dict[str, Proposal | str] = {}
    earlier: tuple[Period, ...] = ()
    whole = Period.of(history, base)
    for i, fold in enumerate(folds):
        training = TrainingSet(Period.of(history.between(*bounds[fold.training]), base), earlier)
        earlier = (*earlier, training.period)
        binding = Period.of(history.between(fold.start - warmup_days * DAY, fold.end), base).binding
        around = replace(whole.beginning(fold.start, fold.end, warmup_days * DAY), binding=binding)
        for j, name in enumerate(compared):
            if progress is not None:
                progress(f"{fold.label} {name}", (i + j / len(compared)) / len(folds))
            began = time.perf_counter()
            if not i or name != "static":
                try:
                    kept[name] = cached_proposal(checkpoint, f"{name}-{fold.training}", name, training, chosen)
                except (NotApplicableError, UnroutableError) as error:
                    kept[name] = str(error)
            result = evaluate(fold, name, around, kept[name])
            results.append(replace(result, seconds=time.perf_counter() - began))
    used = chosen | recorded | {"warmup_days": warmup_days, "fewest_jobs": fewest, "strategies": list(compared)}
    return Backtest(
        folds=folds,
        skipped=skipped,
        results=results,
        averages=averages(results, chosen["objective"]),
        base=base,
        objective=chosen["objective"],
        notes=notes(results),
        settings=used,
    )


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


def evaluate(fold: Fold, name: str, around: Period, proposed: Proposal | str) -> FoldResult:
    """Simulate a proposal on a test period with its warm-up; the current configuration if there is none or it fails."""
    base = around.base
    fallback, proposal = (proposed, Proposal(base)) if isinstance(proposed, str) else ("", proposed)
    try:
        schedule = proposal.simulate(around)
    except UnroutableError as error:
        fallback, proposal = str(error), Proposal(base)
        schedule = proposal.simulate(around)
    summary = Outcome(around, schedule, around.workload.submit >= fold.start).summary
    fixed = tuple(fixed_violations(base, proposal.config, around.binding))
    return FoldResult(
        fold.label, name, summary, proposal.config, fallback, proposal.not_exportable, proposal.decisions, fixed=fixed
    )
