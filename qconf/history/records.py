"""What a log says, before it is judged: a row per job, and every record that is no job with its reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from parsim.workload import MAX_CORES, MAX_DURATION

UNKNOWN = -1  #: in every integer column; "" in those of text

MAX_TIME = 2**37  #: of a time, seconds after the log's epoch
MAX_EPOCH = 2**36  #: of the epoch itself: together they end before the year 9999

TEXTS = ("job_id", "queue", "user", "state")
COLUMNS = (
    "job_id",
    "submit",
    "runtime",
    "walltime",
    "cores",
    "queue",
    "user",
    "start",
    "end",
    "state",
    "file",
    "line",
)
DROPPED = ("job_id", "file", "line", "reason", "detail")

LIMITS: Mapping[str, int] = {
    "submit": MAX_TIME,
    "start": MAX_TIME,
    "end": MAX_TIME,
    "runtime": MAX_DURATION,
    "walltime": MAX_DURATION,
    "cores": MAX_CORES,
}


class SourceInfo(NamedTuple):
    """A file that was read; the hash is that of the file as it lies on the disk."""

    path: str
    sha256: str


class Drop(NamedTuple):
    """A record that became no job."""

    job_id: str
    file: str
    line: int
    reason: str
    detail: str = ""


@dataclass(frozen=True, eq=False)
class Records:
    """The raw records of one or many files of one format.

    Attributes
    ----------
    table : DataFrame
        One row per job in the order of the input. int64, -1 unknown: submit, start, end (seconds after
        `epoch`), runtime, walltime (seconds), cores, file (index into `sources`), line. str, "" unknown:
        job_id, queue, user, state.
    dropped : DataFrame
        job_id, file (path), line, reason, detail of the records that are no job.
    read : int
        Records read, ``len(table) + len(dropped)``. Of logs that write several lines per job, the jobs.
    machine_cores : int or None
        Size of the machine if the log says it.
    epoch : int
        Unix time of second 0 of the table.
    timezone : str
        Name of the zone in which calendar months are counted.
    sources : sequence of SourceInfo
    format : {"swf", "csv", "pbs", "sacct"}
    merged : dict
        Lines that only added to the row of another line, counted by what they are.
    changed : dict
        Values that were altered in reading, counted by what was done.
    """

    table: pd.DataFrame
    dropped: pd.DataFrame
    read: int
    machine_cores: int | None = None
    epoch: int = 0
    timezone: str = "UTC"
    sources: Sequence[SourceInfo] = ()
    format: str = "csv"
    merged: Mapping[str, int] = field(default_factory=dict)
    changed: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.read != len(self.table) + len(self.dropped):
            raise RuntimeError(f"{self.read} records read, but {len(self.table)} jobs + {len(self.dropped)} dropped")

    @cached_property
    def reasons(self) -> dict[str, int]:
        """Records that are no job, counted by the reason."""
        return {str(reason): int(count) for reason, count in self.dropped["reason"].value_counts().items()}

    @cached_property
    def queue_names(self) -> list[str]:
        """Queues that the records name, in the order of their first job."""
        return [name for name in self.table["queue"].unique().tolist() if name]


def job_table(columns: Mapping[str, object], length: int) -> pd.DataFrame:
    """Complete `columns` to a table of all `COLUMNS` as `Records` has them, unknown where not given."""
    full: dict[str, object] = {}
    for name in COLUMNS:
        if name in TEXTS:
            full[name] = pd.Series(columns[name] if name in columns else np.full(length, ""), dtype="str")
        else:
            full[name] = np.asarray(columns.get(name, np.full(length, UNKNOWN)), dtype=np.int64)
    return pd.DataFrame(full)


def drop_table(drops: Sequence[Drop]) -> pd.DataFrame:
    """Make the table of dropped records."""
    table = pd.DataFrame(list(drops), columns=list(DROPPED))
    return table.astype({"job_id": "str", "file": "str", "line": "int64", "reason": "str", "detail": "str"})
