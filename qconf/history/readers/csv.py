"""The history CSV of this project, and tables like it; a row that cannot be read is dropped, with its line."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from parsim.node_types import Chunk
from qconf.config import parse_duration
from qconf.history.chunks import mebibytes, of_select, placed, spread
from qconf.history.chunks import words as chunk_words
from qconf.history.dates import TwoReadingsError, check_format, read_times
from qconf.history.needs import words, wrong
from qconf.history.readers.sources import Source, records_of
from qconf.history.records import FIELDS, LIMITS, TEXTS, TIMES, UNKNOWN, Drop, Records, job_table, stack
from qconf.history.times import parse_column, zone
from qconf.inert import unguarded

REQUIRED = ("job_id", "submit", "runtime", "walltime", "cores", "queue")
DURATIONS = ("runtime", "walltime")
NODES = ("nodes", "cores_per_node")
#: What a job asks for of nodes, beside its cores.
CHUNKS = ("chunks", "gpus", "memory", "node_type", "place")
#: The columns of which a required one that is not there is computed.
INSTEAD = {"runtime": ("start", "end"), "cores": ("nodes",)}
FORMS = {
    **dict.fromkeys(TIMES, "write epoch seconds or ISO 8601 such as 2016-02-01T08:00:00, or give --date-format"),
    **dict.fromkeys(DURATIONS, "write seconds, [D-]HH:MM:SS or 2h30m, nothing where unknown"),
    **dict.fromkeys(("cores", *NODES), "write a whole number, nothing where unknown"),
    "job_id": "give every job one",
    "gpus": "write a whole number, nothing where unknown",
    "memory": "write MiB, or 64gb, of all nodes together",
    "node_type": "write the name of the type",
    "chunks": "write them as PBS's select, like 2:ncpus=16:ngpus=2:mem=64gb+1:ncpus=4",
    "place": "write it as PBS does, like scatter:excl: of pack, scatter, free, excl, exclhost, shared",
    "needs": "write after:JOB, licence:NAME:COUNT, array:NAME:COUNT, chunk:COUNT:cores=N with place:scatter,excl, with "
    "blanks between them",
    "cells": "complete or remove the line",
}
#: What other tools call our columns; only used where our own name is absent.
ALIASES = {
    "jobid": "job_id", "id": "job_id", "job": "job_id", "submit_time": "submit", "submitted": "submit",
    "run_time": "runtime", "elapsed": "runtime",
    "requested_time": "walltime", "estimate": "walltime", "timelimit": "walltime",
    "procs": "cores", "processors": "cores", "ncpus": "cores", "cpus": "cores", "partition": "queue",
    "user_id": "user", "username": "user", "start_time": "start", "end_time": "end", "status": "state",
    "account": "group", "group_id": "group", "groupname": "group",
}  # fmt: skip
#: The same of columns that are only read where there is none of cores.
NODE_ALIASES = {"nnodes": "nodes", "node_count": "nodes", "num_nodes": "nodes", "cpus_per_node": "cores_per_node"}

Column = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class About:
    """What a table does not say of itself."""

    timezone: str = "UTC"  #: of times without an offset
    date_format: str | None = None  #: strptime format of its times, or `dates.EPOCH`
    cores_per_node: int | None = None  #: where it counts nodes
    strict: bool = False  #: whether the first row that cannot be read stops the reading


def read_csv(sources: Sequence[Source], timezone: str = "UTC", **more: Any) -> Records:  # noqa: ANN401 - of `About`
    """Read history CSV files, in order; `more` as in `About`.

    A row that cannot be read is dropped. Raises `InputError` where more than half of a file's rows are, or one with
    `strict`; where columns are missing or come twice; and where the times of a column read two ways.
    """
    about = About(timezone, **more)
    if about.date_format is not None:
        check_format(about.date_format)
    drops: list[Drop] = []
    changed: Counter[str] = Counter()
    files = [_File(source, about, drops, changed) for source in sources]
    table = stack([file.read() for file in files])
    if len(sources) > 1:
        again = _in_an_earlier_file(table)
        for job, number, line in table.loc[again, ["job_id", "file", "line"]].itertuples(index=False):
            drops.append(Drop(job, str(sources[number].path), int(line), "in an earlier file too"))
        table = table[~again].reset_index(drop=True)
    nodes = set().union(*(file.node_sizes for file in files))
    per_node = nodes.pop() if len(nodes) == 1 else None
    return records_of("csv", sources, table, drops, timezone=timezone, changed=changed, cores_per_node=per_node)


def _in_an_earlier_file(table: pd.DataFrame) -> Mask:
    """Mark the rows that a file before theirs has too: exports of overlapping months."""
    first = table.groupby(list(FIELDS), dropna=False, sort=False)["file"].transform("min")
    return np.asarray(table["file"] > first)


class _Fault(NamedTuple):
    """Why a row cannot be read."""

    field: str
    message: str
    value: str | None
    reason: str  #: as it is counted
    detail: str
    job_id: str | None = None  #: None of a row that is in the table

    @classmethod
    def of(cls, field: str, message: str, value: str) -> _Fault:
        return cls(field, message, value, f"{field} {message}", repr(value[:60]))


@dataclass
class _File:
    """A file while it is read; what it drops and changes is added to the lists of all files."""

    source: Source
    about: About
    drops: list[Drop]
    changed: Counter[str]
    node_sizes: set[int] = field(default_factory=set)  #: cores of the nodes that jobs were counted in
    faults: dict[int, _Fault] = field(default_factory=dict)  #: the first of each bad row, by its line

    def read(self) -> pd.DataFrame:
        text = self._text()
        header = text.split("\n", 1)[0]
        delimiter = max(",;\t", key=header.count)
        names = _columns(header, delimiter, self.source)
        text, self.lines = self._whole_lines(text, delimiter, len(names))
        computed = [other for name, others in INSTEAD.items() if name not in names for other in (*others, *NODES)]
        wanted = [name for name in names if name in (*FIELDS, *computed, *CHUNKS)]
        try:
            self.cells = pd.read_csv(
                io.StringIO(text), sep=delimiter, dtype="str", keep_default_na=False, header=None, names=names,
                skiprows=1, index_col=False, usecols=wanted,
            )  # fmt: skip
        except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
            raise self.source.error(f"is no table: {str(error).strip()}", "check the quotes and commas") from error
        if len(self.cells) != self.lines.size:
            raise self.source.error("is no table: rows and lines do not match", "check the quotes and blank lines")
        columns: dict[str, Any] = {"line": self.lines}
        self.fits_format = self.about.date_format is None
        for name in wanted:
            is_text = name in (*TEXTS, *CHUNKS)
            columns[name] = unguarded(self.cells[name].str.strip()) if is_text else self._integers(name)
        if not self.fits_format and self.lines.size:
            value, fix = self.about.date_format, f"submit is written like {self.cells['submit'].iloc[0]!r}"
            raise self.source.error("no time of the file is written so", fix, field="--date-format", value=value)
        self._refuse((columns["job_id"] == "").to_numpy(), "job_id", "is missing")
        if "needs" in columns:
            self._refuse(columns["needs"].map(wrong).to_numpy() != "", "needs", "is not what a job can need")
        self._compute(columns)
        self._add_chunks(columns)
        return self._without_faults(job_table(columns, self.lines.size))

    def _text(self) -> str:
        fix = "save the table as CSV in UTF-8"
        try:
            text = self.source.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise self.source.error(f"is not UTF-8 text ({error.reason})", fix) from error
        if "\0" in text:
            raise self.source.error("holds a zero byte", fix, line=text.count("\n", 0, text.index("\0")) + 1)
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def _whole_lines(self, text: str, delimiter: str, width: int) -> tuple[str, Column]:
        """Return the text without rows that have not `width` cells, and the line of each row."""
        lines: list[int] = []
        reader, line = csv.reader(io.StringIO(text, newline="\n"), delimiter=delimiter), 1
        odd: list[tuple[int, int, int, str]] = []  # first and last line, cells, the first of them
        try:
            for cells in reader:
                if len(cells) == width and (reader.line_num == line or _one_row(cells, delimiter)):
                    lines.append(line)
                elif len(cells) > 1 or (cells and cells[0].strip()):
                    odd.append((line, reader.line_num, len(cells), cells[0]))
                line = reader.line_num + 1
        except csv.Error as error:
            raise self.source.error(f"is no table ({error})", "check the quotes", line=line) from error
        for first, last, filled, job in odd:
            if first != last:
                message = f"a quote is left open: the row goes on to line {last}"
                raise self.source.error(message, "close the quote", line=first)
            message = f"{filled} cells where the header has {width}"
            torn = filled < width and first == line - 1 and not text.endswith("\n")
            reason = "torn last line" if torn else "not as many cells as the header"
            self.faults[first] = _Fault("cells", message, None, reason, f"{filled} of {width} cells", job)
        if odd:
            text = "\n".join(each for i, each in enumerate(text.split("\n"), 1) if i not in self.faults)
        return text, np.array(lines[1:], dtype=np.int64)

    def _integers(self, name: str) -> Column:
        """Read a column of numbers, `UNKNOWN` where it cannot be read."""
        cells = self.cells[name]
        if name in TIMES:
            values, bad = self._times(name)
        else:
            values, bad = parse_column(cells, parse_duration if name in DURATIONS else _count)
        most = LIMITS.get(name, LIMITS["cores"])
        self._refuse(bad, name, "not a " + ("time" if name in TIMES else "duration" if name in DURATIONS else "number"))
        self._refuse((values < 0) & (values != UNKNOWN), name, "is negative")
        self._refuse(values > most, name, f"is absurd, more than {most}")
        whole = np.floor(values) if name in TIMES else np.ceil(values)
        fractions = (whole != values) & ~bad
        if name not in (*TIMES, *DURATIONS):
            self._refuse(fractions, name, "is not a whole number")
        elif fractions.any():
            what = f"{name}: fraction of a second {'cut' if name in TIMES else 'rounded up'}"
            self.changed[what] += int(fractions.sum())
        return np.where(bad | (whole < 0) | (whole > most), UNKNOWN, whole).astype(np.int64)

    def _times(self, name: str) -> tuple[NDArray[np.float64], Mask]:
        try:
            values, bad, fits = read_times(self.cells[name], zone(self.about.timezone), self.about.date_format)
        except TwoReadingsError as error:
            row = int(np.argmax(self.cells[name].str.strip() == error.value))
            line = int(self.lines[row])
            raise self.source.error(str(error), error.fix, line=line, field=name, value=error.value) from error
        self.fits_format |= fits
        return values, bad

    def _compute(self, columns: dict[str, Any]) -> None:
        """Work out run times and cores where there is no column of them, from `INSTEAD`; refuse ends before starts."""
        if "start" in columns and "end" in columns:
            start, end = columns["start"], columns["end"]
            ran = (start >= 0) & (end >= 0)
            for i in np.flatnonzero(ran & (end < start)).tolist():
                first, last = (str(self.cells[name].iloc[i]) for name in ("start", "end"))
                fault = ("end", f"is before the start, {first!r}", last)
                self._add(i, _Fault(*fault, "ends before it starts", f"start {first!r}, end {last!r}"))
            if "runtime" not in columns:
                columns["runtime"] = np.where(ran, end - start, UNKNOWN)
                self._count("run time: from start to end", ran)
        if "cores" not in columns:
            nodes, each = columns.pop("nodes"), np.full(self.lines.size, self.about.cores_per_node or UNKNOWN)
            if "cores_per_node" in columns:
                own = columns.pop("cores_per_node")
                each = np.where(own > 0, own, each)
            elif self.about.cores_per_node is None:
                message = "the column nodes counts nodes, and how many cores a node has is unknown"
                fix = "give --cores-per-node, or a column cores_per_node, or machine.cores_per_node in --config"
                raise self.source.error(message, fix, line=1)
            known = (nodes > 0) & (each > 0)
            columns["cores"] = cores = np.where(known, nodes * each, UNKNOWN)
            self._refuse(cores > LIMITS["cores"], "nodes", f"is absurd, more than {LIMITS['cores']} cores")
            self._count("cores: nodes times cores per node", known)
            self.node_sizes |= set(np.unique(each[known]).tolist())

    def _add_chunks(self, columns: dict[str, Any]) -> None:
        """Write into `needs` what columns of their own say of GPUs, memory, types of nodes, or chunks of them."""
        given = {name: columns.pop(name) for name in CHUNKS if name in columns}
        if not given:
            return
        texts = columns["needs"] if "needs" in columns else [""] * self.lines.size
        cells = zip(*(given.get(name, [""] * self.lines.size) for name in CHUNKS), strict=True)
        rows = list(zip(texts, columns["cores"].tolist(), cells, strict=True))
        found = [words(chunks=self._chunks(i, cores, of)) for i, (_, cores, of) in enumerate(rows)]
        columns["needs"] = np.array(
            [f"{text} {chunks}".strip() for (text, *_), chunks in zip(rows, found, strict=True)]
        )

    def _chunks(self, row: int, cores: int, cells: Sequence[str]) -> str:
        """Write the chunks of one row; nothing where it has none, or cannot be read, which is noted."""
        texts = dict(zip(CHUNKS, cells, strict=True))
        name = "place"
        try:
            is_free = placed((Chunk(2, 1),), texts[name]) == (Chunk(2, 1),)
            name = "chunks"
            if texts[name]:
                return chunk_words(of_select(texts[name], texts["place"]))
            name = "gpus"
            gpus = _count(texts[name] or "0")
            name = "memory"
            memory = mebibytes(texts[name] or "0")
            if cores < 1 or (is_free and not (gpus or memory or texts["node_type"])):
                return ""
            chunks = spread(cores, gpus, memory, filter(None, [texts["node_type"]]))
            return chunk_words(placed(chunks, texts["place"]))
        except ValueError:
            self._add(row, _Fault.of(name, "cannot be read", texts[name]))
            return ""

    def _count(self, what: str, rows: Mask) -> None:
        self.changed[what] += int((rows & ~np.isin(self.lines, list(self.faults))).sum())

    def _refuse(self, rows: Mask, name: str, message: str) -> None:
        """Note what is wrong with the values of a column in these rows."""
        for i in np.flatnonzero(rows).tolist():
            self._add(i, _Fault.of(name, message, str(self.cells[name].iloc[i])))

    def _add(self, row: int, fault: _Fault) -> None:
        self.faults.setdefault(int(self.lines[row]), fault)

    def _without_faults(self, table: pd.DataFrame) -> pd.DataFrame:
        """Drop the rows that cannot be read; raise `InputError` where they are too many."""
        if not self.faults:
            return table
        bad = np.isin(self.lines, list(self.faults))
        rows = self.lines.size + len(self.faults) - int(bad.sum())
        line, first = min(self.faults.items())
        most = len(self.faults) > rows / 2
        if most or self.about.strict:
            message = first.message
            if most and rows > 1:
                counts = Counter(fault.reason for fault in self.faults.values()).most_common(4)
                why = ", ".join(f"{count} {reason}" for reason, count in counts)
                message += f"; {len(self.faults)} of {rows} rows cannot be read: {why}"
            fix = "correct or remove the line" if first.reason.startswith("ends before") else FORMS[first.field]
            raise self.source.error(message, fix, line=line, field=first.field, value=first.value)
        jobs = dict(zip(self.lines[bad].tolist(), table.loc[bad, "job_id"].tolist(), strict=True))
        for line, fault in sorted(self.faults.items()):
            job = jobs[line] if fault.job_id is None else fault.job_id
            self.drops.append(Drop(job[:40], str(self.source.path), line, fault.reason, fault.detail))
        return table[~bad].reset_index(drop=True)


def _columns(header: str, delimiter: str, source: Source) -> list[str]:
    """Name the columns, ours where another tool's name is known; refuse what is missing or comes twice."""
    given = [name.strip() for name in next(csv.reader([header], delimiter=delimiter), [])]
    names = [re.sub(r"[\s-]+", "_", name.lower()) for name in given]
    for aliases in (ALIASES, NODE_ALIASES):
        if aliases is NODE_ALIASES and "cores" in names:
            break
        names = [name if name not in aliases or aliases[name] in names else aliases[name] for name in names]
    twice = [name for name, times in Counter(names).items() if times > 1 and name]
    if twice:
        raise source.error("two columns of this name", "keep one", line=1, field="column", value=twice[0])
    missing = [
        name for name in REQUIRED if name not in names and not (name in INSTEAD and set(INSTEAD[name]) <= set(names))
    ]
    if missing:
        message = f"no column {', '.join(missing)} among {', '.join(given) or 'nothing'}"
        fix = (
            f"a header of {','.join(REQUIRED)} is required, cells may be empty where unknown; start and end do for "
            "runtime, nodes for cores"
        )
        raise source.error(message, fix, line=1)
    return [name or f"unnamed {i}" for i, name in enumerate(names)]


def _one_row(cells: list[str], delimiter: str) -> bool:
    """Return whether no cell holds as much as another row: what stands between two stray quotes."""
    return all(cell.count(delimiter) < len(cells) - 1 for cell in cells)


def _count(text: str) -> int:
    if not re.fullmatch(r"\d{1,12}", text):
        raise ValueError("not a number")
    return int(text)
