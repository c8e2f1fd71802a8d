"""Logs in any of the formats; each file is recognised by its content."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

from qconf.errors import InputError
from qconf.history.readers.csv import ALIASES, INSTEAD, NODE_ALIASES, REQUIRED, read_csv
from qconf.history.readers.pbs import read_pbs
from qconf.history.readers.sacct import read_sacct
from qconf.history.readers.sources import Source, find_sources
from qconf.history.readers.swf import read_swf
from qconf.history.records import Records

#: Reasons for which a record of a log is dropped that cannot be read.
UNREADABLE = (
    *("torn last line", "not a job record", "not an accounting record", "not a sacct row"),
    *("absurd value", "ends before it starts"),
)
READERS: dict[str, Callable[..., Records]] = {"swf": read_swf, "csv": read_csv, "pbs": read_pbs, "sacct": read_sacct}

PBS = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Za-z]{1,2};")
SWF = re.compile(r"\s*(-?\d+(\.\d*)?\s+){17}-?\d+(\.\d*)?\s*$")


def read(
    paths: Sequence[str | Path] | str | Path,
    *,
    format: str = "auto",  # noqa: A002
    timezone: str = "UTC",
    date_format: str | None = None,
    cores_per_node: int | None = None,
    strict: bool = False,
) -> Records:
    """Read one or many files of one format, gzip or not; a folder stands for the files in it, by name.

    The format is ``auto``, which looks at the content, or one of `READERS`. Local times in CSV and sacct files are
    those of `timezone`, like ``Europe/Stockholm``; PBS and SWF carry Unix times. Months are counted in it, those of SWF
    in the zone of its header. `date_format` is the strptime format of times in CSV, `cores_per_node` multiplies nodes
    in one that has no cores. What cannot be read is dropped; with `strict` the first such record raises `InputError`.
    So does what makes no sense in a whole file, naming file, line, field and value.
    """
    if format not in ("auto", *READERS):
        raise InputError("unknown format", field="format", value=format, fix=f"one of auto, {', '.join(READERS)}")
    sources = find_sources(paths)
    filled = [source for source in sources if source.read(4096).strip()]
    if not filled:
        raise InputError("the file is empty", file=sources[0].path, fix="give a log with jobs in it")
    found = {source.path: format if format != "auto" else recognise(source) for source in filled}
    kinds = sorted(set(found.values()))
    if len(kinds) > 1:
        first, other = (next(path for path, kind in found.items() if kind == wanted) for wanted in kinds[:2])
        message = f"is {kinds[1]}, but {first} is {kinds[0]}"
        raise InputError(message, file=other, fix="read files of one format at a time")
    if kinds == ["csv"]:
        return read_csv(filled, timezone, date_format=date_format, cores_per_node=cores_per_node, strict=strict)
    if date_format is not None:
        message = f"the times of {kinds[0]} have one form"
        raise InputError(message, file=filled[0].path, field="--date-format", value=date_format, fix="leave it out")
    records = READERS[kinds[0]](filled, timezone=timezone)
    if strict:
        _refuse_unreadable(records, [str(source.path) for source in filled])
    return records


def _refuse_unreadable(records: Records, files: list[str]) -> None:
    """Raise `InputError` for the first record that is none by its form; others are dropped for what they say."""
    drops = records.dropped[records.dropped["reason"].isin(UNREADABLE)]
    if len(drops):
        places = zip(map(files.index, drops["file"]), drops["line"], drops["reason"], drops["detail"], strict=True)
        file, line, reason, detail = min(places)
        raise InputError(f"{reason}: {detail}", file=files[file], line=line, fix="correct or remove the line")


def recognise(source: Source) -> str:
    """Return the format of a file, by its first lines; `InputError` if they look like none."""
    head = source.read(1 << 16).decode("utf-8", "replace").removeprefix("\ufeff")
    lines = [line for line in head.splitlines() if line.strip()][:40]
    if any(PBS.match(line) for line in lines):
        return "pbs"
    first = lines[0] if lines else ""
    names = {name.strip().lower() for name in re.split(r"[|,;\t]", first)}
    if "|" in first and names & {"jobid", "jobidraw"}:
        return "sacct"
    if len(names & {*REQUIRED, *ALIASES, *NODE_ALIASES, *chain(*INSTEAD.values())}) >= 2:
        return "csv"
    if first.lstrip().startswith(";") or any(SWF.match(line.split(";")[0]) for line in lines):
        return "swf"
    message = "not recognised as SWF, history CSV, PBS accounting log or sacct output"
    fix = f"a CSV starts with {','.join(REQUIRED)}; qconf import also takes --format"
    raise source.error(message, fix, line=1, field="first line", value=first[:60])
