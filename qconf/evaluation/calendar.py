"""Downtimes, shortpools and limits by the hour: what of a configuration holds at certain times only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta, tzinfo
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from parsim import System, Window, Workload
from parsim.model.needs import MOST, Quota
from parsim.model.system import LIMITS
from qconf.config import ShortpoolConfig, SiteConfig
from qconf.config.models import DAYS, Downtime, HoursConfig
from qconf.history.times import instant, zone

AFTER = 366  #: days after the last submission for which shortpools and limits go on to apply


@dataclass(frozen=True)
class Outage:
    """A downtime in seconds after a log's epoch."""

    begin: int
    end: int
    known_from: int | None
    of: Downtime


def outages(config: SiteConfig, epoch: int, timezone: str) -> tuple[Outage, ...]:
    """Return the downtimes of a configuration; times without an offset are local to the log."""
    where = zone(timezone)

    def second(text: str) -> int:
        return instant(text, where) - epoch

    return tuple(
        Outage(second(each.begin), second(each.end), None if each.known_from is None else second(each.known_from), each)
        for each in map(config.sized, config.downtime)
    )


def windows(found: Sequence[Outage], system: System, begin: int, users: Sequence[str] = ()) -> Iterator[Window]:
    """Yield the outages that end after `begin` as windows; machine-wide if the system has no such partition.

    `users` names the jobs' users by number. If the simulator cannot tell users apart, an outage of some applies to all.
    """
    apart = system.mode != "multiqueue"
    names, queues = system.partition_names, [queue.name for queue in system.queues]
    nodes = sum(-(-cores // system.cores_per_node) for cores in system.partition_cores)
    size = dict(zip(names, system.partition_cores, strict=True))
    owned = dict(zip(names, system.owned_nodes, strict=True)) if system.node_types else {}
    if system.node_types:
        nodes = sum(each.nodes for each in system.node_types)
    for each in found:
        if each.end > begin:
            of = each.of
            held = owned.get(of.partition or "", {})
            has = (of.cores or 0) <= size.get(of.partition or "", -1)
            has = has and all(held.get(name, 0) >= count for name, count in of.types.items())
            yield Window(
                each.begin,
                each.end,
                of.cores,
                names.index(of.partition) if of.partition and has else None,
                [node for node in of.nodes if node < nodes],
                each.known_from,
                of.known_end,
                queues.index(of.queue) if of.queue in queues else None,
                [number for number, name in enumerate(users) if name in of.users] if apart else [],
                node_types=of.types,
            )


def hourly(workload: Workload, config: SiteConfig, epoch: int, where: tzinfo) -> list[Quota]:
    """Return the quotas by which a configuration's `hours` limit these jobs, which are in its queues.

    Times of the day are local to `where`; second 0 of the jobs is the Unix time `epoch`.
    """
    if not len(workload):
        return []
    first, last = int(workload.submit.min()), int(workload.submit.max()) + AFTER * 86400
    return [
        quota
        for each in config.hours
        if each.queue in config.names
        for quota in _of(each, workload, config.names.index(each.queue), list(spans(each, first, last, epoch, where)))
    ]


def spans(
    each: HoursConfig | ShortpoolConfig, first: int, last: int, epoch: int, where: tzinfo
) -> Iterator[tuple[int, int]]:
    """Yield (opens, closes) of the hours, in seconds, ascending, on each of their days from `first` to `last`."""
    begin, end = time.fromisoformat(each.begin), time.fromisoformat(each.end)
    day = datetime.fromtimestamp(first + epoch, where).date() - timedelta(days=2)
    until = datetime.fromtimestamp(last + epoch, where).date()
    while day <= until:
        if DAYS[day.weekday()] in each.days:
            closes = day if begin < end else day + timedelta(days=1)
            opened, closed = (
                int(datetime.combine(date, clock, where).timestamp()) - epoch
                for date, clock in ((day, begin), (closes, end))
            )
            if opened < closed:
                yield opened, closed
        day += timedelta(days=1)


def _of(each: HoursConfig, workload: Workload, queue: int, spans: Sequence[tuple[int, int]]) -> Iterator[Quota]:
    members = np.flatnonzero(workload.queue == queue)
    for limit in LIMITS:
        most = getattr(each, limit)
        if most is None or not members.size:
            continue
        changes = [change for opened, closed in spans for change in ((opened, most), (closed, MOST))]
        for rows, whose in _groups(workload, members) if "user" in limit else ((members, ""),):
            amounts = workload.cores[rows] if limit.endswith("cores") else np.ones(rows.size, dtype=np.int64)
            if amounts.sum() > most:
                yield Quota(f"{limit} = {most} of queue {each.queue}{whose} by the hour", MOST, rows, amounts, changes)


def _groups(workload: Workload, members: NDArray[np.intp]) -> Iterator[tuple[NDArray[np.intp], str]]:
    """Yield the jobs of each user; jobs without one are exempt."""
    user = workload.user[members]
    for each in np.unique(user[user >= 0]).tolist():
        yield members[user == each], f" and user {workload.user_name(each)}"


def dedicated(
    system: System, shortpools: tuple[ShortpoolConfig, ...], within: tuple[int, int], epoch: int, timezone: str
) -> System:
    """Return a system with windows for the shortpools, from the first to a year after the last second of `within`.

    Times of the day are local to the time zone; second 0 is the Unix time `epoch`.
    """
    return replace(system, windows=_windows(shortpools, *within, epoch, timezone)) if shortpools else system


@lru_cache(maxsize=64)
def _windows(
    shortpools: tuple[ShortpoolConfig, ...], first: int, last: int, epoch: int, timezone: str
) -> tuple[Window, ...]:
    return tuple(
        Window(begin, end, None if each.types else each.cores, walltime=each.walltime, node_types=each.types)
        for each in shortpools
        for begin, end in _joined(spans(each, first, last + AFTER * 86400, epoch, zone(timezone)))
        if end > first
    )


def _joined(found: Iterator[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge spans that touch or overlap."""
    joined: list[tuple[int, int]] = []
    for begin, end in found:
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((begin, end))
    return joined
