"""A first configuration from what a PBS server holds, with everything in it that contradicts itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from parsim.workload import MAX_CORES, MAX_DURATION
from qconf.config import POOL_SUFFIX, ConfigError, MachineConfig, PoolConfig, QueueConfig, SiteConfig, format_clock
from qconf.errors import InputError
from qconf.export.pbs.differences import unroutable
from qconf.export.pbs.nodes import Node
from qconf.export.pbs.order import recognise
from qconf.export.pbs.server import Attributes, Server, destinations, is_true, is_type, seconds

_ENTITY = re.compile(r"\[([a-z]):([A-Za-z0-9_.-]+)=([0-9]+)\]")
_UNDERSTOOD = re.compile(
    r"queue_type|enabled|started|from_route_only|Priority|backfill_depth|max_run|max_run_res\.ncpus|max_running|max_user_run"
    r"|max_user_res\.ncpus|resources_(?:min|max)\.(?:ncpus|walltime)|default_chunk\.(?:Qlist|ncpus)|resources_default\..*"
    r"|hasnodes|total_jobs|state_count|acl_(?:users|groups|hosts)|kill_delay|max_array_size"
)


@dataclass
class Found:
    """A configuration to edit, and what its reader should know."""

    config: SiteConfig
    warnings: list[str] = field(default_factory=list)


def init_pbs(
    server: Server, *, cores: int | None = None, nodes: Sequence[Node] | None = None, name: str = "pbs"
) -> Found:
    """Derive a configuration.

    Parameters
    ----------
    server : Server
        From ``print server``, which knows neither the machine's size nor its nodes.
    cores : int, optional
        Of the machine.
    nodes : sequence of Node, optional
        From ``pbsnodes -av``: the machine's size and, where nodes carry a Qlist, partitions and pool.
    name : str
        Of the machine.

    Raises
    ------
    InputError
        No queue that jobs can enter is among them, or `cores` and `nodes` contradict each other.
    """
    reader = _Reader(server)
    names = reader.names()
    if not names:
        raise InputError("holds no Execution queue that jobs can enter", field="print server")
    queues = [queue for queue in map(reader.queue, names) if queue is not None]
    if not queues:
        raise InputError("holds no queue that a job can enter", field="print server")
    parts = _Parts(server, queues, reader.warnings)
    machine = parts.machine(cores, nodes, name)
    queues = [_within(queue, machine.cores, reader.warnings) for queue in queues]
    draft: dict[str, Any] = {"machine": machine, "queues": queues, **parts.shape(machine, queues, nodes)}
    draft["backfill"] = server.attributes.get("backfill_depth") != "0"
    text = server.attributes.get("job_sort_formula")
    try:
        config = SiteConfig.build(**draft)
        config = _ordered(config, text, reader.warnings)
    except ConfigError as error:
        raise InputError(f"cannot be made a configuration: {error}", field="print server") from error
    reader.contradictions(config)
    reader.warnings += [warning for warning in config.warnings() if warning not in reader.warnings]
    return Found(config, list(dict.fromkeys(reader.warnings)))


class _Reader:
    """Reads queues one by one and collects what is odd about them."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.warnings: list[str] = []
        routes = server.of_type("route")
        default = server.attributes.get("default_queue", "")
        self.route = default if default in routes else (routes[0] if routes else None)
        if default and default not in server.queues:
            self.warnings.append(f"default_queue = {default}: there is no such queue")
        if len(routes) > 1:
            self.warnings.append(f"several Route queues, only {self.route} was read: {', '.join(routes)}")

    def names(self) -> list[str]:
        """Name the queues that jobs can enter, in the order of routing."""
        queues = self.server.queues
        if self.route is not None:
            listed = destinations(queues[self.route])
            for name in listed:
                if name not in queues:
                    self.warnings.append(f"{self.route}: its destination {name} does not exist")
            candidates = [name for name in listed if is_type(queues.get(name, {}), "execution")]
        else:
            candidates = [q for q in self.server.of_type("execution") if not is_true(queues[q].get("from_route_only"))]
            self.warnings.append("no Route queue: jobs are routed in the order in which the queues were created")
        names = []
        for name in candidates:
            for attribute in ("enabled", "started"):
                if not is_true(queues[name].get(attribute)):
                    self.warnings.append(f"{name}: not {attribute}" + (", left out" if attribute == "enabled" else ""))
            if is_true(queues[name].get("enabled")):
                names.append(name)
        others = [
            name
            for name in self.server.of_type("execution")
            if name not in candidates and not self.server.is_pool_queue(name)
        ]
        if others:
            self.warnings.append(f"left out, since no routing leads there: {', '.join(others)}")
        return names

    def queue(self, name: str) -> QueueConfig | None:
        """Read one queue; None, with a warning, where no job can enter it."""
        attributes = self.server.queues[name]
        least = max(1, self.number(name, attributes, "resources_min.ncpus") or 1)
        most = self.number(name, attributes, "resources_max.ncpus") or MAX_CORES
        above = max(0, self.time(name, attributes, "resources_min.walltime", 1) - 1)
        upto = self.time(name, attributes, "resources_max.walltime", MAX_DURATION)
        if least > most or above >= upto:
            self.warnings.append(f"{name}: left out, its minimum is above its maximum and no job can enter")
            return None
        limits = self.limits(name, attributes)
        narrow = limits.get("max_run_cores")
        if narrow is not None and narrow < least:
            self.warnings.append(
                f"{name}: its running-cores limit {narrow} is below its narrowest job {least}; left out"
            )
            del limits["max_run_cores"]
        for key in attributes:
            if not _UNDERSTOOD.fullmatch(key) and (not key.startswith("acl_") or is_true(attributes[key])):
                self.warnings.append(f"{name}: {key} = {attributes[key]} has no place in a configuration")
        return QueueConfig(
            name=name,
            cores=(least, most),
            walltime=(above, upto),
            priority=self.priority(attributes),
            max_run=limits.get("max_run"),
            max_run_cores=limits.get("max_run_cores"),
            max_user_run=limits.get("max_user_run"),
            max_user_cores=limits.get("max_user_cores"),
        )

    def number(self, name: str, attributes: Attributes, key: str) -> int | None:
        value = attributes.get(key)
        if value is None or re.fullmatch(r"[0-9]{1,9}", value):
            return None if value is None else int(value)
        self.warnings.append(f"{name}: {key} = {value} is not understood")
        return None

    def time(self, name: str, attributes: Attributes, key: str, default: int) -> int:
        value = attributes.get(key)
        if value is None:
            return default
        if not re.fullmatch(r"[0-9]{1,9}(:[0-9]{1,2}){0,2}", value):
            self.warnings.append(f"{name}: {key} = {value} is not understood")
            return default
        total = seconds(value)
        if value.count(":") == 1:
            self.warnings.append(f"{name}: {key} = {value} means {format_clock(total)}, minutes and seconds")
        return min(total, MAX_DURATION)

    def priority(self, attributes: Attributes) -> float:
        """Take the Priority; all are shifted alike where one is not positive."""
        values = [
            int(q.get("Priority", "0") or 0)
            for name, q in self.server.queues.items()
            if is_type(q, "execution") and not self.server.is_pool_queue(name)
            if name in self.reached() and re.fullmatch(r"-?[0-9]{1,5}", q.get("Priority", "0"))
        ]
        lowest = min(values, default=0)
        own = attributes.get("Priority", "0")
        own_value = int(own) if re.fullmatch(r"-?[0-9]{1,5}", own) else lowest
        if lowest < 1 and any(value != lowest for value in values):
            self.warnings.append(f"priorities were raised by {1 - lowest}: the simulator takes positive ones only")
        return float(own_value if lowest >= 1 else own_value - lowest + 1)

    def reached(self) -> list[str]:
        return destinations(self.server.queues[self.route]) if self.route else list(self.server.queues)

    def limits(self, name: str, attributes: Attributes) -> dict[str, int]:
        found: dict[str, int] = {}
        for key, of_all, of_user in (
            ("max_run", "max_run", "max_user_run"),
            ("max_run_res.ncpus", "max_run_cores", "max_user_cores"),
        ):
            for kind, who, text in _ENTITY.findall(attributes.get(key, "")):
                target = {("o", "PBS_ALL"): of_all, ("u", "PBS_GENERIC"): of_user}.get((kind, who))
                if target is None or int(text) < 1:
                    self.warnings.append(f"{name}: {key} = [{kind}:{who}={text}] has no place in a configuration")
                else:
                    found[target] = int(text)
        old = (
            ("max_running", "max_run"),
            ("max_user_run", "max_user_run"),
            ("max_user_res.ncpus", "max_user_cores"),
        )
        for key, target in old:
            value = self.number(name, attributes, key)
            if value:
                found.setdefault(target, value)
        return found

    def contradictions(self, config: SiteConfig) -> None:
        """Note what the server holds against itself."""
        queues, attributes = self.server.queues, self.server.attributes
        for queue in config.queues:
            limit = queue.max_run_cores
            widest = min(queue.cores[1], config.machine.cores)
            if limit is not None and limit < widest:
                self.warnings.append(
                    f"{queue.name}: its running-cores limit {limit} is below its widest job {widest}: "
                    "such a job never starts"
                )
            pool_queue = queue.name + POOL_SUFFIX
            if self.server.is_pool_queue(pool_queue):
                for key in (
                    "resources_min.ncpus",
                    "resources_max.ncpus",
                    "resources_min.walltime",
                    "resources_max.walltime",
                ):
                    if queues[pool_queue].get(key) != queues[queue.name].get(key):
                        self.warnings.append(f"{pool_queue}: {key} is not that of {queue.name}")
        formula = attributes.get("job_sort_formula", "")
        if "eligible_time" in formula and not is_true(attributes.get("eligible_time_enable")):
            self.warnings.append("job_sort_formula names eligible_time, but eligible_time_enable is not True: it is 0")
        if self.route is not None:
            self.warnings += self._routing(config, queues[self.route])

    def _routing(self, config: SiteConfig, route: Attributes) -> Iterator[str]:
        if route.get("route_lifetime") == "0":
            yield f"{self.route}: route_lifetime = 0 keeps jobs that fit nowhere for ever"
        limits = (
            self.number(str(self.route), route, "resources_max.ncpus") or MAX_CORES,
            self.time(str(self.route), route, "resources_max.walltime", MAX_DURATION),
        )
        for queue in config.queues:
            if queue.cores[0] > limits[0] or queue.walltime[0] >= limits[1]:
                yield f"{queue.name}: {self.route}'s own limits turn all of its jobs away"
            elif limits[0] < queue.cores[1] < MAX_CORES or limits[1] < queue.walltime[1] < MAX_DURATION:
                yield f"{queue.name}: {self.route}'s own limits turn some of its jobs away"
        default = self.time("server", self.server.attributes, "resources_default.walltime", 0)
        yield from unroutable(config, default)


class _Parts:
    """The machine and how it is divided."""

    def __init__(self, server: Server, queues: Sequence[QueueConfig], warnings: list[str]) -> None:
        self.server, self.queues, self.warnings = server, queues, warnings
        self.bound = [q.name for q in queues if "default_chunk.Qlist" in server.queues[q.name]]
        self.pooled = [q.name for q in queues if server.is_pool_queue(q.name + POOL_SUFFIX)]

    def machine(self, cores: int | None, nodes: Sequence[Node] | None, name: str) -> MachineConfig:
        sizes = {node.cores for node in nodes or () if node.cores}
        if nodes and sizes and all(node.cores for node in nodes):
            total = sum(node.cores or 0 for node in nodes)
            if cores is not None and cores != total:
                raise InputError(f"the nodes have {total} cores", field="--cores", value=cores, fix="leave it out")
            if len(sizes) == 1:
                return MachineConfig(name=name, cores=total, cores_per_node=sizes.pop())
            self.warnings.append("machine.cores_per_node: the nodes are of different sizes, 1 was taken")
            return MachineConfig(name=name, cores=total)
        if cores is None:
            limits = sum(q.max_run_cores or 0 for q in self.queues) if self.bound else 0
            widest = (q.cores[1] if q.cores[1] < MAX_CORES else q.cores[0] for q in self.queues)
            cores = max(limits, *widest, *(q.max_run_cores or 1 for q in self.queues))
            if self.bound:
                cores = max(cores, sum(q.cores[0] for q in self.queues))
            if self.pooled:  # room for a pool
                cores += max(1, min(q.max_run_cores or q.cores[0] for q in self.queues))
            cores = min(cores, MAX_CORES)
            self.warnings.append(
                f"machine.cores = {cores} is a guess from the queues' limits: print server does not know the machine. "
                "Edit it, or give --cores or --nodes with `pbsnodes -av` output"
            )
        if nodes and cores % len(nodes) == 0:
            return MachineConfig(name=name, cores=cores, cores_per_node=cores // len(nodes))
        return MachineConfig(name=name, cores=cores)

    def shape(
        self, machine: MachineConfig, queues: Sequence[QueueConfig], nodes: Sequence[Node] | None
    ) -> dict[str, Any]:
        """Work out mode, partitions and pool."""
        if not self.bound:
            return {"mode": "shared", "queues": list(queues)}
        reserved = self.reserved(nodes)
        sizes = self.sizes_by_nodes(nodes, reserved) if nodes and any(node.qlist for node in nodes) else None
        if sizes is None:
            sizes = self.sizes_by_limits(machine, queues, reserved)
            self.warnings.append(
                "partition and pool sizes are a guess: the queues are bound to nodes by Qlist, which print server does "
                "not show. Edit them, or give --nodes with `pbsnodes -av` output"
            )
        pool = machine.cores - sum(sizes.values())
        parted = [
            q.model_copy(update={"partition": sizes.get(q.name, 0), "reservation": q.name in reserved}) for q in queues
        ]
        if self.pooled or len(reserved) == len(queues):  # a queue with reservations alone needs a pool to run in
            both = any(
                {name, name + POOL_SUFFIX} <= set((n.qlist or "").split(","))
                for n in nodes or ()
                for name in self.pooled
            )
            placement: Literal["pool", "combined"] = "combined" if both else "pool"
            return {
                "mode": "hybrid",
                "queues": parted,
                "pool": PoolConfig(cores=pool, entry="move", placement=placement),
            }
        if pool:  # nodes that no queue has
            self.warnings.append(f"{pool} cores belong to no queue; {parted[0].name} was given them")
            parted[0] = parted[0].model_copy(update={"partition": parted[0].partition + pool})
        return {"mode": "partitioned", "queues": parted}

    def reserved(self, nodes: Sequence[Node] | None) -> list[str]:
        """Name the queues that run on the nodes of all others."""
        lists = [(node.qlist or "").split(",") for node in nodes or () if node.qlist]
        if lists and len(self.bound) > 1:
            owners = {qlist[0] for qlist in lists}  # an export names the owner first
            everywhere = [name for name in self.bound if all(name in qlist for qlist in lists)]
            return [name for name in everywhere if name not in owners or len(owners) > 1]
        formula = self.server.attributes.get("job_sort_formula", "")
        first = set(re.findall(r"4e15 if queue_priority == ([0-9]+)\b", formula))
        by_formula = [name for name in self.bound if self.server.queues[name].get("Priority") in first]
        unpooled = [name for name in self.bound if self.pooled and name not in self.pooled]
        return unpooled or by_formula

    def sizes_by_nodes(self, nodes: Sequence[Node], reserved: Sequence[str]) -> dict[str, int]:
        sizes = dict.fromkeys((q.name for q in self.queues if q.name not in reserved), 0)
        for node in nodes:
            has = [name for name in (node.qlist or "").split(",") if name in sizes]
            if len(has) > 1:
                self.warnings.append(f"node {node.name} belongs to {' and '.join(has)}; counted for {has[0]}")
            if has:
                sizes[has[0]] += node.cores or 1
        return sizes

    def sizes_by_limits(
        self, machine: MachineConfig, queues: Sequence[QueueConfig], reserved: Sequence[str]
    ) -> dict[str, int]:
        """Take running-cores limits for sizes where they fit, else divide the machine evenly."""
        own = [q for q in queues if q.name not in reserved]
        limits = {q.name: q.max_run_cores or 0 for q in own}
        total = sum(limits.values())
        if all(limits.values()) and (total == machine.cores or (self.pooled and total < machine.cores)):
            return limits
        node = machine.cores_per_node
        least = {q.name: -(-q.cores[0] // node) * node for q in own}
        rest = machine.cores - sum(least.values())
        if rest < 0:
            least, rest = dict.fromkeys(least, 0), machine.cores
        share = rest // (len(own) + bool(self.pooled)) // node * node if own else 0
        sizes = {name: size + share for name, size in least.items()}
        if own and not self.pooled:
            sizes[own[0].name] += machine.cores - sum(sizes.values())
        return sizes


def _within(queue: QueueConfig, cores: int, warnings: list[str]) -> QueueConfig:
    if queue.cores[0] > cores or cores >= queue.cores[1] or queue.cores[1] == MAX_CORES:
        return queue
    warnings.append(f"{queue.name}: resources_max.ncpus {queue.cores[1]} is above the machine's {cores}; cut")
    return queue.model_copy(update={"cores": (queue.cores[0], cores)})


def _ordered(config: SiteConfig, text: str | None, warnings: list[str]) -> SiteConfig:
    """Find the order, and the starvation periods that an exported formula holds."""
    known = recognise(config, text)
    if known is not None:
        return known
    try:
        return config.replace(order=text)
    except ConfigError as error:
        reason = "; ".join(problem.message for problem in error.problems)
        warnings.append(f"job_sort_formula was left out, fcfs taken instead: {reason}")
        return config
