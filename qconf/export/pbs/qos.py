"""Write qualities of service as PBS projects, with a hook that sets resources of their jobs; read them back."""

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
    """Return the names of limits in queues and throttles that do not belong to a QOS."""
    found = [name for name in LIMITS for queue in config.queues if getattr(queue, name) is not None]
    return [*found, *(name for throttle in config.throttles if not throttle.is_of_qos for name in throttle.limits)]


def needs_hook(config: SiteConfig) -> bool:
    """Whether some QOS has a priority, target or members, and not only limits."""
    return any(
        qos.priority or qos.target or qos.queues or any(getattr(qos, name) for name in _LISTS) for qos in config.qos
    )


def scoped(config: SiteConfig, throttle: ThrottleConfig, name: str) -> list[str]:
    """Return the projects of a throttle of QOS: the named one, or each without a limit `name` of its own."""
    if throttle.name:
        return [throttle.name]
    own = {
        each.name
        for each in config.throttles
        if each.kind == "qos" and each.queue == throttle.queue and name in each.limits
    }
    return [qos.name for qos in config.qos if qos.name not in own]


def defaults(config: SiteConfig, queue: str) -> dict[str, str]:
    """Return the resources_default attributes for the QOS of a queue."""
    of = next((qos for qos in config.qos if queue in qos.queues), None)
    if of is None:
        return {}
    values = zip(RESOURCES, (of.priority, of.target or 0.0), strict=True)
    return {f"resources_default.{name}": f"{value:g}" for name, value in values}


def classes(config: SiteConfig) -> dict[str, dict[str, object]]:
    """Return the data of the hook, by QOS."""
    return {
        qos.name: {
            "priority": qos.priority,
            "target": qos.target or 0,
            **{name: [*getattr(qos, name)] for name in (*_LISTS, "queues")},
        }
        for qos in config.qos
    }


def read(folder: Path) -> tuple[QOSConfig, ...]:
    """Read the QOS from the hook in an export's folder; empty without the file."""
    found = _CLASSES.search(beside(folder, FILE))
    if found is None:
        return ()
    return tuple(
        QOSConfig.model_validate({"name": name, **{key: value for key, value in of.items() if value}})
        for name, of in json.loads(found[1]).items()
    )


def completed(known: Sequence[QOSConfig], throttles: Sequence[ThrottleConfig]) -> tuple[QOSConfig, ...]:
    """Return the QOS, plus those that only occur in limits of projects."""
    names = dict.fromkeys(each.name for each in throttles if each.kind == "qos" and each.name)
    others = [name for name in names if name not in {qos.name for qos in known}]
    return (*known, *(QOSConfig(name=name) for name in others))
