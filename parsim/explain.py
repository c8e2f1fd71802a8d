"""Why a job started when it did, in words.

The reference simulator replays the passes during the job's wait; its state after each pass gives the reason: held by a
limit, head job of a list, behind a head job, started.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from parsim.model.schedule import Schedule
from parsim.model.state import UNSTARTED, State
from parsim.model.system import System
from parsim.model.workload import Workload
from parsim.naive.multiqueue import Multiqueue
from parsim.naive.simulator import (
    RESERVED,
    Downtime,
    NaiveSchedule,
    Simulation,
    fits,
    simulate_by,
    to_the_end,
    with_windows,
)
from parsim.verify.columns import check_begun, check_times
from parsim.verify.starts import follow, placement_of
from parsim.verify.violation import Difference, Violation


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a job waited from `begin` to `end`; where both are its start, how it started.

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
        The result of `parsim.simulate` for them.
    job : int
        Row of the workload.
    names : sequence of str, optional
        Names of the jobs, by row; by default their rows.
    state : State, optional
        The state that the schedule began with; a job that had started before has this as its only reason.

    Returns
    -------
    tuple of Reason
        In order of time; the last is its start.

    Raises
    ------
    ValueError
        If there is no such job, or if the schedule breaks the rules of the system while the job waits: it belongs to
        another system, or to a planning discipline, which no system describes.

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
        start = int(schedule.start[job])
        if start < state.begin:
            return (Reason(start, start, "started before the simulation begins"),)
        _refuse(check_begun(schedule, state))
        return _from_state(workload, system, schedule, job, names, state)
    rows = np.arange(len(workload))
    # Otherwise earlier passes matter, too: for how long limits held other jobs, nodes and use of jobs that ended, and
    # which job has been the first.
    remembers = system.reserves_nodes or system.reads_users or system.reserves_nothing or system.keeps_out
    remembers |= workload.has_needs or system.has_tiers or bool(system.node_types)
    if not remembers and (system.formula is None or not system.has_limits):
        begin = int(workload.submit[job])
        rows = np.flatnonzero((schedule.end > begin) & (workload.submit <= schedule.start[job]))
        begun = schedule.start[rows]
        placement = {k: placement_of(schedule, rows[k]) for k in np.flatnonzero(begun < begin).tolist()}
        state = State(begin, np.where(begun < begin, begun, UNSTARTED), placement)
    return _follow(workload.take(rows), system, schedule, job, names, state, rows.tolist())


def _from_state(
    workload: Workload, system: System, schedule: Schedule, job: int, names: Sequence[str] | None, state: State
) -> tuple[Reason, ...]:
    """Explain a start in a schedule that began with a state."""

    def followed(rows: list[int], until: float, jobs: Workload, machine: System, inner: State | None) -> NaiveSchedule:
        if job in rows and schedule.start[job] < until:
            raise _Found(_follow(jobs, machine, schedule, job, names, inner, rows, until))
        return to_the_end(_of(machine)(jobs, machine, inner))

    try:
        simulate_by(followed, workload, system, state)
    except _Found as found:
        return found.reasons
    raise AssertionError("each job is of one part")


class _Found(Exception):  # noqa: N818 - carries what was looked for out of a simulation
    def __init__(self, reasons: tuple[Reason, ...]) -> None:
        super().__init__()
        self.reasons = reasons


def _of(system: System) -> type[Multiqueue] | type[Simulation]:
    return Multiqueue if system.mode == "multiqueue" else Simulation


def _follow(
    workload: Workload,
    system: System,
    schedule: Schedule,
    job: int,
    names: Sequence[str] | None,
    state: State | None,
    rows: list[int],
    until: float = math.inf,
) -> tuple[Reason, ...]:
    """Follow the job at a row of the schedule to its start; `workload` has the jobs at `rows`."""
    simulation = _of(system)(workload, system, state)
    called = [str(row) if names is None else names[row] for row in rows]
    waits_for = [] if isinstance(simulation, Multiqueue) else simulation.waits_for
    last = {j: max(waits, key=lambda k: schedule.end[rows[k]]) for j, waits in enumerate(waits_for) if waits}
    of = _OfClasses if isinstance(simulation, Multiqueue) else _OfLists
    explained = of(simulation, system, rows.index(job), called, int(schedule.start[job]), last)
    try:
        for _ in follow(simulation, schedule, rows, until):
            if explained.look():
                break
    except Difference as wrong:
        _refuse([wrong.violation])
    return tuple(explained.reasons)


def _refuse(found: Sequence[Violation]) -> None:
    if found:
        raise ValueError(f"schedule: not one of this workload and system, {found[0].message} at {found[0].time}")


def _cores(count: int) -> str:
    return f"{count} core" if count == 1 else f"{count} cores"


class _Explained(ABC):
    """Collects the reasons of one job from the simulation's state after each pass; `names` are those of all jobs."""

    of: Simulation | Multiqueue

    def __init__(
        self,
        simulation: Simulation | Multiqueue,
        system: System,
        job: int,
        names: list[str],
        start: int,
        last: dict[int, int],
    ) -> None:
        self.of, self.system, self.job, self.names, self.start = simulation, system, job, names, start
        self.last = last  #: the last to end of the jobs that each job waits for
        self.reasons: list[Reason] = []

    def look(self) -> bool:
        """Record what the last pass meant for the job; return whether it has started."""
        of, now = self.of, self.of.now
        if self.job in of.begun:
            if self.reasons:
                self.reasons[-1] = replace(self.reasons[-1], end=now)
            self.reasons.append(Reason(now, now, self.how_it_starts()))
            return True
        if now >= of.submitted[self.job]:
            self.note(now, self.why_it_waits())
        return False

    def note(self, begin: int, text: str) -> None:
        """Record a reason from this pass until the job starts, unless a later pass finds another."""
        if self.reasons:
            if self.reasons[-1].text == text:
                return
            self.reasons[-1] = replace(self.reasons[-1], end=begin)
        self.reasons.append(Reason(begin, self.start, text))

    def turn(self, head_jobs: Sequence[int]) -> str:
        """Say before which head jobs the job starts."""
        if not head_jobs:
            return ", in turn"
        return f", backfilled before {self.listed(head_jobs)}, which it does not delay"

    def listed(self, jobs: Sequence[int]) -> str:
        """Name jobs."""
        return f"job{'s' * (len(jobs) > 1)} {' and '.join(self.names[job] for job in jobs)}"

    @abstractmethod
    def why_it_waits(self) -> str:
        """Say what the job waits for after this pass."""

    @abstractmethod
    def how_it_starts(self) -> str:
        """Say where the job starts, and before which others."""


class _OfLists(_Explained):
    """Reasons on a machine whose jobs wait in lists."""

    of: Simulation

    def why_it_waits(self) -> str:
        of, job = self.of, self.job
        if job in of.outside:
            return f"kept out by {of.kept_by[job]}"
        if job not in of.waiting:
            return f"waits for job {self.names[self.last[job]]} to end"
        home, cores = of.home(job), _cores(of.cores[job])
        if held := of.held_by.get(job, ""):
            return f"held by {held}" + ", with cores reserved for it" * (job in of.planned)
        if home == RESERVED:
            return self.why_it_waits_for_several()
        if of.passes_over and of.first_of_list[0] >= 0:
            return self.why_it_waits_where_nothing_is_reserved()
        if self.system.node_types and (text := self.why_it_waits_for_nodes()):
            return text
        if of.by_queues and of.planned:
            return self.why_it_waits_beside_plans()
        name = self.system.partition_names[home]
        head = next((k for k, (on, _) in of.planned.items() if on == home), -1)
        if head == job:
            return f"heads the list of {name}, waits for {cores}"
        eligible = of.submit[job] + self.system.reservation_delay
        closed = [] if self.system.reserves_nodes else [d for d in self.closed() if d.begin <= of.now]
        out = sum(sum(n for node, n in d.cores_of.items() if of.nodes[node][0] == home) for d in closed)
        if out and of.cores[job] <= of.idle[home] < of.cores[job] + out:
            return f"{out} cores of {name} are " + self.closed_for(closed)
        if of.now < eligible and of.cores[job] > of.idle[home]:
            return f"waits for {cores}, reserved for it from {eligible} on at the earliest"
        if head >= 0:
            return f"behind job {self.names[head]}, the head job of {name}"
        return f"no idle core on {name}"

    def closed(self) -> list[Downtime]:
        """Return the windows known now that the job may not use."""
        return [d for d in self.of.known() if not self.of.may_use(self.job, d)]

    @staticmethod
    def closed_for(windows: Sequence[Downtime]) -> str:
        """Say why windows take cores."""
        return "kept for other jobs" if any(d.users or d.walltime for d in windows) else "out of service"

    def why_it_waits_for_several(self) -> str:
        """Say what a job waits for that starts on several partitions by advance reservation."""
        of, job = self.of, self.job
        first = next((k for k, (on, _) in of.planned.items() if on == RESERVED), -1)
        if first == job:
            return f"holds a reservation of {of.cores[job]} cores over several partitions"
        if first < 0:
            first = min((k for k in of.waiting if of.home(k) == RESERVED), key=of.place.__getitem__)
        if first == job:
            return "no reservation: starving jobs submitted before keep the partitions it needs"
        return f"behind job {self.names[first]} in the list of advance reservations"

    def why_it_waits_where_nothing_is_reserved(self) -> str:
        """Say what the job waits for where nothing is reserved until a job has been the first of the list for long."""
        of, cores = self.of, _cores(self.of.cores[self.job])
        first, since = of.first_of_list
        if first == self.job:
            return f"the first of the list since {since}, waits for {cores}"
        if first in of.waiting and of.now - since >= self.system.reservation_delay:
            return f"behind job {self.names[first]}, the first of the list since {since}"
        return f"waits for {cores}"

    def why_it_waits_beside_plans(self) -> str:
        """Say what the job waits for where a list has several head jobs."""
        of, job = self.of, self.job
        cores = _cores(of.cores[job])
        if of.many and job in of.planned:
            return f"has {cores} reserved from {of.planned[job][1]} on"
        if job in of.planned:
            return f"the first of queue {of.queue(job).name} that waits for cores, for {cores}"
        behind = f"behind {self.listed([*of.planned])}"
        return f"{behind}, which have reservations" if of.many else f"{behind}, the head jobs of their queues"

    def why_it_waits_for_nodes(self) -> str:
        """Say what the job waits for on nodes of several types; empty where other jobs' plans are the reason."""
        of, job = self.of, self.job
        lacking = of.lacks(job)
        text = f"waits for {lacking}" if lacking else self.why_not_in_service()
        if job not in of.planned:
            if not text and of.by_queues and of.planned:
                return f"behind {self.listed([*of.planned])}, head jobs of queues"
            return text
        if of.by_queues:
            waits = f"the first of queue {of.queue(job).name} that waits for nodes"
            return f"{waits}, for {lacking}" if lacking else text or waits
        return f"heads the list, {text}" if text else ""

    def why_not_in_service(self) -> str:
        """Say how windows keep the job off its nodes; empty where they do not."""
        of, end = self.of, self.of.now + self.of.walltime[self.job]
        closed = [d for d in self.closed() if d.begin < end]
        if not closed or of.fits_in_service(self.job):
            return ""
        begin = min(d.begin for d in closed)
        text = f"nodes that it could take are {self.closed_for(closed)}"
        return text + (f" from {begin} on" if begin > of.now else "")

    def how_it_starts(self) -> str:
        of, job = self.of, self.job
        on = sorted(of.cores_on[job])
        text = "starts on " + " and ".join(self.system.partition_names[partition] for partition in on)
        if of.now == of.submit[job]:
            text += " as soon as it is submitted"
        home = of.home(job)
        if not of.shared and of.pool in on and home != RESERVED:
            factor = (of.now - of.submit[job]) * of.queue(job).priority / of.capped_walltime(job)
            text += f", from the pool's list with priority factor {factor:.6g}"
        if home == RESERVED:
            return text + ", by advance reservation"
        ahead = [k for k, (partition, _) in of.ahead[job].items() if partition in on]
        text += self.turn(ahead if of.by_queues else ahead[:1])
        victims = of.in_place_of.get(job, [])
        return text + (f", and preempts {self.listed(victims)}" if victims else "")


class _OfClasses(_Explained):
    """Reasons under multiple-queue backfilling."""

    of: Multiqueue

    def why_it_waits(self) -> str:
        of, job = self.of, self.job
        mates = [k for k in of.waiting if of.job_class[k] == of.job_class[job]]
        first = min(mates, key=lambda k: (of.submit[k], k))
        text = f"behind job {self.names[first]}, the first of {self.class_of(job)}"
        if job == first:
            text = f"the first of {self.class_of(job)}"
        if of.cores[job] > of.idle():
            return f"{text}, waits for {_cores(of.cores[job])}"
        blocks = of.taken()
        for pivot, block in of.plans:
            blocks.append(block)
            if not fits(of.machine, blocks, of.cores[job], of.now, of.walltime[job]):
                if pivot == first:
                    return f"{text}, which it would delay"
                return f"{text}, would delay job {self.names[pivot]}, the first of {self.class_of(pivot)}"
        raise AssertionError("it had to start")

    def class_of(self, job: int) -> str:
        """Name the class of a job, with its bounds."""
        index, limits = self.of.job_class[job], self.of.limits
        bounds = [f"above {limits[index - 1]}"] if index else []
        bounds += [f"up to {limits[index]}"] if index < len(limits) else []
        return f"class {index + 1}" + (f" ({' '.join(bounds)} s)" if bounds else "")

    def how_it_starts(self) -> str:
        of, job = self.of, self.job
        at_once = " as soon as it is submitted" if of.now == of.submit[job] else ""
        return f"starts on machine{at_once}, of {self.class_of(job)}{self.turn(of.ahead[job])}"
