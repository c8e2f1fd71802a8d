"""Scripts, hooks and cron files installed beside a PBS server: a table of conditions, files and plan rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from qconf.config import KEPT, SiteConfig
from qconf.config.models import DAYS
from qconf.export import hours
from qconf.export.estimates import OF_TABLES, table
from qconf.export.pbs import fairshare, nodes, qos, throttles, types
from qconf.export.rendering import render
from qconf.history.standing import Standing, standing

if TYPE_CHECKING:
    from qconf.export.pbs.desired import Desired

NOT_KNOWN = "not known"
PROMOTE, RESERVE, SHORTPOOL = SCRIPTS = ("qconf-promote", "qconf-reserve", "qconf-shortpool")
ESTIMATE, ESTIMATES, RESERVE_HOOK = "estimate", "qconf_estimate", "qconf_reserve"  #: a resource of jobs; hooks
HOOKS = [nodes.KEPT_HOOK, qos.HOOK, ESTIMATES, RESERVE_HOOK]


class Change(NamedTuple):
    """A changed attribute of an object, with its old and new value ("" if absent) and the reason."""

    of: str
    name: str
    old: str
    new: str
    why: str


class Extra(NamedTuple):
    """An item to install beside the server, identified by its main file."""

    file: str
    wanted: Callable[[SiteConfig], object]
    row: Change  #: its row in the plan's table
    templates: Mapping[str, str] = {}  #: template by file name
    need: str = ""  #: noun phrase of what root must install and keep running
    does: str = ""  #: description in the units that run it every minute


def _promotes(config: SiteConfig) -> bool:
    return bool(config.pool_cores) and not all(queue.reservation for queue in config.queues)


def _reserves(config: SiteConfig) -> bool:
    return bool(config.reservation_delay) and not _promotes(config)


def _minutely(name: str, wanted: Callable[[SiteConfig], object], does: str, row: Change, need: str = "") -> Extra:
    units = {f"{name}.{unit}": f"minutely.{unit}" for unit in ("service", "timer", "cron")}
    return Extra(name, wanted, row, {name: f"{name.removeprefix('qconf-')}.py"} | units, need, does)


def _of_root(name: str, wanted: Callable[[SiteConfig], object], why: str, does: str) -> Extra:
    need = f"a systemd timer or cron job of root every minute: {name}"
    return _minutely(name, wanted, does, Change("host", name, "", "run every minute", why), need)


def _hook(name: str, wanted: Callable[[SiteConfig], object], why: str, need: str) -> Extra:
    file, template = f"{name}.py", f"{name.removeprefix('qconf_')}_hook.py"
    need = need and f"a hook of the server, for {need}: {name}"
    return Extra(file, wanted, Change("hook", name, "", "enabled", why), {file: template}, need)


_NOT_SHOWN = "; the server does not show them"
EXTRAS = (
    Extra(
        "resource_group",
        attrgetter("is_fair"),
        Change("scheduler", "resource_group", NOT_KNOWN, "that of the export", "`shares`; --shares compares them"),
    ),
    _of_root(
        PROMOTE, _promotes, "`pool`", "Move PBS jobs that have waited long for their walltime into the common pool"
    ),
    _of_root(RESERVE, _reserves, "`reserve_after`", "Let PBS jobs wait before they may become top jobs"),
    _hook(qos.HOOK, qos.needs_hook, "`qos`", "qualities of service"),
    _hook(nodes.KEPT_HOOK, attrgetter("keeps_cores"), "`kept_per_gpu`", "cores that jobs without GPUs leave"),
    _hook(ESTIMATES, attrgetter("reads_estimate"), "`order`", "predicted run times"),
    _hook(RESERVE_HOOK, _reserves, "`reserve_after`", ""),
    Extra(
        hours.FILE,
        attrgetter("hours"),
        Change("host", hours.FILE, NOT_KNOWN, "lines of cron", f"`hours`{_NOT_SHOWN}"),
    ),
    _minutely(
        SHORTPOOL,
        attrgetter("shortpools"),
        "Move short PBS jobs into the cores that are kept for them",
        Change("reservations", "shortpools", NOT_KNOWN, "standing reservations", f"`shortpools`{_NOT_SHOWN}"),
    ),
)


def files(goal: Desired) -> dict[str, str]:
    """Return the files (text by name) to install beside the server. Raises ExportError."""
    config, options = goal.config, goal.options
    values = {
        "config": config,
        "goal": goal,
        "gpus": types.gpus_of(options.scheduler),
        "kept": KEPT,
        "widest": max((each.count * each.cores for each in config.nodes), default=0),
        "qos": qos,
        "resource": ESTIMATE,
        "hook": ESTIMATES,
        "short": {each.name: each.walltime for each in reservations(config)},
        **OF_TABLES,
    }
    written = {"resource_group": fairshare.resource_group(config)} if config.is_fair else {}
    for extra in filter(lambda extra: extra.wanted(config), EXTRAS):
        for file, template in extra.templates.items():
            written[file] = render("pbs", template, name=extra.file, does=extra.does, **values)
    if options.estimates is not None:
        written |= table(config, options.estimates)
    if config.hours:
        hours.refuse(config)
        written[hours.FILE] = hours.cron(config, partial(throttles.commands, goal.server), throttles.HEAD)
    return written


def needs(config: SiteConfig) -> tuple[str, ...]:
    """Return what root must install and keep running, each with its runner, frequency and reason."""
    return tuple(extra.need for extra in EXTRAS if extra.need and extra.wanted(config))


def rows(there: Mapping[str, str]) -> Iterator[Change]:
    """Yield the plan rows of the items whose file is in `there`."""
    return (extra.row for extra in EXTRAS if extra.file in there)


def reservations(config: SiteConfig) -> list[Standing]:
    """Return the standing reservation of each shortpool."""
    return [
        standing(each, number, [day for day in DAYS if day in each.days], each.cores)
        for number, each in enumerate(config.shortpools, start=1)
    ]
