"""Limits of a queue at certain hours of certain days, as quotas of a period's jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, time, timedelta, tzinfo

import numpy as np
from numpy.typing import NDArray

from parsim import Workload
from parsim.model.needs import MOST, Quota
from parsim.model.system import LIMITS
from qconf.config import SiteConfig
from qconf.config.models import DAYS, HoursConfig, ShortpoolConfig

AFTER = 366  #: days after the last submission for which limits go on to apply


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
