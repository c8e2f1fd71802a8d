"""One list on many sizes of its partition: thousands of small simulations in one call."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from parsim.engine.compile.compiled import on_disk
from parsim.engine.fast.easy import easy
from parsim.model.system import System
from parsim.model.workload import Workload
from parsim.prepare.columns import prepare
from parsim.prepare.packing import most_looks
from parsim.simulate import run_lines


@on_disk
def _tabulate(jobs, sizes, backfill, bits, numbers, looks, more, waits, ends, start):  # type: ignore[no-untyped-def]
    """Fill total waits and last ends for ascending sizes; from the first size without any wait on nothing changes.

    Stop at the first size on which `easy` gives up in a deep queue; return the number of sizes before.
    """
    n = jobs.size
    for k in range(sizes.shape[0]):
        easy(jobs, np.int64(0), np.int64(0), sizes[k], backfill, bits, numbers, numbers, waits[:0], looks, more, start)
        total = 0
        last = 0
        for j in range(n):
            if start[j] < 0:
                return k
            total += start[j] - jobs[j].submit
            last = max(last, start[j] + jobs[j].runtime)
        waits[k] = total
        ends[k] = last
        if total == 0:
            waits[k:] = 0
            ends[k:] = last
            break
    return sizes.shape[0]


def waits_by_size(
    workload: Workload, sizes: ArrayLike, *, backfill: bool = True
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Simulate a workload in one list under EASY on each of many sizes, without its dependencies and quotas.

    Parameters
    ----------
    workload : Workload
        Ascending by submit.
    sizes : array_like of int, shape (k,)
        Cores, ascending; none smaller than the widest job.
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
    prepared = prepare(workload).one_list
    depth = prepared.depths["table"]
    numbers, start = np.arange(len(workload), dtype=np.int32), np.empty(len(workload), dtype=np.int64)
    done = 0
    while done < sizes.size:
        if depth.expected():
            begun = run_lines(prepared, System(int(sizes[done]), backfill=backfill)).start
            waits[done] = (begun - prepared.jobs["submit"]).sum()
            spans[done] = (begun + prepared.jobs["runtime"]).max()
            done += 1
            if not waits[done - 1]:  # nor does any job wait on larger ones
                spans[done:] = spans[done - 1]
                break
        else:
            rest = (waits[done:], spans[done:], start)
            done += _tabulate(prepared.jobs, sizes[done:], backfill, prepared.bits, numbers, *most_looks(), *rest)
            depth.found(deep=done < sizes.size)
    return waits, spans
