"""Read rows of delimited cells in blocks, by pandas' C parser, with the line number of each row.

Rows with another number of cells than the header are returned separately, for the format's reader to check.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from qconf.config.routing import Column, Mask
from qconf.history.readers.sources import Source

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
                whole = last == first or _is_one_row(cells, self.separator)
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


def _is_one_row(cells: list[str], separator: str) -> bool:
    """Whether no cell holds a whole row, as the text between two stray quotes would."""
    return all(cell.count(separator) < len(cells) - 1 for cell in cells)
