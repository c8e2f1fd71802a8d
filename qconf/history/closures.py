"""Downtimes and reservations, from what batch systems keep of nodes and reservations.

Read are ``sacctmgr show event``, ``scontrol show reservation``, PBS accounting logs (reservations that began: B) and
PBS server logs (nodes that went down and came up).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from itertools import islice
from pathlib import Path

from qconf.config import MachineConfig, ShortpoolConfig, SiteConfig
from qconf.config.models import Downtime
from qconf.history.readers.sources import find_sources
from qconf.history.standing import is_shortpool, read_standing, shortpools
from qconf.history.times import instant, zone
from qconf.hosts import expand, hosts_in

EVENTS = re.compile(r"(?:^|\|)NodeName(?:\||$)")
OUT = re.compile(r"DOWN|DRAIN|FAIL|MAINT|POWERED_DOWN", re.IGNORECASE)
RESERVED = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;B;([^;\s]+);(.*)")
REMOVED = re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d);[Kk];([^;\s]+);")
NODE = re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d)(?:\.\d+)?;[^;]*;[^;]*;Node;([^;]+);\s*(?:node )?(down|up)\b")
CPU = re.compile(r"(?:^|,)cpu=(\d+)")
VNODE = re.compile(r"\(([\w.-]+(?:\[\d+\])?):")


@dataclass(frozen=True)
class _Closure:
    """Cores that were out of service or reserved, from one second to another."""

    begin: int
    end: int
    cores: int
    failed: bool = False  #: its begin and its end were not known before
    users: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()  #: their names, as far as they are known

    def downtime(self, where: tzinfo, numbers: Sequence[int] = ()) -> Downtime:
        """Return it as a configuration has it: its cores, or in their place nodes by number."""
        begin, end = (datetime.fromtimestamp(second, where).isoformat() for second in (self.begin, self.end))
        known_from = begin if self.failed else None
        return Downtime(
            begin=begin,
            end=end,
            cores=None if numbers else self.cores,
            nodes=tuple(numbers),
            users=self.users,
            known_from=known_from,
            known_end=not self.failed,
        )


def numbered(config: SiteConfig) -> dict[str, tuple[int, int]]:
    """Return number and cores of each node of several types by its name, as far as they have names.

    They are numbered through the parts of a divided machine, and in each through the types.
    """
    left = {each.name: iter(expand(each.hosts or "")) for each in config.nodes}
    parts = [counts for _, counts in config.owned] or [{each.name: each.count for each in config.nodes}]
    found: dict[str, tuple[int, int]] = {}
    first = 0
    for counts in parts:
        for each in config.nodes:
            count = counts.get(each.name, 0)
            found |= {name: (first + k, each.cores) for k, name in enumerate(islice(left[each.name], count))}
            first += count
    return found


def read_downtimes(
    paths: Sequence[Path],
    machine: MachineConfig,
    timezone: str = "UTC",
    nodes: Mapping[str, tuple[int, int]] | None = None,
) -> tuple[tuple[Downtime, ...], list[str]]:
    """Read downtimes of a machine, and say what is left out; times without an offset are local to `timezone`.

    `nodes` are its nodes where they are of several types, as `numbered` has them. What has not ended is left out, and
    what has neither cores nor times; of several types, what is not whole nodes that have names. Raises `InputError`
    where a file has no such record at all.
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
    if nodes is not None:
        whole = [each for each in found if _is_whole(each, nodes)]
        odd["parts of nodes, or nodes without names, are left out where nodes are of several types"] += len(
            found
        ) - len(whole)
        names: dict[_Closure, list[str]] = {}
        for each in whole:
            names.setdefault(replace(each, cores=0, nodes=()), []).extend(each.nodes)
        closed = sorted(names.items(), key=lambda item: (item[0].begin, item[0].end))
        of_nodes = tuple(each.downtime(where, sorted({nodes[name][0] for name in its})) for each, its in closed)
        return of_nodes, _counted(odd)
    cores: Counter[_Closure] = Counter()
    for each in found:  # nodes that went down together are one
        cores[replace(each, cores=0, nodes=())] += each.cores
    ordered = sorted(cores.items(), key=lambda item: (item[0].begin, item[0].end))
    times = [replace(each, cores=min(most, machine.cores)).downtime(where) for each, most in ordered]
    return tuple(times), _counted(odd)


def _counted(odd: Counter[str]) -> list[str]:
    return [f"{count} times: {what}" for what, count in odd.items() if count]


def _is_whole(closure: _Closure, nodes: Mapping[str, tuple[int, int]]) -> bool:
    """Whether a closure is of whole nodes that have names; nodes that fail do so as a whole."""
    if not closure.nodes or not {*closure.nodes} <= {*nodes}:
        return False
    return closure.failed or closure.cores >= sum(nodes[name][1] for name in closure.nodes)


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
            row.get("TimeStart", ""),
            row.get("TimeEnd", ""),
            where,
            int(cpus[1]) if cpus else node,
            odd,
            nodes=(row["NodeName"],),
        )


def _between(
    begin: str,
    end: str,
    where: tzinfo,
    cores: int,
    odd: Counter[str],
    users: Sequence[str] | None = None,
    nodes: Sequence[str] = (),
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
    yield _Closure(first, last, cores, users is None, tuple(users or ()), tuple(dict.fromkeys(nodes)))


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
        named = fields.get("Nodes", "")
        hosts = [*expand(named)] if hosts_in(named) else []
        yield from _between(fields.get("StartTime", ""), fields.get("EndTime", ""), where, cores, odd, users, hosts)


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
            most, names = int(cores) if cores.isdigit() else 0, VNODE.findall(fields.get("nodes", ""))
            yield from _between(fields.get("start", ""), end, where, most, odd, users, names)


def _pbs_nodes(lines: list[str], where: tzinfo, node: int, odd: Counter[str]) -> Iterator[_Closure]:
    """Read when nodes went down and came up."""
    down: dict[str, int] = {}
    for line in lines:
        if match := NODE.match(line):
            second = _second(match[1], where)
            if match[3] == "down":
                down.setdefault(match[2], second)
            elif match[2] in down:
                yield from _between(str(down.pop(match[2])), str(second), where, node, odd, nodes=(match[2],))
    odd.update(["a node is down still, or a record has no times: left out"] * len(down))


def _second(stamp: str, where: tzinfo) -> int:
    return int(datetime.strptime(stamp, "%m/%d/%Y %H:%M:%S").replace(tzinfo=where).timestamp())


def _names(text: str) -> list[str]:
    """Read a list of users like ``+alice@*,bob``; those that are shut out are none."""
    names = [name.strip("+").partition("@")[0] for name in text.split(",") if not name.startswith("-")]
    return [name for name in names if name and name != "(null)"]
