"""A stream of any number of jobs at a constant offered load, for scaling benchmarks."""

from __future__ import annotations

import numpy as np
import pandas as pd

import parsim
from parsim.model.workload import MAX_SPAN
from qconf.errors import InputError

#: Epoch second of the first submission: 2020-01-01 UTC.
START = 1_577_836_800
WALLTIMES = np.array([1, 2, 4, 8, 12, 24], dtype=np.int64) * 3600
WIDEST = 1 / 4  # of the machine: wide enough to make jobs wait, too narrow for a few jobs to decide the waits
MEAN_LOG, SIGMA = 7.5, 1.5  # parameters of the runtimes' lognormal: median half an hour
USERS = 500


def stable_workload(
    n: int, cores: int, load: float = 0.8, seed: int = 0, mean_log: float = MEAN_LOG
) -> parsim.Workload:
    """Generate `n` jobs whose queue neither empties nor grows over the years.

    Sizes are powers of two up to a quarter of the machine. Runtimes are lognormal, cut off at a day; the walltime is
    one of the next three usual steps. Submissions are a Poisson process over the span that gives the offered `load`,
    core-seconds / (cores * span). There is one queue, and users 0 to 499 of uneven activity. `mean_log` is the mean
    logarithm of the runtimes in seconds; a smaller one keeps many jobs within parsim's 68 years. Raises `InputError` if
    a number is out of range, or the submissions span more seconds than parsim takes.
    """
    if n < 1 or cores < 1:
        raise InputError("must be at least 1", field="jobs" if n < 1 else "cores", value=min(n, cores))
    if not 0 < load <= 2:
        raise InputError("must be above 0 and at most 2", field="load", value=load)
    if seed < 0:
        raise InputError("must not be negative", field="seed", value=seed)
    rng = np.random.default_rng(seed)
    steps = max(int(np.log2(max(cores * WIDEST, 1))), 0)
    size = np.left_shift(np.int64(1), rng.integers(0, steps + 1, n))
    runtime = np.clip(np.exp(mean_log + SIGMA * rng.standard_normal(n)), 1, WALLTIMES[-1]).astype(np.int64)
    step = np.searchsorted(WALLTIMES, runtime) + rng.integers(0, 3, n)
    walltime = WALLTIMES[np.minimum(step, WALLTIMES.size - 1)]
    submit = np.cumsum(rng.standard_exponential(n))
    span = float(size @ runtime) / (cores * load)
    if span > MAX_SPAN:
        message = f"at load {load:g} these jobs span {span:.2g} s, more than the {MAX_SPAN} s that can be simulated"
        raise InputError(message, field="jobs", value=n)
    submit *= span / submit[-1]
    user = (USERS * rng.random(n) ** 3).astype(np.int64)
    return parsim.Workload(START + submit.astype(np.int64), size, runtime, walltime, user=user)


def as_history(workload: parsim.Workload) -> pd.DataFrame:
    """Return a `stable_workload` as a table with the columns of a history."""
    return pd.DataFrame(
        {
            "job_id": np.arange(1, len(workload) + 1),
            "submit": workload.submit,
            "runtime": workload.runtime,
            "walltime": workload.walltime,
            "cores": workload.cores,
            "queue": "batch",
            "user": "u" + pd.Series(workload.user + 1).astype(str).str.zfill(3),
        }
    )
