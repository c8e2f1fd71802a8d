"""Measures of a configuration on a period: means and tails, compared with first come, first served."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from parsim import System, Workload, simulate
from qconf.config import SiteConfig
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import Period, cached
from qconf.evaluation.score import excess, log_ratios
from qconf.evaluation.targets import missed
from qconf.parallel import parallel_map
from qconf.strategies.auto.frame import Frame


@dataclass(frozen=True, eq=False)
class Measure:
    """Means (to be lowered) and tails (to be limited) of one configuration on a period, waits in seconds."""

    #: Mean wait and mean bounded slowdown of all jobs, of the first half, and of the second half, shape (3, 2).
    means: NDArray[np.float64]
    longest: NDArray[np.float64]  # longest wait of each base queue, 0 without jobs, shape (Q,)
    late: NDArray[np.float64]  # 95th percentile of the waits of each base queue, NaN without jobs, shape (Q,)
    missed: float  # log score of the missed targets


def measure(period: Period, routed: Workload, system: System) -> Measure:
    """Simulate a system on routed jobs; tails are by the queues of the base."""
    found = Outcome(period, simulate(routed, system))
    middle = max(len(routed) // 2, 1)
    halves = slice(None, middle), slice(min(middle, len(routed) - 1), None)
    return Measure(
        means=np.array([found.means(part) for part in (slice(None), *halves)]),
        longest=found.longest,
        late=found.p95,
        missed=missed(found),
    )


@cached
def of_base(period: Period) -> Measure:
    """Simulate the base."""
    return measure(period, period.routed(period.base), period.system(period.base))


@cached
def of_first_come(period: Period) -> Measure:
    """Simulate the shared machine under first come, first served, with the base's fixed settings."""
    config = Frame(frozenset(("limits", "starvation"))).config(period, "fcfs")
    return measure(period, period.routed(config), period.system(config))


@cached
def of_orders(period: Period, system: System, orders: tuple[str, ...], workers: int) -> list[Measure]:
    """Simulate a system under each of these orders, with the base's shortpools and `hours`."""
    jobs = period.routed(period.base)
    tasks = [(period, jobs, period.dedicated(replace(system, order=order))) for order in orders]
    return parallel_map(workers, measure, tasks)


@cached
def _known(period: Period) -> dict[SiteConfig, Measure]:
    """Return the cache of `of_configs` for a period."""
    del period
    return {}


def of_configs(period: Period, configs: Sequence[SiteConfig], workers: int) -> list[Measure]:
    """Simulate each configuration once."""
    known = _known(period)
    new = [config for config in dict.fromkeys(configs) if config not in known]
    tasks = [(period, period.routed(config), period.system(config)) for config in new]
    known.update(zip(new, parallel_map(workers, measure, tasks), strict=True))
    return [known[config] for config in configs]


def logarithms(period: Period, measure: Measure, seen: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log ratios to FCFS of mean wait, slowdown and longest wait, then the excess, shape (4,).

    `seen` has the longest wait that the site has seen in each queue, shape (Q,). If the site has targets, their log
    score is a fifth column.
    """
    now, then = (np.array([*each.means[0], each.longest.max()]) for each in (measure, of_first_come(period)))
    targets = [measure.missed] if period.base.targets else []
    return np.array([*log_ratios(now, then), excess(measure.longest, seen), *targets])
