"""What a configuration was worth on jobs that it had not seen, against the current one."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from parsim import Schedule, Workload, metrics
from parsim.metrics import Summary
from parsim.system import LIMITS
from qconf.config import PoolConfig, QueueConfig, SiteConfig
from qconf.tuning.month import Month

DAY = 86400
MONTH = 30  # days
FEW = 20  # jobs, below which the 95th percentile of their waits is as good as the longest: said beside it


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
    start, end : int
        Those submitted in ``[start, end)`` are counted.
    warmup : int
        Seconds before `start` from which there are jobs.
    """

    month: Month
    start: int
    end: int
    warmup: int

    @classmethod
    def of(cls, month: Month, start: int, end: int, warmup: int = 0) -> Trial:
        """Judge the jobs submitted in ``[start, end)`` after `warmup` seconds of earlier ones."""
        return cls(month.between(start - warmup, end), start, end, warmup)

    @cached_property
    def counted(self) -> NDArray[np.bool_]:
        """Which jobs are judged, shape (n,)."""
        return self.month.workload.submit >= self.start

    @property
    def judged(self) -> Month:
        """The jobs that are counted."""
        return self.month.between(self.start, self.end)

    @property
    def days(self) -> int:
        """Whole days that are judged."""
        return (self.end - self.start) // DAY

    def run(self, subject: Simulated) -> Summary:
        """Simulate what is proposed; the summary counts the judged jobs, by the base configuration's queues."""
        schedule = subject.simulate(self.month)
        return metrics.summary(self.month.workload, schedule, self.month.base.system(), counted=self.counted)

    @cached_property
    def _by_day(self) -> list[NDArray[np.int64]]:
        begins = np.searchsorted(self.month.workload.submit, self.start + DAY * np.arange(self.days + 1))
        return [np.arange(*each) for each in pairwise(begins)]

    def redrawn(self, rng: np.random.Generator) -> Trial:
        """Return as many days of submissions, those of the warm-up too, each drawn from the judged whole days."""
        warm = self.warmup // DAY
        drawn = rng.integers(0, self.days, warm + self.days)
        rows = [self._by_day[day] for day in drawn]
        moved = np.repeat((np.arange(-warm, self.days) - drawn) * DAY, [len(each) for each in rows])
        jobs = self.month.workload.take(np.concatenate(rows))
        submit = jobs.submit + moved
        shuffled = Workload(submit, jobs.cores, jobs.runtime, jobs.walltime, queue=jobs.queue, user=jobs.user)
        whole = self.start + self.days * DAY
        return Trial(Month(shuffled, self.month.base, self.month.weights), self.start, whole, warm * DAY)


@dataclass(frozen=True)
class Guarded:
    """What the guard rails look at.

    Attributes
    ----------
    p95 : dict of str to float
        95th percentile of the waits in each queue of the base, seconds; NaN without jobs.
    longest : float
        Longest wait, seconds.
    used : float
        Share of the machine in use from first to last submit.
    jobs : dict of str to int
        Jobs of each queue, where they were counted.
    """

    p95: dict[str, float]
    longest: float
    used: float
    jobs: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, summary: Summary) -> Guarded:
        """Take it from metrics."""
        p95 = {name: values["p95_wait"] for name, values in summary.queues.items()}
        jobs = {name: int(values["jobs"]) for name, values in summary.queues.items()}
        return cls(p95, summary["max_wait"], summary["utilization_window"], jobs)


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
        Most by which the share of the machine in use may fall in 30 days, and so much work in fewer: what is put off at
        their end, long jobs after short ones, does not grow with the days.
    """

    factor: float = 1.5
    grace: int = 3600
    utilization: float = 0.005

    def broken(self, before: Guarded, after: Guarded, days: float) -> dict[str, str]:
        """Return what becomes worse than it may in so many judged days, and how, for a person to read."""
        waits = {
            f"95 % wait of queue {name}": (before.p95[name], after.p95[name], _few(before.jobs.get(name)))
            for name in before.p95
        }
        waits["longest wait"] = before.longest, after.longest, ""
        found = {
            what: f"{what}{few} grows from {then / 3600:.1f} to {now / 3600:.1f} h"
            for what, (then, now, few) in waits.items()
            if now > max(self.factor * then, then + self.grace)
        }
        if before.used - after.used > self.utilization * max(MONTH / days, 1.0):
            found["utilization"] = f"utilization falls from {100 * before.used:.1f} to {100 * after.used:.1f} %"
        return found


def _few(jobs: int | None) -> str:
    """Say of how few jobs a percentile is the longest wait."""
    if jobs is None or jobs >= FEW:
        return ""
    return f" ({jobs} job{'s' * (jobs != 1)})"


def stranded(base: SiteConfig, other: SiteConfig) -> list[str]:
    """Say which jobs that the base runs would wait for ever in a batch system that holds `other`.

    A job stays in its queue while that admits it, else it goes to any that does.
    """
    kept = {queue.name: queue for queue in other.queues}

    def stays(old: QueueConfig) -> bool:
        return old.name in kept and _within(old, kept[old.name])

    found = []
    for queue in other.queues:
        taken = [
            min(base.widest(old), base.reach(old))
            for old in base.queues
            if old.name == queue.name or (not stays(old) and _meet(old, queue))
        ]
        if min(other.widest(queue), max(taken, default=0)) > other.reach(queue):
            found.append(f"jobs of {queue.name} wider than {other.reach(queue)} cores would never start")
    return found


def touched(base: SiteConfig, other: SiteConfig) -> list[str]:
    """List the paths that `other` changes although the base configuration marks them ``fixed``.

    Of a queue that is gone, a field counts as kept where every queue that takes its jobs has the same; a limit is
    changed by a second queue that takes its jobs, since each counts its own. What no longer counts is changed too: a
    partition where the machine becomes shared, a priority that a formula does not ask for.
    """
    found = [name for name in ("mode", "order", "backfill") if getattr(base, name) != getattr(other, name)]
    if base.reserve_after != other.reserve_after or (base.patience and not other.patience):
        found.append("reserve_after")
    found += [
        f"pool.{name}"
        for name in PoolConfig.model_fields
        if getattr(base.pool, name, None) != getattr(other.pool, name, None)
        or (base.mode == "hybrid") != (other.mode == "hybrid")
    ]
    if base.mode == other.mode == "hybrid" and base.threshold == other.threshold:  # said or not
        found = [path for path in found if path != "pool.threshold"]
    later = {queue.name: queue for queue in other.queues}
    for queue in base.queues:
        if queue.name not in later:
            heirs = [heir for heir in other.queues if _meet(queue, heir)]
            found += [
                f"queues.{queue.name}.{name}"
                for name in type(queue).model_fields
                if not heirs
                or any(
                    getattr(heir, name) != getattr(queue, name) or _silenced(name, queue, base, heir, other)
                    for heir in heirs
                )
            ]
            continue
        beside = any(_comes(base, heir, queue) for heir in other.queues)
        found += [
            f"queues.{queue.name}.{name}"
            for name in type(queue).model_fields
            if getattr(queue, name) != getattr(later[queue.name], name)
            or (beside and name in LIMITS and getattr(queue, name) is not None)
            or _silenced(name, queue, base, later[queue.name], other)
        ]
    return [path for path in found if base.is_fixed(path)]


#: Fields of a queue that count under some configurations only.
SOMETIMES = ("partition", "priority")


def _counts(name: str, queue: QueueConfig, config: SiteConfig) -> bool:
    """Tell whether one of `SOMETIMES` makes a difference."""
    if name == "partition":
        return config.mode != "shared"
    return config.asks_priority or (
        queue.reservation and config.mode != "shared"
    )  # these go by submission in any order


def _silenced(name: str, queue: QueueConfig, base: SiteConfig, new: QueueConfig, other: SiteConfig) -> bool:
    """Tell whether what a field says counts in the base and no more."""
    given = name in SOMETIMES and bool(getattr(queue, name))
    return given and _counts(name, queue, base) and not _counts(name, new, other)


def _comes(base: SiteConfig, heir: QueueConfig, queue: QueueConfig) -> bool:
    """Tell whether a new queue takes jobs of one of the base that no other of the base was there to take."""
    if heir.name in base.names or not _meet(queue, heir):
        return False
    return not any(old.name != queue.name and _within(heir, old) for old in base.queues)


def _within(inner: QueueConfig, outer: QueueConfig) -> bool:
    """Tell whether all jobs that could enter the one could enter the other."""
    cores = outer.cores[0] <= inner.cores[0] and inner.cores[1] <= outer.cores[1]
    return cores and outer.walltime[0] <= inner.walltime[0] and inner.walltime[1] <= outer.walltime[1]


def _meet(a: QueueConfig, b: QueueConfig) -> bool:
    """Tell whether a job could enter both."""
    cores = max(a.cores[0], b.cores[0]) <= min(a.cores[1], b.cores[1])
    return cores and max(a.walltime[0], b.walltime[0]) < min(a.walltime[1], b.walltime[1])
