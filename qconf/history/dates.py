"""Columns of times as programs and people write them; each column is read in one way or refused."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from qconf.errors import InputError
from qconf.history.records import MAX_TIME, UNKNOWN
from qconf.history.times import attempt, instant

#: What ``--date-format`` calls Unix seconds.
EPOCH = "epoch"

Values = NDArray[np.float64]
Mask = NDArray[np.bool_]

_DATES = (
    (re.compile(r"\d{4}([-/.])\d{1,2}\1\d{1,2}"), "%Y{0}%m{0}%d"),
    (re.compile(r"\d{1,2}(\.)\d{1,2}\.\d{4}"), "%d.%m.%Y"),
    (re.compile(r"\d{1,2}([-/])\d{1,2}\1\d{4}"), "%d{0}%m{0}%Y"),
    (re.compile(r"\d{1,2}([- ])[A-Za-z]{3}\1\d{4}"), "%d{0}%b{0}%Y"),
    (re.compile(r"\d{1,2}( )[A-Za-z]{4,9} \d{4}"), "%d %B %Y"),
    (re.compile(r"[A-Za-z]{3} \d{1,2}(,?) \d{4}"), "%b %d{0} %Y"),
    (re.compile(r"[A-Za-z]{4,9} \d{1,2}(,?) \d{4}"), "%B %d{0} %Y"),
)
_CLOCK = re.compile(
    r"(?P<gap>T|,? )\d{1,2}:\d{2}(?P<second>:\d{2})?(?P<fraction>\.\d{1,6})?"
    r"(?P<half> ?[AaPp][Mm])?(?P<zone> ?(?:Z|[+-]\d{2}:?\d{2}))?"
)
_CTIME = re.compile(r"[A-Za-z]{3} [A-Za-z]{3} {1,2}\d{1,2} \d{2}:\d{2}:\d{2} \d{4}")
#: Times of digits alone that are too great for Unix seconds, by their length.
_DIGITS = {12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
_MILLISECONDS = 13
#: Dates that may have the month first as well.
_EITHER = re.compile(r"%d([-/])%m\1%Y")


def spelling(text: str) -> str:
    """Return the strptime format of a time in one of the usual forms, "" where it is none of them.

    One that can be read day first and month first has the format with the day first.
    """
    if _CTIME.fullmatch(text):
        return "%a %b %d %H:%M:%S %Y"
    for pattern, date in _DATES:
        if match := pattern.match(text):
            clock = _CLOCK.fullmatch(text, match.end())
            if match.end() < len(text) and clock is None:
                return ""
            return date.format(match[1]) + ("" if clock is None else _clock(clock))
    return ""


def _clock(found: re.Match[str]) -> str:
    half, zone = found["half"] or "", found["zone"] or ""
    parts = (
        found["gap"] + ("%I:%M" if half else "%H:%M"),
        ":%S" if found["second"] else "",
        ".%f" if found["fraction"] else "",
        half[:-2] + "%p" if half else "",
        " " * zone.startswith(" ") + "%z" if zone else "",
    )
    return "".join(parts)


def check_format(text: str) -> str:
    """Return a strptime format, or `EPOCH`; `InputError` where it is neither, or names no whole date."""
    moment = datetime(2026, 11, 23, tzinfo=UTC)
    try:
        read = datetime.strptime(moment.strftime(text), text)  # noqa: DTZ007 - only its date matters
    except ValueError:
        read = None
    if text != EPOCH and (read is None or read.date() != moment.date()):
        message = "is no strptime format" if read is None else "does not hold year, month and day"
        fix = f"write one like %d.%m.%Y %H:%M or %m/%d/%Y %I:%M %p, or {EPOCH} for Unix seconds"
        raise InputError(message, field="--date-format", value=text, fix=fix)
    return text


class TwoReadingsError(ValueError):
    """A column of times can be read in two ways; `value` is one of it."""

    def __init__(self, value: str, message: str, fix: str) -> None:
        super().__init__(message)
        self.value, self.fix = value, fix


def read_times(texts: pd.Series, where: tzinfo, form: str | None = None) -> tuple[Values, Mask, bool]:
    """Read a column of times as Unix seconds: numbers as such, nothing as `UNKNOWN`, dates in the usual forms.

    Times without an offset are local to `where`. `form`, a strptime format or `EPOCH`, is tried before all others and
    settles whether day or month comes first. Return the values, NaN where the text is not understood; where it is not;
    and whether `form` read any. Raises `TwoReadingsError`.
    """
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan).copy()
    formed = form not in (None, EPOCH)
    numbers[np.isinf(numbers)] = np.nan
    dated = np.isnan(numbers) | (numbers > MAX_TIME)
    if formed:
        dated |= numbers >= 0
    elif form is None:
        _refuse_compact(numbers, texts)
    if not dated.any():
        return numbers, np.isnan(numbers), form == EPOCH
    codes, distinct = pd.factorize(texts[dated])
    column = _Dates(pd.Series(distinct, dtype="str"), numbers[dated][_first(codes, len(distinct))], where)
    used = column.read_form(form) if form is not None and formed else form == EPOCH
    numbers[dated] = column.read(_order(form))[codes]
    return numbers, np.isnan(numbers), used


def _first(codes: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """Return the position of each code's first row."""
    first = np.empty(count, dtype=np.intp)
    first[codes[::-1]] = np.arange(codes.size)[::-1]
    return first


def _order(form: str | None) -> str | None:
    """Return what a format says of dates with the year at the end: `day` or `month` first; None if nothing."""
    day, month, year = (form.replace("%y", "%Y").find(part) if form else -1 for part in ("%d", "%m", "%Y"))
    return None if -1 in (day, month, year) or year < max(day, month) else "day" if day < month else "month"


def _refuse_compact(numbers: Values, texts: pd.Series) -> None:
    """Refuse a column of numbers each of which could be a date such as 20261001."""
    known = np.flatnonzero(numbers >= 0)
    whole = numbers[known]
    if not known.size or whole.min() < 1970_01_01 or whole.max() > 2099_12_31:
        return
    month, day = whole // 100 % 100, whole % 100
    if ((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all():
        value = str(texts.iloc[known[0]]).strip()
        second = datetime.fromtimestamp(float(value), UTC)
        date = f"{value[:4]}-{value[4:6]}-{value[6:8]}"
        raise TwoReadingsError(
            value,
            f"reads two ways, the date {date} and the Unix second of {second:%Y-%m-%d %H:%M:%S}, as do all here",
            f"add --date-format %Y%m%d for dates, or --date-format {EPOCH}",
        )


class _Dates:
    """The distinct texts of a column while they are read."""

    def __init__(self, texts: pd.Series, numbers: Values, where: tzinfo) -> None:
        self.texts, self.values, self.where = texts.str.strip(), numbers, where
        self.open = np.ones(texts.size, dtype=np.bool_)  #: not yet read
        self.by = {order: np.full(texts.size, np.nan) for order in ("day", "month")}  #: read with it first
        self._close((self.texts == "").to_numpy(), np.full(texts.size, float(UNKNOWN)))
        self.open &= ~self.texts.isin(["now", "today"]).to_numpy()  # pandas would read the clock

    def read_form(self, form: str) -> bool:
        """Read what is written in a given format; return whether anything is."""
        values = self._parse(self.open, form)
        self._close(~np.isnan(values), values)
        return not bool(np.isnan(values).all())

    def read(self, order: str | None) -> Values:
        """Read the rest in the usual forms, dates without an own `order` in that one, or in the one that they show.

        First all that are spelled as the first, then the others, then what only ISO 8601 knows; numbers stay.
        """
        self._read_digits(self.open & np.isfinite(self.values))
        if self.open.any():
            self._read_spelled(self.open.copy(), spelling(str(self.texts[self.open].iloc[0])))
        if self.open.any():
            rows = np.flatnonzero(self.open)
            forms = np.array([spelling(text) for text in self.texts.iloc[rows].tolist()], dtype=object)
            for form in dict.fromkeys(forms.tolist()):
                alike = np.zeros_like(self.open)
                alike[rows[forms == form]] = True
                self._read_spelled(alike, form)
        if not all(np.isnan(values).all() for values in self.by.values()):
            values = self.by[order or self._order_shown()]
            self._close(~np.isnan(values), values)
        rows = np.flatnonzero(self.open)
        self.values[rows] = [attempt(partial(instant, where=self.where), text) for text in self.texts.iloc[rows]]
        return self.values

    def _read_digits(self, rows: Mask) -> None:
        lengths = self.texts.where(rows, "").str.len().to_numpy()
        milliseconds = lengths == _MILLISECONDS
        self._close(milliseconds, self.values / 1000)
        for length, form in _DIGITS.items():
            values = self._parse(lengths == length, form)
            self._close(~np.isnan(values), values)
        self.open &= ~rows

    def _read_spelled(self, rows: Mask, form: str) -> None:
        if not form:
            return
        values = self._parse(rows, form)
        if not _EITHER.search(form):
            self._close(~np.isnan(values), values)
            return
        self.by["day"][rows], self.by["month"][rows] = values[rows], self._parse(rows, _month_first(form))[rows]
        self.open &= np.isnan(self.by["day"]) & np.isnan(self.by["month"])

    def _order_shown(self) -> str:
        """Return which of day and month comes first in all that can be read both ways."""
        day, month = self.by.values()
        only_day, only_month = (np.flatnonzero(~np.isnan(a) & np.isnan(b)) for a, b in ((day, month), (month, day)))
        unclear = np.flatnonzero(~np.isnan(day) & ~np.isnan(month) & (day != month))
        if only_day.size and only_month.size:
            row = int(only_day[0])
            other = str(self.texts.iloc[int(only_month[0])])
            message = f"has the day first, and {other!r} in the same column the month"
        elif only_day.size or only_month.size or not unclear.size:
            return "month" if only_month.size else "day"
        else:
            row = int(unclear[0])
            a, b = (f"{datetime.fromtimestamp(values[row], self.where):%Y-%m-%d %H:%M}" for values in (day, month))
            message = (
                f"reads two ways, {a} (day first) and {b} (month first), and no other value of the column settles it"
            )
        text = str(self.texts.iloc[row])
        form = spelling(text)
        raise TwoReadingsError(text, message, f"add --date-format '{form}' or --date-format '{_month_first(form)}'")

    def _close(self, rows: Mask, values: Values) -> None:
        self.values[rows] = values[rows]
        self.open &= ~rows

    def _parse(self, rows: Mask, form: str) -> Values:
        """Read these texts in one format, local to the zone where it has no offset; NaN for others."""
        values = np.full(rows.size, np.nan)
        stamps = pd.to_datetime(self.texts[rows], format=form, errors="coerce", utc=True)
        good = stamps.notna().to_numpy()
        second, fraction = np.divmod(stamps.to_numpy(dtype="datetime64[us]").astype(np.int64)[good], 10**6)
        if "%z" not in form:
            second = to_utc(second, self.where)
        values[np.flatnonzero(rows)[good]] = second + fraction / 10**6
        return values


def _month_first(form: str) -> str:
    return _EITHER.sub(r"%m\1%d\1%Y", form)


def to_utc(local: NDArray[np.int64], where: tzinfo, *, second: bool = False) -> NDArray[np.int64]:
    """Turn seconds of a zone's clock into Unix seconds, as `instant` does; zones change at whole minutes.

    Of an hour that comes twice, `second` takes the later.
    """
    if where is UTC:
        return local.copy()
    minutes, position = np.unique(local // 60, return_inverse=True)
    clock = (datetime(1970, 1, 1, tzinfo=where, fold=int(second)) + timedelta(minutes=at) for at in minutes.tolist())
    offsets = [(moment.replace(fold=int(second)).utcoffset() or timedelta()).total_seconds() for moment in clock]
    found: NDArray[np.int64] = local - np.array(offsets, dtype=np.int64)[position]
    return found
