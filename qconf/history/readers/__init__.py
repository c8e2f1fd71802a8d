"""Read logs in any supported format; the content of a file shows its format."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from qconf.config import SiteConfig
from qconf.errors import InputError
from qconf.history.readers.columns import REQUIRED, looks_like_jobs
from qconf.history.readers.csv import read_csv
from qconf.history.readers.formats import is_header, kind_of, split_header
from qconf.history.readers.pbs import read_pbs
from qconf.history.readers.sacct import read_sacct
from qconf.history.readers.sacct_columns import is_sacct, separator_of
from qconf.history.readers.sources import Source, find_sources
from qconf.history.readers.swf import read_swf
from qconf.history.records import Drop, Records, drop_table, without_repeats

#: Drop reasons of records that cannot be read.
UNREADABLE = (
    *("torn line", "torn last line", "not a job record", "not an accounting record", "not a sacct row"),
    *("absurd value", "ends before it starts"),
)
READERS: dict[str, Callable[..., Records]] = {"swf": read_swf, "csv": read_csv, "pbs": read_pbs, "sacct": read_sacct}

PBS = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Za-z]{1,2};")
SWF = re.compile(r"\s*(-?\d+(\.\d*)?\s+){17}-?\d+(\.\d*)?\s*$")
SREPORT = re.compile(r"(?m)^Usage reported in |^Cluster\|.*\|(?:Used|Energy|Allocated)\b")

LEFT_OUT = "file left out"


def read(
    paths: Sequence[str | Path] | str | Path,
    *,
    format: str = "auto",  # noqa: A002
    timezone: str = "UTC",
    date_format: str | None = None,
    cores_per_node: int | None = None,
    strict: bool = False,
    columns: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    unpacked: int | None = None,
    of_tables: Mapping[str, Any] | None = None,
) -> Records:
    """Read one or many files of one format, packed or not; a folder stands for the files in it, by name.

    `format` is ``auto`` (detected by content) or one of `READERS`; ``csv`` is any table. `timezone`, like
    ``Europe/Stockholm``, is the zone of local times in CSV and sacct files (PBS and SWF have Unix times) and of
    calendar months (SWF: the zone in its header). For tables, `date_format` is the strptime format of times, `columns`
    names the columns, `units` gives the units of their numbers, and `cores_per_node` converts nodes to cores if there
    is no column of cores. `of_tables` holds defaults of the first three, ignored for other formats. `unpacked` is the
    limit of a file's unpacked size in bytes, by default that of `Source`. Unreadable records, and unreadable files of
    a folder, are dropped; with `strict` the first one raises `InputError`, as does a file that makes no sense at all.
    """
    if format not in ("auto", *READERS):
        raise InputError("unknown format", field="format", value=format, fix=f"one of auto, {', '.join(READERS)}")
    sources = find_sources(paths, unpacked)
    site = of_tables or {}
    known: dict[str, Any] = {"date_format": date_format or site.get("date_format")}
    known |= {name: {**site.get(name, {}), **(each or {})} for name, each in (("columns", columns), ("units", units))}
    out: dict[Source, InputError] = {}  # unreadable files of folders
    while True:
        left = [source for source in sources if source not in out]
        try:
            kind, filled = _same_kind(left, format, known["columns"], out, strict=strict)
            how: dict[str, Any] = {"timezone": timezone}
            if kind == "csv":
                how |= {**known, "cores_per_node": cores_per_node, "strict": strict}
            else:
                of_tables_only = {"--date-format": date_format, "--columns": columns, "--units": units}
                _refuse_of_tables(kind, filled[0], of_tables_only)
            records = READERS[kind](filled, **how)
            break
        except InputError as error:
            bad = next((source for source in left if str(source.path) == str(error.file)), None)
            if strict or bad is None or not bad.in_folder or len(left) == 1:
                raise
            out[bad] = error
    if kind in ("csv", "swf"):  # others tell the runs of a job
        records = without_repeats(records)
    if strict:
        _refuse_unreadable(records, [str(source.path) for source in filled])
    if not out:
        return records
    drops = [Drop("", str(source.path), 1, f"{LEFT_OUT}: {error}", str(error)) for source, error in out.items()]
    return replace(records, dropped=pd.concat([records.dropped, drop_table(drops)], ignore_index=True))


def as_configured(
    config: SiteConfig | None, timezone: str | None = None, cores_per_node: int | None = None
) -> dict[str, Any]:
    """Return the arguments of `read` for the logs of a configuration's site; those given here count first."""
    site = None if config is None else config.history
    if cores_per_node is None and config is not None and "cores_per_node" in config.machine.model_fields_set:
        cores_per_node = config.machine.cores_per_node
    of_tables = {} if site is None else {name: getattr(site, name) for name in ("columns", "units", "date_format")}
    zone = timezone or (site and site.timezone) or "UTC"
    return {"timezone": zone, "cores_per_node": cores_per_node, "of_tables": of_tables}


def _same_kind(
    sources: Sequence[Source], wanted: str, columns: Mapping[str, str], out: dict[Source, InputError], *, strict: bool
) -> tuple[str, list[Source]]:
    """Return the common format and the files that have it; empty files are skipped, a folder's odd ones go to `out`."""
    found: dict[Source, str] = {}
    for source in sources:
        try:
            if source.read(4096).strip():
                found[source] = wanted if wanted != "auto" else recognise(source, columns)
        except InputError as error:
            if strict or not source.in_folder or len(sources) == 1:
                raise
            out[source] = error
    if not found:
        if out:
            raise next(iter(out.values()))
        raise InputError("the file is empty", file=sources[0].path, fix="give a log with jobs in it")
    counts = Counter(found.values()).most_common()
    kinds = sorted(counts, key=lambda item: (-item[1], item[0]))
    kind = kinds[0][0]
    for source, other in found.items():
        if other == kind:
            continue
        first = next(each for each, of in found.items() if of == kind)
        fix = "read files of one format at a time"
        mixed = InputError(f"is {other}, but {first.path} is {kind}", file=source.path, fix=fix)
        if strict or not source.in_folder or counts[0][1] == counts[1][1]:
            raise mixed
        out[source] = mixed
    return kind, [source for source, of in found.items() if of == kind]


def _refuse_of_tables(kind: str, source: Source, given: Mapping[str, object]) -> None:
    """Refuse an option that applies only to tables."""
    for option, value in given.items():
        if value:
            message = f"the times of {kind} have one form" if option == "--date-format" else f"{kind} is no such table"
            shown = value if isinstance(value, str) else None
            raise InputError(message, file=source.path, field=option, value=shown, fix="leave it out")


def _refuse_unreadable(records: Records, files: list[str]) -> None:
    """Raise `InputError` for the first malformed record; other drops are due to a record's values."""
    drops = records.dropped[records.dropped["reason"].isin(UNREADABLE)]
    if len(drops):
        places = zip(map(files.index, drops["file"]), drops["line"], drops["reason"], drops["detail"], strict=True)
        file, line, reason, detail = min(places)
        raise InputError(f"{reason}: {detail}", file=files[file], line=line, fix="correct or remove the line")


def recognise(source: Source, columns: Mapping[str, str] | None = None) -> str:
    """Return the format of a file, one of `READERS`, by its first lines; `InputError` if they match none."""
    data = source.read(1 << 16)
    head = data.decode("utf-8", "replace")
    lines = [line for line in head.splitlines() if line.strip()][:40]
    if not columns and is_sacct(lines, head):
        return "sacct"
    if kind_of(data) != "lines":
        return "csv"
    if any(PBS.search(line) for line in lines):
        return "pbs"
    first = lines[0] if lines else ""
    names, _ = split_header(next(filter(is_header, lines), first))
    if looks_like_jobs(names, columns or {}):
        return "csv"
    if first.lstrip().startswith(";") or any(SWF.match(line.split(";")[0]) for line in lines):
        return "swf"
    if separator_of(lines):
        return "sacct"
    if SREPORT.search(head):
        fix = "give the jobs: sacct -a -D --parsable2 with the columns that the manual names"
        raise source.error("is a report of use by sreport, which names no jobs", fix, line=1)
    message = "not recognised as a table of jobs, SWF, PBS accounting log or sacct output"
    fix = f"a table has a header like {','.join(REQUIRED)}; --columns says which of its columns are these"
    raise source.error(message, fix, line=1, field="first line", value=first[:60])
