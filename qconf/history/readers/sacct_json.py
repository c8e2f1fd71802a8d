"""Convert the output of ``sacct --json``, of any version, to rows of cells."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from qconf.history.readers.sources import Source

SEPARATOR = "\x1f"  #: no cell contains it
COLUMNS = (
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
    """Yield one block with a line of `COLUMNS` per job. Raises `InputError` if the file is not sacct JSON."""
    try:
        document = json.loads(source.read())
        jobs = document["jobs"] if isinstance(document, dict) else document
        yield "".join(f"{SEPARATOR.join(_cells(job))}\n" for job in jobs).encode()
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


def _cells(job: Mapping[str, Any]) -> Iterator[str]:
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
        "alloctres": ",".join(map(_tres, of_job["allocated"])),
        "reqtres": ",".join(map(_tres, of_job["requested"])),
        "constraints": job.get("constraints"),
        "reservation": reservation.get("name") if isinstance(reservation, Mapping) else reservation,
        "qos": job.get("qos"),
        "admincomment": comment.get("administrator") if isinstance(comment, Mapping) else "",
    }
    return (re.sub(r"[\x1f\r\n]", " ", str(cells[name] or "")) for name in COLUMNS)


def _of_zero(value: Any) -> int | None:  # noqa: ANN401 - of a JSON document
    return 0 if value == 0 and not isinstance(value, bool) else number(value)


def _tres(each: Mapping[str, Any]) -> str:
    """Write a TRES as sacct's text output does: memory in MiB."""
    name = f"/{each['name']}" if each.get("name") else ""
    return f"{each['type']}{name}={each['count']}{'M' * (each['type'] == 'mem')}"
