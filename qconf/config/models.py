"""The fields of a configuration, of its machine, queues, pool and other parts; each field is checked by itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, get_args, get_origin, overload

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator
from pydantic.fields import FieldInfo

from parsim.model.fairshare import EQUAL_SHARES, MOST_SHARES
from parsim.model.node_types import MOST, MOST_NODES, MOST_WEIGHT
from parsim.model.qos import ALL_LIMITS, EXEMPTIONS
from parsim.model.system import LIMITS, Preempted
from parsim.model.throttles import MOST_WORK, RESOURCES, THROTTLES, Each, Whose
from parsim.model.workload import MAX_CORES, MAX_DURATION
from qconf.config.durations import FORMS, parse_duration
from qconf.config.maui import parse_order
from qconf.config.policy import parse_policy
from qconf.inert import inert

#: Suffix of the PBS queue through which a queue's jobs enter the pool.
POOL_SUFFIX = "_p"


def _as_tuple(value: object) -> object:
    """Convert a list, as YAML has it, to a tuple."""
    return tuple(value) if isinstance(value, list) else value


def _name(value: str) -> str:
    if not value.isprintable() or inert(value) != value or any(c.isspace() for c in value):
        raise ValueError("a name holds no blank, no line break and nothing invisible")
    return value


def _user(value: object) -> object:
    """Convert a number to the user name that logs have for it."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _printable(value: str) -> str:
    if inert(value) != value:
        raise ValueError("a name holds no line break and nothing invisible")
    return value


def form(of: Any) -> str:  # noqa: ANN401 - a field of a model, or any type
    """Return the allowed values of a field or type in words: the field's description, or the type's choices."""
    if of is bool:
        return "true or false"
    if get_origin(of) is Literal:
        *others, last = get_args(of)
        return f"{', '.join(others)} or {last}"
    if isinstance(of, FieldInfo):
        return of.description or form(of.annotation)
    return next(filter(None, map(form, get_args(of))), "")


def _whole(least: int, most: int | None = None, text: str = "") -> Any:  # noqa: ANN401 - as pydantic has it
    """Return the bounds of a whole number, with their description for `form`."""
    bounds = f"a whole number from {least} {'up' if most is None else f'to {most}'}"
    return Field(ge=least, le=most, description=text or bounds)


HIGHEST_TIER = 65533  #: highest PriorityTier of Slurm
_LIMIT = "a whole number from 1 up, or leave it out for no limit"

Name = Annotated[
    str, Field(min_length=1, max_length=64, description="a name of 1 to 64 visible characters without blanks")
]
User = Annotated[str, BeforeValidator(_user), Field(min_length=1, max_length=256, description="a name as logs have it")]
Users = Annotated[tuple[User, ...], BeforeValidator(_as_tuple)]
Weight = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False, description="a number above 0, at most 1e9")]
Cores = Annotated[int, _whole(1, MAX_CORES)]
Share = Annotated[int, _whole(0, MAX_CORES, "a whole number of cores from 0 up")]
Duration = Annotated[int, BeforeValidator(parse_duration), Field(description=FORMS)]
Limit = Annotated[int, _whole(1, MAX_CORES, _LIMIT)] | None
Work = Annotated[int, _whole(1, MOST_WORK, _LIMIT)] | None
Entries = Annotated[
    tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9_.@*+-]{1,128}$")], ...], BeforeValidator(_as_tuple)
]


class Settings(dict[str, Any]):
    """An unchanging, hashable dict of settings by name."""

    def __hash__(self) -> int:  # type: ignore[override]
        """Equal settings have equal hashes."""
        return hash(frozenset(self.items()))


def _of_preset(value: object) -> object:
    """Read the name of a public trace as the preset of its columns."""
    return {"preset": value} if isinstance(value, str) else value


Licence = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.@-]{1,64}$")]
Setting = bool | int | float | str | Annotated[tuple[int | float, ...], BeforeValidator(_as_tuple)]


class Model(BaseModel):
    """A strict and frozen model: ``"8"`` is no number, an unknown key is a mistake."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", revalidate_instances="always")


class MachineConfig(Model):
    """The machine; with `whole_nodes` every job and every partition takes whole nodes of `cores_per_node`."""

    name: Name = "machine"
    cores: Cores
    cores_per_node: Cores = 1
    whole_nodes: bool = False

    _check_name = field_validator("name")(_printable)


Counted = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.:-]{0,63}$")]
Amount = Annotated[int, _whole(0, MOST, "a whole number from 0 up")]
Feature = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:=@/-]{1,128}$")]


def _memory(value: object) -> object:
    """Read memory such as 256gb as MiB; a number is MiB already."""
    match = re.fullmatch(r"([0-9]{1,9})(mb|gb|tb)", value) if isinstance(value, str) else None
    return int(match[1]) * {"mb": 1, "gb": 1024, "tb": 1024**2}[match[2]] if match else value


Hosts = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.,\[\]-]{1,65536}$")]


#: The resource of cores that jobs without GPUs may use, if they leave some cores to GPU jobs.
KEPT = "cores_without_gpus"


def _limits(value: object) -> object:
    """Read a limit of memory as the memory of a node is read."""
    if not isinstance(value, dict):
        return value
    return {name: _memory(limit) if name == "memory" else limit for name, limit in value.items()}


class NodesConfig(Model):
    """Nodes of one type: their number, and the resources of each; memory in MiB. Only exports use `hosts`."""

    name: Name
    count: Annotated[int, _whole(1, MOST_NODES)]
    cores: Cores
    memory: Annotated[Amount, BeforeValidator(_memory)] = 0
    gpus: Amount = 0
    kept_per_gpu: Amount = 0
    resources: Annotated[dict[Counted, Amount], AfterValidator(Settings)] = Settings()
    features: Annotated[tuple[Feature, ...], BeforeValidator(_as_tuple)] = ()
    exclusive: bool = False
    weight: Annotated[int, _whole(0, MOST_WEIGHT)] = 1
    hosts: Hosts | None = None

    _check_name = field_validator("name")(_name)

    @property
    def amounts(self) -> dict[str, int]:
        """Amount of each resource but cores on a node, by the names that jobs request."""
        return {**self.resources, "memory": self.memory, "gpus": self.gpus}


class AccessConfig(Model):
    """Who may use a queue, by lists as in the batch system; a job has to satisfy all given lists."""

    users: Entries | None = None
    groups: Entries | None = None
    hosts: Entries | None = None
    accounts: Entries | None = None
    qos: Entries | None = None


_WEIGHT = r"[A-Za-z0-9_/:.-]{1,64}=([0-9]{1,16}(\.[0-9]{0,16})?|\.[0-9]{1,16})[KMGTP]?"
BILLING = rf"{_WEIGHT}(,{_WEIGHT}){{0,31}}"
Billing = Annotated[str, Field(pattern=f"^{BILLING}$")]

#: Charge for a second of each resource that a job takes.
Charges = Annotated[dict[Name, Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]], AfterValidator(Settings)]

#: Number of nodes of each type in a partition.
Owned = Annotated[
    dict[Name, Annotated[int, Field(ge=0, le=MOST_NODES)]],
    AfterValidator(Settings),
    Field(description="how many nodes of each type by name, like {gpu: 2}"),
]


class QueueConfig(Model):
    """A queue: the jobs that it admits (cores inclusive; walltime above the first, up to the second) and its limits."""

    name: Name
    cores: tuple[int, int] = (1, MAX_CORES)
    walltime: tuple[int, int] = (0, MAX_DURATION)
    priority: Weight = 1.0
    partition: Share = 0
    reservation: bool = False
    starvation: Duration | None = None
    max_run: Limit = None
    max_run_cores: Limit = None
    max_user_run: Limit = None
    max_user_cores: Limit = None
    tier: Annotated[int, _whole(0, HIGHEST_TIER)] = 0
    preempted: Preempted = "off"
    access: AccessConfig | None = None
    nodes: Annotated[tuple[Name, ...], BeforeValidator(_as_tuple), Field(min_length=1)] | None = None
    exclusive: bool = False
    partition_nodes: Owned = Settings()  #: number of nodes of each type; `partition` has their cores
    billing: Billing | None = None  #: TRESBillingWeights of Slurm, as written there

    _check_name = field_validator("name")(_name)

    @field_validator("cores", mode="before")
    @classmethod
    def _read_cores(cls, value: object) -> tuple[int, int]:
        low, high = _pair(value)
        low, high = (1 if low is None else low), (MAX_CORES if high is None else high)
        for bound in (low, high):
            if not isinstance(bound, int) or isinstance(bound, bool):
                raise ValueError(f"{bound!r} is not a whole number")  # noqa: TRY004
        if not 1 <= low <= high <= MAX_CORES:
            raise ValueError("no job can enter: the least must be at least 1 and not above the most")
        return low, high

    @field_validator("walltime", mode="before")
    @classmethod
    def _read_walltime(cls, value: object) -> tuple[int, int]:
        low, high = _pair(value)
        shortest = 0 if low is None else parse_duration(low)
        longest = MAX_DURATION if high is None else parse_duration(high)
        if shortest >= longest:
            raise ValueError("no job can enter: walltimes above the first and up to the second are let in")
        return shortest, longest

    @property
    def limited(self) -> bool:
        """Whether running jobs of the queue, or of its users, are limited."""
        return any(getattr(self, name) is not None for name in LIMITS)

    @overload
    def admits(self, cores: int, walltime: int | None) -> bool: ...

    @overload
    def admits(self, cores: NDArray[np.int64], walltime: NDArray[np.int64], grid: int = 1) -> NDArray[np.bool_]: ...

    def admits(self, cores: Any, walltime: Any, grid: int = 1) -> Any:
        """Return whether a job, or each of many, is within the queue's ranges.

        Only cores count if the walltime (seconds) is unknown: None, or not above 0. The queue's most cores are rounded
        up to a multiple of `grid`.
        """
        (least, most), (above, longest) = self.cores, self.walltime
        fits = (cores >= least) & (cores <= -(-most // grid) * grid)
        return fits if walltime is None else fits & ((walltime <= 0) | (walltime > above) & (walltime <= longest))


#: Fields of a queue without a partition.
UNDIVIDED: dict[str, object] = {"partition": 0, "partition_nodes": Settings()}


def _pair(value: object) -> tuple[Any, Any]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError("expected two values, the least and the most")
    return value[0], value[1]


class PoolConfig(Model):
    """The common pool. Without `threshold`, tau is half the priority of the `reference` queue."""

    cores: Share = 0
    threshold: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    reference: Name | None = None
    placement: Literal["pool", "combined"] = "pool"
    entry: Literal["either", "move"] = "either"
    starving_first: bool = False


class Target(Model):
    """A target of the site for the jobs of a queue or of a group of users; not simulated."""

    queue: Name | None = None
    group: Name | None = None
    users: Users = ()
    p95_wait: Duration | None = None
    weight: Weight | None = None

    _check_group = field_validator("group")(lambda value: value if value is None else _name(value))

    @property
    def what(self) -> str:
        """The queue or group, for a sentence."""
        return f"group {self.group}" if self.queue is None else f"queue {self.queue}"


class ShareConfig(Model):
    """The fair share of a user or a group of users, relative to others of the same group."""

    name: User
    shares: Annotated[int, _whole(0, MOST_SHARES)] = 1
    group: Annotated[User, Field(min_length=1)] | None = None
    target: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] | None = None
    bound: Literal["target", "floor", "ceiling"] = "target"


def _exemptions(value: object) -> object:
    """Convert a single name to a tuple of one."""
    return (value,) if isinstance(value, str) else _as_tuple(value)


def _exemption(value: str) -> str:
    if value not in (ALL_LIMITS, *EXEMPTIONS):
        raise ValueError(f"{value!r} is none of {', '.join((ALL_LIMITS, *EXEMPTIONS))}")
    return value


class QOSConfig(Model):
    """A quality of service: its priority and exemptions, and the jobs that have it unless the log says otherwise."""

    name: User
    priority: Annotated[float, Field(ge=-1e10, le=1e10, allow_inf_nan=False)] = 0.0
    target: Annotated[float, Field(ge=1, le=1e9, allow_inf_nan=False)] | None = None
    exempt: Annotated[tuple[Annotated[str, AfterValidator(_exemption)], ...], BeforeValidator(_exemptions)] = ()
    usage_factor: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 1.0
    users: Users = ()
    accounts: Users = ()
    groups: Users = ()
    queues: Annotated[tuple[Name, ...], BeforeValidator(_as_tuple)] = ()


class ThrottleConfig(Model):
    """Limits on the running jobs of all, of each user, group or QOS, or of one of them."""

    each: Whose | None = Field(None, description=f"{form(Whose)}, or leave it out for all jobs together")
    user: User | None = None
    group: User | None = None
    qos: User | None = None  #: only jobs of this QOS count; without user and group, they count together
    queue: Name | None = None
    max_run: Limit = None
    max_run_cores: Limit = None
    max_run_core_seconds: Work = None
    max_eligible: Limit = None
    max_queued: Limit = None
    #: Limits on the running jobs' total of each resource of nodes but cores; memory in MiB.
    max_run_resources: Annotated[
        dict[Counted, Annotated[int, Field(ge=1, le=MOST_WORK)]], BeforeValidator(_limits), AfterValidator(Settings)
    ] = Settings()

    @classmethod
    def of(cls, limits: Mapping[str, int], **whose: object) -> ThrottleConfig:
        """Return a throttle with these limits, named as in `limits`, for these jobs."""
        plain = {name: limit for name, limit in limits.items() if "." not in name}
        of_nodes = {name.partition(".")[2]: limit for name, limit in limits.items() if "." in name}
        return cls.model_validate({**whose, **plain, RESOURCES: of_nodes})

    @property
    def kind(self) -> Each:
        """Whether jobs are counted by user, group or QOS, or all together (empty), as in parsim."""
        if self.user is not None or self.group is not None:
            return "user" if self.user is not None else "group"
        return self.each or ("qos" if self.qos is not None else "")

    @property
    def name(self) -> str:
        """The single user, group or QOS that is limited; empty for each of them, or all."""
        return self.user or self.group or (self.qos if self.kind == "qos" and self.qos else "")

    @property
    def of_qos(self) -> str:
        """The QOS to whose jobs a limit of others is restricted; empty for none."""
        return "" if self.kind == "qos" else self.qos or ""

    @property
    def is_of_qos(self) -> bool:
        """Whether the throttle belongs to QOS: each, one, or each user or group in one."""
        return self.kind == "qos" or bool(self.of_qos)

    @property
    def limits(self) -> dict[str, int]:
        """The limits by name; a resource's as ``max_run_resources.gpus``."""
        found = {name: limit for name in THROTTLES if (limit := getattr(self, name)) is not None}
        return found | {f"{RESOURCES}.{name}": limit for name, limit in self.max_run_resources.items()}

    def is_of_queue(self, queue: str) -> bool:
        """Return whether the throttle limits all jobs of a queue together."""
        return self.queue == queue and not self.kind and not self.of_qos

    @property
    def what(self) -> str:
        """The limited jobs, for a sentence."""
        whose = f"{self.kind} {self.name}" if self.name else f"each {self.each}" if self.each else "all jobs"
        whose += f" in qos {self.of_qos}" if self.of_qos else ""
        return whose + (f" in queue {self.queue}" if self.queue is not None else "")


class FairshareConfig(Model):
    """How use is compared with shares, and how it decays."""

    decay_time: Duration = EQUAL_SHARES.decay_time
    decay_factor: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = EQUAL_SHARES.decay_factor
    fair_share: Literal["classic", "tree"] = EQUAL_SHARES.fair_share
    unknown_shares: Annotated[int, _whole(0, MOST_SHARES)] = EQUAL_SHARES.unknown_shares
    charges: Charges = Settings()  #: weights of resources, by name; without any, cores are charged
    charged: Literal["sum", "max"] = EQUAL_SHARES.charged


def _moment(value: object) -> object:
    """Convert a date that YAML parsed back to text."""
    text = str(value)
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no date or time like 2026-03-01T08:00") from None
    return text


Moment = Annotated[str, BeforeValidator(_moment), Field(description="a date or time like 2026-03-01T08:00")]


class Downtime(Model):
    """Cores that are out of service for a while; times without an offset are local to the log."""

    begin: Moment
    end: Moment
    cores: Cores | None = None
    partition: Name | None = None  #: a queue's, or ``pool``
    nodes: Annotated[tuple[Annotated[int, Field(ge=0)], ...], BeforeValidator(_as_tuple)] = ()
    known_from: Moment | None = None  #: default: known from the first second
    known_end: bool = True
    queue: Name | None = None  #: a reservation in which only jobs of this queue run
    users: Users = ()  #: a reservation in which only these users run
    types: Owned = Settings()  #: nodes of each type, in place of cores


Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = get_args(Day)
Clock = Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$", description="a time of the day like 08:00")]
Closed = Annotated[int, _whole(0, MAX_CORES, "a whole number from 0 up")] | None


class HoursConfig(Model):
    """Limits of a queue at some hours of some days, beside its own; an `end` before `begin` is on the next day."""

    queue: Name
    days: Annotated[tuple[Day, ...], BeforeValidator(_as_tuple)] = DAYS
    begin: Clock
    end: Clock
    max_run: Closed = None
    max_run_cores: Closed = None
    max_user_run: Closed = None
    max_user_cores: Closed = None


class ShortpoolConfig(Model):
    """Cores reserved for short jobs at some hours of some days; an `end` not after `begin` is the next day's."""

    cores: Cores
    types: Owned = Settings()  #: number of nodes of each type; `cores` has their cores
    walltime: Duration  #: longest walltime of a job that may use the cores
    days: Annotated[tuple[Day, ...], BeforeValidator(_as_tuple)] = DAYS
    begin: Clock = "00:00"
    end: Clock = "00:00"

    @property
    def minutes(self) -> NDArray[np.bool_]:
        """Mask of the minutes of a week in which the cores are reserved, shape (10080,); no clock changes."""
        begin, end = (60 * int(clock[:2]) + int(clock[3:]) for clock in (self.begin, self.end))
        lasts = np.arange((end - begin) % 1440 or 1440)
        kept = np.zeros(7 * 1440, dtype=np.bool_)
        for day in self.days:
            kept[(1440 * DAYS.index(day) + begin + lasts) % kept.size] = True
        return kept


class FidelityConfig(Model):
    """The fidelity of a log to the simulation of this configuration, found by ``qconf fidelity``; not simulated."""

    grade: Literal["A", "B", "C", "D", "E"]
    agreement: Annotated[float, Field(ge=0, le=1)]
    jobs: Annotated[int, _whole(0)]
    windows: Annotated[int, _whole(0)]
    of: Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]  #: digest of the simulated configuration


class HistoryConfig(Model):
    """How to read the site's logs, unless an option says otherwise."""

    columns: Annotated[dict[str, str], BeforeValidator(_of_preset), AfterValidator(Settings)] = Settings()
    units: Annotated[dict[str, str], AfterValidator(Settings)] = Settings()
    timezone: Annotated[str, Field(min_length=1)] | None = None
    date_format: Annotated[str, Field(min_length=1)] | None = None


class SiteFields(Model):
    """All fields of a configuration file, and values derived from them; `SiteConfig` also checks that they fit."""

    machine: MachineConfig
    nodes: Annotated[tuple[NodesConfig, ...], BeforeValidator(_as_tuple)] = ()
    mode: Literal["shared", "partitioned", "hybrid"] = "shared"
    order: Annotated[str, BeforeValidator(parse_order), Field(min_length=1, max_length=2000)] = "fcfs"
    backfill: bool = True
    reserve_after: Duration = 0
    priority_calc_period: Duration = 0
    held_jobs: Literal["pass", "reserve"] = "pass"
    reserve: Literal["cores", "nodes", "queues", "queue_nodes", "nothing"] = "cores"
    reservation_depth: Limit = Field(1, description="a whole number from 1 up, or null for all that wait")
    queues: Annotated[tuple[QueueConfig, ...], BeforeValidator(_as_tuple), Field(min_length=1)]
    pool: PoolConfig | None = None
    routing: Name | None = None  #: the batch system's routing queue, for exports only
    fairshare: FairshareConfig | None = None
    shares: Annotated[tuple[ShareConfig, ...], BeforeValidator(_as_tuple)] = ()
    throttles: Annotated[tuple[ThrottleConfig, ...], BeforeValidator(_as_tuple)] = ()
    qos: Annotated[tuple[QOSConfig, ...], BeforeValidator(_as_tuple)] = ()
    policy: Annotated[tuple[str, ...], BeforeValidator(parse_policy)] = ()  #: parts that a search may change
    fixed: Annotated[tuple[str, ...], BeforeValidator(_as_tuple)] = ()
    targets: Annotated[tuple[Target, ...], BeforeValidator(_as_tuple)] = ()
    downtime: Annotated[tuple[Downtime, ...], BeforeValidator(_as_tuple)] = ()
    hours: Annotated[tuple[HoursConfig, ...], BeforeValidator(_as_tuple)] = ()
    shortpools: Annotated[tuple[ShortpoolConfig, ...], BeforeValidator(_as_tuple)] = ()
    #: Number of licences, by name.
    licences: Annotated[dict[Licence, Annotated[int, Field(ge=0, le=MAX_CORES)]], AfterValidator(Settings)] = Settings()
    fidelity: FidelityConfig | None = None
    history: HistoryConfig | None = None
    #: Settings of the strategies by name, as in the file; the strategies check them.
    strategies: Annotated[dict[Name, Setting], AfterValidator(Settings)] = Settings()

    _check_routing = field_validator("routing")(lambda value: value if value is None else _name(value))

    @property
    def grid(self) -> int:
        """Unit of partition sizes in cores: a node if nodes are whole, else 1."""
        return self.machine.cores_per_node if self.machine.whole_nodes else 1

    @property
    def names(self) -> tuple[str, ...]:
        """The queues' names, in configuration order."""
        return tuple(queue.name for queue in self.queues)

    @property
    def owned(self) -> tuple[tuple[str, Mapping[str, int]], ...]:
        """Path and nodes by type of every queue's partition; empty on a shared machine."""
        parts = () if self.mode == "shared" else enumerate(self.queues)
        return tuple((f"queues[{i}].partition", queue.partition_nodes) for i, queue in parts)

    def owned_by(self, partition: str) -> Mapping[str, int]:
        """Return the nodes by type of a queue's partition; empty if there is no such queue."""
        return next((queue.partition_nodes for queue in self.queues if queue.name == partition), {})

    @property
    def pool_cores(self) -> int:
        """Cores of the common pool; 0 if there is none."""
        return self.pool.cores if self.mode == "hybrid" and self.pool is not None else 0

    @property
    def reservation_delay(self) -> int:
        """Seconds that a job waits before it gets a reservation: `reserve_after`, 0 where it has no effect."""
        return self.reserve_after if self.mode == "shared" and self.backfill else 0

    @property
    def reserves_nothing(self) -> bool:
        """Whether any waiting job that fits starts, and no job ever gets a reservation."""
        return self.reserve == "nothing" and not self.reserve_after and self.mode == "shared" and self.backfill

    @property
    def reserves_for_queues(self) -> bool:
        """Whether each queue of a shared machine has a head job, as in Slurm."""
        return self.reserve in ("queues", "queue_nodes")

    @property
    def has_tiers(self) -> bool:
        """Whether jobs of some queues go before, and may preempt, jobs of others."""
        return len({queue.tier for queue in self.queues}) > 1

    def widest(self, queue: QueueConfig) -> int:
        """Return the cores of the widest job that a queue admits on this machine."""
        return min(queue.cores[1], self.machine.cores)


#: Fields of a configuration that are parts with fields of their own, or lists of parts.
PARTS = (
    *("machine", "nodes", "queues", "pool", "fairshare", "shares", "throttles", "qos", "targets", "downtime", "hours"),
    *("shortpools", "licences", "fidelity", "history", "strategies"),
)
#: Keys whose values are durations.
DURATIONS = {
    name for model in Model.__subclasses__() for name, field in model.model_fields.items() if form(field) == FORMS
}
#: Fields of a configuration that are single values; `parsim.System` has the same.
SCALARS = tuple(name for name in SiteFields.model_fields if name not in (*PARTS, "routing", "policy", "fixed"))
