"""Queues of different tiers: what interruptions must be, and the replay of the passes that preempt jobs.

The numbered rules are those of ``docs/reference/simulator.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np

from parsim.needs import Quota
from parsim.schedule import Interruptions, Schedule
from parsim.system import System
from parsim.verify.beginning import Beginning
from parsim.verify.lists import NO_JOB, ListReplay
from parsim.verify.node_types import Head, Place, PlacedReplay, TypedReplay
from parsim.verify.places import Sums
from parsim.verify.rules import Jobs
from parsim.verify.violation import Discrepancy, Violation
from parsim.workload import Column, Workload


def check_interruptions(workload: Workload, system: System, schedule: Schedule) -> Iterator[Violation]:
    """Yield the jobs whose interruptions cannot be (rules 55 and 56)."""
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
    """Return every run as a job, and the row of its job."""
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
    """Return the place of every run, of which the schedule has the last ones and interruptions those before."""
    found = last[row]
    before = np.flatnonzero(row[:-1] == row[1:])  # runs that another one of the same job follows
    found[before] = stops.place[np.lexsort((stops.begin, stops.job))]
    return found


class TierReplay(ListReplay):
    """A replay of one list in which jobs of higher tiers go first and preempt running ones.

    ``jobs.start`` is that of the present run, ``jobs.walltime`` what is left of it.
    """

    def __init__(self, jobs: Jobs, system: System, beginning: Beginning | None = None) -> None:
        super().__init__(jobs, system, beginning)
        self.tier = [system.queues[queue].tier for queue in jobs.queue]
        self.kind = [system.queues[queue].preempted for queue in jobs.queue]
        self.running: set[int] = set(self.begun)
        self.interrupted: set[int] = set()  #: jobs that have been preempted
        self.stopped: set[int] = set()  #: by the rules, in this pass
        self.in_place_of: dict[int, list[int]] = {}  #: the jobs that each preempts, in the last pass
        self.stops: dict[int, set[int]] = {}  #: by the schedule, at each instant
        for job, begin, _ in jobs.interruptions:
            self.stops.setdefault(begin, set()).add(job)

    def _starts(self) -> Iterator[tuple[int, int]]:
        yield from super()._starts()
        yield from ((end, job) for job, _, end in self.jobs.interruptions)

    def _events(self) -> Iterator[tuple[int, int, int]]:
        yield from super()._events()
        yield from ((begin + 1, 4, NO_JOB) for _, begin, _ in self.jobs.interruptions)  # rule 56

    def _counted(self) -> tuple[list[int], list[int], list[int]]:
        starts, ends, submits = super()._counted()
        begins, again = [begin for _, begin, _ in self.jobs.interruptions], [end for *_, end in self.jobs.interruptions]
        return sorted(starts + again), sorted(ends + begins), sorted(submits + begins)

    def _begin(self, job: int) -> None:
        self.jobs.start[job] = self.now
        self.running.add(job)
        super()._begin(job)

    def _end(self, job: int) -> None:
        self.running.discard(job)
        super()._end(job)

    def _matters(self) -> bool:
        return True

    def _check_pass(self) -> list[Violation]:
        found = super()._check_pass()
        if found:
            return found
        there = self.stops.get(self.now, set())
        return [
            self._violation("preemption", job, "is preempted, and had to go on")
            if job in there
            else self._violation("preemption", job, "goes on, and had to be preempted")
            for job in sorted(there ^ self.stopped)
        ]

    def _end_pass(self) -> None:
        """Interrupt what the schedule does, and let those wait again (rule 56)."""
        there = self.stops.get(self.now, set())
        for job in self.stopped - there:
            self.running.add(job)
            self._resume(job)
        for job in there - self.stopped:
            self._end(job)
        for job in sorted(there):
            if self.kind[job] != "requeue":
                self.jobs.walltime[job] -= self.now - self.jobs.start[job]
            self.interrupted.add(job)
            self._enter(job)
        self.stopped = set()

    def _visit_list(self, index: int) -> None:
        jobs, partition = self.jobs, self.partitions[index]
        ordered = self._by_tier(index)
        for at, job in self._turns(index, ordered):
            cores, end = jobs.cores[job], self.now + jobs.walltime[job]
            self._preempt(job, partial(self._starts_without, index, job))
            if cores <= partition.startable(end):
                self._must_start_on(job, ((index, cores),), ordered[at:])
                continue
            if job in self.due:
                raise Discrepancy(partition.obstacle(end, cores), job, f"may not start on {partition.name} now")
            if partition.head_job < 0 and self.now - jobs.submit[job] >= self.system.reservation_delay:
                self.head_jobs.add(job)
                partition.promise(job, cores, jobs.walltime[job], self.now)
                if not self.system.backfill:
                    break

    def _by_tier(self, index: int) -> list[int]:
        """Rule 54: the jobs of a list in their order."""
        ordered = self.lists[index].ordered(self.now)
        again = sorted(self.interrupted.intersection(ordered))
        ordered = again + [job for job in ordered if job not in self.interrupted]
        ordered.sort(key=self.tier.__getitem__, reverse=True)  # the sort is stable
        return ordered

    def _starts_without(self, index: int, job: int, gone: list[int]) -> bool:
        """Whether a job may start if these running ones had ended."""
        jobs = self.jobs
        found = [(jobs.start[other] + jobs.walltime[other], jobs.cores[other]) for other in gone]
        return jobs.cores[job] <= self.partitions[index].startable(self.now + jobs.walltime[job], gone=found)

    def _preempt(self, job: int, starts: Callable[[list[int]], bool]) -> None:
        """Preempt for a job at its turn; `starts` says whether it may start if some running ones had ended."""
        self.in_place_of[job] = self._victims(job, starts)
        for victim in self.in_place_of[job]:
            self.stopped.add(victim)
            self._end(victim)

    def _victims(self, job: int, starts: Callable[[list[int]], bool]) -> list[int]:
        """Rule 55: the running jobs that `job` preempts; none if it may start, or may not with all of them."""
        jobs = self.jobs
        below = [other for other in self.running if self.tier[other] < self.tier[job] and self.kind[other] != "off"]
        below.sort(key=lambda other: (self.tier[other], -jobs.start[other], -other))
        count = next((count for count in range(len(below) + 1) if starts(below[:count])), 0)
        needed = below[:count]
        for other in below[:count][::-1]:
            if starts([each for each in needed if each != other]):
                needed.remove(other)
        return needed


class TypedTierReplay(TierReplay, TypedReplay):
    """The same on nodes of several types: a suspended job goes on at its own place alone (rules 90 to 92)."""

    def __init__(self, jobs: Jobs, system: System, beginning: Beginning | None = None) -> None:
        super().__init__(jobs, system, beginning)
        self.had: dict[int, Place] = {}  #: what each job had when it ran last
        self.later: dict[int, list[int]] = {}  #: the places of the runs of a job behind the present one
        number = {row: job for job, row in enumerate(jobs.row)}
        stops = jobs.schedule.interruptions
        for row, place in zip(stops.job.tolist(), stops.place.tolist(), strict=True):
            self.later.setdefault(number[row], []).append(place)
        for job, places in self.later.items():
            places.append(self.chosen[job])
            self.chosen[job] = places.pop(0)

    def _visit_list(self, index: int) -> None:
        self._go_over(index, self._by_tier(index))

    def _make_room(self, job: int, index: int) -> None:
        self._preempt(job, partial(self._starts_without, index, job))

    def _starts_without(self, index: int, job: int, gone: list[int]) -> bool:
        idle, heads = self.idle, self.heads
        given = [self.on[other] for other in gone]
        self.idle = sum((takes for _, takes in given), idle)
        if index in heads:
            head = heads[index]
            left = sum((takes for end, takes in given if end > head.time), head.left)
            self.heads = {index: Head(head.job, head.time, left)}
        starts = self._place(job, index) is not None
        self.idle, self.heads = idle, heads
        return starts

    def _end(self, job: int) -> None:
        self.had[job] = self.chosen[job], self.on[job][1]
        super()._end(job)

    def _end_pass(self) -> None:
        super()._end_pass()
        for job in self.stops.get(self.now, ()):
            self.chosen[job] = self.later[job].pop(0)

    def _in(self, job: int, partition: int, left: Sums) -> Place | None:
        if job in self.interrupted and self.kind[job] == "suspend":
            place, takes = self.had[job]
            return (place, takes) if (takes <= left).all() else None
        return super()._in(job, partition, left)


class PlacedTierReplay(TypedTierReplay, PlacedReplay):
    """The same where chunks are placed on nodes: a suspended job goes on on its own nodes alone (rule 92)."""
