"""Day-block bootstrap: whether a gain is more than chance.

The waits of neighbouring days belong together, since a backlog lasts: an interval from resampled waits would be too
narrow. So it is the submissions that are resampled, by day, and simulated again: every resample is a period that could
have been.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from qconf.evaluation.guard_rails import GuardValues
from qconf.evaluation.holdout import Holdout, Simulated
from qconf.evaluation.period import NotApplicableError
from qconf.evaluation.score import gain, log_ratios, weights
from qconf.parallel import parallel_map

RESAMPLES = 100
BOUNDS = (5.0, 95.0)  # percentiles of a 90 % interval
DEVIATIONS = 1.5  # standard deviations by which the mean score must be below 0: 93 % of a normal distribution

#: Mean wait, mean bounded slowdown, longest wait, utilization, then the 95 % wait of each base queue.
_Numbers = NDArray[np.float64]
#: Returns the numbers of this name that an interrupted run kept, else those that are made.
Keep = Callable[[str, Callable[[], _Numbers]], _Numbers]


class NoDaysError(NotApplicableError):
    """No job was submitted on a whole day, so there is nothing to resample."""


@dataclass(frozen=True)
class BootstrapResult:
    """A proposal against the current configuration, over the resamples."""

    expected: float  #: median gain in the objective: 0.2 is a fifth less
    low: float  #: of its 90 % interval
    high: float
    #: Mean of the log score (`qconf.evaluation.score`) plus `DEVIATIONS` standard deviations. Below 0 the proposal is
    #: better beyond chance, tails included. It is no percentile: of a hundred resamples that is too uncertain.
    score_high: float
    before: GuardValues  #: means over the resamples, as `after`
    after: GuardValues
    #: What was measured on every resample, from which `Bootstrap.between` compares two proposals; not recorded.
    numbers: _Numbers = field(default_factory=lambda: np.empty((0, 0)), repr=False, compare=False)

    @property
    def certain(self) -> bool:
        """Whether both the gain and the score are better beyond chance."""
        return self.low > 0 and self.score_high < 0


class Bootstrap:
    """Compares proposals with the current configuration `base`, all on the same resamples.

    Each of the `tests` has `FEWEST_DAYS` days at least. Raises `NoDaysError` where there are no jobs to resample.
    """

    def __init__(
        self,
        tests: Sequence[Holdout],
        base: Simulated,
        objective: str,
        seed: int,
        workers: int,
        keep: Keep = lambda _, make: make(),
    ) -> None:
        self.tests, self.seed, self.keep = tests, seed, keep
        self.names = tests[0].period.base.names
        self.objective, self.workers = objective, workers
        self.before = keep("current", lambda: self._measure([base] * len(tests)))
        if np.isnan(self.before[:, 0]).all():
            raise NoDaysError("no job was submitted on the whole days of the test periods")

    def _measure(self, subjects: Sequence[Simulated]) -> _Numbers:
        """Return the numbers of every resample, a mean over the holdouts weighted by days; shape (resamples, 4 + Q)."""
        holdouts = [*enumerate(zip(self.tests, subjects, strict=True))]
        # Every resample is made again when it is needed: those of a year do not fit in memory together.
        tasks = [(test, (self.seed, k, i), subject) for k in range(RESAMPLES) for i, (test, subject) in holdouts]
        found = np.array(parallel_map(self.workers, _numbers, tasks))
        return _mean(found.reshape(RESAMPLES, len(holdouts), -1), axis=1, weights=[t.end - t.start for t in self.tests])

    def compare(self, subjects: Sequence[Simulated], name: str = "") -> BootstrapResult:
        """Compare the proposals of one strategy, one for each holdout, with the current configuration.

        The numbers are kept under `name`.
        """
        return self.between(self.before, self.keep(name, lambda: self._measure(subjects)))

    def between(self, before: _Numbers, after: _Numbers) -> BootstrapResult:
        """Compare what was measured of two strategies on the same resamples; gains are over the first."""
        gains = gain(after[:, :2], before[:, :2], self.objective)
        scores = log_ratios(after[:, :3], before[:, :3]) @ weights(self.objective)
        low, high = np.nanpercentile(gains, BOUNDS)
        return BootstrapResult(
            expected=float(np.nanmedian(gains)),
            low=float(low),
            high=float(high),
            score_high=float(np.nanmean(scores) + DEVIATIONS * np.nanstd(scores, ddof=1)),
            before=self._guarded(before),
            after=self._guarded(after),
            numbers=after,
        )

    def _guarded(self, numbers: _Numbers) -> GuardValues:
        longest, used, *p95 = _mean(numbers, axis=0)[2:].tolist()
        return GuardValues(dict(zip(self.names, p95, strict=True)), longest, used)


def _mean(values: _Numbers, axis: int, weights: Sequence[int] | None = None) -> _Numbers:
    """Return the weighted mean without NaN; NaN where there is nothing else."""
    means = np.ma.average(np.ma.masked_invalid(values), axis=axis, weights=weights)
    return np.asarray(np.ma.filled(means, np.nan))


def _numbers(whole: Holdout, seed: tuple[int, int, int], subject: Simulated) -> _Numbers:
    """Resample and simulate; NaN where no job is counted."""
    found = whole.resample(np.random.default_rng(seed)).outcome(subject)
    if not found.wait.size:
        return np.full(4 + len(found.period.base.queues), np.nan)
    return np.array([*found.means(), found.wait.max(), found.utilization, *found.p95])
