"""Find the columns of sacct output: by header or by content, with any separator, of fixed width, or JSON."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from qconf.config.routing import Column, Texts
from qconf.history.readers.formats import Rows, Table
from qconf.history.readers.sources import Source

SEPARATOR = "\x1f"  #: no cell contains it
JSON_COLUMNS = (
    *("jobidraw", "jobid", "cluster", "user", "account", "partition", "state", "submit", "eligible", "start", "end"),
    *("elapsedraw", "suspended", "timelimitraw", "alloccpus", "reqcpus", "nnodes", "alloctres", "reqtres"),
    *("constraints", "reservation", "qos", "admincomment"),
)
_JOBS = re.compile(r'"job_id"\s*:')
_NO_JOBS = re.compile(r'"jobs"\s*:\s*\[\s*\]')
_OWN = re.compile(r'"(?:association|allocation_nodes|tres|time)"\s*:')


def is_json(head: str) -> bool:
    """Whether the beginning of a file is output of ``sacct --json``."""
    if head.lstrip()[:1] not in ("{", "["):
        return False
    return bool(_NO_JOBS.search(head) or (_JOBS.search(head) and _OWN.search(head)))


def lines_of(source: Source) -> Iterator[bytes]:
    """Yield one block with a line of `JSON_COLUMNS` per job. Raises `InputError` if the file is not sacct JSON."""
    try:
        document = json.loads(source.read())
        jobs = document["jobs"] if isinstance(document, dict) else document
        yield "".join(f"{SEPARATOR.join(_json_cells(job))}\n" for job in jobs).encode()
    except json.JSONDecodeError as error:
        fix = "save the whole of what sacct --json prints"
        raise source.error(f"is no whole JSON document: {error.msg}", fix, line=error.lineno) from error
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        message, fix = "its jobs are not as sacct --json has them", "make it with sacct --json"
        raise source.error(message, fix, field="jobs", value=str(error)[:60]) from error


def number(value: Any) -> int | None:  # noqa: ANN401 - of a JSON document
    """Return a positive number, plain (older versions) or an object with a flag "set" (newer ones); else None."""
    if isinstance(value, Mapping):
        return int(value["number"]) if value.get("set") and not value.get("infinite") else None
    return int(value) if isinstance(value, int) and value > 0 else None


def _json_cells(job: Mapping[str, Any]) -> Iterator[str]:
    time, tres, required = (job.get(name) or {} for name in ("time", "tres", "required"))
    array, het, comment = (job.get(name) or {} for name in ("array", "het", "comment"))
    raw, shown = str(job["job_id"]), ""
    if (whole := number(array.get("job_id"))) and (task := _of_zero(array.get("task_id"))) is not None:
        shown = f"{whole}_{task}"
    elif whole and array.get("task"):
        shown = f"{whole}_[{array['task']}]"
    elif first := number(het.get("job_id")):
        shown = f"{first}+{_of_zero(het.get('job_offset')) or 0}"
    state = job.get("state") or {}
    current = state.get("current", "") if isinstance(state, Mapping) else state
    limit = time.get("limit")
    endless = isinstance(limit, Mapping) and limit.get("infinite")
    suspended = number(time.get("suspended")) or 0
    of_job = {name: list(tres.get(name) or ()) for name in ("allocated", "requested")}
    cores = {
        name: next((each["count"] for each in found if each["type"] == "cpu"), 0) for name, found in of_job.items()
    }
    reservation = job.get("reservation")
    cells = {
        "jobidraw": raw,
        "jobid": shown or raw,
        "cluster": job.get("cluster"),
        "user": job.get("user") or (job.get("association") or {}).get("user"),
        "account": job.get("account") or (job.get("association") or {}).get("account"),
        "partition": job.get("partition"),
        "state": current[0] if isinstance(current, list) and current else current or "",
        **{name: number(time.get(name)) for name in ("eligible", "start", "end")},
        "submit": number(time.get("submission")),
        "elapsedraw": number(time.get("elapsed")),
        "suspended": f"{suspended // 3600:02d}:{suspended // 60 % 60:02d}:{suspended % 60:02d}",
        "timelimitraw": "UNLIMITED" if endless else number(limit),
        "alloccpus": cores["allocated"],
        "reqcpus": cores["requested"] or number(required.get("CPUs")),
        "nnodes": number(job.get("allocation_nodes")),
        "alloctres": ",".join(map(_json_tres, of_job["allocated"])),
        "reqtres": ",".join(map(_json_tres, of_job["requested"])),
        "constraints": job.get("constraints"),
        "reservation": reservation.get("name") if isinstance(reservation, Mapping) else reservation,
        "qos": job.get("qos"),
        "admincomment": comment.get("administrator") if isinstance(comment, Mapping) else "",
    }
    return (re.sub(r"[\x1f\r\n]", " ", str(cells[name] or "")) for name in JSON_COLUMNS)


def _of_zero(value: Any) -> int | None:  # noqa: ANN401 - of a JSON document
    return 0 if value == 0 and not isinstance(value, bool) else number(value)


def _json_tres(each: Mapping[str, Any]) -> str:
    """Write a TRES as sacct's text output does: memory in MiB."""
    name = f"/{each['name']}" if each.get("name") else ""
    return f"{each['type']}{name}={each['count']}{'M' * (each['type'] == 'mem')}"


LISTED = (
    "JobIDRaw,JobID,User,Account,Partition,State,Submit,Eligible,Start,End,ElapsedRaw,Suspended,"
    "TimelimitRaw,Timelimit,AllocCPUS,ReqCPUS,NNodes,AllocTRES,ReqTRES,Constraints,Reservation,QOS,AdminComment"
)
#: With a separator that no cell contains, unlike the bar, which features like a100|v100 contain.
COMMAND = f"SLURM_TIME_FORMAT=%s sacct -a -D -S now-31days --parsable2 --delimiter=\"$(printf '\\037')\" -o {LISTED}"
#: Required columns: one of each group.
NEEDED = (
    *(("JobIDRaw", "JobID"), ("Submit",), ("Start",), ("End",)),
    *(("TimelimitRaw", "Timelimit"), ("AllocCPUS", "ReqCPUS", "NCPUS")),
)
CPUS = ("alloccpus", "ncpus", "reqcpus")
WANTED = (
    *("jobidraw", "jobid", "user", "account", "partition", "state", "submit", "eligible", "start", "end"),
    *("elapsedraw", "elapsed", "suspended", "timelimitraw", "timelimit", *CPUS, "nnodes", "allocnodes"),
    *("alloctres", "reqtres", "allocgres", "reqgres", "reqmem"),
    *("constraints", "reservation", "admincomment", "cluster", "qos"),
)
#: Columns that are numbers in a log with Unix seconds.
NUMBERS = ("submit", "eligible", "start", "end", "elapsedraw", "timelimitraw", *CPUS)
STEP = re.compile(r"[^.\s\[]+\.\S+")  # not 4_[1,3,...], an array with many tasks
#: States as sacct writes them, and their short forms.
STATES = {
    "BF": "BOOT_FAIL", "CA": "CANCELLED", "CD": "COMPLETED", "CF": "CONFIGURING", "CG": "COMPLETING",
    "DL": "DEADLINE", "F": "FAILED", "NF": "NODE_FAIL", "OOM": "OUT_OF_MEMORY", "PD": "PENDING", "PR": "PREEMPTED",
    "R": "RUNNING", "RD": "RESV_DEL_HOLD", "RQ": "REQUEUED", "RS": "RESIZING", "RV": "REVOKED", "S": "SUSPENDED",
    "SE": "SPECIAL_EXIT", "SI": "SIGNALING", "SO": "STAGE_OUT", "ST": "STOPPED", "TO": "TIMEOUT",
}  # fmt: skip

_ID = r"\d+(?:_\d+|_\[[^\]]*\]|\+\d+)?(?:\.\S+)?"
_TIME = r"|0|\d{9,11}|\d{4}-\d\d-\d\d[T ]\S+|Unknown|None|NONE|N/A"
_SPAN = r"(?:\d+-)?\d+:\d\d(?::\d\d)?(?:\.\d+)?"
_LIMITS = "UNLIMITED|Partition_Limit|INVALID|None|Unknown"
_STATE = rf"(?:{'|'.join(sorted({*STATES, *STATES.values()}, key=len, reverse=True))})(?: by \S+)?\+?"
_TRES = r"|[^=,|]+=[^=,|]+(?:,[^=,|]+=[^=,|]+)*"
_FEATURES = r"[\w.&|,*()\[\]:+/-]*"
#: Form of the cells of a column; a column that is not listed may hold anything.
_FORMS = {
    **dict.fromkeys(("jobidraw", "jobid"), _ID),
    **dict.fromkeys(("submit", "eligible", "start", "end"), _TIME),
    **dict.fromkeys((*CPUS, "nnodes", "allocnodes", "reqnodes"), r"|\d+(?:\.\d+)?[KM]?"),
    **dict.fromkeys(("alloctres", "reqtres"), _TRES),
    **dict.fromkeys(("user", "account", "group", "partition", "qos", "cluster", "reservation"), r"[^\s|=]*"),
    "nodelist": r"[^=|]*",
    "state": _STATE,
    "elapsedraw": r"\d*",
    **dict.fromkeys(("suspended", "elapsed"), f"|{_SPAN}"),
    "timelimitraw": rf"|\d+|{_LIMITS}",
    "timelimit": rf"|{_SPAN}|{_LIMITS}",
    "constraints": _FEATURES,
    "": "",  # after a final separator
}
FORMS = {name: re.compile(form) for name, form in _FORMS.items()}
#: Columns whose cells may hold the separator; `LISTS` only if it is a comma.
FREE = {"constraints", "jobname", "admincomment", "comment", "systemcomment", "submitline", "workdir", "reason"}
LISTS = {"alloctres", "reqtres", "allocgres", "reqgres", "nodelist", "partition", "reservation", "flags"}
#: Weights of columns, to choose among several readings of cells without a header.
_LIKELY = {
    **dict.fromkeys(("jobid", "jobidraw", "user", "partition", "qos"), 4),
    **dict.fromkeys(("reqtres", "reservation", "constraints", "admincomment"), -1),
}
_CONTENT = re.compile(rf"(?:^|([^\w \r]))(?:{_STATE})([^\w \r])")


def is_sacct(lines: Sequence[str], head: str) -> bool:
    """Whether the beginning of a file (its lines, its text) is sacct output with a header, or JSON."""
    if is_json(head):
        return True
    _, names = header_of(lines[0]) if lines else ("", [])
    if not {"jobid", "jobidraw"} & {*names}:
        return False
    return "|" in lines[0] or _is_ruled(lines) or not _missing(names)


def separator_of(lines: Sequence[str]) -> str:
    """Return the separator in rows without a header, found around the job states; "" if they are no sacct rows."""
    found = [match[2] for line in lines if (match := _CONTENT.search(line)) and match[1] in (None, match[2])]
    return Counter(found).most_common(1)[0][0] if 2 * len(found) > len(lines) else ""


def header_of(line: str) -> tuple[str, list[str]]:
    """Return a header's separator and its names in lower case; ("", []) if the line is no header."""
    match = re.match(r'\s*"?[A-Za-z]\w*"?([^\w"]+)"?[A-Za-z]', line)
    if match is None:
        return "", []
    separator = match[1].strip(" ") or " "
    cells = line.split() if separator == " " else line.strip("\r\n ").split(separator)
    return separator, [cell.strip(' "').lower() for cell in cells]


def _missing(names: Sequence[str]) -> list[str]:
    return [" or ".join(group) for group in NEEDED if not any(name.lower() in names for name in group)]


def _is_ruled(lines: Sequence[str]) -> bool:
    """Whether dashes below the header show fixed column widths."""
    return len(lines) > 1 and re.fullmatch(r"\s*-+(?: +-+)+\s*", lines[1]) is not None


@dataclass(frozen=True)
class _Converted(Source):
    """A file whose lines are converted while reading."""

    made: Callable[[], Iterator[bytes]] = lambda: iter(())

    def blocks(self) -> Iterator[bytes]:
        return self.made()


class Columns:
    """The columns of a sacct file, and its rows as `table`."""

    def __init__(self, source: Source) -> None:
        self.source = source
        head = source.read(1 << 16).decode("utf-8", "replace")
        numbered = [(at, line) for at, line in enumerate(head.split("\n"), start=1) if line.strip()]
        lines, line = [each for _, each in numbered], numbered[0][0]
        separator, names = header_of(lines[0])
        table = source
        if is_json(head):
            separator, names, line = SEPARATOR, [*JSON_COLUMNS], 0
            table = _Converted(source.path, made=lambda: lines_of(source))
        elif not {"jobid", "jobidraw"} & {*names}:
            separator = separator_of(lines[:200]) or "|"
            names, line = self._by_content([each.rstrip("\r").split(separator) for each in lines[:-1] or lines]), 0
        elif _is_ruled(lines):
            separator, line = SEPARATOR, numbered[1][0]
            names, table = self._ruled(lines, line)
        elif len(separator) > 1:
            between = separator.encode()
            table = _Converted(
                source.path, made=lambda: (block.replace(between, SEPARATOR.encode()) for block in source.blocks())
            )
            separator = SEPARATOR
        self._check(names, line, lines)
        self.names, self.separator = names, separator
        self.free = FREE | (LISTS if separator == "," else set())
        self.known: dict[str, set[str]] = {"qos": set(), "reservation": {""}}  #: values in unambiguous rows
        at = {name: names.index(name) for name in WANTED if name in names}
        numbers = {name: place for name, place in at.items() if name in NUMBERS}
        texts = {name: place for name, place in at.items() if name not in NUMBERS}
        quotes = separator in ",;\t" and '"' in head
        self.table = Table(table, separator, len(names), texts, numbers, line, quotes=quotes, errors="replace")

    @classmethod
    def of(cls, source: Source) -> Columns | None:
        """Read the columns of a file; None if it is empty."""
        return cls(source) if source.read(1 << 16).strip() else None

    def _check(self, names: Sequence[str], line: int, lines: Sequence[str]) -> None:
        """Raise `InputError` if a header lacks a required column or has one twice."""
        if missing := _missing(names):
            ids = [at for at, name in enumerate(names) if name in ("jobid", "jobidraw")]
            rows = [each.split("|") for each in lines]
            has_steps = any(STEP.fullmatch(row[at].strip()) for row in rows for at in ids if at < len(row))
            steps = "this is a listing of job steps, " if has_steps else ""
            message = f"{steps}no column {', '.join(missing)} among {', '.join(filter(None, names)) or 'nothing'}"
            raise self.source.error(message, f"make it with {COMMAND}", line=line)
        twice = next((name for name in names if name and list(names).count(name) > 1), None)
        if twice:
            raise self.source.error("two columns of this name", "keep one", line=line, field="column", value=twice)

    def _by_content(self, rows: list[list[str]]) -> list[str]:
        """Infer column names from the cells: the subsequence of `LISTED` that fits them."""
        width = Counter(map(len, rows)).most_common(1)[0][0]
        rows = [[cell.strip() for cell in row] for row in rows if len(row) == width]
        cells = list(zip(*rows, strict=True))
        names = LISTED.lower().split(",")
        names += [""] * (not any(cells[-1]) and width > len(names))
        fits = [[all(map(FORMS[name].fullmatch, cell)) if name in FORMS else True for cell in cells] for name in names]

        def ways(name: int, cell: int) -> Iterator[list[str]]:
            if cell == width:
                yield []
            elif len(names) - name >= width - cell:
                if fits[name][cell]:
                    yield from ([names[name], *rest] for rest in ways(name + 1, cell + 1))
                yield from ways(name + 1, cell)

        filled = [any(cell) for cell in cells]
        found: dict[tuple[str, ...], tuple[int, list[str]]] = {}
        for way in ways(0, 0):
            if not _missing(way):
                filled_in = {name for name, has in zip(way, filled, strict=True) if has}
                rank = sum(_LIKELY.get(name, 0) for name in filled_in)
                found.setdefault(tuple(name * has for name, has in zip(way, filled, strict=True)), (rank, way))
        best = max((rank for rank, _ in found.values()), default=0)
        chosen = [way for rank, way in found.values() if rank == best]
        if len(chosen) != 1:
            why = "can be read in several ways" if found else "do not say which columns they are"
            message = f"there is no header, and the cells {why}"
            raise self.source.error(message, f"leave out -n (--noheader), or make it with {COMMAND}", line=1)
        return chosen[0]

    def _ruled(self, lines: Sequence[str], header: int) -> tuple[list[str], _Converted]:
        """Return the names of columns of fixed width, and a source of their rows with a separator."""
        places = [match.span() for match in re.finditer("-+", lines[1])]
        widths, exact = [end - begin for begin, end in places], {*WANTED} - {"state", "elapsed"}
        names = [lines[0][begin:end].strip().rstrip("+").lower() for begin, end in places]
        whole = [[name for name in WANTED if name.startswith(cut)] for cut in names]  # names are cut off as well
        names = [
            each[0] if name not in WANTED and len(each) == 1 else name for name, each in zip(names, whole, strict=True)
        ]

        def made() -> Iterator[bytes]:
            first = 1
            for block in self.source.blocks():
                rows = []
                for number, raw in enumerate(block.decode("utf-8", "replace").splitlines(), start=first):
                    cells = [raw[begin:end].strip() for begin, end in places]
                    rows.append(SEPARATOR.join(cells))
                    for name, cell, width in zip(names, cells, widths, strict=True):
                        if number > header and name in exact and cell[-1:] == "+" and len(cell) == width:
                            message, fix = "is cut off at the width of its column", f"make it with {COMMAND}"
                            raise self.source.error(message, fix, line=number, field=name, value=cell)
                first += len(rows)
                yield "\n".join([*rows, ""]).encode()

        return names, _Converted(self.source.path, made=made)

    def cells(self, rows: Rows) -> tuple[pd.DataFrame, Column, Texts]:
        """Return the existing columns of `WANTED`, the line of each row, and its fault, "" if it is valid."""
        cells, lines, faults = rows.cells, rows.lines, np.full(rows.lines.size, "", dtype=object)
        for name in {*self.known} & {*cells}:
            self.known[name].update(cells[name].unique())
        if rows.odd:
            mended = [self._mended(odd.cells) for odd in rows.odd]
            at = {**self.table.texts, **self.table.numbers}
            more = pd.DataFrame({name: [row[place] for row, _ in mended] for name, place in at.items()}, dtype=object)
            cells = pd.concat([cells.astype(object), more], ignore_index=True)
            lines = np.append(lines, [odd.line for odd in rows.odd])
            faults = np.append(faults, np.array([fault for _, fault in mended], dtype=object))
        return cells, lines, faults

    def _mended(self, cells: list[str]) -> tuple[list[str], str]:
        """Split a row with too many cells; return its cells and its fault, "" if it can be read in one way."""
        cells, width = [cell.strip() for cell in cells], len(self.names)
        none = [cells[0][:40]] * width
        if len(cells) <= width:
            return none, f"{len(cells)} cells where the header has {width}"
        ways = {tuple(map(dict(zip(self.names, way, strict=True)).get, WANTED)): way for way in self._ways(cells, 0)}
        if not ways and not cells[-1]:  # --parsable ends with a separator
            return self._mended(cells[:-1]) if len(cells) > width + 1 else (cells[:-1], "")
        ranks = {key: self._rank(dict(zip(self.names, way, strict=True))) for key, way in ways.items()}
        best = [key for key, rank in ranks.items() if rank == max(ranks.values())]
        if len(best) == 1:
            return ways[best[0]], ""
        why = "which can be read in several ways" if ways else "none of which may hold more than one"
        return none, f"{len(cells)} cells where the header has {width}, {why}"

    def _rank(self, row: Mapping[str, str]) -> int:
        """Return the number of cells whose values occur in unambiguous rows."""
        return sum(
            row.get(name, "") in values if values else bool(row.get(name)) for name, values in self.known.items()
        )

    def _ways(self, cells: Sequence[str], at: int) -> Iterator[list[str]]:
        """Yield the ways to assign cells to the columns from `at` on; free columns may hold separators."""
        columns = len(self.names) - at
        name = self.names[at]
        form = FORMS.get(name)
        extra = len(cells) - columns
        for count in range(1, extra + 2) if name in self.free else (1,):
            cell = self.separator.join(cells[:count])
            if form is not None and not form.fullmatch(cell):
                continue
            if columns == 1:
                if count == len(cells):
                    yield [cell]
            else:
                yield from ([cell, *rest] for rest in self._ways(cells[count:], at + 1))
