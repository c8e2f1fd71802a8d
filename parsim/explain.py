"""Why a job started when it did, in words.

The replay of `parsim.verify` goes through the passes of the job's wait, and at each of them the state of the job is
written down: held by a limit, head job of a list, behind a head job, started.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parsim.schedule import Schedule
from parsim.state import State
from parsim.system import LIMITS, System
from parsim.verify import replay_of
from parsim.verify.beginning import Beginning, Outage, parts, with_windows
from parsim.verify.columns import check_begun, check_capacity, check_times
from parsim.verify.lists import ListReplay
from parsim.verify.multiqueue import ClassReplay
from parsim.verify.needs import waiting_at
from parsim.verify.node_types import PlacedReplay, TypedReplay
from parsim.verify.partition import Partition
from parsim.verify.placed_head_jobs import PlacedHeadJobsReplay
from parsim.verify.preemption import PlacedTierReplay, TierReplay, TypedTierReplay, by_run
from parsim.verify.queue_head_jobs import ManyHeadJobsReplay, QueueHeadJobsReplay
from parsim.verify.rules import RESERVED, Jobs
from parsim.verify.top_job import TopJobReplay
from parsim.verify.typed_head_jobs import TypedHeadJobsReplay
from parsim.verify.typed_windows import TypedWindowsReplay
from parsim.verify.violation import Violation
from parsim.workload import Workload


@dataclass(frozen=True, slots=True)
class Reason:
    """What kept a job waiting from `begin` to `end`, or, where both are its start, how it came to start.

    Attributes
    ----------
    begin, end : int
        Seconds.
    text : str
    """

    begin: int
    end: int
    text: str

    def __str__(self) -> str:
        return f"{self.begin}: {self.text}" if self.begin == self.end else f"{self.begin} to {self.end}: {self.text}"


def explain(
    workload: Workload,
    system: System,
    schedule: Schedule,
    job: int,
    *,
    names: Sequence[str] | None = None,
    state: State | None = None,
) -> tuple[Reason, ...]:
    """Explain why a job started when it did.

    Parameters
    ----------
    workload : Workload
    system : System
    schedule : Schedule
        What `parsim.simulate` made of them.
    job : int
        Row of the workload.
    names : sequence of str, optional
        Names of the jobs, by row; by default their rows.
    state : State, optional
        The one that the schedule began with; a job that had started then has no reason but that.

    Returns
    -------
    tuple of Reason
        In order of time; the last is its start.

    Raises
    ------
    ValueError
        If there is no such job, or if the schedule breaks the rules of the system while the job waits: it is that
        of another system, or of a planning discipline, which no system describes.

    Examples
    --------
    >>> import parsim
    >>> workload = parsim.Workload(submit=[0, 1, 2], cores=[4, 4, 1], runtime=[50, 50, 9], walltime=[60, 60, 10])
    >>> system = parsim.System.single(cores=5)
    >>> schedule = parsim.simulate(workload, system)
    >>> print(*parsim.explain(workload, system, schedule, 1), sep="; ")
    1 to 50: heads the list of machine, waits for 4 cores; 50: starts on machine, in turn
    >>> print(*parsim.explain(workload, system, schedule, 2), sep="; ")
    2: starts on machine as soon as it is submitted, backfilled before job 1, which it does not delay
    """
    if not 0 <= job < len(workload):
        raise ValueError(f"job: {job} is not one of {len(workload)} jobs")
    _refuse(check_times(workload, system, schedule))
    system, state = with_windows(workload, system, state)
    if state is not None:
        return _from_state(workload, system, schedule, job, names, state)
    _refuse(check_capacity(by_run(workload, schedule)[2], system.partition_cores))
    rows = np.arange(len(workload))
    # Else what was before counts, too: for how long limits held the others, the nodes and the use of jobs that ended,
    # and which job has been the first.
    remembers = system.reserves_nodes or system.reads_users or system.reserves_nothing or system.keeps_out
    remembers |= workload.has_needs or system.has_tiers or system.places_chunks
    if not remembers and (system.formula is None or not system.has_limits):
        present = (schedule.end > workload.submit[job]) & (workload.submit <= schedule.start[job])
        rows = np.flatnonzero(present)
    present_row = {int(row): i for i, row in enumerate(rows)}
    of_rows = replace(
        schedule,
        submit=schedule.submit[rows],
        start=schedule.start[rows],
        end=schedule.end[rows],
        cores=schedule.cores[rows],
        partition=schedule.partition[rows],
        shares={present_row[row]: shares for row, shares in schedule.shares.items() if row in present_row},
        place=None if schedule.place is None else schedule.place[rows],
        node=None if schedule.node is None else schedule.node[rows],
    )
    job_names = [str(row) if names is None else names[row] for row in rows.tolist()]
    of = _replay_of(workload, system, None)
    replay = of(workload.take(rows), system, of_rows, job_names, present_row[job])
    # The jobs that matter are all there only from its submission to its start.
    begin, end = workload.submit[job], schedule.start[job]
    _refuse([wrong for wrong in replay.run() if begin <= wrong.time <= end])
    return tuple(replay.reasons)


def _from_state(
    workload: Workload, system: System, schedule: Schedule, job: int, names: Sequence[str] | None, state: State
) -> tuple[Reason, ...]:
    """Explain a start in a schedule that began with a state."""
    start = int(schedule.start[job])
    if start < state.begin:
        return (Reason(start, start, "started before the simulation begins"),)
    _refuse(check_begun(schedule, state))
    for part in parts(waiting_at(workload, state), system, schedule, state):
        rows = part.rows.tolist()
        if job in rows and start < part.beginning.until:
            job_names = [str(row) if names is None else names[row] for row in rows]
            of = _replay_of(part.workload, part.system, part.beginning)
            replay = of(part.workload, part.system, part.schedule, job_names, rows.index(job), part.beginning)
            _refuse([wrong for wrong in replay.run() if workload.submit[job] <= wrong.time <= start])
            return tuple(replay.reasons)
    raise AssertionError("each job is of one part")


def _replay_of(
    workload: Workload, system: System, beginning: Beginning | None
) -> type[_ExplainedClassReplay] | type[_ExplainedListReplay]:
    if system.mode == "multiqueue":
        return _ExplainedClassReplay
    explained: dict[type[ListReplay], type[_ExplainedListReplay]] = {
        TopJobReplay: _ExplainedTopJobReplay,
        QueueHeadJobsReplay: _ExplainedQueueHeadJobsReplay,
        ManyHeadJobsReplay: _ExplainedManyHeadJobsReplay,
        TypedReplay: _ExplainedTypedReplay,
        TypedWindowsReplay: _ExplainedTypedWindowsReplay,
        PlacedReplay: _ExplainedPlacedReplay,
        TypedHeadJobsReplay: _ExplainedTypedHeadJobsReplay,
        PlacedHeadJobsReplay: _ExplainedPlacedHeadJobsReplay,
        TierReplay: _ExplainedTierReplay,
        TypedTierReplay: _ExplainedTypedTierReplay,
        PlacedTierReplay: _ExplainedPlacedTierReplay,
    }
    return explained.get(replay_of(workload, system, beginning), _ExplainedListReplay)


def _refuse(found: list[Violation]) -> None:
    if found:
        raise ValueError(f"schedule: not one of this workload and system, {found[0].message} at {found[0].time}")


def _cores(count: int) -> str:
    return f"{count} core" if count == 1 else f"{count} cores"


class _Explained:
    """Reasons of the job `explained`; `names` are those of all jobs."""

    names: list[str]
    explained: int
    reasons: list[Reason]

    def note(self, begin: int, start: int, text: str) -> None:
        """Write down what holds from this pass until the job starts, unless a later pass finds something else."""
        if self.reasons:
            last = self.reasons[-1]
            if last.text == text or last.begin == last.end:  # it has started
                return
            self.reasons[-1] = replace(last, end=begin)
        self.reasons.append(Reason(begin, start, text))

    def turn(self, head_jobs: Sequence[int]) -> str:
        """Say before which head jobs the job starts."""
        if not head_jobs:
            return ", in turn"
        return f", backfilled before {self._listed(head_jobs)}, which it does not delay"

    def _listed(self, jobs: Sequence[int]) -> str:
        return f"job{'s' * (len(jobs) > 1)} {' and '.join(self.names[job] for job in jobs)}"


class _ExplainedListReplay(_Explained, ListReplay):
    """A replay of lists that follows one job."""

    def __init__(
        self,
        workload: Workload,
        system: System,
        schedule: Schedule,
        names: list[str],
        row: int,
        beginning: Beginning | None = None,
    ) -> None:
        jobs = Jobs(workload, system, schedule)
        running = set() if beginning is None else beginning.running
        _refuse([wrong for wrong in jobs.misplaced() if wrong.job not in running])
        super().__init__(jobs, system, beginning)
        self.names, self.explained = [names[each] for each in jobs.row], jobs.row.index(row)
        self.reasons = []
        self.held = ""
        others = workload.after[workload.after[:, 0] == row, 1]
        if jobs.submitted[self.explained] < jobs.submit[self.explained]:
            last = int(others[np.argmax(schedule.end[others])])
            self.note(jobs.submitted[self.explained], int(schedule.start[row]), f"waits for job {names[last]} to end")

    def _check_pass(self) -> list[Violation]:
        self.held = ""
        found = super()._check_pass()
        if not found and self.explained in self.outside:
            self.note(self.now, self.jobs.start[self.explained], f"kept out by {self.kept_by[self.explained]}")
        elif not found and self.explained in self.waiting and self.explained not in self.due:
            self.note(self.now, self.jobs.start[self.explained], self._why_it_waits())
        return found

    def _why_it_waits(self) -> str:
        job, home = self.explained, self.at_home[self.explained]
        if self.held:
            is_head_job = home != RESERVED and self.partitions[home].head_job == job
            return f"held by {self.held}" + ", with cores reserved for it" * is_head_job
        if home == RESERVED:
            first = next((other for other in self.reserved if other in self.head_jobs), -1)
            if first == job:
                return f"holds a reservation of {self.jobs.cores[job]} cores over several partitions"
            ahead = first if first >= 0 else self.reserved[0]
            if ahead == job:
                return "no reservation: starving jobs submitted before keep the partitions it needs"
            return f"behind job {self.names[ahead]} in the list of advance reservations"
        partition = self.partitions[home]
        if self.first_since:
            return self._why_it_waits_where_nothing_is_reserved()
        if partition.head_job == job:
            return f"heads the list of {partition.name}, waits for {_cores(self.jobs.cores[job])}"
        eligible = self.jobs.submit[job] + self.system.reservation_delay
        closed = [] if self.system.reserves_nodes else self._closed(job)
        out = sum(outage.cores.get(home, 0) for outage in closed if outage.begin <= self.now)
        if out and self.jobs.cores[job] <= partition.idle < self.jobs.cores[job] + out:
            kept = any(outage.is_for_some for outage in closed if outage.begin <= self.now)
            return f"{out} cores of {partition.name} are " + ("kept for other jobs" if kept else "out of service")
        if self.now < eligible and self.jobs.cores[job] > partition.idle:
            return f"waits for {_cores(self.jobs.cores[job])}, reserved for it from {eligible} on at the earliest"
        if partition.head_job >= 0:
            return f"behind job {self.names[partition.head_job]}, the head job of {partition.name}"
        return f"no idle core on {partition.name}"

    def _closed(self, job: int) -> list[Outage]:
        """Return the windows known now that a job may not use."""
        return [outage for outage in self._known() if not outage.is_for(self.jobs.user[job], self.jobs.walltime[job])]

    def _why_it_waits_where_nothing_is_reserved(self) -> str:
        cores = _cores(self.jobs.cores[self.explained])
        ((first, since),) = self.first_since.items()
        if first == self.explained:
            return f"the first of the list since {since}, waits for {cores}"
        if first in self.waiting and self.now - since >= self.system.reservation_delay:
            return f"behind job {self.names[first]}, the first of the list since {since}"
        return f"waits for {cores}"

    def _pass_over(self, job: int, partitions: Iterable[int]) -> None:
        if job == self.explained and not self.held:
            name, queue = self._held(job), self.jobs.queue[job]
            self.held = name
            if name in LIMITS:
                limit = self.limits[queue][LIMITS.index(name)]
                self.held = f"{name} = {limit} of queue {self.system.queues[queue].name}"
        super()._pass_over(job, partitions)

    def _begin(self, job: int) -> None:
        if job == self.explained:
            self.reasons.append(Reason(self.now, self.now, self._how_it_starts()))
        super()._begin(job)

    def _how_it_starts(self) -> str:
        job, jobs = self.explained, self.jobs
        home = self.at_home[job]
        placed_on = [self.partitions[partition] for partition, _ in jobs.placement[job]]
        text = "starts on " + " and ".join(partition.name for partition in placed_on)
        if self.now == jobs.submit[job]:
            text += " as soon as it is submitted"
        if self.pool >= 0 and self.partitions[self.pool] in placed_on and home != RESERVED:
            factor = (self.now - jobs.submit[job]) * self.system.queues[jobs.queue[job]].priority
            text += f", from the pool's list with priority factor {factor / jobs.short_walltime[job]:.6g}"
        if home == RESERVED:
            return text + ", by advance reservation"
        return text + self.turn(self._passed(placed_on))

    def _passed(self, placed_on: list[Partition]) -> list[int]:
        """Head jobs that the explained job passes as it starts."""
        return [partition.head_job for partition in placed_on if partition.head_job not in (-1, self.explained)][:1]


class _ExplainedQueueHeadJobsReplay(_ExplainedListReplay, QueueHeadJobsReplay):
    """A replay of a shared machine whose queues have a head job each, and that follows one job."""

    def _why_it_waits(self) -> str:
        if self.held or not self.plans:
            return super()._why_it_waits()
        if self.explained in self.plans:
            queue = self.system.queues[self.jobs.queue[self.explained]].name
            return f"the first of queue {queue} that waits for cores, for {_cores(self.jobs.cores[self.explained])}"
        return f"behind {self._listed([*self.plans])}, the head jobs of their queues"

    def _passed(self, _: list[Partition]) -> list[int]:
        return [job for job in self.plans if job != self.explained]


class _ExplainedManyHeadJobsReplay(_ExplainedQueueHeadJobsReplay, ManyHeadJobsReplay):
    """A replay of lists with several head jobs, and that follows one job."""

    def _why_it_waits(self) -> str:
        if self.held or not self.plans:
            return super()._why_it_waits()
        if self.explained in self.plans:
            begin, _, cores = self.plans[self.explained]
            return f"has {_cores(cores)} reserved from {begin} on"
        return f"behind {self._listed([*self.plans])}, which have reservations"


class _ExplainedTierReplay(_ExplainedListReplay, TierReplay):
    """A replay in which jobs preempt others, and that follows one job to its first start."""

    def _begin(self, job: int) -> None:
        before = list(self.reasons)
        super()._begin(job)
        if job in self.interrupted:
            self.reasons = before

    def _how_it_starts(self) -> str:
        victims = self.in_place_of.get(self.explained, [])
        return super()._how_it_starts() + (f", and preempts {self._listed(victims)}" if victims else "")


class _ExplainedTopJobReplay(_ExplainedListReplay, TopJobReplay):
    """A replay of lists that plans limits or nodes, and that follows one job."""


class _ExplainedTypedReplay(_ExplainedListReplay, TypedReplay):
    """A replay of a machine with nodes of several types, and that follows one job."""

    def _why_it_waits(self) -> str:
        lacking = self._lacking(self.explained)
        if self.held or not (lacking or self._why_not_beside_windows()):
            return super()._why_it_waits()
        text = f"waits for {lacking}" if lacking else self._why_not_beside_windows()
        heads = any(head.job == self.explained for head in self.heads.values())
        return f"heads the list, {text}" if heads else text

    def _why_not_beside_windows(self) -> str:
        """Say how windows keep a job off its home; empty where they do not."""
        job, end = self.explained, self.now + self.jobs.walltime[self.explained]
        closed = [outage for outage in self._closed(job) if outage.begin < end]
        if not closed or self._fits_beside_windows(job, self.at_home[job], self.now):
            return ""
        kept = "kept for other jobs" if any(outage.is_for_some for outage in closed) else "out of service"
        begin = min(outage.begin for outage in closed)
        return f"nodes that it could take are {kept}" + (f" from {begin} on" if begin > self.now else "")

    def _passed(self, placed_on: list[Partition]) -> list[int]:
        heads = (self.heads.get(self.partitions.index(partition)) for partition in placed_on)
        return [head.job for head in heads if head is not None and head.job != self.explained]


class _ExplainedTypedWindowsReplay(_ExplainedTypedReplay, TypedWindowsReplay):
    """A replay of such a machine while nodes are out of service, and that follows one job."""


class _ExplainedPlans(_ExplainedTypedReplay):
    """A replay of such a machine whose queues have a head job each, and that follows one job."""

    plans: Any  #: by head job

    def _why_it_waits(self) -> str:
        lacking = self._lacking(self.explained)
        if self.held or not self.plans or (not lacking and self._why_not_beside_windows()):
            return super()._why_it_waits()
        if self.explained in self.plans:
            queue = self.system.queues[self.jobs.queue[self.explained]].name
            return f"the first of queue {queue} that waits for nodes" + (f", for {lacking}" if lacking else "")
        return f"waits for {lacking}" if lacking else f"behind {self._listed([*self.plans])}, head jobs of queues"

    def _passed(self, _: list[Partition]) -> list[int]:
        return [job for job in self.plans if job != self.explained]


class _ExplainedTypedHeadJobsReplay(_ExplainedPlans, TypedHeadJobsReplay):
    """The same where totals are planned."""


class _ExplainedPlacedHeadJobsReplay(_ExplainedPlans, PlacedHeadJobsReplay):
    """The same where head jobs hold nodes."""


class _ExplainedPlacedReplay(_ExplainedTypedReplay, PlacedReplay):
    """A replay of a machine whose nodes are of several types and count each by itself, and that follows one job."""


class _ExplainedTypedTierReplay(_ExplainedTierReplay, _ExplainedTypedReplay, TypedTierReplay):
    """A replay of such a machine by totals, in which jobs preempt others, and that follows one job."""


class _ExplainedPlacedTierReplay(_ExplainedTierReplay, _ExplainedPlacedReplay, PlacedTierReplay):
    """The same where each node counts by itself."""


class _ExplainedClassReplay(_Explained, ClassReplay):
    """A replay of multiple-queue backfilling that follows one job."""

    def __init__(
        self,
        workload: Workload,
        system: System,
        schedule: Schedule,
        names: list[str],
        row: int,
        beginning: Beginning | None = None,
    ) -> None:
        super().__init__(workload, system, schedule, beginning)
        self.names, self.explained = [names[each] for each in self.jobs.row], self.jobs.row.index(row)
        self.reasons = []

    def _check_pass(self) -> list[Violation]:
        found = super()._check_pass()
        if not found and self.explained in self.lists[self.job_class[self.explained]]:
            self.note(self.now, self.jobs.start[self.explained], self._why_it_waits())
        return found

    def _why_it_waits(self) -> str:
        job, cores = self.explained, self.jobs.cores[self.explained]
        first = self.lists[self.job_class[job]][0]
        text = f"behind job {self.names[first]}, the first of {self._class_of(job)}"
        if job == first:
            text = f"the first of {self._class_of(job)}"
        if cores > self.idle.cores[0]:
            return f"{text}, waits for {_cores(cores)}"
        beside = self.idle.copy()
        for pivot, instant in self.pivots:
            beside.add(instant, instant + self.jobs.walltime[pivot], -self.jobs.cores[pivot])
            if not beside.fits(cores, self.jobs.walltime[job]):
                if pivot == first:
                    return f"{text}, which it would delay"
                return f"{text}, would delay job {self.names[pivot]}, the first of {self._class_of(pivot)}"
        raise AssertionError("it had to start")

    def _class_of(self, job: int) -> str:
        index, limits = self.job_class[job], self.class_limits
        bounds = [f"above {limits[index - 1]}"] if index else []
        bounds += [f"up to {limits[index]}"] if index < len(limits) else []
        return f"class {index + 1}" + (f" ({' '.join(bounds)} s)" if bounds else "")

    def _begin(self, job: int) -> None:
        if job == self.explained:
            at_once = " as soon as it is submitted" if self.now == self.jobs.submit[job] else ""
            head_jobs = sorted(waiting[0] for waiting in self.lists if waiting and waiting[0] < job)
            text = f"starts on machine{at_once}, of {self._class_of(job)}{self.turn(head_jobs)}"
            self.reasons.append(Reason(self.now, self.now, text))
        super()._begin(job)
