"""Windows of a log: the jobs running and waiting at the begin, and the submissions up to the end; and its idle cores.

As in Karbach's verification of JuFo (section 6), run times are exact and submissions known: only the scheduler differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from parsim import UNSTARTED, Schedule, State, Workload, simulate
from qconf.config import SiteConfig
from qconf.errors import InputError
from qconf.evaluation.period import Period, fitting
from qconf.history import History
from qconf.history.records import MAX_TIME

Column = NDArray[np.int64]
Mask = NDArray[np.bool_]

DAY = 86400
LEAD = 3 * DAY  #: left out after the first submission, while jobs run that the log does not have
LEAD_SHARE = 10  #: at most the log divided by this is left out
LENGTHS = (2 * 3600, 24 * 3600)  #: seconds, the shortest and the longest window
MOST = 60  #: windows, by default
HELD = 3600  #: seconds; a job that waits so long after it first fits was held by something else


@dataclass(frozen=True, eq=False)
class Recorded:
    """The jobs of a log with a known end of their wait, with their exact run times."""

    period: Period
    start: Column  #: when each job started, `UNSTARTED` if it was deleted before, shape (n,)
    gone: Column  #: when the waiting job was deleted, `UNSTARTED` if it was not
    jobs: pd.DataFrame  #: the same jobs as rows of the history
    unknown: int  #: number of jobs left out, since the log has no start of them

    @classmethod
    def of(cls, history: History, config: SiteConfig) -> Recorded:
        """Take the jobs of a history that was cleaned with `config`.

        Jobs that were deleted while something held them are left out: they never waited for cores. A job that ran
        longer than its walltime gets its run time as walltime, since the site did not kill it.
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
        """Return the masked jobs."""
        start = self.start[rows]
        period = replace(self.period.take(rows), started=start)
        return Recorded(period, start, self.gone[rows], self.jobs[rows], self.unknown)

    @property
    def began(self) -> Mask:
        """Mask of the jobs that started, shape (n,)."""
        return self.start < UNSTARTED

    @property
    def left(self) -> Column:
        """When each job left the queue, to run or deleted, shape (n,)."""
        return np.minimum(self.start, self.gone)


@dataclass(frozen=True, eq=False)
class Timeline:
    """Idle cores over time, by the recorded starts and ends."""

    instants: Column  #: ascending, shape (m,)
    idle: Column  #: idle cores from each instant to the next

    @classmethod
    def of(cls, recorded: Recorded) -> Timeline:
        """Count the cores of the running jobs at each start and end."""
        w = recorded.period.workload
        ran = recorded.began
        start, cores = recorded.start[ran], w.cores[ran]
        end = start + w.effective_runtime[ran]
        instants, where = np.unique(np.concatenate((start, end)), return_inverse=True)
        change = np.bincount(where, np.concatenate((cores, -cores)), instants.size)
        return cls(instants, recorded.period.base.machine.cores - np.cumsum(change).astype(np.int64))

    @cached_property
    def _least(self) -> list[NDArray[np.int32]]:
        """Least idle cores over 1, 2, 4, ... intervals from each interval on."""
        levels = [np.clip(self.idle, -(2**31), 2**31 - 1).astype(np.int32)]
        while (half := 1 << (len(levels) - 1)) * 2 <= self.idle.size:
            levels.append(np.minimum(levels[-1][:-half], levels[-1][half:]))
        return levels

    def least_between(self, begin: Column, end: Column) -> Column:
        """Return the least idle cores from each begin to its end, elementwise; all within the log."""
        first = np.maximum(np.searchsorted(self.instants, begin, side="right") - 1, 0)
        last = np.maximum(np.searchsorted(self.instants, end, side="left"), first + 1)
        level = np.frexp(last - first)[1] - 1
        found = np.empty(first.size, dtype=np.int64)
        for each in np.unique(level).tolist():
            rows = np.flatnonzero(level == each)
            table = self._least[each]
            found[rows] = np.minimum(table[first[rows]], table[last[rows] - (1 << each)])
        return found

    def first_fit(self, cores: int, walltime: int, submit: int, start: int) -> int:
        """Return the first instant from which idle cores sufficed for a job's whole walltime; -1 if there is none.

        Only instants at least `HELD` seconds before the job's start count. After its start its own cores are not idle.
        """
        low, high = np.searchsorted(self.instants, (submit, start - HELD), side="right")
        at = np.concatenate(([submit], self.instants[low:high]))
        fits = self.least_between(at, np.minimum(at + walltime, start)) >= cores
        return int(at[np.argmax(fits)]) if fits.any() else -1


def held(recorded: Recorded, timeline: Timeline, rows: Column) -> Mask:
    """Return the mask of the jobs among `rows` that something other than the scheduler held.

    Such a job could have started on idle cores `HELD` seconds or more before its start. Between that instant and its
    start, a job submitted later started that is at least as wide and as long: if backfilling let that one pass the head
    job, it would have let this one. For a job deleted while it waited, the deletion counts as its start.
    """
    w, start, left = recorded.period.workload, recorded.start, recorded.left
    found = np.zeros(len(w), dtype=np.bool_)
    by_start = np.argsort(start, kind="stable")
    starts = start[by_start]
    for row in rows.tolist():
        submit, begun, cores = int(w.submit[row]), int(left[row]), int(w.cores[row])
        if begun - submit < HELD:
            continue
        fits = timeline.first_fit(cores, int(w.walltime[row]), submit, begun)
        if fits < 0:
            continue
        low, high = np.searchsorted(starts, (fits, begun))
        others = by_start[low:high]
        as_hard = (w.cores[others] >= cores) & (w.walltime[others] >= w.walltime[row])
        found[row] = bool((as_hard & (w.submit[others] > submit)).any())
    return found


@dataclass(frozen=True, eq=False)
class Stretch:
    """A simulation from `begin`, valid until the next deletion of a waiting job."""

    begin: int
    rows: Column  #: positions of the jobs in the window
    jobs: Workload
    state: State | None
    schedule: Schedule


@dataclass(frozen=True, eq=False)
class LogWindow:
    """The jobs that ran or waited at `begin`, or were submitted before `end`; seconds after the log's epoch."""

    begin: int
    end: int
    period: Period  #: its state has the jobs running at `begin`
    start: Column  #: recorded start of each job, shape (n,)
    gone: Column  #: when the waiting job was deleted
    rows: Column  #: position of each job in `Recorded`

    @property
    def unstarted(self) -> Mask:
        """Mask of the jobs that wait at `begin` or are submitted later, shape (n,)."""
        return self.start >= self.begin

    @property
    def left(self) -> Column:
        """When each job left the queue, to run or deleted, shape (n,)."""
        return np.minimum(self.start, self.gone)

    @property
    def crowded_out(self) -> int:
        """Number of jobs that run in the log beyond the machine's cores; they wait in the simulation."""
        state = self.period.state
        return 0 if state is None else int(((self.start < self.begin) & (state.start >= self.begin)).sum())

    def simulate(self, config: SiteConfig) -> Column:
        """Simulate from `begin` on, in the queues that routed the jobs; nothing is submitted from `end` on.

        Returns the start of each job, `UNSTARTED` if the job is deleted before, shape (n,).
        """
        start = np.full(self.rows.size, UNSTARTED)
        for each in self.stretches(config):
            start[each.rows] = each.schedule.start
        return np.where(start < self.gone, start, UNSTARTED)

    def stretches(self, config: SiteConfig) -> Iterator[Stretch]:
        """Simulate up to each deletion of a waiting job, and from there on without that job.

        If the job runs in the simulation by then, it ends there.
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
            if not matters.any() or system.has_tiers:  # no state has the work done by a preempted job
                return
            at = int(gone[matters].min())
            stay = np.flatnonzero(gone > at)
            windows = () if state is None else [window for window in state.windows if window.end > at]
            rows, jobs, state = rows[stay], jobs.take(stay), State.at(schedule, at, windows).take(stay)


def cut(recorded: Recorded, spans: Sequence[tuple[int, int]]) -> tuple[LogWindow, ...]:
    """Cut windows of these begins and ends out of a log; a window without waiting jobs is left out."""
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
        if window.unstarted.any():
            found.append(window)
    return tuple(found)


def spans(
    recorded: Recorded,
    lengths: tuple[int, int] = LENGTHS,
    count: int = MOST,
    seed: int = 0,
    within: tuple[int, int] | None = None,
) -> tuple[tuple[int, int], ...]:
    """Draw begins and ends of windows: one of random place and length in each equal part of the log.

    `within` restricts the log. Windows do not overlap. A log too short for `count` windows gets fewer; one too short
    for a single window is a window itself, up to its last start. Raises `InputError` if no start is known.
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
