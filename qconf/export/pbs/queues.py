"""Write queues of a configuration as attributes of PBS queues, and read them back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from parsim.model.workload import MAX_CORES, MAX_DURATION
from qconf.config import POOL_SUFFIX, AccessConfig, NodesConfig, QueueConfig, SiteConfig, ThrottleConfig, format_clock
from qconf.export.nodes import Node
from qconf.export.pbs import qos, throttles
from qconf.export.pbs.differences import envelope, unroutable
from qconf.export.pbs.server import ACCESS, Attributes, Server, destinations, is_true, lists, seconds
from qconf.export.pbs.types import PLACE, bindings, by_qlist

if TYPE_CHECKING:
    from qconf.export.pbs import Binding

ALL_TOP_JOBS = 100_000  #: backfill_depth that means all waiting jobs
OPEN = {"enabled": "True", "started": "True"}
_NODES = "nodect"  #: PBS's resource for limits of nodes
#: Attributes of an execution queue that the configuration determines.
MANAGED = (
    *("resources_min.ncpus", "resources_min.walltime", "resources_max.ncpus", "resources_max.walltime"),
    *("Priority", *throttles.KEYS.values(), "default_chunk.Qlist", "backfill_depth", "from_route_only", PLACE),
    *(f"resources_default.{name}" for name in qos.RESOURCES),
)
#: Other attributes that are read, or do not affect the start of a job.
_UNDERSTOOD = re.compile(
    r"queue_type|enabled|started|resources_(?:min|max)\.nodect|default_chunk\.ncpus|resources_default\..*"
    r"|hasnodes|total_jobs|state_count|kill_delay|max_array_size|comment|keep_completed|checkpoint_min"
)
_PRIORITY = r"-?[0-9]{1,5}"
#: Reasons for changes: (pattern of the attribute, key of the configuration or other reason); the first match counts.
_WHY = (
    (r"queue_type|enabled|started", "the queue is new"),
    (r"from_route_only", "jobs come to it by routing alone, as to its neighbours"),
    (r"default_queue|route_destinations", "routing: jobs go to the first queue that takes them"),
    (r"resources_(min|max)\.walltime", "`walltime` of the queue"),
    (r"resources_(min|max)\.", "`cores` of the queue"),
    (r"resources_default\.place", "`exclusive`"),
    (r"resources_default\.preempt_targets|preempt", "`tier` and `preempted`"),
    (r"resources_default\.qos", "`qos`"),
    (r"Priority", "`priority`"),
    (r"max_|queued_", "limits: `max_run`, `max_run_cores`, `throttles`"),
    (r"default_chunk\.|resources_available\.|Qlist|resources$", "which nodes the queue has"),
    (r"backfill_depth|strict_ordering", "`backfill`, `reserve`, `reservation_depth`"),
    (r"acl_", "`access`"),
    (r"job_sort_formula_threshold", "it was for the formula before"),
    (r"job_sort_formula", "`order`"),
    (r"eligible_time_enable", "the formula reads eligible_time"),
    (
        r"by_queue|round_robin|fair|half_life|unknown_shares|job_sort_key|help_starving",
        "`order` decides over all queues",
    ),
)


def why_of(key: str) -> str:
    """Return the reason for a change of an attribute of server, queue or scheduler."""
    return next((why for pattern, why in _WHY if re.match(pattern, key)), "the configuration says so")


def execution(
    config: SiteConfig, queue: QueueConfig, before: Server, limited: dict[str, str], binding: Binding
) -> Attributes:
    """Return the attributes of an execution queue, still without Priority and the binding to types of nodes."""
    held = before.queues.get(queue.name, {})
    limited_by = {key.partition(".")[2] for key in held if key.startswith(("resources_min.", "resources_max."))}
    by_node = _NODES in limited_by and "ncpus" not in limited_by and config.machine.cores_per_node > 1
    attributes = {
        "queue_type": "Execution",
        "Priority": "",
        **ranges([queue], config.machine.cores_per_node if by_node else 0),
    }
    parted = config.mode != "shared"
    cores = queue.max_run_cores
    if by_qlist(config, binding):
        attributes["default_chunk.Qlist"] = queue.name
    elif parted and not queue.reservation and not config.nodes:
        cores = min(queue.partition, cores or MAX_CORES)
    attributes |= qos.defaults(config, queue.name)
    limits = throttles.limits(config, limited, queue, cores)
    attributes |= {key: throttles.written(key, scopes) for key, scopes in limits.items()}
    if parted:
        attributes["backfill_depth"] = depth(config)
    return attributes | _lists(queue) | OPEN


def depth(config: SiteConfig) -> str:
    """Return backfill_depth: the number of waiting jobs with reservations."""
    return str(ALL_TOP_JOBS if config.reservation_depth is None else config.reservation_depth)


def _lists(queue: QueueConfig) -> Attributes:
    listed = {} if queue.access is None else dict(queue.access)
    return {
        key: value
        for kind, (names, switch) in ACCESS.items()
        if listed.get(kind) is not None
        for key, value in ((names, ",".join(listed[kind])), (switch, "True"))
        if value
    }


def ranges(queues: Sequence[QueueConfig], per_node: int = 0) -> Attributes:
    """Return limits that contain the ranges of all `queues`; in nodes if `per_node` (cores) is given and fits."""
    (least, most), (above, upto) = envelope(queues)
    name = "ncpus"
    if per_node and (least - 1) % per_node == 0 and (most % per_node == 0 or most == MAX_CORES):
        name, least = _NODES, (least - 1) // per_node + 1
        most = most // per_node if most < MAX_CORES else most
    wanted = {
        f"resources_max.{name}": str(most) if most < MAX_CORES else "",
        "resources_max.walltime": format_clock(upto) if upto < MAX_DURATION else "",
        f"resources_min.{name}": str(least) if least > 1 else "",
        "resources_min.walltime": format_clock(above + 1) if above > 0 else "",  # exclusive here, inclusive in PBS
    }
    return {key: value for key, value in wanted.items() if value}


def within(queue: QueueConfig, cores: int, warnings: list[str]) -> QueueConfig:
    """Return the queue with its maximum of cores cut to the machine's `cores`."""
    if queue.cores[0] > cores or cores >= queue.cores[1] or queue.cores[1] == MAX_CORES:
        return queue
    warnings.append(f"{queue.name}: resources_max.ncpus {queue.cores[1]} is above the machine's {cores}; cut")
    return queue.model_copy(update={"cores": (queue.cores[0], cores)})


class Reader:
    """Reads the queues of a server, and collects warnings."""

    def __init__(self, server: Server, nodes: Sequence[Node], like: SiteConfig | None, *, divided: bool = True) -> None:
        self.server, self.nodes, self.divided = server, nodes, divided
        self.free: list[str] = []  #: queues without nodes, if the machine is `divided` by Qlist
        self.warnings: list[str] = []
        self.entered: list[str] = []  #: queues that jobs can enter
        self.taken: list[str] = []  #: queues that were read
        sizes = {node.cores for node in nodes}
        #: cores per node if all are equal, to convert limits of nodes
        self.per_node = next(iter(sizes)) if len(sizes) == 1 else None
        self.whole = bool(nodes) and all(node.exclusive for node in nodes)
        if like is not None:
            alike = {each.cores for each in like.nodes} or {like.machine.cores_per_node} - {1}
            self.per_node = next(iter(alike)) if len(alike) == 1 else None
        self.routes = server.of_type("route")
        default = server.default
        if default and default not in server.queues:
            self.warnings.append(f"default_queue = {default}: there is no such queue")

    def names(self) -> list[str]:
        """Return the queues that jobs can enter, in the order of routing."""
        queues = self.server.queues
        for route in self.routes:
            missing = [name for name in destinations(queues[route]) if name not in queues]
            self.warnings += [f"{route}: its destination {name} does not exist" for name in missing]
        candidates = self.server.entered
        if not self.routes:
            self.warnings.append("no Route queue: a job that its queue does not take goes to the first that does")
        routed = {name for route in self.routes for name in self.server.reached(route)}
        opened = [name for name in candidates if is_true(queues[name].get("enabled"))]
        bound = {name for name in opened if "default_chunk.Qlist" in queues[name]}
        if self.divided and bound & routed:
            self.free = [name for name in opened if name not in {*bound, *routed}]
        if self.free:
            self.warnings.append(f"left out, since no nodes of the divided machine are theirs: {', '.join(self.free)}")
        for name in candidates:
            for attribute, effect in (("enabled", "left out"), ("started", "its jobs start in the simulation")):
                if not is_true(queues[name].get(attribute)):
                    self.warnings.append(f"{name}: not {attribute}, {effect}")
        execution = self.server.of_type("execution")
        others = [name for name in execution if name not in candidates and not self.server.is_pool_queue(name)]
        if others:
            self.warnings.append(f"left out, since no routing leads there: {', '.join(others)}")
        self.entered = [name for name in opened if name not in self.free]
        return self.entered

    def queue(self, name: str) -> QueueConfig | None:
        """Read one queue; None, with a warning, if no job can enter it."""
        attributes = self.server.queues[name]
        # the server's limits apply if the queue has none
        ranges = {key: value for key, value in self.server.attributes.items() if key.startswith("resources_max.")}
        ranges |= attributes
        least, most = self._sizes(name, ranges)
        above = max(0, self._time(name, ranges, "resources_min.walltime", 1) - 1)
        upto = self._time(name, ranges, "resources_max.walltime", MAX_DURATION)
        if least > most or above >= upto:
            self.warnings.append(f"{name}: left out, its minimum is above its maximum and no job can enter")
            return None
        limits: dict[str, Any] = throttles.of_queue(attributes)
        narrow = limits.get("max_run_cores", least)
        if narrow < least:
            self.warnings.append(
                f"{name}: its running-cores limit {narrow} is below its narrowest job {least}; left out"
            )
            del limits["max_run_cores"]
        known = {*MANAGED, *chain(*ACCESS.values())} - {"default_chunk.Qlist"}
        known |= {f"default_chunk.{resource}" for resource in bindings(attributes)}
        for key, value in attributes.items():
            if not (key in known or _UNDERSTOOD.fullmatch(key) or throttles.of_resources({key: value})):
                self.warnings.append(f"{name}: {key} = {value} has no place in a configuration")
        text = attributes.get("Priority", "0")
        priority = int(text) if re.fullmatch(_PRIORITY, text) else self.lowest
        self.taken.append(name)
        return QueueConfig(
            name=name,
            cores=(least, most),
            walltime=(above, upto),
            priority=float(priority + max(0, 1 - self.lowest)),
            access=self._access(name, attributes),
            **limits,
        )

    def _sizes(self, name: str, attributes: Attributes) -> tuple[int, int]:
        """Read the range of cores of a queue, including limits of nodes if cores per node are known."""
        least = max(1, self._number(name, attributes, "resources_min.ncpus") or 1)
        most = self._number(name, attributes, "resources_max.ncpus") or MAX_CORES
        nodes = [self._number(name, attributes, f"resources_{end}.nodect") for end in ("min", "max")]
        if any(nodes) and self.per_node is None:
            self.warnings.append(
                f"{name}: its limits of nodes (nodect) are not simulated: give --nodes with `pbsnodes -av` output of "
                "nodes of one size"
            )
        elif self.per_node is not None:
            if any(nodes) and not self.whole:
                self.warnings.append(f"{name}: nodect is simulated as whole nodes, and PBS counts chunks")
            fewest, widest = nodes
            least = max(least, (fewest - 1) * self.per_node + 1 if fewest else 1)
            most = min(most, widest * self.per_node if widest else MAX_CORES)
        return least, most

    def _access(self, name: str, attributes: Attributes) -> AccessConfig | None:
        """Read the access lists of a queue; None, with a warning, if they are invalid."""
        found = lists(attributes)
        try:
            return AccessConfig.model_validate(found) if found else None
        except ValueError:
            self.warnings.append(f"{name}: its lists of who may use it are not understood: write `access` yourself")
            return None

    def _value(self, name: str, attributes: Attributes, key: str, pattern: str) -> str | None:
        """Return an attribute's value; None if absent or, with a warning, if it does not match `pattern`."""
        value = attributes.get(key)
        if value is None or re.fullmatch(pattern, value):
            return value
        self.warnings.append(f"{name}: {key} = {value} is not understood")
        return None

    def _number(self, name: str, attributes: Attributes, key: str) -> int | None:
        value = self._value(name, attributes, key, "[0-9]{1,9}")
        return None if value is None else int(value)

    def _time(self, name: str, attributes: Attributes, key: str, default: int) -> int:
        value = self._value(name, attributes, key, "[0-9]{1,9}(:[0-9]{1,2}){0,2}")
        if value is None:
            return default
        if value.count(":") == 1:
            self.warnings.append(f"{name}: {key} = {value} means {format_clock(seconds(value))}, minutes and seconds")
        return min(seconds(value), MAX_DURATION)

    @cached_property
    def lowest(self) -> int:
        """The lowest Priority among the queues that jobs can enter."""
        texts = [self.server.queues[name].get("Priority", "0") for name in self.entered]
        values = {int(text) for text in texts if re.fullmatch(_PRIORITY, text)}
        lowest = min(values, default=0)
        if lowest < 1 and len(values) > 1:
            self.warnings.append(f"priorities were raised by {1 - lowest}: the simulator takes positive ones only")
        return lowest

    def throttles(self, nodes: Iterable[NodesConfig]) -> tuple[ThrottleConfig, ...]:
        """Read the throttles: limits of the server, of users and groups in queues, and of resources of `nodes`."""
        counted = {name for each in nodes for name, amount in each.amounts.items() if amount}
        found: list[ThrottleConfig] = []
        for name in (None, *self.taken):
            attributes = self.server.attributes if name is None else self.server.queues[name]
            taken = [key for key, resource in throttles.resources(attributes).items() if resource in counted]
            left = throttles.of_resources(attributes, taken)
            self.warnings += [f"{'server' if name is None else name}: {limit} is not simulated" for limit in left]
            found += throttles.read(attributes, name, self.warnings, counted)
        return tuple(found)

    def contradictions(self, config: SiteConfig) -> Iterator[str]:
        """Yield the contradictions in the server's state."""
        queues, attributes = self.server.queues, self.server.attributes
        for queue in config.queues:
            limit, widest = queue.max_run_cores, config.widest(queue)
            if limit is not None and limit < widest:
                yield (
                    f"{queue.name}: its running-cores limit {limit} is below its widest job {widest}: "
                    "such a job never starts"
                )
            pool_queue = queue.name + POOL_SUFFIX
            if self.server.is_pool_queue(pool_queue):
                for key in (f"resources_{end}.{of}" for of in ("ncpus", "walltime") for end in ("min", "max")):
                    if queues[pool_queue].get(key) != queues[queue.name].get(key):
                        yield f"{pool_queue}: {key} is not that of {queue.name}"
        formula = attributes.get("job_sort_formula", "")
        if "eligible_time" in formula and not is_true(attributes.get("eligible_time_enable")):
            yield "job_sort_formula names eligible_time, but eligible_time_enable is not True: it is 0"
        depths = [name for name in config.names if "backfill_depth" in queues[name]]
        if depths and config.mode == "shared":
            found = ", ".join(f"{name} {queues[name]['backfill_depth']}" for name in depths)
            yield f"backfill_depth of queues ({found}) is not simulated: one list has the server's on a shared machine"
        for route in self.routes:
            yield from self._routing(config, route, queues[route])
        default = self._time("server", self.server.attributes, "resources_default.walltime", 0)
        yield from unroutable(config, default)

    def _routing(self, config: SiteConfig, name: str, route: Attributes) -> Iterator[str]:
        if PLACE in route:
            yield (
                f"{name}: {PLACE} = {route[PLACE]} plays no part: a job that leaves it has that of the queue that it "
                "comes to"
            )
        if route.get("route_lifetime") == "0":
            yield f"{name}: with route_lifetime = 0 jobs that fit no queue never leave it"
        widest = self._number(name, route, "resources_max.ncpus") or MAX_CORES
        longest = self._time(name, route, "resources_max.walltime", MAX_DURATION)
        reached = {*self.server.reached(name)}
        for queue in config.queues:
            if queue.name not in reached:
                continue
            if queue.cores[0] > widest or queue.walltime[0] >= longest:
                yield f"{queue.name}: {name}'s own limits turn all of its jobs away"
            elif widest < queue.cores[1] < MAX_CORES or longest < queue.walltime[1] < MAX_DURATION:
                yield f"{queue.name}: {name}'s own limits turn some of its jobs away"
