"""Charges of each job for a second of run time: rule "charges and decay" of docs/reference/simulator.md."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from parsim.model.node_types import CORES, Request
from parsim.model.system import System
from parsim.model.workload import Column, Workload

PARTS = 1 << 16  #: rates are whole numbers of 1 / PARTS, so that sums do not depend on their order
MOST = 1 << 62


def rates(workload: Workload, system: System) -> tuple[Column, int]:
    """Return the charge of a second of each job, counted in 1 / `parts`.

    Parameters
    ----------
    workload : Workload
    system : System
        Gives `Fairshare.charges`, `Queue.charges` and `QOS.usage_factor`.

    Returns
    -------
    rates : ndarray(int64), shape (n,)
    parts : int

    Raises
    ------
    ValueError
        The weights are so large that use would not fit 62 bits.
    """
    factors = {qos.name: qos.usage_factor for qos in system.qos}
    by_queue = [queue.charges or system.fairshare.charges for queue in system.queues]
    if not any(by_queue) and all(factor == 1 for factor in factors.values()):
        return workload.cores.copy(), 1  # those of a workload are read-only, another type to a kernel
    columns = np.stack([workload.queue, workload.qos, workload.request, workload.cores])
    kinds, which = np.unique(columns, axis=1, return_inverse=True)
    found = np.empty(kinds.shape[1], dtype=np.int64)
    for k, (queue, qos, request, cores) in enumerate(kinds.T.tolist()):
        wanted = workload.requests[request] if request >= 0 else ()
        rate = rate_of(by_queue[queue], cores, wanted, most=system.fairshare.charged == "max")
        factor = factors.get(workload.qos_name(qos), 1) if qos >= 0 else 1
        found[k] = min(round(rate * decimal(factor) * PARTS), MOST)
    densest = float((found / kinds[3]).max(initial=0))
    if densest * system.cores * system.fairshare.decay_time >= MOST:
        raise ValueError("fairshare.charges: the weights are so large that uses could not be counted")
    if not (found % PARTS).any():
        return (found // PARTS)[which.reshape(-1)], 1
    return found[which.reshape(-1)], PARTS


def rate_of(charges: tuple[tuple[str, float], ...], cores: int, request: Request, *, most: bool = False) -> Fraction:
    """Return the sum of a job's amounts times `charges`, or with `most` the largest; without charges, its cores."""
    if not charges:
        return Fraction(cores)
    amounts = {
        name: cores if name == CORES else sum(chunk.count * chunk.amount(name) for chunk in request)
        for name, _ in charges
    }
    parts = [decimal(weight) * amounts[name] for name, weight in charges]
    return max(parts) if most else sum(parts, Fraction(0))


def decimal(number: float) -> Fraction:
    """Return the shortest decimal number that reads as this float, exactly."""
    return Fraction(repr(float(number)))
