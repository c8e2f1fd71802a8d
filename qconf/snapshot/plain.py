"""Snapshots of our own: ``jobs.csv``, and ``state.yaml`` with the time, the cores and what is out of service."""

from __future__ import annotations

import csv
import io
from collections import Counter
from datetime import tzinfo
from typing import Any

from qconf.errors import InputError
from qconf.history.times import instant
from qconf.snapshot.model import Closure, Job, Snapshot

COLUMNS = ("job_id", "cores", "walltime", "submit")


def read_plain(jobs: str, state: dict[str, Any], where: tzinfo, source: str) -> Snapshot:
    """Read a snapshot from a table of jobs and a mapping ``{now: ..., cores: ..., down: [...]}``."""

    def second(value: object) -> int:
        text = str(value)
        return int(text) if text.lstrip("-").isdigit() else instant(text, where)

    def fail(what: str, line: int | None = None, **more: Any) -> InputError:  # noqa: ANN401
        return InputError(what, file=source, line=line, **more)

    rows = list(csv.DictReader(io.StringIO(jobs)))
    missing = [name for name in COLUMNS if not rows or name not in rows[0]]
    if missing:
        raise fail(f"has no column {missing[0]}", fix=f"give job_id, user, queue, {', '.join(COLUMNS[1:])}, start")
    found = []
    for line, row in enumerate(rows, start=2):
        try:
            start = row.get("start") or None
            found.append(
                Job(
                    job_id=row["job_id"],
                    user=row.get("user") or "",
                    name=row.get("name") or "",
                    queue=row.get("queue") or "",
                    cores=int(row["cores"]),
                    walltime=int(row["walltime"] or 0),
                    submit=second(row["submit"]),
                    start=None if start is None else second(start),
                    held=row.get("held") or "",
                )
            )
        except ValueError as error:
            raise fail(f"not a job: {error}", line) from error
    try:
        now = second(state["now"])
        closures = tuple(
            Closure(str(each.get("name", "downtime")), second(each["begin"]), second(each["end"]), int(each["cores"]))
            for each in state.get("down", [])
        )
        cores = int(state["cores"]) if "cores" in state else None
    except (KeyError, ValueError, TypeError) as error:
        raise fail(f"state.yaml: {error}", fix="like {now: 2026-03-01T08:00, cores: 512, down: []}") from error
    return Snapshot(now, tuple(found), cores, closures, Counter())
