"""The family of configurations that a calibration tries: changes of a configuration, one part at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from parsim.model.system import ORDERS
from qconf.config import QueueConfig, SiteConfig, format_duration
from qconf.config.models import Downtime, ThrottleConfig
from qconf.fidelity.windows import LogWindow, Recorded, Timeline
from qconf.history import History
from qconf.history.times import zone

#: Parts of a configuration; of equally good changes the first part's is kept.
PARTS = ("order", "priorities", "backfill", "starvation", "limits", "dedicated")
STARVATIONS = (12 * 3600, 24 * 3600, 72 * 3600, 168 * 3600)
DELAYS = (0, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 72 * 3600, 720 * 3600)  #: the last: hardly any reservations
DEPTHS = (1, 2, 3, 5, 10, 30, None)  #: jobs of a list with a reservation; None: all
LOOKED_AT = (5, 10, 20, 50, 100)  #: limits on eligible waiting jobs
OF_USER = (1, 2, 3, 5, 10)  #: limits on a user's eligible waiting jobs
JOBS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  #: limits on a user's running jobs
SHARES = (32, 16, 8, 4, 2)  #: limits on a user's running cores: the machine divided by this
HOUR, WEEK = 3600, 168  #: seconds, hours
UNLIKELY = 7.0  #: expected starts in an hour of the week of which seeing none has probability 1 in 1000


@dataclass(frozen=True)
class Change:
    """A configuration in which one part is changed, with a text that names the change."""

    part: str
    text: str
    config: SiteConfig


@dataclass(frozen=True)
class Family:
    """The values that changes take from the given configuration and from the training windows."""

    given: SiteConfig
    widest: tuple[int, ...]  #: cores of the widest job of each queue in the log: a limit must let it start
    peaks: tuple[tuple[int, int], ...]  #: most running jobs and cores of each queue in the training windows
    dedicated: tuple[Downtime, ...]  #: hours of the week in which no job starts

    @classmethod
    def of(cls, given: SiteConfig, recorded: Recorded, windows: Sequence[LogWindow], history: History) -> Family:
        """Build the family from the training windows of a log."""
        w, queues = recorded.period.workload, range(len(given.queues))
        widest = np.zeros(len(given.queues), dtype=np.int64)
        np.maximum.at(widest, w.queue, w.cores)
        peaks = [np.max([_peaks(each, q) for each in windows], axis=0).tolist() for q in queues]
        idle_hours = tuple(_dedicated(recorded, windows, history))
        return cls(given, tuple(widest.tolist()), tuple((jobs, cores) for jobs, cores in peaks), idle_hours)

    def changes(self, config: SiteConfig, parts: Sequence[str] = PARTS) -> Iterator[Change]:
        """Yield all changes of one part of this configuration."""
        for part in parts:
            for text, found in getattr(self, f"_{part}")(config):
                if found != config:
                    yield Change(part, text, found)

    def _order(self, config: SiteConfig) -> Iterator[tuple[str, SiteConfig]]:
        plain = _queues(config, priority=[1.0] * len(config.queues), starvation=[None] * len(config.queues))
        for order in dict.fromkeys((self.given.order, *ORDERS)):
            yield f"order {order}", config.replace(order=order)
            # Priorities and starvation precede any order but a formula, and mask its effect.
            yield f"order {order}, equal priorities, no starvation", plain.replace(order=order)

    def _priorities(self, config: SiteConfig) -> Iterator[tuple[str, SiteConfig]]:
        yield "priorities as given", _queues(config, priority=[queue.priority for queue in self.given.queues])
        if len(config.queues) == 1:
            return
        now = [queue.priority for queue in config.queues]
        yield "equal priorities", _queues(config, priority=[1.0] * len(now))
        for i, queue in enumerate(config.queues):
            first, last = [*now], [*now]
            first[i], last[i] = 2 * max(now), min(now) / 2
            yield f"{queue.name} first", _queues(config, priority=_ranked(first))
            yield f"{queue.name} last", _queues(config, priority=_ranked(last))

    def _backfill(self, config: SiteConfig) -> Iterator[tuple[str, SiteConfig]]:
        yield "no backfilling", config.replace(backfill=False, reserve_after=0, reservation_depth=1)
        for depth in dict.fromkeys((self.given.reservation_depth, *self.depths)):
            yield f"backfilling, {_reservations(depth)}", config.replace(backfill=True, reservation_depth=depth)
        if config.mode == "shared":
            for delay in dict.fromkeys((self.given.reserve_after, *DELAYS)):
                text = f"backfilling, reservations after {format_duration(delay)}" if delay else "backfilling"
                yield text, (config.reserving() if delay else config).replace(backfill=True, reserve_after=delay)
        for throttle, counts in ((ThrottleConfig(), LOOKED_AT), (ThrottleConfig(each="user"), OF_USER)):
            for most in (None, *counts):
                text = f"of {throttle.what} {most or 'all'} that wait are looked at"
                yield text, config.replace(throttles=_looking_at(config.throttles, throttle, most))

    @property
    def depths(self) -> Sequence[int | None]:
        """Numbers of reservations to try; empty if the given configuration allows only its own."""
        given = self.given
        return DEPTHS if given.reserve == "cores" and given.held_jobs == "pass" and not given.has_tiers else ()

    def _starvation(self, config: SiteConfig) -> Iterator[tuple[str, SiteConfig]]:
        given = [queue.starvation for queue in self.given.queues]
        yield "starvation as given", _queues(config, starvation=given)
        for seconds in (None, *STARVATIONS):
            text = "no starvation" if seconds is None else f"starvation after {format_duration(seconds)}"
            yield text, _queues(config, starvation=[seconds] * len(given))

    def _limits(self, config: SiteConfig) -> Iterator[tuple[str, SiteConfig]]:
        for name in ("max_user_run", "max_user_cores", "max_run", "max_run_cores"):
            given = [getattr(queue, name) for queue in self.given.queues]
            yield f"{name} as given", _queues(config, **{name: given})
            yield f"no {name}", _queues(config, **{name: [None] * len(given)})
        for most in JOBS:
            yield f"max_user_run {most}", _queues(config, max_user_run=[most] * len(config.queues))
        for share in SHARES:
            cores = [max(config.machine.cores // share, 1, widest) for widest in self.widest]
            yield f"max_user_cores 1/{share} of the machine", _queues(config, max_user_cores=cores)
        for i, (queue, (jobs, used)) in enumerate(zip(config.queues, self.peaks, strict=True)):
            for name, most in (("max_run", jobs), ("max_run_cores", max(used, self.widest[i]))):
                if most and not (name == "max_run_cores" and most >= config.machine.cores):
                    own = [getattr(each, name) for each in config.queues]
                    own[i] = most
                    yield f"{name} {most} of {queue.name}", _queues(config, **{name: own})

    def _dedicated(self, config: SiteConfig) -> Iterator[tuple[str, SiteConfig]]:
        yield "downtimes as given", config.replace(downtime=self.given.downtime)
        if self.dedicated and not (self.given.nodes or self.given.has_tiers):
            yield "dedicated hours of the week", config.replace(downtime=(*self.given.downtime, *self.dedicated))


def _queues(config: SiteConfig, **columns: Sequence[object]) -> SiteConfig:
    """Return a configuration with these values, by field, of its queues."""
    changes = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    queues: list[QueueConfig] = [
        queue.model_copy(update=change) for queue, change in zip(config.queues, changes, strict=True)
    ]
    return config.replace(queues=tuple(queues))


def _reservations(depth: int | None) -> str:
    return "a reservation for each job" if depth is None else f"{depth} reservation{'s' * (depth != 1)}"


def _looking_at(
    throttles: Sequence[ThrottleConfig], whose: ThrottleConfig, most: int | None
) -> tuple[ThrottleConfig, ...]:
    """Return the throttles with `max_eligible` set to `most` in the one for the same jobs as `whose`."""
    others = [each for each in throttles if each.what != whose.what]
    found = next((each for each in throttles if each.what == whose.what), whose)
    found = found.model_copy(update={"max_eligible": most})
    return (*others, found) if found.limits else tuple(others)


def _ranked(values: Sequence[float]) -> list[float]:
    """Replace priorities by 10, 20, 30, ... in the same order; equal ones stay equal."""
    ranks = sorted(set(values))
    return [10.0 * (1 + ranks.index(value)) for value in values]


def _peaks(window: LogWindow, queue: int) -> tuple[int, int]:
    """Return the most running jobs and cores of a queue inside a window, by the log."""
    w = window.period.workload
    own = np.flatnonzero((w.queue == queue) & (window.start < window.end))
    start = np.maximum(window.start[own], window.begin)
    end = window.start[own] + w.effective_runtime[own]
    inside = end > window.begin
    instants = np.concatenate((start[inside], end[inside]))
    order = np.lexsort((np.repeat((1, 0), int(inside.sum())), instants))
    cores = w.cores[own][inside]
    ones = np.ones_like(cores)
    jobs, used = (np.cumsum(np.concatenate((each, -each))[order]).max(initial=0) for each in (ones, cores))
    return int(jobs), int(used)


def _dedicated(recorded: Recorded, windows: Sequence[LogWindow], history: History) -> Iterator[Downtime]:
    """Yield a weekly downtime for hours in which no job starts in the windows though waiting jobs fit."""
    where, epoch = zone(history.timezone), history.epoch
    timeline = Timeline.of(recorded)
    begun, covered, seen = np.zeros(WEEK), np.zeros(WEEK), 0
    for window in windows:
        first = -(-(window.begin + epoch) // HOUR) * HOUR - epoch  # whole hours of the clock
        moments = np.arange(first, window.end - HOUR, HOUR)
        if not moments.size:
            continue
        inside = window.unstarted & (window.start < window.end)
        begun_in = np.histogram(window.start[inside], np.append(moments, moments[-1] + HOUR))[0]
        idle = timeline.least_between(moments, moments + HOUR)
        w = window.period.workload
        waits = [
            bool(((w.submit <= at + HOUR // 2) & (window.left > at + HOUR // 2) & (w.cores <= free)).any())
            for at, free in zip(moments.tolist(), idle.tolist(), strict=True)
        ]
        days = [datetime.fromtimestamp(epoch + at, where) for at in moments.tolist()]
        cells = [24 * each.weekday() + each.hour for each in days]
        np.add.at(begun, cells, begun_in)
        seen += moments.size
        np.add.at(covered, cells, np.array(waits, dtype=float))
    rate = begun.sum() / max(1.0, seen)
    closed = (begun == 0) & (covered * rate >= UNLIKELY)
    if not closed.any() or closed.all():
        return
    edges = np.flatnonzero(np.diff(closed.astype(np.int8), prepend=0, append=0))  # of each run of closed hours
    submit = recorded.period.workload.submit
    day = datetime.fromtimestamp(epoch + int(submit[0]), where)
    monday = (day - timedelta(days=day.weekday())).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    last = datetime.fromtimestamp(epoch + int(submit[-1]), where).replace(tzinfo=None)
    while monday <= last:
        for stretch in edges.reshape(-1, 2).tolist():
            begin, end = ((monday + timedelta(hours=hour)).isoformat() for hour in stretch)
            yield Downtime(begin=begin, end=end)
        monday += timedelta(days=7)
