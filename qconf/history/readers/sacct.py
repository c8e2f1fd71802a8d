"""Read the output of Slurm's ``sacct --parsable2``: a row per run of a job and per step."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from qconf.config.routing import Column, Mask, Texts
from qconf.history.chunks import UNREADABLE, of_tres, tres_of_gres, written
from qconf.history.dates import to_utc
from qconf.history.needs import words
from qconf.history.readers import sacct_runs
from qconf.history.readers.sacct_columns import CPUS, STATES, STEP, Columns
from qconf.history.readers.sources import Source, records_of
from qconf.history.records import COLUMNS, DROPPED, UNKNOWN, Coded, Gathered, Records, job_table, kinds
from qconf.history.times import NO_TIME, slurm_limit, zone

NO_LIMIT = {"", "unlimited", "partition_limit", "infinite", "invalid", "none", "unknown", "n/a"}
PROMOTED = re.compile(r"qconf-promote:(\S+)")  #: AdminComment of a job moved into the pool, with its own queue
CPU = re.compile(r"(?:^|,)cpu=([0-9]{1,9})(?=,|$)")
MEMORY = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)([KMGTP]?)([cn]?)")
LICENCES = re.compile(r"(?:^|,)license/([^=,]+)=([0-9]{1,9})(?=,|$)")
MOST_NAMED = 10  #: number of unreadable features that are listed by name
NEVER = -2


#: TRES that differ between all jobs and are not used.
OF_A_JOB = re.compile(r",?\b(?:billing|energy)=[^,]*")

Some = NDArray[Any] | Coded  #: a column


def read_sacct(sources: Sequence[Source], timezone: str = "UTC") -> Records:
    """Read sacct output; its times are local to `timezone`, or Unix seconds.

    Each run of a requeued job becomes a job; the last one keeps the id. A submit is the time at which the job became
    eligible. The parts of a heterogeneous job become one job. Raises `InputError` if the header lacks a required
    column.
    """
    merged: Counter[str] = Counter()
    features: Counter[str] = Counter()
    where = zone(timezone)
    gathered = Gathered(("key", "job_id"))
    gathered.add(_Runs.none())
    drops: list[pd.DataFrame] = []
    for number, source in enumerate(sources):
        columns = Columns.of(source)
        if columns is None:
            continue
        for rows in columns.table.rows():
            some = _Runs(*columns.cells(rows), where)
            merged["job steps"] += some.steps
            features.update(some.unread)
            drops.append(some.dropped(str(source.path), {odd.line for odd in rows.odd if odd.torn}))
            gathered.add(some.good(number))
            del rows, some  # before the next are read
    runs = sacct_runs.single_runs(gathered.table(), merged)
    reason, detail = sacct_runs.problems(runs)
    no_job, deleted = reason != "", reason == sacct_runs.DELETED
    files = np.array([str(source.path) for source in sources], dtype=object)[runs["file"].to_numpy()[no_job]]
    lost = runs.loc[no_job, ["job_id", "line"]].assign(file=files, reason=reason[no_job], detail=detail[no_job])
    drops.append(lost[[*DROPPED]])
    gone = runs[deleted]
    gone = gone.assign(submit=gone[["queued", "eligible"]].max(axis=1))
    gone = gone[(gone["eligible"] != NEVER) & (gone["submit"] <= gone["end"])].reset_index(drop=True)
    jobs = sacct_runs.whole_jobs(runs[~no_job] if no_job.any() else runs, merged).reset_index(drop=True)
    marks = jobs["marks"].to_numpy()
    jobs = jobs[[name for name in COLUMNS if name in jobs]]  # free the memory of the runs' own columns
    del runs, reason, detail
    counts = {mark: int(((marks & bit) > 0).sum()) for mark, bit in sacct_runs.BIT.items()}
    changed = Counter({mark: count for mark, count in counts.items() if count})
    for place, (text, count) in enumerate(features.most_common()):
        named = f"features {text}" if place < MOST_NAMED else "other features"
        changed[f"{named} cannot be read, or are of more nodes than the job had: left out"] += count
    more = {"timezone": timezone, "merged": +merged, "changed": changed, "gone": job_table(gone, len(gone))}
    return records_of("sacct", sources, job_table(jobs, len(jobs)), pd.concat(drops, ignore_index=True), **more)


class _Runs:
    """A block of sacct rows during reading: one run of a job each."""

    def __init__(self, cells: pd.DataFrame, lines: Column, faults: Texts, where: tzinfo) -> None:
        self.cells, self.lines, self.where = cells, lines, where
        self.fault = faults  #: why a row is invalid, "" if it is valid
        step = (_is_step(self._texts("jobidraw", "jobid")) | _is_step(self._texts("jobid"))) & (faults == "")
        self.steps = int(step.sum())
        if self.steps:
            self.cells, self.lines, self.fault = cells[~step].reset_index(drop=True), lines[~step], faults[~step]
        self.key, self.job_id = self._texts("jobidraw", "jobid"), self._texts("jobid", "jobidraw")
        self._refuse(self.key == "", "no job")
        self.key = np.where(self.key == self.job_id, self.job_id, self.key)  # one text where they are the same
        self.doubled: Mask = np.zeros(len(self.lines), dtype=np.bool_)  #: with a time in an hour that comes twice
        self.unread: Counter[str] = Counter()  #: unreadable features
        self.columns = self._read()

    @classmethod
    def none(cls) -> dict[str, Some]:
        return cls(pd.DataFrame(), np.array([], dtype=np.int64), np.array([], dtype=object), UTC).good(0)

    def good(self, file: int) -> dict[str, Some]:
        good = self.fault == ""
        columns = self.columns if good.all() else {name: each[good] for name, each in self.columns.items()}
        return {**columns, "file": np.full(int(good.sum()), file)}

    def dropped(self, path: str, torn: set[int]) -> pd.DataFrame:
        """Return the invalid rows as in `Records.dropped`; `torn` are the lines cut off."""
        bad = self.fault != ""
        lines = self.lines[bad]
        reason = np.where(np.isin(lines, list(torn)), "torn last line", "not a sacct row")
        names = [str(job)[:40] for job in self.job_id[bad]]
        table = {"job_id": names, "file": path, "line": lines, "reason": reason, "detail": self.fault[bad]}
        return pd.DataFrame(table, columns=list(DROPPED))

    def _read(self) -> dict[str, Some]:
        submitted, _ = self._times("submit")
        self._refuse(submitted == UNKNOWN, "no submit")
        started, ended = self._run(submitted)
        state = self._coded("state", _state)
        alive, resizing = state.like(sacct_runs.ALIVE.__contains__), state.like("resizing".__eq__)
        state = state.read(lambda text: "running" if text in sacct_runs.ALIVE else text)
        ended = np.where(alive, UNKNOWN, ended)
        span = np.where((started != UNKNOWN) & (ended != UNKNOWN), ended - started, UNKNOWN)
        suspended = self._each("suspended", lambda text: UNKNOWN if text.lower() in NO_TIME else slurm_limit(text))
        lacks = np.where(self.elapsed >= 0, np.maximum(0, span - self.elapsed), 0)
        idle = np.where(suspended >= 0, np.minimum(suspended, span), lacks)
        idle = np.where((started != UNKNOWN) & (ended != UNKNOWN), idle, 0)
        free, _ = self._times("eligible")
        waits = np.where(started != UNKNOWN, np.minimum(free, started), UNKNOWN)
        held = self._is_filled("eligible") & (free == UNKNOWN)
        back = self._coded("admincomment", lambda text: match[1] if (match := PROMOTED.match(text)) else "")
        queue, returned = self._coded("partition", lambda text: text.split(",")[0]), back.like(bool)
        needs, readable = self._needs()
        marks = {
            UNREADABLE: ~readable,
            sacct_runs.ELIGIBLE: waits > submitted,
            sacct_runs.SUSPENDED: idle > 0,
            sacct_runs.RESERVED: self._is_filled("reservation") & (started != UNKNOWN),
            sacct_runs.RETURNED: returned,
            sacct_runs.DOUBLED: self.doubled,
        }
        return {
            "key": self.key,  # ids restart one day, and then belong to other users
            "cluster": self._coded("cluster"),
            "job_id": self.job_id,
            "submit": np.maximum(submitted, waits),
            "queued": submitted,
            "start": started,
            "end": ended,
            "runtime": np.where(span == UNKNOWN, UNKNOWN, span - idle),
            "walltime": self._walltime(),
            "cores": self._cores(),
            "queue": np.where(returned, back.array(), queue.array()) if returned.any() else queue,
            "user": self._coded("user"),
            "state": state,
            "needs": needs,
            "group": self._coded("account"),
            "qos": self._coded("qos"),
            "marks": np.sum([rows.astype(np.int64) * sacct_runs.BIT[mark] for mark, rows in marks.items()], axis=0),
            "eligible": np.where(held, NEVER, free),  # from when on nothing held it; NEVER if held throughout
            "resizing": resizing,  # the run goes on in another row, with other cores
            "line": self.lines,
        }

    def _texts(self, name: str, other: str = "", nothing: Sequence[str] = ("",)) -> Texts:
        """Return a column of texts; cells in `nothing` are taken from the column `other`."""
        found: Texts = np.full(len(self.lines), "", dtype=object)
        found = self.cells[name].to_numpy(dtype=object) if name in self.cells else found
        lacks = np.any([found == each for each in nothing], axis=0) if other else found[:0]
        return np.where(lacks, self._texts(other), found) if lacks.any() else found

    def _is_filled(self, name: str) -> Mask:
        return np.asarray(self.cells[name] != "") if name in self.cells else np.zeros(len(self.lines), dtype=np.bool_)

    def _coded(self, name: str, read: Callable[[str], str] = str) -> Coded:
        if name not in self.cells:
            return Coded([""], np.zeros(len(self.lines), dtype=np.int64)).read(read)
        return Coded.of(self.cells[name]).read(read)

    def _refuse(self, rows: Mask, why: str) -> None:
        self.fault[rows & (self.fault == "")] = why

    def _each(self, name: str, read: Callable[[str], int], rows: Mask | None = None) -> Column:
        """Read the distinct cells of a column in some rows; a row becomes invalid if `read` raises ValueError."""
        if read is _seconds and name in self.cells and self.cells[name].dtype.kind == "i":
            return np.asarray(self.cells[name], dtype=np.int64)
        values = np.full(len(self.lines), UNKNOWN, dtype=np.int64)
        rows = np.ones(values.size, dtype=np.bool_) if rows is None else rows
        some = self._coded(name)[rows]
        read_values, faults = [], []
        for text in some.texts:
            try:
                read_values.append(read(text))
                faults.append("")
            except ValueError as error:
                read_values.append(UNKNOWN)
                faults.append(str(error))
        values[rows] = np.array(read_values, dtype=np.int64)[some.codes]
        if any(faults):
            wrong = np.full(values.size, "", dtype=object)
            wrong[rows] = np.array(faults, dtype=object)[some.codes]
            self.fault = np.where(self.fault == "", wrong, self.fault)
        return values

    def _times(self, name: str) -> tuple[Column, Column]:
        """Read a column of times; the second result has the later readings of repeated hours."""
        if name not in self.cells:
            return np.full(len(self.lines), UNKNOWN, dtype=np.int64), np.full(len(self.lines), UNKNOWN, dtype=np.int64)
        first, second, wrong = _read_times(self.cells[name], self.where)
        self.doubled |= second > first
        for i in np.flatnonzero(wrong).tolist():
            self.fault[i] = self.fault[i] or f"{str(self.cells[name].iloc[i])[:40]!r} is no time"
        return first, second

    def _run(self, submitted: Column) -> tuple[Column, Column]:
        """Read start and end; among several readings, choose that which fits the elapsed time and the submit."""
        (start, late_start), (end, late_end) = self._times("start"), self._times("end")
        spans = "elapsedraw" not in self.cells
        self.elapsed = self._each("elapsed", _span) if spans else self._each("elapsedraw", _seconds)
        unclear = ((start != late_start) | (end != late_end)) & (start != UNKNOWN) & (end != UNKNOWN)
        for i in np.flatnonzero(unclear).tolist():
            pairs = sorted((s, e) for s in {start[i], late_start[i]} for e in {end[i], late_end[i]})
            submit, elapsed = submitted[i], self.elapsed[i]
            if elapsed >= 0:
                start[i], end[i] = min(pairs, key=lambda pair: (abs(pair[1] - pair[0] - elapsed), pair[0] < submit))
            else:
                start[i], end[i] = next((pair for pair in pairs if submit <= pair[0] <= pair[1]), pairs[0])
        return start, end

    def _walltime(self) -> Column:
        """Return the time limits in seconds, from TimelimitRaw if it has one, else from Timelimit."""
        other = self._coded("timelimitraw").like(["", "Partition_Limit"].__contains__)
        limit = self._each("timelimitraw", _limit, ~other)
        limit[other] = self._each("timelimit", _limit, other)[other]
        return np.where(limit > 0, limit, UNKNOWN)

    def _cores(self) -> Column:
        cores = np.full(len(self.lines), UNKNOWN, dtype=np.int64)
        for name in (name for name in CPUS if name in self.cells):
            missing = cores <= 0
            if missing.any():
                cores[missing] = self._each(name, _cores, missing)[missing]
            if self.cells[name].dtype.kind == "O":
                rounded = missing & self._coded(name).like(lambda text: text.endswith(("K", "M")))
                for i in np.flatnonzero(rounded).tolist():
                    exact = CPU.search(self._texts("alloctres", "reqtres")[i])
                    cores[i] = int(exact[1]) if exact else cores[i]
        return np.where(cores > 0, cores, UNKNOWN)

    def _needs(self) -> tuple[Coded, Mask]:
        """Return the column `needs`, and the mask of readable rows; unreadable features are left out and counted."""
        tres, features = self._tres(), self._coded("constraints")
        if tres.codes.size and tres.codes.max() > tres.codes.size // 10:
            tres = tres.read(lambda text: OF_A_JOB.sub("", text))
        texts, readable = [], []
        rows, of = kinds(tres.codes, features.codes)
        for row, count in zip(rows.tolist(), np.bincount(of).tolist(), strict=True):
            text, feature = tres.texts[tres.codes[row]], features.texts[features.codes[row]]
            chunks, can_be_read = written(of_tres, text, feature)
            if feature and not can_be_read:
                chunks, can_be_read = written(of_tres, text)
                self.unread[feature] += count if can_be_read else 0
            licences = {name: int(count) for name, count in LICENCES.findall(text)}
            texts.append(words(licences=licences, chunks=chunks))
            readable.append(can_be_read)
        return Coded(texts, of), np.array(readable, dtype=np.bool_)[of]

    def _tres(self) -> Coded:
        """Return the allocated TRES, else the requested ones; older logs have generic resources in separate columns."""
        tres, gres = self._texts("alloctres", "reqtres"), self._texts("allocgres", "reqgres", ["", "0"])
        nodes, memory = self._texts("nnodes", "allocnodes"), self._coded("reqmem")
        if not (memory.like(_is_size) | (gres != "")).any():
            return Coded.of(tres)
        cores, found = self._cores(), []
        rows, of = kinds(tres, gres, nodes, memory.codes, cores)
        for row in rows.tolist():
            text, its, node, size = tres[row], gres[row], nodes[row], memory.texts[memory.codes[row]]
            size = size if _is_size(size) and (node or "node=" in text) and "mem=" not in text else ""
            if size or (its and "gres/" not in text):
                had = text or f"cpu={cores[row]},node={node or 1}"
                text = ",".join(filter(None, (had, tres_of_gres(its), _memory(size, int(cores[row]), node or "1"))))
            found.append(text)
        return Coded(found, of)


def _is_size(text: str) -> bool:
    return text not in ("", "0", "0n", "0c")


def _memory(text: str, cores: int, nodes: str) -> str:
    """Convert memory of older logs (4Gc per core, 4Gn per node, 4G per job) to a TRES of the job."""
    match = MEMORY.fullmatch(text)
    if match is None:
        return ""
    times = {"c": max(1, cores), "n": int(nodes) if nodes.isdigit() else 1}.get(match[3], 1)
    size = float(match[1]) * times * 1024.0 ** (" KMGTP".index(match[2] or "M") - 2)
    return f"mem={math.ceil(size)}M"


def _is_step(ids: Texts) -> Mask:
    return np.array(["." in text and STEP.fullmatch(text) is not None for text in ids.tolist()], dtype=np.bool_)


def _read_times(cells: pd.Series, where: tzinfo) -> tuple[Column, Column, Mask]:
    """Read a column of local times: the times, the later readings of repeated hours, and the mask of non-times."""
    if cells.dtype.kind == "i":
        numbers = cells.to_numpy(dtype=np.int64)
        times = np.where(numbers == 0, UNKNOWN, numbers)
        return times, times.copy(), (numbers < 0) | (numbers >= 10**15)
    codes, found = pd.factorize(cells)
    texts = pd.Series([str(each) for each in found], dtype=object)
    first, second = (np.full(texts.size, UNKNOWN, dtype=np.int64) for _ in range(2))
    stamps = pd.to_datetime(texts, format="%Y-%m-%dT%H:%M:%S", errors="coerce", exact=True)
    good = stamps.notna().to_numpy() & (texts.str.len() == 19).to_numpy()
    local = stamps.to_numpy(dtype="datetime64[s]").astype(np.int64)[good]
    first[good], second[good] = to_utc(local, where), to_utc(local, where, second=True)
    wrong = np.zeros(texts.size, dtype=np.bool_)
    for i in np.flatnonzero(~good).tolist():
        try:
            first[i], second[i] = (_time(texts[i], where, fold=fold) for fold in (0, 1))
        except (ValueError, OverflowError):
            wrong[i] = True
    return first[codes], second[codes], wrong[codes]


def _time(text: str, where: tzinfo, fold: int) -> int:
    """Read a time; `fold` 1 selects the later reading in a repeated hour."""
    if text.isdigit() and text.isascii() and len(text) <= 15:
        return int(text) or UNKNOWN
    if text.lower() in NO_TIME:
        return UNKNOWN
    if text[10:11] not in ("T", " "):
        raise ValueError("no time")
    found = datetime.fromisoformat(text)
    return int((found if found.tzinfo else found.replace(tzinfo=where, fold=fold)).timestamp() // 1)


def _state(text: str) -> str:
    """Return a state in lower case; sacct may write a short form, or append the user who cancelled the job."""
    word = text.split(" ", maxsplit=1)[0].rstrip("+")
    return STATES.get(word, word).lower()


def _seconds(text: str) -> int:
    return int(text) if re.fullmatch(r"[0-9]{1,12}", text) else UNKNOWN


def _span(text: str) -> int:
    try:
        return slurm_limit(text)
    except ValueError:
        return UNKNOWN


@lru_cache(maxsize=65536)
def _limit(text: str) -> int:
    """Read a Slurm time limit as seconds; 0 if unlimited."""
    return 0 if text.lower() in NO_LIMIT else slurm_limit(text)


@lru_cache(maxsize=65536)
def _cores(text: str) -> int:
    """Read a number of cores like 1200 or 1.2K; 0 if empty."""
    match = re.fullmatch(r"(\d{1,12})(\.\d{1,3})?([KM]?)", text)
    if match is None:
        if text:
            raise ValueError(f"{text[:40]!r} cores")
        return 0
    scale = {"": 1, "K": 1000, "M": 10**6}[match.group(3)]
    return int(match.group(1)) * scale + int((match.group(2) or ".0")[1:].ljust(6, "0")[:6]) * scale // 10**6
