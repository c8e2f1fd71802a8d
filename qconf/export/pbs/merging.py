"""Merge the differences between two configurations into a server's state; all other attributes stay word for word.

Also the shortest list of qmgr statements to reach a state, in an order that the server accepts, and its routes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy

from qconf.config import SiteConfig, lost_job
from qconf.errors import ExportError
from qconf.export.pbs.server import Attributes, Server, as_limits, destinations, is_type, limits_in, seconds

#: PBS's older limits, which cannot be mixed with max_run.
OLD_LIMITS = (
    *("max_running", "max_user_run", "max_group_run", "max_user_run_soft", "max_group_run_soft"),
    *("max_user_res", "max_user_res_soft", "max_group_res", "max_group_res_soft"),
)
_LIMITS = ("max_run", "max_queued", "queued_jobs_threshold")
_DURATION = re.compile(r"[0-9]+(:[0-9]+){0,2}")
#: Older limit -> (new name, scope).
_OLDER = {
    "max_running": ("max_run", "o:PBS_ALL"),
    "max_user_run": ("max_run", "u:PBS_GENERIC"),
    "max_group_run": ("max_run", "g:PBS_GENERIC"),
    "max_user_res": ("max_run_res", "u:PBS_GENERIC"),
    "max_group_res": ("max_run_res", "g:PBS_GENERIC"),
    "max_queuable": ("max_queued", "o:PBS_ALL"),
    "max_user_queuable": ("max_queued", "u:PBS_GENERIC"),  # of Torque
}
_NAMES = {new: old for old, new in _OLDER.items()}


def older(server: Server) -> list[str]:
    """Return the older limits that a server has; PBS then accepts no new ones."""
    found = [key for key in server.attributes if key.partition(".")[0] in OLD_LIMITS]
    queues = server.queues.items()
    return found + [f"{name}: {key}" for name, held in queues for key in held if key.partition(".")[0] in OLD_LIMITS]


def newer(server: Server) -> Server:
    """Return a copy of a server whose older limits, where they are numbers or sizes, are written as newer ones."""
    found = deepcopy(server)
    for attributes in (found.attributes, *found.queues.values()):
        for name, (new, scope) in _OLDER.items():
            for key in [key for key in attributes if key.partition(".")[0] == name and attributes[key][:1].isdigit()]:
                limit = f"{new}{key.removeprefix(name)}"
                held = f"[{scope}={attributes.pop(key)}]"
                attributes[limit] = f"{attributes[limit]},{held}" if limit in attributes else held
    return found


def by_scope(attributes: Mapping[str, str]) -> Attributes:
    """Split limits into a key per scope, like ``max_run o:PBS_ALL``; older limits get the same keys."""
    found: Attributes = {}
    for key, value in attributes.items():
        name, _, resource = key.partition(".")
        if name in _OLDER:
            new, scope = _OLDER[name]
            found[f"{new}{resource and '.'}{resource} {scope}"] = value
        elif name.startswith(_LIMITS) and (scopes := limits_in(value)):
            found |= {f"{key} {scope}": limit for scope, limit in scopes.items()}
        else:
            found[key] = value
    return found


def merged(before: Attributes, base: Mapping[str, str], wanted: Mapping[str, str], held: Iterable[str]) -> Attributes:
    """Return `before` with the differences between `base` and `wanted`; `held` are the server's older limits.

    Raises ExportError if there are older limits and a changed limit has no older form.
    """
    now, had, target = by_scope(before), by_scope(base), by_scope(wanted)
    changed = [key for key in {**had, **target} if had.get(key) != target.get(key)]
    changed = [key for key in changed if not _is_same(now.get(key), target.get(key))]
    result = dict(before)
    for key in changed:
        if " " not in key:
            result.pop(key, None)
            if key in target:
                result[key] = target[key]
    after = {key: target.get(key, "") if key in changed else value for key, value in now.items()}
    after |= {key: target[key] for key in changed if key in target}
    for name in dict.fromkeys(key.partition(" ")[0] for key in changed if " " in key):
        scopes = {key.partition(" ")[2]: after[key] for key in after if key.startswith(f"{name} ") and after[key]}
        _put(result, name, scopes, held)
    return result


def _put(result: Attributes, name: str, scopes: Mapping[str, str], held: Iterable[str]) -> None:
    """Set a limit by scope, in the older form if the server has older limits."""
    kind, dot, resource = name.partition(".")
    for each in [old for old, (new, _) in _OLDER.items() if new == kind]:
        result.pop(f"{each}{dot}{resource}", None)
    if not (older := list(held)):
        result.pop(name, None) if not scopes else result.update({name: as_limits(scopes)})
        return
    for scope, limit in scopes.items():
        if (kind, scope) not in _NAMES:
            raise ExportError(
                f"the server has limits of the older kind ({', '.join(older)}), which PBS does not mix with {name} = "
                f"[{scope}={limit}]; write them as max_run first"
            )
        result[f"{_NAMES[kind, scope]}{dot}{resource}"] = limit


def _is_same(old: str | None, new: str | None) -> bool:
    """Whether two values are equal up to case and the format of durations."""
    if old is None or new is None:
        return old is new
    durations = _DURATION.fullmatch(old) and _DURATION.fullmatch(new)
    return old.lower() == new.lower() or bool(durations and seconds(old) == seconds(new))


TARGETS = "resources_default.preempt_targets"
_BARE = re.compile(r"[A-Za-z0-9_.:@*+/-]+|\[[a-z]:[A-Za-z0-9_.-]+=[0-9]+\]")


def quoted(value: str) -> str:
    """Return a value quoted for a qmgr statement; `ExportError` if that is impossible."""
    if _BARE.fullmatch(value):
        return value
    if value and value.isascii() and value.isprintable() and not set("\\;#") & set(value):
        for quote in "\"'":
            if quote not in value:
                return f"{quote}{value}{quote}"
    raise ExportError(f"the value {value!r} cannot be written in a qmgr script")


def transition(before: Server, after: Server) -> dict[str, list[str]]:
    """Return the statements that turn `before` into `after`, by section, in loading order."""
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
        "what jobs preempt": targets,  # name queues that must exist
        "the scheduler's own formula": [line for line in scheduler if line.startswith("unset")],
        "server": list(_change("server", before.attributes, after.attributes)),
        "scheduler": [line for line in scheduler if line.startswith("set")],
        "queues to delete": [f"delete queue {name}" for name in before.queues if name not in after.queues],
        "resources to delete": [f"delete resource {name}" for name in before.resources if name not in after.resources],
    }
    return {title: lines for title, lines in sections.items() if lines}


def _create(name: str, attributes: Attributes) -> Iterator[str]:
    yield f"create queue {name}"
    last = {"enabled": 1, "started": 2}  # the server accepts them only after all others
    for key in sorted(attributes, key=lambda key: last.get(key, 0)):
        yield f"set queue {name} {key} = {quoted(attributes[key])}"


def _change(subject: str, old: Attributes, new: Attributes) -> Iterator[str]:
    for key in old:
        if key not in new:
            yield f"unset {subject} {key}"
    for key, value in new.items():
        if old.get(key) != value:
            yield f"set {subject} {key} = {quoted(value)}"


def entry(before: Server, given: str | None, names: Collection[str]) -> str:
    """Return the routing queue for jobs: `given`, else the server's, "" without one. Raises ExportError."""
    if given is not None:
        if given in names or not is_type(before.queues.get(given, {"queue_type": "Route"}), "route"):
            raise ExportError(f"{given!r} cannot be the Route queue: it is a queue of jobs")
        return given
    routes, default = before.of_type("route"), before.default
    inner = {name for route in routes for name in destinations(before.queues[route])}
    outer = [name for name in routes if name not in inner] or routes
    return default if default in routes else outer[0] if outer else ""


def new_entry(config: SiteConfig, before: Server, closed: Collection[str], base: SiteConfig | None) -> str:
    """Return the name of a new routing queue, "" if jobs find their queues without one.

    None is needed if every queue still admits the jobs that it admits now, and the default queue stays.
    """
    if base is not None and not closed:
        default = before.default
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
    """Return the new destinations of each routing queue whose destinations change.

    `base` are the queues of the present configuration, `names` those of the new one, both in order. A new queue is
    inserted after its predecessor, in the routing queue that has it; closed queues are removed. A routing queue without
    destinations left gets all queues, so that jobs sent there still find one.
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
