"""Snapshots in our own format: ``jobs.csv`` or ``jobs.yaml``, and ``state.yaml`` with time, cores and closures."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import Any

import yaml

from qconf.config import parse_duration
from qconf.errors import InputError
from qconf.history.needs import wrong
from qconf.history.times import instant
from qconf.hosts import expand, hosts_in
from qconf.snapshot.model import Closure, Job, Snapshot

STATE = ("now", "cores", "down")
DOWN = ("name", "begin", "end", "cores", "queue", "nodes")
COLUMNS = ("job_id", "cores", "walltime", "submit")


def read_plain(texts: Mapping[Path, str], folder: Path, where: tzinfo) -> Snapshot:
    """Read a snapshot from a table of jobs and a mapping ``{now: ..., cores: ..., down: [...]}``."""
    source = folder / "jobs.csv" if folder / "jobs.csv" in texts else folder / "jobs.yaml"
    warnings: Counter[str] = Counter()
    rows = list(_rows(source, texts[source]))
    missing = [name for name in COLUMNS if not rows or name not in rows[0][1]]
    if missing:
        fix = f"give job_id, user, queue, {', '.join(COLUMNS[1:])}, start"
        raise InputError(f"has no column {missing[0]}", file=source, fix=fix)
    jobs, faults = [], []
    for line, row in rows:
        try:
            jobs.append(_job(row, where))
        except (KeyError, TypeError, ValueError) as error:
            faults.append((line, str(error)))
    if faults and not jobs:
        raise InputError(f"not a job: {faults[0][1]}", file=source, line=faults[0][0])
    if faults:
        warnings[f"{source.name}:{faults[0][0]}: not a job, and left out: {faults[0][1]}"] = len(faults)
    state = _yaml(folder / "state.yaml", texts.get(folder / "state.yaml", ""))
    try:
        _refuse_others(state, STATE)
        for each in state.get("down") or []:
            _refuse_others(each, DOWN)
        now = _second(state["now"], where)
        closures = tuple(closure for each in state.get("down") or [] for closure in _closures(each, now, where))
        cores = int(state["cores"]) if "cores" in state else None
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        fix = "like {now: 2026-03-01T08:00, cores: 512, down: []}"
        raise InputError(f"is no state: {error}", file=folder / "state.yaml", fix=fix) from error
    return Snapshot(now, tuple(jobs), cores, closures, warnings)


def _closures(given: Mapping[str, Any], now: int, where: tzinfo) -> Iterator[Closure]:
    """Yield a downtime; nodes that are down now without a known end get one closure each."""
    name, begin, cores = str(given.get("name", "downtime")), _second(given["begin"], where), int(given["cores"])
    end = None if given.get("end") is None else _second(given["end"], where)
    queue, text = str(given.get("queue", "")), str(given.get("nodes", ""))
    if text and not hosts_in(text):
        raise ValueError(f"nodes: {text} is no list of hosts like gpu[01-16],login1")
    nodes = tuple(dict.fromkeys(expand(text)))
    if not nodes or queue or end is not None or begin > now:
        yield Closure(name, begin, end, cores, queue, nodes=nodes)
        return
    for k, node in enumerate(nodes):
        yield Closure(name, begin, end, cores // len(nodes) + (k < cores % len(nodes)), node=node)


def _refuse_others(given: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raise ValueError for an unknown key."""
    if other := next((name for name in given if name not in known), None):
        raise ValueError(f"{other} is none of {', '.join(known)}")


def _rows(source: Path, text: str) -> Iterator[tuple[int | None, Mapping[str, Any]]]:
    """Yield the jobs with their line numbers."""
    if source.suffix == ".csv":
        yield from enumerate(csv.DictReader(io.StringIO(text)), start=2)
        return
    found = _yaml(source, text)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise InputError("is no list of jobs", file=source, fix="like [{job_id: 7, cores: 4, walltime: 3600, ...}]")
    yield from ((None, each) for each in found)


def _yaml(path: Path, text: str) -> Any:  # noqa: ANN401 - of a YAML document
    try:
        return yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise InputError("is no YAML", file=path, line=mark.line + 1 if mark else None) from error


def _second(value: object, where: tzinfo) -> int:
    text = str(value)
    return int(text) if text.lstrip("-").isdigit() else instant(text, where)


def _duration(value: object) -> int:
    text = str(value or 0)
    return int(text) if text.isdigit() else parse_duration(text)


def _job(row: Mapping[str, Any], where: tzinfo) -> Job:
    start, cores, walltime = row.get("start") or None, int(row["cores"]), _duration(row["walltime"])
    if cores < 1 or walltime < 0:
        raise ValueError(f"{cores} cores for {walltime} s")
    needs = str(row.get("needs") or "")
    if bad := wrong(needs):
        forms = "after:JOB, licence:NAME:COUNT, array:NAME:COUNT, chunk:COUNT:PARTS with place:scatter,excl"
        raise ValueError(f"needs: {bad} is none of {forms}")
    return Job(
        job_id=str(row["job_id"]),
        user=str(row.get("user") or ""),
        name=str(row.get("name") or ""),
        queue=str(row.get("queue") or ""),
        cores=cores,
        walltime=walltime,
        submit=_second(row["submit"], where),
        start=None if start is None else _second(start, where),
        held=str(row.get("held") or ""),
        needs=needs,
    )
