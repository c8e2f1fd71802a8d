"""Output of Slurm's ``sacct --parsable2``: a row per run of a job and per step; names decide the columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import lru_cache

from qconf.errors import InputError
from qconf.history.records import COLUMNS, LIMITS, UNKNOWN, Drop, Records, SourceInfo, drop_table, job_table
from qconf.history.sources import Source
from qconf.history.times import slurm_limit, zone

COMMAND = (
    "sacct -a -D --parsable2 -o "
    "JobIDRaw,JobID,User,Partition,State,Submit,Start,End,TimelimitRaw,Timelimit,AllocCPUS,ReqCPUS,NNodes"
)
#: Any one of each group is needed.
NEEDED = (
    ("JobIDRaw", "JobID"),
    ("Submit",),
    ("Start",),
    ("End",),
    ("TimelimitRaw", "Timelimit"),
    ("AllocCPUS", "ReqCPUS", "NCPUS"),
)
WANTED = (
    *("jobidraw", "jobid", "user", "partition", "state", "submit", "start", "end", "elapsedraw"),
    *("timelimitraw", "timelimit", "alloccpus", "ncpus", "reqcpus"),
)
NO_TIME = {"", "unknown", "none", "n/a"}
NO_LIMIT = {"", "unlimited", "partition_limit", "infinite", "none", "unknown", "n/a"}
STEP = re.compile(r"[^.\s]+\.\S+")
WAITING = {"pending", "requeued", "requeue_hold", "requeue_fed", "resv_del_hold", "special_exit"}
ALIVE = {"running", "suspended", "completing", "configuring", "resizing", "signaling", "stage_out", "stopped"}


@dataclass(slots=True)
class _Run:
    """A row of sacct: one run of a job."""

    key: str
    job_id: str
    submit: int
    queued: int  #: submit, or when it was put back into the queue
    start: int
    end: int
    runtime: int
    walltime: int
    cores: int
    queue: str
    user: str
    state: str
    file: int
    line: int

    def problem(self) -> tuple[str, str] | None:
        """Tell why this last run of a job is no row of a history: reason and detail."""
        if self.start == UNKNOWN:
            if self.state in WAITING or self.state in ALIVE:
                return "waiting at the end of the log", self.state
            return "deleted before start", self.state
        if self.state in WAITING:
            return "waiting at the end of the log", self.state
        if self.end != UNKNOWN and self.end < self.start:
            return "ends before it starts", f"start {self.start}, end {self.end}"
        for name in LIMITS:
            if getattr(self, name) > LIMITS[name]:
                return "absurd value", f"{name} {getattr(self, name)} above {LIMITS[name]}"
        return None


def read_sacct(sources: Sequence[Source], timezone: str = "UTC", **_: object) -> Records:
    """Read sacct output; times in it are local to `timezone`, or epoch seconds.

    Of a job that was requeued, the earliest submit and the last run count.

    Raises
    ------
    InputError
        The header lacks a column that is needed.
    """
    runs: dict[str, _Run] = {}
    drops: list[Drop] = []
    merged: Counter[str] = Counter()
    clock = _Clock(zone(timezone))
    for number, source in enumerate(sources):
        columns: _Columns | None = None
        path = str(source.path)
        for line, raw in enumerate(source.lines(), start=1):
            text = raw.decode("utf-8-sig" if line == 1 else "utf-8", "replace")
            if not text.strip():
                continue
            if columns is None:
                columns = _Columns(text, source, line)
                continue
            try:
                run = _read_row(columns.cells(text), columns, clock)
            except ValueError as error:
                reason = "not a sacct row" if text.endswith("\n") else "torn last line"
                drops.append(Drop(text.split("|", 1)[0].strip()[:40], path, line, reason, str(error)))
                continue
            if run is None:
                merged["job steps"] += 1
                continue
            run.file, run.line = number, line
            other = runs.get(run.key)
            if other is not None:
                merged["further runs of a job, or the same row again"] += 1
                run = _fold(other, run)
            runs[run.key] = run
    last = list(runs.values())
    problems = [run.problem() for run in last]
    paths = [str(source.path) for source in sources]
    for run, problem in zip(last, problems, strict=True):
        if problem is not None:
            drops.append(Drop(run.job_id, paths[run.file], run.line, *problem))
    rows = [run for run, problem in zip(last, problems, strict=True) if problem is None]
    return Records(
        table=job_table({name: [getattr(run, name) for run in rows] for name in COLUMNS}, len(rows)),
        dropped=drop_table(drops),
        read=len(rows) + len(drops),
        timezone=timezone,
        sources=tuple(SourceInfo(str(source.path), source.sha256) for source in sources),
        format="sacct",
        merged=dict(merged),
    )


class _Columns:
    """Where the header says that each value stands; -1 where it has no such column."""

    def __init__(self, header: str, source: Source, line: int) -> None:
        names = [name.strip() for name in header.strip().removeprefix("\ufeff").split("|")]
        lower = [name.lower() for name in names]
        missing = [" or ".join(group) for group in NEEDED if not any(name.lower() in lower for name in group)]
        if missing:
            steps = "this is a listing of job steps, " if _lists_steps(source, lower) else ""
            raise InputError(
                f"{steps}no column {', '.join(missing)} among {', '.join(filter(None, names)) or 'nothing'}",
                file=source.path,
                line=line,
                fix=f"make it with {COMMAND}",
            )
        for name in lower:
            if name and lower.count(name) > 1:
                raise InputError(
                    "two columns of this name",
                    file=source.path,
                    line=line,
                    field="column",
                    value=name,
                    fix="keep one",
                )
        self.width = len(names)
        self.job_name = lower.index("jobname") if "jobname" in lower else -1
        self.at = {name: lower.index(name) if name in lower else -1 for name in WANTED}

    def cells(self, text: str) -> list[str]:
        """Split a row; an empty cell follows the last one, which -1 stands for."""
        cells = text.strip("\r\n").split("|")
        extra = len(cells) - self.width
        if extra == 1 and not cells[-1].strip():  # the bar that --parsable writes at the end
            cells.pop()
        elif extra > 0 and self.job_name >= 0:  # nothing else in sacct's output is free text
            at = self.job_name
            cells[at : at + extra + 1] = ["|".join(cells[at : at + extra + 1])]
        elif extra:
            raise ValueError(f"{len(cells)} cells where the header has {self.width}")
        cells.append("")
        return cells


def _lists_steps(source: Source, names: Sequence[str]) -> bool:
    """Tell whether there is a row like that of 1.batch."""
    rows = (line.split("|") for line in source.read(1 << 16).decode("utf-8", "replace").splitlines())
    ids = [at for at, name in enumerate(names) if name in ("jobid", "jobidraw")]
    return any(STEP.fullmatch(row[at].strip()) for row in rows for at in ids if at < len(row))


def _read_row(cells: list[str], columns: _Columns, clock: _Clock) -> _Run | None:
    """Read a row; None if it is a step. ValueError if it is no row of such a table."""
    at = columns.at
    raw, shown = cells[at["jobidraw"]].strip(), cells[at["jobid"]].strip()
    key, job_id = raw or shown, shown or raw
    if not key:
        raise ValueError("no job")
    if STEP.fullmatch(key) or STEP.fullmatch(job_id):
        return None
    submit = clock.read(cells[at["submit"]].strip())
    if submit == UNKNOWN:
        raise ValueError("no submit")
    start, end = clock.run(
        cells[at["start"]].strip(), cells[at["end"]].strip(), cells[at["elapsedraw"]].strip(), submit
    )
    state = cells[at["state"]].strip().split(" ")[0].rstrip("+").lower()
    if state in ALIVE:
        end = UNKNOWN
    limit = cells[at["timelimitraw"]].strip()
    if not limit or limit.lower() == "partition_limit":
        limit = cells[at["timelimit"]].strip()
    cores = _cores(cells[at["alloccpus"]].strip()) or _cores(cells[at["ncpus"]].strip())
    return _Run(
        key=f"{key}|{cells[at['user']].strip()}",  # ids begin anew one day, and belong to others then
        job_id=job_id,
        submit=submit,
        queued=submit,
        start=start,
        end=end,
        runtime=end - start if UNKNOWN not in (start, end) else UNKNOWN,
        walltime=_limit(limit) or UNKNOWN,
        cores=cores or _cores(cells[at["reqcpus"]].strip()) or UNKNOWN,
        queue=cells[at["partition"]].strip().split(",")[0],
        user=cells[at["user"]].strip(),
        state="running" if state in ALIVE else state,
        file=0,
        line=0,
    )


def _fold(one: _Run, other: _Run) -> _Run:
    """Make one of two runs of a job: earliest submit, last run."""
    last = max(one, other, key=lambda run: (run.queued, run.start, run.end))
    last.submit = min(one.submit, other.submit)
    return last


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
