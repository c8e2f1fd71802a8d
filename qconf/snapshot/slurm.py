"""Snapshots of Slurm: ``squeue --json``, ``sinfo --json`` or ``scontrol show node --json``, ``scontrol show res``."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime, tzinfo
from typing import Any

from qconf.snapshot.model import Closure, Job, Snapshot

CLOSED = re.compile(r"DOWN|DRAIN|FAIL|MAINT|POWERED_DOWN|UNKNOWN|FUTURE")


def number(value: Any) -> int | None:  # noqa: ANN401 - of a JSON document
    """Return a number as older and newer versions write it: plain, or an object that says whether it is set."""
    if isinstance(value, dict):
        return int(value["number"]) if value.get("set") and not value.get("infinite") else None
    return int(value) if isinstance(value, int) and value > 0 else None


def read_slurm(documents: list[dict[str, Any]], reservations: str, where: tzinfo, now: int | None) -> Snapshot:
    """Read a snapshot from its JSON documents and what scontrol printed; `now` where they do not say it."""
    warnings: Counter[str] = Counter()
    listed = [job for doc in documents for job in doc.get("jobs", [])]
    stamps = [number(doc.get("last_update")) for doc in documents if "jobs" in doc]
    now = next((stamp for stamp in stamps if stamp), None) or now
    if now is None:
        now = max((number(job.get(key)) or 0 for job in listed for key in ("submit_time", "start_time")), default=0)
        warnings["no time of the snapshot: the last time of a job stands for it"] += 1
    jobs = [made for job in listed if (made := _job(job, now, warnings)) is not None]
    nodes = {node["name"]: node for doc in documents for node in doc.get("nodes", []) if "name" in node}
    cores = sum(number(node.get("cpus")) or 0 for node in nodes.values())
    closures = _reservations(reservations, where, nodes, warnings)
    for name, node in nodes.items():
        state = node.get("state", "")
        words = " ".join(state if isinstance(state, list) else [str(state), *node.get("state_flags", [])]).upper()
        if CLOSED.search(words) and number(node.get("cpus")):
            closures.append(Closure(f"node {name}", now, None, number(node.get("cpus")) or 0))
    return Snapshot(now, tuple(jobs), cores or None, tuple(closures), warnings)


def _job(job: dict[str, Any], now: int, warnings: Counter[str]) -> Job | None:
    state = job.get("job_state", "")
    state = state[0] if isinstance(state, list) and state else str(state)
    if state not in ("RUNNING", "PENDING", "SUSPENDED", "CONFIGURING"):
        if state not in ("COMPLETING", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED"):
            warnings[f"state {state} of a job is unknown: it is left out"] += 1
        return None
    cores, submit = number(job.get("cpus")), number(job.get("submit_time"))
    if not cores or submit is None:
        warnings["a job without cores or time of submission is left out"] += 1
        return None
    task = number(job.get("array_task_id"))
    array = number(job.get("array_job_id"))
    minutes = number(job.get("time_limit"))
    reason, eligible = str(job.get("state_reason", "")), number(job.get("eligible_time"))
    pending = state == "PENDING"
    return Job(
        job_id=f"{array}_{task}" if array and task is not None else str(job.get("job_id")),
        user=str(job.get("user_name", "")),
        name=str(job.get("name", "")),
        queue=str(job.get("partition", "")).split(",")[0],
        cores=cores,
        walltime=60 * minutes if minutes else 0,
        submit=min(submit, now),
        start=None if pending else number(job.get("start_time")),
        held=reason if pending and re.search(r"Held|Dependency", reason) else "",
        not_before=eligible if pending and eligible and eligible > now else None,
    )


def _reservations(text: str, where: tzinfo, nodes: dict[str, Any], warnings: Counter[str]) -> list[Closure]:
    closures = []
    for block in re.split(r"(?=ReservationName=)", text):
        fields = dict(re.findall(r"(\w+)=(\S*)", block))
        if "ReservationName" not in fields:
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
        if of_nodes and nodes:
            sizes = sorted((number(node.get("cpus")) or 0 for node in nodes.values()), reverse=True)
            cores = max(cores, sum(sizes[:of_nodes]))
        if cores and begin < end:
            closures.append(Closure(f"reservation {fields['ReservationName']}", begin, end, cores))
    return closures
