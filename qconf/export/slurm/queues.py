"""Write queues as Slurm partitions (words of slurm.conf), and read them back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from parsim.model.throttles import RESOURCES
from parsim.model.workload import MAX_CORES, MAX_DURATION
from qconf.config import AccessConfig, NodesConfig, QueueConfig, SiteConfig, ThrottleConfig, billing
from qconf.config.models import BILLING
from qconf.config.multifactor import Multifactor
from qconf.errors import ExportError
from qconf.export.nodes import Node, assign, check_machine
from qconf.export.priorities import scale
from qconf.export.slurm import qos as service
from qconf.export.slurm import throttles
from qconf.export.slurm.conf import NO, Conf, Fields, is_yes
from qconf.export.slurm.throttles import by_whose, limit_of
from qconf.export.types import hosts as hosts_of_types
from qconf.export.types import is_bound
from qconf.history import Records
from qconf.history.times import slurm_limit
from qconf.hosts import fold
from qconf.text import grouped

POOL = "pool"  #: name of the pool's partition
PREEMPTING = "preempt/partition_prio"  #: PreemptType: jobs of a higher PriorityTier preempt by the others' PreemptMode
MODES = {"off": "OFF", "suspend": "SUSPEND", "requeue": "REQUEUE"}  #: PreemptMode of a partition, by `preempted`
UNLIMITED = ("UNLIMITED", "INFINITE", "-1")
#: Kind of `access` -> (word that allows, word that denies).
ACCESS = {
    "groups": ("AllowGroups", None),
    "accounts": ("AllowAccounts", "DenyAccounts"),
    "qos": ("AllowQos", "DenyQos"),
    "hosts": ("AllocNodes", None),
}
Line = dict[str, str]  #: value by word of slurm.conf


class Of(NamedTuple):
    """The data of a partition: its queue, and values that depend on all queues and nodes."""

    config: SiteConfig
    queue: QueueConfig
    nodes: str  #: a host list
    cores: int | None  #: MaxCPUsPerNode; None for all cores
    tier: int
    factor: int
    mode: str  #: PreemptMode, "" without preemption


class Word(NamedTuple):
    """A word of a partition's line, its default in Slurm, and the function of its value ("" leaves it out)."""

    name: str
    neutral: str
    written: Callable[[Of], str]


#: The words of an exported partition, in order.
WORDS = (
    Word("Nodes", "", lambda of: of.nodes),
    Word("MaxTime", "UNLIMITED", lambda of: clock(whole_minutes(of.queue)[1])),
    Word("MaxCPUsPerNode", "UNLIMITED", lambda of: str(of.cores or "")),
    Word("MinNodes", "1", lambda of: _size(of.config, of.queue.cores[0])),
    Word("MaxNodes", "UNLIMITED", lambda of: _size(of.config, of.queue.cores[1])),
    Word("PriorityTier", "1", lambda of: str(of.tier)),
    Word("PriorityJobFactor", "1", lambda of: str(of.factor)),
    Word("OverSubscribe", "NO", lambda of: "EXCLUSIVE" if gives_whole(of.config, of.queue) else ""),
    Word("PreemptMode", "", lambda of: of.mode),
    Word("QOS", "", lambda of: qos_of(of.queue.name) if is_limited(of.config, of.queue) else ""),
    Word("TRESBillingWeights", "", lambda of: charged(of.config, of.queue)),
)
#: Word in lower case -> its default value in Slurm.
NEUTRAL = {
    **{word.name.lower(): word.neutral for word in WORDS},
    **{name.lower(): "" if name.startswith("Deny") else "ALL" for pair in ACCESS.values() for name in pair if name},
    "state": "UP",
}
#: Words that are read; others become warnings.
READ = {*NEUTRAL, "file", "line", "partitionname", "rootonly", "hidden", "default"}


def line(of: Of) -> Line:
    """Return the values by word of a partition. Raises ExportError."""
    found = {word.name: text for word in WORDS if (text := word.written(of))}
    return {**found, **dict(access(of.queue)), "State": "UP"}


def gives_whole(config: SiteConfig, queue: QueueConfig) -> bool:
    """Whether jobs of a queue get whole nodes. Raises ExportError if only some of its nodes are exclusive."""
    alone = [each.exclusive for each in config.nodes if queue.nodes is None or each.name in queue.nodes]
    if any(alone) and not (all(alone) or queue.exclusive):
        raise ExportError(
            f"queue {queue.name}: jobs have some of its nodes alone and others not, and Slurm gives the jobs of a "
            "partition whole nodes or none: bind it to nodes of one kind, or give it exclusive: true"
        )
    return config.machine.whole_nodes or queue.exclusive or any(alone)


def charged(config: SiteConfig, queue: QueueConfig) -> str:
    """Return TRESBillingWeights of a queue, "" for cores only."""
    return queue.billing or billing.written(dict(config.tree.charges))


def _size(config: SiteConfig, cores: int) -> str:
    """Return a number of cores as nodes, "" if the cores of a job do not determine its nodes."""
    node = config.machine.cores_per_node
    of_one_core = node == 1 and all(each.cores == 1 for each in config.nodes)
    counted = config.machine.whole_nodes or of_one_core
    return str(-(-cores // node)) if counted and cores < MAX_CORES else ""


def access(queue: QueueConfig) -> Iterator[tuple[str, str]]:
    """Yield the access lists of a queue as (word, names); names after ``-`` go to the denying word."""
    for kind, names in queue.access or ():
        if names is None:
            continue
        out = [name.removeprefix("-") for name in names if name.startswith("-")]
        allowed, denied = ACCESS[kind]
        if not names or (out and (len(out) < len(names) or denied is None)):
            raise ExportError(
                f"queue {queue.name}: access of {kind} is a list of those let in, or for accounts and qos of those "
                f"kept out, each after a -; not {', '.join(names) or 'empty'}"
            )
        yield str(denied if out else allowed), ",".join(out or names)


def whole_minutes(queue: QueueConfig) -> tuple[int, int]:
    """Return the walltime range of a queue, seconds, rounded up to minutes as in Slurm."""
    above, upto = (bound if bound >= MAX_DURATION else -(-bound // 60) * 60 for bound in queue.walltime)
    return above, upto


def qos_of(name: str) -> str:
    """Return the name of the QOS for a queue's limits; it must differ from the default QOS of jobs."""
    return f"{name}-queue" if name.lower() == throttles.QOS else name


def is_limited(config: SiteConfig, queue: QueueConfig) -> bool:
    """Whether a queue has limits, permanent or by hours, for which it needs a QOS."""
    hourly = any(each.queue == queue.name for each in config.hours)
    return queue.limited or hourly or bool(throttles.of_queue(config, queue.name))


def clock(seconds: int) -> str:
    """Return seconds as D-HH:MM:SS, or UNLIMITED."""
    if seconds >= MAX_DURATION:
        return "UNLIMITED"
    days, rest = divmod(seconds, 86400)
    return f"{days}-{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"


def _number(fields: Fields, word: str, default: str = "1") -> int:
    """Return the whole number that a partition has for a word. Raises ValueError."""
    text = fields.get(word.lower(), default)
    if not text.isdecimal():
        raise ValueError(f"{word}={text} is no whole number")
    return int(text)


class Partition:
    """A partition that jobs can enter: its queue, and the values for mode and priorities."""

    def __init__(self, queue: QueueConfig, fields: Fields, hosts: frozenset[str], cores: int) -> None:
        self.queue, self.fields, self.hosts, self.cores = queue, fields, hosts, cores
        self.name = queue.name
        self.tier, self.factor = (_number(fields, word) for word in ("PriorityTier", "PriorityJobFactor"))
        self.priority = float(max(1, self.factor if self.factor > 1 else self.tier))
        self.exclusive = fields.get("oversubscribe", "").upper() == "EXCLUSIVE"


class Reader:
    """Converts partitions of a slurm.conf to queues; `warnings` lists what is not simulated."""

    def __init__(
        self, conf: Conf, size: int, total: int, table: Mapping[str, Mapping[str, str]] | None, records: Records | None
    ) -> None:
        self.conf, self.size, self.total, self.table, self.records = conf, size, total, table, records
        self.of_partitions = {fields["qos"] for fields in conf.partitions if "qos" in fields}
        self.warnings = conf.warnings
        self.unread: dict[str, list[str]] = {}
        self.routes = conf.routes()
        parts = re.findall(r'name = "([^"]+)",.* parts = "([^"]+)"', conf.beside("job_submit.lua"))
        #: Partition for jobs without GPUs -> its queue.
        self.parts = {part: queue for queue, names in parts for part in names.split(",")}
        #: Words and values of the partitions' QOS, by QOS.
        self.words: dict[str, dict[str, str]] = {}
        for _, name, word, value in conf.statements("qos.sacctmgr"):
            self.words.setdefault(name, {})[word] = value
        self.words |= {name: {**words} for name, words in (table or {}).items() if name in self.of_partitions}
        self.limits = {name: service.of_queue(words) for name, words in self.words.items()}
        self.counted: set[str] = set()  #: resources, other than cores, in limits and the order

    def is_pool(self, name: str) -> bool:
        """Whether a partition is the common pool of an export."""
        return self.conf.exported and name == POOL

    def throttles(self, partitions: Sequence[Partition]) -> Iterator[ThrottleConfig]:
        """Yield the limits of the partitions' QOS on resources other than cores."""
        for each in partitions:
            words = self.words.get(each.fields.get("qos", ""), {}).items()
            counted = [(word, text) for word, text in words if (limit_of(word) or ("", ""))[1].startswith(RESOURCES)]
            for whose, limits in by_whose(counted).items():
                yield ThrottleConfig.of(limits, each=whose or None, queue=each.name)

    def partition(self, fields: Fields) -> Partition | None:
        """Read a partition; None, with a warning, if no job can enter it."""
        name, conf = fields["partitionname"], self.conf
        words = self.words.get(fields.get("qos", ""), {})
        fields = service.bounded(fields, words)
        for key, entered in (("State", ("UP",)), ("RootOnly", NO)):
            if (value := fields.get(key.lower(), entered[0])).upper() not in entered:
                self.warnings.append(f"{name}: {key}={value}, left out")
                return None
        hosts = conf.hosts(fields)
        every = hosts == frozenset(conf.nodes)
        if not hosts and not conf.exported:
            self.warnings.append(f"{name}: left out, it has no nodes")
            return None
        try:
            usable = self._usable(fields, hosts)
            room = sum(usable) if conf.nodes and hosts else self.total
            bounds = self._cores(fields, usable, self.total if every and room == sum(conf.nodes.values()) else room)
            bounds = bounds and service.cores(bounds, words)
            longest = fields.get("maxtime", "UNLIMITED").upper()
            upto = MAX_DURATION if longest in UNLIMITED else min(slurm_limit(longest), MAX_DURATION)
            if bounds is None or not upto:
                self.warnings.append(f"{name}: left out, no job can enter it")
                return None
            fit: dict[str, Any] = {"cores": bounds, "walltime": (0, upto)} | self.routes.get(name, {})
            limits = self.limits.get(fields.get("qos", ""), {})
            if 0 in limits.values():
                self.warnings.append(f"{name}: left out, its QOS {fields['qos']} lets no job run")
                return None
            fit |= limits
            access = self._access(fields)
            billing = fields.get("tresbillingweights", "").replace(" ", "") or None
            if billing is not None and not re.fullmatch(BILLING, billing):
                like = "is no list like CPU=1.0,Mem=0.25G,GRES/gpu=2.0"
                self.warnings.append(f"line {fields['line']}: TRESBillingWeights = {billing!r}: {like}; left out")
                billing = None
            queue = QueueConfig(name=name, **fit, access=AccessConfig(**access) if access else None, billing=billing)
            self._remark(fields)
            return Partition(queue, fields, hosts, room)
        except ValueError as error:
            reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
            raise conf.wrong(f"is not understood: {reason}", fields, "PartitionName", name) from error

    def _usable(self, fields: Fields, hosts: frozenset[str]) -> list[int]:
        """Return the usable cores of each node of a partition."""
        most = fields.get("maxcpuspernode", "UNLIMITED").upper()
        each = [self.conf.nodes[host] for host in hosts if host in self.conf.nodes]
        return each if most in UNLIMITED else [min(cores, _number(fields, "MaxCPUsPerNode")) for cores in each]

    def _cores(self, fields: Fields, usable: list[int], room: int) -> tuple[int, int] | None:
        """Return the range of cores of a partition's jobs; None if no job fits."""
        least, most = _number(fields, "MinNodes", "0"), fields.get("maxnodes", "UNLIMITED").upper()
        if least > len(usable) > 0:
            return None
        narrowest = 1 + (sum(sorted(usable)[: least - 1]) if usable else (least - 1) * self.size) * (least > 1)
        widest = MAX_CORES if room == self.total else room
        if most not in UNLIMITED:
            unequal = len({*usable}) > 1 or self.size == 1
            nodes = _number(fields, "MaxNodes")
            widest = sum(sorted(usable, reverse=True)[:nodes]) if usable and unequal else nodes * self.size
            widest = min(widest, self.total)
        return (narrowest, widest) if narrowest <= min(widest, room) else None

    def _access(self, fields: Fields) -> dict[str, tuple[str, ...]]:
        """Read the access lists of a partition; denied names get a ``-``."""
        found: dict[str, tuple[str, ...]] = {}
        for kind, (allowed, denied) in ACCESS.items():
            names = fields.get(allowed.lower(), "ALL")
            out = fields.get(denied.lower(), "") if denied is not None else ""
            if names.upper() != "ALL":
                found[kind] = tuple(self.conf.expand(names, fields) if kind == "hosts" else names.split(","))
            elif out:
                found[kind] = tuple(f"-{each}" for each in out.split(","))
        return found

    def _remark(self, fields: Fields) -> None:
        """Add warnings about words of a partition that are not simulated."""
        name = fields["partitionname"]
        share = fields.get("oversubscribe", "NO").upper()
        if share.startswith(("FORCE", "YES")) and not share.endswith(":1"):
            self.warnings.append(f"{name}: OverSubscribe={share}: jobs share cores, which is not simulated")
        if not self.preempts and fields.get("preemptmode", "OFF").upper() != "OFF":
            self.warnings.append(f"{name}: PreemptMode={fields['preemptmode']}: counts with {PREEMPTING} only")
        if is_yes(fields.get("hidden", "NO")):
            self.warnings.append(f"{name}: Hidden=YES: a queue like the others here")
        if (qos := fields.get("qos")) is not None and qos not in self.limits:
            self.warnings.append(f"{name}: the limits of QOS {qos} are not in slurm.conf: give --qos, or add max_run")
        for key in (key for key in fields.keys() - READ if fields[key].upper() not in NO):
            self.unread.setdefault(key, []).append(name)

    @property
    def preempts(self) -> bool:
        """Whether jobs of a higher PriorityTier preempt others."""
        return self.conf.settings.get("preempttype", "").lower() == PREEMPTING

    def preempted(self, partition: Partition) -> str:
        """Read `preempted` from PreemptMode; CANCEL becomes requeue, with a warning."""
        text = partition.fields.get("preemptmode", self.conf.settings.get("preemptmode", "OFF")).upper()
        mode = next((word for word in text.split(",") if word not in ("GANG", "WITHIN")), "OFF")
        if mode == "CANCEL":
            self.warnings.append(f"{partition.name}: PreemptMode=CANCEL: taken as REQUEUE, its jobs begin anew")
            return "requeue"
        return next((name for name, word in MODES.items() if word == mode), "off")

    def gives_whole(self, partition: Partition) -> bool:
        """Whether the jobs of a partition get whole nodes."""
        return partition.exclusive or self.conf.settings.get("selecttype", "").lower() == "select/linear"


PLAIN = "plain"  #: suffix of the partition on nodes that keep no cores


def written(name: str, words: Line) -> str:
    """Return the line of a partition."""
    return " ".join([f"PartitionName={name}", *(f"{word}={value}" for word, value in words.items())])


def hosts_of(config: SiteConfig, nodes: Sequence[Node] | None) -> dict[str, str]:
    """Return the nodes of each partition, including the pool, as a host list."""
    every = "ALL" if nodes is None else fold([node.name for node in nodes])
    if _names_nodes(config):
        found = hosts_of_types(config, nodes)
        bound = {queue.name: queue.nodes for queue in config.queues if queue.nodes is not None}
        bound |= {part.name: part.nodes for of in parts(config).values() for part in of}
        own = {name: fold([host for each in types for host in found[each]]) or '""' for name, types in bound.items()}
        return dict.fromkeys(config.names, every) | own
    if nodes is None or config.nodes:
        return dict.fromkeys(config.names, every)
    check_machine(config, nodes)
    if config.mode == "shared":
        return dict.fromkeys(config.names, every)
    owned = grouped((owner or POOL, name) for name, owner in assign(config, nodes).items())
    # Jobs of a queue without nodes of its own run in the pool, or with reservations on all nodes.
    hosts = {queue.name: every if queue.reservation else '""' for queue in config.queues}
    return hosts | {name: fold(names) for name, names in owned.items()}


def types_named(config: SiteConfig) -> dict[str, str]:
    """Return the hosts of each type of nodes, if partitions use only some types."""
    return {each.name: each.hosts for each in config.nodes if each.hosts is not None} if _names_nodes(config) else {}


def _names_nodes(config: SiteConfig) -> bool:
    """Whether partitions use only some types of nodes."""
    return is_bound(config) or config.keeps_cores


def held(config: SiteConfig) -> dict[str, list[tuple[float, dict[str, int]]]]:
    """Return by queue the memory (MiB, 1e18 if not counted) and generic resources of each type of its nodes."""
    counted = any(each.memory for each in config.nodes)
    return {
        queue.name: [
            (each.memory if counted else 1e18, {**each.resources, "gpu": each.gpus})
            for each in config.nodes
            if queue.nodes is None or each.name in queue.nodes
        ]
        for queue in (config.queues if _names_nodes(config) else ())
    }


def partitions(config: SiteConfig, nodes: Sequence[Node] | None) -> dict[str, Line]:
    """Return the words of each queue's partitions, then of the pool's. Raises ExportError."""
    order, hosts = Multifactor.of(config.order), hosts_of(config, nodes)
    priorities = scale(config.queues).values if order is None or order.tiers else dict.fromkeys(config.names, 1)
    factors = priorities if order is None else dict.fromkeys(config.names, 1)
    ranks = {tier: rank for rank, tier in enumerate(sorted({queue.tier for queue in config.queues}), start=1)}
    of_queues, modes, found = parts(config), becomes(config), {}
    for queue in config.queues:
        mode = MODES[modes.get(queue.name, "off")] if config.has_tiers else ""
        tier = ranks[queue.tier] if config.has_tiers else priorities[queue.name]
        tier = tier if config.mode == "shared" or queue.reservation else 1
        for name, cores in ((queue.name, None), *((part.name, part.cores) for part in of_queues.get(queue.name, ()))):
            found[name] = line(Of(config, queue, hosts[name], cores, tier, factors[queue.name], mode))
    if config.pool_cores:
        found[POOL] = _pool(config, hosts[POOL])
    return found


def _pool(config: SiteConfig, nodes: str) -> Line:
    billings = {charged(config, queue) for queue in config.queues}
    return {
        "Nodes": nodes,
        "MaxTime": clock(max(whole_minutes(queue)[1] for queue in config.queues)),
        "PriorityTier": "1",
        "PriorityJobFactor": "1",
        **({"OverSubscribe": "EXCLUSIVE"} if config.machine.whole_nodes else {}),
        **({"TRESBillingWeights": text} if len(billings) == 1 and (text := next(iter(billings))) else {}),
        "State": "UP",
    }


def preemption(config: SiteConfig) -> dict[str, str]:
    """Return the settings for preemption; GANG lets suspended jobs resume."""
    if not config.has_tiers:
        return {}
    return {"PreemptType": PREEMPTING, "PreemptMode": "SUSPEND,GANG" if preempted(config, "suspend") else "REQUEUE"}


def preempted(config: SiteConfig, mode: str) -> list[str]:
    """Return the queues whose jobs are preempted in this mode: suspend, requeue or off."""
    return [name for name, each in becomes(config).items() if each == mode]


def becomes(config: SiteConfig) -> dict[str, str]:
    """Return `preempted` of each queue below the highest tier."""
    highest = max(queue.tier for queue in config.queues)
    return {queue.name: queue.preempted for queue in config.queues if queue.tier < highest}


class Part(NamedTuple):
    """A partition for the jobs of a queue without GPUs."""

    name: str
    nodes: tuple[str, ...]  #: names of types of nodes
    cores: int | None  #: MaxCPUsPerNode; None for all cores


def left(nodes: NodesConfig) -> int | None:
    """Return the cores of a node that jobs without GPUs may use; None for all."""
    return nodes.cores - nodes.kept_per_gpu * nodes.gpus if nodes.kept_per_gpu else None


def parts(config: SiteConfig) -> dict[str, list[Part]]:
    """Return the partitions for jobs without GPUs, by queue; only of queues whose nodes keep cores."""
    found: dict[str, list[Part]] = {}
    for queue in config.queues:
        usable = (each for each in config.nodes if queue.nodes is None or each.name in queue.nodes)
        of = grouped((left(each), each.name) for each in usable)
        names = {cores: f"{queue.name}-{PLAIN if cores is None else cores}" for cores in of}
        if {*of} - {None}:
            found[queue.name] = [Part(names[cores], tuple(types), cores) for cores, types in of.items()]
    return found


def refuse(config: SiteConfig) -> None:
    """Raise ExportError if Slurm cannot express the kept cores."""
    if every := [each.name for each in config.nodes if left(each) == 0]:
        raise ExportError(
            f"nodes {every[0]}: kept_per_gpu keeps all cores, and Slurm has no limit of 0 cores of a node: bind the "
            "queues of jobs without GPUs to other nodes"
        )
    for queue, of in parts(config).items():
        if config.queue(queue).exclusive:
            raise ExportError(
                f"queue {queue}: its jobs have nodes alone, so that no other job could use the cores that kept_per_gpu "
                "keeps: let it share nodes, or bind it to nodes that keep none"
            )
        if twice := {part.name for part in of} & {*config.names}:
            raise ExportError(f"queue {twice.pop()} has the name of a partition of {queue}: rename one of them")


def rooms(config: SiteConfig) -> dict[str, tuple[str, int]]:
    """Return by queue its partitions for jobs without GPUs (comma-separated), and the cores of the largest one."""

    def room(part: Part) -> int:
        return sum(each.count * (part.cores or each.cores) for each in config.nodes if each.name in part.nodes)

    return {name: (",".join(part.name for part in of), max(map(room, of))) for name, of in parts(config).items()}
