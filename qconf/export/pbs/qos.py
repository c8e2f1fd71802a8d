"""Qualities of service in PBS: projects, and the resources that a hook gives their jobs; and back."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from parsim.model.system import LIMITS
from qconf.config import QOSConfig, SiteConfig, ThrottleConfig
from qconf.export.nodes import beside

HOOK = "qconf_qos"
FILE = f"{HOOK}.py"
RESOURCES = ("qos_priority", "qos_target")
NO_PROJECT = "_pbs_project_default"
_LISTS = ("users", "accounts", "groups")
_CLASSES = re.compile(r"^CLASSES = (\{.*\})$", re.MULTILINE)


def limits(config: SiteConfig) -> list[str]:
    """Name the limits of queues and throttles that are not those of a QOS."""
    found = [name for name in LIMITS for queue in config.queues if getattr(queue, name) is not None]
    return [*found, *(name for throttle in config.throttles if not throttle.is_of_qos for name in throttle.limits)]


def needs_hook(config: SiteConfig) -> bool:
    """Whether a QOS is more than a name that limits have."""
    return any(
        qos.priority or qos.target or qos.queues or any(getattr(qos, name) for name in _LISTS) for qos in config.qos
    )


def scoped(config: SiteConfig, throttle: ThrottleConfig, name: str) -> list[str]:
    """Name the projects that a limit of QOS is for: each that has none of its own, or the one."""
    if throttle.name:
        return [throttle.name]
    own = {
        each.name
        for each in config.throttles
        if each.kind == "qos" and each.queue == throttle.queue and name in each.limits
    }
    return [qos.name for qos in config.qos if qos.name not in own]


def defaults(config: SiteConfig, queue: str) -> dict[str, str]:
    """Return the resources that jobs of a queue have by its QOS."""
    of = next((qos for qos in config.qos if queue in qos.queues), None)
    if of is None:
        return {}
    values = zip(RESOURCES, (of.priority, of.target or 0.0), strict=True)
    return {f"resources_default.{name}": f"{value:g}" for name, value in values}


def classes(config: SiteConfig) -> dict[str, dict[str, object]]:
    """Return what the hook has of each QOS."""
    return {
        qos.name: {
            "priority": qos.priority,
            "target": qos.target or 0,
            **{name: [*getattr(qos, name)] for name in (*_LISTS, "queues")},
        }
        for qos in config.qos
    }


def read(folder: Path) -> tuple[QOSConfig, ...]:
    """Read the QOS in the hook of an export; none where there is no such file."""
    found = _CLASSES.search(beside(folder, FILE))
    if found is None:
        return ()
    return tuple(
        QOSConfig.model_validate({"name": name, **{key: value for key, value in of.items() if value}})
        for name, of in json.loads(found[1]).items()
    )


def completed(known: Sequence[QOSConfig], throttles: Sequence[ThrottleConfig]) -> tuple[QOSConfig, ...]:
    """Return the QOS with those that limits of projects name."""
    names = dict.fromkeys(each.name for each in throttles if each.kind == "qos" and each.name)
    others = [name for name in names if name not in {qos.name for qos in known}]
    return (*known, *(QOSConfig(name=name) for name in others))
