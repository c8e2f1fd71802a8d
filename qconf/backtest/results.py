"""The results of a walk-forward: one per period and strategy, and their averages against the reference strategies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsim.metrics import Summary
from qconf.config import SiteConfig
from qconf.evaluation.bootstrap import BOUNDS
from qconf.evaluation.score import GRACE, TAILS, gain, log_ratios, means, reduction, weights
from qconf.recommend.last import Gain

#: Reference strategies: each run evaluates them, and compares every strategy with each of them.
REFERENCES = ("fcfs-easy", "shared", "static")
CURRENT = "current"  #: a further reference in runs that evaluate this strategy
FIXED = ("fcfs", "lxf", "sjf", "wfp3")  #: fixed orders of a single list of jobs, untrained
RESAMPLES = 200  #: resamples, each of periods and of the days in them
#: Metrics whose means over the periods are divided by those of a reference.
COMPARED = ("mean_wait", "mean_bounded_slowdown", "max_wait")
AVERAGED = (*COMPARED, "p95_wait", "utilization_window", "utilization", "bsld", "jain_users", "spread_users")


@dataclass(frozen=True)
class Fold:
    """A test period and the training period before it; times are seconds after the history's epoch."""

    label: str
    start: int
    end: int
    jobs: int
    warmup_jobs: int
    training: str
    training_jobs: int


@dataclass(frozen=True)
class FoldResult:
    """One strategy on one test period."""

    period: str
    strategy: str
    summary: Summary  #: of the period's jobs, by the base configuration's queues
    config: SiteConfig  #: the simulated configuration; the base where the strategy has no proposal
    fallback: str = ""  #: why the current configuration is used instead; empty if the strategy has a proposal
    not_exportable: str = ""  #: why no batch system can run the proposal; empty if one can
    decisions: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0  #: wall time of training and evaluation
    fixed: tuple[str, ...] = ()  #: violations of ``fixed``: changed paths that the base fixes
    #: Sums over the jobs of each day: weight, weight x wait, weight x bounded slowdown; shape (days, 3).
    daily: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 3)), repr=False, compare=False)


@dataclass(frozen=True)
class Against:
    """A strategy compared with a reference, over all periods."""

    ratios: dict[str, float]  #: by `COMPARED` metric: the strategy's mean over the periods / the reference's
    reduction: float  #: mean over the periods of the fraction by which the objective is lower
    best: tuple[str, float]  #: the period with the greatest reduction
    worst: tuple[str, float]  #: the period with the smallest reduction
    worse: float  #: fraction of the periods in which the objective is higher


@dataclass(frozen=True)
class Average:
    """One strategy over all periods: the mean of each metric of `AVERAGED`, and a comparison with each reference."""

    strategy: str
    periods: int
    means: dict[str, float]
    against: dict[str, Against]
    fallbacks: int
    #: exp(difference in log score) - 1 against the best fixed order (`FIXED`), chosen in hindsight: 0.1 is about a
    #: tenth more wait. None where no fixed order was simulated.
    regret: float | None = None
    best_fixed: str = ""  #: the best fixed order


@dataclass(frozen=True)
class Backtest:
    """The result of ``qconf backtest``, and of ``qconf compare`` with its one test period."""

    folds: list[Fold]  #: the test periods
    skipped: list[tuple[str, str]]  #: periods that are left out, and why
    results: list[FoldResult]  #: by period, then strategy
    averages: list[Average]  #: in the order of the strategies
    base: SiteConfig
    objective: str
    notes: list[str]  #: sentences for the reader
    settings: dict[str, Any]

    @property
    def strategies(self) -> tuple[str, ...]:
        """The names of the strategies, in the order of the tables."""
        return tuple(average.strategy for average in self.averages)


def log_scores(
    found: Mapping[str, Sequence[Summary]], first_come: Sequence[Summary], objective: str, tails: float = TAILS
) -> dict[str, float]:
    """Return each subject's log score against first come, first served (0), averaged over the periods.

    The longest wait of a period costs only as far as it exceeds the longest wait of FCFS up to the end of that period.
    """
    seen = np.maximum.accumulate([each["max_wait"] for each in first_come])
    then = np.array([means(each) for each in first_come])

    def score(each: Sequence[Summary]) -> float:
        now = np.array([means(summary) for summary in each])
        longest = np.array([summary["max_wait"] for summary in each])
        beyond = np.maximum(np.log((longest + GRACE) / (seen + GRACE)), 0.0)
        return float((np.column_stack([log_ratios(now, then), beyond]) @ weights(objective, tails)).mean())

    return {name: score(each) for name, each in found.items()}


def averages(
    results: Iterable[FoldResult],
    objective: str,
    fixed: Mapping[str, Sequence[Summary]] | None = None,
    tails: float = TAILS,
) -> list[Average]:
    """Average each strategy over its periods, in order of appearance; `fixed`, the fixed orders, adds its regret."""
    table: dict[str, dict[str, FoldResult]] = {}
    for result in results:
        table.setdefault(result.strategy, {})[result.period] = result
    known, scores = {}, {}
    if fixed:
        own = {name: [each.summary for each in row.values()] for name, row in table.items()}
        known, scores = (log_scores(each, fixed["fcfs"], objective, tails) for each in (fixed, own))
    best = min(known, key=known.__getitem__, default="")
    return [
        Average(
            strategy=name,
            periods=len(row),
            means=_means(row),
            against={
                other: _against(row, table[other], objective) for other in (*REFERENCES, CURRENT) if other in table
            },
            fallbacks=sum(bool(result.fallback) for result in row.values()),
            regret=None if not known else float(np.expm1(scores[name] - known[best])),
            best_fixed=best,
        )
        for name, row in table.items()
    ]


def resampled(found: Backtest, strategy: str, reference: str) -> Gain:
    """Return the mean gain of a strategy over another, with median and 90 % interval over resampled periods and days.

    Each resample redraws the daily sums of one simulation, so the interval is narrower than that of ``qconf tune``.
    """
    daily = {(each.period, each.strategy): each.daily for each in found.results}
    pairs = [(daily[fold.label, strategy], daily[fold.label, reference]) for fold in found.folds]
    rng, gains = np.random.default_rng(0), np.full(RESAMPLES, np.nan)
    for k in range(RESAMPLES):
        drawn = []
        for i in rng.integers(0, len(pairs), len(pairs)):
            days = rng.integers(0, len(pairs[i][0]), len(pairs[i][0]))
            (jobs, *now), (_, *then) = (each[days].sum(axis=0) for each in pairs[i])
            if jobs:
                drawn.append(float(gain(np.array(now) / jobs, np.array(then) / jobs, found.objective)))
        if drawn:
            gains[k] = np.mean(drawn)
    low, high = np.nanpercentile(gains, BOUNDS)
    average = next(each for each in found.averages if each.strategy == strategy)
    return Gain(average.against[reference].reduction, float(np.nanmedian(gains)), float(low), float(high))


def _means(row: dict[str, FoldResult]) -> dict[str, float]:
    return {name: float(np.mean([result.summary[name] for result in row.values()])) for name in AVERAGED}


def _against(row: dict[str, FoldResult], other: dict[str, FoldResult], objective: str) -> Against:
    mine, theirs = _means(row), _means(other)
    reductions = {label: reduction(row[label].summary, other[label].summary, objective) for label in row}
    best, worst = max(reductions, key=reductions.__getitem__), min(reductions, key=reductions.__getitem__)
    return Against(
        ratios={name: _ratio(mine[name], theirs[name]) for name in COMPARED},
        reduction=float(np.mean(list(reductions.values()))),
        best=(best, reductions[best]),
        worst=(worst, reductions[worst]),
        worse=float(np.mean([value < 0 for value in reductions.values()])),
    )


def _ratio(mine: float, theirs: float) -> float:
    if theirs > 0:
        return mine / theirs
    return 2.0 if mine > 0 else 1.0


def notes(results: Sequence[FoldResult]) -> list[str]:
    """Return one sentence per strategy and reason of a fallback to the current configuration, with the periods."""
    found: dict[tuple[str, str], list[str]] = {}
    for result in results:
        if result.fallback:
            found.setdefault((result.strategy, result.fallback), []).append(result.period)
    return [
        f"{name}: the current configuration instead in {', '.join(labels)}: {why}"
        for (name, why), labels in found.items()
    ]
