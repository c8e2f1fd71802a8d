"""Why a job started when it did, in words.

The judge of `parsim.verify` goes through the passes of the job's wait once more, with a witness that writes down what
became of the job in each: held by a limit, head of a list, behind a head, started.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from parsim.schedule import Schedule
from parsim.system import LIMITS, System
from parsim.verify.columns import check_capacity, check_times
from parsim.verify.multiqueue import ClassReplay
from parsim.verify.replay import Replay
from parsim.verify.rules import RESERVED, Jobs, Placement
from parsim.verify.violation import Violation
from parsim.workload import Workload


@dataclass(frozen=True, slots=True)
class Reason:
    """What kept a job waiting from `begin` to `end`, or, where both are its start, how it came to start."""

    begin: int
    end: int
    text: str

    def __str__(self) -> str:
        return f"{self.begin}: {self.text}" if self.begin == self.end else f"{self.begin} to {self.end}: {self.text}"


def explain(
    workload: Workload, system: System, schedule: Schedule, job: int, *, names: Sequence[str] | None = None
) -> tuple[Reason, ...]:
    """Tell why `job` started when it did.

    Parameters
    ----------
    workload : Workload
    system : System
    schedule : Schedule
        What `parsim.simulate` made of them.
    job : int
        Row of the workload.
    names : sequence of str, optional
        What to call the jobs, by row; by default they are called by their rows.

    Returns
    -------
    tuple of Reason
        In order of time; the last is its start.

    Raises
    ------
    ValueError
        No such job, or a schedule that breaks the rules of the system while the job waits: that of another system, or
        of a planning discipline, which no system describes.

    Examples
    --------
    >>> import parsim
    >>> workload = parsim.Workload(submit=[0, 1, 2], cores=[4, 4, 1], runtime=[50, 50, 9], walltime=[60, 60, 10])
    >>> system = parsim.System.single(cores=5)
    >>> schedule = parsim.simulate(workload, system)
    >>> print(*parsim.explain(workload, system, schedule, 1), sep="; ")
    1 to 50: heads the list of machine, waits for 4 cores; 50: starts on machine, in turn
    >>> print(*schedule.explain(workload, system, 2), sep="; ")
    2: starts on machine as soon as it is submitted, backfilled before job 1, which it does not delay
    """
    if not 0 <= job < len(workload):
        raise ValueError(f"job: {job} is not one of {len(workload)} jobs")
    _refuse(check_times(workload, system, schedule) or check_capacity(schedule, system.part_cores))
    rows = np.arange(len(workload))
    if system.formula is None or not system.has_limits:  # else the time that limits held the others counts, too
        present = (schedule.end > workload.submit[job]) & (workload.submit <= schedule.start[job])
        rows = np.flatnonzero(present)
    place = {int(row): i for i, row in enumerate(rows)}
    part = replace(
        schedule,
        submit=schedule.submit[rows],
        start=schedule.start[rows],
        end=schedule.end[rows],
        cores=schedule.cores[rows],
        part=schedule.part[rows],
        shares={place[row]: shares for row, shares in schedule.shares.items() if row in place},
    )
    jobs = workload.take(rows)
    called = [str(row) if names is None else names[row] for row in rows.tolist()]
    watch = _ClassWitness if system.mode == "multiqueue" else _Witness
    witness = watch(jobs, system, part, called, place[job])
    # Before its submission others are missing, and after its start: only between is every job there that matters.
    begin, end = workload.submit[job], schedule.start[job]
    _refuse([wrong for wrong in witness.run() if begin <= wrong.time <= end])
    return tuple(witness.reasons)


def _refuse(found: list[Violation]) -> None:
    if found:
        raise ValueError(f"schedule: not one of this workload and system, {found[0].message} at {found[0].time}")


def _cores(count: int) -> str:
    return f"{count} core" if count == 1 else f"{count} cores"


class _Story:
    """What became of the job that is watched; `names` are what jobs are called."""

    names: list[str]
    watched: int
    reasons: list[Reason]

    def note(self, begin: int, start: int, text: str) -> None:
        """Write down what holds from this pass until the job starts, unless a later pass finds something else."""
        if self.reasons:
            last = self.reasons[-1]
            if last.text == text:
                return
            self.reasons[-1] = replace(last, end=begin)
        self.reasons.append(Reason(begin, start, text))

    def passing(self, text: str, heads: Sequence[int]) -> str:
        """Add to how the job starts which heads it goes before."""
        if not heads:
            return text + ", in turn"
        called = " and ".join(self.names[head] for head in heads)
        return f"{text}, backfilled before job{'s' * (len(heads) > 1)} {called}, which it does not delay"


class _Witness(_Story, Replay):
    """A replay of lists that follows one job."""

    def __init__(self, workload: Workload, system: System, schedule: Schedule, names: list[str], row: int) -> None:
        jobs = Jobs(workload, system, schedule)
        _refuse(list(jobs.misplaced()))
        super().__init__(jobs, system)
        self.names, self.watched = [names[each] for each in jobs.row], jobs.row.index(row)
        self.reasons = []
        self.held = ""

    def _judge(self) -> list[Violation]:
        self.held = ""
        found = super()._judge()
        if not found and self.watched in self.waiting and self.watched not in self.due:
            self.note(self.now, self.jobs.start[self.watched], self._why_it_waits())
        return found

    def _why_it_waits(self) -> str:
        job, home = self.watched, self.at_home[self.watched]
        if self.held:
            return f"held by {self.held}"
        if home == RESERVED:
            first = next((other for other in self.reserved if other in self.heads), -1)
            if first == job:
                return f"holds a reservation of {self.jobs.cores[job]} cores over several parts"
            ahead = first if first >= 0 else self.reserved[0]
            if ahead == job:
                return "no reservation: starving jobs submitted before keep the parts it needs"
            return f"behind job {self.names[ahead]} in the list of advance reservations"
        part = self.parts[home]
        if part.head == job:
            return f"heads the list of {part.name}, waits for {_cores(self.jobs.cores[job])}"
        ripe = self.jobs.submit[job] + self.system.patience
        if self.now < ripe and self.jobs.cores[job] > part.idle:
            return f"waits for {_cores(self.jobs.cores[job])}, reserved for it from {ripe} on at the earliest"
        if part.head >= 0:
            return f"behind job {self.names[part.head]}, the head of {part.name}"
        return f"no idle core on {part.name}"

    def _pass_over(self, job: int, parts: Iterable[int]) -> None:
        if job == self.watched and not self.held:
            name, queue = self._held(job), self.jobs.queue[job]
            limit = self.limits[queue][LIMITS.index(name)]
            self.held = f"{name} = {limit} of queue {self.system.queues[queue].name}"
        super()._pass_over(job, parts)

    def _start(self, job: int, place: Placement) -> None:
        if job == self.watched:
            self.reasons.append(Reason(self.now, self.now, self._how(place)))
        super()._start(job, place)

    def _how(self, place: Placement) -> str:
        job, jobs = self.watched, self.jobs
        home = self.at_home[job]
        text = "starts on " + " and ".join(self.parts[part].name for part, _ in place)
        if self.now == jobs.submit[job]:
            text += " as soon as it is submitted"
        if self.pool >= 0 and any(part == self.pool for part, _ in place) and home != RESERVED:
            factor = (self.now - jobs.submit[job]) * self.system.queues[jobs.queue[job]].priority
            text += f", from the pool's list with priority factor {factor / jobs.short_walltime[job]:.6g}"
        if home == RESERVED:
            return text + ", by advance reservation"
        heads = [self.parts[part].head for part, _ in place]
        return self.passing(text, [head for head in heads if head not in (-1, job)][:1])


class _ClassWitness(_Story, ClassReplay):
    """A replay of multiple-queue backfilling that follows one job."""

    def __init__(self, workload: Workload, system: System, schedule: Schedule, names: list[str], row: int) -> None:
        super().__init__(workload, system, schedule)
        self.names, self.watched = [names[each] for each in self.row], self.row.index(row)
        self.reasons = []

    def _judge(self) -> list[Violation]:
        found = super()._judge()
        if not found and self.watched in self.lines[self.job_class[self.watched]]:
            self.note(self.now, self.start[self.watched], self._why_it_waits())
        return found

    def _why_it_waits(self) -> str:
        job, cores = self.watched, self.cores[self.watched]
        first = self.lines[self.job_class[job]][0]
        text = f"behind job {self.names[first]}, the first of {self._class_of(job)}"
        if job == first:
            text = f"the first of {self._class_of(job)}"
        if cores > self.idle.cores[0]:
            return f"{text}, waits for {_cores(cores)}"
        beside = self.idle.copy()
        for pivot, instant in self.pivots:
            beside.add(instant, instant + self.walltime[pivot], -self.cores[pivot])
            if not beside.fits(cores, self.walltime[job]):
                if pivot == first:
                    return f"{text}, which it would delay"
                return f"{text}, would delay job {self.names[pivot]}, the first of {self._class_of(pivot)}"
        raise AssertionError("it had to start")

    def _class_of(self, job: int) -> str:
        index, limits = self.job_class[job], self.class_limits
        bounds = [f"above {limits[index - 1]}"] if index else []
        bounds += [f"up to {limits[index]}"] if index < len(limits) else []
        return f"class {index + 1}" + (f" ({' '.join(bounds)} s)" if bounds else "")

    def _start(self, job: int) -> None:
        if job == self.watched:
            text = "starts on machine"
            if self.now == self.submit[job]:
                text += " as soon as it is submitted"
            heads = sorted(line[0] for line in self.lines if line and line[0] < job)
            text = self.passing(f"{text}, of {self._class_of(job)}", heads)
            self.reasons.append(Reason(self.now, self.now, text))
        super()._start(job)
