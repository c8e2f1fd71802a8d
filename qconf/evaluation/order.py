"""Checks of a priority formula against the jobs of a history, for warnings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from parsim import Workload, simulate
from parsim.metrics import bounded_slowdown
from parsim.model.formula import of_requests, parse
from parsim.model.system import ORDERS
from qconf.config import SiteConfig

#: Eligible times, seconds, at which a formula is evaluated: at submission, and after usual and long waits.
WAITS = (0, 60, 3600, 6 * 3600, 86400, 7 * 86400)


def values(order: str, workload: Workload, config: SiteConfig) -> NDArray[np.float64]:
    """Evaluate a formula for each job after each of `WAITS`, shape (waits, jobs); NaN where undefined."""
    priority = np.array([queue.priority for queue in config.queues], dtype=np.float64)[workload.queue]
    none, whole = np.zeros(len(workload)), np.ones(len(workload))
    of = np.array([*((qos.priority, qos.target or 0.0) for qos in config.qos), (0.0, 0.0)])  # the last of no QOS
    requests = of_requests(workload.requests)[:, workload.request]
    expected = workload.expected_runtime
    base = [priority, workload.walltime, workload.cores, none, whole, *of[workload.qos].T, *requests, expected]
    formula = parse(order)
    return np.stack([formula.values(np.stack(base), np.full(len(workload), float(wait))) for wait in WAITS])


def order_warnings(config: SiteConfig, workload: Workload) -> list[str]:
    """Warn if the configured formula gives all jobs the same value, or none, for jobs that `config` routed."""
    if config.order in ORDERS or not len(workload):
        return []
    found = values(config.order, workload, config)
    undefined = ~np.isfinite(found)
    jobs = int(undefined.any(axis=0).sum())
    warnings = []
    if jobs:
        wait, job = (int(index[0]) for index in np.nonzero(undefined))
        example = f"{workload.cores[job]} cores, {workload.walltime[job]} s of walltime, {WAITS[wait]} s of waiting"
        warnings.append(
            f"order: {config.order} has no value for {jobs} of the {len(workload)} jobs, such as one with {example} "
            "(overflow, a division by 0, or the root or logarithm of what has none): there it counts as 0"
        )
    if config.reads_estimate:
        warnings.append(f"order: {_of_estimates(config, workload)}")
    counted = np.where(undefined, 0.0, found)
    if np.ptp(counted) == 0 and not parse(config.order).uses_shares:
        warnings.append(f"order: {config.order} is the same for every job of this history: first come, first served")
    return warnings


def _of_estimates(config: SiteConfig, workload: Workload) -> str:
    """Return sentences on the errors of the order's run time estimates and their effect, or why there are none."""
    if not workload.estimate.any():
        return "the history tells of no job that ended before another came: estimate is the walltime"
    true, expected = workload.effective_runtime, workload.expected_runtime
    ratio, of_walltime = (float(np.median(each / true)) for each in (expected, workload.walltime))
    both = [simulate(each, config.system()) for each in (workload, replace(workload, estimate=workload.walltime))]
    means = np.array([[each.wait.mean(), bounded_slowdown(each).mean()] for each in both])
    wait, slowdown = means[0] / np.maximum(means[1], 1.0)
    by = "" if (workload.user >= 0).any() else ", from cores and walltime alone, as the history has no users"
    return (
        f"in the middle estimate is {ratio:.1f} times the run time{by}, the walltime {of_walltime:.1f} times; "
        f"{(expected < true).mean():.0%} of the jobs run longer than expected; mean wait and bounded slowdown are "
        f"{wait:.2f} and {slowdown:.2f} of those by walltimes"
    )
