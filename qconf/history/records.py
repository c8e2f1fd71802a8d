"""The content of a log before cleaning: a row per job, and every other record with the reason it is no job."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from parsim.model.workload import MAX_CORES, MAX_DURATION
from qconf.config.routing import Column, Mask, Texts
from qconf.errors import InputError, unreadable

Values = NDArray[np.float64]

SAME_ROW = "the same row again: taken as another job"
SAME_ID = "job_id that another job has, too: taken as different jobs"
EARLIER = "earlier run of a job that was requeued or preempted: a job of its own"
UNKNOWN = -1  #: in integer columns; "" in text columns

MAX_TIME = 2**37  #: largest time, seconds after the log's epoch
MAX_EPOCH = 2**36  #: largest epoch; the sum stays before the year 9999

SELDOM = ("needs", "qos", "account")  #: columns that a history CSV has only if some job has a value
TIMES = ("submit", "start", "end")
DROPPED = ("job_id", "file", "line", "reason", "detail")

#: The largest value of each column.
LIMITS = {**dict.fromkeys(TIMES, MAX_TIME), "runtime": MAX_DURATION, "walltime": MAX_DURATION, "cores": MAX_CORES}


@dataclass(slots=True)
class Row:
    """A job during the reading of a log; `table_of` makes a table of rows."""

    job_id: str
    submit: int
    runtime: int = UNKNOWN
    walltime: int = UNKNOWN
    cores: int = UNKNOWN
    queue: str = ""
    user: str = ""
    start: int = UNKNOWN
    end: int = UNKNOWN
    state: str = ""
    group: str = ""
    needs: str = ""  #: as `qconf.history.needs` reads it
    qos: str = ""
    account: str = ""
    file: int = 0
    line: int = 0

    def impossible(self) -> tuple[str, str] | None:
        """Return the reason and detail why these values are impossible, else None."""
        if self.start > self.end != UNKNOWN:
            return "ends before it starts", f"start {self.start}, end {self.end}"
        for name, most in LIMITS.items():
            if getattr(self, name) > most:
                return "absurd value", f"{name} {getattr(self, name)} above {most}"
        return None


COLUMNS = tuple(each.name for each in fields(Row))
FIELDS = COLUMNS[:-2]  #: the columns of a history CSV
TEXTS = tuple(each.name for each in fields(Row) if each.type == "str")


class SourceInfo(NamedTuple):
    """A file that was read, with the hash of its bytes on disk."""

    path: str
    sha256: str

    @classmethod
    def of(cls, path: str | Path) -> SourceInfo:
        """Hash a file. Raises InputError if it cannot be read."""
        try:
            with Path(path).open("rb") as stream:
                return cls(str(path), hashlib.file_digest(stream, "sha256").hexdigest())
        except OSError as error:
            raise unreadable(path, error) from error


class Drop(NamedTuple):
    """A record that became no job."""

    job_id: str
    file: str
    line: int
    reason: str
    detail: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Log:
    """The common fields of `Records` and the `History` made of them."""

    dropped: pd.DataFrame  #: records that are no job: job_id, file (path), line, reason, detail
    changed: Mapping[str, int] = field(default_factory=dict)  #: number of altered values or jobs, by kind of change
    epoch: int = 0  #: Unix time of second 0
    timezone: str = "UTC"  #: name of the zone in which calendar months are counted
    sources: Sequence[SourceInfo] = ()

    @cached_property
    def reasons(self) -> dict[str, int]:
        """Number of dropped records by reason."""
        return {str(reason): int(count) for reason, count in self.dropped["reason"].value_counts().items()}

    def no_job(self, read: int, reasons: Mapping[str, int], dropped: pd.DataFrame) -> InputError:
        """Return the error that none of the records read is a usable job, with the first of those dropped."""
        why = ", ".join(f"{count} {reason}" for reason, count in reasons.items() if count) or "there is none"
        file, line, detail = self.first_file, None, ""
        if len(dropped):
            file, line, detail = dropped[["file", "line", "detail"]].iloc[0]
        more = f"; the first: {detail}" if detail else ""
        fix = "a job needs a submit time, cores that the machine has, a second of run time and a queue that takes it"
        return InputError(f"no usable job among {read} records: {why}{more}", file=file, line=line, fix=fix)

    @property
    def first_file(self) -> str | None:
        """The file to name in a message about the whole log."""
        return self.sources[0].path if self.sources else None


@dataclass(frozen=True, eq=False, kw_only=True)
class Records(Log):
    """The raw records of one or many files of one format."""

    #: A row per job in the order of the input. int64, -1 unknown: submit, start, end (seconds after `epoch`), runtime,
    #: walltime (seconds), cores, file (index into `sources`), line. str, "" unknown: job_id, queue, user, state, group,
    #: needs, qos, account.
    table: pd.DataFrame
    machine_cores: int | None = None  #: size of the machine, if in the log
    cores_per_node: int | None = None  #: if the log counts nodes
    format: str = "csv"  #: swf, csv, pbs or sacct
    merged: Mapping[str, int] = field(default_factory=dict)  #: number of lines merged into another line's row, by kind
    of_memory: Mapping[str, int] = field(default_factory=dict)  #: like `changed`, if the nodes have memory
    #: Rows like `table` for dropped jobs that were deleted while waiting, at `end`.
    gone: pd.DataFrame = field(default_factory=lambda: job_table({}, 0))

    @property
    def deleted(self) -> pd.DataFrame:
        """Jobs that were deleted while waiting, at `end`: `gone`, and the rows of `table` with a cancelled state.

        The latter have no start, no run time, and an end not before their submit.
        """
        table = self.table
        submit, cancelled = table["submit"], table["state"].str.lower().str.startswith("cancel")
        none = (table["start"] < 0) & (table["runtime"] < 0) & (table["end"] >= submit) & (submit >= 0)
        return pd.concat([table[none & cancelled], self.gone])

    @property
    def read(self) -> int:
        """Number of records read; jobs, if a log has several lines per job."""
        return len(self.table) + len(self.dropped)

    @cached_property
    def queue_names(self) -> list[str]:
        """Names of the records' queues, in the order of their first job."""
        return [name for name in self.table["queue"].unique().tolist() if name]


def table_of(rows: Sequence[Row]) -> pd.DataFrame:
    """Convert rows to a table as in `Records.table`."""
    return job_table({name: [getattr(row, name) for row in rows] for name in COLUMNS}, len(rows))


def most_at_once(jobs: pd.DataFrame) -> int:
    """Return the most cores that a table's jobs used at once; 0 if it has no starts."""
    start, runtime, cores = (jobs[name].to_numpy() for name in ("start", "runtime", "cores"))
    known = (start >= 0) & (runtime > 0) & (cores > 0)
    moments = np.concatenate([start[known] + runtime[known], start[known]])  # at equal times, ends come before starts
    changes = np.concatenate([-cores[known], cores[known]])
    return int(changes[np.argsort(moments, kind="stable")].cumsum().max(initial=0))


def job_table(columns: Mapping[str, object] | pd.DataFrame, length: int) -> pd.DataFrame:
    """Complete `columns` to a table of all `COLUMNS` as in `Records.table`; missing columns are unknown."""
    full: dict[str, object] = {}
    for name in COLUMNS:
        if name in TEXTS:
            full[name] = _texts(columns[name]) if name in columns else pd.Series(np.full(length, ""), dtype="str")
        else:
            full[name] = np.asarray(columns.get(name, np.full(length, UNKNOWN)), dtype=np.int64)
    return pd.DataFrame(full, copy=False)


def _texts(values: Any) -> pd.Series:  # noqa: ANN401 - any column
    if isinstance(getattr(values, "dtype", None), pd.CategoricalDtype):
        return pd.Series(pd.array(values.cat.categories, dtype="str").take(values.cat.codes), index=values.index)
    return pd.Series(values, dtype="str")


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of texts, stored as distinct texts and each row's index into them."""

    texts: Sequence[str]
    codes: Column

    @classmethod
    def of(cls, column: pd.Series | NDArray[Any]) -> Coded:
        """Encode a column."""
        codes, found = pd.factorize(column)
        return cls([str(each) for each in found], codes)

    def __getitem__(self, rows: Mask) -> Coded:
        return Coded(self.texts, self.codes[rows])

    def read(self, how: Callable[[str], str]) -> Coded:
        """Apply `how` to each distinct text."""
        return Coded([how(text) for text in self.texts], self.codes)

    def like(self, how: Callable[[str], object]) -> Mask:
        """Mark the rows whose text satisfies `how`."""
        return np.array([bool(how(text)) for text in self.texts], dtype=np.bool_)[self.codes]

    def array(self) -> Texts:
        """Return the text of each row, shape (n,)."""
        return np.array([*self.texts, ""], dtype=object)[self.codes]


def kinds(*columns: NDArray[Any] | pd.Series) -> tuple[Column, Column]:
    """Group equal rows of some columns: return the first row of each group, and the group of each row."""
    of = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        codes, found = pd.factorize(column)
        of = pd.factorize(of * max(1, len(found)) + codes)[0]
    return np.flatnonzero(~pd.Series(of).duplicated()), of


class Gathered:
    """Collects the rows of a large log block by block, in little memory.

    Texts are stored once and become categories of the table; the columns `ids`, where each text differs, are stored
    as packed strings. Integers take four bytes if that is enough.
    """

    def __init__(self, ids: Sequence[str]) -> None:
        self.ids = ids
        self._words: dict[str, int] = {}
        self._packed: dict[str, list[pd.Series]] = {}
        self._columns: dict[str, NDArray[Any]] = {}
        self._texts: set[str] = set()

    def add(self, columns: Mapping[str, NDArray[Any] | Coded]) -> None:
        """Add a block of rows; an object column holds texts."""
        for name, values in columns.items():
            if name in self.ids:
                self._packed.setdefault(name, []).append(pd.Series(values, dtype="str"))
            elif isinstance(values, Coded) or values.dtype == object:
                some = values if isinstance(values, Coded) else Coded.of(values)
                number = [self._words.setdefault(text, len(self._words)) for text in some.texts]
                self._texts.add(name)
                self._append(name, np.array(number, dtype=np.int32)[some.codes])
            else:
                is_small = values.dtype == np.int64 and not ((values < -(2**31)) | (values >= 2**31)).any()
                self._append(name, values.astype(np.int32) if is_small else values)

    def _append(self, name: str, values: NDArray[Any]) -> None:
        held = self._columns.pop(name, None)
        if held is None:
            self._columns[name] = values.copy()
            return
        held = held.astype(np.result_type(held, values), copy=False)
        size = held.size
        held.resize(size + values.size, refcheck=False)  # without a copy
        held[size:] = values
        self._columns[name] = held

    def table(self) -> pd.DataFrame:
        """Return all rows, and forget them."""
        words = pd.CategoricalDtype([*self._words])
        found: dict[str, Any] = {}
        for name in [*self._packed, *self._columns]:
            if name in self._packed:
                found[name] = pd.concat(self._packed.pop(name), ignore_index=True)
            else:
                values = self._columns.pop(name)
                found[name] = pd.Categorical.from_codes(values, dtype=words) if name in self._texts else values
        return pd.DataFrame(found, copy=False)


def shifted(table: pd.DataFrame, seconds: int) -> pd.DataFrame:
    """Return the table with `seconds` added to its known times."""
    times = table[list(TIMES)]
    return table.assign(**times.where(times < 0, times + seconds))


def stack(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate the tables of several files; sets the column `file` to the index of each."""
    for number, table in enumerate(tables):
        table["file"] = np.int64(number)
    return pd.concat(tables, ignore_index=True) if len(tables) > 1 else tables[0]


def without_repeats(records: Records) -> Records:
    """Drop the jobs that an earlier file has, too; count those that are equal, or share an id, in one file."""
    table, changed = records.table, Counter(records.changed)
    drops: list[Drop] = []
    if len(records.sources) > 1:
        same = table.groupby([*FIELDS], dropna=False, sort=False, observed=True)
        again = table["file"] > same["file"].transform("min")
        for job, number, line in table.loc[again, ["job_id", "file", "line"]].itertuples(index=False):
            drops.append(Drop(job, records.sources[number].path, line, "in an earlier file too"))
        table = table[~again].reset_index(drop=True)
    codes, found = pd.factorize(table["job_id"])  # less memory than `duplicated`
    twice = table[np.bincount(codes, minlength=1)[codes] > 1] if len(found) < len(table) else table[:0]
    equal = twice.duplicated([*FIELDS])
    for rows, what in ((equal, SAME_ROW), (twice.duplicated("job_id") & ~equal, SAME_ID)):
        changed.update({what: int(rows.sum())} if rows.any() else {})
    dropped = pd.concat([records.dropped, drop_table(drops)], ignore_index=True)
    return replace(records, table=table, dropped=dropped, changed=changed)


def drop_table(drops: Sequence[Drop] | pd.DataFrame) -> pd.DataFrame:
    """Convert dropped records to a table with the columns `DROPPED`."""
    table = pd.DataFrame(drops, columns=list(DROPPED))
    return table.astype({"job_id": "str", "file": "str", "line": "int64", "reason": "str", "detail": "str"})
