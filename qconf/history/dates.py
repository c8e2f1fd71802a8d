"""Read columns of times in the formats of programs and people; an ambiguous column is refused."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from qconf.config.routing import Column, Mask
from qconf.errors import InputError
from qconf.history.records import MAX_TIME, UNKNOWN, Values
from qconf.history.times import NO_TIME, attempt, instant

#: Value of ``--date-format`` for Unix seconds.
EPOCH = "epoch"


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
#: Formats of times of digits alone that are too large for Unix seconds, by length.
_DIGITS = {12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
#: Excel's day numbers of 1970 and 2070.
_EXCEL, _EXCEL_EPOCH, _EXCEL_END = "excel", 25569, 62093
#: Dates that can also be read month first.
_EITHER = re.compile(r"%d([-/])%m\1%Y")


def spelling(text: str) -> str:
    """Return the strptime format of a time in one of the usual forms, else "".

    An ambiguous date gets the format with the day first.
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
    """Return `text` if it is `EPOCH` or a strptime format with a whole date; else raise `InputError`."""
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
    """A column of times is ambiguous; `value` is an example, at `row`."""

    def __init__(self, value: str, message: str, fix: str, row: int = 0) -> None:
        super().__init__(message)
        self.value, self.fix, self.row = value, fix, row


class Times:
    """Reader of a column of times, fed block by block.

    Numbers are Unix seconds, or milli-, micro- or nanoseconds, depending on their size; empty cells are `UNKNOWN`;
    dates are read in the usual forms. Times without an offset are local to `where`. `form`, a strptime format or
    `EPOCH`, is tried first and settles whether day or month comes first. With a `scale`, numbers are in units of that
    many seconds; with `excel`, they are Excel's days.
    """

    def __init__(
        self, where: tzinfo, form: str | None = None, scale: float | None = None, *, excel: bool = False
    ) -> None:
        self.where, self.form, self.scale, self.excel = where, form, scale, excel
        self.used = form == EPOCH  #: whether `form` read any
        self.rows = 0
        self.numbers_only = True  #: whether all cells so far were numbers
        self.offsets = [0, 0]  #: dates without an offset, and with one
        self._values: list[Values] = []
        #: By block: the later readings of repeated hours, and the mask of times in a skipped hour.
        self._late: dict[int, tuple[Values, Mask]] = {}
        self._by: dict[int, dict[str, Values]] = {}  #: by block: ambiguous dates read with the day or the month first
        self._seen: dict[str, tuple[int, str]] = {}  #: row and text of the first example of each kind, see `_note`
        self._unlike: dict[str, bool] = {}  #: whether some number cannot be a date like 20261001, or an Excel day
        self._number: tuple[int, str, bool] | None = None  #: row and text of a number, and whether it has a fraction

    def add(self, cells: pd.Series) -> tuple[Values, Mask]:
        """Read a block of rows; return seconds (NaN while ambiguous), and the mask of unreadable cells."""
        values, day, month, dates = self._read(cells)
        part = len(self._values)
        if order := _order(self.form):
            values = np.where(np.isnan(values), day if order == "day" else month, values)
        elif not (np.isnan(day).all() and np.isnan(month).all()):
            self._by[part] = {"day": day, "month": month}
            self._note(cells, day, month)
        if dates is not None:
            of, codes, distinct = dates
            late, skipped = values.copy(), np.zeros(values.size, dtype=np.bool_)
            late[of], skipped[of] = distinct.late[codes], distinct.skipped[codes]
            if skipped.any() or (late > values).any():
                self._late[part] = np.where(np.isnan(late), values, late), skipped
            for has in (False, True):
                self.offsets[has] += int((distinct.dated & (distinct.offset == has))[codes].sum())
            self.numbers_only &= bool(distinct.texts.str.fullmatch(r"[-\d.]*").all())
        self._values.append(values)
        self.rows += values.size
        return values, np.isnan(values) & (np.isnan(day) & np.isnan(month) if part in self._by else True)

    def settled(self) -> tuple[Values, Values, Mask]:
        """Return all values, the later readings of times in repeated hours, and the mask of times in skipped hours.

        Raises `TwoReadingsError` if the column is ambiguous.
        """
        self._refuse_numbers()
        order = self._order_shown() if self._seen else ""
        late, skipped = list(self._values), [np.zeros(each.size, dtype=np.bool_) for each in self._values]
        for part, found in self._late.items():
            late[part], skipped[part] = found
        for part, read in self._by.items():
            self._values[part] = np.where(np.isnan(self._values[part]), read[order], self._values[part])
            late[part] = np.where(np.isnan(late[part]), read[order], late[part])
        values = np.concatenate(self._values)
        return values, np.concatenate(late) if self._late else values, np.concatenate(skipped)

    def _read(self, cells: pd.Series) -> tuple[Values, Values, Values, tuple[Mask, NDArray[np.intp], _Dates] | None]:
        nothing = np.full(len(cells), np.nan)
        numbers = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan).copy()
        numbers[np.isinf(numbers)] = np.nan
        formed = self.form not in (None, EPOCH)
        if self.scale is not None or self.excel:
            known = numbers >= 0
            numbers[known] = self._scaled(numbers[known])
            dated = np.isnan(numbers)
        else:
            if self.form is None:
                self._look_at(numbers, cells)
            for size in (10**3, 10**6, 10**9):
                fine = (numbers >= 10**9 * size) & (numbers < 10**10 * size)
                numbers[fine] /= size
            dated = np.isnan(numbers) | (numbers > MAX_TIME)
            dated |= (numbers >= 0) & formed
        if not dated.any():
            return numbers, nothing, nothing, None
        texts = cells[dated].astype("str")
        codes, distinct = pd.factorize(texts)
        first = ~pd.Series(codes).duplicated().to_numpy()
        column = _Dates(pd.Series(distinct, dtype="str"), numbers[dated][first], self.where)
        self.used |= column.read_form(self.form) if self.form is not None and formed else False
        numbers[dated] = column.read()[codes]
        found = {}
        for order, values in column.by.items():
            found[order] = nothing.copy()
            found[order][dated] = values[codes]
        return numbers, found["day"], found["month"], (dated, codes, column)

    def _scaled(self, numbers: Values) -> Values:
        if not self.excel:
            return numbers * (self.scale or 1)
        seconds = np.round((numbers - _EXCEL_EPOCH) * 86400)
        return to_utc(seconds.astype(np.int64), self.where).astype(np.float64)

    def _note(self, cells: pd.Series, day: Values, month: Values) -> None:
        """Keep the first example of a date with the day first, the month first, or ambiguous."""
        both = ~np.isnan(day) & ~np.isnan(month)
        kinds = {"day": ~np.isnan(day) & np.isnan(month), "month": np.isnan(day) & ~np.isnan(month)}
        for kind, rows in {**kinds, "unclear": both & (day != month), "same": both & (day == month)}.items():
            if kind not in self._seen and rows.any():
                row = int(np.argmax(rows))
                self._seen[kind] = self.rows + row, str(cells.iloc[row]).strip()

    def _order_shown(self) -> str:
        """Return "day" or "month": the part that comes first in the column's ambiguous dates."""
        if "day" in self._seen and "month" in self._seen:
            row, text = self._seen["day"]
            message = f"has the day first, and {self._seen['month'][1]!r} in the same column the month"
        elif "day" in self._seen or "month" in self._seen or "unclear" not in self._seen:
            return "month" if "month" in self._seen else "day"
        else:
            row, text = self._seen["unclear"]
            first = next(read for read in self._by.values() if (read["day"] != read["month"]).any())
            at = int(np.argmax(~np.isnan(first["day"]) & ~np.isnan(first["month"]) & (first["day"] != first["month"])))
            seconds = (first[order][at] for order in ("day", "month"))
            a, b = (f"{datetime.fromtimestamp(second, self.where):%Y-%m-%d %H:%M}" for second in seconds)
            message = (
                f"reads two ways, {a} (day first) and {b} (month first), and no other value of the column settles it"
            )
        form = spelling(text)
        fix = f"add --date-format '{form}' or --date-format '{_month_first(form)}'"
        raise TwoReadingsError(text, message, fix, row)

    def _look_at(self, numbers: Values, cells: pd.Series) -> None:
        """Note whether each number could be a date such as 20261001, or an Excel day with a time."""
        known = np.flatnonzero(numbers >= 0)
        found = numbers[known]
        if not known.size:
            return
        month, day = found // 100 % 100, found % 100
        dates = (found >= 1970_01_01) & (found <= 2099_12_31) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
        self._unlike["date"] = self._unlike.get("date", False) or not dates.all()
        days = (found >= _EXCEL_EPOCH) & (found < _EXCEL_END)
        self._unlike["excel"] = self._unlike.get("excel", False) or not days.all()
        broken = found != np.floor(found)
        if self._number is None or (broken.any() and not self._number[2]):
            row = int(known[np.argmax(broken)])
            self._number = self.rows + row, str(cells.iloc[row]).strip(), bool(broken.any())

    def _refuse_numbers(self) -> None:
        """Refuse a column in which every number could be a date or an Excel day as well as Unix seconds."""
        if self._number is None:
            return
        row, value, broken = self._number
        if not self._unlike["date"]:
            second = datetime.fromtimestamp(float(value), UTC)
            date = f"{value[:4]}-{value[4:6]}-{value[6:8]}"
            message = (
                f"reads two ways, the date {date} and the Unix second of {second:%Y-%m-%d %H:%M:%S}, as do all here"
            )
            raise TwoReadingsError(value, message, f"add --date-format %Y%m%d for dates, or --date-format {EPOCH}", row)
        if broken and not self._unlike["excel"]:
            moment = datetime(1899, 12, 30, tzinfo=UTC) + timedelta(days=float(value))
            message = f"reads two ways, Excel's day of {moment:%Y-%m-%d %H:%M} and seconds, as do all here"
            fix = f"add --units with submit={_EXCEL}, and the same for start and end, or --date-format {EPOCH}"
            raise TwoReadingsError(value, message, fix, row)


def _order(form: str | None) -> str | None:
    """Return the part that a format with the year at the end puts first, `day` or `month`; None for other formats."""
    day, month, year = (form.replace("%y", "%Y").find(part) if form else -1 for part in ("%d", "%m", "%Y"))
    return None if -1 in (day, month, year) or year < max(day, month) else "day" if day < month else "month"


class _Dates:
    """The distinct texts of a column during reading."""

    def __init__(self, texts: pd.Series, numbers: Values, where: tzinfo) -> None:
        self.texts, self.values, self.where = texts.str.strip(), numbers, where
        self.open = np.ones(texts.size, dtype=np.bool_)  #: not yet read
        self.by = {order: np.full(texts.size, np.nan) for order in ("day", "month")}  #: readings of ambiguous dates
        self.late = np.full(texts.size, np.nan)  #: later readings of repeated hours
        self.skipped = np.zeros(texts.size, dtype=np.bool_)  #: in a skipped hour
        self.dated, self.offset = (np.zeros(texts.size, dtype=np.bool_) for _ in range(2))  #: read by a format; with %z
        self._close(self.texts.str.lower().isin(NO_TIME).to_numpy(), np.full(texts.size, float(UNKNOWN)))
        self.open &= ~self.texts.isin(["now", "today"]).to_numpy()  # pandas would take the current time

    def read_form(self, form: str) -> bool:
        """Read the texts in a given format; return whether any is."""
        values = self._parse(self.open, form)
        self._close(~np.isnan(values), values)
        return not bool(np.isnan(values).all())

    def read(self) -> Values:
        """Read the rest in the usual forms and return the values; ambiguous dates go to `by` and stay NaN.

        First the form of the first text, then the other forms, then ISO 8601; numbers keep their values.
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
        rows = np.flatnonzero(self.open)
        self.values[rows] = [attempt(partial(instant, where=self.where), text) for text in self.texts.iloc[rows]]
        return self.values

    def _read_digits(self, rows: Mask) -> None:
        lengths = self.texts.where(rows, "").str.len().to_numpy()
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

    def _close(self, rows: Mask, values: Values) -> None:
        self.values[rows] = values[rows]
        self.open &= ~rows

    def _parse(self, rows: Mask, form: str) -> Values:
        """Read these texts in one format, as local times if it has no offset; NaN if they do not match."""
        values = np.full(rows.size, np.nan)
        stamps = pd.to_datetime(self.texts[rows], format=form, errors="coerce", utc=True)
        good = stamps.notna().to_numpy()
        second, fraction = np.divmod(stamps.to_numpy(dtype="datetime64[us]").astype(np.int64)[good], 10**6)
        at = np.flatnonzero(rows)[good]
        self.dated[at], self.offset[at] = True, "%z" in form
        if "%z" not in form:
            local = second
            second, late = (to_utc(local, self.where, second=later) for later in (False, True))
            self.late[at] = np.maximum(second, late) + fraction / 10**6
            self.skipped[at] = late < second  # in a skipped hour the two offsets are reversed
        values[at] = second + fraction / 10**6
        return values


def _month_first(form: str) -> str:
    return _EITHER.sub(r"%m\1%d\1%Y", form)


def to_utc(local: Column, where: tzinfo, *, second: bool = False) -> Column:
    """Convert seconds of a zone's local clock to Unix seconds, as `instant` does; zones change at whole minutes.

    In a repeated hour, `second` selects the later reading.
    """
    if where is UTC:
        return local.copy()
    minutes, position = np.unique(local // 60, return_inverse=True)
    clock = (datetime(1970, 1, 1, tzinfo=where, fold=int(second)) + timedelta(minutes=at) for at in minutes.tolist())
    offsets = [(moment.replace(fold=int(second)).utcoffset() or timedelta()).total_seconds() for moment in clock]
    found: Column = local - np.array(offsets, dtype=np.int64)[position]
    return found
