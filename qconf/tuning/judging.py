"""What a configuration was worth on jobs that it had not seen, against the current one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from parsim import Schedule, metrics
from parsim.metrics import Summary
from qconf.config import QueueConfig, SiteConfig
from qconf.tuning.month import Month

DAY = 86400
RESAMPLES = 1000
OBJECTIVES = ("mean-wait", "bounded-slowdown", "mixed")


@dataclass(frozen=True)
class Interval:
    """A gain over the current configuration: 0.2 is a fifth less; `low` to `high` is its 95 % interval."""

    gain: float
    low: float
    high: float


class Simulated(Protocol):
    """Whatever can say when the jobs of a month would have started, such as a proposal of a strategy."""

    def simulate(self, month: Month) -> Schedule:
        """Simulate all jobs, from an empty machine."""


@dataclass(frozen=True, eq=False)
class Trial:
    """Jobs to be judged on, and jobs from before that fill the machine and are not counted.

    Attributes
    ----------
    month : Month
        Both, ascending by submit.
    counted : ndarray(bool), shape (n,)
    """

    month: Month
    counted: NDArray[np.bool_]

    @classmethod
    def of(cls, month: Month, start: int, end: int, warmup: int) -> Trial:
        """Judge the jobs submitted in ``[start, end)`` after `warmup` seconds of earlier ones."""
        around = month.between(start - warmup, end)
        return cls(around, around.workload.submit >= start)

    def run(self, subject: Simulated) -> tuple[Schedule, Summary]:
        """Simulate what is proposed; the summary counts the judged jobs, by the base configuration's queues."""
        schedule = subject.simulate(self.month)
        base = self.month.base.system()
        return schedule, metrics.summary(self.month.workload, schedule, base, counted=self.counted)

    def values(
        self, schedule: Schedule, objective: str, unit: tuple[float, float] | None = None
    ) -> NDArray[np.float64]:
        """Return the objective of each counted job; `unit` are the means that ``mixed`` measures in."""
        waits = schedule.wait[self.counted].astype(np.float64)
        if objective == "mean-wait":
            return waits
        slowdowns = metrics.bounded_slowdown(schedule)[self.counted]
        if objective == "bounded-slowdown":
            return slowdowns
        wait_unit, slowdown_unit = unit or (1.0, 1.0)
        return 0.5 * waits / max(wait_unit, 1.0) + 0.5 * slowdowns / max(slowdown_unit, 1.0)

    def gain(self, current: Schedule, other: Schedule, objective: str, seed: int) -> Interval:
        """Compare two schedules of the same jobs; the interval is a bootstrap over days of submission."""
        unit = (
            float(current.wait[self.counted].mean()),
            float(metrics.bounded_slowdown(current)[self.counted].mean()),
        )
        before, after = self.values(current, objective, unit), self.values(other, objective, unit)
        days = (self.month.workload.submit[self.counted] - self.month.workload.submit[0]) // DAY
        _, day = np.unique(days, return_inverse=True)
        sums = np.stack([np.bincount(day, before), np.bincount(day, after)])
        drawn = np.random.default_rng(seed).integers(0, sums.shape[1], size=(RESAMPLES, sums.shape[1]))
        totals = sums[:, drawn].sum(axis=2)
        gains = _gain(totals[0], totals[1])
        low, high = np.percentile(gains, [2.5, 97.5])
        return Interval(float(_gain(before.sum(), after.sum())), float(low), float(high))


def _gain(before: NDArray[np.float64] | float, after: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Share by which `after` is less; -1 at the worst where there was nothing to gain."""
    before, after = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    ratio = np.divide(after, before, out=np.where(after > 0, 2.0, 1.0), where=before > 0)
    return 1.0 - ratio


@dataclass(frozen=True)
class Guards:
    """What a recommendation may not make worse, against the current configuration.

    Attributes
    ----------
    factor : float
        Most by which a queue's 95th percentile of waits, and the longest wait of all, may grow.
    grace : int
        Seconds that they may grow in any case: a wait of a minute that becomes three is no harm.
    utilization : float
        Most by which the share of the machine in use may fall.
    """

    factor: float = 1.5
    grace: int = 3600
    utilization: float = 0.005

    def broken(self, current: Summary, other: Summary) -> Iterator[str]:
        """Yield what `other` makes worse than it may."""
        for name, before in current.queues.items():
            yield from self._longer(f"95 % wait of queue {name}", before["p95_wait"], other.queues[name]["p95_wait"])
        yield from self._longer("longest wait", current["max_wait"], other["max_wait"])
        if other["utilization_window"] < current["utilization_window"] - self.utilization:
            yield (
                f"utilization falls from {100 * current['utilization_window']:.1f} to "
                f"{100 * other['utilization_window']:.1f} %"
            )

    def _longer(self, what: str, before: float, after: float) -> Iterator[str]:
        if after > max(self.factor * before, before + self.grace):
            yield f"{what} grows from {before / 3600:.1f} to {after / 3600:.1f} h"


def touched(base: SiteConfig, other: SiteConfig) -> list[str]:
    """List the paths that `other` changes although the base configuration marks them ``fixed``.

    Of a queue that is gone, a field counts as kept where every queue that takes its jobs has the same.
    """
    found = [name for name in ("mode", "order", "backfill", "pool") if getattr(base, name) != getattr(other, name)]
    later = {queue.name: queue for queue in other.queues}
    for queue in base.queues:
        if queue.name not in later:
            heirs = [heir for heir in other.queues if _meet(queue, heir)]
            found += [
                f"queues.{queue.name}.{name}"
                for name in type(queue).model_fields
                if not heirs or any(getattr(heir, name) != getattr(queue, name) for heir in heirs)
            ]
            continue
        found += [
            f"queues.{queue.name}.{name}"
            for name in type(queue).model_fields
            if getattr(queue, name) != getattr(later[queue.name], name)
        ]
    return [path for path in found if base.is_fixed(path)]


def _meet(a: QueueConfig, b: QueueConfig) -> bool:
    """Tell whether a job could enter both."""
    cores = max(a.cores[0], b.cores[0]) <= min(a.cores[1], b.cores[1])
    return cores and max(a.walltime[0], b.walltime[0]) < min(a.walltime[1], b.walltime[1])
