"""Snapshots of PBS: ``qstat -f`` (with ``-t`` also subjobs), ``pbsnodes -a``, as text or JSON, and ``pbs_rstat -F``.

Torque prints the same text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, tzinfo
from typing import Any

from qconf.errors import InputError
from qconf.history.chunks import UNREADABLE, of_select, wanted_chunks, written
from qconf.history.closures import is_shortpool
from qconf.history.needs import waits_for, words
from qconf.history.readers.pbs_record import OWN, project
from qconf.history.torque import is_in_form, requested, slots
from qconf.snapshot.model import Closure, Job, Snapshot, indices

OVER = {"X", "F", "E", "M", "C"}  #: states: finished, exiting, moved; in Torque complete
CLOSED = re.compile(r"down|offline|unknown|stale|maintenance|sleep")
VNODE = re.compile(r"([\w.-]+(?:\[\d+\])?)((?::\w+=[^:+()]+)+)")  #: a node, with a job's resources there
WHEN = ("%a %b %d %H:%M:%S %Y", "%a %d %b %Y %H:%M:%S")


def clock(text: object, where: tzinfo) -> int | None:
    """Return a PBS date as Unix seconds; None if it is not a date."""
    for form in WHEN:
        try:
            return int(datetime.strptime(str(text).strip(), form).replace(tzinfo=where).timestamp())
        except ValueError:
            continue
    return None


def duration(text: object) -> int:
    """Return the seconds of HH:MM:SS or of a number of seconds; 0 for other text."""
    parts = str(text).split(":")
    if not all(part.isdigit() for part in parts) or len(parts) > 3:
        return 0
    seconds = 0
    for part in parts:
        seconds = 60 * seconds + int(part)
    return seconds


def read_pbs(documents: list[dict[str, Any]], reservations: str, where: tzinfo, taken: int | None = None) -> Snapshot:
    """Read a snapshot from JSON documents and the text of pbs_rstat; `taken` is its time, if no document has one."""
    warnings: Counter[str] = Counter()
    held = max((doc for doc in documents if "Jobs" in doc), key=lambda doc: len(doc["Jobs"]))
    now = _time(held, documents, where, taken, warnings)
    jobs = _jobs(held["Jobs"], now, where, warnings)
    cores, closures = None, _reservations(reservations, where, warnings)
    nodes: tuple[str, ...] = ()
    for doc in documents:
        total = sum(map(_cores_of, doc.get("nodes", {}).values()))
        if total and (cores is None or total > cores):
            cores = total
            if abs(int(doc.get("timestamp", now)) - now) > 600:
                warnings["jobs and nodes were printed more than ten minutes apart"] += 1
            lost = {
                name: _cores_of(node)
                for name, node in doc["nodes"].items()
                if CLOSED.search(str(node.get("state", "")))
            }
            nodes = tuple(name for name, node in doc["nodes"].items() if _cores_of(node))
            closures = [each for each in closures if not each.node]
            closures += [Closure(f"node {name}", now, None, here, node=name) for name, here in lost.items() if here]
    return Snapshot(now, tuple(jobs), cores, tuple(closures), warnings, nodes)


def _time(
    held: dict[str, Any], documents: list[dict[str, Any]], where: tzinfo, taken: int | None, warnings: Counter[str]
) -> int:
    """Return when the jobs were printed, else the nodes, else `taken`, else the last time in a job."""
    stamps = [int(doc["timestamp"]) for doc in (held, *documents) if str(doc.get("timestamp", "")).isdigit()]
    if stamps or taken is not None:
        return [*stamps, taken or 0][0]
    known = [time for job in held["Jobs"].values() if isinstance(job, dict) for time in _times(job, where)]
    if not known:
        raise InputError("tells no time", field="timestamp", fix="write what date +%s prints into a file taken_at")
    last = datetime.fromtimestamp(max(known), where)
    warnings[
        f"no file says when jobs were printed: {last:%Y-%m-%d %H:%M:%S} is taken, the latest time that a job tells; "
        "write what date +%s prints into a file taken_at"
    ] += 1
    return max(known)


def _times(job: dict[str, Any], where: tzinfo) -> Iterator[int]:
    """Yield instants that were over when a job was printed."""
    used = job.get("resources_used")
    ran = duration(used.get("walltime", 0)) if isinstance(used, dict) else 0
    for key, since in (
        *(("mtime", 0), ("ctime", 0), ("etime", duration(job.get("eligible_time", 0)))),
        *(("stime", ran), ("start_time", ran)),
    ):
        if (time := clock(job.get(key), where)) is not None:
            yield time + since


def _cores_of(node: dict[str, Any]) -> int:
    """Return the cores of a node, in Torque its processors."""
    return _ncpus(node.get("resources_available")) or _ncpus({"ncpus": node.get("np", 0)})


def _ncpus(resources: Any) -> int:  # noqa: ANN401 - of a JSON document
    found = resources.get("ncpus", 0) if isinstance(resources, dict) else 0
    return int(found) if str(found).isdigit() else 0


def _jobs(found: dict[str, Any], now: int, where: tzinfo, warnings: Counter[str]) -> list[Job]:
    jobs = []
    subjobs = {name.split("[")[0] for name in found if re.search(r"\[\d+\]", name)}
    for name, job in found.items():
        if not isinstance(job, dict):
            warnings["a job without attributes is left out"] += 1
            continue
        state, wanted = str(job.get("job_state")), job.get("Resource_List", {})
        if state in OVER:
            continue
        if "[]" in name and name.split("[")[0] in subjobs:
            continue  # its subjobs are listed
        if state not in "RQHWTSUB":
            warnings[f"state {state} of a job is unknown: it is taken to wait"] += 1
        cores, submit = _ncpus(wanted), clock(job.get("ctime"), where)
        if not wanted.get("select") and is_in_form(wanted):  # of Torque
            cores = requested(_texts(wanted), str(job.get("exec_host", "")))[0]
        if not cores or submit is None:
            warnings["a job without cores or time of submission is left out"] += 1
            continue
        if submit > now:
            warnings["a job was submitted after the snapshot: clocks are apart"] += 1
        start = clock(job.get("stime") or job.get("start_time"), where) if state in "RSU" else None
        remaining = str(job.get("array_indices_remaining") or job.get("job_array_request") or "")
        for suffix in map(str, indices(remaining)) if "[]" in name and remaining else [""]:
            jobs.append(  # noqa: PERF401
                Job(
                    job_id=(name.replace("[]", f"[{suffix}]") if suffix else name).split(".")[0],
                    user=str(job.get("euser") or job.get("Job_Owner", "")).split("@")[0],
                    name=str(job.get("Job_Name", "")),
                    queue=str(job.get("queue", "")),
                    cores=cores,
                    walltime=duration(wanted.get("walltime", 0)),
                    submit=min(submit, now),
                    start=start,
                    held=_held(state, job),
                    needs=_needs(name, job, found, warnings),
                    not_before=clock(job.get("Execution_Time"), where) if state == "W" else None,
                    qos=str(wanted.get("qos", "")),
                    account=str(job.get("Account_Name", "") or project(str(job.get("project", "")))),
                    on=_on(job) if start is not None else (),
                )
            )
    return jobs


def _on(job: dict[str, Any]) -> tuple[tuple[str, int], ...]:
    """Return the nodes of a running job, with the job's cores on each."""
    if "exec_vnode" not in job:
        return tuple(slots(str(job.get("exec_host", ""))).items())
    found: dict[str, int] = {}
    for name, rest in VNODE.findall(str(job["exec_vnode"])):
        cores = re.search(r":ncpus=(\d+)", rest)
        found[name] = found.get(name, 0) + (int(cores[1]) if cores else 0)
    return tuple(found.items())


def _texts(resources: Any) -> dict[str, str]:  # noqa: ANN401 - of a document
    return {name: str(value) for name, value in resources.items()}


def _held(state: str, job: dict[str, Any]) -> str:
    if state != "H":
        return ""
    depends, holds = str(job.get("depend", "")), str(job.get("Hold_Types", "u"))
    if waits_for(depends) and set(holds) <= {"s", "n"}:
        return ""  # the server holds it until its dependencies have ended
    return f"waits for {depends}" if depends else f"on hold ({holds})"


def _needs(name: str, job: dict[str, Any], found: dict[str, Any], warnings: Counter[str]) -> str:
    """Return what a job needs beside cores; a subjob's array has some of the attributes."""
    parent = re.sub(r"\[\d+\]", "[]", name)
    both = {**(found.get(parent) or {}), **job}
    wanted = both.get("Resource_List", {}).items()
    licences = {key: int(value) for key, value in wanted if OWN.match(f" Resource_List.{key}={value} ")}
    after = [other.split(".")[0] for other in waits_for(str(both.get("depend", "")))]
    most = str(both.get("max_run_subjobs", ""))
    array = parent.split(".")[0] if "[" in name else ""
    select, place = (str(both.get("Resource_List", {}).get(name) or "") for name in ("select", "place"))
    chunks, readable = written(of_select, select, place)
    if not select and is_in_form(both.get("Resource_List", {})):  # of Torque
        _, request, readable = requested(_texts(both.get("Resource_List", {})), str(job.get("exec_host", "")))
        chunks = wanted_chunks(request)
    if not readable:
        warnings[UNREADABLE] += 1
    return words(after, licences, array, int(most) if most.isdigit() else 0, chunks)


def _reservations(text: str, where: tzinfo, warnings: Counter[str]) -> list[Closure]:
    closures = []
    for block in re.split(r"^Resv ID:\s*", text.replace("\n\t", ""), flags=re.MULTILINE)[1:]:
        name = block.split("\n", 1)[0].strip()
        fields = dict(re.findall(r"^(\S+)\s*=\s*(.*)$", block, flags=re.MULTILINE))
        if is_shortpool(fields.get("Reserve_Name", "").strip()):
            continue
        begin, end = clock(fields.get("reserve_start"), where), clock(fields.get("reserve_end"), where)
        cores = fields.get("Resource_List.ncpus", "")
        if begin is None or end is None or not cores.isdigit() or begin >= end:
            warnings["a reservation without times or cores is left out"] += 1
        elif "DEGRADED" not in fields.get("reserve_state", "") and "UNCONFIRMED" not in fields.get("reserve_state", ""):
            nodes = tuple(dict.fromkeys(node for node, _ in VNODE.findall(fields.get("resv_nodes", ""))))
            closures.append(
                Closure(f"reservation {name}", begin, end, int(cores), fields.get("queue", ""), nodes=nodes)
            )
    return closures
