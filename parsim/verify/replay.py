"""Replay of a schedule: at each event, the pass that the rules demand against the starts found.

The schedule's past is taken as given, and a pass is checked up to its first discrepancy, so that one mistake is
reported once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

import numpy as np

from parsim.schedule import Schedule
from parsim.verify.beginning import Beginning, Outage
from parsim.verify.needs import came
from parsim.verify.violation import Discrepancy, Violation
from parsim.workload import Workload


class Columns:
    """Columns as lists, by (submit, position): job 0 was submitted first.

    Attributes
    ----------
    row : list of int
        Position in the workload.
    """

    def __init__(self, workload: Workload, schedule: Schedule) -> None:
        order = np.argsort(workload.submit, kind="stable")
        self.row: list[int] = order.tolist()
        self.submitted: list[int] = workload.submit[order].tolist()
        #: When each came (rule 40); its number is by its submission.
        self.submit: list[int] = self.submitted
        if workload.after.size:
            there = came(workload, schedule.end.tolist())
            self.submit = [there[row] for row in self.row]
        number = np.argsort(order)
        stops = schedule.interruptions
        #: Job, begin and end of each.
        self.interruptions: list[tuple[int, int, int]] = list(
            zip(number[stops.job].tolist(), stops.begin.tolist(), stops.end.tolist(), strict=True)
        )
        self.quotas = workload.quotas
        #: By quota, what jobs ask for.
        self.wants: list[dict[int, int]] = []
        for quota in workload.quotas:
            self.wants.append(dict(zip(number[quota.rows].tolist(), quota.amounts.tolist(), strict=True)))
        self.cores: list[int] = workload.cores[order].tolist()
        self.walltime: list[int] = workload.walltime[order].tolist()
        self.queue: list[int] = workload.queue[order].tolist()
        self.user: list[int] = workload.user[order].tolist()
        self.user_name = [workload.user_name(user) for user in self.user]
        self.qos_name = [workload.qos_name(qos) for qos in workload.qos[order].tolist()]
        self.start: list[int] = schedule.start[order].tolist()
        self.end: list[int] = schedule.end[order].tolist()


class Replay(ABC):
    """The machine as the schedule has it, event by event; a subclass has the rules of its discipline.

    Attributes
    ----------
    now, before : int
        This instant and the last.
    due : set of int
        Jobs that the schedule starts at this instant and that the pass has not started yet.
    """

    def __init__(self, jobs: Columns, beginning: Beginning | None = None) -> None:
        self.jobs = jobs
        self.beginning = beginning
        self.now = self.before = min(jobs.submitted, default=0) if beginning is None else beginning.state.begin
        self.due: set[int] = set()
        #: Jobs that run when the replay begins, by start and position.
        self.begun = [job for job, row in enumerate(jobs.row) if beginning and row in beginning.running]
        self.begun.sort(key=lambda job: (jobs.start[job], jobs.row[job]))

    def run(self) -> list[Violation]:
        """Return all violations, in order of time."""
        return [violation for found in self.instants() for violation in found]

    def instants(self) -> Iterator[list[Violation]]:
        """Yield what is wrong at each instant at which anything happens."""
        events: dict[int, list[tuple[int, int]]] = {}
        starts: dict[int, set[int]] = {}
        begin, until, begun = self.now, None, set(self.begun)
        for job in self.begun:
            self._resume(job)
        for instant, kind, job in self._events():
            if kind in (0, 5) or job not in begun:  # those that run may be preempted, and start again
                events.setdefault(max(begin, instant), []).append((kind, job))
        for job, instant in enumerate(self.jobs.submitted):
            if job not in begun:
                events.setdefault(max(begin, instant), [])
        for quota in self.jobs.quotas:
            for instant, _ in quota.changes:
                if instant > begin:
                    events.setdefault(instant, [])
        for instant, job in self._starts():
            starts.setdefault(instant, set()).add(job)
        if self.beginning is not None:
            until = self.beginning.until
            for instant in self.beginning.instants():
                events.setdefault(instant, [])
        for now in sorted(events.keys() | starts.keys()):
            if until is not None and now >= until:
                return
            self.before, self.now = self.now, now
            for kind, job in sorted(events.get(now, ())):
                self._happen(kind, job)
            self.due = starts.get(now, set())
            if now in events:
                yield self._check_pass()
            else:
                yield [self._violation("event", job, "starts where no event is") for job in sorted(self.due)]
            self._end_pass()
            for job in sorted(self.due):
                self._begin(job)

    def _starts(self) -> Iterator[tuple[int, int]]:
        """Yield the starts of the jobs that do not run yet when the replay begins."""
        begun = set(self.begun)
        yield from ((start, job) for job, start in enumerate(self.jobs.start) if job not in begun)

    def _end_pass(self) -> None:  # noqa: B027 - most schedules only start jobs
        """Take note of what the schedule does in a pass beside its starts."""

    def _events(self) -> Iterator[tuple[int, int, int]]:
        """Yield (instant, kind, job) of everything that a pass follows; kind 0 is an end, 1 a submission."""
        for kind, column in enumerate((self.jobs.end, self.jobs.submit)):
            for job, instant in enumerate(column):
                yield instant, kind, job

    def _known(self) -> list[Outage]:
        """Return the windows that are known now."""
        return [] if self.beginning is None else self.beginning.known(self.now)

    @abstractmethod
    def _resume(self, job: int) -> None:
        """Let a job run that runs when the replay begins."""

    @abstractmethod
    def _happen(self, kind: int, job: int) -> None:
        """Take note of an event."""

    @abstractmethod
    def _check_pass(self) -> list[Violation]:
        """Compare the pass of this instant with the jobs that are due, starting those it starts."""

    @abstractmethod
    def _begin(self, job: int) -> None:
        """Start `job` as the schedule does."""

    def _must_start(self, job: int, later: Iterable[int], where: str = "") -> None:
        """Start `job`, or raise: the rules start it now, before the jobs that come `later`."""
        if job in self.due:
            self._begin(job)
            return
        rows = [self.jobs.row[other] for other in later if other in self.due]
        if rows:
            raise Discrepancy("order", job, f"must start{where} before {rows}")
        raise Discrepancy("waiting", job, f"must start{where}, and waits")

    def _violation(self, rule: str, job: int, message: str) -> Violation:
        """Report a violation at this instant."""
        return Violation(rule, self.jobs.row[job], self.now, message)
