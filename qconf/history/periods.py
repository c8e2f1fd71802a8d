"""Cut a history into calendar months or periods of days."""

from __future__ import annotations

import re
from datetime import datetime, tzinfo
from typing import NamedTuple

from qconf.errors import InputError

DAY = 86400
FEWEST = 100  # jobs that a period needs for training or evaluation


class Window(NamedTuple):
    """A labelled period [start, end), seconds after the log's epoch."""

    label: str
    start: int
    end: int


def windows(kind: str, first: int, last: int, *, epoch: int, where: tzinfo) -> list[Window]:
    """Cut the span [first, last] into calendar months (``month``) or periods of days from `first` (``30d``).

    Seconds count from `epoch`, a Unix time; `where` is the zone of months and labels. Raises `InputError` for any other
    `kind`.
    """
    moment = datetime.fromtimestamp(epoch + first, where)
    found: list[Window] = []
    if kind == "month":
        label = f"{moment.year:04d}-{moment.month:02d}"
        while not found or found[-1].end <= last:
            found.append(Window(label, *month_bounds(label, epoch, where)))
            label = _next_month(label)
        return found
    days = re.fullmatch(r"([1-9]\d{0,4})d", kind)
    if not days:
        raise InputError("no such period", field="period", value=kind, fix="write month, or days such as 30d")
    step = int(days.group(1)) * DAY
    for start in range(first, last + 1, step):
        date = datetime.fromtimestamp(epoch + start, where).isoformat()
        same = bool(found) and found[-1].label == date[:10]  # a day of 25 hours
        found.append(Window(date[:16] if same else date[:10], start, start + step))
    return found


def month_bounds(label: str, epoch: int, where: tzinfo) -> tuple[int, int]:
    """Return the bounds [start, end) of a month, seconds after `epoch`; `InputError` if `label` is not YYYY-MM."""
    if not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", label) or label == "9999-12" or label < "0001-01":
        raise InputError("no month", field="month", value=label, fix="write it like 2016-02")
    first, second = (
        int(datetime(int(text[:4]), int(text[5:]), 1, tzinfo=where).timestamp()) - epoch
        for text in (label, _next_month(label))
    )
    return first, second


def _next_month(label: str) -> str:
    year, month = int(label[:4]), int(label[5:])
    return f"{year + month // 12:04d}-{month % 12 + 1:02d}"
