"""Day-block bootstrap: whether a gain is more than chance.

A backlog lasts for days, so the waits of neighbouring days are correlated, and resampled waits would give too narrow an
interval. The submissions are resampled instead, by day, and simulated again: every resample is a period that could have
been.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from qconf.evaluation.guard_rails import GuardValues
from qconf.evaluation.holdout import Holdout, Simulated
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import NotApplicableError, UnroutableError
from qconf.evaluation.score import GRACE, TAILS, gain, log_ratios, weights
from qconf.parallel import Shared, parallel_map

RESAMPLES, FEWEST = 100, 50  # most and fewest resamples; `JOBS` decides between
JOBS = 1_000_000  # simulated jobs per proposal, about: a count, not a time, so that all machines get the same results
CHUNK = 5  # resamples that a worker makes at a time
BOUNDS = (5.0, 95.0)  # percentiles of a 90 % interval
#: Factor on the interval's half widths (in logarithms) for a coming month, which differs by more than its days:
#: chosen so that nine of ten gains of next months lie inside (``python -m studies.next_month``).
NEXT = 1.5
#: Better beyond chance: the least fraction of resamples with a gain, and the least standard deviations of the mean
#: score below 0. With nothing to gain, none of 50 months came near either (``studies.trials``).
CERTAIN = (0.75, 0.65)
CLEAR = (0.95, 1.5)  # the same for a larger change against a smaller one

#: Why a strategy cannot be simulated on a resample.
Failed = NotApplicableError | UnroutableError
#: Mean wait, mean bounded slowdown, longest wait, utilization, then the 95 % wait of each base queue, and of the jobs
#: for each type of nodes.
_Numbers = NDArray[np.float64]
More = Callable[[Outcome], Sequence[float]]
_Chunk = list[_Numbers | Failed]  # by subject, over some resamples of a holdout


class Store(Protocol):
    """The part of a `Checkpoint` that the bootstrap uses, so that an interrupted run can resume; sent to workers."""

    def get(self, key: str) -> Any:  # noqa: ANN401 - whatever is kept
        """Return the stored value, None if there is none."""

    def put(self, key: str, finished: _Chunk) -> None:
        """Store the result of a worker that could not store it itself."""

    def kept(self, key: str, work: Callable[[], _Chunk]) -> _Chunk:
        """Return the stored value; otherwise do the work and store its result."""


class NoDaysError(NotApplicableError):
    """No job was submitted on a whole day, so there is nothing to resample."""


@dataclass(frozen=True)
class BootstrapResult:
    """A proposal against the current configuration, over the resamples."""

    expected: float  #: median gain in the objective: 0.2 is a fifth less
    low: float  #: of the 90 % interval of a month to come
    high: float
    sure: float  #: fraction of the resamples with a gain
    #: Mean of the log score (`qconf.evaluation.score`), tails included; below 0 the proposal is better.
    score: float
    spread: float  #: standard deviation of the score without tails, over the resamples
    before: GuardValues  #: means over the resamples, as in `after`
    after: GuardValues
    resamples: int = RESAMPLES
    #: The measures on every resample, from which `Bootstrap.between` compares two proposals; not recorded.
    numbers: _Numbers = field(default_factory=lambda: np.empty((0, 0)), repr=False, compare=False)

    @property
    def certain(self) -> bool:
        """Whether both the gain and the score are better beyond chance."""
        return self._beyond(*CERTAIN)

    @property
    def clear(self) -> bool:
        """Whether both are so clearly better that they justify a larger change."""
        return self._beyond(*CLEAR)

    def _beyond(self, sure: float, deviations: float) -> bool:
        # Not a percentile of the score: a hundred resamples give too uncertain a percentile.
        return self.sure >= sure and self.score + deviations * self.spread < 0


def resamples_of(jobs: int) -> int:
    """Return the number of resamples for test periods with so many jobs, warm-up included."""
    return min(max(JOBS // max(jobs, 1) // CHUNK * CHUNK, FEWEST), RESAMPLES)


class Bootstrap:
    """Compares proposals with the current configuration `base`, all on the same resamples.

    Each of the `tests` has at least `FEWEST_DAYS` days. Raises `NoDaysError` if there are no jobs to resample. The
    first comparison also measures the base, into `before`. The log of the longest wait, counted from `seen` seconds on,
    has weight `tails`: a wait as long as the site has seen costs nothing.
    """

    def __init__(
        self,
        tests: Sequence[Holdout],
        base: Simulated,
        objective: str,
        seed: int,
        workers: int,
        store: Store | None = None,
        *,
        tails: float = TAILS,
        seen: float = 0.0,
    ) -> None:
        self.tests, self.seed, self.store = tests, seed, store
        self.weights, self.seen = weights(objective, tails), seen
        base_of_tests = tests[0].period.base
        self.names, self.nodes = base_of_tests.names, [each.name for each in base_of_tests.nodes]
        self.objective, self.workers = objective, workers
        self.resamples = resamples_of(sum(len(test.period) for test in tests))
        if not any(test.jobs_on_whole_days for test in tests):
            raise NoDaysError("no job was submitted on the whole days of the test periods")
        self._shared = Shared(tuple(tests))
        self.base, self.before = base, np.empty((0, 0))
        #: Further measures of an outcome, appended to the others: the same number for each outcome, NaN without jobs.
        self.more: More | None = None

    def _measure(
        self, strategies: Mapping[str, Sequence[Simulated]], advance: Callable[[float], None]
    ) -> list[_Numbers | Failed]:
        """Return the measures of every resample, weighted over the holdouts by days; shape (resamples, 4 + Q + T).

        `more` adds columns. For a strategy that cannot be simulated on some resample, return the reason. Stored chunks
        are not measured again.
        """
        subjects = Shared([[each[i] for each in strategies.values()] for i in range(len(self.tests))])
        chunks = self._chunks("\n".join(strategies), subjects, advance)
        weights = [test.end - test.start for test in self.tests]
        found: list[_Numbers | Failed] = []
        for results in zip(*chunks, strict=True):
            failed = next((each for each in results if isinstance(each, Failed)), None)
            if failed is None:
                rows = np.stack(results)
                rows = rows.reshape(-1, len(self.tests), CHUNK, rows.shape[-1])
                numbers = rows.swapaxes(1, 2).reshape(self.resamples, len(self.tests), -1)
                found.append(_mean(numbers, axis=1, weights=weights))
            else:
                found.append(failed)
        return found

    def _chunks(
        self, names: str, subjects: Shared[list[list[Simulated]]], advance: Callable[[float], None]
    ) -> list[_Chunk]:
        """Measure in chunks of some resamples of a holdout; store each chunk when it is done.

        The content of a chunk depends only on the names of the subjects; all else is constant within a run.
        """
        named = hashlib.sha256(names.encode()).hexdigest()[:12]
        places = [(first, i) for first in range(0, self.resamples, CHUNK) for i in range(len(self.tests))]
        keys = {place: f"resamples {named} {'-'.join(map(str, place))}" for place in places}
        found: dict[tuple[int, int], _Chunk] = {}
        if self.store is not None:
            found = {place: kept for place, key in keys.items() if (kept := self.store.get(key)) is not None}
        new = [place for place in places if place not in found]

        def keep(n: int, chunk: _Chunk) -> None:
            found[new[n]] = chunk
            if self.store is not None:
                self.store.put(keys[new[n]], chunk)
            advance(len(found) / len(places))

        tasks = [
            (self._shared, subjects, i, self.seed, range(first, first + CHUNK), self.more, self.store, keys[first, i])
            for first, i in new
        ]
        parallel_map(self.workers, _kept_chunk, tasks, processes=True, done=keep)
        return [found[place] for place in places]

    def compare_all(
        self, strategies: Mapping[str, Sequence[Simulated]], advance: Callable[[float], None] = lambda _: None
    ) -> list[BootstrapResult | Failed]:
        """Compare several strategies on the same resamples; one that cannot be simulated there gets the reason.

        `advance` is called with the finished fraction.
        """
        if not strategies:
            return []
        new = {} if self.before.size else {"": [self.base] * len(self.tests)}
        measured = self._measure(new | dict(strategies), advance)
        if new:
            before = measured.pop(0)
            if isinstance(before, Failed):
                raise before
            self.before = before
        return [each if isinstance(each, Failed) else self.between(self.before, each) for each in measured]

    def between(self, before: _Numbers, after: _Numbers) -> BootstrapResult:
        """Compare the measures of two strategies on the same resamples; gains are those of `after` over `before`."""
        gains = gain(after[:, :2], before[:, :2], self.objective)
        longest = (np.log(np.maximum(each[:, 2], self.seen) + GRACE) for each in (after, before))
        scores, price = (
            log_ratios(after[:, :2], before[:, :2]) @ self.weights[:2],
            self.weights[2] * np.subtract(*longest),
        )
        low, high = next_month(gains)
        return BootstrapResult(
            expected=float(np.nanmedian(gains)),
            low=low,
            high=high,
            sure=float((gains > 0).sum() / max(np.isfinite(gains).sum(), 1)),
            score=float(np.nanmean(scores) + np.nanmean(price)),
            spread=float(np.nanstd(scores, ddof=1)),
            before=self._guarded(before),
            after=self._guarded(after),
            resamples=self.resamples,
            numbers=after,
        )

    def _guarded(self, numbers: _Numbers) -> GuardValues:
        longest, used, *p95 = _mean(numbers, axis=0)[2:].tolist()
        nodes = dict(zip(self.nodes, p95[len(self.names) :], strict=False))
        return GuardValues(dict(zip(self.names, p95, strict=False)), longest, used, nodes=nodes)


def next_month(gains: _Numbers) -> tuple[float, float]:
    """Return the 90 % interval of a coming month's gain, from the gains of the resamples."""
    left = np.log(np.maximum(1.0 - gains, 1e-6))
    low, middle, high = np.nanpercentile(left, [BOUNDS[0], 50.0, BOUNDS[1]])
    worst, best = (1.0 - np.exp(middle + NEXT * (bound - middle)) for bound in (high, low))
    return float(worst), float(best)


def _mean(values: _Numbers, axis: int, weights: Sequence[int] | None = None) -> _Numbers:
    """Return the weighted mean without NaN; NaN if all values are."""
    means = np.ma.average(np.ma.masked_invalid(values), axis=axis, weights=weights)
    return np.asarray(np.ma.filled(means, np.nan))


def _kept_chunk(*given: Any) -> _Chunk:  # noqa: ANN401 - as `_chunk`
    *subject, store, key = given
    return _chunk(*subject) if store is None else store.kept(key, lambda: _chunk(*subject))


def _chunk(
    tests: Shared[tuple[Holdout, ...]],
    subjects: Shared[list[list[Simulated]]],
    i: int,
    seed: int,
    resamples: range,
    more: More | None = None,
) -> _Chunk:
    """Simulate each subject on some resamples of holdout `i`: per subject an array with a row per resample."""
    here = subjects.value[i]
    found: list[Any] = [[] for _ in here]
    # Each resample is made anew when needed: those of a year do not fit in memory together.
    for k in resamples:
        resample = tests.value[i].resample(np.random.default_rng((seed, k, i)))
        for n, subject in enumerate(here):
            if not isinstance(found[n], Failed):
                try:
                    outcome = resample.outcome(subject)
                    found[n].append([*_numbers(outcome), *(more(outcome) if more is not None else ())])
                except (NotApplicableError, UnroutableError) as error:
                    found[n] = error
    return [each if isinstance(each, Failed) else np.array(each) for each in found]


def _numbers(found: Outcome) -> Sequence[float]:
    """Return the measures of an outcome in the order of `_Numbers`; NaN if no job is counted."""
    if not found.wait.size:
        return [np.nan] * (4 + len(found.period.base.queues) + len(found.period.base.nodes))
    return [*found.means(), found.wait.max(), found.utilization, *found.p95, *found.p95_nodes]
