"""One list on many sizes of its partition: thousands of small simulations in one call."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from parsim.kernels.easy import easy
from parsim.kernels.state import NEVER
from parsim.prepared import check_started, prepare
from parsim.workload import Workload


@njit(cache=True, nogil=True)
def _tabulate(jobs, sizes, backfill, bits, numbers, waits, ends, start):  # type: ignore[no-untyped-def]
    """Fill total waits and last ends for ascending sizes; from the first size without any wait on nothing changes.

    It ends at the first size on which not all jobs start, with a total of -1.
    """
    n = jobs.size
    for k in range(sizes.shape[0]):
        easy(jobs, 0, np.int64(0), sizes[k], backfill, bits, numbers, numbers, waits[:0], NEVER, 0, start)
        total = 0
        last = 0
        for j in range(n):
            if start[j] < 0:
                waits[k] = -1
                return
            total += start[j] - jobs[j].submit
            last = max(last, start[j] + jobs[j].runtime)
        waits[k] = total
        ends[k] = last
        if total == 0:
            waits[k:] = 0
            ends[k:] = last
            return


def waits_by_size(
    workload: Workload, sizes: ArrayLike, *, backfill: bool = True
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Simulate a workload alone, under EASY, on each of many sizes.

    Parameters
    ----------
    workload : Workload
        Ascending by submit.
    sizes : array_like of int, shape (k,)
        Ascending; none smaller than the widest job.
    backfill : bool
        False is FCFS.

    Returns
    -------
    waits : ndarray(int64), shape (k,)
        Sum of all waits, seconds.
    spans : ndarray(int64), shape (k,)
        First submit to last end, seconds.

    Raises
    ------
    ValueError
        Sizes that are not ascending or do not hold the widest job, or jobs too long for one simulation.
    """
    sizes = np.ascontiguousarray(sizes, dtype=np.int64)
    if sizes.ndim != 1 or (np.diff(sizes) < 0).any():
        raise ValueError("sizes: expected one ascending dimension")
    waits, spans = np.zeros(sizes.size, dtype=np.int64), np.zeros(sizes.size, dtype=np.int64)
    if not len(workload) or not sizes.size:
        return waits, spans
    if sizes[0] < workload.cores.max():
        raise ValueError(f"sizes[0]: {sizes[0]} is below the widest job of {workload.cores.max()} cores")
    if (np.diff(workload.submit) < 0).any():
        raise ValueError("workload: expected ascending submits")
    prepared = prepare(workload)
    numbers, start = np.arange(len(workload), dtype=np.int32), np.empty(len(workload), dtype=np.int64)
    _tabulate(prepared.jobs, sizes, backfill, prepared.bits, numbers, waits, spans, start)
    if waits.min() < 0:
        check_started(prepared, start)
    return waits, spans
