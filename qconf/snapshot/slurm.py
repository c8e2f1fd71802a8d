"""Snapshots of Slurm: ``squeue --json``, ``sinfo --json`` or ``scontrol show node --json``, ``scontrol show res``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, tzinfo
from typing import Any

from qconf.history.chunks import UNREADABLE, of_tres, written
from qconf.history.closures import is_shortpool, of_scontrol
from qconf.history.needs import ENDED_SLURM, waits_for, words
from qconf.history.readers.sacct_columns import number
from qconf.snapshot.model import Closure, Job, Snapshot, host_names, indices

CLOSED = re.compile(r"DOWN|DRAIN|FAIL|MAINT|POWERED_DOWN|UNKNOWN|FUTURE")

LICENCE = re.compile(r"([^,;|:]+)(?::(\d+))?")  #: a name, and a count

RESERVATION = "reservation "  #: prefix of a reservation's name when it stands for a queue


def read_slurm(documents: list[dict[str, Any]], reservations: str, where: tzinfo, now: int | None) -> Snapshot:
    """Read a snapshot from JSON documents and the text of scontrol; `now` is its time, if no document has one."""
    warnings: Counter[str] = Counter()
    listed = [job for doc in documents for job in doc.get("jobs", [])]
    stamps = [number(doc.get("last_update")) for doc in documents if "jobs" in doc]
    now = next((stamp for stamp in stamps if stamp), None) or now
    if now is None:
        now = max((number(job.get(key)) or 0 for job in listed for key in ("submit_time", "start_time")), default=0)
        warnings["no time of the snapshot: the last time of a job stands for it"] += 1
    nodes = _nodes(documents, warnings)
    cores = sum(size for size, _ in nodes.values())
    closures = _reservations(reservations, where, sorted((size for size, _ in nodes.values()), reverse=True), warnings)
    reserved = {closure.queue for closure in closures}
    jobs = [made for job in listed for made in _jobs(job, now, reserved, warnings)]
    closures += [
        Closure(f"node {name}", now, None, size, node=name)
        for name, (size, state) in nodes.items()
        if size and CLOSED.search(state)
    ]
    named = tuple(name for name, (size, _) in nodes.items() if size)
    return Snapshot(now, tuple(jobs), cores or None, tuple(closures), warnings, named)


def _hosts(text: str, warnings: Counter[str]) -> tuple[str, ...]:
    """Return the node names of a host list; warn if it cannot be read."""
    found = host_names(text)
    if text and not found:
        warnings["names of nodes that cannot be read are left out"] += 1
    return found


def _nodes(documents: list[dict[str, Any]], warnings: Counter[str]) -> dict[str, tuple[int, str]]:
    """Return cores and state by node, from scontrol or older sinfo (nodes) and from newer sinfo (groups)."""
    found = {}
    for doc in documents:
        for node in doc.get("nodes", []):
            if "name" in node:
                found[node["name"]] = number(node.get("cpus")) or 0, _state([node, node.get("state_flags", [])])
        for group in doc.get("sinfo", []):
            names, cpus = group.get("nodes", {}).get("nodes", []), group.get("cpus", {})
            for name in _hosts(",".join(names), warnings):
                found[name] = number(cpus.get("maximum")) or 0, _state([group.get("node", {})])
    return found


def _state(parts: list[Any]) -> str:
    words: list[str] = []
    for part in parts:
        state = part.get("state", "") if isinstance(part, dict) else part
        words += state if isinstance(state, list) else [str(state)]
    return " ".join(map(str, words)).upper()


def _jobs(job: dict[str, Any], now: int, reserved: set[str], warnings: Counter[str]) -> Iterator[Job]:
    """Yield a job, or each waiting task of an array."""
    state = job.get("job_state", "")
    state = state[0] if isinstance(state, list) and state else str(state)
    if state not in ("RUNNING", "PENDING", "SUSPENDED", "CONFIGURING"):
        if state not in ("COMPLETING", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED"):
            warnings[f"state {state} of a job is unknown: it is left out"] += 1
        return
    cores, submit = number(job.get("cpus")), number(job.get("submit_time"))
    if not cores or submit is None:
        warnings["a job without cores or time of submission is left out"] += 1
        return
    if submit > now:
        warnings["a job was submitted after the snapshot: clocks are apart"] += 1
    array, pending = number(job.get("array_job_id")), state == "PENDING"
    minutes = number(job.get("time_limit"))
    reason, eligible = str(job.get("state_reason", "")), number(job.get("eligible_time"))
    after = waits_for(str(job.get("dependency") or ""), ENDED_SLURM) if pending else []
    licences = {name: int(count or 1) for name, count in LICENCE.findall(str(job.get("licenses") or ""))}
    tres = str(job.get("tres_req_str" if pending else "tres_alloc_str") or "")
    chunks, readable = written(of_tres, tres, str(job.get("features") or ""))
    if not readable:
        warnings[UNREADABLE] += 1
    reservation = f"{RESERVATION}{job.get('resv_name') or ''}"
    made = Job(
        job_id=str(job.get("job_id")),
        user=str(job.get("user_name", "")),
        name=str(job.get("name", "")),
        queue=reservation if reservation in reserved else str(job.get("partition", "")).split(",")[0],
        cores=cores,
        walltime=60 * minutes if minutes else 0,
        submit=min(submit, now),
        start=None if pending else number(job.get("start_time")) or now,
        held=reason if pending and re.search(r"Held|DependencyNever" if after else r"Held|Dependency", reason) else "",
        needs=words(after, licences, str(array or ""), number(job.get("array_max_tasks")) or 0, chunks),
        not_before=eligible if pending and eligible and eligible > now else None,
        qos=str(job.get("qos") or ""),
        account=str(job.get("account") or ""),
        on=() if pending else tuple((name, 0) for name in _hosts(str(job.get("nodes") or ""), warnings)),
    )
    tasks = indices(str(job.get("array_task_string") or "")) if pending else []
    task = job.get("array_task_id")
    task = task.get("number") if isinstance(task, dict) and task.get("set") else task
    if array and not tasks and isinstance(task, int):
        tasks = [task]
    yield from (replace(made, job_id=f"{array}_{each}") for each in tasks) if array and tasks else [made]


def _reservations(text: str, where: tzinfo, sizes: list[int], warnings: Counter[str]) -> list[Closure]:
    closures = []
    for fields in of_scontrol(text):
        if is_shortpool(fields["ReservationName"]):
            continue
        try:
            begin, end = (
                int(datetime.fromisoformat(fields[key]).replace(tzinfo=where).timestamp())
                for key in ("StartTime", "EndTime")
            )
            cores = int(fields.get("CoreCnt") or 0)
        except (KeyError, ValueError):
            warnings["a reservation without times or cores is left out"] += 1
            continue
        of_nodes = int(fields["NodeCnt"]) if fields.get("NodeCnt", "").isdigit() else 0
        cores = max(cores, sum(sizes[:of_nodes]))
        if cores and begin < end:
            name = RESERVATION + fields["ReservationName"]
            queue = "" if "MAINT" in fields.get("Flags", "") else name
            named = fields.get("Nodes", "").replace("(null)", "")
            closures.append(Closure(name, begin, end, cores, queue, nodes=_hosts(named, warnings)))
    return closures
