"""Generated job sets like the two that dynP with bounds was studied on.

The paper gives the means, peaks of the widths at powers of two, and two medium utilizations of each set. It does not
say at which shrinking factors; taken for 0.75 and 0.6, both give one mean of width times run time: wide jobs run
shorter. The shapes are ours, found by a search for the published response times of SJF, FCFS and LJF: lognormal run
times and estimates above them, both correlated with the width, and submissions that come in bursts.

References
----------
Streit, "On Job Scheduling for HPC-Clusters and the dynP Scheduler", HiPC 2001, sections 3 and 6, Table 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.signal import lfilter
from scipy.special import ndtri

from parsim import Workload

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Share of the jobs whose width is a power of two (one node included).
POWERS = 0.75
#: Correlation of the rate of submissions from one job to the next.
LASTING = 0.98
LEAST_LOAD = 0.75  # the shrinking factor of `JobSet.utilization`
NARROW = 0.9  # most nodes added at random to rank jobs of the same width


@dataclass(frozen=True, slots=True)
class JobSet:
    """Means of a job set (nodes; seconds of run time, estimate, and between submissions), and its shape."""

    jobs: int
    nodes: float
    runtime: float
    estimate: float
    interarrival: float
    machine: int = 96
    #: At the shrinking factor 0.75, without jobs left at the end; None: width and run time are independent.
    utilization: float | None = None
    spread: float = 1.5  #: sigma of the lognormal run times
    estimate_spread: float = 1.0  #: sigma of the estimates' lognormal excess over the run time
    wide: float = 0.0  #: correlation of that excess with the width
    long: float = 0.0  #: correlation of that excess with the run time
    bursts: float = 0.0  #: sigma of the lognormal rate of submissions


JOB_SETS = {
    "set1": JobSet(
        8469, 13.49, 2835.83, 6697.88, 628.19,
        utilization=0.63, spread=1.87, estimate_spread=0.59, wide=-0.7, long=0.03, bursts=0.65,
    ),
    "set2": JobSet(
        8166, 10.11, 6697.88, 21634.00, 1277.34,
        utilization=0.58, spread=0.83, estimate_spread=1.38, wide=-0.09, long=0.58, bursts=0.81,
    ),
}  # fmt: skip


def generate_job_set(job_set: JobSet, seed: int = 0) -> Workload:
    """Generate a job set of one queue, without users, that has the given means up to rounding."""
    rng = np.random.default_rng(seed)
    n = job_set.jobs
    width = _widths(job_set, rng)
    wide = ndtri((np.argsort(np.argsort(width + NARROW * rng.random(n))) + 0.5) / n)
    own, other, rate = rng.standard_normal((3, n))
    long = _lengths(job_set, width, wide, own)
    runtime = _with_total(np.exp(job_set.spread * long), round(job_set.runtime * n), 1)
    rest = max(1 - job_set.wide**2 - job_set.long**2, 0.0)
    beyond = job_set.wide * wide + job_set.long * long + np.sqrt(rest) * other
    beyond_total = round(job_set.estimate * n) - int(runtime.sum())
    walltime = runtime + _with_total(np.exp(job_set.estimate_spread * beyond), beyond_total, 0)
    lasting = lfilter([np.sqrt(1 - LASTING**2)], [1, -LASTING], rate[1:])
    gaps = rng.exponential(size=n - 1) * np.exp(job_set.bursts * lasting)
    submit = np.concatenate(([0], np.cumsum(_with_total(gaps, round(job_set.interarrival * (n - 1)), 0))))
    return Workload(submit, width, runtime, walltime)


def _lengths(job_set: JobSet, width: Ints, wide: Floats, own: Floats) -> Floats:
    """Return normal deviates of the run times, correlated with the width so that the set has its utilization."""
    if job_set.utilization is None:
        return own
    area = job_set.utilization * job_set.machine * job_set.interarrival * LEAST_LOAD

    def mixed(share: float) -> Floats:
        return np.asarray(share * wide + np.sqrt(1 - share**2) * own)

    def beyond(share: float) -> float:
        runtime = np.exp(job_set.spread * mixed(share))
        return float((width * runtime).sum() / runtime.sum()) * job_set.runtime - area

    return mixed(brentq(beyond, -0.95, 0.95))


def _with_total(values: Floats, total: int, least: int) -> Ints:
    """Scale positive numbers to integers of at least `least` that sum to `total`."""
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
    # Jobs between the peaks get the missing nodes, one each, so the peaks stay.
    missing = round(job_set.nodes * job_set.jobs) - int(widths.sum())
    step = 1 if missing > 0 else -1
    while missing:
        apart = ~np.isin(widths, every[power]) & (widths + step >= 1) & (widths + step <= job_set.machine)
        rows = rng.permutation(np.flatnonzero(apart))[: abs(missing)]
        widths[rows] += step
        missing -= step * rows.size
    return widths
