"""Which Route queues a server is to have, and where they lead."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from qconf.config import SiteConfig, lost_job
from qconf.errors import ExportError
from qconf.export.pbs.server import Server, destinations, is_type


def entry(before: Server, given: str | None, names: Collection[str]) -> str:
    """Name the Route queue that jobs come through: `given`, else that which is there; nothing where none is."""
    if given is not None:
        if given in names or not is_type(before.queues.get(given, {"queue_type": "Route"}), "route"):
            raise ExportError(f"{given!r} cannot be the Route queue: it is a queue of jobs")
        return given
    routes, default = before.of_type("route"), before.attributes.get("default_queue", "")
    inner = {name for route in routes for name in destinations(before.queues[route])}
    outer = [name for name in routes if name not in inner] or routes
    return default if default in routes else outer[0] if outer else ""


def new_entry(config: SiteConfig, before: Server, closed: Collection[str], base: SiteConfig | None) -> str:
    """Name the Route queue that has to be made for jobs to find their queues; nothing where they do by themselves.

    They do where every queue takes what it takes now, and the default one is there still.
    """
    if base is not None and not closed:
        default = before.attributes.get("default_queue", "")
        lost = [queue for queue in base.queues if queue.name not in config.names and queue.name == default]
        if any(name not in base.names for name in config.names):
            kept = {queue.name: queue for queue in config.queues}
            lost += [queue for queue in base.queues if queue.name in kept and lost_job([queue], [kept[queue.name]])]
        if not lost:
            return ""
    taken = {*config.names, *before.queues}
    return next((name for name in ("route", "qroute", "routing") if name not in taken), "qconf_route")


def led_to(
    before: Server, base: Sequence[str], names: Sequence[str], closed: Collection[str], entry: str
) -> dict[str, list[str]]:
    """Return the destinations that each Route queue of a server is to have, where they are others than now.

    `base` are the queues of the present configuration and `names` those of the new one, in their order. A queue that
    is new comes behind the one before it, in the Route queue that has this one; what is closed leaves. A Route queue
    that has none left leads to all queues: jobs that users send there still find one.
    """
    now = {route: destinations(before.queues[route]) for route in before.of_type("route")}
    found = {route: [name for name in listed if name not in closed] for route, listed in now.items()}
    reordered = [name for name in base if name in names] != [name for name in names if name in base]
    for listed in found.values():
        if reordered:
            known = sorted((name for name in listed if name in names), key=names.index)
            listed[:] = [known.pop(0) if name in names else name for name in listed]
    for i, name in enumerate(names):
        if name in base or any(name in listed for listed in found.values()):
            continue
        kept = [each for each in (*reversed(names[:i]), *names[i + 1 :]) if each in base and each not in closed]
        if not kept and entry in found:
            found[entry].append(name)
        for listed in found.values():
            if kept and kept[0] in listed:
                earlier = [each for each in listed if each in names[:i]]
                listed.insert(listed.index((earlier or kept)[-1 if earlier else 0]) + bool(earlier), name)
    found = {route: listed if listed or not now[route] else [*names] for route, listed in found.items()}
    return {route: listed for route, listed in found.items() if listed != now[route]}
