"""Holdout: strategies are trained on the earlier part of a history and evaluated on the later one.

A strategy must gain there beyond chance. So it is also trained on the first third alone and evaluated on the second
third; in a long history, also trained on the first sixth and evaluated on the second sixth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from parsim import Schedule
from parsim.metrics import Summary
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import Period, TrainingSet

DAY = 86400
WARMUP = 3 * DAY
FEWEST_JOBS = 20  # of a training set and of a test period, to conclude anything
FEWEST_DAYS = 3  # to resample from
#: Ends of the training set and of the test period, as fractions of a history's time. Tables show the last split.
SPLITS = {"first": (1 / 6, 1 / 3), "early": (1 / 3, 2 / 3), "last": (2 / 3, 1.0)}
LONG = 60 * DAY  # from first to last submission; in a longer history a sixth is enough to train on


class Simulated(Protocol):
    """Anything that schedules the jobs of a period, such as a strategy's proposal."""

    def simulate(self, period: Period) -> Schedule:
        """Simulate all jobs, from the period's state if there is one, else from an empty machine."""


@dataclass(frozen=True, eq=False)
class Holdout:
    """A test period with its warm-up: earlier jobs that fill the machine and are not counted."""

    period: Period  #: warm-up and test period, ascending by submit
    start: int  #: jobs submitted in ``[start, end)`` are counted
    end: int
    warmup: int  #: length of the warm-up before `start`, seconds

    @classmethod
    def of(cls, period: Period, start: int, end: int, warmup: int = 0) -> Holdout:
        """Hold out the jobs submitted in ``[start, end)``, with those of the `warmup` seconds before as warm-up."""
        return cls(period.between(start - warmup, end), start, end, warmup)

    @cached_property
    def counted(self) -> NDArray[np.bool_]:
        """Mask of the counted jobs, shape (n,)."""
        return self.period.counted(self.start)

    @property
    def jobs(self) -> Period:
        """The counted jobs as a period."""
        return self.period.take(self.counted)

    @property
    def days(self) -> int:
        """Whole days of the test period."""
        return (self.end - self.start) // DAY

    def outcome(self, subject: Simulated) -> Outcome:
        """Simulate a proposal; the outcome counts the test period only."""
        return Outcome(self.period, subject.simulate(self.period), self.counted)

    def evaluate(self, subject: Simulated) -> Summary:
        """Simulate a proposal; return all metrics of the test period."""
        return self.outcome(subject).summary

    @cached_property
    def _by_day(self) -> list[NDArray[np.int64]]:
        rows = np.flatnonzero(self.counted)
        submit = self.period.workload.submit[rows]
        begins = np.searchsorted(submit, self.start + DAY * np.arange(self.days + 1))
        return [rows[slice(*each)] for each in pairwise(begins)]

    @property
    def jobs_on_whole_days(self) -> int:
        """Number of jobs submitted on the whole days of the test period, from which resamples draw."""
        return sum(map(len, self._by_day))

    def resample(self, rng: np.random.Generator) -> Holdout:
        """Return a resample: each day, warm-up included, has the submissions of a random whole test day."""
        warm = self.warmup // DAY
        sampled = rng.integers(0, self.days, warm + self.days)
        rows = [self._by_day[day] for day in sampled]
        moved = np.repeat((np.arange(-warm, self.days) - sampled) * DAY, [len(each) for each in rows])
        jobs = self.period.take(np.concatenate(rows))
        submit, after = jobs.workload.submit + moved, jobs.workload.after
        before = submit[after[:, 1]] <= submit[after[:, 0]]  # drop dependencies on jobs that now come later
        resampled = replace(
            jobs, started=None, fills=None, workload=replace(jobs.workload, submit=submit, after=after[before])
        )
        whole = self.start + self.days * DAY
        return Holdout(resampled, self.start, whole, warm * DAY)


@dataclass(frozen=True)
class Split:
    """A training set, and a later test period."""

    training: TrainingSet
    test: Holdout

    @property
    def enough(self) -> bool:
        """Whether there are enough jobs and test days to conclude anything."""
        return min(len(self.training), len(self.test.jobs)) >= FEWEST_JOBS and self.test.days >= FEWEST_DAYS


def splits_of(training: TrainingSet, first: int, last: int) -> dict[str, Split]:
    """Divide a history, given its first and last submission, into the training sets and test periods of `SPLITS`."""
    found = {}
    for name, (train_to, test_to) in SPLITS.items():
        if name != "first" or last - first >= LONG:
            cut, end = (first + round((last + 1 - first) * share) for share in (train_to, test_to))
            found[name] = Split(training.between(first, cut), Holdout.of(training.period, cut, end, WARMUP))
    return found


def spans_of(period: Period, splits: Mapping[str, Split], epoch: int) -> dict[str, tuple[int, int, int]]:
    """Return (jobs, first submit, last submit) in Unix seconds of each part that has jobs."""
    parts: dict[str, Period | TrainingSet] = {"history": period}
    for name, when in (("last", ""), ("early", "earlier "), ("first", "earliest ")):
        if name in splits:
            parts |= {f"{when}training": splits[name].training, f"{when}test": splits[name].test.jobs}
    return {
        name: (len(part), epoch + int(part.workload.submit[0]), epoch + int(part.workload.submit[-1]))
        for name, part in parts.items()
        if len(part)
    }
