"""Convert between a configuration's shortpools and the standing reservations that implement them in batch systems.

A reservation has no limit on walltimes, so its name holds it: ``shortpool_7200_1`` is number 1, for up to 7200 s.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from qconf.config import ShortpoolConfig
from qconf.config.models import DAYS, Day

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


def _slurm(text: str, node: int) -> Iterator[Standing]:
    for block in re.split(r"(?=ReservationName=)", text):
        fields = dict(re.findall(r"(\w+)=(\S*)", block))
        if not NAME.fullmatch(fields.get("ReservationName", "")):
            continue
        begin, end = (datetime.fromisoformat(fields[key]) for key in ("StartTime", "EndTime"))
        count, nodes = fields.get("CoreCnt", ""), fields.get("NodeCnt", "")
        cores = int(count) if count.isdigit() else node * int(nodes) if nodes.isdigit() else 0
        minutes, day = int((end - begin).total_seconds()) // 60, DAYS[begin.weekday()]
        flags, clock = set(fields.get("Flags", "").split(",")), f"{begin:%H:%M}"
        if not flags & {"DAILY", "WEEKDAY", "WEEKEND", "WEEKLY"}:
            days, clock, minutes = DAYS, "00:00", MINUTES
        else:
            days = DAYS if "DAILY" in flags else WORKING if "WEEKDAY" in flags else (day,)
            days = WEEKEND if "WEEKEND" in flags else days
        part = fields.get("PartitionName", "")
        yield Standing(fields["ReservationName"], cores, days, clock, minutes, part)


def _pbs(text: str) -> Iterator[Standing]:
    for block in re.split(r"^Resv ID:\s*", text, flags=re.MULTILINE)[1:]:
        fields = dict(re.findall(r"^\s*(\S+)\s*=\s*(.*)$", block, flags=re.MULTILINE))
        name, cores = fields.get("Reserve_Name", "").strip(), fields.get("Resource_List.ncpus", "")
        rule = dict(re.findall(r"(\w+)=([^;\s]+)", fields.get("reserve_rrule", "")))
        clock = re.search(r"\b(\d\d:\d\d):\d\d\b", fields.get("reserve_start", ""))
        if not NAME.fullmatch(name) or not cores.isdigit() or clock is None:
            continue
        days = [_BYDAY[word] for word in rule.get("BYDAY", "MO,TU,WE,TH,FR,SA,SU").split(",") if word in _BYDAY]
        minutes = int(fields.get("reserve_duration", "0")) // 60
        yield Standing(name, int(cores), tuple(day for day in DAYS if day in days), clock[1], minutes)
