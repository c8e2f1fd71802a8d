"""Records of accounting logs of PBS and Torque: the values that a history needs of one.

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

RECORD = re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d);([A-Za-z]{1,2});([^;\s]*);")
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
#: A value, or a part of one, may stand in quotes and hold blanks then.
PAIR = re.compile(r"""([^\s=]+)=('[^']*'(?=\s|$)|(?:[^\s"]+|"[^"]*"|")*)""")
ORDER = re.compile(r"(\d{1,18})(?:\[(\d{1,18})\])?")
SUBJOB = re.compile(r"\[\d+\]")
_CLOCK = re.compile(r"\d{1,9}(?::\d{1,9}){1,3}")  # 30:00 is minutes; Torque has days, too: 1:10:00:00
#: Whole numbers of what is no core, memory or time, and no way to place a job: a site's own resources, like licences.
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
SUSPENDED = 300  #: seconds: more between a run and its used walltime is no staging of files, where nothing else says
#: Types of records that change a job: others are about something else than its run.
GONE = {"D": "deleted before start", "A": "aborted before start", "M": "moved to another server"}
RUNS = ("Q", "S", "R", "E")
OF_JOBS = (*RUNS, *GONE, "z")  #: z: suspended
TIMEOUT, TIMEOUT_TORQUE = -29, -11  #: Exit_status of a job that its walltime limit killed
LEFT_OUT = "time suspended: not run time"


def project(name: str) -> str:
    """Return the project of a job; empty for the one that the server gives those without."""
    return "" if name == "_pbs_project_default" else name


def fields_of(kind: str, text: str) -> dict[str, str]:
    """Read the values of a record that a history needs; one with quotes is parsed whole."""
    if '"' in text or "'" in text:
        return {key: value.strip("'\"") for key, value in PAIR.findall(text)}
    found: dict[str, str] = {}
    text, at = f" {text} ", 0
    for key in KEYS[kind]:  # in the order in which the server writes them: mostly one pass
        start = text.find(key, at)
        if start < 0:
            start = text.find(key, 0, at)
        if start >= 0:
            start += len(key)
            at = text.find(" ", start)
            value = text[start:at]
            found[key[1:-1]] = intern(value) if key in _WHOSE else value  # kept once for all jobs
    return found


@lru_cache(maxsize=65536)
def walltime_of(text: str) -> int:
    """Read a walltime as seconds; raise ValueError where it is none."""
    if not _CLOCK.fullmatch(text):
        return parse_duration(text)
    seconds = sum(map(mul, map(int, reversed(text.split(":"))), (1, 60, 3600, 86400)))
    return seconds if seconds <= MAX_DURATION else parse_duration(seconds)


def whole(fields: dict[str, str], name: str, digits: int = 15, what: str = "time") -> int:
    """Return a whole number of a record, `UNKNOWN` where it has none; ValueError where it is none."""
    text = fields.get(name)
    if text is None:
        return UNKNOWN
    if not (text.isdigit() and text.isascii() and len(text) <= digits):
        raise ValueError(f"{name}={text[:40]} is no {what}")
    return int(text)


def duration(fields: dict[str, str], name: str) -> int:
    """Return a duration in seconds, `UNKNOWN` where there is none; ValueError where it is none."""
    text = fields.get(name)
    try:
        return (walltime_of(text) if text else 0) or UNKNOWN
    except ValueError as error:
        raise ValueError(f"{name}={(text or '')[:40]} is no duration") from error


def between(first: str, last: str) -> int:
    """Return the seconds between the stamps of two records, local times both; -1 where one is none."""
    try:
        began, ended = (datetime.strptime(each, "%m/%d/%Y %H:%M:%S") for each in (first, last))  # noqa: DTZ007
    except ValueError:
        return -1
    return int((ended - began).total_seconds())


def cores_of(fields: dict[str, str]) -> int:
    """Cores that the job took: those requested, of an exclusive job those that the server assigned."""
    names = ("Resource_List.ncpus", "resource_assigned.ncpus")
    requested, assigned = (whole(fields, name, 12, "number") for name in names)
    exclusive = "excl" in (fields.get("Resource_List.place") or "")
    return max(requested, assigned) if exclusive or requested == UNKNOWN else requested
