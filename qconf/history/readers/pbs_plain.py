"""Fast reader of "plain" PBS jobs: they ran once, and their records are in OpenPBS's own form and order.

All records of other jobs are left to the reader of single records, `qconf.history.readers.pbs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd

from qconf.config import POOL_SUFFIX
from qconf.config.routing import Column, Mask, Texts
from qconf.history.chunks import of_select, written
from qconf.history.needs import words
from qconf.history.readers import pbs_record as record
from qconf.history.readers.sources import Source
from qconf.history.records import LIMITS, UNKNOWN, Coded, Gathered, kinds

_V = r"[^\x00- \"'\x7f-\xa0]"  #: a character of a value
_END = "(?: |$)"
_NAME = r"(([1-9][0-9]{0,14}+|0)(?:\[([1-9][0-9]{0,8}+|0)\])?+((?:\.[^\x00- ;\"'\[\]\x7f-\xa0]*+)?+))"
#: Values of a record that are ignored.
_OTHER = (
    r"(?:(?:jobname|[qe]time|eligible_time|exec_host|exec_vnode|session|run_count|alt_id|accounting_id|resvname|resvID)"
    rf"={_V}*+{_END})*+"
)
_GIVEN, _USED = (
    rf"(?:{name}(?!{its}=){_V}++{_END})*+"
    for name, its in ((r"resource_assigned\.", "ncpus"), (r"resources_used\.", "walltime"))
)
#: A line: a record of a job's run as OpenPBS writes it, or any other.
_LINE = re.compile(
    rf"^(?:[0-9]{{2}}/[0-9]{{2}}/[0-9]{{4}} [0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}};([QSE]);{_NAME};"
    rf"user=({_V}++) group=({_V}++) (?:account=\"?+({_V}++)\"?+ )?+(?:project=({_V}++) )?+{_OTHER}queue=({_V}++) "
    rf"ctime=([0-9]{{1,10}}+) {_OTHER}(?:start=([0-9]{{1,10}}+) {_OTHER})?+((?:Resource_List\.{_V}++{_END})++){_OTHER}"
    rf"{_GIVEN}(?:resource_assigned\.ncpus=([0-9]{{1,12}}+){_END}{_GIVEN})?+{_OTHER}"
    rf"(?:end=([0-9]{{1,10}}+) Exit_status=(-?[0-9]{{1,9}}+){_END}"
    rf"{_USED}(?:resources_used\.walltime=({_V}*+){_END}{_USED})?+{_OTHER})?+|.*)$",
    re.MULTILINE,
)
_JOB = re.compile(_NAME)
KEY = ("server", "index", "number")  #: columns that identify a job


class _Wanted(NamedTuple):
    """The request of a job."""

    cores: int
    is_exclusive: bool
    walltime: int
    qos: str
    needs: str
    can_be_read: bool = True


@lru_cache(maxsize=65536)
def _wanted(text: str) -> _Wanted:
    """Read the resources of a record, which are adjacent."""
    select, place = record.SELECT.search(f" {text}"), record.PLACE.search(f" {text}")
    fields = record.fields_of("S", text)
    try:
        cores = record.whole(fields, "Resource_List.ncpus", 12)
        walltime = record.duration(fields, "Resource_List.walltime")
    except ValueError:
        return _Wanted(UNKNOWN, False, UNKNOWN, "", "", False)
    chunks, readable = written(of_select, select[1] if select else "", place[1] if place else "")
    licences = {name: int(count) for name, count in record.OWN.findall(f" {text}")}
    is_plain = readable and select is not None and "mppwidth" not in text
    exclusive, qos = "excl" in fields.get("Resource_List.place", ""), fields.get("Resource_List.qos", "")
    return _Wanted(cores, exclusive, walltime, qos, words(licences=licences, chunks=chunks), is_plain)


def _used(text: str) -> int:
    """Return the used seconds of a job; `UNKNOWN` if empty, -2 if it is no duration."""
    try:
        return (record.walltime_of(text) if text else 0) or UNKNOWN
    except ValueError:
        return -2


def _numbers(texts: Sequence[str]) -> Column:
    if not any(texts):
        return np.full(len(texts), UNKNOWN, dtype=np.int64)
    return np.array([int(text or UNKNOWN) for text in texts] if "" in texts else [*map(int, texts)], dtype=np.int64)


class Plain:
    """Collects the records of plain jobs: `read` each file, then `settle`, then `rest` of each file."""

    def __init__(self) -> None:
        self.ends = Gathered(("job_id",))  #: E records
        self.others = Gathered(())  #: Q and S records
        self.servers: dict[str, int] = {}
        self.strange: set[tuple[int, ...]] = set()  #: keys (`KEY`) of jobs with any other record
        self.limited: set[str] = set()  #: arrays with a limit of running members or a dependency
        self.lines: list[int] = []  #: number of lines by file
        self.taken: list[Mask] = []  #: by file: mask of the lines of plain jobs
        for kind in ("E", "Q"):
            self._add([], kind, 0, np.array([], dtype=np.int64))

    def read(self, file: int, source: Source) -> None:
        """Read a file; `file` is its index, in ascending calls."""
        first = 1
        for raw in source.blocks():
            block = raw.decode("utf-8", "replace").replace("\r\n", "\n")
            rows = _LINE.findall(block.removesuffix("\n"))
            kind = np.array([row[0] for row in rows], dtype="U1")
            if not block.endswith("\n"):  # a torn line
                kind[-1] = ""
            lines = np.arange(first, first + len(rows))
            for of in ("E", "S", "Q"):
                at = np.flatnonzero(kind == of)
                good = self._add([rows[i] for i in at.tolist()], of, file, lines[at])
                kind[at[~good]] = ""
            if (kind == "").any():
                text = block.split("\n")
                for i in np.flatnonzero(kind == "").tolist():
                    self._note(text[i])
            first += len(rows)
        self.lines.append(first - 1)

    def _add(self, rows: Sequence[tuple[str, ...]], kind: str, file: int, lines: Column) -> Mask:
        """Add records of a type; return the mask of those that are plain."""
        (
            _, names, number, index, server, user, group, account, projects, queue, ctime, start, resources, given,
            end, status, used,
        ) = zip(*rows, strict=True) if rows else ((),) * 17  # fmt: skip
        text = Coded.of(np.array(resources, dtype=object))
        requests = [_wanted(each) for each in text.texts]
        wanted = {
            name: np.array([getattr(each, name) for each in requests], dtype=np.int64)[text.codes]
            for name in ("cores", "is_exclusive", "walltime", "can_be_read")
        }
        cores, begin, over = wanted["cores"], _numbers(start), _numbers(end)
        if kind == "S":
            is_given = (wanted["is_exclusive"] > 0) | (cores == UNKNOWN)
            cores = np.where(is_given, np.maximum(cores, _numbers(given)), cores)
        servers = Coded.of(np.array(server, dtype=object))
        of_servers = [self.servers.setdefault(name, len(self.servers)) for name in servers.texts]
        numbers = {
            "number": _numbers(number),
            "index": _numbers(index),
            "server": np.array(of_servers, dtype=np.int64)[servers.codes],
            "submit": _numbers(ctime),
            "start": begin,
            "cores": cores,
            "file": np.full(len(rows), file),
            "line": lines,
        }
        texts: dict[str, Coded | Texts] = {
            "account": np.array(
                [own or record.project(of) for own, of in zip(account, projects, strict=True)], dtype=object
            ),
            "qos": Coded([each.qos for each in requests], text.codes),
        }
        good: Mask = (wanted["can_be_read"] > 0) & ((begin >= 0) == (kind != "Q")) & ((over >= 0) == (kind == "E"))
        if kind == "E":
            spent = Coded.of(np.array(used, dtype=object))
            seconds = np.array([_used(each) for each in spent.texts], dtype=np.int64)[spent.codes]
            good &= (seconds != -2) & (begin <= over) & (over - begin <= LIMITS["runtime"])
            numbers |= {"end": over, "exit": _numbers(status), "used": seconds, "walltime": wanted["walltime"]}
            texts |= {
                "job_id": np.array(names, dtype=object),
                "user": Coded.of(np.array(user, dtype=object)),
                "group": Coded.of(np.array(group, dtype=object)),
                "queue": Coded.of(np.array(queue, dtype=object)).read(lambda name: name.removesuffix(POOL_SUFFIX)),
                "needs": Coded([each.needs for each in requests], text.codes),
            }
        else:
            numbers["is_start"] = np.full(len(rows), kind == "S")
        for name in {*LIMITS} & {*numbers}:
            good &= numbers[name] <= LIMITS[name]
        (self.ends if kind == "E" else self.others).add(
            {name: each[good] for name, each in {**numbers, **texts}.items()}
        )
        return good

    def _note(self, line: str) -> None:
        """Note the record of a line that is not plain, or several: their jobs are not plain either."""
        for match in record.RECORD.finditer(line):
            if match[2] not in record.OF_JOBS:
                continue
            if found := _JOB.fullmatch(match[3]):
                self.strange.add(
                    (self.servers.setdefault(found[4], len(self.servers)), int(found[3] or UNKNOWN), int(found[2]))
                )
            if " depend=" in line or "%" in line:
                self.limited.add(match[3])

    def settle(self) -> tuple[pd.DataFrame, int]:
        """Return the table of plain jobs in submission order, and the number of their records."""
        ends, others = self.ends.table(), self.others.table()
        strange = pd.DataFrame([*self.strange], columns=[*KEY], dtype=np.int64)
        _, job = kinds(*(np.concatenate([each[name] for each in (ends, others, strange)]) for name in KEY))
        of_end, of_other, of_strange = np.split(job, np.cumsum([len(ends), len(others)]))
        good = np.bincount(of_end, minlength=job.max(initial=0) + 1) == 1
        good[of_strange] = False
        others, of_other = others[good[of_other]], of_other[good[of_other]]
        first = np.cumsum([0, *self.lines])
        at_end, at_other = (first[each["file"]] + each["line"].to_numpy() - 1 for each in (ends, others))
        row = np.zeros(good.size, dtype=np.int64)
        row[of_end] = np.arange(len(ends))
        end = row[of_other]  # row of each other record's job in `ends`
        begins = others["is_start"].to_numpy()
        good[np.bincount(of_other[begins], minlength=good.size) > 1] = False
        begin = np.full(good.size, first[-1])
        begin[of_other[begins]] = at_other[begins]
        submit, start = (others[name].to_numpy() == ends[name].to_numpy()[end] for name in ("submit", "start"))
        fits = submit & (at_other < at_end[end]) & np.where(begins, start, at_other < begin[of_other])
        for name in ("account", "qos"):  # an E record without a value would take that of an earlier one
            fits &= ((others[name] == "") | (ends[name] != "").to_numpy()[end]).to_numpy()
        good[of_other[~fits]] = False
        if self.limited:
            member = np.flatnonzero(ends["index"] >= 0)
            arrays = ends["job_id"].iloc[member].str.replace(record.SUBJOB, "[]", regex=True)
            good[of_end[member[arrays.isin(self.limited).to_numpy()]]] = False
        cores, assigned = (each["cores"].to_numpy(np.int64, copy=True) for each in (ends, others))
        kept = good[of_other]
        np.maximum.at(cores, end[kept & begins], assigned[kept & begins])
        taken = np.zeros(first[-1], dtype=np.bool_)
        taken[np.concatenate((at_end[good[of_end]], at_other[kept]))] = True
        self.taken = np.split(taken, first[1:-1])
        jobs = ends.assign(cores=cores)[good[of_end]]
        order = np.lexsort((np.maximum(jobs["index"], 0), jobs["number"], jobs["submit"]))
        return _finished(jobs.iloc[order].reset_index(drop=True)), int(taken.sum())

    def rest(self, file: int, source: Source) -> Iterator[tuple[int, bytes]]:
        """Yield the lines of a file that belong to no plain job, each with its number."""
        first, taken = 0, self.taken[file]
        for block in source.blocks():
            count = block.count(b"\n") + (not block.endswith(b"\n"))
            left = np.flatnonzero(~taken[first : first + count])
            if left.size:
                lines = block.split(b"\n")
                for i in left.tolist():
                    yield first + i + 1, lines[i] + b"\n" * (i < len(lines) - 1)
            first += count


def _finished(jobs: pd.DataFrame) -> pd.DataFrame:
    """Add run times and states; `left_out` marks jobs whose suspended time was subtracted."""
    ran, used = (jobs["end"] - jobs["start"]).to_numpy(np.int64), jobs["used"].to_numpy()
    idle = np.where(used > 0, ran - used, 0)
    left_out = idle > record.SUSPENDED
    states = np.where(jobs["exit"] == 0, 0, np.where(jobs["exit"] == record.TIMEOUT, 1, 2))
    state = Coded(["completed", "timeout", "failed"], states).array()
    return jobs.assign(runtime=ran - np.where(left_out, idle, 0), state=state, left_out=left_out)
