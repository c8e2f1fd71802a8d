"""Durations in the forms that people write: 7200, 2h, 2h30m, 7d, 02:00:00, 1-00:00:00."""

from __future__ import annotations

import re

from parsim.model.workload import MAX_DURATION

#: The forms of a duration, for messages.
FORMS = "seconds, 2h, 2h30m, 7d, HH:MM:SS or D-HH:MM:SS"

_UNITS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
_WITH_UNITS = re.compile("".join(rf"(?:([0-9]{{1,10}}){unit})?" for unit in _UNITS))
_CLOCK = re.compile(r"(?:([0-9]{1,6})-)?([0-9]{1,7}):([0-5][0-9]):([0-5][0-9])")


def parse_duration(value: object) -> int:
    """Return a duration in seconds, at most ``MAX_DURATION``, from a whole number of seconds or a text (`FORMS`).

    ``24:00`` is refused: PBS and Slurm read it as 24 minutes. Raises `ValueError` for anything else.
    """
    seconds = _seconds(value)
    if seconds is None:
        raise ValueError(f"not a duration: {FORMS}")
    if not 0 <= seconds <= MAX_DURATION:
        raise ValueError(f"a duration lies between 0 and {MAX_DURATION} seconds")
    return seconds


def _seconds(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str) or not value:
        return None
    if value.isascii() and value.isdigit() and len(value) <= 18:
        return int(value)
    if clock := _CLOCK.fullmatch(value):
        days, hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        if days and hours > 23:
            return None
        return days * 86400 + hours * 3600 + minutes * 60 + seconds
    if units := _WITH_UNITS.fullmatch(value):
        return sum(int(count or 0) * size for count, size in zip(units.groups(), _UNITS.values(), strict=True))
    return None


def format_duration(seconds: int) -> str:
    """Format `seconds` in the shortest usual form that `parse_duration` reads: 0, 90s, 2h30m, 72h, 7d."""
    if seconds == 0:
        return "0"
    if seconds % 86400 == 0 and seconds > 3 * 86400:
        return f"{seconds // 86400}d"
    hours, rest = divmod(seconds, 3600)
    parts = ((hours, "h"), (rest // 60, "m"), (rest % 60, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count)


def format_clock(seconds: int) -> str:
    """Format `seconds` as HH:MM:SS, with more than 24 hours if need be, as PBS does."""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
