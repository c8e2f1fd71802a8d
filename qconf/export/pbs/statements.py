"""From what a server holds to what it is to hold: the fewest qmgr statements, in an order that it accepts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from qconf.export.base import ExportError
from qconf.export.pbs.lint import OLD_LIMITS
from qconf.export.pbs.server import Attributes, Server

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
    limits = [
        f"unset queue {name} {key}"
        for name, old in before.queues.items()
        for key in old
        if key.partition(".")[0] in (*OLD_LIMITS, "max_run", "max_run_res")
        and _style(key) != _style_of(after.queues.get(name, {}), key)
        and name in after.queues
    ]
    unset = set(limits)
    sections = {
        "resources": [
            f"create resource {name} " + ", ".join(f"{key}={quoted(value)}" for key, value in attributes.items())
            for name, attributes in after.resources.items()
            if name not in before.resources
        ],
        "limits of the other style": limits,
        "new queues": [
            line for name, new in after.queues.items() if name not in before.queues for line in _create(name, new)
        ],
        "changed queues": [
            line
            for name, new in after.queues.items()
            if name in before.queues
            for line in _change(f"queue {name}", before.queues[name], new)
            if line not in unset
        ],
        "server": list(_change("server", before.attributes, after.attributes)),
        "queues to delete": [f"delete queue {name}" for name in before.queues if name not in after.queues],
        "resources to delete": [f"delete resource {name}" for name in before.resources if name not in after.resources],
    }
    return {title: lines for title, lines in sections.items() if lines}


def _style(key: str) -> bool:
    return key.partition(".")[0] in OLD_LIMITS


def _style_of(attributes: Attributes, key: str) -> bool | None:
    """Tell the style of the limits in `attributes`; that of `key` where there are none."""
    styles = {_style(k) for k in attributes if k.partition(".")[0] in (*OLD_LIMITS, "max_run", "max_run_res")}
    return _style(key) if len(styles) != 1 else styles.pop()


def _create(name: str, attributes: Attributes) -> Iterator[str]:
    yield f"create queue {name}"
    last = ("enabled", "started")  # the server takes them after everything else only
    for key in (*(key for key in attributes if key not in last), *(key for key in last if key in attributes)):
        yield f"set queue {name} {key} = {quoted(attributes[key])}"


def _change(subject: str, old: Attributes, new: Attributes) -> Iterator[str]:
    for key in old:
        if key not in new:
            yield f"unset {subject} {key}"
    for key, value in new.items():
        if old.get(key) != value:
            yield f"set {subject} {key} = {quoted(value)}"
