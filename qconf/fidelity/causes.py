"""The jobs whose simulated start is farthest off, and signs in the log of why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from parsim import explain
from qconf.config import SiteConfig, format_duration
from qconf.fidelity.errors import MINUTE, Starts
from qconf.fidelity.windows import HELD, LogWindow, Mask, Recorded, Timeline
from qconf.history import History

QUIET = 3600  #: seconds without any start that look like a downtime
LONG = 0.25  #: least fraction of the delay without any start that looks like a downtime
FULL = 0.8  #: fraction of the delay with the user's most running jobs that shows a limit


@dataclass(frozen=True)
class Farthest:
    """A job whose simulated start is far off in one window; times are Unix seconds."""

    job_id: str
    queue: str
    user: str
    cores: int
    submit: int
    recorded: int
    simulated: int
    window: int  #: begin of the window
    alike: int  #: other jobs of the user that are at least half as far off in the window
    causes: tuple[str, ...]  #: possible causes as "kind: text", such as "held: ..."


def farthest(
    count: int,
    starts: Starts,
    windows: Sequence[LogWindow],
    config: SiteConfig,
    history: History,
    recorded: Recorded,
    timeline: Timeline,
    held: Mask,
) -> tuple[Farthest, ...]:
    """Return the `count` jobs whose waits in a window differ most, one for each user, with possible causes."""
    waits = starts.waits
    off = np.abs(waits[0] - waits[1])
    users = recorded.period.workload.user[starts.row]
    found: dict[int, int] = {}
    for i in np.lexsort((starts.row, -np.abs(starts.error), -off)).tolist():
        if len(found) < count and off[i] > MINUTE and starts.began[i]:
            user = int(users[i])
            found.setdefault(user if user >= 0 else -1 - int(starts.row[i]), i)
    jobs, epoch = recorded.jobs, history.epoch
    out = []
    for i in found.values():
        row = int(starts.row[i])
        alike = (users == users[i]) & (starts.window == starts.window[i]) & (2 * off >= off[i]) & (users >= 0)
        job, window = jobs.iloc[row], windows[int(starts.window[i])]
        log = _Log(recorded, timeline, held)
        real, simulated = int(starts.recorded[i]), int(starts.simulated[i])
        causes = log.too_early(row, simulated) if simulated < real else log.too_late(row, window, config)
        times = (int(job["submit"]) + epoch, real + epoch, simulated + epoch, window.begin + epoch)
        about = (str(job["job_id"]), str(job["queue"]), str(job["user"]), int(job["cores"]))
        out.append(Farthest(*about, *times, max(0, int(alike.sum()) - 1), tuple(causes)))
    return tuple(out)


class _Log:
    """The log, searched for possible causes of a job's start."""

    def __init__(self, recorded: Recorded, timeline: Timeline, held: Mask) -> None:
        self.w, self.start = recorded.period.workload, recorded.start
        self.end = self.start + self.w.effective_runtime
        self.timeline, self.held, self.recorded = timeline, held, recorded

    def name(self, row: int) -> str:
        """Return the job's name in the log."""
        return str(self.recorded.jobs["job_id"].iloc[row])

    def too_early(self, row: int, simulated: int) -> Iterator[str]:
        """Yield why the job may have started later than in the simulation."""
        w, begun = self.w, int(self.start[row])
        since = max(int(w.submit[row]), simulated)
        others = w.after[w.after[:, 0] == row, 1]
        if others.size:
            last = int(others[np.argmax(self.end[others])])
            yield f"dependency: the log says that it waits for job {self.name(last)}"
        if self.held[row]:
            first = self.timeline.first_fit(int(w.cores[row]), int(w.walltime[row]), int(w.submit[row]), begun)
            yield f"held: fits on idle cores from {format_duration(begun - first)} before its start on"
        if gap := self._quiet(row, since, begun):
            yield f"downtime: it fits, and no job at all starts for {format_duration(gap)}"
        yield from self._same_user(row, since)
        later = (w.submit > w.submit[row]) & (self.start >= since) & (self.start < begun)
        if later.any():
            wide = int((later & (w.cores >= w.cores[row])).sum())
            yield f"order: {int(later.sum())} jobs submitted later start before it, {wide} of them no narrower"

    def _same_user(self, row: int, since: int) -> Iterator[str]:
        """Yield signs of a dependency, or of a limit on the user."""
        w, begun, user = self.w, int(self.start[row]), self.w.user[row]
        if user < 0 or begun - since < HELD:
            return
        own = np.flatnonzero((w.user == user) & (self.start < begun) & (self.end > since) & (np.arange(len(w)) != row))
        ended = own[(self.end[own] <= begun) & (self.end[own] > begun - MINUTE)]
        if ended.size:
            last = int(ended[np.argmax(self.end[ended])])
            since_then = begun - int(self.end[last])
            yield f"dependency: starts {since_then} s after job {self.name(last)} of the same user ends"
        changes = np.concatenate((np.maximum(self.start[own], since), np.minimum(self.end[own], begun)))
        order = np.lexsort((np.repeat((1, 0), own.size), changes))  # an end comes before a start of the same second
        running = np.cumsum(np.repeat((1, -1), own.size)[order])
        most = int(running.max(initial=0))
        seconds = np.diff(changes[order], append=begun)
        if most and int(seconds[running == most].sum()) > FULL * (begun - since):
            yield f"limit: the user has {most} jobs running most of the time, and never more"

    def _quiet(self, row: int, since: int, begun: int) -> int:
        """Return the longest time from `since` to `begun` in which the job fits and no job starts; 0 if short."""
        inside = np.sort(self.start[(self.start > since) & (self.start <= begun)])
        at = np.concatenate(([since], inside))
        seconds = np.diff(at)
        if not seconds.size:
            return 0
        fits = self.timeline.least_between(at[:-1], at[1:]) >= self.w.cores[row]
        longest = int(seconds[fits].max(initial=0))
        return longest if longest >= max(QUIET, LONG * (begun - since)) else 0

    def too_late(self, row: int, window: LogWindow, config: SiteConfig) -> Iterator[str]:
        """Yield why the job may have started earlier than in the simulation, and what holds it there."""
        w, begun = self.w, int(self.start[row])
        passed = (w.submit < w.submit[row]) & (self.start > begun) & (self.recorded.gone > begun)
        if passed.any():
            wide = int((passed & (w.cores <= w.cores[row])).sum())
            yield f"order: starts before {int(passed.sum())} jobs submitted earlier, {wide} of them no wider"
        of = [each for each in window.stretches(config) if each.begin <= begun][-1]
        rows = window.rows[of.rows]
        place = int(np.flatnonzero(rows == row)[0])
        names = [self.name(int(each)) for each in rows]
        try:
            system = window.period.system(config)
            reasons = explain(of.jobs, system, of.schedule, place, names=names, state=of.state)
        except ValueError:  # the log's running jobs may break the configuration's rules: no replay
            return
        until = [reason for reason in reasons if reason.begin <= begun < reason.end]
        for reason in until[:1]:
            kind = "limit" if reason.text.startswith("held by") else "simulation"
            yield f"{kind}: {reason.text}"
