"""Scripts, hooks and cron files installed beside a PBS server, and the changes of an export as rows of its plan."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from qconf.config import SiteConfig
from qconf.config.models import DAYS
from qconf.export import hours
from qconf.export.estimates import OF_TABLES, table
from qconf.export.pbs import fairshare, qos, throttles, types
from qconf.export.pbs.queues import why_of
from qconf.export.pbs.server import Attributes, Scheduler, is_true
from qconf.export.rendering import notes, render
from qconf.history.closures import Standing, standing

if TYPE_CHECKING:
    from qconf.export.pbs.desired import Desired

NOT_KNOWN = "not known"
PROMOTE, RESERVE, SHORTPOOL = SCRIPTS = ("qconf-promote", "qconf-reserve", "qconf-shortpool")
ESTIMATE, ESTIMATES, RESERVE_HOOK = "estimate", "qconf_estimate", "qconf_reserve"  #: a resource of jobs; hooks
HOOKS = [types.KEPT_HOOK, qos.HOOK, ESTIMATES, RESERVE_HOOK]


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
    _hook(types.KEPT_HOOK, attrgetter("keeps_cores"), "`kept_per_gpu`", "cores that jobs without GPUs leave"),
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


def reservations(config: SiteConfig) -> list[Standing]:
    """Return the standing reservation of each shortpool."""
    return [
        standing(each, number, [day for day in DAYS if day in each.days], each.cores)
        for number, each in enumerate(config.shortpools, start=1)
    ]


NOTHING = "Your server is this configuration already: there is nothing to load."
#: Effect of turning off or removing a setting of sched_config that is on.
_ENDS = {
    "by_queue": "PBS takes the jobs of all queues together, and no longer one queue after the other",
    "round_robin": "PBS no longer takes the queues in turn",
    "fair_share": "what users have used no longer orders the waiting jobs",
    "strict_ordering": "no waiting job has a reservation any more",
    "help_starving_jobs": "PBS puts no starving jobs first by itself: the formula does",
    "preemptive_sched": "no waiting job suspends running ones any more",
}


#: Settings of sched_config that sort waiting jobs.
_OF_ORDER = ("by_queue", "round_robin", "fair_share", "job_sort_key")


def changes(
    goal: Desired, files: Mapping[str, str], counts: Mapping[str, int], left_over: Sequence[str]
) -> list[Change]:
    """List all changes in the order of the plan; `counts`: nodes by what they get, `left_over`: hooks to remove."""
    before, after, options = goal.before, goal.server, goal.options
    found: list[Change] = []
    new = [name for name in after.resources if name not in before.resources]
    found += [Change("resource", name, "", after.resources[name]["type"], "what is set names it") for name in new]
    found += _attributes("server", before.attributes, after.attributes)
    for name, attributes in after.queues.items():
        if name not in before.queues:
            held = ", ".join(f"{key} = {value}" for key, value in attributes.items())
            found.append(Change(f"queue {name}", "", "", held, "the configuration has it"))
            continue
        closed = name in goal.closed
        for row in _attributes(f"queue {name}", before.queues[name], attributes):
            found.append(row._replace(why="the configuration has no such queue") if closed else row)
    found += _attributes("scheduler", before.scheduler, after.scheduler)
    scheduler = options.scheduler
    for name, value in goal.settings.items():
        old = NOT_KNOWN if scheduler is None else scheduler.value(name) or ""
        found.append(Change("sched_config", name, old, value or "", why_of(name)))
    if "\nresources:" in files.get("sched_config.changes", ""):
        found.append(Change("sched_config", "resources", "", "more names", why_of("resources")))
    if "nodes.qmgr" in files and ("set node" in files["nodes.qmgr"] or not options.nodes):
        named = "; ".join(f"{count} with {what}" for what, count in counts.items())
        found.append(Change("nodes", "resources_available", "", named or NOT_KNOWN, why_of("Qlist")))
    gone = [Change("host", name, "installed by an earlier export", "", "it is not needed") for name in left_over]
    return [*found, *gone, *(extra.row for extra in EXTRAS if extra.file in files)]


def _attributes(of: str, old: Attributes, new: Attributes) -> Iterator[Change]:
    for key in dict.fromkeys((*old, *new)):
        if old.get(key) != new.get(key):
            yield Change(of, key, old.get(key, ""), new.get(key, ""), why_of(key))


def ended(table: Sequence[Change], goal: Desired) -> list[str]:
    """Describe settings that these changes end, and settings that stay although they were not simulated."""
    before, closed = goal.before, goal.closed
    rows = [row for row in table if row.of == "sched_config" and row.old == NOT_KNOWN]
    peer = (goal.options.scheduler or Scheduler()).value("peer_queue")
    held = [name for name, of in before.queues.items() if of.get("queue_type") and not is_true(of.get("started"))]
    values = {
        "table": table,
        "ends": _ENDS,
        "is_true": is_true,
        "unknown": [row.name for row in rows if row.name in _OF_ORDER],
        "peer": peer,
        "gone": [name for name in closed if re.search(rf"(?:^|, ?)\"?{re.escape(name)}[\s,]", f"{peer} ")],
        "hooks": before.own_hooks,
        "stopped": [name for name in held if name not in closed],
    }
    return notes("pbs", "ended", **values)
