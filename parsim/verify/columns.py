"""Checks of whole columns that hold under every discipline."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from parsim.model.schedule import SPANNING, Schedule
from parsim.model.state import State
from parsim.model.system import System
from parsim.model.workload import Column, Workload
from parsim.verify.violation import Violation


def check_times(workload: Workload, system: System, schedule: Schedule) -> list[Violation]:
    """Check shapes, jobs and partition names; that no job starts before its submit; that each ends when it should."""
    found = list(_check_shape(workload, system, schedule))
    if found:
        return found
    interrupted = np.isin(np.arange(len(schedule)), schedule.interruptions.job)
    for rule, wrong, message in (
        ("job", _other_submits(workload, schedule), "its submit is not the workload's"),
        ("job", schedule.cores != workload.cores, "its cores are not the workload's"),
        ("submit", schedule.start < workload.submit, "starts before it is submitted"),
        (
            "end",
            (schedule.end != schedule.start + workload.effective_runtime) & ~interrupted,
            "does not end min(runtime, walltime) seconds after its start",
        ),
    ):
        rows = np.flatnonzero(wrong).tolist()
        found += [Violation(rule, row, int(schedule.start[row]), message) for row in rows]
    return found


def _other_submits(workload: Workload, schedule: Schedule) -> NDArray[np.bool_]:
    """Return which jobs have another submit than the workload's; jobs that wait for others may have a later one."""
    wrong: NDArray[np.bool_] = schedule.submit != workload.submit
    waits = workload.after[:, 0]
    wrong[waits] = schedule.submit[waits] < workload.submit[waits]
    return wrong


def check_begun(schedule: Schedule, state: State) -> list[Violation]:
    """Check that jobs which started before the begin of a state have its starts, and nothing else is before it."""
    early = state.start < state.begin
    wrong = np.where(early, schedule.start != state.start, schedule.start < state.begin)
    return [
        Violation("job", row, int(schedule.start[row]), "the state says otherwise of its start")
        for row in np.flatnonzero(wrong).tolist()
    ] + [
        Violation("preemption", job, begin, "is interrupted before the state begins")
        for job, begin in zip(schedule.interruptions.job.tolist(), schedule.interruptions.begin.tolist(), strict=True)
        if begin < state.begin
    ]


def check_waits(workload: Workload, schedule: Schedule, state: State | None) -> Iterator[Violation]:
    """Yield jobs that start before their dependencies end (rule "dependencies of jobs"); none with reservations."""
    if state is not None and any(window.queue is not None for window in state.windows):
        return  # jobs of a reservation wait for none elsewhere
    for job, other in workload.after.tolist():
        start, end = int(schedule.start[job]), int(schedule.end[other])
        if start < end and (state is None or start >= state.begin):
            yield Violation("submit", job, start, f"starts before job {other} ends, at {end}")


def _check_shape(workload: Workload, system: System, schedule: Schedule) -> Iterator[Violation]:
    n = len(workload)
    for name in ("submit", "start", "end", "cores", "partition"):
        shape = getattr(schedule, name).shape
        if shape != (n,):
            yield Violation("job", -1, 0, f"{name} has shape {shape}, for {n} jobs")
    if tuple(schedule.partition_names) != tuple(system.partition_names):
        yield Violation("job", -1, 0, f"partitions {schedule.partition_names}, not {system.partition_names}")
    if n and int(workload.queue.max()) >= len(system.queues):
        row = int(workload.queue.argmax())
        yield Violation("job", row, 0, f"queue {workload.queue[row]}, of {len(system.queues)}")


def cores_by_partition(
    schedule: Schedule, partitions: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], list[Violation]]:
    """Return the placements as shares: job, partition and cores of each; and the impossible placements.

    Returns
    -------
    job, partition, cores : ndarray(int64), shape (shares,)
    violations : list of Violation
    """
    found = []
    wholly = np.flatnonzero((schedule.partition >= 0) & (schedule.partition < partitions))
    jobs, on, cores = [wholly], [schedule.partition[wholly].astype(np.int64)], [schedule.cores[wholly]]
    for job in np.flatnonzero((schedule.partition < 0) | (schedule.partition >= partitions)).tolist():
        shares = np.asarray(schedule.shares.get(job, ()), dtype=np.int64)
        problem = None
        if schedule.partition[job] != SPANNING:
            problem = f"runs on partition {schedule.partition[job]}, of {partitions}"
        elif shares.shape != (partitions,):
            problem = f"spans partitions, with shares of shape {shares.shape} for {partitions} partitions"
        elif (shares < 0).any() or shares.sum() != schedule.cores[job]:
            problem = f"has shares {shares.tolist()} for its {schedule.cores[job]} cores"
        if problem:
            found.append(Violation("placement", job, int(schedule.start[job]), problem))
            continue
        taken = np.flatnonzero(shares)
        jobs.append(np.full(taken.size, job))
        on.append(taken)
        cores.append(shares[taken])
    return np.concatenate(jobs), np.concatenate(on), np.concatenate(cores), found


def first_excess(
    group: Column, amount: Column, start: Column, end: Column, cap: Column, held: NDArray[np.bool_]
) -> list[tuple[int, int]]:
    """Return (row, amount in use) of the first start that brings its group above its cap, for each group.

    Rows that are not `held` count, but are never reported; at an instant they start last.
    """
    rows = np.tile(np.arange(group.size), 2)
    change = np.concatenate((amount, -amount))
    # At one instant ends come first; a group's changes add up to 0, so one running sum serves all groups.
    begins = np.where(change > 0, np.where(held[rows], 1, 2), 0)
    order = np.lexsort((begins, np.concatenate((start, end)), group[rows]))
    rows, in_use = rows[order], np.cumsum(change[order])
    over = np.flatnonzero((in_use > cap[group[rows]]) & (begins[order] == 1))
    _, first = np.unique(group[rows[over]], return_index=True)
    return [(int(rows[over[k]]), int(in_use[over[k]])) for k in first]
