"""Checks the interruptions of preempted jobs, and the runs between them (rule "after a preemption")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from parsim.model.needs import Quota
from parsim.model.schedule import Interruptions, Schedule
from parsim.model.system import System
from parsim.model.workload import Column, Workload
from parsim.verify.violation import Violation


def check_interruptions(workload: Workload, system: System, schedule: Schedule) -> Iterator[Violation]:
    """Yield the interruptions, and runs between them, that cannot be (rule "after a preemption")."""
    jobs, begins, ends, loses, places = (column.tolist() for column in schedule.interruptions)
    if not len(jobs) == len(begins) == len(ends) == len(loses) == (len(places) if system.node_types else len(jobs)):
        yield Violation("preemption", -1, 0, "its interruptions have columns of different lengths")
        return
    runs = {
        row: [int(start), int(end)]
        for row, (start, end) in enumerate(zip(schedule.start.tolist(), schedule.end.tolist(), strict=True))
        if row in set(jobs)
    }
    starts = [*enumerate(schedule.start.tolist()), *zip(jobs, ends, strict=True)]
    highest: dict[int, int] = {}  # tier of what starts at an instant
    for job, start in starts:
        if 0 <= job < len(workload):
            highest[start] = max(highest.get(start, -1), system.queues[workload.queue[job]].tier)
    for job, begin, end, lost in zip(jobs, begins, ends, loses, strict=True):
        if not 0 <= job < len(workload):
            yield Violation("preemption", -1, begin, f"job {job} is interrupted, of {len(workload)}")
            return
        preempted = system.queues[workload.queue[job]].preempted
        if preempted == "off" or not system.has_tiers or lost != (preempted == "requeue"):
            yield Violation("preemption", job, begin, f"is interrupted, and its queue has preempted: {preempted}")
        if highest.get(begin, -1) <= system.queues[workload.queue[job]].tier:
            yield Violation("preemption", job, begin, "is interrupted where no job of a higher tier starts")
        runs[job] += [begin, end]
    for job, instants in runs.items():
        edges = instants[:1] + instants[2:] + instants[1:2]
        lengths = [after - before for before, after in pairwise(edges)]
        ran, whole = lengths[::2], int(workload.effective_runtime[job])
        requeued = system.queues[workload.queue[job]].preempted == "requeue"
        if min(lengths) < 1:
            yield Violation("preemption", job, edges[0], f"its runs and interruptions meet at {edges}, which goes back")
        elif (ran[-1] if requeued else sum(ran)) != whole or max(ran) > whole:
            yield Violation("end", job, edges[-1], f"runs for {ran} s, of its {whole} s")


def by_run(workload: Workload, schedule: Schedule) -> tuple[Column, Workload, Schedule]:
    """Return the job of each run, and a workload and a schedule in which each run is a job."""
    stops = schedule.interruptions
    if not stops.job.size:
        return np.arange(len(workload)), workload, schedule
    edges: dict[int, list[int]] = {}
    for job, begin, end in zip(stops.job.tolist(), stops.begin.tolist(), stops.end.tolist(), strict=True):
        edges.setdefault(job, []).extend((begin, end))
    rows, start, end_of = [], [], []
    for job, (first, last) in enumerate(zip(schedule.start.tolist(), schedule.end.tolist(), strict=True)):
        instants = [first, *edges.get(job, ()), last]
        rows += [job] * (len(instants) // 2)
        start += instants[::2]
        end_of += instants[1::2]
    row = np.array(rows, dtype=np.int64)
    place, node = (
        column if column is None else _by_run(row, column, stops) for column in (schedule.place, schedule.node)
    )
    quotas = []
    for quota in workload.quotas:
        amounts = dict(zip(quota.rows.tolist(), quota.amounts.tolist(), strict=True))
        asking = [k for k, job in enumerate(rows) if job in amounts]
        quotas.append(Quota(quota.name, quota.most, asking, [amounts[rows[k]] for k in asking], quota.changes))
    shares = {k: schedule.shares[job] for k, job in enumerate(rows) if job in schedule.shares}
    return (
        row,
        replace(workload.without_needs().take(row), quotas=quotas),
        Schedule(
            schedule.submit[row],
            np.array(start, dtype=np.int64),
            np.array(end_of, dtype=np.int64),
            schedule.cores[row],
            schedule.partition[row],
            shares,
            schedule.partition_names,
            place,
            node=node,
        ),
    )


def _by_run(row: Column, last: Column, stops: Interruptions) -> Column:
    """Return the place of each run: that of a job's last run from `last`, the others from its interruptions."""
    found = last[row]
    before = np.flatnonzero(row[:-1] == row[1:])  # runs that another one of the same job follows
    found[before] = stops.place[np.lexsort((stops.begin, stops.job))]
    return found
