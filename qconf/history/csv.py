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
from qconf.errors import InputError
from qconf.history.records import LIMITS, TEXTS, UNKNOWN, Drop, Records, SourceInfo, drop_table, job_table
from qconf.history.sources import Source
from qconf.history.times import instant, parse_column, zone

REQUIRED = ("job_id", "submit", "runtime", "walltime", "cores", "queue")
OPTIONAL = ("user", "start", "end", "state")
TIMES = ("submit", "start", "end")
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
}  # fmt: skip


def read_csv(sources: Sequence[Source], timezone: str = "UTC", **_: object) -> Records:
    """Read history CSV files, in order. Times without an offset are local to `timezone`.

    Raises
    ------
    InputError
        Columns are missing or come twice, or a value cannot be read: file, line, column, value.
    """
    tables: list[pd.DataFrame] = []
    drops: list[Drop] = []
    infos: list[SourceInfo] = []
    changed: Counter[str] = Counter()
    for number, source in enumerate(sources):
        table = _read_one(source, timezone, drops, changed)
        table["file"] = np.int64(number)
        tables.append(table)
        infos.append(SourceInfo(str(source.path), source.sha256))
    table = pd.concat(tables, ignore_index=True) if len(tables) > 1 else tables[0]
    if len(tables) > 1:
        again = _in_an_earlier_file(table)
        for job, number, line in table.loc[again, ["job_id", "file", "line"]].itertuples(index=False):
            drops.append(Drop(job, infos[number].path, int(line), "in an earlier file too"))
        table = table[~again].reset_index(drop=True)
    return Records(
        table,
        drop_table(drops),
        len(table) + len(drops),
        timezone=timezone,
        sources=tuple(infos),
        format="csv",
        changed=changed,
    )


def _in_an_earlier_file(table: pd.DataFrame) -> NDArray[np.bool_]:
    """Mark the rows that a file before theirs has too: exports of overlapping months."""
    read = [name for name in table if name not in ("file", "line")]
    first = table.groupby(read, dropna=False, sort=False)["file"].transform("min")
    return np.asarray(table["file"] > first)


def _read_one(source: Source, timezone: str, drops: list[Drop], changed: Counter[str]) -> pd.DataFrame:
    try:
        text = source.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"is not UTF-8 text ({error.reason})", file=source.path, fix="save the table as CSV in UTF-8"
        ) from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError("holds a zero byte", file=source.path, line=line, fix="save the table as CSV in UTF-8")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    header = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=header.count)
    names = _columns(header, delimiter, source)
    text, lines = _whole_lines(text, delimiter, len(names), source, drops)
    try:
        raw = pd.read_csv(
            io.StringIO(text), sep=delimiter, dtype="str", keep_default_na=False, header=None, names=names,
            skiprows=1, index_col=False, usecols=[name for name in names if name in (*REQUIRED, *OPTIONAL)],
        )  # fmt: skip
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InputError(
            f"is no table: {str(error).strip()}", file=source.path, fix="check the quotes and commas"
        ) from error
    if len(raw) != lines.size:
        raise InputError(
            "is no table: rows and lines do not match",
            file=source.path,
            fix="check the quotes and blank lines",
        )
    columns: dict[str, object] = {name: raw[name].str.strip() for name in TEXTS if name in raw}
    for name in raw.columns:
        if name not in TEXTS:
            columns[name] = _integers(raw[name], name, source, lines, timezone, changed)
    columns["line"] = lines
    table = job_table(columns, len(raw))
    nameless = np.flatnonzero((table["job_id"] == "").to_numpy())
    if nameless.size:
        raise InputError(
            "no job_id",
            file=source.path,
            line=int(lines[nameless[0]]),
            field="job_id",
            fix="give every job one",
        )
    return table


def _columns(header: str, delimiter: str, source: Source) -> list[str]:
    """Name the columns, ours where another tool's name is known; refuse what is missing or comes twice."""
    given = [name.strip() for name in next(csv.reader([header], delimiter=delimiter), [])]
    lower = [re.sub(r"[\s-]+", "_", name.lower()) for name in given]
    names = [low if low not in ALIASES or ALIASES[low] in lower else ALIASES[low] for low in lower]
    twice = [name for name, times in Counter(names).items() if times > 1 and name]
    if twice:
        raise InputError(
            "two columns of this name",
            file=source.path,
            line=1,
            field="column",
            value=twice[0],
            fix="keep one",
        )
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        raise InputError(
            f"no column {', '.join(missing)} among {', '.join(given) or 'nothing'}",
            file=source.path,
            line=1,
            fix=f"a header of {','.join(REQUIRED)} is required, cells may be empty where unknown",
        )
    return [name or f"unnamed {i}" for i, name in enumerate(names)]


def _whole_lines(
    text: str, delimiter: str, width: int, source: Source, drops: list[Drop]
) -> tuple[str, NDArray[np.int64]]:
    """Check that every row has `width` cells; give the text without a torn last line, and each row's line."""
    rows: list[tuple[int, int, str]] = []
    if '"' in text:
        reader = csv.reader(io.StringIO(text), delimiter=delimiter)
        start = 1
        try:
            for cells in reader:
                if cells:
                    rows.append((start, len(cells), cells[0]))
                start = reader.line_num + 1
        except csv.Error as error:
            raise InputError(f"is no table ({error})", file=source.path, line=start, fix="check the quotes") from error
    else:
        rows = [
            (number, line.count(delimiter) + 1, line.split(delimiter, 1)[0])
            for number, line in enumerate(text.split("\n"), start=1)
            if line.strip()
        ]
    body = rows[1:]
    if body and body[-1][1] < width and not text.endswith("\n"):
        number, filled, first = body.pop()
        if number <= text.count("\n"):
            raise InputError(
                "a quote is left open: the rest of the file is one row",
                file=source.path,
                line=number,
                fix="close the quote",
            )
        drops.append(Drop(first[:40], str(source.path), number, "torn last line", f"{filled} of {width} cells"))
        text = "\n".join(text.split("\n")[: number - 1]) + "\n"
    for number, filled, _ in body:
        if filled != width:
            raise InputError(
                f"{filled} cells where the header has {width}",
                file=source.path,
                line=number,
                fix="complete or remove the line",
            )
    return text, np.array([number for number, _, _ in body], dtype=np.int64)


def _integers(
    texts: pd.Series,
    name: str,
    source: Source,
    lines: NDArray[np.int64],
    timezone: str,
    changed: Counter[str],
) -> NDArray[np.int64]:
    reader = (
        parse_duration if name in DURATIONS else partial(instant, where=zone(timezone)) if name in TIMES else _count
    )
    values, bad = parse_column(texts, reader)

    def refuse(rows: NDArray[np.bool_], message: str) -> None:
        found = np.flatnonzero(rows)
        if found.size:
            more = f" ({found.size - 1} more such lines)" if found.size > 1 else ""
            raise InputError(
                message + more,
                file=source.path,
                line=int(lines[found[0]]),
                field=name,
                value=texts.iloc[found[0]],
                fix=FORMS[name],
            )

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
