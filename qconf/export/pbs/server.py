"""The state of a PBS server, from ``print server``, and the settings of its scheduler, from sched_config.

Torque's ``print server``, known by attributes that PBS lacks, is read as one of PBS; it is never written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path

from qconf.config import POOL_SUFFIX
from qconf.errors import InputError
from qconf.export.nodes import read_text
from qconf.export.pbs import qmgr

Attributes = dict[str, str]

OUR_HOOKS = "qconf_"  #: prefix of the hooks of exports


@dataclass
class Server:
    """Attributes of server, queues and resources, by keys like ``resources_max.ncpus``, in order of creation.

    `scheduler` has the default scheduler's attributes, if the output of ``print sched`` was appended.
    """

    attributes: Attributes = field(default_factory=dict)
    queues: dict[str, Attributes] = field(default_factory=dict)
    resources: dict[str, Attributes] = field(default_factory=dict)
    scheduler: Attributes = field(default_factory=dict)
    hooks: dict[str, Attributes] = field(default_factory=dict, compare=False)  #: if ``print hook`` was appended
    file: Path | None = field(default=None, compare=False)  #: source file

    @classmethod
    def read(cls, path: str | Path) -> Server:
        """Read a saved output of ``print server``. Raises InputError."""
        server = cls.parse(read_text(path), path)
        server.file = Path(path)
        return server

    @classmethod
    def parse(cls, text: str, source: str | Path | None = None) -> Server:
        """Parse the output of ``print server``; `source` is named in errors. Raises InputError."""
        server, fix = cls(), "give the output of qmgr -c 'print server'"
        try:
            statements = qmgr.parse(text)
        except qmgr.QmgrSyntaxError as error:
            raise InputError(str(error), file=source, line=error.line, fix=fix) from error
        if not statements:
            raise InputError("holds no statement", file=source, fix=fix)
        for statement in statements:
            server.apply(statement, printed=True)
        return server

    def apply(self, statement: qmgr.Statement, *, printed: bool = False) -> None:
        """Apply a statement; those on nodes and further schedulers are ignored.

        `printed`: the statement is from ``print server``, which prints one with ``=`` for each scope of a limit.
        """
        if statement.kind == "server":
            self._change(self.attributes, statement, printed=printed)
        elif statement.kind == "sched" and statement.names in ((), ("default",)):
            self._change(self.scheduler, statement, printed=printed)
        elif statement.kind in ("queue", "resource", "hook"):
            held = {"queue": self.queues, "resource": self.resources, "hook": self.hooks}[statement.kind]
            for name in statement.names:
                if statement.command == "delete":
                    held.pop(name, None)
                else:
                    self._change(held.setdefault(name, {}), statement, printed=printed)

    def _change(self, attributes: Attributes, statement: qmgr.Statement, *, printed: bool) -> None:
        for setting in statement.settings:
            key, held = setting.key, attributes.get(setting.key, "")
            if statement.command == "unset":
                attributes.pop(key, None)
            elif setting.operator == "-=":
                attributes[key] = ",".join(item for item in held.split(",") if item != setting.value)
            else:
                added = held and (setting.operator == "+=" or (printed and setting.value.startswith("[")))
                attributes[key] = f"{held},{setting.value}" if added else setting.value

    @property
    def own_hooks(self) -> str:
        """A warning about enabled hooks that are not from an export, "" without any."""
        found = [
            f"{name} ({held.get('event', 'no event').replace(',', ', ')})"
            for name, held in self.hooks.items()
            if not name.startswith(OUR_HOOKS) and held.get("enabled", "true").lower() in ("true", "t", "1", "y")
        ]
        said = "what they change of jobs, refuse or move is not simulated, and no plan asks them"
        return f"hooks of the site's own, {', '.join(found)}: {said}" if found else ""

    def of_type(self, kind: str) -> list[str]:
        """Return the queues of a type, ``execution`` or ``route``, in order of creation."""
        return [name for name, attributes in self.queues.items() if is_type(attributes, kind)]

    @property
    def untyped(self) -> list[str]:
        """The queues without a type, which take no jobs."""
        return [name for name, attributes in self.queues.items() if not attributes.get("queue_type")]

    @property
    def default(self) -> str:
        """The queue of jobs that name none, without ``@server``; "" if there is none."""
        return self.attributes.get("default_queue", "").partition("@")[0]

    @property
    def entered(self) -> list[str]:
        """The execution queues that users' jobs reach: by the default queue, by other routes, then directly.

        Nested routes are followed in the order of their destinations.
        """
        default = self.default
        # With a routing default queue, PBS's preset workq is ignored if it has no settings.
        routed = is_type(self.queues.get(default, {}), "route")
        direct = [
            name
            for name in self.of_type("execution")
            if not is_true(self.queues[name].get("from_route_only"))
            and not (name == "workq" and routed and {*self.queues[name]} <= {"queue_type", "enabled", "started"})
        ]
        entries = [*([default] if default in self.queues else []), *self.of_type("route"), *direct]
        reached = dict.fromkeys(name for entry in entries for name in self.reached(entry))
        return [name for name in reached if name in direct or not self.is_pool_queue(name)]

    def reached(self, name: str, through: tuple[str, ...] = ()) -> Iterator[str]:
        """Yield the execution queues that jobs submitted to a queue reach: itself, or its destinations."""
        attributes = self.queues.get(name, {})
        if is_type(attributes, "execution"):
            yield name
        elif name not in through:
            for each in destinations(attributes):
                yield from self.reached(each, (*through, name))

    def is_pool_queue(self, name: str) -> bool:
        """Whether a queue is another queue's pool queue: ``small_p`` for ``small``, entered only by qmove."""
        only_moved = is_true(self.queues.get(name, {}).get("from_route_only"))
        return only_moved and name.endswith(POOL_SUFFIX) and name.removesuffix(POOL_SUFFIX) in self.queues


def is_type(attributes: Mapping[str, str], kind: str) -> bool:
    """Whether a queue's type is `kind`; PBS accepts any case and abbreviations."""
    value = attributes.get("queue_type", "").lower()
    return bool(value) and kind.startswith(value)


def is_true(value: str | None) -> bool:
    """Whether a boolean attribute is set to true."""
    return value is not None and value.lower() in ("true", "t", "1", "y")


def priority_of(attributes: Mapping[str, str]) -> int:
    """Return the Priority of a queue, 0 by default."""
    text = attributes.get("Priority", "0")
    return int(text) if re.fullmatch(r"-?[0-9]{1,5}", text) else 0


def seconds(value: str) -> int:
    """Read a PBS duration: seconds, minutes:seconds or hours:minutes:seconds. Raises ValueError.

    Fractions of a second are rounded up.
    """
    whole, _, fraction = value.partition(".")
    return reduce(lambda total, part: total * 60 + int(part), whole.split(":"), 0) + bool(fraction.strip("0"))


def limits_in(value: str) -> dict[str, str]:
    """Parse the limits in a value like ``[o:PBS_ALL=4],[u:alice=2]``, by scope."""
    return dict(re.findall(r"\[([^=\]]+)=([^\]]*)\]", value))


def as_limits(scopes: Mapping[str, object]) -> str:
    """Return limits by scope as the value of an attribute."""
    return ",".join(f"[{scope}={limit}]" for scope, limit in scopes.items())


def destinations(attributes: Mapping[str, str]) -> list[str]:
    """Return the destinations of a routing queue, in order, without ``@server``."""
    return [name.partition("@")[0] for name in _items(attributes, "route_destinations")]


def _items(attributes: Mapping[str, str], key: str) -> list[str]:
    return [part.strip() for part in attributes.get(key, "").split(",") if part.strip()]


#: Access lists: kind in a configuration -> (attribute with the list, attribute that enables it).
ACCESS = {
    "users": ("acl_users", "acl_user_enable"),
    "groups": ("acl_groups", "acl_group_enable"),
    "hosts": ("acl_hosts", "acl_host_enable"),
}


def lists(attributes: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the enabled access lists of a queue, by kind."""
    return {
        kind: _items(attributes, names) for kind, (names, switch) in ACCESS.items() if is_true(attributes.get(switch))
    }


def admission(server: Server) -> dict[str, dict[str, object]]:
    """Return the attributes for routing and for limits on one job, by queue, those of the server under ""."""
    queues = {name: _of_queue(attributes) for name, attributes in server.queues.items()}
    return {"": _resources(server.attributes), **queues}


def _resources(attributes: Attributes) -> dict[str, object]:
    found: dict[str, dict[str, str]] = {}
    for key, value in attributes.items():
        kind, _, name = key.partition(".")
        if kind in ("resources_min", "resources_max", "resources_default"):
            found.setdefault(kind.removeprefix("resources_"), {})[name] = value
    return dict(found)


def _of_queue(attributes: Attributes) -> dict[str, object]:
    found = _resources(attributes)
    if is_type(attributes, "route"):
        found["to"] = _items(attributes, "route_destinations")
    if listed := lists(attributes):
        found["lists"] = listed
    for key in ("max_array_size", "route_lifetime"):
        if key in attributes:
            found[key] = seconds(attributes[key])
    return found | {key: True for key in ("enabled", "started") if is_true(attributes.get(key))}


#: The scheduler of Torque has lines without a colon.
_SETTING = re.compile(
    r"([A-Za-z_]\w*)(?:\s*:\s*|\s+(?=\w+\s+(?:prime|non_prime|all)\b))(\"[^\"]*\"|[^\s\"#]+)(?:\s+(\w+))?",
    re.IGNORECASE,
)
_FORMER = {"strict_fifo": "strict_ordering"}  #: former names of settings
#: Values at times (prime or not) for which a setting has no line.
_DEFAULTS = {"strict_ordering": "false", "by_queue": "true", "round_robin": "false", "fair_share": "false"}
TRUE = ("true", "yes", "t", "1")
#: PBS's values for missing lines.
_SHIPPED = _DEFAULTS | {"preemptive_sched": "true", "help_starving_jobs": "false"}
_PRIME = {"prime": ("prime",), "non_prime": ("non_prime",), "all": ("prime", "non_prime")}

Settings = Mapping[str, str | None]  #: new value by name; None removes the line


@dataclass(frozen=True)
class Scheduler:
    """The settings of sched_config; a setting may differ between prime and non-prime time."""

    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  #: value by setting, prime or non_prime

    @classmethod
    def read(cls, path: str | Path) -> Scheduler:
        """Read ``$PBS_HOME/sched_priv/sched_config``. Raises InputError."""
        settings: dict[str, dict[str, str]] = {}
        for number, line in enumerate(read_text(path).splitlines(), start=1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            found = _SETTING.match(text)
            if found is None:
                fix = "give the scheduler's sched_priv/sched_config"
                if re.match(r"[A-Z][A-Z0-9]+(\[|\s)", text):
                    fix = "of Maui or Moab leave it out, and write reservation_depth and order: {maui: ...} yourself"
                raise InputError("is no line like 'by_queue: True ALL'", file=path, line=number, value=text, fix=fix)
            name, value, when = found.groups()
            name = _FORMER.get(name, name)
            times = _PRIME.get((when or "all").lower(), _PRIME["all"])
            held, value = settings.setdefault(name, {}), value.strip('"')
            for time in times:  # each line of a sort key appends
                held[time] = f"{held[time]}, {value}" if name.endswith("_sort_key") and time in held else value
        for name in _DEFAULTS.keys() & settings.keys():
            settings[name] = dict.fromkeys(_PRIME["all"], _DEFAULTS[name]) | settings[name]
        return cls(settings)

    def value(self, name: str) -> str | None:
        """Return the value of a setting in non-prime time, None without a line."""
        held = self.settings.get(name, {})
        return held.get("non_prime", held.get("prime"))

    def differs(self, name: str) -> bool:
        """Whether a setting differs between prime and non-prime time."""
        return len(set(self.settings.get(name, {}).values())) > 1

    def is_true(self, name: str) -> bool:
        """Whether a setting, or its default, is true in non-prime time."""
        return (self.value(name) or _DEFAULTS.get(name, "")).lower() in TRUE

    def on(self, name: str, *, default: bool = False) -> bool:
        """Whether a setting is true at any time."""
        held = self.settings.get(name, {}).values()
        return any(value.lower() in TRUE for value in held) if held else default

    def lacks(self, name: str, value: str | None) -> bool:
        """Whether a setting must change to have this value at all times; None means no line."""
        now = self.value(name)
        if value is None:
            return now is not None
        return self.differs(name) or (now or _SHIPPED.get(name, "")).lower() != value.lower()


#: Attributes of server and queues that only Torque has.
_SERVER = (
    *("tcp_timeout", "node_check_rate", "next_job_number", "mom_job_sync", "log_level", "log_keep_days", "poll_jobs"),
    *("keep_completed", "auto_node_np", "np_default", "submit_hosts", "allow_node_submit", "job_stat_rate"),
    *("moab_array_compatible", "nppcu", "timeout_for_job_delete", "timeout_for_job_requeue", "record_job_info"),
    *("job_nanny", "record_job_script", "log_file_max_size", "log_file_roll_depth", "disable_server_id_check"),
    *("authorized_users", "node_submit_exceptions", "display_job_server_suffix", "clone_batch_size", "max_threads"),
    *("owner_purge", "mail_domain", "node_ping_rate", "resources_default.neednodes"),
    *("cray_enabled", "legacy_vmem", "tcp_incoming_timeout", "job_start_timeout", "checkpoint_dir", "extra_resc"),
    *("max_slot_limit", "max_job_array_size", "email_batch_seconds", "copy_on_rerun", "lock_file", "down_on_error"),
)
_QUEUE = (
    *("resources_default.neednodes", "resources_max.procct", "resources_min.procct", "resources_available.procct"),
    *("max_user_queuable", "acl_group_sloppy", "acl_logic_or", "disallowed_types", "features_required", "ghost_queue"),
    *("is_transit", "required_login_property", "resources_max.procs", "keep_completed"),
)
#: Attributes of the server that only PBS prints.
_PBS = ("resv_enable", "eligible_time_enable", "pbs_license_min", "max_concurrent_provision", "license_count")
_CORES = ("procct", "procs", "mppwidth", "size")
ABOUT = (
    "this is a Torque server, which is read and cannot be exported to. Its queues say nothing of order and "
    "reservations: of pbs_sched give the sched_config with --scheduler; those of Maui or Moab (RESERVATIONDEPTH, "
    "weights) write yourself: reservation_depth, order: {maui: ...}. One reservation, first come, first served, is "
    "supposed"
)


def is_torque(server: Server) -> bool:
    """Whether the output of ``print server`` is from Torque."""
    if any(key in server.attributes for key in _PBS):
        return False
    queues = (key for attributes in server.queues.values() for key in attributes)
    return any(key in _SERVER for key in server.attributes) or any(key in _QUEUE for key in queues)


def read_current(path: str | Path) -> Server:
    """Read the present state of the server to export to. Raises InputError, also for Torque."""
    server = Server.read(path)
    if is_torque(server):
        raise InputError(
            "is of Torque, to which nothing is exported: its statements are not those of PBS",
            file=path,
            fix="read it with qconf init --from-pbs, and tune without --current",
        )
    return server


def as_pbs(server: Server) -> Server:
    """Return a copy of a Torque server with PBS's attributes in its queues."""
    found = deepcopy(server)
    _limits(found.attributes)
    for attributes in found.queues.values():
        _limits(attributes)
        for name in _properties(attributes):
            attributes[f"default_chunk.{name}"] = "True"
    return found


def _limits(attributes: Attributes) -> None:
    """Convert limits of processors, and of nodes with ppn, to limits of cores."""
    for end in ("min", "max"):
        for name in _CORES:
            if (value := attributes.pop(f"resources_{end}.{name}", None)) is not None:
                attributes[f"resources_{end}.ncpus"] = value
        nodes = attributes.get(f"resources_{end}.nodes", "")
        if found := re.fullmatch(r"([0-9]+)(?::ppn=([0-9]+))?", nodes):
            del attributes[f"resources_{end}.nodes"]
            if found[2]:
                attributes.setdefault(f"resources_{end}.ncpus", str(int(found[1]) * int(found[2])))
            else:
                attributes.setdefault(f"resources_{end}.nodect", found[1])


def _properties(attributes: Attributes) -> Iterator[str]:
    """Yield the properties that the nodes of a queue's jobs must have."""
    for key in ("resources_default.neednodes", "features_required"):
        for word in re.split(r"[:,+&]", attributes.pop(key, "")):
            if re.fullmatch(r"[A-Za-z][\w.-]*", word):
                yield word
