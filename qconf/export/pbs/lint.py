"""A linter of qmgr scripts: refuses what the server would refuse, before an administrator loads it.

Stricter than the server where the server is silent about what cannot be meant: a minimum above its maximum,
``24:00`` for 24 minutes, limits of the old style, anything that is not ASCII.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from parsim.formula import parse as parse_formula
from qconf.export.errors import HOST_NAME
from qconf.export.pbs import qmgr
from qconf.export.pbs.server import Server, is_true, is_type, seconds
from qconf.history.names import LEGAL

Check = Callable[[str], str | None]

_OBJECT_NAME = re.compile(rf"{LEGAL.pattern}(?:@default)?")
_HOST_NAME = re.compile(rf"@default|{HOST_NAME.pattern}")
_LIMIT = re.compile(r"\[(?:o:PBS_ALL|[ugp]:[A-Za-z0-9_.-]+)=[0-9]{1,10}\]")


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong in which line of a script."""

    line: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


def _whole(low: int, high: int) -> Check:
    def check(value: str) -> str | None:
        if not re.fullmatch(r"-?[0-9]{1,10}", value) or not low <= int(value) <= high:
            return f"{value!r} is not a whole number from {low} to {high}"
        return None

    return check


def _truth(value: str) -> str | None:
    return (
        None
        if value.lower() in ("true", "false", "t", "f", "1", "0", "y", "n")
        else f"{value!r} is neither True nor False"
    )


def _duration(value: str) -> str | None:
    if re.fullmatch(r"[0-9]{1,10}|[0-9]{2,7}:[0-5]?[0-9]:[0-5]?[0-9]|[0-9]{1,7}:[0-9]{2}:[0-9]{2}", value):
        return None
    return f"{value!r} is neither HH:MM:SS nor seconds (24:00 would be 24 minutes)"


def _matches(pattern: str, what: str) -> Check:
    def check(value: str) -> str | None:
        return None if re.fullmatch(pattern, value) else f"{value!r} is not {what}"

    return check


def _limits(value: str) -> str | None:
    parts = [part.strip() for part in value.split(",")]
    if not all(_LIMIT.fullmatch(part) for part in parts):
        return f"{value!r} is not a list like [o:PBS_ALL=10],[u:PBS_GENERIC=2]"
    scopes = [part.split("=")[0] for part in parts]
    return f"{value!r} names one scope twice" if len(set(scopes)) < len(scopes) else None


def _formula(value: str) -> str | None:
    try:
        parse_formula(value)
    except ValueError as error:
        return str(error)
    return None


_COUNT = _whole(0, 2**31 - 1)
_NAME_LIST = _matches(r"[A-Za-z0-9_.@*+-]+(?:, ?[A-Za-z0-9_.@*+-]+)*", "a list of names")
_WORD_LIST = _matches(r"[A-Za-z0-9_.-]+(?:, ?[A-Za-z0-9_.-]+)*", "a list of words")
_SIZE = _matches(r"[0-9]{1,15}(?:[kmgtp]?[bw])?", "a size like 64gb")

_RESOURCES: dict[str, Check] = {
    **dict.fromkeys(("ncpus", "nodect", "nodes", "select", "mpiprocs", "ngpus"), _COUNT),
    **dict.fromkeys(("walltime", "cput", "pcput", "min_walltime", "max_walltime"), _duration),
    **dict.fromkeys(("mem", "vmem", "pmem", "pvmem", "file"), _SIZE),
    **dict.fromkeys(("arch", "host", "vnode"), _matches(r"[A-Za-z0-9_.-]+", "a word")),
    "place": _matches(r"[A-Za-z0-9_:=]+", "a placement"),
}
_QUEUE: dict[str, Check] = {
    "queue_type": _matches(r"(?i)e(xecution)?|r(oute)?", "Execution or Route"),
    "priority": _whole(-1024, 1023),
    "backfill_depth": _COUNT,
    "kill_delay": _COUNT,
    "max_array_size": _COUNT,
    "route_retry_time": _whole(1, 2**31 - 1),
    "route_lifetime": _whole(1, 2**31 - 1),
    "route_destinations": _NAME_LIST,
    "partition": _WORD_LIST,
    **dict.fromkeys(("enabled", "started", "from_route_only", "route_held_jobs", "route_waiting_jobs"), _truth),
    **dict.fromkeys(("acl_user_enable", "acl_group_enable", "acl_host_enable"), _truth),
    **dict.fromkeys(("acl_users", "acl_groups", "acl_hosts"), _NAME_LIST),
}
_SERVER: dict[str, Check] = {
    "default_queue": _matches(_OBJECT_NAME.pattern, "the name of a queue"),
    "job_sort_formula": _formula,
    **dict.fromkeys(("scheduling", "eligible_time_enable", "query_other_jobs", "flatuid", "resv_enable"), _truth),
    **dict.fromkeys(("backfill_depth", "scheduler_iteration", "log_events", "max_array_size"), _COUNT),
}
_SCHED: dict[str, Check] = {
    "log_events": _COUNT,
    "job_sort_formula_threshold": _matches(r"[0-9]+(\.[0-9]+)?", "a number"),
}
_RESOURCE: dict[str, Check] = {
    "type": _matches("string_array|string|long|float|boolean|size", "a type of resource"),
    "flag": _matches("[hnqfrim]+", "flags of a resource"),
}
#: PBS's older kind of limits, which cannot be mixed with max_run.
OLD_LIMITS = (
    *("max_running", "max_user_run", "max_group_run", "max_user_run_soft", "max_group_run_soft"),
    *("max_user_res", "max_user_res_soft", "max_group_res", "max_group_res_soft"),
)
_LIMITS = ("max_run", "max_queued", "max_run_soft", "queued_jobs_threshold")
_RESOURCE_LIMITS = ("max_run_res", "max_queued_res", "max_run_res_soft", "queued_jobs_threshold_res")
_QUEUE_RESOURCES = (
    "resources_min",
    "resources_max",
    "resources_default",
    "resources_available",
    "default_chunk",
)
_SERVER_RESOURCES = ("resources_default", "resources_max", "resources_available", "default_chunk")
_EXECUTION_ONLY = (
    "max_run",
    "max_run_soft",
    "max_run_res",
    "max_run_res_soft",
    "priority",
    "backfill_depth",
    "partition",
)
_EXECUTION_ATTRIBUTES = (
    *_EXECUTION_ONLY,
    "from_route_only",
    "kill_delay",
    "resources_default",
    "resources_available",
    "default_chunk",
)


class Linter:
    """Reads statements one after the other and remembers what they make of the server.

    Parameters
    ----------
    server : Server or None
        What is there before. None: unknown; then names are assumed to exist, and only what the statements
        say is held against them.
    trusted : Server, optional
        Values that a server has held once: it takes them back, whether they are known here or not.
    """

    def __init__(self, server: Server | None = None, trusted: Server | None = None) -> None:
        self.known = server is not None
        self.trusted = trusted
        self.server = Server() if server is None else server.copy()
        self.created: set[tuple[str, str]] = set()

    def script(self, text: str) -> list[Finding]:
        """Return what is wrong with a whole script, in its order."""
        findings = []
        try:
            for line, piece in qmgr.split(text):
                findings += [Finding(line, message) for message in self.statement(piece)]
        except qmgr.QmgrSyntaxError as error:
            findings.append(Finding(error.line, str(error)))
        return findings

    def statement(self, text: str) -> list[str]:
        """Return what is wrong with one statement; if nothing is, take note of what it does."""
        if not (text.isascii() and text.isprintable()):
            return ["holds something else than printable ASCII"]
        if len(list(qmgr.split(text))) != 1:
            return ["is not one statement"]
        try:
            statement = qmgr.parse_statement(text)
        except qmgr.QmgrSyntaxError as error:
            return [str(error)]
        wrong = list(self._wrong(statement))
        if not wrong:
            self.server.apply(statement)
            if statement.command == "create":
                self.created.update((statement.kind, name) for name in statement.names)
        return wrong

    def _wrong(self, statement: qmgr.Statement) -> Iterator[str]:
        check = {"queue": self._queue, "server": self._server, "node": self._node, "resource": self._resource}
        if statement.kind in check:
            yield from check[statement.kind](statement)
        elif statement.kind == "sched":
            yield from _each(statement, _SCHED, (), {})
            if any(not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,14}", name) for name in statement.names):
                yield "a scheduler's name is up to 15 letters, digits and _"
        else:
            yield f"{statement.kind}: hooks have no place in these scripts"

    def _doubtful(self, statement: qmgr.Statement) -> qmgr.Statement:
        """Leave out the settings that the trusted server had, value for value."""
        if self.trusted is None or statement.command != "set":
            return statement
        held = [self.trusted.attributes]
        if statement.kind == "queue":
            held = [self.trusted.queues.get(name, {}) for name in statement.names]
        doubtful = (s for s in statement.settings if not all(had.get(s.key) == s.value for had in held))
        return replace(statement, settings=tuple(doubtful))

    def _queue(self, statement: qmgr.Statement) -> Iterator[str]:
        for name in statement.names:
            if not _OBJECT_NAME.fullmatch(name):
                yield f"{name!r} is no queue name: 1 to 15 letters, digits, _ and -, a letter first"
                return
            exists = name in self.server.queues
            if statement.command == "create" and exists:
                yield f"queue {name} exists already"
            elif statement.command != "create" and self.known and not exists:
                yield f"queue {name} does not exist"
        limits = (*_LIMITS, *_RESOURCE_LIMITS)
        yield from _each(self._doubtful(statement), _QUEUE, _QUEUE_RESOURCES, self.server.resources, limits)
        if statement.command in ("create", "set"):
            for name in statement.names:
                yield from self._queue_state(name, statement)

    def _queue_state(self, name: str, statement: qmgr.Statement) -> Iterator[str]:
        """Check what the attributes are to each other, one after the other as the server takes them."""
        state = Server(queues={name: {k.lower(): v for k, v in self.server.queues.get(name, {}).items()}})
        complete = self.known or statement.command == "create" or ("queue", name) in self.created
        for setting in statement.settings:
            one = qmgr.Setting(setting.attribute.lower(), setting.resource, setting.operator, setting.value)
            state.apply(qmgr.Statement("set", "queue", (name,), (one,)))
            now = state.queues[name]
            if one.key in ("enabled", "started") and complete and is_true(one.value):
                if "queue_type" not in now:
                    yield f"queue {name}: queue_type has to be set before {one.key}"
                elif is_type(now, "route") and not now.get("route_destinations"):
                    yield f"queue {name}: route_destinations have to be set before {one.key}"
        now = state.queues.get(name, {})
        routes = [key for key in now if key.startswith("route_")]
        if is_type(now, "execution") and routes:
            yield f"queue {name}: an Execution queue has no {routes[0]}"
        if is_type(now, "route") or routes:
            for key in now:
                if key.partition(".")[0] in _EXECUTION_ATTRIBUTES:
                    yield f"queue {name}: a Route queue has no {key}"
        for resource in ("ncpus", "walltime", "nodect"):
            low, high = now.get(f"resources_min.{resource}"), now.get(f"resources_max.{resource}")
            before = {} if self.trusted is None else self.trusted.queues.get(name, {})
            if (low, high) == (
                before.get(f"resources_min.{resource}"),
                before.get(f"resources_max.{resource}"),
            ):
                continue
            # a count is read as a duration in seconds: the same number
            if low is not None and high is not None and seconds(low) > seconds(high):
                yield f"queue {name}: resources_min.{resource} {low} is above resources_max.{resource} {high}"

    def _server(self, statement: qmgr.Statement) -> Iterator[str]:
        if statement.command not in ("set", "unset"):
            yield f"a server cannot be {statement.command}d"
        limits = (*_LIMITS, *_RESOURCE_LIMITS)
        yield from _each(self._doubtful(statement), _SERVER, _SERVER_RESOURCES, self.server.resources, limits)
        for setting in statement.settings:
            if (
                setting.key == "default_queue"
                and self.known
                and setting.value
                and setting.value not in self.server.queues
            ):
                yield f"default_queue {setting.value} does not exist"

    def _node(self, statement: qmgr.Statement) -> Iterator[str]:
        for name in statement.names:
            if not _HOST_NAME.fullmatch(name):
                yield f"{name!r} is no node name"
            if statement.command == "create" and ("node", name) in self.created:
                yield f"node {name} exists already"
        known: dict[str, Check] = {
            "queue": _matches(_OBJECT_NAME.pattern, "a queue name"),
            "partition": _WORD_LIST,
        }
        if statement.command == "create":
            known |= {"mom": _matches(_HOST_NAME.pattern, "a host name")}
        yield from _each(statement, known, ("resources_available",), self.server.resources)

    def _resource(self, statement: qmgr.Statement) -> Iterator[str]:
        for name in statement.names:
            if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,62}", name):
                yield f"{name!r} is no resource name"
            if statement.command == "create" and name in self.server.resources:
                yield f"resource {name} exists already"
        yield from _each(statement, _RESOURCE, (), {})


def _each(
    statement: qmgr.Statement,
    plain: dict[str, Check],
    with_resource: tuple[str, ...],
    resources: dict[str, dict[str, str]],
    limits: tuple[str, ...] = (),
) -> Iterator[str]:
    """Check every attribute and its value by itself."""
    for setting in statement.settings:
        attribute = setting.attribute.lower()
        check: Check | None = None
        if setting.resource is None:
            check = _limits if attribute in limits and attribute in _LIMITS else plain.get(attribute)
        elif attribute in limits and attribute in _RESOURCE_LIMITS:
            check = _limits if setting.resource in ("ncpus", "nodect", "mem", "ngpus") else None
        elif attribute in with_resource:
            check = _RESOURCES.get(setting.resource)
            # Qlist is the one resource that our scripts create; a script for a known server creates it first.
            if check is None and (setting.resource in resources or setting.resource == "Qlist"):
                check = _WORD_LIST
        if attribute in OLD_LIMITS and statement.command == "unset":
            continue
        if check is None:
            yield f"{statement.kind} has no attribute {setting.key}, or none that these scripts may use"
        elif statement.command != "unset":
            message = check(setting.value)
            if message:
                yield f"{setting.key}: {message}"
