"""Read the history CSV of this project, or any table of jobs; an unreadable row is dropped, with its line."""

from __future__ import annotations

import csv
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from parsim.model.node_types import Chunk
from qconf.config.routing import Column, Mask, Texts
from qconf.history.chunks import mebibytes, of_select, of_tres, placed, spread, written
from qconf.history.chunks import words as chunk_words
from qconf.history.dates import Times, TwoReadingsError, check_format
from qconf.history.needs import wrong
from qconf.history.readers.amounts import NOTHING, Numbers, duration, limit
from qconf.history.readers.columns import CHUNKS, CLOCKS, DURATIONS, EXCEL, NODES, SECONDS, check, resolve
from qconf.history.readers.formats import Odd, open_table
from qconf.history.readers.sources import Source, records_of
from qconf.history.records import LIMITS, TEXTS, TIMES, UNKNOWN, Drop, Gathered, Records, Values, job_table, stack
from qconf.history.times import DOUBLED, zone
from qconf.inert import unguarded

FORMS = {
    **dict.fromkeys(TIMES, "write epoch seconds or ISO 8601 such as 2016-02-01T08:00:00, or give --date-format"),
    **dict.fromkeys(
        DURATIONS, "write seconds, [D-]HH:MM:SS or 2h30m, nothing where unknown; --units for other numbers"
    ),
    **dict.fromkeys(("cores", *NODES), "write a whole number, nothing where unknown"),
    "job_id": "give every job one",
    "gpus": "write a whole number, nothing where unknown",
    "memory": "write MiB, or 64gb, of all nodes together",
    "node_type": "write the name of the type",
    "chunks": "write them as PBS's select, like 2:ncpus=16:ngpus=2:mem=64gb+1:ncpus=4",
    "place": "write it as PBS does, like scatter:excl: of pack, scatter, free, excl, exclhost, shared",
    "needs": "write after:JOB, licence:NAME:COUNT, array:NAME:COUNT, chunk:COUNT:cores=N with place:scatter,excl, with "
    "blanks between them",
    "tres": "write it as Slurm does, like cpu=32,mem=128G,node=2,gres/gpu=4",
    "cells": "complete or remove the line",
}
#: Texts that programs write for an empty cell.
NO_TEXT = {"NULL", "null", "(null)", r"\N", "N/A", "NA", "NaN", "nan", "<NA>", "None"}
#: Slurm's numbers for no value and no limit.
NO_VALUE = (2**32 - 2, 2**32 - 1)
#: Resource ids of Slurm's database; ids above 1000 are a site's own, the first of them mostly GPUs.
TRES = {"1": "cpu", "2": "mem", "4": "node", "1001": "gres/gpu", "1002": "gres/gpu"}
STEP = re.compile(r"(\d+(?:_\d+|\+\d+)?)\.(?:batch|extern|interactive|\d+)$")  #: id of a Slurm job's step
SKIPPED = "in an hour that the clock skips: as if it had not moved"
LOCAL = "without an offset, where others have one: local time"
#: Fractions of the jobs that make a unit implausible, or plausible.
MOST_OVER, FEWEST_OVER = 0.5, 0.05
FEW = 10  #: so few jobs show no unit


@dataclass(frozen=True)
class About:
    """Options for reading a table."""

    timezone: str = "UTC"  #: of times without an offset
    date_format: str | None = None  #: strptime format of times, or `dates.EPOCH`
    cores_per_node: int | None = None  #: if the table counts nodes
    strict: bool = False  #: whether the first unreadable row raises an error
    columns: Mapping[str, str] = field(default_factory=dict)  #: the table's name by ours, "" for none; `preset`
    units: Mapping[str, str] = field(default_factory=dict)  #: unit by our column


def read_csv(sources: Sequence[Source], timezone: str = "UTC", **more: Any) -> Records:  # noqa: ANN401 - of `About`
    """Read tables of jobs, in order; `more` are the other fields of `About`.

    An unreadable row is dropped. Raises `InputError` if more than half of a file's rows are unreadable (with `strict`,
    if one is), if columns are missing or there twice, or if a column of times is ambiguous.
    """
    about = About(timezone, **more)
    check(about.columns, about.units)
    if about.date_format is not None:
        check_format(about.date_format)
    drops: list[Drop] = []
    changed: Counter[str] = Counter()
    files = [_File(source, about, drops, changed) for source in sources]
    table = stack([file.read() for file in files])
    steps = _are_steps(table["job_id"])
    merged = {"job steps": int(steps.sum())} if steps.any() else {}
    table = table[~steps].reset_index(drop=True) if merged else table
    nodes = set().union(*(file.node_sizes for file in files))
    per_node = nodes.pop() if len(nodes) == 1 else None
    more = {"merged": merged, "changed": changed, "cores_per_node": per_node}
    return records_of("csv", sources, table, drops, timezone=timezone, **more)


def _are_steps(ids: pd.Series) -> pd.Series:
    """Mark the steps of Slurm jobs, such as 4.batch and 4.0 of a job 4 that is there too."""
    some = ids[ids.str.contains(".", regex=False)]
    of_jobs = some[some.str.extract(STEP, expand=False).isin(ids)]
    return pd.Series(ids.index.isin(of_jobs.index), index=ids.index)


class _Fault(NamedTuple):
    """Why a row cannot be read."""

    field: str
    message: str
    value: str | None
    reason: str  #: under which it is counted
    detail: str
    job_id: str | None = None  #: None if the row is in the table

    @classmethod
    def of(cls, field: str, message: str, value: str) -> _Fault:
        return cls(field, message, value, f"{field} {message}", repr(value[:60]))


@dataclass
class _File:
    """A file during reading; its drops and changes are added to the lists of all files."""

    source: Source
    about: About
    drops: list[Drop]
    changed: Counter[str]
    node_sizes: set[int] = field(default_factory=set)  #: cores per node of jobs counted in nodes
    faults: dict[int, _Fault] = field(default_factory=dict)  #: first fault of each bad row, by line
    example: str = ""  #: the first time of the file
    fractions: int = 0  #: number of run times with fractions of seconds
    fraction: str = ""  #: the first of them

    def read(self) -> pd.DataFrame:
        try:
            return self._read()
        except UnicodeDecodeError as error:
            fix = "save the table as CSV in UTF-8"
            raise self.source.error(f"is not UTF-8 text ({error.reason})", fix) from error
        except csv.Error as error:
            raise self.source.error(f"is no table ({error})", "check the quotes") from error

    def _read(self) -> pd.DataFrame:
        table = open_table(self.source)
        about = self.about
        self.columns = resolve(table.names, about.columns, about.units, self.source, table.line)
        at = self.columns.at
        texts = {name: place for name, place in at.items() if name in (*TEXTS, *CHUNKS, "tres")}
        numbers = {name: place for name, place in at.items() if name not in texts}
        where = zone(about.timezone)
        units = self.columns.units
        self.times = {
            name: Times(where, about.date_format, SECONDS.get(units.get(name, "")), excel=units.get(name) == EXCEL)
            for name in TIMES
            if name in numbers
        }
        self.numbers = {name: self._new_numbers(name) for name in numbers if name not in TIMES}
        gathered = Gathered(("job_id",) if "job_id" in at else ())
        for rows in table.rows(texts, numbers):
            self.rows, self.lines = rows, rows.lines
            if self.lines.size and "submit" in self.times and not self.times["submit"].rows:
                self.example = rows.text("submit", 0)
            self._take_odd(rows.odd, len(table.names))
            read = {name: self._text(name) if name in texts else self._integers(name) for name in at}
            gathered.add({"line": rows.lines} | {name: each for name, each in read.items() if name not in TIMES})
        all_rows = gathered.table()
        self.lines = all_rows["line"].to_numpy(dtype=np.int64) if "line" in all_rows else np.array([], dtype=np.int64)
        columns: dict[str, Any] = {
            str(name): each if name in texts else each.to_numpy(dtype=np.int64) for name, each in all_rows.items()
        }
        columns = {name: np.array([]) for name in at} | columns
        del all_rows
        self._settle_times(columns)
        form = about.date_format
        if form is not None and self.lines.size and not any(each.used for each in self.times.values()):
            fix = f"submit is written like {self.example!r}"
            raise self.source.error("no time of the file is written so", fix, field="--date-format", value=form)
        self._compute(columns)
        self._add_chunks(columns)
        if "job_id" not in columns:
            columns["job_id"] = self.lines.astype("str").astype(object)
        self._check_units(columns)
        self._check_queues(columns)
        self._check_walltimes(columns)
        return self._without_faults(job_table(columns, self.lines.size))

    def _new_numbers(self, name: str) -> Numbers:
        clock = CLOCKS.get(self.columns.units.get(name, ""))
        if name in DURATIONS:
            read = limit if name == "walltime" else duration
            return Numbers(lambda text: read(text, clock), self.columns.scale(name))
        return Numbers(_count, self.columns.scale(name), whole=True)

    def _take_odd(self, odd: Sequence[Odd], width: int) -> None:
        """Note rows with another number of cells than the header; refuse an open quote."""
        for each in odd:
            if any("\0" in cell for cell in each.cells):
                raise self.source.error("holds a zero byte", "save the table as CSV in UTF-8", line=each.line)
            if each.last != each.line:
                message = f"a quote is left open: the row goes on to line {each.last}"
                raise self.source.error(message, "close the quote", line=each.line)
            filled = len(each.cells)
            message = f"{filled} cells where the header has {width}"
            reason = "torn last line" if each.torn and filled < width else "not as many cells as the header"
            job = each.cells[0] if each.cells else ""
            self.faults[each.line] = _Fault("cells", message, None, reason, f"{filled} of {width} cells", job)

    def _text(self, name: str) -> Texts:
        """Read a column of texts; equal texts share one object."""
        codes, found = pd.factorize(self.rows.cells[name])
        texts = ["" if text in NO_TEXT else str(text) for text in found]
        if name == "state":
            known = self.columns.preset.states if self.columns.preset else {}
            texts = [known.get(text, text.lower()) for text in texts]
        if any(text.startswith("'") for text in texts):
            texts = unguarded(pd.Series(texts, dtype="str")).tolist()
        values = np.array(texts, dtype=object)[codes]
        if name == "job_id":
            self._refuse(values == "", name, "is missing")
        if name == "needs":
            bad = np.array([wrong(text) != "" for text in texts], dtype=np.bool_)[codes]
            self._refuse(bad, name, "is not what a job can need")
        return values

    def _integers(self, name: str) -> Column | Values:
        """Read a column of numbers, `UNKNOWN` where unreadable; ambiguous times are NaN."""
        cells = self.rows.cells[name]
        if name in TIMES:
            values, bad = self.times[name].add(cells)
        else:
            values, bad, unclear = self.numbers[name].add(cells)
            if unclear.any():
                row = int(np.argmax(unclear))
                text = self.rows.text(name, row)
                message = f"reads two ways, {text.replace(',', '')} and {text.replace(',', '.')}, as do all here"
                fix = "write such numbers without a comma"
                raise self.source.error(message, fix, line=int(self.lines[row]), field=name, value=text)
            if name in DURATIONS:
                none = np.isin(values, [each * self.columns.scale(name) for each in NO_VALUE])
                values = np.where(none, UNKNOWN, values)
        most = LIMITS.get(name, LIMITS["cores"]) if name != "memory" else 2**40
        self._refuse(bad, name, "not a " + ("time" if name in TIMES else "duration" if name in DURATIONS else "number"))
        self._refuse((values < 0) & (values != UNKNOWN), name, "is negative")
        self._refuse(values > most, name, f"is absurd, more than {most}")
        if name in TIMES:
            return np.where(bad | (values < 0) | (values > most), UNKNOWN, values)
        return self._whole(name, values, bad | (values < 0) | (values > most))

    def _whole(self, name: str, values: Values, unknown: Mask) -> Column:
        """Round to whole numbers (times down, others up), and count the rounded ones."""
        whole = np.floor(values) if name in TIMES else np.ceil(values)
        fractions = (whole != values) & ~unknown
        if name in (*TIMES, *DURATIONS):
            if fractions.any():
                what = f"{name}: fraction of a second {'cut' if name in TIMES else 'rounded up'}"
                self.changed[what] += int(fractions.sum())
                if name == "runtime":
                    self.fractions += int(fractions.sum())
                    self.fraction = self.fraction or self.rows.text(name, int(np.argmax(fractions)))
        elif name != "memory":
            self._refuse(fractions, name, "is not a whole number")
        return np.where(unknown, UNKNOWN, whole).astype(np.int64)

    def _settle_times(self, columns: dict[str, Any]) -> None:
        """Resolve ambiguous dates by their whole column, and times in repeated hours by the likelier reading."""
        late: dict[str, Values] = {}
        for name, times in self.times.items():
            if not times.rows:
                columns[name] = np.array([], dtype=np.int64)
                continue
            try:
                values, later, skipped = times.settled()
            except TwoReadingsError as error:
                line = int(self.lines[error.row])
                raise self.source.error(str(error), error.fix, line=line, field=name, value=error.value) from error
            self._count(f"{name}: {SKIPPED}", skipped)
            self._count(f"{name}: {DOUBLED}", later > values)
            if all(times.offsets):
                self.changed[f"{name}: {LOCAL}"] += times.offsets[0]
            late[name] = later
            columns[name] = np.where(np.isnan(values) | (values < 0) | (values > LIMITS[name]), UNKNOWN, values)
        for name in ("start", "end"):  # Slurm's database has 0 for none
            if name in columns and "submit" in columns:
                columns[name] = np.where((columns[name] == 0) & (columns["submit"] > 0), UNKNOWN, columns[name])
        ran = columns.get("runtime", np.full(self.lines.size, UNKNOWN))
        for i in np.flatnonzero(np.any([late[name] > columns[name] for name in late], axis=0)).tolist() if late else ():
            self._settle_hour(i, columns, late, int(ran[i]))
        for name in self.times:
            columns[name] = self._whole(name, columns[name], columns[name] == UNKNOWN)

    def _settle_hour(self, i: int, columns: dict[str, Any], late: Mapping[str, Values], ran: int) -> None:
        """Choose among the readings of a job's times in a repeated hour."""
        names = list(late)
        readings = [sorted({float(columns[name][i]), float(max(late[name][i], columns[name][i]))}) for name in names]

        def unlikely(times: Iterable[float]) -> tuple[float, ...]:
            at = dict(zip(names, times, strict=True))
            submit, start, end = (at.get(name, UNKNOWN) for name in TIMES)
            known = start >= 0 and end >= 0
            off = abs(end - start - ran) if known and ran >= 0 else 0.0
            return off, float(known and end < start), float(start >= 0 and start < submit), *times

        for name, value in zip(names, min(itertools.product(*readings), key=unlikely), strict=True):
            columns[name][i] = value

    def _check_units(self, columns: dict[str, Any]) -> None:
        """Refuse walltimes and run times without a unit that are probably not seconds."""
        if "runtime" not in columns or self.columns.preset is not None:
            return
        ran, limit = columns["runtime"], columns["walltime"] if "walltime" in columns else np.array([])
        known = (ran > 0) & (limit > 0) if limit.size else np.zeros(ran.size, dtype=np.bool_)

        def over(unit: str) -> float:
            return float((ran > 1.05 * SECONDS[unit] * limit + 60)[known].mean())

        if self._has_no_unit("walltime", "walltime") and known.any() and (ran > limit)[known].mean() > MOST_OVER:
            why = "is shorter than the run time of most jobs, in seconds"
            for unit in (unit for unit in ("min", "h") if over(unit) < FEWEST_OVER):
                self._refuse_unit("walltime", why, int(limit[known][0]), unit)
        over_in_minutes = float((60 * (ran - 1) > 1.05 * limit)[known].mean()) if known.any() else 1.0
        in_fractions = self.fractions > max(FEW, MOST_OVER * ran.size)
        if not self._has_no_unit("runtime"):
            return
        if "start" in self.columns.at and "end" in self.columns.at:
            start, end = columns["start"], columns["end"]
            both = (start >= 0) & (end > start) & (ran > 0)
            for unit in ("min", "h", "ms") if both.any() else ():
                size = SECONDS[unit]
                fits, off = (np.abs(each * ran - (end - start)) for each in (size, 1.0))
                if (fits <= max(1, size))[both].mean() > 1 - FEWEST_OVER and (off > 60)[both].mean() > MOST_OVER:
                    self._refuse_unit("runtime", "is not from start to end, in seconds", int(ran[both][0]), unit)
            if in_fractions and both.any() and (np.abs(ran - (end - start)) > 60)[both].mean() > MOST_OVER:
                why = "has fractions, and is not from start to end, in seconds"
                self._refuse_unit("runtime", why, self.fraction, "d", "h", "min")
        elif in_fractions and over_in_minutes < FEWEST_OVER:
            why = "has fractions, and would be below the walltimes in minutes, too"
            self._refuse_unit("runtime", why, self.fraction, "min", "s")

    def _has_no_unit(self, name: str, ours: str = "") -> bool:
        """Whether the unit of a column is unknown; a column named `ours` is in seconds."""
        columns = self.columns
        return name in columns.at and name not in columns.units and columns.names[columns.at[name]] != ours

    def _refuse_unit(self, name: str, why: str, value: object, *units: str) -> NoReturn:
        message = f"the column {self.columns.names[self.columns.at[name]]} {why}"
        fix = "say what it is in, like " + " or ".join(f"--units {name}={unit}" for unit in units)
        raise self.source.error(message, fix, field=name, value=value)

    def _check_queues(self, columns: dict[str, Any]) -> None:
        """Refuse names of queues that are the seconds that jobs waited: some tables call that `queue`."""
        if self.columns.preset is not None or not {"queue", "submit", "start"} <= {*self.columns.at}:
            return
        waited = columns["start"] - columns["submit"]
        known = (columns["start"] > columns["submit"]) & (columns["submit"] >= 0)
        names = pd.to_numeric(pd.Series(np.asarray(columns["queue"], dtype=object)), errors="coerce").to_numpy()
        if np.unique(waited[known]).size > 1 and (np.abs(names - waited) <= 1)[known].mean() > MOST_OVER:
            name, row = self.columns.names[self.columns.at["queue"]], int(np.argmax(known))
            message = f"the column {name} has the seconds that jobs waited, and no queues"
            fix = "say where the queues are, like --columns queue=partition, or --columns queue= where there are none"
            raise self.source.error(message, fix, field="queue", value=str(columns["queue"][row]))

    def _check_walltimes(self, columns: dict[str, Any]) -> None:
        """Refuse a column `walltime` of the time that jobs ran, if another one seems to have their limits."""
        others = self.columns.unused("walltime")
        if self.columns.preset is not None or "walltime" in self.about.columns or not others:
            return
        ran, limit = columns["runtime"], columns["walltime"]
        if (ran > 0).any() and (np.abs(ran - limit) <= 1)[ran > 0].mean() > MOST_OVER:
            name = self.columns.names[self.columns.at["walltime"]]
            message = f"the column {name} has the time that most jobs ran, and {others[0]} is not read"
            fix = f"say which has the limits: --columns walltime={others[0]}, or --columns walltime={name}"
            raise self.source.error(message, fix, field="walltime", value=int(limit[np.argmax(ran > 0)]))

    def _compute(self, columns: dict[str, Any]) -> None:
        """Compute missing columns of starts, run times and cores; refuse rows that end before they start."""
        if (waited := columns.pop("wait", None)) is not None and "start" not in columns:
            known = (columns["submit"] >= 0) & (waited >= 0)
            columns["start"] = np.where(known, columns["submit"] + waited, UNKNOWN)
            self._count("start: the submit and the time waited", known)
        if "start" in columns and "end" in columns:
            start, end = columns["start"], columns["end"]
            ran = (start >= 0) & (end >= 0)
            for i in np.flatnonzero(ran & (end < start)).tolist():
                first, last = (self._written(int(each[i])) for each in (start, end))
                fault = ("end", f"is before the start, {first!r}", last)
                self._add(i, _Fault(*fault, "ends before it starts", f"start {first!r}, end {last!r}"))
            if "runtime" not in columns:
                columns["runtime"] = np.where(ran, end - start, UNKNOWN)
                if "suspended" in columns:
                    idle = np.where(ran, np.clip(columns["suspended"], 0, np.maximum(end - start, 0)), 0)
                    columns["runtime"] -= idle
                    self._count("run time: the time in which the job was suspended left out", idle > 0)
                self._count("run time: from start to end", ran)
        columns.pop("suspended", None)
        if "tres" in columns:
            self._read_tres(columns)
        if "cores" not in columns:
            nodes = columns.pop("nodes")
            each = np.full(self.lines.size, self.about.cores_per_node or UNKNOWN)
            if "cores_per_node" in columns:
                own = columns.pop("cores_per_node")
                each = np.where(own > 0, own, each)
            elif self.about.cores_per_node is None:
                message = "the column nodes counts nodes, and how many cores a node has is unknown"
                fix = "give --cores-per-node, or a column cores_per_node, or machine.cores_per_node in --config"
                raise self.source.error(message, fix, line=1)
            known = (nodes > 0) & (each > 0)
            columns["cores"] = cores = np.where(known, nodes * each, UNKNOWN)
            self._refuse(cores > LIMITS["cores"], "nodes", f"is absurd, more than {LIMITS['cores']} cores", nodes)
            self._count("cores: nodes times cores per node", known)
            self.node_sizes |= set(np.unique(each[known]).tolist())
        for name in NODES:
            columns.pop(name, None)

    def _written(self, second: int) -> str:
        """Return a time in the format of the file: a number if its times are numbers."""
        return str(second) if self.times["start"].numbers_only else str(pd.Timestamp(second, unit="s"))

    def _read_tres(self, columns: dict[str, Any]) -> None:
        """Read cores, memory and GPUs of jobs from the column of allocated TRES."""
        codes, found = pd.factorize(columns.pop("tres"))
        needs, cores, readable = [], [], []
        for text in found:
            parts = (part.partition("=") for part in str(text).split(",") if part)
            named = [(TRES.get(name, name), amount) for name, _, amount in parts if not name.isdigit() or name in TRES]
            named = [(name, f"{amount}M" if name == "mem" and amount.isdigit() else amount) for name, amount in named]
            chunks, can_be_read = written(of_tres, ",".join(f"{name}={amount}" for name, amount in named), "")
            has = dict(named).get("cpu", "")
            needs.append(chunks)
            cores.append(int(has) if re.fullmatch(r"[0-9]{1,9}", has) else UNKNOWN)
            readable.append(can_be_read)
        of_job = np.array(cores, dtype=np.int64)[codes]
        self._refuse(~np.array(readable, dtype=np.bool_)[codes], "tres", "cannot be read", np.asarray(found)[codes])
        columns["cores"] = np.where(of_job > 0, of_job, columns.get("cores", UNKNOWN))
        texts = np.array(needs, dtype=object)[codes]
        given = columns.get("needs")
        columns["needs"] = texts if given is None else np.where(given == "", texts, given)

    def _add_chunks(self, columns: dict[str, Any]) -> None:
        """Add to `needs` the chunks given by the columns `CHUNKS`: GPUs, memory, types of nodes, chunks, placement."""
        given = {name: columns.pop(name) for name in CHUNKS if name in columns}
        if not given:
            return
        kinds = [pd.factorize(each) for each in (columns["cores"], *given.values())]
        table = np.stack([codes for codes, _ in kinds], axis=1)
        _, first, of = np.unique(table, axis=0, return_index=True, return_inverse=True)
        chunks = []
        for row in first.tolist():
            cells = dict.fromkeys(CHUNKS, "") | {name: str(each[row]) for name, each in given.items()}
            chunks.append(self._chunks(int(columns["cores"][row]), cells))
        of = of.reshape(-1)
        for kind, (_, fault) in enumerate(chunks):
            if fault is not None:
                for i in np.flatnonzero(of == kind).tolist():
                    self._add(i, fault)
        texts = np.array([text for text, _ in chunks], dtype=object)[of]
        if (had := columns.get("needs")) is not None:
            texts = np.array([f"{text} {more}".strip() for text, more in zip(had, texts, strict=True)], dtype=object)
        columns["needs"] = texts

    def _chunks(self, cores: int, texts: Mapping[str, str]) -> tuple[str, _Fault | None]:
        """Return the words of a job's chunks, "" if it has none, and the fault if they cannot be read."""
        name = "place"
        try:
            is_free = placed((Chunk(2, 1),), texts[name]) == (Chunk(2, 1),)
            name = "chunks"
            if texts[name]:
                return chunk_words(of_select(texts[name], texts["place"])), None
            name = "gpus"
            gpus = self._amount(name, texts[name])
            name = "memory"
            memory = self._amount(name, texts[name])
            if cores < 1 or (is_free and not (gpus or memory or texts["node_type"])):
                return "", None
            chunks = spread(cores, gpus, memory, filter(None, [texts["node_type"]]))
            return chunk_words(placed(chunks, texts["place"])), None
        except ValueError:
            return "", _Fault.of(name, "cannot be read", texts[name])

    def _amount(self, name: str, text: str) -> int:
        """Read a number of GPUs, or memory in MiB; an empty cell is 0."""
        if text.lower() in NOTHING:
            return 0
        if re.fullmatch(r"\d{1,15}(\.\d+)?", text) and (name == "memory" or float(text).is_integer()):
            return -int(-float(text) * self.columns.scale(name) // 1)
        return mebibytes(text) if name == "memory" else _count(text)

    def _count(self, what: str, rows: Mask) -> None:
        if count := int((rows & ~np.isin(self.lines, list(self.faults))).sum()):
            self.changed[what] += count

    def _refuse(self, rows: Mask, name: str, message: str, values: NDArray[Any] | None = None) -> None:
        """Note a fault of a column in these rows; `values` defaults to the cells of the current block."""
        for i in np.flatnonzero(rows).tolist():
            self._add(i, _Fault.of(name, message, self.rows.text(name, i) if values is None else str(values[i])))

    def _add(self, row: int, fault: _Fault) -> None:
        self.faults.setdefault(int(self.lines[row]), fault)

    def _without_faults(self, table: pd.DataFrame) -> pd.DataFrame:
        """Drop the unreadable rows; raise `InputError` if there are too many."""
        if not self.faults:
            return table
        bad = np.isin(self.lines, list(self.faults))
        rows = self.lines.size + len(self.faults) - int(bad.sum())
        line, first = min(self.faults.items())
        most = len(self.faults) > rows / 2
        if most or self.about.strict:
            message = first.message
            if most and rows > 1:
                counts = Counter(fault.reason for fault in self.faults.values()).most_common(4)
                why = ", ".join(f"{count} {reason}" for reason, count in counts)
                message += f"; {len(self.faults)} of {rows} rows cannot be read: {why}"
            fix = "correct or remove the line" if first.reason.startswith("ends before") else FORMS[first.field]
            raise self.source.error(message, fix, line=line, field=first.field, value=first.value)
        jobs = dict(zip(self.lines[bad].tolist(), table.loc[bad, "job_id"].tolist(), strict=True))
        for line, fault in sorted(self.faults.items()):
            job = jobs[line] if fault.job_id is None else fault.job_id
            self.drops.append(Drop(job[:40], str(self.source.path), line, fault.reason, fault.detail))
        return table[~bad].reset_index(drop=True)


def _count(text: str) -> int:
    if not re.fullmatch(r"\d{1,12}", text):
        raise ValueError("not a number")
    return int(text)
