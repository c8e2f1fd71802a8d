"""Downtimes, reservations and shortpools, read from the logs and listings of batch systems.

Sources of downtimes are ``sacctmgr show event``, ``scontrol show reservation``, PBS accounting logs (B records: a
reservation began) and PBS server logs (nodes that went down and came up). Standing reservations implement shortpools. A
reservation has no limit on walltimes, so its name holds it: ``shortpool_7200_1`` is number 1, for up to 7200 s.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from qconf.config import MachineConfig, ShortpoolConfig, SiteConfig
from qconf.config.models import DAYS, Day, Downtime
from qconf.history.readers.sources import find_sources
from qconf.history.records import TIMES, Records
from qconf.history.times import instant, zone
from qconf.hosts import expand, hosts_in
from qconf.text import grouped

NAME = re.compile(r"\bshortpool_([0-9]{1,9})_([0-9]{1,4})\b")
WORKING, WEEKEND = DAYS[:5], DAYS[5:]
MINUTES = 24 * 60
_BYDAY = {"MO": "mon", "TU": "tue", "WE": "wed", "TH": "thu", "FR": "fri", "SA": "sat", "SU": "sun"}
_PLANNED = re.compile(
    r"^start=\$\(date --date='next \w+ (\d\d:\d\d)' \+%s\)\n.*start \+ (\d+)\).*\n"
    r"pbs_rsub -N (shortpool_\d+_\d+) .*BYDAY=([A-Z,]+)\" -l select=(\d+):ncpus=(\d+) ",
    re.MULTILINE,
)


class Standing(NamedTuple):
    """A repeating reservation of cores in a partition: on some days, from a time (HH:MM) for some minutes."""

    name: str
    cores: int
    days: tuple[Day, ...]
    begin: str
    minutes: int
    part: str = ""

    @property
    def walltime(self) -> int:
        """Longest walltime of its jobs, seconds."""
        found = NAME.search(self.name)
        return int(found[1]) if found else 0


def standing(pool: ShortpoolConfig, number: int, days: Sequence[Day], cores: int, part: str = "") -> Standing:
    """Return the reservation of `cores` for a shortpool on `days`; `number` makes its name unique."""
    begin, end = (60 * int(clock[:2]) + int(clock[3:]) for clock in (pool.begin, pool.end))
    name = f"shortpool_{pool.walltime}_{number}"
    return Standing(name, cores, tuple(days), pool.begin, (end - begin) % MINUTES or MINUTES, part)


def shortpools(found: Iterable[Standing]) -> tuple[ShortpoolConfig, ...]:
    """Return the shortpools of reservations; those of several partitions, or of days with equal cores, are merged."""
    cores: dict[tuple[int, str, int], dict[Day, int]] = defaultdict(dict)
    for each in found:
        of_day = cores[each.walltime, each.begin, each.minutes]
        for day in each.days:
            of_day[day] = of_day.get(day, 0) + each.cores
    made = []
    for (walltime, begin, minutes), of_day in cores.items():
        first = 60 * int(begin[:2]) + int(begin[3:])
        end = f"{(first + minutes) % MINUTES // 60:02d}:{(first + minutes) % 60:02d}"
        for most in dict.fromkeys(of_day.values()):
            days = tuple(day for day in DAYS if of_day.get(day) == most)
            made.append(ShortpoolConfig(cores=most, walltime=walltime, days=days, begin=begin, end=end))
    return tuple(made)


def read_standing(text: str, node: int = 1) -> list[Standing]:
    """Read the shortpools in the output of ``scontrol show reservation`` or ``pbs_rstat -F``, or in a plan for PBS.

    `node` is the number of cores per node, for listings that count nodes only.
    """
    return [*_slurm(text, node), *_pbs(text), *_planned(text)]


def is_shortpool(name: str) -> bool:
    """Whether the name of a reservation is that of a shortpool."""
    return NAME.fullmatch(name) is not None


def _planned(text: str) -> Iterator[Standing]:
    for clock, seconds, name, days, nodes, node in _PLANNED.findall(text):
        found = {_BYDAY[word] for word in days.split(",")}
        cores = int(nodes) * int(node)
        yield Standing(name, cores, tuple(day for day in DAYS if day in found), clock, int(seconds) // 60)


def of_scontrol(text: str) -> Iterator[dict[str, str]]:
    """Yield the fields of each reservation in the output of ``scontrol show reservation``."""
    for block in re.split(r"(?=ReservationName=)", text):
        fields = dict(re.findall(r"(\w+)=(\S*)", block))
        if "ReservationName" in fields:
            yield fields


def _cores(fields: Mapping[str, str], node: int) -> int:
    count, nodes = fields.get("CoreCnt", ""), fields.get("NodeCnt", "")
    return int(count) if count.isdigit() else node * int(nodes) if nodes.isdigit() else 0


def _slurm(text: str, node: int) -> Iterator[Standing]:
    for fields in of_scontrol(text):
        if not is_shortpool(fields["ReservationName"]):
            continue
        begin, end = (datetime.fromisoformat(fields[key]) for key in ("StartTime", "EndTime"))
        minutes, day = int((end - begin).total_seconds()) // 60, DAYS[begin.weekday()]
        flags, clock = set(fields.get("Flags", "").split(",")), f"{begin:%H:%M}"
        if not flags & {"DAILY", "WEEKDAY", "WEEKEND", "WEEKLY"}:
            days, clock, minutes = DAYS, "00:00", MINUTES
        else:
            days = DAYS if "DAILY" in flags else WORKING if "WEEKDAY" in flags else (day,)
            days = WEEKEND if "WEEKEND" in flags else days
        part = fields.get("PartitionName", "")
        yield Standing(fields["ReservationName"], _cores(fields, node), days, clock, minutes, part)


def _pbs(text: str) -> Iterator[Standing]:
    for block in re.split(r"^Resv ID:\s*", text, flags=re.MULTILINE)[1:]:
        fields = dict(re.findall(r"^\s*(\S+)\s*=\s*(.*)$", block, flags=re.MULTILINE))
        name, cores = fields.get("Reserve_Name", "").strip(), fields.get("Resource_List.ncpus", "")
        rule = dict(re.findall(r"(\w+)=([^;\s]+)", fields.get("reserve_rrule", "")))
        clock = re.search(r"\b(\d\d:\d\d):\d\d\b", fields.get("reserve_start", ""))
        if not is_shortpool(name) or not cores.isdigit() or clock is None:
            continue
        days = [_BYDAY[word] for word in rule.get("BYDAY", "MO,TU,WE,TH,FR,SA,SU").split(",") if word in _BYDAY]
        minutes = int(fields.get("reserve_duration", "0")) // 60
        yield Standing(name, int(cores), tuple(day for day in DAYS if day in days), clock[1], minutes)


EVENTS = re.compile(r"(?:^|\|)NodeName(?:\||$)")
OUT = re.compile(r"DOWN|DRAIN|FAIL|MAINT|POWERED_DOWN", re.IGNORECASE)
RESERVED = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;B;([^;\s]+);(.*)")
REMOVED = re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d);[Kk];([^;\s]+);")
NODE = re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d)(?:\.\d+)?;[^;]*;[^;]*;Node;([^;]+);\s*(?:node )?(down|up)\b")
CPU = re.compile(r"(?:^|,)cpu=(\d+)")
ALL = ("ALL",)
OPEN = 2**62  #: end of a closure that has not ended
#: Flags of repeating reservations: hours between repetitions, and the days of the week.
AGAIN: dict[str, tuple[int, range]] = {
    "HOURLY": (1, range(7)),
    "DAILY": (24, range(7)),
    "WEEKDAY": (24, range(5)),
    "WEEKEND": (24, range(5, 7)),
    "WEEKLY": (7 * 24, range(7)),
}
VNODE = re.compile(r"\(([\w.-]+(?:\[\d+\])?):")


@dataclass(frozen=True)
class _Closure:
    """Cores that were out of service or reserved, in Unix seconds [begin, end)."""

    begin: int
    end: int  #: `OPEN` while it lasts
    cores: int
    failed: bool = False  #: a failure, unknown in advance
    users: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()  #: names, if known; `ALL` for all nodes
    again: str = ""  #: flag of a repeating reservation, see `AGAIN`

    def downtime(self, where: tzinfo, numbers: Sequence[int] = ()) -> Downtime:
        """Convert to the configuration's downtime, with `cores`, or with node numbers if given."""
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
    """Return (number, cores) of each named node, by name, for a machine with several types of nodes.

    Numbers run through the partitions of a divided machine, and within each through the types.
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
    period: tuple[int, int] | None = None,
) -> tuple[tuple[Downtime, ...], list[str]]:
    """Read a machine's downtimes, and notes on what was left out; times without an offset are local to `timezone`.

    `nodes` is the result of `numbered` for a machine with several types of nodes. `period` is the log's span in Unix
    seconds: repeating reservations fill it, open closures end with it; without it they end at the last time in the
    files. Records without cores or times are left out; with several types also parts of nodes and nodes without names.
    Raises `InputError` if a file has no such record.
    """
    where, found, odd = zone(timezone), list[_Closure](), Counter[str]()
    for source in find_sources(list(paths)):
        lines = [raw.decode("utf-8-sig", "replace").strip() for raw in source.lines()]
        before = len(found), odd.total()
        for read in (_events, _reservations, _pbs_reservations, _pbs_nodes):
            found += read(lines, where, machine.cores_per_node, odd)
        kept = read_standing("\n".join(lines), machine.cores_per_node)
        if before == (len(found), odd.total()) and not kept:
            fix = "give sacctmgr show event --parsable2, scontrol show reservation, or PBS accounting or server logs"
            raise source.error("has no record of a node that was down, or of a reservation", fix)
    found = [each for closure in found for each in _occurrences(closure, where, period, odd)]
    found = _ended(found, where, period, odd)
    if nodes is not None:
        parts = (part for each in found for part in _whole(each, nodes, odd))
        names = grouped((replace(part, cores=0, nodes=()), name) for part in parts for name in part.nodes)
        closed = sorted(names.items(), key=lambda item: (item[0].begin, item[0].end))
        of_nodes = tuple(each.downtime(where, sorted({nodes[name][0] for name in its})) for each, its in closed)
        return of_nodes, _counted(odd)
    cores: Counter[_Closure] = Counter()
    for each in _once(found, machine.cores_per_node):  # merge nodes that went down together
        cores[replace(each, cores=0, nodes=())] += machine.cores if each.nodes == ALL and not each.cores else each.cores
    ordered = sorted(cores.items(), key=lambda item: (item[0].begin, item[0].end))
    times = [replace(each, cores=min(most, machine.cores)).downtime(where) for each, most in ordered]
    return tuple(times), _counted(odd)


def _once(found: list[_Closure], node: int) -> Iterator[_Closure]:
    """Yield closures in which no whole node is closed twice at a time; closures for all come before users' own."""
    sizes = {name: each.cores // len(each.nodes) for each in found if each.failed for name in each.nodes}
    taken: dict[str, list[tuple[int, int]]] = {}
    for each in sorted(found, key=lambda each: (each.users != (), each.nodes != ALL, each.begin)):
        share = each.cores // max(1, len(each.nodes))
        if not each.nodes or (each.nodes != ALL and any(share < sizes.get(name, node) for name in each.nodes)):
            yield each
            continue
        for name in each.nodes:
            others = [pair for of in {name, *ALL} for pair in taken.get(of, ())]
            for begin, end in _beside(each.begin, each.end, others):
                yield replace(each, begin=begin, end=end, cores=share, nodes=(name,))
            mine = taken.setdefault(name, [])
            if mine and each.begin <= mine[-1][1]:
                mine[-1] = mine[-1][0], max(mine[-1][1], each.end)
            else:
                mine.append((each.begin, each.end))


def _beside(begin: int, end: int, others: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the parts of [begin, end) outside all `others`."""
    for first, last in sorted(pair for pair in others if pair[0] < end and pair[1] > begin):
        if begin < first:
            yield begin, first
        begin = max(begin, last)
    if begin < end:
        yield begin, end


def span(records: Records) -> tuple[int, int]:
    """Return the first submit and the last submit, start or end of a log's jobs, Unix seconds."""
    submit = records.table["submit"]
    last = max(int(records.table[name].max()) for name in TIMES)
    return int(submit[submit >= 0].min()) + records.epoch, last + records.epoch


def _occurrences(
    closure: _Closure, where: tzinfo, period: tuple[int, int] | None, odd: Counter[str]
) -> Iterator[_Closure]:
    """Yield every repetition of a closure in a period; batch systems show only the next one."""
    flag = closure.again
    if not flag:
        yield closure
        return
    first = replace(closure, again="")
    if period is None:
        odd[f"a reservation comes again ({flag}) and is read as one: --history says over which time it does"] += 1
        yield first
        return
    hours, days = AGAIN[flag]
    length, step = closure.end - closure.begin, timedelta(hours=hours)
    clock = datetime.fromtimestamp(closure.begin, where).replace(tzinfo=None)  # repeats at the same time of day
    count = (period[0] - length - closure.begin) // (hours * 3600)
    clock += count * step
    times = 0
    while (begin := int(clock.replace(tzinfo=where).timestamp())) <= period[1]:
        if begin + length > period[0] and clock.weekday() in days:
            times += 1
            yield replace(first, begin=begin, end=begin + length)
        clock += step
    odd[f"a reservation comes again ({flag}): taken {times} times, all over the log"] += 1


def _ended(found: list[_Closure], where: tzinfo, period: tuple[int, int] | None, odd: Counter[str]) -> list[_Closure]:
    """End open closures with the period, else with the last known time; those that begin later are left out."""
    known = [second for each in found for second in (each.begin, each.end) if second != OPEN]
    last = period[1] if period else max(known, default=0)
    ended = []
    for each in found:
        if each.end == OPEN and each.begin >= last:
            odd["a node went down at the end and is down still: left out"] += 1
            continue
        if each.end == OPEN:
            odd[f"a node is down still: taken as down up to {datetime.fromtimestamp(last, where):%Y-%m-%d %H:%M}"] += 1
        ended.append(replace(each, end=min(each.end, last)) if each.end == OPEN else each)
    return ended


def _counted(odd: Counter[str]) -> list[str]:
    return [f"{count} times: {what}" for what, count in odd.items() if count]


def _whole(closure: _Closure, nodes: Mapping[str, tuple[int, int]], odd: Counter[str]) -> Iterator[_Closure]:
    """Yield a closure's whole named nodes (a failed node is whole); note what is left out in `odd`."""
    names = tuple(nodes) if closure.nodes == ALL else tuple(name for name in closure.nodes if name in nodes)
    if strange := len(closure.nodes) - len(names) if closure.nodes != ALL else 0:
        odd[f"{strange} nodes that the configuration does not have are left out"] += 1
    if not names:
        odd["parts of nodes, or nodes without names, are left out where nodes are of several types"] += not strange
        return
    left, whole = closure.cores or sum(cores for _, cores in nodes.values()), []
    for name in names:
        left -= nodes[name][1]
        if left >= 0 or closure.failed:
            whole.append(name)
    if len(whole) < len(names):
        odd["of a reservation of parts of nodes, as many whole nodes as its cores fill are taken"] += 1
    if whole:
        yield replace(closure, nodes=tuple(whole))


def read_shortpools(paths: Sequence[Path], machine: MachineConfig) -> tuple[ShortpoolConfig, ...]:
    """Read the shortpools in ``scontrol show reservation``, ``pbs_rstat -F`` or a plan for PBS; may be empty."""
    texts = [b"".join(source.lines()).decode("utf-8", "replace") for source in find_sources(list(paths))]
    return shortpools(each for text in texts for each in read_standing(text, machine.cores_per_node))


def _events(lines: list[str], where: tzinfo, node: int, odd: Counter[str]) -> Iterator[_Closure]:
    if not lines or not EVENTS.search(lines[0]):
        return
    names = lines[0].split("|")  # a final bar adds a nameless column
    for line in lines[1:]:
        row = dict(zip(names, line.split("|"), strict=False))
        if not row.get("NodeName") or not OUT.search(row.get("State", "")):
            continue
        cpus, hosts = CPU.search(row.get("TRES", "")), _hosts(row["NodeName"])
        end = row.get("TimeEnd", "")
        times = row.get("TimeStart", ""), "" if end.lower() in ("unknown", "none", "0") else end
        planned: list[str] | None = [] if row["State"].upper().startswith("MAINT") else None
        yield from _between(*times, where, (int(cpus[1]) if cpus else node) * len(hosts), odd, planned, hosts)


def _between(
    begin: str,
    end: str,
    where: tzinfo,
    cores: int,
    odd: Counter[str],
    users: Sequence[str] | None = None,
    nodes: Sequence[str] = (),
    again: str = "",
) -> Iterator[_Closure]:
    """Yield the closure of these times, if readable: a reservation for `users`, or a failure if they are None."""
    try:
        first, last = (int(text) if text.isdigit() else instant(text, where) for text in (begin, end or begin))
    except ValueError:
        odd["a record has no times: left out"] += 1
        return
    last = last if end else OPEN
    if first >= last or not (cores or nodes == ALL):
        odd["a record without cores or duration is left out"] += 1
        return
    yield _Closure(first, last, cores, users is None, tuple(users or ()), tuple(dict.fromkeys(nodes)), again)


def _hosts(text: str) -> tuple[str, ...]:
    """Return the names in a list of nodes; empty if it cannot be read."""
    return ALL if text.upper() == "ALL" else tuple(expand(text)) if hosts_in(text) else ()


def _reservations(lines: list[str], where: tzinfo, node: int, odd: Counter[str]) -> Iterator[_Closure]:
    """Read ``scontrol show reservation``; one for accounts only is closed to all, like one for maintenance."""
    for fields in of_scontrol(" ".join(lines)):
        if is_shortpool(fields["ReservationName"]):
            continue
        users = [] if "MAINT" in fields.get("Flags", "") else _names(fields.get("Users", ""))
        flags = fields.get("Flags", "").upper().split(",")
        if left := next((flag for flag in flags if flag in ("TIME_FLOAT", "LICENSE_ONLY")), None):
            odd[f"a reservation with the flag {left} closes no nodes at a time: left out"] += 1
            continue
        times = fields.get("StartTime", "-"), fields.get("EndTime", "-")
        again = next((flag for flag in AGAIN if flag in flags), "")
        yield from _between(*times, where, _cores(fields, node), odd, users, _hosts(fields.get("Nodes", "")), again)


def _pbs_reservations(lines: list[str], where: tzinfo, node: int, odd: Counter[str]) -> Iterator[_Closure]:
    """Read the B records of reservations; a deleted reservation ends at its deletion."""
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
    down: dict[str, int] = {}
    for line in lines:
        if match := NODE.match(line):
            second = _second(match[1], where)
            if match[3] == "down":
                down.setdefault(match[2], second)
            elif match[2] in down:
                yield from _between(str(down.pop(match[2])), str(second), where, node, odd, nodes=(match[2],))
    for name, second in down.items():
        yield from _between(str(second), "", where, node, odd, nodes=(name,))


def _second(stamp: str, where: tzinfo) -> int:
    return int(datetime.strptime(stamp, "%m/%d/%Y %H:%M:%S").replace(tzinfo=where).timestamp())


def _names(text: str) -> list[str]:
    """Read a list of users like ``+alice@*,bob``; excluded users (``-``) are skipped."""
    names = [name.strip("+").partition("@")[0] for name in text.split(",") if not name.startswith("-")]
    return [name for name in names if name and name != "(null)"]
