"""Export limits with hours as cron lines: one sets the limits when the hours begin, one restores them at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

import yaml

from parsim.model.system import LIMITS
from qconf.config import QueueConfig, SiteConfig
from qconf.config.models import DAYS, HoursConfig
from qconf.config.writing import flow
from qconf.errors import ExportError, InputError

FILE = "qconf-hours"  #: a cron file for /etc/cron.d
MARK = "# hours: "  #: prefix of the comment with each entry of the configuration
WEEK = 7 * 1440  #: minutes

#: Returns the commands that set some limits of a queue; None removes a limit.
Set = Callable[[QueueConfig, Mapping[str, int | None]], Sequence[str]]


def refuse(config: SiteConfig) -> None:
    """Raise ExportError if two entries for a limit overlap: the end of one would reset the other."""
    for queue in config.queues:
        for limit in LIMITS:
            held = [each for each in config.hours if each.queue == queue.name and getattr(each, limit) is not None]
            spans = sorted(span for each in held for span in _spans(each))
            again = [(begin + WEEK, end + WEEK) for begin, end in spans[:1]]
            if any(after[0] <= before[1] for before, after in pairwise([*spans, *again])):
                raise ExportError(
                    f"hours: two times of {limit} of queue {queue.name} meet or overlap, and lines of cron set one "
                    "after the other; part them by a minute, or put them into one entry"
                )


def _spans(each: HoursConfig) -> Iterator[tuple[int, int]]:
    """Yield begin and end of the hours on each day, in minutes of the week."""
    begin, end = map(_minutes, (each.begin, each.end))
    for day in each.days:
        first = 1440 * DAYS.index(day) + begin
        yield first, first + (end - begin) % 1440


def _minutes(clock: str) -> int:
    return 60 * int(clock[:2]) + int(clock[3:])


def cron(config: SiteConfig, commands: Set, head: Sequence[str]) -> str:
    """Return the cron file for the configuration's hours, in the host's local time."""
    lines = ["# Limits of queues for some hours, at the local time of this host. Written by qconf export.", *head]
    for each in config.hours:
        queue = config.queue(each.queue)
        limits = {name: most for name in LIMITS if (most := getattr(each, name)) is not None}
        own = {name: getattr(queue, name) for name in limits}
        held = {name: most if own[name] is None else min(most, own[name]) for name, most in limits.items()}
        next_day = _minutes(each.end) <= _minutes(each.begin)
        lines.append(f"{MARK}{flow(each)}")
        for clock, later, now in ((each.begin, 0, held), (each.end, int(next_day), own)):
            days = sorted((DAYS.index(day) + later) % 7 + 1 for day in each.days)
            when = f"{int(clock[3:])} {int(clock[:2])} * * {','.join(map(str, days)) if len(days) < 7 else '*'}"
            lines += [f"{when} root {command}" for command in commands(queue, dict(now))]
    return "\n".join(lines) + "\n"


def read_hours(text: str) -> Iterator[HoursConfig]:
    """Read the entries back from a cron file of `cron`. Raises InputError for an invalid entry."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith(MARK):
            try:
                yield HoursConfig.model_validate(yaml.safe_load(line.removeprefix(MARK)))
            except (ValueError, yaml.YAMLError) as error:
                raise InputError("is no entry of hours", line=number, value=line) from error


def taken_back(config: SiteConfig, commands: Set) -> list[str]:
    """Return the commands that restore the queues' own limits."""
    found: dict[str, None] = {}
    for each in config.hours:
        queue = config.queue(each.queue)
        own = {name: getattr(queue, name) for name in LIMITS if getattr(each, name) is not None}
        found |= dict.fromkeys(commands(queue, own))
    return [*found]
