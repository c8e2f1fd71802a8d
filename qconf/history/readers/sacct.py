"""Output of Slurm's ``sacct --parsable2``: a row per run of a job and per step; names decide the columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import lru_cache

from qconf.history.chunks import UNREADABLE, of_tres, written
from qconf.history.needs import words
from qconf.history.readers.sources import Source, records_of
from qconf.history.records import UNKNOWN, Drop, Records, Row, table_of
from qconf.history.times import slurm_limit, zone

COMMAND = (
    "SLURM_TIME_FORMAT=%s sacct -a -D -S now-31days --parsable2 -o "
    "JobIDRaw,JobID,User,Account,Partition,State,Submit,Eligible,Start,End,ElapsedRaw,Suspended,"
    "TimelimitRaw,Timelimit,AllocCPUS,ReqCPUS,NNodes,AllocTRES,Constraints,Reservation,QOS,AdminComment"
)
#: Any one of each group is needed.
NEEDED = (
    *(("JobIDRaw", "JobID"), ("Submit",), ("Start",), ("End",)),
    *(("TimelimitRaw", "Timelimit"), ("AllocCPUS", "ReqCPUS", "NCPUS")),
)
WANTED = (
    *("jobidraw", "jobid", "user", "account", "partition", "state", "submit", "eligible", "start", "end"),
    *("elapsedraw", "suspended", "timelimitraw", "timelimit", "alloccpus", "ncpus", "reqcpus"),
    *("alloctres", "constraints", "reservation", "admincomment", "cluster", "qos"),
)
FREE_TEXT = ("jobname", "admincomment")  #: columns that may hold the bar between columns
NO_TIME = {"", "unknown", "none", "n/a"}
NO_LIMIT = {"", "unlimited", "partition_limit", "infinite", "none", "unknown", "n/a"}
STEP = re.compile(r"[^.\s]+\.\S+")
PROMOTED = re.compile(r"qconf-promote:(\S+)")  #: the AdminComment of a job that came into the pool from that queue
PART = re.compile(r"([0-9]+)\+[0-9]+")  #: the JobID of a part of a heterogeneous job
LICENCES = re.compile(r"(?:^|,)license/([^=,]+)=([0-9]{1,9})(?=,|$)")
ELIGIBLE = "submit: the time from which on the job was eligible to run"
SUSPENDED = "run time: the time in which the job was suspended left out"
RESIZED = "resized while running: of the cores it began with all the time"
RESERVED = "ran in a reservation: simulated as if there were none"
DELETED = "deleted before start"
NEVER = -2
RETURNED = "moved into the pool: back in its queue"
WAITING = {"pending", "requeued", "requeue_hold", "requeue_fed", "resv_del_hold", "special_exit"}
ALIVE = {"running", "suspended", "completing", "configuring", "resizing", "signaling", "stage_out", "stopped"}


@dataclass(slots=True)
class _Run(Row):
    """A row of sacct: one run of a job."""

    key: str = ""
    queued: int = UNKNOWN  #: submit, or when it was put back into the queue
    marks: frozenset[str] = frozenset()  #: what is not as in the log, or not simulated
    eligible: int = UNKNOWN  #: from when on nothing held it; `NEVER` where all the time something did
    resizing: bool = False  #: the run goes on in another row, with other cores

    def problem(self) -> tuple[str, str] | None:
        """Return why this last run of a job is no row of a history, reason and detail; None if it is one."""
        if self.state in WAITING or (self.start == UNKNOWN and self.state in ALIVE):
            return "waiting at the end of the log", self.state
        if self.start == UNKNOWN:
            return DELETED, self.state
        return self.impossible()

    def waited(self) -> _Run | None:
        """Return this last run of a job as one that waited until it was deleted; None if it was never eligible."""
        self.submit = max(self.queued, self.eligible)
        return self if self.eligible != NEVER and self.submit <= self.end else None


def read_sacct(sources: Sequence[Source], timezone: str = "UTC") -> Records:
    """Read sacct output; times in it are local to `timezone`, or epoch seconds.

    Of a job that was requeued, the earliest submit and the last run count; a submit is the time from which on the job
    was eligible to run. The parts of a heterogeneous job are one. Raises `InputError` where the header lacks a
    column that is needed.
    """
    runs: dict[str, _Run] = {}
    drops: list[Drop] = []
    merged: Counter[str] = Counter()
    clock = _Clock(zone(timezone))
    for number, source in enumerate(sources):
        columns: _Columns | None = None
        for line, raw in enumerate(source.lines(), start=1):
            text = raw.decode("utf-8-sig" if line == 1 else "utf-8", "replace")
            if not text.strip():
                continue
            if columns is None:
                columns = _Columns(text, source, line)
                continue
            try:
                run = _read_row(columns.values(text), clock)
            except ValueError as error:
                reason = "not a sacct row" if text.endswith("\n") else "torn last line"
                drops.append(Drop(text.split("|", 1)[0].strip()[:40], str(source.path), line, reason, str(error)))
                continue
            if run is None:
                merged["job steps"] += 1
                continue
            run.file, run.line = number, line
            other = runs.get(run.key)
            if other is not None:
                merged["further runs of a job, or the same row again"] += 1
                run = _one_run(other, run)
            runs[run.key] = run
    found = [(run, run.problem()) for run in runs.values()]
    drops += [Drop(run.job_id, str(sources[run.file].path), run.line, *why) for run, why in found if why]
    gone = [run.waited() for run, why in found if why and why[0] == DELETED]
    rows = _whole_jobs([run for run, why in found if not why], merged)
    changed = Counter(mark for row in rows for mark in sorted(row.marks))
    more = {"timezone": timezone, "merged": merged, "changed": changed}
    return records_of("sacct", sources, table_of(rows), drops, gone=table_of(list(filter(None, gone))), **more)


def _one_run(*rows: _Run) -> _Run:
    """Return the last run of a job, with the earliest submit and the cores that it began with."""
    *before, last = sorted(rows, key=lambda each: (each.queued, each.start, each.end))
    earliest = min(rows, key=lambda row: row.submit)
    last.submit = earliest.submit
    last.marks = frozenset().union(*(row.marks for row in rows)) - {ELIGIBLE} | (earliest.marks & {ELIGIBLE})
    for row in before:
        if row.resizing and row.start == last.start:
            last.cores, last.marks = row.cores, last.marks | {RESIZED}
    return last


def _whole_jobs(rows: list[_Run], merged: Counter[str]) -> list[_Run]:
    """Put the parts of each heterogeneous job together: they start at once, and one walltime holds for all."""
    jobs: dict[object, _Run] = {}
    for row in rows:
        part = PART.fullmatch(row.job_id)
        first = jobs.setdefault((part[1], row.user, row.start) if part else row.key, row)
        if first is row:
            continue
        merged["further parts of a heterogeneous job"] += 1
        first.cores += row.cores if UNKNOWN not in (first.cores, row.cores) else 0
        for name in ("end", "runtime", "walltime"):
            pair = getattr(first, name), getattr(row, name)
            setattr(first, name, UNKNOWN if UNKNOWN in pair else max(pair))
        first.submit, first.marks = min(first.submit, row.submit), first.marks | row.marks
    return list(jobs.values())


class _Columns:
    """The columns that a header names."""

    def __init__(self, header: str, source: Source, line: int) -> None:
        names = [name.strip() for name in header.strip().removeprefix("\ufeff").split("|")]
        self.names = [name.lower() for name in names]
        missing = [" or ".join(group) for group in NEEDED if not any(name.lower() in self.names for name in group)]
        if missing:
            steps = "this is a listing of job steps, " if _lists_steps(source, self.names) else ""
            message = f"{steps}no column {', '.join(missing)} among {', '.join(filter(None, names)) or 'nothing'}"
            raise source.error(message, f"make it with {COMMAND}", line=line)
        twice = next((name for name in self.names if name and self.names.count(name) > 1), None)
        if twice:
            raise source.error("two columns of this name", "keep one", line=line, field="column", value=twice)
        self.at = [self.names.index(name) if name in self.names else -1 for name in WANTED]

    def values(self, text: str) -> list[str]:
        """Split a row into the columns of `WANTED`; those that the header lacks are empty."""
        cells = text.strip("\r\n").split("|")
        extra = len(cells) - len(self.names)
        if extra == 1 and not cells[-1].strip():  # the bar that --parsable writes at the end
            cells.pop()
        elif extra > 0 and len(free := [name for name in FREE_TEXT if name in self.names]) == 1:
            at = self.names.index(free[0])
            cells[at : at + extra + 1] = ["|".join(cells[at : at + extra + 1])]
        elif extra:
            raise ValueError(f"{len(cells)} cells where the header has {len(self.names)}")
        cells.append("")
        return [cells[at].strip() for at in self.at]


def _lists_steps(source: Source, names: Sequence[str]) -> bool:
    """Whether there is a row like that of 1.batch."""
    rows = (line.split("|") for line in source.read(1 << 16).decode("utf-8", "replace").splitlines())
    ids = [at for at, name in enumerate(names) if name in ("jobid", "jobidraw")]
    return any(STEP.fullmatch(row[at].strip()) for row in rows for at in ids if at < len(row))


def _read_row(values: list[str], clock: _Clock) -> _Run | None:
    """Read a row; None if it is a step. ValueError if it is no row of such a table."""
    (raw, shown, user, account, partition, state, submit, eligible, start, end) = values[:10]
    elapsed, suspended, limit, other_limit, *cpus, tres, constraints, reservation, comment, cluster, qos = values[10:]
    key, job_id = raw or shown, shown or raw
    if not key:
        raise ValueError("no job")
    if STEP.fullmatch(key) or STEP.fullmatch(job_id):
        return None
    submitted = clock.read(submit)
    if submitted == UNKNOWN:
        raise ValueError("no submit")
    started, ended = clock.run(start, end, elapsed, submitted)
    state = state.split(" ")[0].rstrip("+").lower()
    resizing = state == "resizing"
    if state in ALIVE:
        state, ended = "running", UNKNOWN
    if not limit or limit.lower() == "partition_limit":
        limit = other_limit
    runtime = idle = UNKNOWN
    if UNKNOWN not in (started, ended):
        idle = _suspended(suspended, elapsed, ended - started)
        runtime = ended - started - idle
    free = clock.read(eligible)
    waits = min(free, started) if started != UNKNOWN else UNKNOWN
    promoted = PROMOTED.match(comment)
    chunks, readable = written(of_tres, tres, constraints)
    marks = {
        UNREADABLE: not readable,
        ELIGIBLE: waits > submitted,
        SUSPENDED: idle > 0,
        RESERVED: bool(reservation) and started != UNKNOWN,
        RETURNED: promoted is not None,
    }
    return _Run(
        key=f"{key}|{user}|{cluster}",  # ids begin anew one day, and belong to other users then
        job_id=job_id,
        submit=max(submitted, waits),
        queued=submitted,
        start=started,
        end=ended,
        runtime=runtime,
        walltime=_limit(limit) or UNKNOWN,
        cores=next(filter(None, map(_cores, cpus)), UNKNOWN),
        queue=promoted[1] if promoted else partition.split(",")[0],
        user=user,
        state=state,
        needs=words(licences={name: int(count) for name, count in LICENCES.findall(tres)}, chunks=chunks),
        group=account,
        qos=qos,
        marks=frozenset(mark for mark, holds in marks.items() if holds),
        eligible=NEVER if eligible and free == UNKNOWN else free,
        resizing=resizing,
    )


def _suspended(suspended: str, elapsed: str, span: int) -> int:
    """Seconds between start and end in which a job was suspended; else what its elapsed time lacks of them."""
    if suspended.lower() not in NO_TIME:
        return min(slurm_limit(suspended), span)
    return max(0, span - int(elapsed)) if re.fullmatch(r"[0-9]{1,12}", elapsed) else 0


class _Clock:
    """Reads local times; an hour that comes twice when clocks go back has two readings."""

    def __init__(self, where: tzinfo) -> None:
        self.where = where

    def read(self, text: str, *, second: bool = False) -> int:
        """Read a time; `second` takes the later reading of an hour that came twice."""
        if text.isdigit() and text.isascii() and len(text) <= 15:
            return int(text) or UNKNOWN
        if text.lower() in NO_TIME:
            return UNKNOWN
        try:
            if text[10:11] != "T":
                raise ValueError  # noqa: TRY301
            found = datetime.fromisoformat(text)
            found = found if found.tzinfo else found.replace(tzinfo=self.where, fold=int(second))
            return int(found.timestamp() // 1)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{text[:40]!r} is no time") from error

    def run(self, start: str, end: str, elapsed: str, submit: int) -> tuple[int, int]:
        """Read start and end; of several readings, the one that agrees with the elapsed time and the submit."""
        first = self.read(start), self.read(end)
        if self.where is UTC or UNKNOWN in first:
            return first
        again = self.read(start, second=True), self.read(end, second=True)
        if again == first:
            return first
        pairs = sorted((s, e) for s in {first[0], again[0]} for e in {first[1], again[1]})
        if re.fullmatch(r"[0-9]{1,12}", elapsed):
            return min(pairs, key=lambda pair: (abs(pair[1] - pair[0] - int(elapsed)), pair[0] < submit))
        return next((pair for pair in pairs if submit <= pair[0] <= pair[1]), pairs[0])


@lru_cache(maxsize=65536)
def _limit(text: str) -> int:
    """Seconds of a limit as Slurm writes it; 0 if there is none."""
    return 0 if text.lower() in NO_LIMIT else slurm_limit(text)


@lru_cache(maxsize=65536)
def _cores(text: str) -> int:
    """Cores, written like 1200 or 1.2K; 0 if there are none."""
    match = re.fullmatch(r"(\d{1,12})(\.\d{1,3})?([KM]?)", text)
    if match is None:
        if text:
            raise ValueError(f"{text[:40]!r} cores")
        return 0
    scale = {"": 1, "K": 1000, "M": 10**6}[match.group(3)]
    return int(match.group(1)) * scale + int((match.group(2) or ".0")[1:].ljust(6, "0")[:6]) * scale // 10**6
