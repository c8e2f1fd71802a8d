"""Walk-forward: every strategy is trained on one period and evaluated on the next, for all periods of a history.

Nothing of a test period reaches the training. A proposal depends on the jobs of the training period, on those of the
periods before it and on the base configuration, and on nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from qconf.backtest.results import REFERENCES, Backtest, Fold, FoldResult, averages, notes
from qconf.config import SiteConfig
from qconf.errors import InputError
from qconf.evaluation.feasibility import fixed_violations
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import NotApplicableError, Period, TrainingSet, UnroutableError
from qconf.history import History
from qconf.history.periods import FEWEST, Window
from qconf.recommend.checkpoint import Checkpoint, cached_proposal
from qconf.strategies import Proposal, check, names
from qconf.strategies import settings as all_settings

DAY = 86400
WARMUP_DAYS = 3


Progress = Callable[[str, float], None]  #: called with what is being done and which share of all is done


def backtest(
    history: History,
    base: SiteConfig,
    *,
    period: str = "month",
    strategies: Sequence[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    warmup_days: int = WARMUP_DAYS,
    fewest: int = FEWEST,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> Backtest:
    """Train on each period of a history and evaluate on the next.

    Only `auto` uses the periods before the training period.

    Parameters
    ----------
    history : History
        Cleaned with `base`.
    base : SiteConfig
        The current configuration. A limit that keeps jobs out of a period counts as fixed in it.
    period : str
        ``month``, or days such as ``30d`` from the first submit on.
    strategies : sequence of str, optional
        The `REFERENCES` are always among them. ``static`` is trained on the first period alone.
    settings : dict, optional
        Options of the strategies by name.
    warmup_days : int
        Days before a test period whose jobs fill the machine and are not counted.
    fewest : int
        Periods with fewer jobs are left out; the next test period has the one before them for training.
    checkpoint : Checkpoint, optional
        Finished proposals of an interrupted run.
    progress : callable, optional

    Raises
    ------
    InputError
        An unknown strategy or objective, or fewer than two periods with enough jobs.
    """
    return walk_forward(
        history,
        base,
        history.periods(period),
        strategies=strategies,
        given=settings,
        warmup_days=warmup_days,
        fewest=fewest,
        checkpoint=checkpoint,
        progress=progress,
        recorded={"period": period},
    )


def compare(
    history: History,
    later: History,
    base: SiteConfig,
    *,
    strategies: Sequence[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    warmup_days: int = WARMUP_DAYS,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> Backtest:
    """Train on one history and evaluate on another that begins after it; both are cleaned with `base`.

    Raises
    ------
    InputError
        The second does not begin after the first ends, or either has too few jobs.
    """
    both = join(history, later)
    boundary = later.span[0] + later.epoch - history.epoch
    periods = [Window("history", history.span[0], boundary), Window("next", boundary, both.span[1] + 1)]
    few = min(len(history), len(later))
    if few < 2:
        raise InputError("too few jobs to train or to evaluate on", value=few, fix="give longer logs")
    return walk_forward(
        both,
        base,
        periods,
        strategies=strategies,
        given=settings,
        warmup_days=warmup_days,
        fewest=2,
        checkpoint=checkpoint,
        progress=progress,
        recorded={},
    )


def join(history: History, later: History) -> History:
    """Append a history that begins after the other ends; times count from the first one's epoch.

    Raises
    ------
    InputError
        They overlap: jobs that were trained on would be evaluated on.
    """
    shift = later.epoch - history.epoch
    if later.span[0] + shift <= history.span[1]:
        raise InputError(
            f"begins at {later.date(later.span[0])}, before the history ends at {history.date(history.span[1])}",
            file=later.sources[0].path if later.sources else None,
            fix="give a log that begins after the one that is trained on",
        )
    moved = later.jobs.copy()
    moved["submit"] += shift
    for name in ("start", "end"):
        moved[name] = moved[name].where(moved[name] < 0, moved[name] + shift)
    moved["row"] += history.read
    counts = {
        name: history.changed.get(name, 0) + later.changed.get(name, 0)
        for name in dict.fromkeys([*history.changed, *later.changed])
    }
    return replace(
        history,
        jobs=pd.concat([history.jobs, moved], ignore_index=True),
        dropped=pd.concat([history.dropped, later.dropped], ignore_index=True),
        changed=counts,
        read=history.read + later.read,
        sources=(*history.sources, *later.sources),
        outside=history.outside + later.outside,
        excluded={
            path: (*history.excluded.get(path, ()), *(submit + shift for submit in later.excluded.get(path, ())))
            for path in dict.fromkeys([*history.excluded, *later.excluded])
        },
    )


def walk_forward(
    history: History,
    base: SiteConfig,
    periods: Sequence[Window],
    *,
    strategies: Sequence[str] | None,
    given: Mapping[str, Any] | None,
    warmup_days: int,
    fewest: int,
    checkpoint: Checkpoint | None,
    progress: Progress | None,
    recorded: dict[str, Any],
) -> Backtest:
    """Evaluate every strategy on each of the periods (label, start, end) after the first; see `backtest`."""
    settings = all_settings(given)
    wanted = tuple(dict.fromkeys((*REFERENCES, *(names(default=True) if strategies is None else strategies))))
    check(wanted, settings, base)
    compared = tuple(name for name in names() if name in wanted)
    folds, skipped = plan_folds(history, periods, fewest, warmup_days)
    by_label = {label: (start, end) for label, start, end in periods}
    first = folds[0].training
    results: list[FoldResult] = []
    kept: dict[str, Proposal | str] = {}
    earlier: tuple[Period, ...] = ()
    for i, fold in enumerate(folds):
        training = TrainingSet(Period.of(history.between(*by_label[fold.training]), base), earlier)
        earlier = (*earlier, training.period)
        around = Period.of(history.between(fold.start - warmup_days * DAY, fold.end), base)
        for j, name in enumerate(compared):
            if progress is not None:
                progress(f"{fold.label} {name}", (i + j / len(compared)) / len(folds))
            began = time.perf_counter()
            if name == "static" and fold.training != first:
                proposal = kept[name]
            else:
                proposal = _propose(name, training, settings, checkpoint, f"{name}-{fold.training}")
            kept[name] = proposal
            result = evaluate(fold, name, around, proposal)
            results.append(replace(result, seconds=time.perf_counter() - began))
    used = settings | recorded | {"warmup_days": warmup_days, "fewest_jobs": fewest, "strategies": list(compared)}
    return Backtest(
        folds=folds,
        skipped=skipped,
        results=results,
        averages=averages(results, settings["objective"]),
        base=base,
        objective=settings["objective"],
        notes=notes(results),
        settings=used,
    )


def plan_folds(
    history: History, periods: Sequence[Window], fewest: int, warmup_days: int
) -> tuple[list[Fold], list[tuple[str, str]]]:
    """Pair each period with the one before it that has enough jobs; list those left out and why.

    Raises
    ------
    InputError
        Fewer than two periods have enough jobs.
    """
    submit = history.jobs["submit"].to_numpy()

    def count(start: int, end: int) -> int:
        return int(np.searchsorted(submit, end) - np.searchsorted(submit, start))

    skipped, enough = [], []
    for label, start, end in periods:
        jobs = count(start, end)
        if jobs < fewest:
            skipped.append((label, f"{jobs} jobs, at least {fewest} are needed"))
        else:
            enough.append((label, start, end, jobs))
    if len(enough) < 2:
        raise InputError(
            f"{len(enough)} of {len(periods)} periods have at least {fewest} jobs, two are needed",
            file=history.sources[0].path if history.sources else None,
            fix="give a longer history, or shorter periods such as --period 7d",
        )
    folds = [
        Fold(label, start, end, jobs, count(start - warmup_days * DAY, start), before[0], before[3])
        for before, (label, start, end, jobs) in pairwise(enough)
    ]
    return folds, skipped


def _propose(
    name: str, training: TrainingSet, settings: Mapping[str, Any], checkpoint: Checkpoint | None, key: str
) -> Proposal | str:
    """Return a strategy's proposal, or why it has none."""
    try:
        return cached_proposal(checkpoint, key, name, training, settings)
    except (NotApplicableError, UnroutableError) as error:
        return str(error)


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
