"""A linter of qmgr scripts: refuses what the server would refuse; all that tests export passes it.

It knows what exports write, and refuses an attribute that none has a reason to set. It is stricter than the server
where that is silent about what cannot be meant: a minimum above its maximum, limits of the old style beside new ones,
anything that is not ASCII.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from copy import deepcopy

from parsim.model.formula import parse as parse_formula
from qconf.export.pbs import qmgr
from qconf.export.pbs.merging import OLD_LIMITS
from qconf.export.pbs.server import Attributes, Server, is_true, is_type, seconds
from qconf.export.rendering import HOST_NAME
from qconf.history.names import LEGAL

Check = Callable[[str], str | None]


def _matches(pattern: str, what: str) -> Check:
    return lambda value: None if re.fullmatch(pattern, value) else f"{value!r} is not {what}"


def _whole(low: int, high: int) -> Check:
    def check(value: str) -> str | None:
        if re.fullmatch(r"-?[0-9]{1,10}", value) and low <= int(value) <= high:
            return None
        return f"{value!r} is not a whole number from {low} to {high}"

    return check


def _limits(value: str) -> str | None:
    parts = [part.strip() for part in value.split(",")]
    if not all(
        re.fullmatch(r"\[(?:o:PBS_ALL|[ugp]:[A-Za-z0-9_.-]+)=[0-9]{1,10}(?:[kmgtp]?b)?\]", part) for part in parts
    ):
        return f"{value!r} is not a list like [o:PBS_ALL=10],[u:PBS_GENERIC=2]"
    scopes = {part.split("=")[0] for part in parts}
    return f"{value!r} names one scope twice" if len(scopes) < len(parts) else None


def _formula(value: str) -> str | None:
    try:
        parse_formula(value)
    except ValueError as error:
        return str(error)
    return None


_COUNT = _whole(0, 2**31 - 1)
_TRUTH = _matches("(?i)true|false|t|f|1|0|y|n", "True or False")
_DURATION = _matches(r"(?:(?:[0-9]{1,7}:)?[0-9]{1,4}:)?[0-9]{1,10}(?:\.[0-9]+)?", "HH:MM:SS, MM:SS or seconds")
_NAMES = _matches(r"[A-Za-z0-9_.@*+-]+(?:, ?[A-Za-z0-9_.@*+-]+)*", "a list of names")
_WORDS = _matches(r"[A-Za-z0-9_.-]+(?:, ?[A-Za-z0-9_.-]+)*", "a list of words")
_SIZE = _matches(r"[0-9]{1,15}(?:[kmgtp]?[bw])?", "a size like 64gb")

#: What a name may be, by the kind of object.
_OBJECTS: dict[str, Check] = {
    "queue": _matches(
        rf"{LEGAL.pattern}(?:@default)?", "a queue name: 1 to 15 letters, digits, _ and -, a letter first"
    ),
    "node": _matches(rf"@default|{HOST_NAME.pattern}", "a node name"),
    "resource": _matches(r"[A-Za-z][A-Za-z0-9_-]{0,62}", "a resource name"),
    "sched": _matches("default", "the default scheduler"),
}
#: Of resources that every PBS has, and by the type of those that a server defines.
_RESOURCES: dict[str, Check] = {
    **dict.fromkeys(("ncpus", "nodect", "naccelerators"), _COUNT),
    "walltime": _DURATION,
    "mem": _SIZE,
    "place": _matches(r"[A-Za-z0-9_:=]+", "a placement"),
    "preempt_targets": _matches(r"NONE|queue=[\w-]+(,queue=[\w-]+)*", "NONE or queues"),
}
_TYPES: dict[str, Check] = {
    **dict.fromkeys(("string", "string_array"), _WORDS),
    "long": _COUNT,
    "boolean": _TRUTH,
    "size": _SIZE,
    "float": _matches(r"-?[0-9.]+(e[+-]?[0-9]+)?", "a number"),
}
#: Attributes that exist once for every resource, by the kind of object.
_BY_RESOURCE = {
    "queue": ("resources_min", "resources_max", "resources_default", "default_chunk"),
    "node": ("resources_available",),
}
_LIMITS = ("max_run", "max_queued")
_LIMITS_OF_RESOURCES = ("max_run_res", "max_queued_res")
#: The other attributes that a script may set, by the kind of object.
_ATTRIBUTES: dict[str, dict[str, Check]] = {
    "queue": {
        **dict.fromkeys(_LIMITS, _limits),
        "queue_type": _matches(r"(?i)e(xecution)?|r(oute)?", "Execution or Route"),
        "priority": _whole(-1024, 1023),
        "backfill_depth": _COUNT,
        **dict.fromkeys(("enabled", "started", "from_route_only"), _TRUTH),
        **dict.fromkeys(("acl_user_enable", "acl_group_enable", "acl_host_enable"), _TRUTH),
        **dict.fromkeys(("acl_users", "acl_groups", "acl_hosts", "route_destinations"), _NAMES),
    },
    "server": {
        **dict.fromkeys(_LIMITS, _limits),
        "default_queue": _OBJECTS["queue"],
        "job_sort_formula": _formula,
        "eligible_time_enable": _TRUTH,
        "backfill_depth": _COUNT,
    },
    "node": {},
    "resource": {
        "type": _matches("|".join(_TYPES), "a type of resource"),
        "flag": _matches("[hnqfrim]+", "flags of a resource"),
    },
    "sched": {
        "job_sort_formula": _formula,
        "job_sort_formula_threshold": _matches(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?", "a number"),
        "preempt_queue_prio": _whole(-(2**31), 2**31 - 1),
        "preempt_order": _matches("[SCRD]{1,4}", "letters of S, C, R, D"),
        "preempt_prio": _matches("[a-z_]+(, [a-z_]+)*", "levels of preemption"),
        "preempt_sort": _matches("min_time_since_start", "that order"),
    },
}
_EXECUTION_ONLY = (*_LIMITS, *_LIMITS_OF_RESOURCES, "priority", "backfill_depth", "resources_default", "default_chunk")


def _parts(setting: qmgr.Setting) -> tuple[str, str]:
    """Return the attribute of a setting in lower case, and the resource; empty where it has none."""
    attribute, _, resource = setting.key.partition(".")
    return attribute.lower(), resource


class Linter:
    """Reads statements one after the other and keeps track of what they make of the `server`.

    What `trusted` has held once is taken back, whether it is known here or not.
    """

    def __init__(self, server: Server, trusted: Server | None = None) -> None:
        self.server, self.trusted = deepcopy(server), trusted or Server()

    def script(self, text: str) -> list[str]:
        """Return what is wrong with a whole script, in its order."""
        found = []
        try:
            for line, piece in qmgr.split(text):
                found += [f"line {line}: {message}" for message in self.statement(piece)]
        except qmgr.QmgrSyntaxError as error:
            found.append(f"line {error.line}: {error}")
        return found

    def statement(self, text: str) -> list[str]:
        """Return what is wrong with one statement; if nothing is, take note of what it does."""
        if not (text.isascii() and text.isprintable()):
            return ["holds something else than printable ASCII"]
        try:
            if len(list(qmgr.split(text))) != 1:
                return ["is not one statement"]
            statement = qmgr.parse_statement(text)
        except qmgr.QmgrSyntaxError as error:
            return [str(error)]
        kind, command = statement.kind, statement.command
        if kind not in _ATTRIBUTES or (command in ("create", "delete") and kind not in ("queue", "resource")):
            return [f"no script has to {command} a {kind}"]
        wrong = [*self._names(statement), *self._settings(statement)]
        if not wrong and kind == "queue" and command in ("create", "set"):
            wrong = [message for name in statement.names for message in self._contradictions(name, statement)]
        if not wrong:
            self.server.apply(statement)
        return wrong

    def _names(self, statement: qmgr.Statement) -> Iterator[str]:
        held = {"queue": self.server.queues, "resource": self.server.resources}.get(statement.kind, {})
        for name in statement.names:
            if message := _OBJECTS[statement.kind](name):
                yield message
            elif statement.command == "create":
                if name in held:
                    yield f"{statement.kind} {name} exists already"
            elif statement.kind == "queue" and name not in held:
                yield f"queue {name} does not exist"

    def _settings(self, statement: qmgr.Statement) -> Iterator[str]:
        """Check every attribute and its value by itself."""
        kind, unset = statement.kind, statement.command == "unset"
        for setting in statement.settings:
            attribute, _ = _parts(setting)
            if self._trusted(statement, setting) or (unset and attribute in OLD_LIMITS):
                continue
            if attribute in OLD_LIMITS and kind in ("queue", "server"):
                if self._has_limits():
                    yield f"{setting.key}: limits of the older kind are not mixed with max_run"
                elif message := _COUNT(setting.value):
                    yield f"{setting.key}: {message}"
            elif (check := self._check(kind, setting)) is None:
                yield f"{setting.key}: no script has to set it, or the server lacks the resource"
            elif not unset and (message := check(setting.value)):
                yield f"{setting.key}: {message}"
        default = {setting.key: setting.value for setting in statement.settings}.get("default_queue")
        if kind == "server" and default and default not in self.server.queues:
            yield f"default_queue {default} does not exist"

    def _has_limits(self) -> bool:
        """Whether the server has limits of the newer kind."""
        holders = (self.server.attributes, *self.server.queues.values())
        names = (key.partition(".")[0] for held in holders for key in held)
        return any(name.startswith(("max_run", "max_queued", "queued")) and name not in OLD_LIMITS for name in names)

    def _check(self, kind: str, setting: qmgr.Setting) -> Check | None:
        """Find the check of a value; None where there is none."""
        attribute, resource = _parts(setting)
        if not resource:
            return _ATTRIBUTES[kind].get(attribute)
        of_type = _TYPES.get(self.server.resources.get(resource, {}).get("type", ""))
        check = _RESOURCES.get(resource) or of_type
        if attribute in _LIMITS_OF_RESOURCES and kind in ("queue", "server"):
            return check and _limits
        return check if attribute in _BY_RESOURCE.get(kind, ()) else None

    def _trusted(self, statement: qmgr.Statement, setting: qmgr.Setting) -> bool:
        """Whether the trusted server had this very value, or has to lose it."""
        held = {"server": [self.trusted.attributes]}
        held["queue"] = [self.trusted.queues.get(name, {}) for name in statement.names]
        values = {attributes.get(setting.key) for attributes in held.get(statement.kind, [])}
        return values == {setting.value} if statement.command == "set" else bool(values - {None})

    def _contradictions(self, name: str, statement: qmgr.Statement) -> Iterator[str]:
        """Apply one setting after the other to a queue, as the server does, and check each and the result."""
        state = Server(queues={name: {k.lower(): v for k, v in self.server.queues.get(name, {}).items()}})
        now = state.queues[name]
        for setting in statement.settings:
            one = setting._replace(key=setting.key.lower())
            state.apply(qmgr.Statement("set", "queue", (name,), (one,)))
            if one.key in ("enabled", "started") and is_true(one.value):
                if "queue_type" not in now:
                    yield f"queue {name}: queue_type has to be set before {one.key}"
                elif is_type(now, "route") and not now.get("route_destinations"):
                    yield f"queue {name}: route_destinations have to be set before {one.key}"
        routes = [key for key in now if key.startswith("route_")]
        if is_type(now, "execution") and routes:
            yield f"queue {name}: an Execution queue has no {routes[0]}"
        if is_type(now, "route") or routes:
            there = {key.lower() for key in self.trusted.queues.get(name, {})}  # set before it was a Route queue
            for key in now:
                if key.partition(".")[0] in _EXECUTION_ONLY and key not in there:
                    yield f"queue {name}: a Route queue has no {key}"
        yield from self._ranges(name, now)

    def _ranges(self, name: str, now: Attributes) -> Iterator[str]:
        before = self.trusted.queues.get(name, {})
        for resource in ("ncpus", "walltime", "nodect"):
            keys = f"resources_min.{resource}", f"resources_max.{resource}"
            low, high = (now.get(key) for key in keys)
            if low is None or high is None or (low, high) == tuple(before.get(key) for key in keys):
                continue
            if seconds(low) > seconds(high):  # a count is read as a duration in seconds: the same number
                yield f"queue {name}: {keys[0]} {low} is above {keys[1]} {high}"
