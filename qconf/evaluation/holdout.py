"""The part of a history that is held out, and what a configuration gives on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from parsim import Schedule, Workload, metrics
from parsim.metrics import Summary
from qconf.evaluation.period import Period

DAY = 86400


class Simulated(Protocol):
    """Whatever can say when the jobs of a month would have started, such as a proposal of a strategy."""

    def simulate(self, period: Period) -> Schedule:
        """Simulate all jobs, from an empty machine."""


@dataclass(frozen=True, eq=False)
class Holdout:
    """Jobs to be judged on, and jobs from before that fill the machine and are not counted.

    Attributes
    ----------
    period : Period
        Both, ascending by submit.
    start, end : int
        Those submitted in ``[start, end)`` are counted.
    warmup : int
        Seconds before `start` from which there are jobs.
    """

    period: Period
    start: int
    end: int
    warmup: int

    @classmethod
    def of(cls, period: Period, start: int, end: int, warmup: int = 0) -> Holdout:
        """Judge the jobs submitted in ``[start, end)`` after `warmup` seconds of earlier ones."""
        return cls(period.between(start - warmup, end), start, end, warmup)

    @cached_property
    def counted(self) -> NDArray[np.bool_]:
        """Which jobs are judged, shape (n,)."""
        return self.period.workload.submit >= self.start

    @property
    def judged(self) -> Period:
        """The jobs that are counted."""
        return self.period.between(self.start, self.end)

    @property
    def days(self) -> int:
        """Whole days that are judged."""
        return (self.end - self.start) // DAY

    def run(self, subject: Simulated) -> Summary:
        """Simulate what is proposed; the summary counts the judged jobs, by the base configuration's queues."""
        schedule = subject.simulate(self.period)
        return metrics.summary(self.period.workload, schedule, self.period.base.system(), counted=self.counted)

    @cached_property
    def _by_day(self) -> list[NDArray[np.int64]]:
        begins = np.searchsorted(self.period.workload.submit, self.start + DAY * np.arange(self.days + 1))
        return [np.arange(*each) for each in pairwise(begins)]

    def resampled(self, rng: np.random.Generator) -> Holdout:
        """Return as many days of submissions, those of the warm-up too, each drawn from the judged whole days."""
        warm = self.warmup // DAY
        drawn = rng.integers(0, self.days, warm + self.days)
        rows = [self._by_day[day] for day in drawn]
        moved = np.repeat((np.arange(-warm, self.days) - drawn) * DAY, [len(each) for each in rows])
        jobs = self.period.workload.take(np.concatenate(rows))
        submit = jobs.submit + moved
        shuffled = Workload(submit, jobs.cores, jobs.runtime, jobs.walltime, queue=jobs.queue, user=jobs.user)
        whole = self.start + self.days * DAY
        return Holdout(Period(shuffled, self.period.base, self.period.binding), self.start, whole, warm * DAY)
