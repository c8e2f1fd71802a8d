"""Whether queues would suspend the running jobs of others, and how an export keeps them from it.

PBS calls a queue whose Priority reaches preempt_queue_prio an express queue: its waiting jobs suspend running ones,
before any formula is looked at. The simulator suspends no job.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from qconf.config import SiteConfig
from qconf.export.pbs.scheduler import Scheduler
from qconf.export.pbs.server import Server
from qconf.export.priorities import HIGHEST, Priorities, scale

LINE = 150  #: preempt_queue_prio as PBS ships it


@dataclass(frozen=True)
class Preemption:
    """The priorities to export, whether preemption has to be turned off for them, and what to know of it."""

    priorities: Priorities
    off: bool = False
    notes: tuple[str, ...] = ()


def express_line(server: Server, scheduler: Scheduler) -> int | None:
    """Return the Priority from which the jobs of a queue suspend running ones; None where none do."""
    attributes = server.scheduler
    levels = attributes.get("preempt_prio") or scheduler.value("preempt_prio") or "express_queue, normal_jobs"
    if not scheduler.on("preemptive_sched", default=True) or "express_queue" not in levels:
        return None
    text = attributes.get("preempt_queue_prio") or scheduler.value("preempt_queue_prio") or ""
    return int(text) if re.fullmatch(r"-?[0-9]{1,9}", text) else LINE


def preemption(config: SiteConfig, server: Server | None = None, scheduler: Scheduler | None = None) -> Preemption:
    """Scale the priorities of `config` below the line; what cannot lie below it needs preemption turned off."""
    server, scheduler = server or Server(), scheduler or Scheduler()
    line = express_line(server, scheduler)
    if line is None:
        return Preemption(scale(config.queues))
    held = {name: int(server.queues[name].get("Priority", "0")) for name in server.of_type("execution")}
    express = {name: priority for name, priority in held.items() if priority >= line}
    own = [name for name in express if name in config.names]
    others = [name for name in express if name not in own]
    different = len({queue.priority for queue in config.queues})
    if not own and different < line:
        priorities = scale(config.queues, min(HIGHEST, line - 1))
        return Preemption(priorities, notes=_kept_below(config, priorities, line, others))
    why = (
        f"{_listed(own, held)} reached it already: its waiting jobs suspend running ones today"
        if own
        else f"{different} different priorities do not fit below it"
    )
    also = f" Those of {_listed(others, held)} no longer do either." if others else ""
    note = (
        f"**Preemption is turned off (`preemptive_sched: false ALL`).** From Priority {line} on (preempt_queue_prio) a "
        f"queue is an express queue, and {why}. The simulator suspends no job, so the change is loaded without.{also} "
        "Where jobs are to be suspended, do not load it."
    )
    return Preemption(scale(config.queues), off=True, notes=(note,))


def _kept_below(config: SiteConfig, priorities: Priorities, line: int, others: list[str]) -> tuple[str, ...]:
    notes = []
    if any(queue.priority >= line for queue in config.queues):
        listed = ", ".join(f"{name} {value}" for name, value in priorities.values.items())
        notes.append(
            f"Queue priorities are exported below {line} ({listed}): from there on (preempt_queue_prio) the waiting "
            "jobs of a queue would suspend running ones, which the simulator never does."
        )
    if others:
        notes.append(
            f"Jobs of {', '.join(others)} suspend running ones, as they do now (Priority from {line} on, "
            "preempt_queue_prio); that was not simulated."
        )
    return tuple(notes)


def _listed(names: list[str], held: dict[str, int]) -> str:
    return ", ".join(f"{name} ({held[name]})" for name in names)
