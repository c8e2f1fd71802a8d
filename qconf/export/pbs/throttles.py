"""Write throttles as PBS limits of server and queues, by scope, and read them back."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from parsim.model.throttles import RESOURCES
from qconf.config import QueueConfig, SiteConfig, ThrottleConfig
from qconf.export.base import LIMITS
from qconf.export.pbs import qos
from qconf.export.pbs.server import Server, as_limits, limits_in
from qconf.export.pbs.types import name_of
from qconf.history.chunks import MIB, NAMES, bytes_of_pbs

#: Limit -> attribute of a server or queue.
KEYS = {"max_run": "max_run", "max_run_cores": "max_run_res.ncpus", "max_queued": "max_queued"}
ALL, EACH = "o:PBS_ALL", "PBS_GENERIC"
HEAD = ("PATH=/opt/pbs/bin:/usr/local/bin:/usr/bin:/bin", "LC_ALL=C")  #: head of the cron file
_LETTERS = {"user": "u", "group": "g", "qos": "p"}
#: The limits of a queue: what each limits, and the scope.
_OF_QUEUES = {limit: (what, f"{_LETTERS[each]}:{EACH}" if each else ALL) for limit, (what, each) in LIMITS.items()}
_ENTITY = re.compile(r"\[([a-z]):([A-Za-z0-9_.-]+)=([0-9]+[kmgtp]?[bw]?)\]")
_OF_RESOURCE = "max_run_res."  #: prefix of a resource
MEMORY = "mem"

Limits = dict[str, dict[str, int]]  #: limit by attribute and scope


def keys(config: SiteConfig, gpus: str = "ngpus") -> dict[str, str]:
    """Return the attribute of each limit that a configuration may set; `gpus` is PBS's name of GPUs."""
    limited = dict.fromkeys(name for throttle in config.throttles for name in throttle.max_run_resources)
    return KEYS | {f"{RESOURCES}.{name}": _OF_RESOURCE + name_of(name, gpus) for name in limited}


def resources(attributes: Mapping[str, str]) -> dict[str, str]:
    """Return the limited resources other than cores, by attribute, with their names in a configuration."""
    names = {key: key.removeprefix(_OF_RESOURCE) for key in attributes if key.startswith(_OF_RESOURCE)}
    return {key: NAMES.get(name, name) for key, name in names.items() if key not in KEYS.values()}


def limits(
    config: SiteConfig, of: Mapping[str, str], queue: QueueConfig | None = None, cores: int | None = None
) -> Limits:
    """Return the limits of the server, or of a queue with `cores` as its max_run_cores; `of` is the result of `keys`.

    In PBS a named user's limit replaces that of each user; the simulator applies both, so the lower one is written.
    """
    found: Limits = {}
    for name, key in of.items():
        own = [(limit, scope) for limit, (what, scope) in _OF_QUEUES.items() if what == name and queue is not None]
        bounds = {scope: cores if limit == "max_run_cores" else getattr(queue, limit) for limit, scope in own}
        scopes: dict[str, int] = {scope: most for scope, most in bounds.items() if most}
        each = scopes.get(f"u:{EACH}")
        for throttle in config.throttles:
            most = throttle.limits.get(name)
            if most is None or throttle.queue != (None if queue is None else queue.name):
                continue
            names = qos.scoped(config, throttle, name) if throttle.kind == "qos" else [throttle.name or EACH]
            for whose in names:
                scope = f"{_LETTERS[throttle.kind]}:{whose}" if throttle.kind else ALL
                scopes[scope] = min(most, scopes.get(scope, most), each if each and throttle.kind == "user" else most)
        if scopes:
            found[key] = scopes
    return found


def of_queue(attributes: Mapping[str, str]) -> dict[str, int]:
    """Read the running limits of a queue, by name in a configuration."""
    found = {}
    for limit, (what, scope) in _OF_QUEUES.items():
        value = attributes.get(KEYS[what], "")
        text = limits_in(value).get(scope, "")
        if text.isdigit() and 0 < int(text) < 2**31 and _is_queues(what, scope, value):
            found[limit] = int(text)
    return found


def commands(server: Server, queue: QueueConfig, limits: Mapping[str, int | None]) -> list[str]:
    """Return the commands that set limits of a queue, or remove those that are None, and keep its other scopes."""
    values: dict[str, dict[str, str]] = {}
    for name, most in limits.items():
        what, scope = _OF_QUEUES[name]
        found = values.setdefault(KEYS[what], limits_in(server.queues[queue.name].get(KEYS[what], "")))
        found.pop(scope, None)
        found |= {} if most is None else {scope: str(most)}
    return [
        f"qmgr -c 'set queue {queue.name} {key} = \"{as_limits(found)}\"'"
        if found
        else f"qmgr -c 'unset queue {queue.name} {key}'"
        for key, found in values.items()
    ]


def written(key: str, scopes: Mapping[str, int]) -> str:
    """Return limits by scope as the value of attribute `key`; memory, in MiB, in the largest unit that divides it."""
    if key != _OF_RESOURCE + MEMORY:
        return as_limits(scopes)
    units = {"tb": 1024**2, "gb": 1024, "mb": 1}
    sizes = {scope: next((n, unit) for unit, n in units.items() if most % n == 0) for scope, most in scopes.items()}
    return as_limits({scope: f"{scopes[scope] // n}{unit}" for scope, (n, unit) in sizes.items()})


def read(
    attributes: Mapping[str, str], queue: str | None, warnings: list[str], counted: Collection[str] = ()
) -> Iterator[ThrottleConfig]:
    """Yield the throttles of the server, or those of a queue beyond the limits of `QueueConfig`.

    `counted` are the resources, other than cores, whose limits are read.
    """
    where = "server" if queue is None else queue
    found: dict[tuple[str, str], dict[str, int]] = {}
    of_nodes = {f"{RESOURCES}.{name}": key for key, name in resources(attributes).items() if name in counted}
    for name, key in (KEYS | of_nodes).items():
        entities = _ENTITY.findall(attributes.get(key, ""))
        for letter, whose, text in entities:
            kind = {"o": "", "u": "user", "g": "group", "p": "qos"}.get(letter)
            kind = None if whose == qos.NO_PROJECT else kind
            most = _amount(text, of_memory=key == _OF_RESOURCE + MEMORY)
            if kind is None or not 0 < most < 2**31:
                warnings.append(f"{where}: {key} = [{letter}:{whose}={text}] has no place in a configuration")
            elif queue is None or not _is_queues(name, f"{letter}:{whose}", attributes.get(key, "")):
                found.setdefault((kind, "" if whose == EACH or not kind else whose), {})[name] = most
    for (kind, name), limits in found.items():
        named = {kind: name} if name else {"each": kind} if kind else {}
        yield ThrottleConfig.of(limits, **named, queue=queue)


def _amount(text: str, *, of_memory: bool) -> int:
    """Read a limit, of memory in MiB; 0 if it is invalid."""
    if of_memory and (size := bytes_of_pbs(text)) is not None:
        return size // MIB
    return int(text) if text.isdigit() else 0


def of_resources(attributes: Mapping[str, str], read: Iterable[str] = ()) -> list[str]:
    """Return the limits, as "key = value", without a counterpart in a configuration.

    These are limits of resources other than cores, except the attributes in `read`.
    """
    known = {*KEYS.values(), *read}
    soft = ("max_run_soft", "max_run_res_soft.", "max_user_run_soft", "max_group_run_soft")
    limits = (_OF_RESOURCE, *soft, "max_queued_res.", "queued_jobs_threshold", "resources_available.", "node_group_key")
    return [f"{key} = {value}" for key, value in attributes.items() if key.startswith(limits) and key not in known]


def _is_queues(what: str, scope: str, value: str) -> bool:
    """Whether a limit of `what` by `scope`, in a queue's attribute `value`, is one of `QueueConfig`, not a throttle."""
    named = any(letter == "u" and whose != EACH for letter, whose, _ in _ENTITY.findall(value))
    return (what, scope) in _OF_QUEUES.values() and not (named and scope == f"u:{EACH}")
