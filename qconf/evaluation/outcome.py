"""The outcome of a configuration on a period: the record that all comparisons of configurations read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from parsim import Schedule, Workload, metrics
from parsim.metrics import Summary
from parsim.metrics.bottleneck import by_run
from qconf.evaluation.period import Period
from qconf.evaluation.score import WEIGHTED

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Outcome:
    """A schedule of a period's jobs, with metrics by the queues of the base configuration."""

    period: Period
    schedule: Schedule  #: of all jobs of the period
    #: Mask of the jobs that metrics count, shape (n,); the others only fill the machine. All by default.
    counted: NDArray[np.bool_] | None = None

    @property
    def rows(self) -> NDArray[np.bool_] | slice:
        """Index of the counted jobs among all."""
        return slice(None) if self.counted is None else self.counted

    @cached_property
    def jobs(self) -> Workload:
        """The counted jobs, in the queues of the base configuration."""
        return self.period.workload.take(self.rows)

    @cached_property
    def wait(self) -> NDArray[np.int64]:
        """Waits of the counted jobs, seconds, shape (m,)."""
        return self.schedule.wait[self.rows]

    @cached_property
    def slowdown(self) -> Floats:
        """Bounded slowdowns of the counted jobs, shape (m,)."""
        return metrics.bounded_slowdown(self.schedule)[self.rows]

    @cached_property
    def queue_waits(self) -> list[NDArray[np.int64]]:
        """Waits of the counted jobs of each base queue, seconds."""
        queue = self.period.workload.queue[self.rows]
        return [self.wait[queue == q] for q in range(len(self.period.base.queues))]

    def queue_wait(self, name: str) -> NDArray[np.int64]:
        """Return the waits of the counted jobs of a base queue, seconds."""
        return self.queue_waits[self.period.base.names.index(name)]

    def group_wait(self, position: int) -> NDArray[np.int64]:
        """Return the waits of the counted jobs of the user group at this position in the base's targets."""
        group = self.period.group
        return self.wait[:0] if group is None else self.wait[group[self.rows] == position]

    def means(self, part: slice = slice(None)) -> Floats:
        """Mean wait (seconds) and mean bounded slowdown of a slice of the counted jobs, shape (2,).

        Weighted if the base configuration gives weights to queues or groups.
        """
        weight = None if self.period.weight is None else self.period.weight[self.rows][part]
        return np.array([np.average(values[part], weights=weight) for values in (self.wait, self.slowdown)])

    @property
    def p95(self) -> Floats:
        """95th percentile of the waits of each base queue, seconds, NaN without jobs, shape (Q,)."""
        return np.array([metrics.p95(wait) for wait in self.queue_waits])

    @property
    def meant(self) -> NDArray[np.int64]:
        """Position of the type of nodes that each counted job is meant for, shape (m,)."""
        return self.period.node_type[self.rows]

    @property
    def p95_nodes(self) -> Floats:
        """95th percentile of the waits of the jobs meant for each type of nodes, seconds, shape (T,)."""
        return np.array([metrics.p95(self.wait[self.meant == t]) for t in range(len(self.period.base.nodes))])

    @property
    def longest(self) -> Floats:
        """Longest wait of each base queue, seconds, 0 without jobs, shape (Q,)."""
        return np.array([wait.max(initial=0) for wait in self.queue_waits], dtype=np.float64)

    @property
    def utilization(self) -> float:
        """Fraction of the bottleneck in use from the first to the last counted submission."""
        counted = np.ones(len(self.schedule), dtype=np.bool_) if self.counted is None else self.counted
        taken, there = by_run(self.schedule, self.period.base.system(), self.period.resource)
        return metrics.utilization_window(self.schedule, there, counted, taken=taken)

    @property
    def summary(self) -> Summary:
        """All metrics, for tables and reports; with the weighted means if there are weights."""
        period = self.period
        found = metrics.summary(
            period.workload, self.schedule, period.base.system(), counted=self.counted, resource=period.resource
        )
        if period.weight is not None:
            found.overall.update(zip(WEIGHTED, self.means().tolist(), strict=True))
        return found
