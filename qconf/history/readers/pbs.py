"""Read accounting logs of PBS and Torque: the records of a job become one row, in any order of the files.

References
----------
OpenPBS Administrator's Guide, "Accounting"; Torque Administrator Guide, "Accounting Records". Times are the epoch
fields of a record. The local stamps of two records are used only for the run time of a deleted job without a record of
its end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pandas as pd

from qconf.config import POOL_SUFFIX
from qconf.history.chunks import UNREADABLE, of_select, wanted_chunks, written
from qconf.history.needs import waits_for, words
from qconf.history.readers import pbs_record as record
from qconf.history.readers.pbs_plain import Plain
from qconf.history.readers.sources import Source, records_of
from qconf.history.records import EARLIER, UNKNOWN, Drop, Records, Row, job_table, table_of
from qconf.history.times import zone
from qconf.history.torque import REQUEST, is_in_form, requested


@dataclass(slots=True)
class _Job(Row):
    """The records of one run of a job so far: its last run, or an earlier one."""

    ended: str = ""  #: type of the record that ended the run
    exit: int | None = None
    used: int = UNKNOWN  #: used walltime of the run
    queued: str = ""  #: local time of the first Q record
    stamp: str = ""  #: local time of the S record, to measure the time until a deletion
    licences: dict[str, int] = field(default_factory=dict)  #: of the last run
    chunks: str = ""  #: of the last run
    unreadable: bool = False  #: whether its chunks are unreadable
    timeout: int = record.TIMEOUT  #: the `exit` of a job killed at its walltime limit

    def add(self, kind: str, fields: dict[str, str], stamp: str, file: int, line: int) -> None:
        """Add an S, R or E record; raise ValueError, without any change, if it cannot be read."""
        start, end = record.whole(fields, "start"), record.whole(fields, "end")
        if start == UNKNOWN:  # it never ran: the E record of a deletion
            return
        wanted = record.duration(fields, "Resource_List.walltime"), record.cores_of(fields)
        status = fields.get("Exit_status") or ""
        code = int(status) if re.fullmatch(r"-?\d{1,9}", status) else None
        if kind != "S" and end == UNKNOWN:
            raise ValueError("no end")
        if start < self.start:
            return
        if start > self.start:
            self.end, self.ended, self.exit, self.used = UNKNOWN, "", None, UNKNOWN
            self.start, self.cores, self.stamp = start, UNKNOWN, ""
        if kind == "S":
            self.stamp = stamp
        elif self.ended != "E":
            self.end, self.ended, self.exit = end, kind, code
            self.used = record.duration(fields, "resources_used.walltime")
        if kind == "S" and self.ended:  # files out of order: the later record was read before
            self.cores = max(self.cores, wanted[1])
            return
        self._take(fields, wanted[0], max(self.cores, wanted[1]))
        self.file, self.line = file, line

    def queue_up(self, fields: dict[str, str], stamp: str) -> None:
        """Add a Q record: the job's request, unless a run has shown it; raise ValueError as `add` does."""
        wanted = record.duration(fields, "Resource_List.walltime"), record.cores_of(fields)
        self.queued = self.queued or stamp
        if self.start == UNKNOWN:
            self._take(fields, *wanted)

    def _take(self, fields: dict[str, str], walltime: int, cores: int) -> None:
        self.walltime, self.cores = walltime, cores
        self.user, self.group = fields.get("user") or self.user, fields.get("group") or self.group
        self.queue = (fields.get("queue") or self.queue).removesuffix(POOL_SUFFIX)
        self.account = fields.get("account") or record.project(fields.get("project", "")) or self.account
        self.qos = fields.get("Resource_List.qos") or self.qos

    def take_chunks(self, rest: str, nodes: _Nodes | None) -> None:
        """Add the job's chunks; `nodes` is the request in Torque's or Cray's form, None for a select."""
        if nodes is not None:
            self.chunks, readable = nodes.chunks, nodes.readable
            self.timeout = record.TIMEOUT if nodes.by_select else record.TIMEOUT_TORQUE
        else:
            select, place = record.SELECT.search(f" {rest}"), record.PLACE.search(f" {rest}")
            self.chunks, readable = written(of_select, select[1] if select else "", place[1] if place else "")
        self.unreadable |= not readable

    def stop(self, kind: str, stamps: Sequence[str]) -> None:
        """End a run without an end record at the first of the stamps: of requeues (R), or its deletion (D)."""
        ran = [seconds for stamp in stamps if (seconds := record.between(self.stamp, stamp)) >= 0]
        if not self.ended and ran:
            self.end, self.ended = self.start + min(ran), kind

    def waited(self, stamp: str) -> bool:
        """End the wait of a job that never ran at the stamp of its deletion; return whether that was possible."""
        seconds = record.between(self.queued, stamp)
        if self.start != UNKNOWN or seconds < 0 or "[]" in self.job_id:
            return False
        self.end, self.state = self.submit + seconds, "cancelled"
        return True

    def finish(self, *, suspended: bool) -> bool:
        """Compute the run time; return whether suspended time was subtracted."""
        self.runtime = self.end - self.start if self.ended else UNKNOWN
        idle = self.runtime - self.used if self.ended == "E" and self.used > 0 else 0
        left_out = idle > (0 if suspended else record.SUSPENDED)
        self.runtime -= idle if left_out else 0
        return left_out

    def outcome(self, *, deleted: bool) -> str:
        if self.ended == "D":
            return "cancelled"
        if self.ended != "E":
            return "running"
        if self.exit == 0:
            return "completed"
        if self.exit == self.timeout:
            return "timeout"
        return "cancelled" if deleted else "failed"

    @property
    def order(self) -> tuple[int, int, int]:
        """Sort key of submission: submit second, the server's sequence number, index in the array."""
        numbers = record.ORDER.match(self.job_id)
        first, index = numbers.groups() if numbers else (None, None)
        return self.submit, int(first or 0), int(index or 0)

    def problem(self, gone: str) -> tuple[str, str] | None:
        """Return the reason and detail why this is no row of a history, else None."""
        if "[]" in self.job_id:
            return "array parent", "its subjobs have rows of their own"
        if self.start == UNKNOWN:
            return record.GONE.get(gone, "waiting at the end of the log"), ""
        if self.ended == "R":
            return ("deleted after a requeue" if gone else "waiting at the end of the log"), "requeued"
        return self.impossible()


@dataclass(frozen=True, slots=True)
class _Nodes:
    """A job's node request in Torque's or Cray's form."""

    cores: int
    chunks: str
    readable: bool
    by_select: bool  #: whether PBS added a select to the request

    @classmethod
    def of(cls, rest: str) -> _Nodes | None:
        """Read a record; None if its request is of PBS."""
        by_select = " Resource_List.select=" in rest
        if by_select and " Resource_List.mppwidth=" not in rest:
            return None
        host, tasks = record.HOST.search(rest), record.TASKS.search(rest)
        resources = dict(record.NODES.findall(rest)) | ({REQUEST: tasks[1]} if tasks else {})
        if not is_in_form(resources):
            return None
        cores, request, readable = requested(resources, host[1] if host else "")
        return cls(cores, wanted_chunks(request), readable, by_select)


class _Log:
    """All jobs and records read so far."""

    def __init__(self) -> None:
        self.jobs: dict[tuple[str, int], _Job] = {}
        #: by job: type, stamp, file and line of the record that it was deleted, aborted or moved
        self.gone: dict[str, tuple[str, str, int, int]] = {}
        self.suspended: set[str] = set()
        self.earlier: dict[tuple[str, int], dict[int, _Job]] = {}  #: earlier runs of each job, by start
        self.depend: dict[str, str] = {}  #: dependency list by job or array, from Q records
        self.arrays: dict[str, int] = {}  #: limit of running members by array
        #: Torque's Q and R records without data: stamp, file and line by job, and the stamps of requeues
        self.queued: dict[str, tuple[str, int, int]] = {}
        self.requeued: dict[str, list[str]] = {}
        self.drops: list[Drop] = []
        self.merged: Counter[str] = Counter()

    def add(self, text: str, path: str, file: int, line: int) -> None:
        """Add a line: to a job, to the lines about no run, or to the drops.

        A record that was cut off, as on a full disk, has the next one on its line.
        """
        starts = [match.start() for match in record.RECORD.finditer(text)]
        for begin, end in pairwise(sorted({0, *starts, len(text)})):
            torn = "torn line" if end < len(text) else "" if text.endswith("\n") else "torn last line"
            if text[begin:end].strip():
                self._add_record(text[begin:end], torn, path, file, line)

    def _add_record(self, text: str, torn: str, path: str, file: int, line: int) -> None:
        match = record.RECORD.match(text)
        if match is None:
            self.drops.append(Drop("", path, line, torn or "not an accounting record", text.strip()[:60]))
            return
        stamp, kind, name = match.groups()
        rest = text[match.end() :].rstrip()
        if kind in record.GONE:
            if name in self.gone:
                self.merged["further records of a job"] += 1
            else:
                self.gone[name] = (kind, stamp, file, line)
        elif kind not in record.RUNS:
            self.suspended.update({name} if kind == "z" else ())
            self.merged["records about something else than a job's run"] += 1
        else:
            if torn:  # the last value may be cut
                rest = rest[: rest.rfind(" ") + 1]
            try:
                self._add_run(kind, name, rest, stamp, file, line)
            except ValueError as error:
                self.drops.append(Drop(name, path, line, torn or "not an accounting record", str(error)))

    def _add_run(self, kind: str, name: str, rest: str, stamp: str, file: int, line: int) -> None:
        fields = record.fields_of(kind, rest)
        ctime = record.whole(fields, "ctime")
        if ctime == UNKNOWN and name and kind in ("Q", "R"):
            self.merged["further records of a job"] += name in self.queued
            self.queued.setdefault(name, (stamp, file, line))
            self.requeued.setdefault(name, []).extend([stamp] if kind == "R" else [])
            return
        nodes = _Nodes.of(f" {rest}")
        if nodes is not None and nodes.cores:
            fields["Resource_List.ncpus"] = str(nodes.cores)
        if ctime == UNKNOWN or not name:
            raise ValueError("no ctime" if name else "no job")
        key = name, ctime
        job = self.jobs.get(key) or _Job(name, ctime, file=file, line=line)
        if kind != "Q":
            start = record.whole(fields, "start")
            if UNKNOWN not in (start, job.start) and start > job.start and not job.ended:
                self._runs(key).setdefault(job.start, replace(job))
            if start != UNKNOWN and (kind == "R" or start < job.start):
                run = self._runs(key).setdefault(start, _Job(name, ctime))
                run.add(kind, fields, stamp, file, line)
                run.take_chunks(rest, nodes)
            job.add(kind, fields, stamp, file, line)
        else:
            job.queue_up(fields, stamp)
            if depend := fields.get("depend"):
                self.depend[name] = depend
            if (most := fields.get("array_indices", "").partition("%")[2]).isdigit():
                self.arrays[name] = int(most)
        if (kind != "Q" and record.whole(fields, "start") in (UNKNOWN, job.start)) or job.start == UNKNOWN:
            job.licences = {name: int(count) for name, count in record.OWN.findall(f" {rest}")}
            job.take_chunks(rest, nodes)
        if key in self.jobs:
            self.merged["further records of a job"] += 1
        self.jobs[key] = job

    def _runs(self, key: tuple[str, int]) -> dict[int, _Job]:
        return self.earlier.setdefault(key, {})

    def runs_before(self, key: tuple[str, int], job: _Job) -> list[_Job]:
        """Return the earlier runs of a job as jobs of their own; each is submitted at the end of the run before."""
        found: list[_Job] = []
        submit = job.submit
        for start, run in sorted(self.earlier.get(key, {}).items()):
            run.stop("R", self.requeued.get(job.job_id, ()))
            if run.ended and run.end > start and (start < job.start or job.ended == "R"):
                run.job_id, run.state = f"{job.job_id}#{len(found) + 1}", "requeued"
                run.submit, run.runtime = submit, run.end - start
                run.needs = words(licences=run.licences, chunks=run.chunks)
                submit = run.end
                found.append(run)
        if job.ended != "R":
            job.submit = submit
        return found


def read_pbs(sources: Sequence[Source], timezone: str = "UTC") -> Records:
    """Read PBS accounting logs, in any order; `timezone` is the zone of calendar months.

    A job still running at the end of the log has the state ``running``, and unknown end and runtime. Raises
    `InputError` if no record is about a job, or the zone is unknown.
    """
    zone(timezone)
    plain, log = Plain(), _Log()
    for number, source in enumerate(sources):
        plain.read(number, source)
    jobs, records = plain.settle()
    for number, source in enumerate(sources):
        for line, raw in plain.rest(number, source):
            text = raw.decode("utf-8", "replace")
            if text.strip():
                log.add(text, str(source.path), number, line)
    if not log.jobs and jobs.empty:
        fix = "give the server's accounting logs, server_priv/accounting/YYYYMMDD"
        raise sources[0].error("no record of a job's run (types S and E)", fix)
    if records > len(jobs):
        log.merged["further records of a job"] += records - len(jobs)
    left_out = int(jobs["left_out"].sum())
    changed: Counter[str] = Counter({record.LEFT_OUT: left_out} if left_out else {})
    rows, gone = _rows(log, [str(source.path) for source in sources], changed)
    more = {"timezone": timezone, "merged": log.merged, "changed": changed}
    return records_of("pbs", sources, _in_order(jobs, rows), log.drops, gone=table_of(gone), **more)


def _in_order(jobs: pd.DataFrame, rows: Sequence[_Job]) -> pd.DataFrame:
    """Merge the plain jobs, which are sorted, and the other jobs into one table in submission order."""
    table = job_table(jobs, len(jobs))
    if not rows:
        return table
    order = np.array([job.order for job in rows], dtype=np.int64)
    order = np.concatenate([jobs[["submit", "number", "index"]].to_numpy(np.int64).clip(0), order])
    table = pd.concat([table, table_of(rows)], ignore_index=True)
    return table.iloc[np.lexsort(order.T[::-1])].reset_index(drop=True)


def _rows(log: _Log, paths: Sequence[str], changed: Counter[str]) -> tuple[list[_Job], list[_Job]]:
    """Return the jobs that are rows of a history, and of the dropped jobs those that were deleted while waiting.

    Adds the other jobs to ``log.drops``.
    """
    rows, waited = list[_Job](), list[_Job]()
    for key, job in log.jobs.items():
        gone, stamp = log.gone.get(job.job_id, ("", ""))[:2]
        if gone in ("D", "A"):  # its node was down
            job.stop("D", [stamp])
        job.stop("R", log.requeued.get(job.job_id, ()))
        runs = log.runs_before(key, job)
        changed.update([EARLIER] * len(runs))
        log.merged["further records of a job"] -= len(runs)
        rows += runs
        changed.update([record.LEFT_OUT] if job.finish(suspended=job.job_id in log.suspended) else ())
        changed.update([UNREADABLE] if job.unreadable else ())
        problem = job.problem(gone)
        array = record.SUBJOB.sub("[]", job.job_id)
        after = waits_for(log.depend.get(job.job_id, log.depend.get(array, "")))
        job.needs = words(after, job.licences, array, log.arrays.get(array, 0), job.chunks)
        if problem is None:
            job.state = job.outcome(deleted=bool(gone))
            rows.append(job)
        else:
            log.drops.append(Drop(job.job_id, paths[job.file], job.line, *problem))
            waited += [job] if job.waited(stamp) else []
    known = {name for name, _ in log.jobs}
    alone = {
        name: ("waiting at the end of the log", file, line)
        for name, (_, file, line) in log.queued.items()
        if name not in log.gone
    }
    alone |= {name: (record.GONE[kind], file, line) for name, (kind, _, file, line) in log.gone.items()}
    drops = [
        Drop(name, paths[file], line, "array parent" if "[]" in name else reason, "no other record")
        for name, (reason, file, line) in alone.items()
        if name not in known
    ]
    if further := len(log.queued) + len(log.gone) - len(drops):
        log.merged["further records of a job"] += further
    log.drops += drops
    return rows, waited
