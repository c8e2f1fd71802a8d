"""The history CSV of this project, and tables like it: read strictly, every mistake with its line."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from qconf.config import parse_duration
from qconf.history.readers.sources import Source, records_of
from qconf.history.records import FIELDS, LIMITS, TEXTS, TIMES, UNKNOWN, Drop, Records, job_table, stack
from qconf.history.times import instant, parse_column, zone

REQUIRED = ("job_id", "submit", "runtime", "walltime", "cores", "queue")
DURATIONS = ("runtime", "walltime")
FORMS = {
    **dict.fromkeys(TIMES, "write epoch seconds or ISO 8601 such as 2016-02-01T08:00:00, nothing where unknown"),
    **dict.fromkeys(DURATIONS, "write seconds, [D-]HH:MM:SS or 2h30m, nothing where unknown"),
    "cores": "write a whole number, nothing where unknown",
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


def read_csv(sources: Sequence[Source], timezone: str = "UTC") -> Records:
    """Read history CSV files, in order. Times without an offset are local to `timezone`.

    Raises `InputError` where columns are missing or come twice, or a value cannot be read.
    """
    drops: list[Drop] = []
    changed: Counter[str] = Counter()
    table = stack([_read_one(source, timezone, drops, changed) for source in sources])
    if len(sources) > 1:
        again = _in_an_earlier_file(table)
        for job, number, line in table.loc[again, ["job_id", "file", "line"]].itertuples(index=False):
            drops.append(Drop(job, str(sources[number].path), int(line), "in an earlier file too"))
        table = table[~again].reset_index(drop=True)
    return records_of("csv", sources, table, drops, timezone=timezone, changed=changed)


def _in_an_earlier_file(table: pd.DataFrame) -> NDArray[np.bool_]:
    """Mark the rows that a file before theirs has too: exports of overlapping months."""
    first = table.groupby(list(FIELDS), dropna=False, sort=False)["file"].transform("min")
    return np.asarray(table["file"] > first)


def _read_one(source: Source, timezone: str, drops: list[Drop], changed: Counter[str]) -> pd.DataFrame:
    fix = "save the table as CSV in UTF-8"
    try:
        text = source.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise source.error(f"is not UTF-8 text ({error.reason})", fix) from error
    if "\0" in text:
        raise source.error("holds a zero byte", fix, line=text.count("\n", 0, text.index("\0")) + 1)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    header = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=header.count)
    names = _columns(header, delimiter, source)
    wanted = [name for name in names if name in FIELDS]
    text, lines = _whole_lines(text, delimiter, len(names), source, drops)
    try:
        cells = pd.read_csv(
            io.StringIO(text), sep=delimiter, dtype="str", keep_default_na=False, header=None, names=names,
            skiprows=1, index_col=False, usecols=wanted,
        )  # fmt: skip
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise source.error(f"is no table: {str(error).strip()}", "check the quotes and commas") from error
    if len(cells) != lines.size:
        raise source.error("is no table: rows and lines do not match", "check the quotes and blank lines")
    columns: dict[str, object] = {"line": lines}
    for name in wanted:
        if name in TEXTS:
            columns[name] = cells[name].str.strip()
        else:
            columns[name] = _integers(cells[name], name, source, lines, timezone, changed)
    table = job_table(columns, len(cells))
    nameless = np.flatnonzero((table["job_id"] == "").to_numpy())
    if nameless.size:
        raise source.error("no job_id", "give every job one", line=int(lines[nameless[0]]), field="job_id")
    return table


def _columns(header: str, delimiter: str, source: Source) -> list[str]:
    """Name the columns, ours where another tool's name is known; refuse what is missing or comes twice."""
    given = [name.strip() for name in next(csv.reader([header], delimiter=delimiter), [])]
    lower = [re.sub(r"[\s-]+", "_", name.lower()) for name in given]
    names = [name if name not in ALIASES or ALIASES[name] in lower else ALIASES[name] for name in lower]
    twice = [name for name, times in Counter(names).items() if times > 1 and name]
    if twice:
        raise source.error("two columns of this name", "keep one", line=1, field="column", value=twice[0])
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        message = f"no column {', '.join(missing)} among {', '.join(given) or 'nothing'}"
        fix = f"a header of {','.join(REQUIRED)} is required, cells may be empty where unknown"
        raise source.error(message, fix, line=1)
    return [name or f"unnamed {i}" for i, name in enumerate(names)]


def _whole_lines(
    text: str, delimiter: str, width: int, source: Source, drops: list[Drop]
) -> tuple[str, NDArray[np.int64]]:
    """Check that every row has `width` cells; return the text without a torn last line, and each row's line."""
    rows: list[tuple[int, int]] = []  # line, cells
    reader, line, last = csv.reader(io.StringIO(text, newline="\n"), delimiter=delimiter), 1, [""]
    try:
        for cells in reader:
            if len(cells) > 1 or (cells and cells[0].strip()):
                rows.append((line, len(cells)))
                last = cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise source.error(f"is no table ({error})", "check the quotes", line=line) from error
    del rows[0]
    if rows and rows[-1][1] < width and not text.endswith("\n"):
        line, filled = rows.pop()
        if line <= text.count("\n"):
            raise source.error("a quote is left open: the rest of the file is one row", "close the quote", line=line)
        detail = f"{filled} of {width} cells"
        drops.append(Drop(last[0][:40], str(source.path), line, "torn last line", detail))
        text = "\n".join(text.split("\n")[: line - 1]) + "\n"
    for line, filled in rows:
        if filled != width:
            message = f"{filled} cells where the header has {width}"
            raise source.error(message, "complete or remove the line", line=line)
    return text, np.array([line for line, _ in rows], dtype=np.int64)


def _integers(
    cells: pd.Series, name: str, source: Source, lines: NDArray[np.int64], timezone: str, changed: Counter[str]
) -> NDArray[np.int64]:
    if name in TIMES:
        values, bad = parse_column(cells, partial(instant, where=zone(timezone)))
    else:
        values, bad = parse_column(cells, parse_duration if name in DURATIONS else _count)

    def refuse(rows: NDArray[np.bool_], message: str) -> None:
        found = np.flatnonzero(rows)
        if found.size:
            more = f" ({found.size - 1} more such lines)" if found.size > 1 else ""
            line, value = int(lines[found[0]]), cells.iloc[found[0]]
            raise source.error(message + more, FORMS[name], line=line, field=name, value=value)

    refuse(bad, "not a " + ("number" if name == "cores" else "time" if name in TIMES else "duration"))
    refuse((values < 0) & (values != UNKNOWN), "is negative")
    refuse(values > LIMITS[name], f"is absurd, more than {LIMITS[name]}")
    whole = np.floor(values) if name in TIMES else np.ceil(values)
    fractions = whole != values
    if name == "cores":
        refuse(fractions, "is not a whole number")
    elif fractions.any():
        changed[f"{name}: fraction of a second {'cut' if name in TIMES else 'rounded up'}"] += int(fractions.sum())
    return whole.astype(np.int64)


def _count(text: str) -> int:
    if not re.fullmatch(r"\d{1,12}", text):
        raise ValueError("not a number")
    return int(text)
