"""Errors of simulated starts, as in the paper's Table 1, and the agreement of waits.

Karbach, section 6.1: counted are jobs whose recorded and simulated starts are both in the window. The error of a start
that is simulated too early is positive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from parsim import UNSTARTED
from qconf.config import SiteConfig
from qconf.fidelity.windows import Column, LogWindow, Mask, Recorded
from qconf.history import History
from qconf.history.times import zone

MINUTE, TEN_MINUTES, HOUR = 60, 600, 3600  #: seconds; a scheduler may look at its jobs once a minute
GROUPS = ("queue", "user", "hour")


@dataclass(frozen=True, eq=False)
class Starts:
    """Recorded and simulated starts of jobs that wait in windows; seconds after the epoch, columns of shape (n,)."""

    row: Column  #: position of the job in `Recorded`
    window: Column  #: position of the window
    since: Column  #: when the job's wait in the window begins: its submit, or the window's begin
    until: Column  #: end of the window
    gone: Column  #: when the waiting job was deleted, `UNSTARTED` if it was not
    recorded: Column  #: recorded start, `UNSTARTED` for a deleted job
    simulated: Column  #: simulated start, `UNSTARTED` if deleted before

    @classmethod
    def of(cls, windows: Sequence[LogWindow], config: SiteConfig, leave_out: Mask | None = None) -> Starts:
        """Simulate the windows, without waiting jobs that the mask `leave_out` (over the jobs of `Recorded`) has."""
        found = [_columns(i, window, config, leave_out) for i, window in enumerate(windows)]
        columns = zip(*found, strict=True) if found else [[np.empty(0, dtype=np.int64)]] * len(fields(cls))
        return cls(*map(np.concatenate, columns))

    def take(self, rows: Mask | NDArray[np.intp]) -> Starts:
        """Return the starts at these rows."""
        return Starts(*(getattr(self, column.name)[rows] for column in fields(self)))

    @property
    def began(self) -> Mask:
        """Mask of the jobs with a recorded start."""
        return self.recorded < UNSTARTED

    @property
    def counted(self) -> Mask:
        """Mask of the jobs whose recorded and simulated starts are both in the window."""
        return (self.recorded < self.until) & (self.simulated < self.until)

    @property
    def inside(self) -> Mask:
        """Mask of the jobs whose recorded or simulated start is in the window."""
        return (self.recorded < self.until) | (self.simulated < self.until)

    @property
    def error(self) -> Column:
        """Recorded minus simulated start, seconds."""
        return self.recorded - self.simulated

    @property
    def waits(self) -> tuple[Column, Column]:
        """Recorded and simulated wait of each job inside its window, seconds."""
        last = np.minimum(self.until, self.gone)
        return np.minimum(self.recorded, last) - self.since, np.minimum(self.simulated, last) - self.since


def _columns(i: int, window: LogWindow, config: SiteConfig, leave_out: Mask | None) -> tuple[Column, ...]:
    if leave_out is not None:
        window = without_jobs(window, leave_out[window.rows] & window.unstarted)
    there = window.unstarted
    submit = window.period.workload.submit[there]
    since = np.maximum(submit, window.begin)
    start = window.simulate(config)[there] if there.any() else submit
    return (
        window.rows[there],
        np.full_like(since, i),
        since,
        np.full_like(since, window.end),
        window.gone[there],
        window.start[there],
        start,
    )


def without_jobs(window: LogWindow, gone: Mask) -> LogWindow:
    """Return a window without the masked jobs."""
    rows, state = np.flatnonzero(~gone), window.period.state
    period = replace(window.period.take(rows), state=None if state is None else state.take(rows))
    return LogWindow(window.begin, window.end, period, window.start[rows], window.gone[rows], window.rows[rows])


@dataclass(frozen=True)
class Errors:
    """Statistics of recorded minus simulated starts, seconds; NaN without jobs."""

    jobs: int
    mean: float
    median: float
    least: float
    most: float
    deviation: float
    within_minute: float  #: fraction of the jobs
    within_ten_minutes: float
    within_hour: float

    @classmethod
    def of(cls, error: Column) -> Errors:
        """Summarise recorded minus simulated starts."""
        if not error.size:
            return cls(0, *[float("nan")] * 8)
        size = np.abs(error)
        deviation = float(error.std(ddof=1)) if error.size > 1 else 0.0
        middle = (float(error.mean()), float(np.median(error)), float(error.min()), float(error.max()))
        shares = (float((size <= limit).mean()) for limit in (MINUTE, TEN_MINUTES, HOUR))
        return cls(error.size, *middle, deviation, *shares)


@dataclass(frozen=True)
class Figures:
    """The measures of one window, one group of jobs, or all."""

    counted: Errors  #: of jobs whose recorded and simulated starts are both in the window, as in the paper
    every: Errors  #: of all waiting jobs with a recorded start, whenever it is
    only_recorded: int  #: jobs with the recorded start in the window and the simulated one later
    only_simulated: int  #: jobs with the simulated start in the window and the recorded one later
    #: 1 - sum of |recorded - simulated wait| / sum of the longer of both, over jobs with either start in the window;
    #: differences up to a minute count as none. NaN if no job waits.
    agreement: float

    @property
    def inside(self) -> int:
        """Number of jobs whose recorded or simulated start is in the window."""
        return self.counted.jobs + self.only_recorded + self.only_simulated

    @classmethod
    def of(cls, starts: Starts) -> Figures:
        """Compute the figures of some starts."""
        recorded, simulated = (wait[starts.inside] for wait in starts.waits)
        off, either = np.abs(recorded - simulated), float(np.maximum(recorded, simulated).sum())
        counted, inside = starts.counted, starts.recorded < starts.until
        return cls(
            counted=Errors.of(starts.error[counted]),
            every=Errors.of(starts.error[starts.began]),
            only_recorded=int((inside & ~counted).sum()),
            only_simulated=int(((starts.simulated < starts.until) & ~counted).sum()),
            agreement=1 - float(off[off > MINUTE].sum()) / either if either else float("nan"),
        )


def by_window(starts: Starts, count: int) -> tuple[Figures, ...]:
    """Return the figures of each of the `count` windows."""
    return tuple(Figures.of(starts.take(starts.window == i)) for i in range(count))


def by_group(starts: Starts, history: History, recorded: Recorded) -> Iterator[tuple[str, str, Figures]]:
    """Yield (kind, name, figures) of each queue, user and hour of the day of recorded starts.

    Users come by descending total error; deleted jobs have no hour.
    """
    jobs, where = recorded.jobs.iloc[starts.row], zone(history.timezone)
    hours = [
        f"{datetime.fromtimestamp(history.epoch + second, where):%H}" if second < UNSTARTED else ""
        for second in starts.recorded.tolist()
    ]
    labels = {"queue": jobs["queue"].to_numpy(dtype=str), "user": jobs["user"].to_numpy(dtype=str)}
    labels["hour"] = np.array(hours, dtype=str)
    waits = starts.waits
    off = np.abs(waits[0] - waits[1])
    for kind in GROUPS:
        names, which = np.unique(labels[kind], return_inverse=True)
        order = np.argsort(-np.bincount(which, off, names.size), kind="stable") if kind == "user" else range(names.size)
        for i in order:
            if kind == "hour" and not names[i]:
                continue
            yield kind, str(names[i]), Figures.of(starts.take(which == i))
