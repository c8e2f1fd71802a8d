"""Cores of one partition through a pass, and what may be taken of them.

What a partition promises is kept as guards: at instant `time` at least `slack` cores are left beyond the promise.
As the cores left by expected ends only grow, a promise over an interval holds if it holds at the interval's
start, and again where a reservation inside it begins. A job that ends by a guard's instant does not touch it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Guard:
    """A promise, seen from the jobs that would start beside it."""

    rule: str
    time: int
    slack: int


@dataclass(slots=True)
class Partition:
    """A partition, the pool, or the whole machine."""

    name: str
    cores: int
    idle: int = 0
    running: list[tuple[int, int]] = field(default_factory=list)  #: (expected end, cores), ascending
    head_job: int = -1  #: the head job of this partition's list, found in this pass and still waiting
    for_head_job: list[Guard] = field(default_factory=list)
    for_reservation: list[Guard] = field(default_factory=list)
    reserved: tuple[int, int, int] = (0, 0, 0)  #: from, to, cores

    def __post_init__(self) -> None:
        self.idle = self.cores

    def forget_promises(self) -> None:
        """Begin a pass, which plans without the promises of the last."""
        self.abandon_head_job()
        self.reserved, self.for_reservation = (0, 0, 0), []

    def vacate(self, expected_end: int, cores: int) -> None:
        """Give back the cores of a job that ended, or that is preempted in a pass."""
        del self.running[bisect_left(self.running, (expected_end, cores))]
        self.idle += cores
        for guard in (*self.for_head_job, *self.for_reservation):
            if expected_end > guard.time:
                guard.slack += cores

    def occupy(self, expected_end: int, cores: int) -> None:
        """Start a job."""
        insort(self.running, (expected_end, cores))
        self.idle -= cores
        for guard in (*self.for_head_job, *self.for_reservation):
            if expected_end > guard.time:
                guard.slack -= cores

    def available(self, time: int) -> int:
        """Cores idle now and those of running jobs whose expected end is at or before `time`."""
        cores = self.idle
        for end, released in self.running:
            if end > time:
                break
            cores += released
        return cores

    def first_time(self, cores: int, now: int) -> int | None:
        """Earliest instant at which `cores` are available, None if never."""
        left = self.idle
        if left >= cores:
            return now
        for end, released in self.running:
            left += released
            if left >= cores:
                return end
        return None

    def startable(
        self, expected_end: int, *, beside_head_job: bool = True, gone: Sequence[tuple[int, int]] = ()
    ) -> int:
        """Most cores that a job which would end at `expected_end` may take now, without running ones that are `gone`.

        Of these their expected ends and their cores count.
        """
        most = self.idle + sum(cores for _, cores in gone)
        for guard in self.for_reservation:
            if expected_end > guard.time and guard.slack < most:
                most = guard.slack
        if beside_head_job:
            for guard in self.for_head_job:
                slack = guard.slack + sum(cores for end, cores in gone if end > guard.time)
                if expected_end > guard.time and slack < most:
                    most = slack
        return most

    def obstacle(self, expected_end: int, cores: int) -> str:
        """Rule that a job would break by starting now."""
        if cores > self.idle:
            return "capacity"
        for guard in (*self.for_reservation, *self.for_head_job):
            if expected_end > guard.time and guard.slack < cores:
                return guard.rule
        return "order"

    def reserve(self, time: int, until: int, cores: int) -> None:
        """Promise `cores` in [time, until) to the head job of the reserved list (rule 11)."""
        if cores:
            self.reserved = (time, until, cores)
            self.for_reservation = [Guard("reservation", time, self.available(time) - cores)]

    def promise(self, head_job: int, cores: int, walltime: int, now: int) -> None:
        """Promise `head_job` its instant: the earliest at which it fits for its whole walltime (rule 12)."""
        begin, until, reserved = self.reserved
        instant = self.first_time(cores, now)
        if instant is None:
            return  # wider than the partition: nothing can delay what never comes
        meets = reserved > 0 and instant < until and instant + walltime > begin
        if meets and self.available(max(instant, begin)) - reserved < cores:
            # Not beside the reservation: when enough is left besides, or after it.
            instant = max(instant, until)
            besides = self.first_time(cores + reserved, now)
            if besides is not None:
                instant = min(instant, besides)
            meets = instant < until
        self.head_job = head_job
        taken = reserved if meets and instant >= begin else 0
        self.for_head_job = [Guard("head job", instant, self.available(instant) - cores - taken)]
        if meets and instant < begin:
            self.for_head_job.append(Guard("head job", begin, self.available(begin) - cores - reserved))

    def abandon_head_job(self) -> None:
        """Promise nothing more to the head job: it started elsewhere."""
        self.head_job = -1
        self.for_head_job = []
