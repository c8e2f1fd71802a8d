"""What a formula, as the order of waiting jobs, makes of the jobs of a history."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parsim import Workload
from parsim.model.formula import of_requests, parse
from parsim.model.system import ORDERS
from qconf.config import SiteConfig

#: Eligible times, seconds, at which a formula is tried: at submission, and after waits that are usual and long.
WAITS = (0, 60, 3600, 6 * 3600, 86400, 7 * 86400)


def values(order: str, workload: Workload, config: SiteConfig) -> NDArray[np.float64]:
    """Evaluate a formula for each job after each of `WAITS`, shape (waits, jobs); NaN where it is undefined."""
    priority = np.array([queue.priority for queue in config.queues], dtype=np.float64)[workload.queue]
    none, whole = np.zeros(len(workload)), np.ones(len(workload))
    of = np.array([*((qos.priority, qos.target or 0.0) for qos in config.qos), (0.0, 0.0)])  # the last of no QOS
    requests = of_requests(workload.requests)[:, workload.request]
    expected = workload.expected_runtime
    base = [priority, workload.walltime, workload.cores, none, whole, *of[workload.qos].T, *requests, expected]
    formula = parse(order)
    return np.stack([formula.values(np.stack(base), np.full(len(workload), float(wait))) for wait in WAITS])


def order_warnings(config: SiteConfig, workload: Workload) -> list[str]:
    """Warn of a formula that orders nothing, or has no value, for the jobs of a history that `config` routed."""
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
    if config.reads_estimate and not workload.estimate.any():
        warnings.append("order: the history tells of no job that ended before another came: estimate is the walltime")
    elif config.reads_estimate and (workload.user < 0).all():
        warnings.append("order: the history has no users: estimate goes by cores and walltime alone")
    counted = np.where(undefined, 0.0, found)
    if np.ptp(counted) == 0 and not parse(config.order).uses_shares:
        warnings.append(f"order: {config.order} is the same for every job of this history: first come, first served")
    return warnings
