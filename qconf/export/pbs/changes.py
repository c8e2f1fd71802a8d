"""List the changes of an export by attribute, with reasons, and describe their side effects."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from qconf.export.pbs import beside
from qconf.export.pbs.beside import NOT_KNOWN, Change
from qconf.export.pbs.queues import why_of
from qconf.export.pbs.scheduler import Scheduler
from qconf.export.pbs.server import Attributes, is_true
from qconf.export.rendering import notes

if TYPE_CHECKING:
    from qconf.export.pbs.desired import Desired

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
        rows = list(_attributes(f"queue {name}", before.queues[name], attributes))
        closed = name in goal.closed
        found += [row._replace(why="the configuration has no such queue") if closed else row for row in rows]
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
    return [*found, *gone, *beside.rows(files)]


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
