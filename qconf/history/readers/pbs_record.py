"""Parse single records of PBS and Torque accounting logs.

References
----------
OpenPBS Administrator's Guide, "Accounting"; Torque Administrator Guide, "Accounting Records".
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from operator import mul
from sys import intern

from parsim.model.workload import MAX_DURATION
from qconf.config import parse_duration
from qconf.history.records import UNKNOWN
from qconf.history.torque import OF_NODES, REQUEST

RECORD = re.compile(r"([0-9]{2}/[0-9]{2}/[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2});([A-Za-z]{1,2});([^;\s]*);")
_WHOSE = (" user=", " group=", " account=", " project=", " queue=")
_QUEUED = (*_WHOSE, " ctime=", " Resource_List.qos=")
_RUN = (*_WHOSE, " ctime=", " start=", " Resource_List.ncpus=", " Resource_List.qos=")
_END = (*_RUN, " Resource_List.walltime=", " end=", " Exit_status=", " resources_used.walltime=")
KEYS = {
    "Q": (*_QUEUED, " depend=", " array_indices=", " Resource_List.ncpus=", " Resource_List.walltime="),
    "S": (*_RUN, " Resource_List.place=", " Resource_List.walltime=", " resource_assigned.ncpus="),
    "R": _END,
    "E": _END,
}
#: A value, or a part of it, may be quoted and then hold blanks.
PAIR = re.compile(r"""([^\s=]+)=('[^']*'(?=\s|$)|(?:[^\s"]+|"[^"]*"|")*)""")
ORDER = re.compile(r"(\d{1,18})(?:\[(\d{1,18})\])?")
SUBJOB = re.compile(r"\[\d+\]")
_CLOCK = re.compile(r"\d{1,9}(?::\d{1,9}){1,3}")  # 30:00 is minutes; Torque also has days: 1:10:00:00
#: Resources with whole numbers that are no licences; all others are a site's own, and count as licences.
_NO_LICENCES = (
    *(*OF_NODES, "nodect", "nchunk", "select", "place", "mpiprocs", "ompthreads", "ngpus", "naccelerators", "nice"),
    *("vmem", "pvmem", "walltime", "cput", "pcput", "min_walltime", "max_walltime", "soft_walltime", "file"),
    *("qos", "qos_priority", "qos_target", "procct", "mppnodect", "mppnodes", "mppmem", "mics", "tpn", "ttn", "trl"),
    *("priority", "prologue", "epilogue", "minwclimit", "maxprocs", "advres", "partition", "host", "vnode", "arch"),
)
OWN = re.compile(rf" Resource_List\.(?!(?:{'|'.join(_NO_LICENCES)})=)(\w+)=(\d{{1,9}})(?=\s|$)")
SELECT = re.compile(r" Resource_List\.select=(\S+)")
PLACE = re.compile(r" Resource_List\.place=(\S+)")
#: Of Torque and Cray systems.
HOST = re.compile(r" exec_host=(\S+)")
NODES = re.compile(rf" Resource_List\.({'|'.join(OF_NODES)})=(\S+)")
TASKS = re.compile(rf" {re.escape(REQUEST)}=((?:-L \S+ ?)+)")
SUSPENDED = 300  #: seconds: a larger gap between a run and its used walltime is a suspension, not staging of files
#: Types of records about jobs: GONE with the drop reason of a job that never ran, RUNS about its runs.
GONE = {"D": "deleted before start", "A": "aborted before start", "M": "moved to another server"}
RUNS = ("Q", "S", "R", "E")
OF_JOBS = (*RUNS, *GONE, "z")  #: z: suspended
TIMEOUT, TIMEOUT_TORQUE = -29, -11  #: Exit_status of a job killed at its walltime limit
LEFT_OUT = "time suspended: not run time"


def project(name: str) -> str:
    """Return a job's project; "" for the server's default project."""
    return "" if name == "_pbs_project_default" else name


def fields_of(kind: str, text: str) -> dict[str, str]:
    """Return the needed values of a record of type `kind`, by key; all values if it has quotes."""
    if '"' in text or "'" in text:
        return {key: value.strip("'\"") for key, value in PAIR.findall(text)}
    found: dict[str, str] = {}
    text, at = f" {text} ", 0
    for key in KEYS[kind]:  # in the server's order: mostly one pass
        start = text.find(key, at)
        if start < 0:
            start = text.find(key, 0, at)
        if start >= 0:
            start += len(key)
            at = text.find(" ", start)
            value = text[start:at]
            found[key[1:-1]] = intern(value) if key in _WHOSE else value  # one object for all jobs
    return found


@lru_cache(maxsize=65536)
def walltime_of(text: str) -> int:
    """Read a walltime as seconds; raises ValueError."""
    if not _CLOCK.fullmatch(text):
        return parse_duration(text)
    seconds = sum(map(mul, map(int, reversed(text.split(":"))), (1, 60, 3600, 86400)))
    return seconds if seconds <= MAX_DURATION else parse_duration(seconds)


def whole(fields: dict[str, str], name: str, digits: int = 15, what: str = "time") -> int:
    """Return a whole number of a record, `UNKNOWN` if absent; raises ValueError that it is no `what`."""
    text = fields.get(name)
    if text is None:
        return UNKNOWN
    if not (text.isdigit() and text.isascii() and len(text) <= digits):
        raise ValueError(f"{name}={text[:40]} is no {what}")
    return int(text)


def duration(fields: dict[str, str], name: str) -> int:
    """Return a duration of a record in seconds, `UNKNOWN` if absent or 0; raises ValueError."""
    text = fields.get(name)
    try:
        return (walltime_of(text) if text else 0) or UNKNOWN
    except ValueError as error:
        raise ValueError(f"{name}={(text or '')[:40]} is no duration") from error


def between(first: str, last: str) -> int:
    """Return the seconds between two records' stamps, both local times; -1 if one is not a time."""
    try:
        began, ended = (datetime.strptime(each, "%m/%d/%Y %H:%M:%S") for each in (first, last))  # noqa: DTZ007
    except ValueError:
        return -1
    return int((ended - began).total_seconds())


def cores_of(fields: dict[str, str]) -> int:
    """Return a job's cores: the requested ones, or for an exclusive job the assigned ones if they are more."""
    names = ("Resource_List.ncpus", "resource_assigned.ncpus")
    requested, assigned = (whole(fields, name, 12, "number") for name in names)
    exclusive = "excl" in (fields.get("Resource_List.place") or "")
    return max(requested, assigned) if exclusive or requested == UNKNOWN else requested
