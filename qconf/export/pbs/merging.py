"""What differs between two configurations, written over what a server has: the rest stays as it is, word for word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from qconf.errors import ExportError
from qconf.export.pbs.server import Attributes, Server, seconds

#: PBS's older kind of limits, which cannot be mixed with max_run.
OLD_LIMITS = (
    *("max_running", "max_user_run", "max_group_run", "max_user_run_soft", "max_group_run_soft"),
    *("max_user_res", "max_user_res_soft", "max_group_res", "max_group_res_soft"),
)
_SCOPES = re.compile(r"\[([^=\]]+)=([^\]]*)\]")
_LIMITS = ("max_run", "max_queued", "queued_jobs_threshold")
_DURATION = re.compile(r"[0-9]+(:[0-9]+){0,2}")
#: Limits of the older kind: what they are called since, and whose.
_OLDER = {
    "max_running": ("max_run", "o:PBS_ALL"),
    "max_user_run": ("max_run", "u:PBS_GENERIC"),
    "max_group_run": ("max_run", "g:PBS_GENERIC"),
    "max_user_res": ("max_run_res", "u:PBS_GENERIC"),
    "max_group_res": ("max_run_res", "g:PBS_GENERIC"),
}
_NAMES = {new: old for old, new in _OLDER.items()}


def older(server: Server) -> list[str]:
    """Name the limits of the older kind that a server has: PBS takes no others beside them."""
    found = [key for key in server.attributes if key.partition(".")[0] in OLD_LIMITS]
    queues = server.queues.items()
    return found + [f"{name}: {key}" for name, held in queues for key in held if key.partition(".")[0] in OLD_LIMITS]


def by_scope(attributes: Mapping[str, str]) -> Attributes:
    """Return attributes with a key for each scope of a limit, like ``max_run o:PBS_ALL``; the older ones likewise."""
    found: Attributes = {}
    for key, value in attributes.items():
        name, _, resource = key.partition(".")
        if name in _OLDER:
            new, scope = _OLDER[name]
            found[f"{new}{resource and '.'}{resource} {scope}"] = value
        elif name.startswith(_LIMITS) and (scopes := _SCOPES.findall(value)):
            found |= {f"{key} {scope}": limit for scope, limit in scopes}
        else:
            found[key] = value
    return found


def merged(before: Attributes, base: Mapping[str, str], wanted: Mapping[str, str], held: Iterable[str]) -> Attributes:
    """Return `before` with that in which `wanted` differs from `base`; `held` are limits of the older kind.

    Raises ExportError where a limit has no form of the older kind.
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
    """Set the limits of one name by scope, in the kind that the server has."""
    kind, dot, resource = name.partition(".")
    for each in [old for old, (new, _) in _OLDER.items() if new == kind]:
        result.pop(f"{each}{dot}{resource}", None)
    if not (older := list(held)):
        text = ",".join(f"[{scope}={limit}]" for scope, limit in scopes.items())
        result.pop(name, None) if not text else result.update({name: text})
        return
    for scope, limit in scopes.items():
        if (kind, scope) not in _NAMES:
            raise ExportError(
                f"the server has limits of the older kind ({', '.join(older)}), which PBS does not mix with {name} = "
                f"[{scope}={limit}]; write them as max_run first"
            )
        result[f"{_NAMES[kind, scope]}{dot}{resource}"] = limit


def _is_same(old: str | None, new: str | None) -> bool:
    """Whether two values are one, however they are spelled."""
    if old is None or new is None:
        return old is new
    durations = _DURATION.fullmatch(old) and _DURATION.fullmatch(new)
    return old.lower() == new.lower() or bool(durations and seconds(old) == seconds(new))
