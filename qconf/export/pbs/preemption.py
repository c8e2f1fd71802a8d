"""Write preemption between queues as express queues, and read it back; or keep queues from becoming express.

PBS calls a queue with Priority >= preempt_queue_prio an express queue: its waiting jobs preempt running jobs of every
lower level, whatever the formula. Each Priority of express queues is a level, all other queues are one level.
preempt_order is the single setting for the preempted jobs; the resource preempt_targets names the jobs that a job may
preempt.

References
----------
OpenPBS Administrator's Guide, "Using Preemption".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from qconf.config import QueueConfig, SiteConfig
from qconf.export.pbs.merging import TARGETS
from qconf.export.pbs.server import Attributes, Scheduler, Server, priority_of
from qconf.export.priorities import HIGHEST, LOWEST, Priorities, as_present, scale
from qconf.export.rendering import notes

LINE = 150  #: default of preempt_queue_prio
METHODS = {"suspend": "S", "checkpoint": "C", "requeue": "R"}  #: preempt_order, by `preempted`
#: Defaults of the settings for preemption.
_DEFAULTS = {
    "preempt_queue_prio": str(LINE),
    "preempt_prio": "express_queue, normal_jobs",
    "preempt_order": "SCR",
    "preempt_sort": "min_time_since_start",
}


@dataclass(frozen=True)
class Preemption:
    """The priorities to export, the settings for preemption, and notes."""

    priorities: Priorities
    on: bool | None = None  #: turn preemption on or off; None leaves it
    scheduler: Attributes = field(default_factory=dict)  #: attributes of the scheduler
    targets: dict[str, str] = field(default_factory=dict)  #: queue -> preempt_targets
    notes: tuple[str, ...] = ()


def express_line(server: Server, scheduler: Scheduler) -> int | None:
    """Return the Priority at which a queue becomes express, None if preemption is off."""
    if not scheduler.on("preemptive_sched", default=True):
        return None
    if "express_queue" not in _present(server, scheduler, "preempt_prio"):
        return None
    text = _present(server, scheduler, "preempt_queue_prio")
    return int(text) if re.fullmatch(r"-?[0-9]{1,9}", text) else LINE


def _present(server: Server, scheduler: Scheduler, name: str) -> str:
    """Return a setting: the scheduler's attribute, or (PBS before 20) a line of sched_config, or the default."""
    return server.scheduler.get(name) or scheduler.value(name) or _DEFAULTS[name]


def _levels(config: SiteConfig) -> list[int]:
    return sorted({queue.tier for queue in config.queues})


def preempted_queues(config: SiteConfig) -> list[QueueConfig]:
    """Return the queues whose running jobs may be preempted."""
    highest = _levels(config)[-1]
    return [queue for queue in config.queues if queue.tier < highest and queue.preempted != "off"]


def preemption(
    config: SiteConfig,
    server: Server | None = None,
    scheduler: Scheduler | None = None,
    base: SiteConfig | None = None,
) -> Preemption:
    """Return priorities and settings that make queues of higher tiers express queues, or keep all queues below.

    Queues keep their present Priority if their priority is the same in `base`, the server's present configuration.
    """
    server, scheduler = server or Server(), scheduler or Scheduler()
    there = (
        [queue for queue in base.queues if queue.name in server.queues and queue.name in config.names] if base else []
    )
    present = {queue.name: (queue.priority, priority_of(server.queues[queue.name])) for queue in there}
    if config.has_tiers:
        return _express(config, server, scheduler, present)
    return _none(config, server, scheduler, base, present)


def _express(
    config: SiteConfig, server: Server, scheduler: Scheduler, present: Mapping[str, tuple[float, int]]
) -> Preemption:
    lowest, *higher = _levels(config)
    line = min(LINE, HIGHEST + 1 - len(higher))
    below = scale([queue for queue in config.queues if queue.tier == lowest], line - 1)
    express = [queue for queue in config.queues if queue.tier != lowest]
    values = {queue.name: line + higher.index(queue.tier) for queue in express}
    exact = {values[queue.name]: queue.priority for queue in express}
    priorities = Priorities(below.values | values, None, below.exact | exact)
    line_now = express_line(server, scheduler)
    kept = as_present(config.queues, present)
    ranks = {queue.name: _levels(config).index(queue.tier) for queue in config.queues}
    if kept and _ranked(kept.values, line_now) == ranks:
        priorities, values = kept, {queue.name: kept.values[queue.name] for queue in express}
    preempted = preempted_queues(config)
    targets = {}
    for queue in express:
        reached = [each.name for each in preempted if each.tier < queue.tier]
        of_all = len(reached) == sum(each.tier < queue.tier for each in config.queues)
        is_express = line_now is not None and present.get(queue.name, (0, LOWEST))[1] >= line_now
        if not (of_all and is_express and TARGETS not in {**server.attributes, **server.queues[queue.name]}):
            targets[queue.name] = ",".join(f"queue={name}" for name in reached) or "NONE"
    wanted = _DEFAULTS | {"preempt_queue_prio": str(line)}
    if preempted:
        wanted["preempt_order"] = METHODS[preempted[0].preempted]
    changed = {name: value for name, value in wanted.items() if _present(server, scheduler, name) != value}
    return Preemption(priorities, True, changed, targets, tuple(_notes(config, values, targets, server)))


def _notes(config: SiteConfig, express: dict[str, int], targets: dict[str, str], server: Server) -> list[str]:
    present = {name: server.queues[name].get(TARGETS) for name in express if name in server.queues}
    held = {name: priority_of(server.queues[name]) for name in server.of_type("execution")}
    preempted = preempted_queues(config)
    values = {
        "listed": ", ".join(f"{name} {value}" for name, value in express.items()),
        "already": [name for name, text in present.items() if text != targets.get(name)],
        "others": [name for name in held if held[name] >= min(express.values()) and name not in config.names],
        "preempted": preempted,
        "method": preempted[0].preempted if preempted else "off",
    }
    return notes("pbs", "express", config=config, **values)


def read_tiers(config: SiteConfig, server: Server, scheduler: Scheduler, warnings: list[str]) -> SiteConfig:
    """Return `config` with tiers for express queues; settings without a counterpart become warnings."""
    line = express_line(server, scheduler)
    if line is None:
        return config
    held = {name: priority_of(server.queues[name]) for name in config.names}
    ranks = {value: rank for rank, value in enumerate(sorted({max(value, line - 1) for value in held.values()}))}
    tiers = {name: ranks[max(value, line - 1)] for name, value in held.items()}
    if len(ranks) == 1:
        return config
    if config.mode != "shared":
        express = ", ".join(name for name, value in held.items() if value >= line)
        warnings.append(
            f"{express}: jobs preempt those of others (Priority from {line} on), which is not simulated on a divided "
            "machine"
        )
        return config
    mode = _method(_present(server, scheduler, "preempt_order"), warnings)
    queues = []
    for queue in config.queues:
        above = [name for name in config.names if tiers[name] > tiers[queue.name]]
        reached = [name for name in above if queue.name in _targets(name, server, config, warnings)]
        if reached and len(reached) < len(above):
            others = ", ".join(name for name in above if name not in reached)
            warnings.append(
                f"{queue.name}: jobs of {others} do not preempt it, those of {', '.join(reached)} do; all was taken"
            )
        queues.append(queue.model_copy(update={"tier": tiers[queue.name], "preempted": mode if reached else "off"}))
    kept = config.reserve == "nothing" or (config.nodes and config.reserve == "nodes")
    reserve = config.reserve if kept else "cores"
    if config.reservation_depth != 1:
        depth = "all" if config.reservation_depth is None else config.reservation_depth
        warnings.append(
            f"backfill_depth = {depth}: with queues whose jobs preempt those of others one reservation is simulated"
        )
    return config.replace(queues=tuple(queues), held_jobs="pass", reserve=reserve, reservation_depth=1)


def _method(order: str, warnings: list[str]) -> str:
    """Return `preempted` for the first method in preempt_order."""
    found = next((mode for mode, letter in METHODS.items() if order.strip('" ').startswith(letter)), "off")
    if found == "off" or not order.strip('" ').isalpha():
        warnings.append(f"preempt_order = {order}: {found} was taken, the simulator has no other form for it")
    return found


def _targets(name: str, server: Server, config: SiteConfig, warnings: list[str]) -> list[str]:
    """Return the queues whose jobs a queue's jobs may preempt."""
    text = server.queues[name].get(TARGETS) or server.attributes.get(TARGETS)
    if text is None:
        return list(config.names)
    words = [word.strip() for word in text.split(",")]
    if other := [word for word in words if not re.match("(?i)queue=|none$", word)]:
        warnings.append(f"{name}: {TARGETS} = {', '.join(other)} has no place in a configuration")
    return [] if "none" in text.lower().split(",") else [word.partition("=")[2] for word in words]


def _ranked(values: Mapping[str, int], line: int | None) -> dict[str, int]:
    """Return each queue's preemption level, 0 for all queues below `line`."""
    most = HIGHEST if line is None else line - 1
    levels = sorted({most, *(max(value, most) for value in values.values())})
    return {name: levels.index(max(value, most)) for name, value in values.items()}


def _none(
    config: SiteConfig,
    server: Server,
    scheduler: Scheduler,
    base: SiteConfig | None,
    present: Mapping[str, tuple[float, int]],
) -> Preemption:
    """Keep all priorities below the line; if that is impossible, turn preemption off."""
    line = express_line(server, scheduler)
    least = 1 if config.pool_cores else LOWEST  # pool queues have the negatives
    held = {name: priority_of(server.queues[name]) for name in server.of_type("execution")}
    express = {name: priority for name, priority in held.items() if line is not None and priority >= line}
    own = [name for name in express if name in config.names]
    others = [name for name in express if name not in own]
    new = dict.fromkeys(config.names, LOWEST)
    ranks = _ranked(new | {name: at for name, (_, at) in present.items()}, line)
    for highest in () if base is not None and base.has_tiers else (HIGHEST, HIGHEST if line is None else line - 1):
        kept = as_present(config.queues, present, highest, least)
        if kept and (least == LOWEST or min(kept.values.values()) > 0) and _ranked(kept.values, line) == ranks:
            below = () if line is None or highest == HIGHEST else _kept_below(config, kept, line, others)
            return Preemption(kept, notes=below)
    if line is None:
        return Preemption(scale(config.queues))
    different = len({queue.priority for queue in config.queues})
    if not own and different < line:
        priorities = scale(config.queues, min(HIGHEST, line - 1))
        return Preemption(priorities, notes=_kept_below(config, priorities, line, others))
    named = {"own": own, "others": others}
    listed = {what: ", ".join(f"{name} ({held[name]})" for name in names) for what, names in named.items()}
    noted = notes("pbs", "turned_off", line=line, different=different, **listed)
    return Preemption(scale(config.queues), on=False, notes=tuple(noted))


def _kept_below(config: SiteConfig, priorities: Priorities, line: int, others: list[str]) -> tuple[str, ...]:
    listed = ", ".join(f"{name} {value}" for name, value in priorities.values.items())
    return tuple(notes("pbs", "below", config=config, line=line, listed=listed, others=others))
