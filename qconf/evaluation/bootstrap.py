"""Day-block bootstrap: whether a gain is more than chance.

The waits of neighbouring days belong together, since a backlog lasts: an interval from resampled waits would be too
narrow. So it is the submissions that are resampled, by day, and simulated again: every resample is a period that could
have been.
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

RESAMPLES, FEWEST = 100, 50  # as many as `JOBS` allows, between these
JOBS = 1_000_000  # that are simulated of a proposal, more or less: a count, so that results are those of any machine
CHUNK = 5  # resamples that a worker makes at a time
BOUNDS = (5.0, 95.0)  # percentiles of a 90 % interval
#: By which its half widths (of logarithms) grow for a month to come, which differs by more than the days that it is
#: made of: chosen so that nine of ten gains of next months lie inside (``python -m studies.next_month``).
NEXT = 1.5
#: What is better beyond chance: the part of the resamples that gain, and the standard deviations by which the mean
#: score is below 0. Where there is nothing to gain no month of 50 came near either (``studies.trials``).
CERTAIN = (0.75, 0.65)
CLEAR = (0.95, 1.5)  # of a larger change against a smaller one

#: Why something cannot be simulated on a resample.
Failed = NotApplicableError | UnroutableError
#: Mean wait, mean bounded slowdown, longest wait, utilization, then the 95 % wait of each base queue, and of the jobs
#: for each type of nodes.
_Numbers = NDArray[np.float64]
More = Callable[[Outcome], Sequence[float]]
_Chunk = list[_Numbers | Failed]  # of each subject, over some resamples of a holdout


class Store(Protocol):
    """Keeps what was measured, for a run that goes on after an interrupt; it goes to workers."""

    def get(self, key: str) -> Any:  # noqa: ANN401 - whatever is kept
        """Return what is kept."""

    def put(self, key: str, finished: _Chunk) -> None:
        """Keep what a worker could not keep itself."""

    def kept(self, key: str, work: Callable[[], _Chunk]) -> _Chunk:
        """Return what is kept; else do the work, and keep it."""


class NoDaysError(NotApplicableError):
    """No job was submitted on a whole day, so there is nothing to resample."""


@dataclass(frozen=True)
class BootstrapResult:
    """A proposal against the current configuration, over the resamples."""

    expected: float  #: median gain in the objective: 0.2 is a fifth less
    low: float  #: of the 90 % interval of a month to come
    high: float
    sure: float  #: part of the resamples that gain
    #: Mean of the log score (`qconf.evaluation.score`), tails included; below 0 the proposal is better.
    score: float
    spread: float  #: standard deviation of what the means contribute to it
    before: GuardValues  #: means over the resamples, as `after`
    after: GuardValues
    resamples: int = RESAMPLES
    #: What was measured on every resample, from which `Bootstrap.between` compares two proposals; not recorded.
    numbers: _Numbers = field(default_factory=lambda: np.empty((0, 0)), repr=False, compare=False)

    @property
    def certain(self) -> bool:
        """Whether both the gain and the score are better beyond chance."""
        return self._beyond(*CERTAIN)

    @property
    def clear(self) -> bool:
        """Whether they are so clearly better that a larger change is worth it."""
        return self._beyond(*CLEAR)

    def _beyond(self, sure: float, deviations: float) -> bool:
        # No percentile of the score: of a hundred resamples that is too uncertain.
        return self.sure >= sure and self.score + deviations * self.spread < 0


def resamples_of(jobs: int) -> int:
    """Return how many resamples there are of tests with so many jobs, warm-up and all."""
    return min(max(JOBS // max(jobs, 1) // CHUNK * CHUNK, FEWEST), RESAMPLES)


class Bootstrap:
    """Compares proposals with the current configuration `base`, all on the same resamples.

    Each of the `tests` has `FEWEST_DAYS` days at least. Raises `NoDaysError` where there are no jobs to resample. What
    was measured of the base is in `before`, from the first comparison on, which measures it. Longest waits up to `seen`
    seconds, which the site has seen, count alike; beyond, by `tails`.
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
        #: Further numbers of an outcome, which stand behind the others; as many of each, NaN where there are no jobs.
        self.more: More | None = None

    def _measure(
        self, strategies: Mapping[str, Sequence[Simulated]], advance: Callable[[float], None]
    ) -> list[_Numbers | Failed]:
        """Return the numbers of every resample, means over the holdouts weighted by days; shape (resamples, 4 + Q + T).

        What is `more` adds columns. Of a strategy that cannot be simulated on one of them it is the reason. A chunk
        that is stored is not measured again.
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
        """Measure in chunks of some resamples of a holdout; each is kept when it is done.

        What a chunk holds depends on the names of the subjects, and on nothing else that differs within a run.
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

    def compare(self, subjects: Sequence[Simulated]) -> BootstrapResult:
        """Compare the proposals of one strategy, one for each holdout, with the current configuration."""
        (found,) = self.compare_all({"proposal": subjects})
        if isinstance(found, Failed):
            raise found
        return found

    def compare_all(
        self, strategies: Mapping[str, Sequence[Simulated]], advance: Callable[[float], None] = lambda _: None
    ) -> list[BootstrapResult | Failed]:
        """Do so for several by name, all on each resample; of one that cannot be simulated there, return the reason.

        `advance` is called with the share of all that is done.
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
        """Compare what was measured of two strategies on the same resamples; gains are over the first."""
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
    """Return the 90 % interval of a month to come, from the gains of the resamples."""
    left = np.log(np.maximum(1.0 - gains, 1e-6))
    low, middle, high = np.nanpercentile(left, [BOUNDS[0], 50.0, BOUNDS[1]])
    worst, best = (1.0 - np.exp(middle + NEXT * (bound - middle)) for bound in (high, low))
    return float(worst), float(best)


def _mean(values: _Numbers, axis: int, weights: Sequence[int] | None = None) -> _Numbers:
    """Return the weighted mean without NaN; NaN where there is nothing else."""
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
    """Make some resamples of a holdout, and simulate each subject on each of them: arrays of a row for each."""
    here = subjects.value[i]
    found: list[Any] = [[] for _ in here]
    # Every resample is made again when it is needed: those of a year do not fit in memory together.
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
    """Return what is measured of each outcome; NaN where no job is counted."""
    if not found.wait.size:
        return [np.nan] * (4 + len(found.period.base.queues) + len(found.period.base.nodes))
    return [*found.means(), found.wait.max(), found.utilization, *found.p95, *found.p95_nodes]
