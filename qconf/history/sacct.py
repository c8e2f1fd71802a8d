"""Output of Slurm's ``sacct --parsable2``: a row per run of a job and per step; names decide the columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache, partial

from qconf.errors import InputError
from qconf.history.records import LIMITS, UNKNOWN, Drop, Records, SourceInfo, drop_table, job_table
from qconf.history.sources import Source
from qconf.history.times import zone

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
NO_TIME = {"", "unknown", "none", "n/a"}
NO_LIMIT = {"", "unlimited", "partition_limit", "infinite", "none", "unknown", "n/a"}
LIMIT = re.compile(r"(?:(\d{1,6})-)?(\d{1,10})(?::(\d{1,2}))?(?::(\d{1,2}))?")
STEP = re.compile(r"[^.\s]+\.\S+")
WAITING = {"pending", "requeued", "requeue_hold", "requeue_fed", "resv_del_hold", "special_exit"}
Moment = Callable[[str, bool], int]  #: text, and whether it is the second time of an hour that came twice
ALIVE = {"running", "suspended", "completing", "configuring", "resizing", "signaling", "stage_out", "stopped"}


@dataclass
class _Run:
    """A row of sacct: one run of a job."""

    key: str
    job_id: str
    submit: int
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
    runs: dict[str, list[_Run]] = {}
    drops: list[Drop] = []
    merged: Counter[str] = Counter()
    where = zone(timezone)
    moment = cache(partial(_moment, where=where))
    for number, source in enumerate(sources):
        columns: dict[str, int] | None = None
        path = str(source.path)
        for line, raw in enumerate(source.lines(), start=1):
            text = raw.decode("utf-8-sig" if line == 1 else "utf-8", "replace")
            if not text.strip():
                continue
            if columns is None:
                columns = _columns(text, source, line)
                continue
            cells = text.rstrip("\r\n").split("|")
            try:
                run = _read_row(cells, columns, moment)
            except ValueError as error:
                reason = "not a sacct row" if text.endswith("\n") else "torn last line"
                drops.append(Drop(cells[0][:40], path, line, reason, str(error)))
                continue
            if run is None:
                merged["job steps"] += 1
                continue
            run.file, run.line = number, line
            others = runs.setdefault(run.key, [])
            merged["further runs of a job, or the same row again"] += bool(others)
            others.append(run)
    last = [_fold(same) for same in runs.values()]
    problems = [run.problem() for run in last]
    paths = [str(source.path) for source in sources]
    for run, problem in zip(last, problems, strict=True):
        if problem is not None:
            drops.append(Drop(run.job_id, paths[run.file], run.line, *problem))
    rows = [run for run, problem in zip(last, problems, strict=True) if problem is None]
    names = (
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
    return Records(
        table=job_table({name: [getattr(run, name) for run in rows] for name in names}, len(rows)),
        dropped=drop_table(drops),
        read=len(rows) + len(drops),
        timezone=timezone,
        sources=tuple(SourceInfo(str(source.path), source.sha256) for source in sources),
        format="sacct",
        merged={what: count for what, count in merged.items() if count},
    )


def _columns(header: str, source: Source, line: int) -> dict[str, int]:
    names = [name.strip() for name in header.strip().removeprefix("\ufeff").split("|")]
    lower = [name.lower() for name in names]
    missing = [" or ".join(group) for group in NEEDED if not any(name.lower() in lower for name in group)]
    if missing:
        raise InputError(
            f"no column {', '.join(missing)} among {', '.join(filter(None, names)) or 'nothing'}",
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
    return {name: i for i, name in enumerate(lower) if name} | {"": len(names)}


def _read_row(cells: list[str], columns: dict[str, int], moment: Moment) -> _Run | None:
    """Read a row; None if it is a step. ValueError if it is no row of such a table."""
    width = columns[""]
    if len(cells) != width and not (len(cells) == width + 1 and not cells[-1].strip()):
        cells = _mend(cells, columns, width)

    def cell(*names: str) -> str:
        """First column of these that is there and says something."""
        found = (cells[columns[name]].strip() for name in names if name in columns)
        return next(filter(None, found), "")

    key, job_id = cell("jobidraw", "jobid"), cell("jobid", "jobidraw")
    if not key:
        raise ValueError("no job")
    if STEP.fullmatch(key) or STEP.fullmatch(job_id):
        return None
    submit = moment(cell("submit"), False)
    start, end = _unfold(cell("start"), cell("end"), cell("elapsedraw"), moment)
    if submit == UNKNOWN:
        raise ValueError("no submit")
    state = cell("state").split(" ")[0].rstrip("+").lower()
    if state in ALIVE:
        end = UNKNOWN
    raw = cell("timelimitraw")
    limit = _limit(raw) if raw and raw.lower() != "partition_limit" else _limit(cell("timelimit"))
    cores = _cores(cell("alloccpus")) or _cores(cell("ncpus")) or _cores(cell("reqcpus"))
    return _Run(
        key=key,
        job_id=job_id,
        submit=submit,
        start=start,
        end=end,
        runtime=end - start if UNKNOWN not in (start, end) else UNKNOWN,
        walltime=limit or UNKNOWN,
        cores=cores or UNKNOWN,
        queue=cell("partition").split(",")[0],
        user=cell("user"),
        state="running" if state in ALIVE else state,
        file=0,
        line=0,
    )


def _mend(cells: list[str], columns: dict[str, int], width: int) -> list[str]:
    """Put a job name with bars in it together again; nothing else in sacct's output holds free text."""
    extra = len(cells) - width
    if extra <= 0 or "jobname" not in columns:
        raise ValueError(f"{len(cells)} cells where the header has {width}")
    at = columns["jobname"]
    return [*cells[:at], "|".join(cells[at : at + extra + 1]), *cells[at + extra + 1 :]]


def _fold(same: Sequence[_Run]) -> _Run:
    """Make one of the runs of a job: earliest submit, last run."""
    last = max(same, key=lambda run: (run.submit, run.start, run.end))
    last.submit = min(run.submit for run in same)
    return last


def _moment(text: str, second: bool, where: tzinfo) -> int:
    """Read a time; `second` takes the later one where clocks go back."""
    if text.lower() in NO_TIME:
        return UNKNOWN
    if re.fullmatch(r"\d{1,15}", text):
        return int(text) or UNKNOWN
    if not re.match(r"\d{4}-\d{2}-\d{2}T", text):
        raise ValueError(f"{text[:40]!r} is no time")
    try:
        found = datetime.fromisoformat(text)
        found = found if found.tzinfo else found.replace(tzinfo=where, fold=int(second))
        return (found - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text[:40]!r} is no time") from error


def _unfold(start_text: str, end_text: str, elapsed: str, moment: Moment) -> tuple[int, int]:
    """Read start and end; of an hour that came twice, take the reading that agrees with the elapsed time."""
    starts, ends = ({moment(text, False), moment(text, True)} for text in (start_text, end_text))
    pairs = sorted((start, end) for start in starts for end in ends)
    if len(pairs) == 1 or UNKNOWN in starts | ends:
        return pairs[0]
    if re.fullmatch(r"\d{1,12}", elapsed):
        return min(pairs, key=lambda pair: abs(pair[1] - pair[0] - int(elapsed)))
    return next((pair for pair in pairs if pair[0] <= pair[1]), pairs[0])


def _limit(text: str) -> int:
    """Seconds of a limit as Slurm writes it: minutes, MM:SS, HH:MM:SS, D-HH[:MM[:SS]]; 0 if there is none."""
    if text.lower() in NO_LIMIT:
        return 0
    match = LIMIT.fullmatch(text)
    if match is None:
        raise ValueError(f"time limit {text[:40]!r}")
    days, first, second, third = match.groups()
    if days is not None:
        return ((int(days) * 24 + int(first)) * 60 + int(second or 0)) * 60 + int(third or 0)
    if third is not None:
        return (int(first) * 60 + int(second)) * 60 + int(third)
    return int(first) * 60 + int(second or 0)


def _cores(text: str) -> int:
    """Cores, written like 1200 or 1.2K; 0 if there are none."""
    match = re.fullmatch(r"(\d{1,12})(\.\d{1,3})?([KM]?)", text)
    if match is None:
        if text:
            raise ValueError(f"{text[:40]!r} cores")
        return 0
    scale = {"": 1, "K": 1000, "M": 10**6}[match.group(3)]
    return int(match.group(1)) * scale + int((match.group(2) or ".0")[1:].ljust(6, "0")[:6]) * scale // 10**6
