"""Read time zones, dates and time limits in the formats of people and logs."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from qconf.errors import InputError
from qconf.history.records import UNKNOWN

DOUBLED = "in an hour that comes twice: the reading that agrees with the other times, else the first"
#: What programs write where there is no time.
NO_TIME = {"", "-", "unknown", "none", "n/a", "na", "null", "(null)", r"\n", "0000-00-00 00:00:00", "0000-00-00"}
ISO = re.compile(r"\d{4}-\d{2}-\d{2}")
LIMIT = re.compile(r"(?:([0-9]{1,6})-)?([0-9]{1,10})(?::([0-9]{1,2}))?(?::([0-9]{1,2}))?")


def zone(name: str) -> tzinfo:
    """Return the time zone of a name like Europe/Stockholm; `InputError` if unknown."""
    try:
        return UTC if name.upper() == "UTC" else ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise InputError(
            "unknown time zone", field="timezone", value=name, fix="write it like Europe/Stockholm or UTC"
        ) from error


def instant(text: str, where: tzinfo = UTC) -> int:
    """Read an ISO 8601 date or time, local to `where` if it has no offset, as Unix seconds.

    When clocks go back, a repeated hour is read as the first one; a skipped hour is read as if the clock had not
    moved. Raises `ValueError` if the text is no date.
    """
    text = text.strip()
    if not ISO.match(text):
        raise ValueError("not a date")
    moment = datetime.fromisoformat(text)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=where)).timestamp() // 1)


def slurm_limit(text: str) -> int:
    """Read a Slurm time limit (minutes, MM:SS, HH:MM:SS or D-HH[:MM[:SS]]) as seconds; else `ValueError`."""
    match = LIMIT.fullmatch(text)
    if match is None:
        raise ValueError(f"time limit {text[:40]!r}")
    days, first, second, third = match.groups(default="0")
    if match[1] or match[4]:
        return ((int(days) * 24 + int(first)) * 60 + int(second)) * 60 + int(third)
    return int(first) * 60 + int(second)


def attempt(read: Callable[[str], int], text: str) -> float:
    """Return ``read(text)``, `UNKNOWN` for an empty text, NaN if it raises `ValueError`."""
    if not text:
        return UNKNOWN
    try:
        return float(read(text))
    except ValueError:
        return float("nan")
