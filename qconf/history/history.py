"""A cleaned history: jobs that the configuration can run, what was left out and why, and periods of it."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo

import numpy as np
import pandas as pd

from parsim.workload import Workload
from qconf.config import SiteConfig
from qconf.errors import InputError
from qconf.history.records import SourceInfo
from qconf.history.times import zone

DAY = 86400
FEWEST = 100  # jobs of a period, below which it is neither learned from nor judged
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
    "row",
)

Window = tuple[str, int, int]


@dataclass(frozen=True, eq=False)
class History:
    """Jobs ready to be simulated, ordered by (submit, position in the input).

    Attributes
    ----------
    jobs : DataFrame
        int64: submit (seconds after `epoch`), runtime, walltime (seconds), cores, start, end (-1 unknown),
        row (position in the input). str: job_id, queue (a name of the configuration), user ("" unknown),
        state.
    dropped : DataFrame
        job_id, file, line, reason, detail: all records of the input that are no such job.
    changed : dict
        Jobs altered, counted by what was done.
    read : int
        Records read: ``len(jobs) + len(dropped) + outside``.
    epoch : int
        Unix time of second 0.
    timezone : str
        In which calendar months are counted.
    sources : sequence of SourceInfo
    outside : int
        Usable jobs outside the chosen period.
    kept_out : dict of str to tuple of int
        Submits of the jobs in the period that a limit of the configuration kept out, by the limit's path.
    """

    jobs: pd.DataFrame
    dropped: pd.DataFrame
    changed: Mapping[str, int]
    read: int
    epoch: int = 0
    timezone: str = "UTC"
    sources: Sequence[SourceInfo] = ()
    outside: int = 0
    kept_out: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        if self.read != len(self.jobs) + len(self.dropped) + self.outside:
            raise RuntimeError(
                f"{self.read} records read, but {len(self.jobs)} jobs, {len(self.dropped)} dropped, "
                f"{self.outside} outside the period"
            )
        object.__setattr__(self, "reasons", {str(k): int(v) for k, v in self.dropped["reason"].value_counts().items()})

    def __len__(self) -> int:
        """Return the number of jobs."""
        return len(self.jobs)

    @property
    def span(self) -> tuple[int, int]:
        """First and last submit, seconds after `epoch`."""
        return int(self.jobs["submit"].iloc[0]), int(self.jobs["submit"].iloc[-1])

    def workload(self, config: SiteConfig) -> Workload:
        """Return the jobs as parsim takes them; queues as `config` counts them, users by their sorted names.

        Raises
        ------
        InputError
            A job is in a queue that `config` lacks: the history was cleaned for another one.
        """
        index = pd.Index([queue.name for queue in config.queues]).get_indexer(pd.Index(self.jobs["queue"]))
        if (index < 0).any():
            raise InputError(
                "the configuration has no such queue",
                field="queue",
                value=str(self.jobs["queue"].iloc[int(np.flatnonzero(index < 0)[0])]),
                fix="clean the history with the configuration that is simulated",
            )
        codes, names = pd.factorize(self.jobs["user"], sort=True)
        user = codes - 1 if len(names) and names[0] == "" else codes
        return Workload(
            submit=self.jobs["submit"].to_numpy(),
            cores=self.jobs["cores"].to_numpy(),
            runtime=self.jobs["runtime"].to_numpy(),
            walltime=self.jobs["walltime"].to_numpy(),
            queue=index,
            user=user,
        )

    def between(self, start: int | None, end: int | None) -> History:
        """Return the jobs submitted in ``[start, end)``, seconds after `epoch`; None leaves a side open.

        Raises
        ------
        InputError
            There is none.
        """
        submit = self.jobs["submit"].to_numpy()
        inside = np.ones(submit.size, dtype=np.bool_)
        inside &= True if start is None else submit >= start
        inside &= True if end is None else submit < end
        if not inside.any():
            first, last = self.span
            asked = " and ".join("open" if side is None else self.date(side) for side in (start, end))
            raise InputError(
                f"no job was submitted between {asked}",
                file=self.sources[0].path if self.sources else None,
                fix=f"the history goes from {self.date(first)} to {self.date(last)}",
            )
        jobs = self.jobs[inside].reset_index(drop=True)
        kept_out = {
            path: tuple(s for s in submits if (start is None or s >= start) and (end is None or s < end))
            for path, submits in self.kept_out.items()
        }
        return replace(self, jobs=jobs, outside=self.outside + int((~inside).sum()), kept_out=kept_out)

    def month(self, label: str) -> History:
        """Return the jobs submitted in a calendar month such as ``2016-02``.

        Raises
        ------
        InputError
            The label is no month, or the month has no job.
        """
        return self.between(*month_bounds(label, self.epoch, zone(self.timezone)))

    def periods(self, kind: str) -> list[Window]:
        """Cut the history into calendar months (``month``) or days from the first submit (``30d``).

        The first and the last may be covered by jobs only in part.

        Returns
        -------
        list of (label, start, end)
            Seconds after `epoch`, end exclusive; months without a job are among them.

        Raises
        ------
        InputError
            `kind` is neither.
        """
        first, last = self.span
        if kind == "month":
            where = zone(self.timezone)
            moment = datetime.fromtimestamp(self.epoch + first, where)
            label, found = f"{moment.year:04d}-{moment.month:02d}", list[Window]()
            while True:
                start, end = month_bounds(label, self.epoch, where)
                found.append((label, start, end))
                if end > last:
                    return found
                label = _next_month(label)
        days = re.fullmatch(r"([1-9]\d{0,4})d", kind)
        if not days:
            raise InputError("no such period", field="period", value=kind, fix="write month, or days such as 30d")
        step = int(days.group(1)) * DAY
        found = []
        for start in range(first, last + 1, step):
            date = self.date(start)
            same = bool(found) and found[-1][0] == date[:10]  # a day of 25 hours
            found.append((date[:16] if same else date[:10], start, start + step))
        return found

    def months_before(self, second: int, fewest: int = FEWEST) -> list[History]:
        """Return the calendar months that end by then, the oldest first, those with few jobs left out."""
        ended = [(start, end) for _, start, end in self.periods("month") if end <= second]
        submit = self.jobs["submit"].to_numpy()
        counts = [int(np.searchsorted(submit, end) - np.searchsorted(submit, start)) for start, end in ended]
        return [self.between(*bounds) for bounds, count in zip(ended, counts, strict=True) if count >= fewest]

    def date(self, second: int) -> str:
        """Write a second of this history as ISO 8601 local time."""
        return datetime.fromtimestamp(self.epoch + second, zone(self.timezone)).isoformat()

    def to_csv(self) -> str:
        """Return the jobs as history CSV, times in Unix seconds."""
        return history_csv(self.jobs, self.epoch)


def history_csv(table: pd.DataFrame, epoch: int) -> str:
    """Write job rows as the project's history CSV: Unix seconds, empty cells where unknown."""
    out = table[list(COLUMNS[:-1])].copy()
    for name in ("submit", "start", "end", "runtime", "walltime", "cores"):
        known = out[name] >= 0
        shifted = out[name] + (epoch if name in ("submit", "start", "end") else 0)
        out[name] = shifted.astype("Int64").where(known)
    buffer = io.StringIO()
    out.to_csv(buffer, index=False, lineterminator="\n")
    return buffer.getvalue()


def month_bounds(label: str, epoch: int = 0, where: tzinfo | None = None) -> tuple[int, int]:
    """Return first second of a month and of the next one, seconds after `epoch`.

    Raises
    ------
    InputError
        The label is not YYYY-MM.
    """
    if not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", label) or label in ("0000-00", "9999-12") or label < "0001-01":
        raise InputError("no month", field="month", value=label, fix="write it like 2016-02")
    where = where or zone("UTC")

    def begin(text: str) -> int:
        return int(datetime(int(text[:4]), int(text[5:]), 1, tzinfo=where).timestamp()) - epoch

    return begin(label), begin(_next_month(label))


def _next_month(label: str) -> str:
    year, month = int(label[:4]), int(label[5:])
    return f"{year + month // 12:04d}-{month % 12 + 1:02d}"
