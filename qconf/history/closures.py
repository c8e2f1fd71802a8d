"""Downtimes and reservations, from what batch systems keep of nodes and reservations.

Read are ``sacctmgr show event``, ``scontrol show reservation``, PBS accounting logs (reservations that began: B) and
PBS server logs (nodes that went down and came up).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from pathlib import Path

from qconf.config import MachineConfig, ShortpoolConfig
from qconf.config.models import Downtime
from qconf.history.readers.sources import find_sources
from qconf.history.standing import is_shortpool, read_standing, shortpools
from qconf.history.times import instant, zone

EVENTS = re.compile(r"(?:^|\|)NodeName(?:\||$)")
OUT = re.compile(r"DOWN|DRAIN|FAIL|MAINT|POWERED_DOWN", re.IGNORECASE)
RESERVED = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;B;([^;\s]+);(.*)")
REMOVED = re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d);[Kk];([^;\s]+);")
NODE = re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d)(?:\.\d+)?;[^;]*;[^;]*;Node;([^;]+);\s*(?:node )?(down|up)\b")
CPU = re.compile(r"(?:^|,)cpu=(\d+)")


@dataclass(frozen=True)
class _Closure:
    """Cores that were out of service or reserved, from one second to another."""

    begin: int
    end: int
    cores: int
    failed: bool = False  #: its begin and its end were not known before
    users: tuple[str, ...] = ()

    def downtime(self, where: tzinfo) -> Downtime:
        begin, end = (datetime.fromtimestamp(second, where).isoformat() for second in (self.begin, self.end))
        known_from = begin if self.failed else None
        return Downtime(
            begin=begin, end=end, cores=self.cores, users=self.users, known_from=known_from, known_end=not self.failed
        )


def read_downtimes(
    paths: Sequence[Path], machine: MachineConfig, timezone: str = "UTC"
) -> tuple[tuple[Downtime, ...], list[str]]:
    """Read downtimes of a machine, and say what is left out; times without an offset are local to `timezone`.

    What has not ended is left out, and what has neither cores nor times. Raises `InputError` where a file has no such
    record at all.
    """
    where, found, odd = zone(timezone), list[_Closure](), Counter[str]()
    for source in find_sources(list(paths)):
        lines = [raw.decode("utf-8", "replace").strip() for raw in source.lines()]
        before = len(found), odd.total()
        for read in (_events, _reservations, _pbs_reservations, _pbs_nodes):
            found += read(lines, where, machine.cores_per_node, odd)
        kept = read_standing("\n".join(lines), machine.cores_per_node)
        if before == (len(found), odd.total()) and not kept:
            fix = "give sacctmgr show event --parsable2, scontrol show reservation, or PBS accounting or server logs"
            raise source.error("has no record of a node that was down, or of a reservation", fix)
    cores: Counter[_Closure] = Counter()
    for each in found:  # nodes that went down together are one
        cores[replace(each, cores=0)] += each.cores
    ordered = sorted(cores.items(), key=lambda item: (item[0].begin, item[0].end))
    times = [replace(each, cores=min(most, machine.cores)).downtime(where) for each, most in ordered]
    return tuple(times), [f"{count} times: {what}" for what, count in odd.items()]


def read_shortpools(paths: Sequence[Path], machine: MachineConfig) -> tuple[ShortpoolConfig, ...]:
    """Read the shortpools in ``scontrol show reservation``, ``pbs_rstat -F`` or a plan for PBS; none where none is."""
    texts = [b"".join(source.lines()).decode("utf-8", "replace") for source in find_sources(list(paths))]
    return shortpools(each for text in texts for each in read_standing(text, machine.cores_per_node))


def _events(lines: list[str], where: tzinfo, node: int, odd: Counter[str]) -> Iterator[_Closure]:
    """Read sacctmgr's events of nodes."""
    if not lines or not EVENTS.search(lines[0]):
        return
    names = lines[0].split("|")
    for line in lines[1:]:
        row = dict(zip(names, line.split("|"), strict=False))
        if not row.get("NodeName") or not OUT.search(row.get("State", "")):
            continue
        cpus = CPU.search(row.get("TRES", ""))
        yield from _between(
            row.get("TimeStart", ""), row.get("TimeEnd", ""), where, int(cpus[1]) if cpus else node, odd
        )


def _between(
    begin: str, end: str, where: tzinfo, cores: int, odd: Counter[str], users: Sequence[str] | None = None
) -> Iterator[_Closure]:
    """Yield what these times make of cores: a reservation for users, or without these a node that failed."""
    try:
        first, last = (int(text) if text.isdigit() else instant(text, where) for text in (begin, end))
    except ValueError:
        odd["a node is down still, or a record has no times: left out"] += 1
        return
    if first >= last or not cores:
        odd["a record without cores or duration is left out"] += 1
        return
    yield _Closure(first, last, cores, users is None, tuple(users or ()))


def _reservations(lines: list[str], where: tzinfo, node: int, odd: Counter[str]) -> Iterator[_Closure]:
    """Read what scontrol shows of reservations; one for accounts only is closed to all, as one for maintenance."""
    for block in re.split(r"(?=ReservationName=)", " ".join(lines)):
        fields = dict(re.findall(r"(\w+)=(\S*)", block))
        if is_shortpool(fields.get("ReservationName", "")):
            continue
        if "ReservationName" not in fields:
            continue
        users = [] if "MAINT" in fields.get("Flags", "") else _names(fields.get("Users", ""))
        count, nodes = fields.get("CoreCnt", ""), fields.get("NodeCnt", "")
        cores = int(count) if count.isdigit() else node * int(nodes) if nodes.isdigit() else 0
        yield from _between(fields.get("StartTime", ""), fields.get("EndTime", ""), where, cores, odd, users)


def _pbs_reservations(lines: list[str], where: tzinfo, node: int, odd: Counter[str]) -> Iterator[_Closure]:
    """Read the records of reservations that began; one that was deleted ends then."""
    del node
    gone = {match[2]: _second(match[1], where) for line in lines if (match := REMOVED.match(line))}
    for line in lines:
        if match := RESERVED.match(line):
            fields = {name.lower(): value for name, value in re.findall(r"([\w.]+)=(\S*)", match[2])}
            users = _names(fields.get("authorized_users", "")) or _names(fields.get("owner", ""))
            cores, end = fields.get("resource_list.ncpus", ""), fields.get("end", "")
            if end.isdigit():
                end = str(min(int(end), gone.get(match[1], int(end))))
            yield from _between(fields.get("start", ""), end, where, int(cores) if cores.isdigit() else 0, odd, users)


def _pbs_nodes(lines: list[str], where: tzinfo, node: int, odd: Counter[str]) -> Iterator[_Closure]:
    """Read when nodes went down and came up."""
    down: dict[str, int] = {}
    for line in lines:
        if match := NODE.match(line):
            second = _second(match[1], where)
            if match[3] == "down":
                down.setdefault(match[2], second)
            elif match[2] in down:
                yield from _between(str(down.pop(match[2])), str(second), where, node, odd)
    odd.update(["a node is down still, or a record has no times: left out"] * len(down))


def _second(stamp: str, where: tzinfo) -> int:
    return int(datetime.strptime(stamp, "%m/%d/%Y %H:%M:%S").replace(tzinfo=where).timestamp())


def _names(text: str) -> list[str]:
    """Read a list of users like ``+alice@*,bob``; those that are shut out are none."""
    names = [name.strip("+").partition("@")[0] for name in text.split(",") if not name.startswith("-")]
    return [name for name in names if name and name != "(null)"]
