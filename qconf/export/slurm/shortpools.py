"""Write shortpools as repeating reservations of Slurm; short jobs request them and may also run elsewhere (FLEX)."""

from __future__ import annotations

import re

from parsim import Window
from parsim.prepare.state import taken_by
from qconf.config import ShortpoolConfig, SiteConfig
from qconf.config.models import DAYS
from qconf.export.slurm.conf import Conf
from qconf.history.closures import WEEKEND, WORKING, Standing, shortpools, standing

FILE = "shortpool"  #: script that creates the reservations
#: Jobs that request it may also use other nodes; nodes that are busy at its begin are reserved too.
_FLAGS = "FLEX,IGNORE_JOBS,NO_HOLD_JOBS_AFTER"
_LINE = re.compile(
    r"ReservationName=(\S+) StartTime=(?:now|\$\(date --date='(\w+ ?\w*) (\d\d:\d\d)' \S+\)) Duration=(\w+) "
    r"Users=-daemon (TRES=cpu|NodeCnt)=(\d+) PartitionName=(\S+) Flags=(\S+)"
)


def reservations(config: SiteConfig, pool: str) -> list[Standing]:
    """Return the reservations of the shortpools, for each partition; `pool` is the name of the pool's."""
    found: list[Standing] = []
    for each in config.shortpools:
        taken = taken_by(Window(0, 1, each.cores), config.replace(reserve="cores", shortpools=()).system())
        for part, cores in taken.items():
            names = (*config.names, pool)
            days = tuple(day for day in DAYS if day in each.days)
            # Slurm's flags are for every day, working days, the weekend, or a day of the week.
            for group in [days] if days in (DAYS, WORKING, WEEKEND) else [(day,) for day in days]:
                if cores:
                    found.append(standing(each, len(found) + 1, group, cores, names[part]))
    return found


def script(config: SiteConfig, pool: str) -> str:
    """Return the shell script that creates the reservations."""
    node = config.machine.cores_per_node if config.machine.whole_nodes else 0
    lines = ["#!/bin/sh", "# Keeps cores for short jobs, from the next time on. Written by qconf export.", "set -e"]
    for each in reservations(config, pool):
        always = each.days == DAYS and each.minutes == 1440 and each.begin == "00:00"
        first = "tomorrow" if each.days == DAYS else f"next {each.days[0].capitalize()}"
        start = f"$(date --date='{first} {each.begin}' +%Y-%m-%dT%H:%M)"
        flags = {DAYS: "DAILY", WORKING: "WEEKDAY", WEEKEND: "WEEKEND"}.get(each.days, "WEEKLY")
        cores = f"NodeCnt={each.cores // node}" if node and not each.cores % node else f"TRES=cpu={each.cores}"
        words = (
            f"StartTime={'now' if always else start} Duration={'UNLIMITED' if always else each.minutes}",
            f"Users=-daemon {cores} PartitionName={each.part} Flags={_FLAGS}{'' if always else ',' + flags}",
        )
        lines.append(f"scontrol create reservation ReservationName={each.name} {' '.join(words)}")
    return "\n".join(lines) + "\n"


def kept(config: SiteConfig, pool: str) -> dict[str, str]:
    """Return by queue the reservations that its jobs may request, comma-separated."""
    found = reservations(config, pool)
    if not found:
        return {}
    if config.mode == "shared":
        return dict.fromkeys(config.names, ",".join(each.name for each in found))
    return {
        name: ",".join(each.name for each in found if each.part in (name, pool) or config.queue(name).reservation)
        for name in config.names
    }


def read(conf: Conf, node: int) -> tuple[ShortpoolConfig, ...]:
    """Read the shortpools from an export's script; empty without it. `node` is the cores per node."""
    found = []
    for match in _LINE.finditer(conf.beside(FILE)):
        name, first, clock, minutes, unit, count, part, flags = match.groups()
        words = set(flags.split(","))
        days = DAYS if not words & {"WEEKDAY", "WEEKEND", "WEEKLY"} else WORKING if "WEEKDAY" in words else WEEKEND
        if "WEEKLY" in words:
            days = tuple(day for day in DAYS if day == first.split()[-1].lower())
        cores = int(count) * (node if unit == "NodeCnt" else 1)
        found.append(Standing(name, cores, days, clock or "00:00", 1440 if clock is None else int(minutes), part))
    return shortpools(found)
