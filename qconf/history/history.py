"""A cleaned history: jobs that the configuration can run, the records left out and why, and its periods."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

import numpy as np
import pandas as pd

from parsim.model.workload import Workload
from qconf.config import SiteConfig, qos_of
from qconf.config.routing import Column, Mask
from qconf.errors import InputError
from qconf.history.chunks import requests, with_kept_cores
from qconf.history.needs import needed
from qconf.history.records import FIELDS, MAX_TIME, SELDOM, TEXTS, TIMES, Log, job_table, shifted
from qconf.history.times import zone
from qconf.inert import guarded

DAY = 86400
FEWEST = 100  # jobs that a period needs for training or evaluation


class Window(NamedTuple):
    """A labelled period [start, end), seconds after the log's epoch."""

    label: str
    start: int
    end: int


def _next_month(label: str) -> str:
    year, month = int(label[:4]), int(label[5:])
    return f"{year + month // 12:04d}-{month % 12 + 1:02d}"


COLUMNS = (*FIELDS, "row")
QUOTE = '"'
CELL = re.compile(r'[,"\r\n]')  #: characters for which a CSV cell needs quotes


@dataclass(frozen=True, eq=False, kw_only=True)
class History(Log):
    """Jobs ready to be simulated, ordered by (submit, position in the input)."""

    #: int64: submit (seconds after `epoch`), runtime, walltime (seconds), cores, start, end (-1 unknown), row (position
    #: in the input). str: job_id, queue (a name of the configuration), user ("" unknown), state, group, needs, qos,
    #: account.
    jobs: pd.DataFrame
    read: int  #: records read: ``len(jobs) + len(dropped) + outside``
    outside: int = 0  #: usable jobs outside the chosen period
    #: Rows like `jobs` for jobs that were deleted while waiting, at `end`; their run time is the walltime.
    deleted: pd.DataFrame = field(default_factory=lambda: job_table({}, 0).rename(columns={"line": "row"})[[*COLUMNS]])
    #: By the path of a limit in the configuration: submits of the period's jobs that it excludes.
    excluded: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.read != len(self.jobs) + len(self.dropped) + self.outside:
            raise RuntimeError(
                f"{self.read} records read, but {len(self.jobs)} jobs, {len(self.dropped)} dropped, "
                f"{self.outside} outside the period"
            )

    def __len__(self) -> int:
        return len(self.jobs)

    @property
    def span(self) -> tuple[int, int]:
        """First and last submit, seconds after `epoch`."""
        return int(self.jobs["submit"].iloc[0]), int(self.jobs["submit"].iloc[-1])

    def workload(self, config: SiteConfig) -> Workload:
        """Return the jobs as a workload of parsim; queues are numbered as in `config`, users by sorted name.

        Raises `InputError` if `config` lacks the queue of a job: the history was cleaned for another configuration.
        """
        index = pd.Index(config.names).get_indexer(pd.Index(self.jobs["queue"]))
        if (index < 0).any():
            raise InputError(
                "the configuration has no such queue",
                field="queue",
                value=str(self.jobs["queue"].iloc[int(np.argmax(index < 0))]),
                fix="clean the history with the configuration that is simulated",
            )
        user, known = _numbered(self.jobs["user"])
        submit, cores, runtime, walltime = (
            self.jobs[name].to_numpy() for name in ("submit", "cores", "runtime", "walltime")
        )
        after, quotas = needed(self.jobs, config.licences)
        jobs = Workload(submit, cores, runtime, walltime, index, user, known, after=after, quotas=quotas)
        if "estimate" in self.jobs:  # a deleted job has none
            jobs = replace(jobs, estimate=self.jobs["estimate"].fillna(0).to_numpy(dtype=np.int64))
        if config.qos:
            jobs = replace(jobs, qos=self.qos(config), qos_names=[qos.name for qos in config.qos])
        if config.nodes:
            number, found = requests(self.jobs["needs"].to_numpy(dtype=object), cores, config)
            number, found = with_kept_cores(np.maximum(number, -1), cores, found, config)
            jobs = replace(jobs, request=number, requests=found)
        if not any(throttle.kind == "group" for throttle in config.throttles):
            return jobs
        group, known = _numbered(self.jobs["group"])
        return replace(jobs, group=group, group_names=known)

    def qos(self, config: SiteConfig) -> Column:
        """Return the index of each job's QOS in the configuration, -1 for none, shape (n,)."""
        names = (self.jobs[name].to_numpy(dtype=object) for name in ("qos", "user", "account", "group", "queue"))
        return pd.Index([qos.name for qos in config.qos]).get_indexer(pd.Index(qos_of(config, *names)))

    def with_deleted(self) -> tuple[History, Mask]:
        """Return the history with the jobs deleted while waiting merged in, and the mask of these, shape (n,)."""
        if self.deleted.empty:
            return self, np.zeros(len(self), dtype=np.bool_)
        jobs = pd.concat([self.jobs, self.deleted], ignore_index=True)
        order = np.argsort(jobs["submit"].to_numpy(), kind="stable")
        found = replace(self, jobs=jobs.iloc[order].reset_index(drop=True), read=self.read + len(self.deleted))
        return found, order >= len(self)

    def groups(self, config: SiteConfig) -> Column | None:
        """Return the index into `config.targets` of each job's group, -1 for none; None if no target has a group.

        A job belongs to the group that lists its user, else to the group without users that the log names for it.
        """
        groups = [(i, target) for i, target in enumerate(config.targets) if target.group is not None]
        if not groups:
            return None
        by_user = {user: i for i, target in groups for user in target.users}
        by_name = {target.group: i for i, target in groups if not target.users}
        listed = np.array([by_user.get(user, -1) for user in self.jobs["user"]], dtype=np.int64)
        named = np.array([by_name.get(group, -1) for group in self.jobs["group"]], dtype=np.int64) if by_name else -1
        return np.where(listed >= 0, listed, named)

    def count(self, start: int, end: int) -> int:
        """Count the jobs submitted in ``[start, end)``, seconds after `epoch`."""
        first, last = np.searchsorted(self.jobs["submit"].to_numpy(), (start, end))
        return int(last - first)

    def between(self, start: int | None, end: int | None) -> History:
        """Return the jobs submitted in ``[start, end)``, seconds after `epoch`; None leaves a side open.

        Raises `InputError` if there is none.
        """
        since, until = -MAX_TIME if start is None else start, MAX_TIME + 1 if end is None else end
        inside = self.jobs["submit"].between(since, until, inclusive="left").to_numpy()
        if not inside.any():
            first, last = self.span
            sides = " and ".join("open" if side is None else self.date(side) for side in (start, end))
            raise InputError(
                f"no job was submitted between {sides}",
                file=self.first_file,
                fix=f"the history goes from {self.date(first)} to {self.date(last)}",
            )
        excluded = {
            path: tuple(second for second in submits if since <= second < until)
            for path, submits in self.excluded.items()
        }
        jobs = self.jobs[inside].reset_index(drop=True)
        waited = self.deleted[self.deleted["submit"].between(since, until, inclusive="left")]
        return replace(self, jobs=jobs, deleted=waited, outside=self.outside + int((~inside).sum()), excluded=excluded)

    def joined(self, later: History) -> History:
        """Append a history that begins after this one ends; times count from this one's epoch.

        Raises `InputError` if they overlap: training jobs would be evaluated on.
        """
        shift, (first, _), (_, last) = later.epoch - self.epoch, later.span, self.span
        if first + shift <= last:
            raise InputError(
                f"begins at {later.date(first)}, before the history ends at {self.date(last)}",
                file=later.first_file,
                fix="give a log that begins after the one that is trained on",
            )
        moved = shifted(later.jobs, shift).assign(row=later.jobs["row"] + self.read)
        excluded = dict(self.excluded)
        for path, submits in later.excluded.items():
            excluded[path] = (*excluded.get(path, ()), *(submit + shift for submit in submits))
        return replace(
            self,
            jobs=pd.concat([self.jobs, moved], ignore_index=True),
            deleted=pd.concat([self.deleted, shifted(later.deleted, shift)], ignore_index=True),
            dropped=pd.concat([self.dropped, later.dropped], ignore_index=True),
            changed=Counter(self.changed) + Counter(later.changed),
            read=self.read + later.read,
            sources=(*self.sources, *later.sources),
            outside=self.outside + later.outside,
            excluded=excluded,
        )

    def month(self, label: str) -> History:
        """Return the jobs submitted in a calendar month such as ``2016-02``; `InputError` if there is none."""
        return self.between(*self._bounds(label))

    def _bounds(self, month: str) -> tuple[int, int]:
        """Return the bounds [start, end) of a month, seconds after `epoch`; `InputError` if it is not YYYY-MM."""
        if not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", month) or month == "9999-12" or month < "0001-01":
            raise InputError("no month", field="month", value=month, fix="write it like 2016-02")
        first, second = (
            int(datetime(int(text[:4]), int(text[5:]), 1, tzinfo=zone(self.timezone)).timestamp()) - self.epoch
            for text in (month, _next_month(month))
        )
        return first, second

    def periods(self, kind: str) -> list[Window]:
        """Cut the history into calendar months (``month``) or days from the first submit (``30d``).

        The first and the last may be only partly covered by jobs; months without a job are included. Raises
        `InputError` for any other `kind`.
        """
        first, last = self.span
        found: list[Window] = []
        if kind == "month":
            label = self.date(first)[:7]
            while not found or found[-1].end <= last:
                found.append(Window(label, *self._bounds(label)))
                label = _next_month(label)
            return found
        days = re.fullmatch(r"([1-9]\d{0,4})d", kind)
        if not days:
            raise InputError("no such period", field="period", value=kind, fix="write month, or days such as 30d")
        step = int(days.group(1)) * DAY
        for start in range(first, last + 1, step):
            date = self.date(start)
            same = bool(found) and found[-1].label == date[:10]  # a day of 25 hours
            found.append(Window(date[:16] if same else date[:10], start, start + step))
        return found

    def months_before(self, second: int, fewest: int = FEWEST) -> list[History]:
        """Return the calendar months with at least `fewest` jobs that end by `second`, oldest first."""
        ended = [(start, end) for _, start, end in self.periods("month") if end <= second]
        return [self.between(*bounds) for bounds in ended if self.count(*bounds) >= fewest]

    def date(self, second: int) -> str:
        """Write a second of this history as ISO 8601 local time."""
        return datetime.fromtimestamp(self.epoch + second, zone(self.timezone)).isoformat()


def _numbered(column: pd.Series[str]) -> tuple[Column, list[str]]:
    """Return each row's index into the sorted names, -1 for "", and these names."""
    codes, names = pd.factorize(column, sort=True)
    return (codes - 1, names[1:].tolist()) if len(names) and names[0] == "" else (codes, names.tolist())


def history_lines(table: pd.DataFrame, epoch: int, many: int = 20_000) -> Iterator[str]:
    """Yield a job table as history CSV, `many` rows at a time: Unix seconds, empty if unknown, no formulas."""
    names = [name for name in FIELDS if name not in SELDOM or (name in table and (table[name] != "").any())]
    yield ",".join(names) + "\n"
    for first in range(0, len(table), many):
        rows = table.iloc[first : first + many]
        cells = [
            _quoted(rows[name]) if name in TEXTS else _numbers(rows[name].to_numpy(), epoch if name in TIMES else 0)
            for name in names
        ]
        yield "\n".join(map(",".join, zip(*cells, strict=True))) + "\n"


def _numbers(values: Column, shift: int) -> list[str]:
    texts = [*map(str, (values + shift).tolist())]
    for row in np.flatnonzero(values < 0).tolist():
        texts[row] = ""
    return texts


def _quoted(texts: pd.Series[str]) -> list[str]:
    """Write texts as CSV cells that a spreadsheet does not take for formulas."""
    codes, found = pd.factorize(texts)
    safe = guarded(pd.DataFrame({"text": pd.Series(found, dtype="str")}))["text"].tolist()
    cells = [f'"{text.replace(QUOTE, 2 * QUOTE)}"' if CELL.search(text) else text for text in map(str, safe)]
    return [cells[code] for code in codes.tolist()]
