"""Open a table of any file type (Excel, Parquet, JSON, lines of text): its header, and an iterator of its rows."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from importlib import import_module
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from qconf.history.readers.delimited import MANY, Odd, Rows, Table
from qconf.history.readers.sources import BLOCK, UNPACK, Source

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
