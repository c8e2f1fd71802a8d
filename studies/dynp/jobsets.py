"""Generated job sets with the means of the two that dynP was first studied with.

The paper gives the means and reports peaks of the widths at powers of two; the shapes are ours: exponential times
between submissions, lognormal run times, estimates above them by a lognormal factor.

References
----------
Streit, "On Job Scheduling for HPC-Clusters and the dynP Scheduler", HiPC 2001, section 3 and Table 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from parsim import Workload

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Share of the jobs whose width is a power of two (one node included).
POWERS = 0.75
#: Sigmas of the lognormal run times and of the factor of the estimates.
RUNTIME_SIGMA = 1.5
ESTIMATE_SIGMA = 1.0


@dataclass(frozen=True, slots=True)
class JobSet:
    """Means of a job set: nodes, and seconds of run time, estimate, and from one submission to the next."""

    jobs: int
    nodes: float
    runtime: float
    estimate: float
    interarrival: float
    machine: int = 96


JOB_SETS = {
    "set1": JobSet(8469, 13.49, 2835.83, 6697.88, 628.19),
    "set2": JobSet(8166, 10.11, 6697.88, 21634.00, 1277.34),
}


def generate_job_set(job_set: JobSet, seed: int = 0) -> Workload:
    """Generate a job set whose means are those given, to the nearest whole total.

    Parameters
    ----------
    job_set : JobSet
    seed : int
        The same seed gives the same jobs.

    Returns
    -------
    Workload
        Of one queue, without users.
    """
    rng = np.random.default_rng(seed)
    n = job_set.jobs
    gaps = _with_total(rng.exponential(size=n - 1), round(job_set.interarrival * (n - 1)), 0)
    runtime = _with_total(rng.lognormal(sigma=RUNTIME_SIGMA, size=n), round(job_set.runtime * n), 1)
    beyond = runtime * rng.lognormal(sigma=ESTIMATE_SIGMA, size=n)
    walltime = runtime + _with_total(beyond, round(job_set.estimate * n) - int(runtime.sum()), 0)
    submit = np.concatenate(([0], np.cumsum(gaps)))
    return Workload(submit, _widths(job_set, rng), runtime, walltime)


def _with_total(values: Floats, total: int, least: int) -> Ints:
    """Scale positive numbers to whole ones of at least `least` that add up to `total`."""
    scaled = values * ((total - least * values.size) / values.sum())
    whole = np.floor(scaled).astype(np.int64)
    missing = total - least * values.size - int(whole.sum())
    whole[np.argsort(whole - scaled, kind="stable")[:missing]] += 1
    result: Ints = whole + least
    return result


def _widths(job_set: JobSet, rng: np.random.Generator) -> Ints:
    """Sample widths with peaks at the powers of two, tilted by ``width ** t`` to their mean."""
    every = np.arange(1, job_set.machine + 1)
    power = (every & (every - 1)) == 0

    def tilted(t: float) -> Floats:
        weight = every.astype(np.float64) ** t
        share: Floats = np.where(power, POWERS, 1 - POWERS) * weight
        share[power] /= weight[power].sum()
        share[~power] /= weight[~power].sum()
        return share

    tilt = brentq(lambda t: float((tilted(t) * every).sum()) - job_set.nodes, -8, 8)
    widths: Ints = rng.choice(every, size=job_set.jobs, p=tilted(tilt))
    # What chance left over goes to jobs between the peaks, a node each, so that the peaks stay.
    missing = round(job_set.nodes * job_set.jobs) - int(widths.sum())
    step = 1 if missing > 0 else -1
    while missing:
        apart = ~np.isin(widths, every[power]) & (widths + step >= 1) & (widths + step <= job_set.machine)
        rows = rng.permutation(np.flatnonzero(apart))[: abs(missing)]
        widths[rows] += step
        missing -= step * rows.size
    return widths
