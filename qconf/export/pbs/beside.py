"""What is installed beside a PBS server: when, with which files, and what a plan says of each; one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from qconf.config import SiteConfig
from qconf.config.models import DAYS
from qconf.export import hours
from qconf.export.estimates import OF_TABLES, table
from qconf.export.pbs import fairshare, kept, qos, throttles, types
from qconf.export.rendering import render
from qconf.history.standing import Standing, standing

if TYPE_CHECKING:
    from qconf.export.pbs import PbsExporter
    from qconf.export.pbs.desired import Desired

NOT_KNOWN = "not known"
SHORTPOOL = "qconf-shortpool"


class Change(NamedTuple):
    """An attribute of an object, what it is and what it becomes; empty, it is not there."""

    of: str
    name: str
    old: str
    new: str
    why: str


@dataclass(frozen=True)
class Script:
    """A script that is run every minute beside PBS, and what the plan needs of it."""

    name: str
    does: str
    title: str
    restore: list[str] = field(default_factory=list)  #: commands that take back what it did, when it is stopped
    hook: str = ""  #: name of the hook that does the same at submission

    def files(self, **values: object) -> dict[str, str]:
        """Write the script, what runs it, and its hook."""
        written = {self.name: render("pbs", f"{self.name.removeprefix('qconf-')}.py", **values)}
        if self.hook:
            written[f"{self.hook}.py"] = render("pbs", f"{self.hook.removeprefix('qconf_')}_hook.py", **values)
        return written | _units(self.name, self.does)


def _units(name: str, does: str) -> dict[str, str]:
    """Write what runs a script every minute."""
    return {
        f"{name}.{unit}": render("pbs", f"minutely.{unit}", name=name, does=does)
        for unit in ("service", "timer", "cron")
    }


PROMOTE = Script(
    name="qconf-promote",
    does="Move PBS jobs that have waited long for their walltime into the common pool",
    title="Install the script that moves jobs into the pool",
)
RESERVE = Script(
    name="qconf-reserve",
    does="Let PBS jobs wait before they may become top jobs",
    title="Install the script that lets jobs wait before they get a reservation",
    # of running jobs too: they may be rerun
    restore=["qselect -s BHQRSW | xargs -r -n 1 qalter -W topjob_ineligible=False"],
    hook="qconf_reserve",
)
SCRIPTS = [PROMOTE.name, RESERVE.name, SHORTPOOL]
ESTIMATE, ESTIMATES = "estimate", "qconf_estimate"  #: the resource of jobs that have a prediction, and its hook
HOOKS = [kept.HOOK, qos.HOOK, ESTIMATES, RESERVE.hook]


def script_of(config: SiteConfig) -> Script | None:
    """Return the script without which PBS does not do what was simulated; None where it does."""
    if config.pool_cores and not all(queue.reservation for queue in config.queues):
        return PROMOTE
    return RESERVE if config.reservation_delay else None


def _script(config: SiteConfig, goal: Desired, _: PbsExporter) -> dict[str, str]:
    script = script_of(config)
    return {} if script is None else script.files(config=config, goal=goal)


def _qos(config: SiteConfig, *_: object) -> dict[str, str]:
    return {qos.FILE: render("pbs", "qos_hook.py", classes=qos.classes(config))}


def _kept(config: SiteConfig, _: Desired, options: PbsExporter) -> dict[str, str]:
    values = {"resource": kept.RESOURCE, "gpus": types.gpus_of(options.scheduler), "widest": kept.widest(config)}
    return {kept.FILE: render("pbs", "kept_hook.py", **values)}


def _estimates(config: SiteConfig, _: Desired, options: PbsExporter) -> dict[str, str]:
    values = {**OF_TABLES, "resource": ESTIMATE, "hook": ESTIMATES}
    written = {f"{ESTIMATES}.py": render("pbs", "estimate_hook.py", **values)}
    return written if options.estimates is None else written | table(config, options.estimates)


def _hours(config: SiteConfig, goal: Desired, _: PbsExporter) -> dict[str, str]:
    hours.refuse(config)
    return {hours.FILE: hours.cron(config, partial(throttles.commands, goal.server), throttles.HEAD)}


def _shortpools(config: SiteConfig, *_: object) -> dict[str, str]:
    short = {"name": SHORTPOOL, "does": "Move short PBS jobs into the cores that are kept for them"}
    limits = {each.name: each.walltime for each in reservations(config)}
    script = render("pbs", "shortpool.py", queues=config.names, short=limits, **short)
    return {SHORTPOOL: script, **_units(**short)}


Write = Callable[[SiteConfig, "Desired", "PbsExporter"], dict[str, str]]


class Extra(NamedTuple):
    """Something beside the server, known by a file of it."""

    file: str
    wanted: Callable[[SiteConfig], object]
    row: Change  #: of the plan's table
    write: Write
    need: str = ""  #: what root has to install and keep running


def _minutely(script: Script, why: str) -> Extra:
    row = Change("host", script.name, "", "run every minute", why)
    need = f"a systemd timer or cron job of root every minute: {script.name}"
    return Extra(script.name, lambda config: script_of(config) is script, row, _script, need)


def _hook(name: str, wanted: Callable[[SiteConfig], object], why: str, write: Write, need: str) -> Extra:
    row = Change("hook", name, "", "enabled", why)
    return Extra(f"{name}.py", wanted, row, write, need and f"a hook of the server, for {need}: {name}")


_NOT_SHOWN = "; the server does not show them"
EXTRAS = (
    Extra(
        "resource_group",
        lambda config: config.is_fair,
        Change("scheduler", "resource_group", NOT_KNOWN, "that of the export", "`shares`; --shares compares them"),
        lambda config, *_: {"resource_group": fairshare.resource_group(config)},
    ),
    _minutely(PROMOTE, "`pool`"),
    _minutely(RESERVE, "`reserve_after`"),
    _hook(qos.HOOK, qos.needs_hook, "`qos`", _qos, "qualities of service"),
    _hook(kept.HOOK, lambda config: config.keeps_cores, "`kept_per_gpu`", _kept, "cores that jobs without GPUs leave"),
    _hook(ESTIMATES, lambda config: config.reads_estimate, "`order`", _estimates, "predicted run times"),
    _hook(RESERVE.hook, lambda _: False, "`reserve_after`", lambda *_: {}, ""),  # its script writes it
    Extra(
        hours.FILE,
        lambda config: config.hours,
        Change("host", hours.FILE, NOT_KNOWN, "lines of cron", f"`hours`{_NOT_SHOWN}"),
        _hours,
    ),
    Extra(
        SHORTPOOL,
        lambda config: config.shortpools,
        Change("reservations", "shortpools", NOT_KNOWN, "standing reservations", f"`shortpools`{_NOT_SHOWN}"),
        _shortpools,
    ),
)


def files(config: SiteConfig, goal: Desired, options: PbsExporter) -> dict[str, str]:
    """Write all that a configuration has beside the server. Raises ExportError."""
    written: dict[str, str] = {}
    for extra in EXTRAS:
        written |= extra.write(config, goal, options) if extra.wanted(config) else {}
    return written


def needs(config: SiteConfig) -> tuple[str, ...]:
    """Name what root has to install and keep running, with what runs it, how often, and why."""
    return tuple(extra.need for extra in EXTRAS if extra.need and extra.wanted(config))


def rows(there: Mapping[str, str]) -> Iterator[Change]:
    """Yield what a plan says of those whose files are there."""
    return (extra.row for extra in EXTRAS if extra.file in there)


WEEKS = 52  #: for which reservations are made
_BYDAY = dict(zip(DAYS, ("MO", "TU", "WE", "TH", "FR", "SA", "SU"), strict=True))


def reservations(config: SiteConfig) -> list[Standing]:
    """Return the reservation of each shortpool."""
    return [
        standing(each, number, [day for day in DAYS if day in each.days], each.cores)
        for number, each in enumerate(config.shortpools, start=1)
    ]


def commands(config: SiteConfig) -> list[str]:
    """Write the commands of the shell that make the reservations, from the next time of each on."""
    lines = []
    for each in reservations(config):
        node = config.machine.cores_per_node if config.machine.whole_nodes else 1
        place = "scatter:excl" if config.machine.whole_nodes else "free"
        days = [_BYDAY[day] for day in each.days]
        rule = f"FREQ=WEEKLY;COUNT={WEEKS * len(days)};BYDAY={','.join(days)}"
        request = f"-l select={each.cores // node}:ncpus={node} -l place={place}"
        lines += [
            f"start=$(date --date='next {each.days[0].capitalize()} {each.begin}' +%s)",
            f'stop=$(date --date="@$((start + {60 * each.minutes}))" +%Y%m%d%H%M)',
            f'pbs_rsub -N {each.name} -R $(date --date="@$start" +%Y%m%d%H%M) -E $stop -r "{rule}" {request}',
        ]
    return lines
