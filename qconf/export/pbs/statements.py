"""From what a server holds to what it is to hold: the fewest qmgr statements, in an order that it accepts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from qconf.errors import ExportError
from qconf.export.pbs.server import Attributes, Server

TARGETS = "resources_default.preempt_targets"
_BARE = re.compile(r"[A-Za-z0-9_.:@*+/-]+|\[[a-z]:[A-Za-z0-9_.-]+=[0-9]+\]")


def quoted(value: str) -> str:
    """Write a value as it may stand in a statement; raises `ExportError` where qmgr has no way to."""
    if _BARE.fullmatch(value):
        return value
    if value and value.isascii() and value.isprintable() and not set("\\;#") & set(value):
        for quote in "\"'":
            if quote not in value:
                return f"{quote}{value}{quote}"
    raise ExportError(f"the value {value!r} cannot be written in a qmgr script")


def transition(before: Server, after: Server) -> dict[str, list[str]]:
    """Write what turns `before` into `after`, section by section, in the order in which to load them."""
    resources = {name: new for name, new in after.resources.items() if name not in before.resources}
    created: list[str] = []
    changed: list[str] = []
    for name, new in after.queues.items():
        if name in before.queues:
            changed += _change(f"queue {name}", before.queues[name], new)
        else:
            created += _create(name, new)
    targets = [line for line in (*created, *changed) if TARGETS in line]
    scheduler = list(_change("sched", before.scheduler, after.scheduler))
    sections = {
        "resources": [
            f"create resource {name} " + ", ".join(f"{key}={quoted(value)}" for key, value in new.items())
            for name, new in resources.items()
        ],
        "new queues": [line for line in created if line not in targets],
        "changed queues": [line for line in changed if line not in targets],
        "what jobs preempt": targets,  # of queues that have to be there
        "the scheduler's own formula": [line for line in scheduler if line.startswith("unset")],
        "server": list(_change("server", before.attributes, after.attributes)),
        "scheduler": [line for line in scheduler if line.startswith("set")],
        "queues to delete": [f"delete queue {name}" for name in before.queues if name not in after.queues],
        "resources to delete": [f"delete resource {name}" for name in before.resources if name not in after.resources],
    }
    return {title: lines for title, lines in sections.items() if lines}


def _create(name: str, attributes: Attributes) -> Iterator[str]:
    yield f"create queue {name}"
    last = {"enabled": 1, "started": 2}  # the server takes them after everything else only
    for key in sorted(attributes, key=lambda key: last.get(key, 0)):
        yield f"set queue {name} {key} = {quoted(attributes[key])}"


def _change(subject: str, old: Attributes, new: Attributes) -> Iterator[str]:
    for key in old:
        if key not in new:
            yield f"unset {subject} {key}"
    for key, value in new.items():
        if old.get(key) != value:
            yield f"set {subject} {key} = {quoted(value)}"
