"""Read columns of numbers and durations in the formats of people and programs."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pandas as pd

from qconf.config import parse_duration
from qconf.config.routing import Mask
from qconf.history.records import UNKNOWN, Values

#: Words for an unknown or unlimited value.
NOTHING = {
    *("", "-", r"\n", "n/a", "na", "none", "not_set", "null", "unknown"),
    *("infinite", "partition_limit", "unlimited"),
}
#: More words for an unlimited walltime.
NO_LIMIT = {"inf", "infinity", "nan", "<na>", "(null)"}
_NUMBER = r"[0-9]{1,12}(?:[.,][0-9]{1,9})?"
#: Seconds by the words for a unit.
_SECONDS = {
    **dict.fromkeys(("w", "week", "weeks"), 604800.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nanosecond", "nanoseconds"), 1e-9),
}
_PART = re.compile(rf"({_NUMBER})\s*([a-z]+)\.?[\s,]*(?:and\s+)?")
_ISO = re.compile(
    rf"p(?:({_NUMBER})w)?(?:({_NUMBER})d)?(?:t(?:({_NUMBER})h)?(?:({_NUMBER})m)?(?:({_NUMBER})s)?)?", re.IGNORECASE
)
_CLOCK = re.compile(
    r"(?:([0-9]{1,6})(?:-|:| ?d(?:ays?)?,? ))?([0-9]{1,7}):([0-5][0-9]):([0-5][0-9](?:[.,][0-9]{1,9})?)"
)
_TWO = re.compile(r"([0-9]{1,7}):([0-5][0-9])")
_GROUPED = re.compile(r"[0-9]{1,3}(?:[ '\u2019\u00a0\u202f][0-9]{3})+(?:[.,][0-9]+)?")
_MARKED = re.compile(r"[0-9]{1,12}(?:[.,][0-9]+)*")


def duration(text: str, clock: int | None = None) -> float:
    """Read a duration as seconds: in a configuration's format, in words, as a clock, or ISO 8601.

    `clock` is the unit, in seconds, of the first number in a text like 24:00, else refused. Raises ValueError.
    """
    try:
        return parse_duration(text)
    except ValueError:
        pass
    low = text.lower()
    if match := _CLOCK.fullmatch(low):
        days, hours, minutes, seconds = match.groups()
        if days is None or int(hours) < 24:
            return (int(days or 0) * 24 + int(hours)) * 3600 + int(minutes) * 60 + _float(seconds)
    if clock is not None and (match := _TWO.fullmatch(low)):
        return int(match[1]) * clock + int(match[2]) * clock / 60
    if len(low) > 2 and (match := _ISO.fullmatch(low)) and any(match.groups()):
        return sum(_float(part or "0") * _SECONDS[unit] for part, unit in zip(match.groups(), "wdhms", strict=True))
    parts = _PART.findall(low)
    if (
        parts
        and "".join(found[0] for found in _PART.finditer(low)) == low
        and all(word in _SECONDS for _, word in parts)
    ):
        return sum(_float(number) * _SECONDS[word] for number, word in parts)
    raise ValueError("not a duration")


def limit(text: str, clock: int | None = None) -> float:
    """Read a walltime as `duration` does; `UNKNOWN` if the text means no limit."""
    return UNKNOWN if text.lower() in NO_LIMIT else duration(text, clock)


def _float(text: str) -> float:
    return float(text.replace(",", "."))


class Numbers:
    """Reader of a column of numbers, fed block by block; the column shows whether a comma is decimal."""

    def __init__(self, read: Callable[[str], float], scale: float = 1.0, *, whole: bool = False) -> None:
        self.read, self.scale, self.whole = read, scale, whole
        self.decimal = ""  #: the decimal sign, once a value has shown it

    def add(self, cells: pd.Series) -> tuple[Values, Mask, Mask]:
        """Read a block of rows; return the values, the mask of unreadable cells, and the mask of ambiguous ones."""
        values = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan).copy()
        strange = ~np.isfinite(values)
        unclear = np.zeros(values.size, dtype=np.bool_)
        if strange.any():
            codes, found = pd.factorize(cells[strange])
            texts = [str(each).strip() for each in found]
            self._settle(texts)
            read = [self._one(text) for text in texts]
            values[strange] = np.array(read)[codes]
            unclear[strange] = np.array([self._is_unclear(text) for text in texts], dtype=np.bool_)[codes]
        if self.decimal == "," and not self.whole and cells.dtype == object:
            values = self._with_points_in_thousands(cells, values)
        numbers = ~strange | (values != UNKNOWN)
        scaled = np.where(numbers & (values >= 0) & ~self._is_of_words(cells, strange), values * self.scale, values)
        return scaled, np.isnan(values), unclear

    def _is_of_words(self, cells: pd.Series, strange: Mask) -> Mask:
        """Mark the values that have a unit of their own."""
        found = np.zeros(strange.size, dtype=np.bool_)
        if self.scale != 1 and strange.any():
            found[strange] = [not re.fullmatch(r"[\d.,'\u2019\s]+", str(cell)) for cell in cells[strange]]
        return found

    def _settle(self, texts: list[str]) -> None:
        """Infer the decimal sign from these texts."""
        for text in texts:
            if self.decimal:
                return
            signs = re.findall(r"[.,]", text) if _MARKED.fullmatch(text) else []
            tail = re.split(r"[.,]", text)[-1]
            if len(set(signs)) == 2:
                self.decimal = signs[-1]
            elif signs == [","] and (len(tail) != 3 or re.match(r"0|\d{4}", text)):
                self.decimal = ","
            elif signs.count(",") > 1:
                self.decimal = "."

    def _one(self, text: str) -> float:
        if text.lower() in NOTHING:
            return UNKNOWN
        if _GROUPED.fullmatch(text):
            return _float(re.sub(r"[ '\u2019\u00a0\u202f]", "", text))
        if _MARKED.fullmatch(text) and re.search(r"[.,]", text):
            decimal = self.decimal or ("." if self.whole else ",")
            plain = text.replace("," if decimal == "." else ".", "").replace(decimal, ".")
            try:
                return float(plain)
            except ValueError:
                return np.nan
        try:
            return float(self.read(text))
        except ValueError:
            return np.nan

    def _is_unclear(self, text: str) -> bool:
        return not self.decimal and not self.whole and bool(re.fullmatch(r"[1-9]\d{0,2},\d{3}", text))

    def _with_points_in_thousands(self, cells: pd.Series, values: Values) -> Values:
        """Return the values with points read as thousands separators, since the comma is decimal."""
        pointed = cells.str.fullmatch(r"[1-9]\d{0,2}(?:\.\d{3})+").to_numpy(dtype=np.bool_)
        return np.where(pointed, values * 1000, values) if pointed.any() else values
