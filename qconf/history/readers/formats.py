"""Open a table of any file type (Excel, Parquet, JSON, lines of text): its header, and an iterator of its rows.

Delimited cells are read in blocks, by pandas' C parser, with the line number of each row. Rows with another number of
cells than the header are returned separately, for the format's reader to check.
"""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from importlib import import_module
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from qconf.config.routing import Column, Mask
from qconf.history.readers.sources import BLOCK, UNPACK, Source

MANY = 50_000  #: rows per block if quotes may hold line ends


class Odd(NamedTuple):
    """A row with another number of cells than the header."""

    line: int
    last: int  #: line of its end
    cells: list[str]
    torn: bool = False  #: whether it is the file's last row and has no line end


@dataclass
class Rows:
    """A block of rows with as many cells as the header; a column of numbers only is numeric, others are text."""

    cells: pd.DataFrame
    lines: Column
    odd: list[Odd] = field(default_factory=list)
    data: list[bytes] | bytes = b""  #: the raw rows, if columns are numeric
    separator: str = ","
    place: Mapping[str, int] = field(default_factory=dict)  #: position of each column in a row

    def text(self, name: str, row: int) -> str:
        """Return the original text of a cell."""
        if self.cells[name].dtype == object or not self.place:
            return str(self.cells[name].iloc[row])
        if isinstance(self.data, bytes):
            self.data = self.data.split(b"\n")
        return next(csv.reader([self.data[row].decode("utf-8", "replace")], delimiter=self.separator))[self.place[name]]


@dataclass(frozen=True)
class Table:
    """A file of lines whose header has been read."""

    source: Source
    separator: str
    width: int  #: cells of the header
    texts: Mapping[str, int]  #: columns always read as text, with their positions in a row
    numbers: Mapping[str, int]  #: the same for columns read as numbers if possible
    header: int = 1  #: line of the header, 0 without one
    quotes: bool = True  #: whether quotes enclose cells, and ``\\r`` ends a line
    errors: str = "strict"  #: error handler for bytes that are not UTF-8

    def rows(self) -> Iterator[Rows]:
        """Yield the rows in blocks. Raises UnicodeDecodeError and csv.Error."""
        number, blocks = 1, self.source.blocks()
        for raw in blocks:
            block = raw.replace(b"\r\n", b"\n") if b"\r" in raw else raw
            block = block.replace(b"\r", b"\n") if self.quotes else block
            found = self._whole_lines(block, number)
            if found is None:  # a quoted cell spans lines, or a quote is unpaired
                yield from self._slowly(block, blocks, number)
                return
            yield found
            number += block.count(b"\n")

    def _whole_lines(self, block: bytes, number: int) -> Rows | None:
        """Read whole lines; None if a quote is not closed on its line."""
        text = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(text == ord("\n"))
        torn = not block.endswith(b"\n")
        ends = np.append(ends, text.size) if torn else ends
        starts = np.concatenate(([0], ends[:-1] + 1))
        cells = 1 + _count(np.flatnonzero(text == ord(self.separator)), ends)
        lines = np.arange(number, number + ends.size)
        quoted = np.zeros(ends.size, dtype=np.bool_)
        if self.quotes and b'"' in block:
            quotes = np.flatnonzero(text == ord('"'))
            quoted = _count(quotes, ends) > 0
            if (_count(quotes, ends) % 2).any():
                return None
            separators = np.flatnonzero(text == ord(self.separator))
            cells = 1 + _count(separators[np.searchsorted(quotes, separators) % 2 == 0], ends)
            for i in np.unique(np.searchsorted(ends, quotes[self._is_stray(text, quotes)])).tolist():
                cells[i] = len(self._split(block[starts[i] : ends[i]]))
        good = (cells == self.width) & (lines > self.header)
        if b"\0" in block:
            good &= _count(np.flatnonzero(text == 0), ends) == 0
        odd = []
        for i in np.flatnonzero(~good & (lines > self.header)).tolist():
            line = block[starts[i] : ends[i]]
            if line.strip():
                odd.append(Odd(int(lines[i]), int(lines[i]), self._split(line), torn and i == ends.size - 1))
        if not good.all():
            block = b"".join(block[starts[i] : ends[i]] + b"\n" for i in np.flatnonzero(good).tolist())
        rows = self._parse(block, quoted=bool(quoted.any())) if good.any() else self._frame([])
        return Rows(rows, lines[good], odd, block, self.separator, {**self.texts, **self.numbers})

    def _is_stray(self, text: NDArray[np.uint8], quotes: Column) -> Mask:
        """Mark the quotes inside a cell."""
        around = [ord(self.separator), ord("\n"), ord('"')]
        before = np.where(quotes > 0, text[quotes - 1], ord("\n"))
        after = np.where(quotes < text.size - 1, text[np.minimum(quotes + 1, text.size - 1)], ord("\n"))
        return ~np.isin(np.where(np.arange(quotes.size) % 2 == 0, before, after), around)

    def _split(self, line: bytes) -> list[str]:
        text = line.decode("utf-8", self.errors)
        return next(csv.reader([text], delimiter=self.separator), []) if self.quotes else text.split(self.separator)

    def _parse(self, data: bytes, *, quoted: bool) -> pd.DataFrame:
        found = self._columns(data, {**self.texts, **self.numbers}, texts=self.texts, quoted=quoted)
        wrong = [name for name in self.numbers if not _is_sound(found[name])]
        if wrong:
            again = self._columns(data, {name: self.numbers[name] for name in wrong}, texts=wrong, quoted=quoted)
            found[wrong] = again[wrong]
        return found

    def _columns(
        self, data: bytes, at: Mapping[str, int], *, texts: Sequence[str] | Mapping[str, int], quoted: bool
    ) -> pd.DataFrame:
        found = pd.read_csv(
            io.BytesIO(data), sep=self.separator, header=None, names=range(self.width), usecols=sorted({*at.values()}),
            dtype={at[name]: object for name in texts}, na_filter=False, skip_blank_lines=False, low_memory=False,
            quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE, lineterminator="\n", index_col=False,
            encoding_errors=self.errors,
        )  # fmt: skip
        found = found[list(at.values())].set_axis(list(at), axis=1)
        for name in found if _has_blanks(data, self.separator) else ():
            if found[name].dtype == object and _is_sound(found[name]):
                found[name] = found[name].str.strip()
        return found

    def _slowly(self, block: bytes, blocks: Iterator[bytes], number: int) -> Iterator[Rows]:
        """Read rows one by one, starting at a block with a quoted line end or a stray quote."""
        reader, first = csv.reader(_decoded(block, blocks, self.errors), delimiter=self.separator), number
        kept: list[list[str]] = []
        lines: list[int] = []
        odd: list[Odd] = []
        for cells in reader:
            last = number + reader.line_num - 1
            if first > self.header:
                # No cell holds a whole row, as the text between two stray quotes would.
                whole = last == first or all(cell.count(self.separator) < len(cells) - 1 for cell in cells)
                if len(cells) == self.width and whole and not any("\0" in cell for cell in cells):
                    kept.append(cells)
                    lines.append(first)
                elif len(cells) > 1 or (cells and cells[0].strip()):
                    odd.append(Odd(first, last, cells))
            first = last + 1
            if len(kept) + len(odd) >= MANY:
                yield Rows(self._frame(kept), np.array(lines, dtype=np.int64), odd)
                kept, lines, odd = [], [], []
        yield Rows(self._frame(kept), np.array(lines, dtype=np.int64), odd)

    def _frame(self, rows: list[list[str]]) -> pd.DataFrame:
        at = {**self.texts, **self.numbers}
        return pd.DataFrame(
            {name: pd.Series([cells[place].strip() for cells in rows], dtype=object) for name, place in at.items()}
        )


def _count(places: Column, ends: Column) -> Column:
    return np.diff(np.searchsorted(places, ends), prepend=0)


def _is_sound(column: pd.Series) -> bool:
    """Whether a column holds only finite numbers, or only text."""
    if column.dtype.kind in "iu":
        return True
    if column.dtype.kind == "f":
        return bool(np.isfinite(column.to_numpy()).all())
    return column.dtype == object and pd.api.types.infer_dtype(column, skipna=False) in ("string", "empty")


def _has_blanks(data: bytes, separator: str) -> bool:
    text = np.frombuffer(data, np.uint8)
    blank = np.flatnonzero((text == ord(" ")) | (text == ord("\t")) | (text == ord("\r")))
    ends = np.array([ord(separator), ord("\n")])
    return bool(np.isin(text[np.maximum(blank - 1, 0)], ends).any() or np.isin(text[blank + 1], ends).any())


def _decoded(block: bytes, blocks: Iterator[bytes], errors: str) -> Iterator[str]:
    for each in chain([block], blocks):
        for line in each.replace(b"\r\n", b"\n").replace(b"\r", b"\n").splitlines(keepends=True):
            yield line.decode("utf-8", errors)


SEPARATORS = ",;\t|"
EXCEL, PARQUET = b"PK\x03\x04", b"PAR1"
#: What the packages raise when they read a damaged file.
DAMAGED = (
    *(ValueError, LookupError, OSError, TypeError, AttributeError, RuntimeError, SyntaxError, EOFError),
    *(ArithmeticError, zlib.error, zipfile.BadZipFile),
)
#: Optional packages that read them.
PACKAGES = {"xlsx": "openpyxl", "parquet": "pyarrow"}


@dataclass(frozen=True)
class Opened:
    """A table whose header has been read."""

    names: Sequence[str]
    line: int  #: line of the header
    #: Arguments: positions of the text columns, and of those that are numbers if possible, by name.
    rows: Callable[[Mapping[str, int], Mapping[str, int]], Iterator[Rows]]


def kind_of(head: bytes) -> str:
    """Return the type of a file by its first bytes: xlsx, parquet, json or lines."""
    if head.startswith((EXCEL, PARQUET)):
        return "xlsx" if head.startswith(EXCEL) else "parquet"
    return "json" if head.lstrip()[:1] in (b"{", b"[") else "lines"


def open_table(source: Source) -> Opened:
    """Read the header of a table. Raises `InputError` if the file is no table, or a package is missing."""
    kind = kind_of(source.read(1 << 16))
    if kind == "lines":
        return _open_lines(source)
    try:
        frames = {"xlsx": _of_excel, "parquet": _of_parquet, "json": _of_json}[kind](source)
        first = next(frames, None)
    except ImportError as error:
        package = PACKAGES.get(kind, "pandas")
        fix = f"install it: pip install {package}, or qconf-hpc[tables]"
        raise source.error(f"is a table of {kind}, which needs the package {package}", fix) from error
    except DAMAGED as error:
        raise source.error(f"is no table of {kind}: {str(error)[:200]}", "save it as CSV") from error
    if first is None:
        raise source.error("holds no table", "give a table with a header and a row for each job")
    names = [str(name) for name in first.frame.columns]

    def rows(texts: Mapping[str, int], numbers: Mapping[str, int]) -> Iterator[Rows]:
        try:
            for each in chain([first], frames):
                yield each.rows(names, texts, numbers)
        except DAMAGED as error:
            raise source.error(f"is no table of {kind}: {str(error)[:200]}", "save it as CSV") from error

    return Opened(names, first.header, rows)


def is_header(line: str) -> bool:
    """Whether a line may be a header: it has two names or more, and is no comment."""
    names, _ = split_header(line)
    return sum(map(bool, names)) > 1 and not re.match(r"\s*#\s", line)


def split_header(line: str) -> tuple[list[str], str]:
    """Return the names in a header, and their separator."""
    separator = max(SEPARATORS, key=line.count)
    return [name.strip() for name in next(csv.reader([line], delimiter=separator), [])], separator


def _numbered_lines(source: Source) -> Iterator[tuple[int, str]]:
    try:
        for at, raw in enumerate(source.lines(), start=1):
            yield at, raw.decode("utf-8").strip("\r\n\ufeff ").split("\r", 1)[0]
    except UnicodeDecodeError as error:
        raise source.error(f"is not UTF-8 text ({error.reason})", "save the table as CSV in UTF-8") from error


def _open_lines(source: Source) -> Opened:
    lines = _numbered_lines(source)
    number, header = next(((at, line) for at, line in lines if is_header(line)), (1, ""))
    names, separator = split_header(header)

    def rows(texts: Mapping[str, int], numbers: Mapping[str, int]) -> Iterator[Rows]:
        return Table(source, separator, len(names), texts, numbers, header=number).rows()

    return Opened(names, number, rows)


@dataclass(frozen=True)
class _Frame:
    """A block of rows of a table with typed columns."""

    frame: pd.DataFrame
    first: int = 1  #: line or number of the first row
    header: int = 1
    lines: Sequence[int] | None = None  #: line of each row, if some lines are left out
    odd: Sequence[Odd] = ()

    def rows(self, names: Sequence[str], texts: Mapping[str, int], numbers: Mapping[str, int]) -> Rows:
        frame = self.frame.set_axis([str(name) for name in self.frame.columns], axis=1)
        frame = frame.reindex(columns=list(names)) if list(frame.columns) != list(names) else frame
        cells = {
            name: _cells(frame.iloc[:, place], is_text=name in texts) for name, place in {**texts, **numbers}.items()
        }
        lines = np.arange(self.first, self.first + len(frame)) if self.lines is None else np.array(self.lines)
        return Rows(pd.DataFrame(cells), lines.astype(np.int64), list(self.odd))


def _cells(column: pd.Series, *, is_text: bool) -> pd.Series:
    """Return a column of numbers unchanged, any other as texts, "" for missing cells."""
    column = column.reset_index(drop=True)
    if pd.api.types.is_timedelta64_dtype(column):
        column = column.dt.total_seconds()
    elif isinstance(column.dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_convert("UTC").astype("str").where(column.notna(), "")
    elif pd.api.types.is_datetime64_dtype(column):
        column = column.astype("str").where(column.notna(), "")
    kind = column.dtype.kind if isinstance(column.dtype, np.dtype) else "O"
    if kind in "iuf" and column.notna().all() and not is_text:
        return column
    if kind == "f":
        column = column.astype(object)
    return column.astype(object).map(_text).astype(object)


def _text(cell: Any) -> str:  # noqa: ANN401
    if cell is None or cell is pd.NaT or cell is pd.NA or (isinstance(cell, float) and np.isnan(cell)):
        return ""
    if isinstance(cell, bool | np.bool_):
        return str(cell).lower()
    if isinstance(cell, float | np.floating):
        return str(int(cell)) if float(cell).is_integer() else repr(float(cell))
    if isinstance(cell, datetime):
        return cell.isoformat(sep=" ")
    if isinstance(cell, timedelta):
        return str(cell.total_seconds())
    if isinstance(cell, list | np.ndarray):
        return ",".join(map(_text, cell))
    return (cell.isoformat() if isinstance(cell, date | time) else str(cell)).strip()


def _of_excel(source: Source) -> Iterator[_Frame]:
    """Read the first sheet that has cells; its header is the first row with more than one."""
    import_module(PACKAGES["xlsx"])  # an extra that pandas needs
    book = io.BytesIO(b"".join(source.chunks(BLOCK)))
    members = zipfile.ZipFile(book).infolist()
    if not any(member.filename == "[Content_Types].xml" for member in members):
        raise source.error("is an archive of files (zip)", UNPACK)
    source.check_unpacked(sum(member.file_size for member in members))
    sheets = pd.read_excel(book, sheet_name=None, header=None, dtype=object, engine="openpyxl")
    for sheet in sheets.values():
        filled = sheet.notna()
        heads = np.flatnonzero(filled.sum(axis=1).to_numpy() > 1)
        if heads.size:
            head = int(heads[0])
            rows = sheet.iloc[head + 1 :]
            kept = filled.iloc[head + 1 :].any(axis=1).to_numpy()
            names = ["" if pd.isna(name) else str(name).strip() for name in sheet.iloc[head]]
            lines = (np.flatnonzero(kept) + head + 2).tolist()
            yield _Frame(rows[kept].set_axis(names, axis=1), header=head + 1, lines=lines)
            return


def _of_parquet(source: Source) -> Iterator[_Frame]:
    from pyarrow import parquet  # noqa: PLC0415 - an extra

    first, file = 1, parquet.ParquetFile(io.BytesIO(b"".join(source.chunks(BLOCK))))
    source.check_unpacked(file.metadata.num_rows * file.metadata.num_columns * 8)
    for batch in file.iter_batches(batch_size=MANY):
        batch.validate(full=True)
        frame = batch.to_pandas()
        frame = frame.reset_index() if frame.index.names != [None] else frame
        yield _Frame(frame, first)
        first += len(frame)


def _of_json(source: Source) -> Iterator[_Frame]:
    """Read one object per line, or a list of objects (alone or under a key), or an object of columns."""
    head = source.read(1 << 16)
    try:
        first = head.lstrip().split(b"\n", 1)[0]
        lines = isinstance(json.loads(first), dict) and b"\n" in head.strip()
    except ValueError:
        lines = False
    if lines:
        yield from _of_json_lines(source)
        return
    data = json.loads(source.read())
    if isinstance(data, dict):
        lists = [value for value in data.values() if isinstance(value, list) and value and isinstance(value[0], dict)]
        columns = all(isinstance(value, list | dict) for value in data.values())
        data = lists[0] if len(lists) == 1 else data if columns else [data]
    yield _Frame(pd.DataFrame(list(map(_flat, data)) if isinstance(data, list) else data))


def _flat(job: dict[str, Any]) -> dict[str, Any]:
    """Flatten a job's object to a row of plain cells."""
    if not isinstance(job, dict):
        raise ValueError("a job is no object with names")  # noqa: TRY004 - of the file, not of the program
    cells = (cell.items() if isinstance(cell, dict) else [("", cell)] for cell in job.values())
    return {f"{name}.{key}".strip("."): each for name, of in zip(job, cells, strict=True) for key, each in of}


def _of_json_lines(source: Source) -> Iterator[_Frame]:
    number, kept, lines, odd = 0, list[dict[str, Any]](), list[int](), list[Odd]()
    for raw in source.lines():
        number += 1
        if not raw.strip():
            continue
        try:
            found = json.loads(raw)
        except ValueError:
            found = None
        if isinstance(found, dict):
            kept.append(_flat(found))
            lines.append(number)
        else:
            odd.append(Odd(number, number, [raw.decode("utf-8", "replace").strip()[:40]], torn=not raw.endswith(b"\n")))
        if len(kept) >= MANY:
            yield _Frame(pd.DataFrame(kept, dtype=object), lines=lines, odd=odd)
            kept, lines, odd = [], [], []
    if kept or odd:
        yield _Frame(pd.DataFrame(kept, dtype=object), lines=lines, odd=odd)
