"""Windows of a log: what ran and waited at their begin, and what was submitted until their end.

As Karbach verifies JuFo (section 6): run times are exact and submissions known, so that what differs is the scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from parsim import UNSTARTED, Schedule, State, Workload, simulate
from qconf.config import SiteConfig
from qconf.errors import InputError
from qconf.evaluation.period import Period, fitting
from qconf.fidelity.log import Timeline, held
from qconf.history import History
from qconf.history.records import MAX_TIME

Column = NDArray[np.int64]
Mask = NDArray[np.bool_]

DAY = 86400
LEAD = 3 * DAY  #: after the first submission, until no job runs that the log does not have
LEAD_SHARE = 10  #: of the log, its tenth part, that is at most left out for that
LENGTHS = (2 * 3600, 24 * 3600)  #: seconds, the shortest and the longest window
MOST = 60  #: windows, unless told


@dataclass(frozen=True, eq=False)
class Recorded:
    """The jobs of a log of which it tells until when they waited, with the run times that they had."""

    period: Period
    start: Column  #: when each job started, `UNSTARTED` if it was deleted before, shape (n,)
    gone: Column  #: when it was deleted while it waited, `UNSTARTED` if it was not
    jobs: pd.DataFrame  #: the jobs as the history has them
    unknown: int  #: jobs that are left out: the log tells no start of them

    @classmethod
    def of(cls, history: History, config: SiteConfig) -> Recorded:
        """Take the jobs of a history that was cleaned with `config`.

        Those that were deleted while something held them are left out: they never waited for cores.

        A job that ran longer than its walltime has its run time as walltime: it is not cut off, since it was not.
        """
        every, deleted = history.with_deleted()
        period = Period.of(every, config, binding=())
        start, end = (every.jobs[name].to_numpy(dtype=np.int64) for name in ("start", "end"))
        w = period.workload
        ran = np.where((start >= 0) & (end > start), end - start, w.runtime)
        exact = replace(w, runtime=ran, walltime=np.maximum(w.walltime, ran))
        rows = np.flatnonzero(deleted | ((start >= 0) & (start >= w.submit)))
        start, gone = np.where(deleted, UNSTARTED, start)[rows], np.where(deleted, end, UNSTARTED)[rows]
        known = replace(period, workload=exact).take(rows)
        found = cls(replace(known, started=start), start, gone, every.jobs.iloc[rows], len(every) - rows.size)
        return found.take(~held(found, Timeline.of(found), np.flatnonzero(~found.began))) if deleted.any() else found

    def take(self, rows: Mask) -> Recorded:
        """Return those of these rows."""
        start = self.start[rows]
        period = replace(self.period.take(rows), started=start)
        return Recorded(period, start, self.gone[rows], self.jobs[rows], self.unknown)

    @property
    def began(self) -> Mask:
        """Which jobs started, shape (n,)."""
        return self.start < UNSTARTED

    @property
    def left(self) -> Column:
        """When each job left the queue, to run or deleted, shape (n,)."""
        return np.minimum(self.start, self.gone)


@dataclass(frozen=True, eq=False)
class Stretch:
    """A simulation that counts up to the next deletion."""

    begin: int
    rows: Column  #: of the jobs in the window
    jobs: Workload
    state: State | None
    schedule: Schedule


@dataclass(frozen=True, eq=False)
class LogWindow:
    """The jobs that ran or waited at `begin` or were submitted before `end`, seconds after the log's epoch."""

    begin: int
    end: int
    period: Period  #: begins with what ran then
    start: Column  #: recorded, of each job, shape (n,)
    gone: Column  #: when it was deleted while it waited
    rows: Column  #: of each job among those of `Recorded`

    @property
    def there(self) -> Mask:
        """Which jobs wait at `begin` or are submitted later, shape (n,)."""
        return self.start >= self.begin

    @property
    def left(self) -> Column:
        """When each job left the queue, to run or deleted, shape (n,)."""
        return np.minimum(self.start, self.gone)

    @property
    def crowded_out(self) -> int:
        """Jobs that ran by the log where the machine had no cores left: they wait in the simulation."""
        state = self.period.state
        return 0 if state is None else int(((self.start < self.begin) & (state.start >= self.begin)).sum())

    def simulate(self, config: SiteConfig) -> Column:
        """Simulate from `begin` on under the queues that routed the jobs; nothing is submitted from `end` on.

        Returns the start of each job, `UNSTARTED` where it is deleted before, shape (n,).
        """
        start = np.full(self.rows.size, UNSTARTED)
        for each in self.stretches(config):
            start[each.rows] = each.schedule.start
        return np.where(start < self.gone, start, UNSTARTED)

    def stretches(self, config: SiteConfig) -> Iterator[Stretch]:
        """Simulate up to each instant at which a job is deleted, and from there on without it.

        If it runs in the simulation by then, it ends there.
        """
        jobs = self.period.limited(self.period.workload, config)
        system = self.period.system(config)
        state = self.period.begun(system)
        at, rows = self.begin, np.arange(self.rows.size)
        while True:
            schedule = simulate(jobs, system, state)
            yield Stretch(at, rows, jobs, state, schedule)
            gone = self.gone[rows]
            matters = (gone < self.end) & (schedule.end > gone)
            if not matters.any() or system.has_tiers:  # what a preempted job has done no state says
                return
            at = int(gone[matters].min())
            stay = np.flatnonzero(gone > at)
            windows = () if state is None else [window for window in state.windows if window.end > at]
            rows, jobs, state = rows[stay], jobs.take(stay), State.at(schedule, at, windows).take(stay)


def cut(recorded: Recorded, spans: Sequence[tuple[int, int]]) -> tuple[LogWindow, ...]:
    """Cut windows of these begins and ends out of a log; those with no job that waits are left out."""
    period = recorded.period
    last = recorded.start + period.workload.effective_runtime
    found = []
    for begin, end in spans:
        there = (recorded.start >= begin) | (last > begin)
        rows = np.flatnonzero((period.workload.submit < end) & there & (recorded.gone > begin))
        taken = period.take(rows)
        began = np.maximum(recorded.start[rows], taken.workload.submit)
        begun = replace(taken, state=fitting(taken.workload, began, begin, period.base.machine.cores))
        window = LogWindow(begin, end, begun, recorded.start[rows], recorded.gone[rows], rows)
        if window.there.any():
            found.append(window)
    return tuple(found)


def spans(
    recorded: Recorded,
    lengths: tuple[int, int] = LENGTHS,
    count: int = MOST,
    seed: int = 0,
    within: tuple[int, int] | None = None,
) -> tuple[tuple[int, int], ...]:
    """Draw windows: the log, or what is `within` it, in equal parts, in each one window at random, its length too.

    Windows do not overlap. There are fewer than `count` where the log is too short for so many; where it is too short
    for one, it is one itself, up to its last start. Raises `InputError` where no start is known.
    """
    submit = recorded.period.workload.submit
    low, high = within or (-MAX_TIME, MAX_TIME)
    inside = (submit >= low) & (submit <= high) & recorded.began
    if not inside.any():
        raise InputError(
            "the log tells no start of a job",
            field="start",
            fix="give a log with starts: SWF, PBS accounting, sacct, or a CSV with the column start",
        )
    begin, last = int(submit[0]), int(submit[-1])
    first = max(begin + min(LEAD, (last - begin) // LEAD_SHARE), low)
    last = min(last, high)
    shortest, longest = lengths
    parts = min(count, (last - first) // longest)
    if parts < 1:
        first = int(submit[inside][0])
        return ((first, int(recorded.start[inside].max()) + 1),)
    rng = np.random.default_rng(seed)
    edges = np.linspace(first, last, parts + 1).astype(np.int64).tolist()
    found = []
    for low, high in pairwise(edges):
        length = int(rng.integers(shortest, longest + 1))
        begin = int(rng.integers(low, high - length + 1))
        found.append((begin, begin + length))
    return tuple(found)
