"""The public simulator: checks a workload, chooses the kernel of the discipline, packs, runs, unpacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.kernels.easy import easy
from parsim.kernels.general import general
from parsim.kernels.multiqueue import multiqueue
from parsim.kernels.queue_head_jobs import HeadJobs, queue_head_jobs
from parsim.kernels.state import State
from parsim.kernels.time_dependent import time_dependent
from parsim.kernels.top_job import top_job
from parsim.packing import (
    Prepared,
    check_started,
    is_formula,
    most_looks,
    pack,
    pack_alike,
    pack_classes,
    pack_limits,
    pack_order,
    pack_plans,
    pack_profile,
    prepare,
    rank,
    wake_ups,
)
from parsim.schedule import SPANNING, Schedule
from parsim.system import Queue, System
from parsim.workload import Column, Workload


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
        A job that no partition of the system can ever hold, or whose queue it lacks; more than 2**28 jobs; or n jobs
        that last more than 2**62 / n seconds from the first submission on, n rounded up to a power of two.

    References
    ----------
    Mu'alem and Feitelson, IEEE TPDS 12(6), 2001; Kondameedi and Vadhiyar, CCGrid 2017, sections II to IV.A;
    Lawson and Smirni, JSSPP 2002.
    """
    prepared = prepare(workload)
    _check(prepared, system)
    start, partition, shares = Outcome(np.empty(0, np.int64), np.empty(0, np.int32), {})
    if len(workload):
        discipline = next(each for each in DISCIPLINES if each.applies(prepared, system))
        start, partition, shares = discipline.run(prepared, system)
        start += prepared.workload.submit[0]
    return Schedule(
        submit=workload.submit,
        start=prepared.restore(start),
        end=prepared.restore(start + prepared.runtime),
        cores=workload.cores,
        partition=prepared.restore(partition),
        shares=shares if prepared.rows is None else {int(prepared.rows[job]): row for job, row in shares.items()},
        partition_names=system.partition_names,
    )


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


class Outcome(NamedTuple):
    """What a discipline decided of jobs that ascend by submit."""

    start: Column  # seconds from the first submit
    partition: NDArray[np.int32]
    shares: dict[int, Column]


class Discipline(NamedTuple):
    """A kernel: which systems it simulates, and what packs its arrays and runs it."""

    name: str
    applies: Callable[[Prepared, System], bool]
    run: Callable[[Prepared, System], Outcome]


CONSTANT = ("fcfs", "sjf", "ljf")  #: orders in which no job passes another as time goes by, unless it starves


def _is_constant_order(prepared: Prepared, system: System) -> bool:
    """Whether every list is alone on its cores and its order is constant."""
    if system.order not in CONSTANT or system.pool_cores or system.has_limits or system.reservation_delay:
        return False
    if system.mode == "shared":
        return True
    widest = prepared.per_queue[1]
    return bool((widest <= np.array(system.partition_cores[: widest.size])).all())


def _run_constant_order(prepared: Prepared, system: System) -> Outcome:
    if system.mode == "shared":
        start = _run_easy(prepared, slice(None), system.queues, system.cores, system)
        return _on_one_partition(start) if start.min() >= 0 else _run_time_dependent(prepared, system)
    queue = prepared.workload.queue
    start = np.empty(queue.size, dtype=np.int64)
    for q, its in enumerate(system.queues):
        members = np.flatnonzero(queue == q)
        if members.size:
            alone = _run_easy(prepared, members, (its,), its.partition, system)
            if alone.min() < 0:
                jobs = replace(prepared.workload.take(members), queue=np.zeros_like(members))
                one_list = System(its.partition, (its,), order=system.order, backfill=system.backfill)
                alone = _run_time_dependent(prepare(jobs), one_list).start + prepared.jobs["submit"][members[0]]
            start[members] = alone
    return Outcome(start, queue.astype(np.int32), {})


def _run_easy(
    prepared: Prepared, members: slice | NDArray[np.intp], queues: Sequence[Queue], cores: int, system: System
) -> Column:
    """Simulate the list of these jobs of these queues alone on so many cores; starts are -1 where it gave up."""
    jobs, bits = prepared.jobs[members], prepared.bits
    queue = prepared.workload.queue if len(queues) > 1 else np.zeros(jobs.size, dtype=np.int64)
    start = np.empty(jobs.size, dtype=np.int64)
    ranks = rank(jobs, queue, queues, system.order, bits)
    easy(jobs, cores, system.backfill, bits, *ranks, most_looks(jobs.size), start)
    return start


def _is_time_dependent(prepared: Prepared, system: System) -> bool:
    """Whether there is one list, ordered by a formula; and if limits hold jobs, visits go to its end (rule 3)."""
    return _is_one_list(system) and is_formula(prepared, system)


def _is_one_list(system: System) -> bool:
    return system.mode == "shared" and (system.backfill or not system.has_limits)


def _run_time_dependent(prepared: Prepared, system: System) -> Outcome:
    jobs, queue, bits = prepared.jobs, prepared.workload.queue, prepared.bits
    start = np.empty(jobs.size, dtype=np.int64)
    formula, fair = pack_order(prepared, system)
    of = pack_alike(prepared, system, formula.columns)
    limits = (system.has_limits, system.formula is not None, *pack_limits(prepared, system))
    keys = wake_ups(jobs, queue, system.queues, bits)
    delay = system.reservation_delay
    time_dependent(jobs, of, system.cores, system.backfill, delay, bits, formula, fair, *limits, keys, start)
    check_started(prepared, start)
    return _on_one_partition(start)


def _run_multiqueue(prepared: Prepared, system: System) -> Outcome:
    start = np.empty(len(prepared.workload), dtype=np.int64)
    job_class, classes = pack_classes(prepared.workload, system)
    multiqueue(prepared.jobs, prepared.alike_in_size, system.cores, job_class, classes, prepared.bits, start)
    check_started(prepared, start)
    return _on_one_partition(start)


def _on_one_partition(start: Column) -> Outcome:
    return Outcome(start, np.zeros(start.size, dtype=np.int32), {})


def _reserves_for_queues(prepared: Prepared, system: System) -> bool:
    """Whether jobs are backfilled as Slurm does; where any is reserved over partitions (rule 9), they are not."""
    if not system.reserves_for_queues or system.mode == "shared":
        return system.reserves_for_queues
    widest = prepared.per_queue[1]
    return bool((widest <= np.maximum(system.partition_cores[: widest.size], system.pool_cores)).all())


def _run_queue_head_jobs(prepared: Prepared, system: System) -> Outcome:
    state = pack(prepared, system)
    begin, end, keeps = np.empty((3, len(system.queues)), dtype=np.int64)
    heads = HeadJobs(begin, end, keeps, np.int64(system.cores_per_node))
    queue_head_jobs(state, system.mode == "shared", pack_profile(prepared, system), heads)
    return _outcome(prepared, state)


def _run_top_job(prepared: Prepared, system: System) -> Outcome:
    state = pack(prepared, system)
    top_job(state, system.plans_limits, system.reserves_nodes, pack_plans(prepared, system))
    return _outcome(prepared, state)


def _run_general(prepared: Prepared, system: System) -> Outcome:
    state = pack(prepared, system, gives_up=True)
    general(state)
    if state.progress["looks"] < 0:
        if _is_one_list(system) and system.order in CONSTANT:
            return _run_time_dependent(prepared, system)
        state = pack(prepared, system, lines=True)
        general(state)
    return _outcome(prepared, state)


def _outcome(prepared: Prepared, state: State) -> Outcome:
    start, placement = state.start, state.placement
    if start.min() < 0:
        if state.progress["running"]:
            check_started(prepared, start)
        never = np.flatnonzero(start < 0)
        raise RuntimeError(f"{never.size} jobs never started, the first is job {never[0]}: a defect of the simulator")
    if not state.progress["spanning"]:
        return Outcome(start, placement, {})
    spanning = np.flatnonzero(placement < 0)
    shares = dict(zip(spanning.tolist(), state.shares[-1 - placement[spanning]], strict=True))
    return Outcome(start, np.maximum(placement, SPANNING), shares)


#: The first that applies simulates a system; the general event loop takes every one but ``multiqueue``.
DISCIPLINES = (
    Discipline("multiple queues", lambda _, system: system.mode == "multiqueue", _run_multiqueue),
    Discipline("head jobs of queues", _reserves_for_queues, _run_queue_head_jobs),
    Discipline("top jobs", lambda _, system: system.plans_top_job, _run_top_job),
    Discipline("constant order", _is_constant_order, _run_constant_order),
    Discipline("time-dependent priority", _is_time_dependent, _run_time_dependent),
    Discipline("general", lambda *_: True, _run_general),
)
