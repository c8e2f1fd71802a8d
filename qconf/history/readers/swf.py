"""Read the Standard Workload Format of the Parallel Workloads Archive.

References
----------
D. G. Feitelson, https://www.cs.huji.ac.il/labs/parallel/workload/swf.html
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from parsim.model.workload import MAX_CORES
from qconf.config.routing import Column, Mask, Texts
from qconf.history.chunks import spread, words
from qconf.history.readers.sources import Source, records_of
from qconf.history.records import LIMITS, MAX_EPOCH, UNKNOWN, Drop, Records, job_table, shifted, stack

FIELDS = 18
KIB = 1024
#: Positions, from 0, of the needed fields; LAST only shows that the line is complete.
WHOLE = JOB, SUBMIT, WAIT, RUNTIME, ALLOCATED, REQUESTED, TIME, STATUS, USER, GROUP, QUEUE, PARTITION, LAST = (
    *(0, 1, 2, 3, 4, 7, 8, 10, 11, 12, 14, 15, 17),
)
MEMORY = USED_MEMORY, REQUESTED_MEMORY = 6, 9  #: KB per processor, some with a fraction
USED = (*WHOLE, *MEMORY)
MOST_MEMORY = 2**40  #: KB; a larger value is unknown
BY_USE = "memory: none requested (field 10), what was used counts (field 7)"
#: Fields with a limit, each with the column that has the same limit.
LIMITED = {
    SUBMIT: "submit", RUNTIME: "runtime", TIME: "walltime", ALLOCATED: "cores", REQUESTED: "cores", WAIT: "start",
}  # fmt: skip
STATES = {0: "failed", 1: "completed", 2: "partial", 3: "partial", 4: "partial", 5: "cancelled"}
CANCELLED = 5
#: Smallest fraction of the jobs for a partition to count, if partitions may stand for queues.
SHARE = 0.01
PARTIAL = (2, 3, 4)  #: partial executions of a swapped job; its line of status 0 or 1 sums them up


class Header(NamedTuple):
    """Values in the header comments of a file; names of queues and partitions by their number."""

    cores: int | None
    epoch: int
    timezone: str
    queues: dict[int, str]
    partitions: dict[int, str]


def read_swf(sources: Sequence[Source], timezone: str = "UTC") -> Records:  # noqa: ARG001 - the header has its own
    """Read SWF files, in order; times count from the earliest UnixStartTime in their headers.

    If the jobs name no queues but partitions (logs of Slurm), partitions become the queues. Raises `InputError` if no
    line of any file is a job record.
    """
    tables: list[pd.DataFrame] = []
    drops: list[Drop] = []
    headers: list[Header] = []
    fields: list[dict[int, Column]] = []
    for source in sources:
        data = re.sub(rb"(?m)^#", b";", source.read())  # some simulators begin comments with #
        headers.append(read_header(data))
        jobs, numbers = _read_one(data, str(source.path), drops)
        fields.append(jobs)
        tables.append(_to_table(jobs, numbers, headers[-1]))
    changed = {}
    if _in_partitions(headers, fields):
        for table, header, jobs in zip(tables, headers, fields, strict=True):
            table["queue"] = _named(jobs[PARTITION], header.partitions)
        changed = {"queue: the partition (field 16), as field 15 names none": sum(map(len, tables))}
    by_use = sum(int((_memory(jobs) > np.maximum(jobs[REQUESTED_MEMORY], 0)).sum()) for jobs in fields)
    epoch = min(header.epoch for header in headers)
    epochs = {header.epoch: source for header, source in zip(headers, sources, strict=True)}
    if not epoch and len(epochs) > 1:
        message = f"has no UnixStartTime, but {epochs[max(epochs)].path} has: its times count from somewhere else"
        raise epochs[0].error(message, f"add a first line like ; UnixStartTime: {max(epochs)}")
    table = stack([shifted(each, header.epoch - epoch) for each, header in zip(tables, headers, strict=True)])
    if table.empty:
        message = f"no line is a job of the Standard Workload Format ({len(drops)} lines read)"
        raise sources[0].error(message, "a job has 18 numbers on a line")
    cores = max((header.cores for header in headers if header.cores is not None), default=None)
    about = {"machine_cores": cores, "epoch": epoch, "timezone": headers[0].timezone, "changed": changed}
    about["of_memory"] = {BY_USE: by_use} if by_use else {}
    return records_of("swf", sources, table, drops, **about)


def _in_partitions(headers: Sequence[Header], fields: Sequence[dict[int, Column]]) -> bool:
    """Whether field 15 names at most one queue, and two or more named partitions have at least `SHARE` of the jobs."""
    queues = np.unique(np.concatenate([jobs[QUEUE] for jobs in fields]))
    if np.count_nonzero(queues >= 0) > 1:
        return False
    shares: Counter[str] = Counter()
    for header, jobs in zip(headers, fields, strict=True):
        codes, counts = np.unique(jobs[PARTITION], return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            shares[header.partitions.get(code, "")] += count
    least = SHARE * shares.total()
    return sum(count >= least for name, count in shares.items() if name) > 1


def read_header(data: bytes) -> Header:
    """Read the header: MaxProcs (else MaxNodes), UnixStartTime, time zone, names of queues and partitions."""
    fields: dict[str, str] = {}
    names: dict[str, dict[int, str]] = {"Queue": {}, "Partition": {}}
    for raw in data[: 1 << 20].split(b"\n"):
        line = raw.decode("utf-8", "replace").strip()
        if line and not line.startswith(";"):
            break
        match = re.match(r";\s*([A-Za-z]+):\s*(.*)", line)
        if not match:
            continue
        key, value = match.group(1), match.group(2).strip()
        if key in names and (named := re.match(r"(\d{1,9})\s+(\S+)", value)):
            names[key].setdefault(int(named.group(1)), named.group(2))
        fields.setdefault(key, value)
    cores = _whole(fields.get("MaxProcs"), MAX_CORES) or _whole(fields.get("MaxNodes"), MAX_CORES)
    epoch = _whole(fields.get("UnixStartTime"), MAX_EPOCH) or 0
    return Header(cores or None, epoch, _zone(fields.get("TimeZoneString")), *names.values())


def _whole(text: str | None, most: int) -> int | None:
    match = re.match(r"\d{1,12}(?!\S)", text or "")
    return min(int(match.group()), most) if match else None


def _zone(name: str | None) -> str:
    try:
        return ZoneInfo(name).key if name else "UTC"
    except (KeyError, ValueError, OSError):
        return "UTC"


def _read_one(data: bytes, path: str, drops: list[Drop]) -> tuple[dict[int, Column], Column]:
    """Return the jobs' fields by position, and their line numbers."""
    filled = (raw.partition(b";")[0].strip() for raw in data.split(b"\n"))
    numbers = np.flatnonzero(np.fromiter(map(bool, filled), dtype=np.bool_)) + 1
    columns = _read_fast(data)
    if columns is None or len(columns) != len(numbers):  # a line is too short, too long or not numeric
        columns, numbers = _read_slowly(data, path, drops)
    jobs = _jobs(dict(zip(USED, columns.T, strict=True)), numbers, path, drops)
    return dict(zip(USED, columns[jobs].T, strict=True)), numbers[jobs]


def _read_fast(data: bytes) -> Column | None:
    try:
        table = pd.read_csv(
            io.BytesIO(data), sep=r"\s+", comment=";", header=None, names=range(FIELDS), quoting=csv.QUOTE_NONE,
            dtype=dict.fromkeys(WHOLE, np.int64) | dict.fromkeys(MEMORY, np.float64), low_memory=False,
        )  # fmt: skip
    except (ValueError, OverflowError):  # pandas' own errors are ValueErrors
        return None
    if not isinstance(table.index, pd.RangeIndex):  # the first lines have more fields
        return None
    columns = np.empty((len(table), len(USED)), dtype=np.int64)
    columns[:, : len(WHOLE)] = table[list(WHOLE)].to_numpy()
    memory = table[list(MEMORY)].to_numpy()
    columns[:, len(WHOLE) :] = np.where((memory > 0) & (memory <= MOST_MEMORY), np.ceil(memory), UNKNOWN)
    return columns


def _read_slowly(data: bytes, path: str, drops: list[Drop]) -> tuple[Column, Column]:
    rows: list[list[int]] = []
    numbers: list[int] = []
    lines = data.split(b"\n")
    for number, raw in enumerate(lines, start=1):
        content = raw.split(b";", 1)[0].split()
        if not content:
            continue
        try:
            if len(content) != FIELDS:
                raise ValueError(f"{len(content)} fields instead of {FIELDS}")  # noqa: TRY301
            rows.append([*_numbers([content[i] for i in WHOLE]), *(_kilobytes(content[i]) for i in MEMORY)])
            numbers.append(number)
        except ValueError as error:
            torn = number == len(lines) and len(content) < FIELDS
            job = content[0].decode("utf-8", "replace")[:40]
            drops.append(Drop(job, path, number, "torn last line" if torn else "not a job record", str(error)))
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(USED)), np.array(numbers, dtype=np.int64)


def _numbers(tokens: list[bytes]) -> list[int]:
    if b"".join(tokens).replace(b"-", b"").isdigit() and max(map(len, tokens)) <= 18:
        return list(map(int, tokens))
    return [_number(token) for token in tokens]


def _number(token: bytes) -> int:
    """Read a whole number; a fraction, as some logs have of seconds, is rounded."""
    text = token.decode("ascii", "replace")
    if not re.fullmatch(r"[+-]?\d{1,18}(\.\d*)?", text):
        raise ValueError(f"{text[:40]!r} is not a number")
    whole, _, fraction = text.partition(".")
    return int(whole) + (int(fraction[:1] or "0") >= 5) * (-1 if whole.startswith("-") else 1)


def _kilobytes(token: bytes) -> int:
    """Read memory, rounded up; an invalid value is unknown, and the job is kept."""
    try:
        amount = float(token)
    except ValueError:
        return UNKNOWN
    return math.ceil(amount) if 0 < amount <= MOST_MEMORY else UNKNOWN


def _memory(values: dict[int, Column]) -> Column:
    """Return each job's requested memory, else the used one, KB per processor; 0 if both are unknown."""
    requested = np.maximum(values[REQUESTED_MEMORY], 0)
    return np.where(requested > 0, requested, np.maximum(values[USED_MEMORY], 0))


def _needs(cores: Column, memory: Column) -> Texts:
    """Write the chunks of jobs, one per processor with its memory; "" if the memory is unknown."""
    texts = np.full(cores.size, "", dtype=object)
    known = np.flatnonzero((cores > 0) & (memory > 0))
    kinds, of = np.unique(cores[known] * (1 << 31) + -(-memory[known] // KIB), return_inverse=True)
    found = [words(spread(kind >> 31, 0, (kind >> 31) * (kind % (1 << 31)), ())) for kind in kinds.tolist()]
    texts[known] = np.array(found, dtype=object)[of]
    return texts


def _jobs(values: dict[int, Column], numbers: Column, path: str, drops: list[Drop]) -> Mask:
    """Return the mask of lines that are jobs; add the others to `drops`."""
    jobs = np.ones(numbers.size, dtype=np.bool_)

    def drop(rows: Mask, reason: str, detail: str) -> None:
        lost = np.flatnonzero(rows & jobs)
        drops.extend(Drop(str(values[JOB][i]), path, int(numbers[i]), reason, detail) for i in lost)
        jobs[lost] = False

    for position, name in LIMITED.items():
        drop(values[position] > LIMITS[name], "absurd value", f"{name} (field {position + 1}) above {LIMITS[name]}")
    partial = np.isin(values[STATUS], PARTIAL)
    if partial.any():
        whole = np.isin(values[JOB], values[JOB][~partial & jobs])
        drop(partial & whole, "partial execution", "another line sums up this job")
    return jobs


def _to_table(values: dict[int, Column], numbers: Column, header: Header) -> pd.DataFrame:
    submit, wait, runtime = values[SUBMIT], values[WAIT], values[RUNTIME]
    left = np.where((submit >= 0) & (wait >= 0), submit + wait, UNKNOWN)  # end of the wait, by start or deletion
    deleted = (values[STATUS] == CANCELLED) & (runtime < 0)
    start = np.where(deleted, UNKNOWN, left)
    end = np.where(deleted, left, np.where((start >= 0) & (runtime >= 0), start + runtime, UNKNOWN))
    cores = np.where(values[ALLOCATED] > 0, values[ALLOCATED], values[REQUESTED])
    columns = {
        "job_id": list(map(str, values[JOB].tolist())),
        "submit": submit,
        "runtime": runtime,
        "walltime": values[TIME],
        "cores": cores,
        "queue": _named(values[QUEUE], header.queues),
        "user": _named(values[USER], {}),
        "start": start,
        "end": end,
        "state": _named(values[STATUS], STATES),
        "group": _named(values[GROUP], {}),
        "needs": _needs(cores, _memory(values)),
        "line": numbers,
    }
    return job_table(columns, numbers.size)


def _named(codes: Column, names: dict[int, str]) -> ExtensionArray:
    """Return the name of each code, else its number as text, "" for a negative one."""
    inverse, distinct = pd.factorize(codes)
    texts = [names.get(code, str(code)) if code >= 0 else "" for code in distinct.tolist()]
    return pd.array(texts, dtype="str").take(inverse)
