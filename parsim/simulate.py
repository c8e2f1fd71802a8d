"""The public simulator: checks, packs, calls a kernel, unpacks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parsim.kernels import layout as at
from parsim.kernels.changing import changing
from parsim.kernels.easy import easy
from parsim.kernels.machine import run
from parsim.kernels.multiqueue import multiqueue
from parsim.packing import Prepared, pack, pack_formula, prepare, rank
from parsim.schedule import SPANNING, Schedule
from parsim.system import System
from parsim.workload import Workload


def simulate(workload: Workload, system: System) -> Schedule:
    """Decide when and where each job would have started.

    Parameters
    ----------
    workload : Workload
        In any order; ties of submit go by position.
    system : System

    Returns
    -------
    Schedule
        Columns aligned with the workload.

    Raises
    ------
    ValueError
        A job that no place of the system can ever hold, or whose queue it lacks.

    References
    ----------
    Mu'alem and Feitelson, IEEE TPDS 12(6), 2001; Kondameedi and Vadhiyar, CCGrid 2017, section III; Lawson and
    Smirni, JSSPP 2002.
    """
    prepared = prepare(workload)
    _check(prepared, system)
    start, part = np.empty(0, np.int64), np.empty(0, np.int32)
    shares: dict[int, NDArray[np.int64]] = {}
    if len(workload) and system.mode == "multiqueue":
        start = _simulate_multiqueue(prepared, system)
        part = np.zeros(len(workload), dtype=np.int32)
    elif len(workload) and _plain(prepared, system):
        start, part, shares = _simulate_plain(prepared, system)
    elif len(workload) and _changing(system):
        start = _simulate_changing(prepared, system)
        part = np.zeros(len(workload), dtype=np.int32)
    elif len(workload):
        start, part, shares = _simulate_machine(prepared, system)
    runtime, rows = prepared.runtime, prepared.rows
    if rows is not None:
        start, part, runtime = _scatter(start, rows), _scatter(part, rows), _scatter(runtime, rows)
        shares = {int(rows[job]): row for job, row in shares.items()}
    return Schedule(
        submit=workload.submit,
        start=start,
        end=start + runtime,
        cores=workload.cores,
        partition=part,
        shares=shares,
        partition_names=system.partition_names,
    )


def _scatter(values: NDArray[np.generic], rows: NDArray[np.int64]) -> NDArray:  # type: ignore[type-arg]
    out = np.empty_like(values)
    out[rows] = values
    return out


def _check(prepared: Prepared, system: System) -> None:
    """Refuse, before a kernel runs, every job that could never start."""
    if prepared.queues > len(system.queues):
        job = int(np.argmax(prepared.workload.queue))
        raise ValueError(f"{_named('queue', job, prepared)}, but the system has {len(system.queues)} queues")
    count, widest, widest_of_users = prepared.per_queue
    if count.size and widest.max() > system.cores:
        job = int(np.argmax(prepared.workload.cores))
        raise ValueError(f"{_named('cores', job, prepared)} is wider than the machine of {system.cores} cores")
    for i, queue in enumerate(() if system.mode == "multiqueue" else system.queues[: count.size]):
        for name, limit, most in (
            ("max_run_cores", queue.max_run_cores, widest[i]),
            ("max_user_cores", queue.max_user_cores, widest_of_users[i]),
        ):
            if limit is not None and most > limit:
                w = prepared.workload
                concerned = (w.queue == i) & (w.cores > limit) & ((w.user >= 0) | (name == "max_run_cores"))
                job = int(np.argmax(concerned))
                raise ValueError(
                    f"{_named('cores', job, prepared)} is above queues[{i}].{name} = {limit}; the job could never start"
                )


def _named(column: str, job: int, prepared: Prepared) -> str:
    """Say which value of the workload, in its own order, is meant."""
    row = job if prepared.rows is None else int(prepared.rows[job])
    return f"{column}[{row}]: {getattr(prepared.workload, column)[job]}"


def _plain(prepared: Prepared, system: System) -> bool:
    """Whether every list is alone on its cores and its order is constant: the fast kernel's case."""
    if system.order not in ("fcfs", "sjf", "ljf") or system.pool_cores or system.has_limits or system.reservation_delay:
        return False
    if system.mode == "shared":
        return True
    widest = prepared.per_queue[1]
    return bool((widest <= np.array(system.partition_cores[: widest.size])).all())


def _changing(system: System) -> bool:
    """Whether there is one list, ordered by a formula, in which nothing else happens: the other fast kernel's case."""
    starve = any(queue.starvation is not None for queue in system.queues)
    return system.formula is not None and system.mode == "shared" and not system.has_limits and not starve


Outcome = tuple[NDArray[np.int64], NDArray[np.int32], dict[int, NDArray[np.int64]]]


def _simulate_plain(prepared: Prepared, system: System) -> Outcome:
    workload, bits, jobs = prepared.workload, prepared.bits, prepared.plain
    start = np.empty(len(workload), dtype=np.int64)
    if system.mode == "shared":
        ranks = rank(jobs, workload.queue, system.queues, system.order, bits)
        easy(jobs, system.cores, system.backfill, bits, *ranks, start)
        part = np.zeros(len(workload), dtype=np.int32)
    else:
        part = workload.queue.astype(np.int32)
        for q, queue in enumerate(system.queues):
            members = np.flatnonzero(workload.queue == q)
            if members.size:
                own = np.empty(members.size, dtype=np.int64)
                mine = jobs[members]
                ranks = rank(mine, np.zeros_like(members), [queue], system.order, bits)
                easy(mine, queue.partition, system.backfill, bits, *ranks, own)
                start[members] = own
    start += workload.submit[0]
    return start, part, {}


def _simulate_changing(prepared: Prepared, system: System) -> NDArray[np.int64]:
    workload = prepared.workload
    start = np.empty(len(workload), dtype=np.int64)
    formula = pack_formula(workload, system)
    changing(prepared.plain, system.cores, system.backfill, system.reservation_delay, prepared.bits, *formula, start)
    start += workload.submit[0]
    return start


def _simulate_multiqueue(prepared: Prepared, system: System) -> NDArray[np.int64]:
    workload = prepared.workload
    start = np.empty(len(workload), dtype=np.int64)
    job_class = np.searchsorted(np.array(system.class_limits, dtype=np.int64), workload.walltime)
    before = np.bincount(job_class, minlength=len(system.class_limits) + 1).cumsum()
    begin = np.concatenate([[0], before[:-1]])
    multiqueue(prepared.plain, system.cores, job_class, np.stack([begin, begin], axis=1), prepared.bits, start)
    start += workload.submit[0]
    return start


def _simulate_machine(prepared: Prepared, system: System) -> Outcome:
    state = pack(prepared, system)
    run(*state)
    start, place = state.start, state.place
    if start.min() < 0:
        stuck = np.flatnonzero(start < 0)
        raise RuntimeError(f"{stuck.size} jobs never started, the first is job {stuck[0]}: a defect of the simulator")
    start += prepared.workload.submit[0]
    if not state.settings[at.SPREAD]:
        return start, place, {}
    spread = np.flatnonzero(place < 0)
    shares = dict(zip(spread.tolist(), state.shares[-1 - place[spread]], strict=True))
    return start, np.maximum(place, SPANNING), shares
