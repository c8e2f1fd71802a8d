"""What a configuration gives in a month: the means to be lowered, the tails to be watched, and how they compare."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parsim import System, Workload, metrics, simulate
from qconf.tuning.month import Month
from qconf.tuning.rating import log_ratios
from qconf.tuning.variants import ordered


@dataclass(frozen=True, eq=False)
class Measure:
    """What one configuration gives: aims are mean wait and bounded slowdown, tails the longest waits.

    Attributes
    ----------
    aims : ndarray(float64), shape (3, 2)
        Of all jobs, of the earlier and of the later half.
    longest, late : ndarray(float64), shape (Q,)
        Longest wait, 0 without jobs, and 95th percentile of the waits, NaN without jobs, of each base queue.
    """

    aims: NDArray[np.float64]
    longest: NDArray[np.float64]
    late: NDArray[np.float64]


def measure(month: Month, routed: Workload, system: System) -> Measure:
    """Simulate a candidate, whose queues the jobs of `routed` have; tails are those of the base's queues."""
    schedule = simulate(routed, system)
    slowdown = metrics.bounded_slowdown(schedule)
    middle = max(len(schedule) // 2, 1)
    parts = (slice(None), slice(None, middle), slice(min(middle, len(schedule) - 1), None))
    waits = [schedule.wait[month.workload.queue == q] for q in range(len(month.base.queues))]
    return Measure(
        aims=np.array([[schedule.wait[part].mean(), slowdown[part].mean()] for part in parts]),
        longest=np.array([wait.max(initial=0) for wait in waits], dtype=np.float64),
        late=np.array([metrics.p95(wait) for wait in waits]),
    )


def of_base(month: Month) -> Measure:
    """Simulate the base."""
    return month.remember("base", lambda: measure(month, month.workload, month.base.system()), lasting=True)


def of_first_come(month: Month) -> Measure:
    """Simulate the shared machine, first come first served within the queues' priorities, and within what is fixed."""

    def simulated() -> Measure:
        return measure(month, month.workload, ordered(month.base, "fcfs").system())

    return month.remember("first come", simulated, lasting=True)


def logarithms(month: Month, measure: Measure) -> NDArray[np.float64]:
    """Log ratios of mean wait, slowdown and longest wait to the base's, of the longest to fcfs-easy's; shape (4,)."""
    now, then, plain = (
        np.array([*each.aims[0], each.longest.max()]) for each in (measure, of_base(month), of_first_come(month))
    )
    return np.array([*log_ratios(now, then), log_ratios(now, plain)[2]])
