"""What a PBS server is to hold to run as a configuration describes."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from parsim.workload import MAX_CORES, MAX_DURATION
from qconf.config import POOL_SUFFIX, QueueConfig, SiteConfig, access_changes, format_clock, format_duration
from qconf.errors import ExportError
from qconf.export.checks import refuse_access, refuse_idle
from qconf.export.pbs import fairshare, kept, qos, shortpools, throttles
from qconf.export.pbs.differences import envelope, notes, unroutable
from qconf.export.pbs.lint import OLD_LIMITS
from qconf.export.pbs.order import formula, present_formula
from qconf.export.pbs.order import refuse as refuse_order
from qconf.export.pbs.preemption import Preemption, preemption
from qconf.export.pbs.preemption import refuse as refuse_preemption
from qconf.export.pbs.server import ACCESS, Attributes, Server, access, destinations, is_true, is_type, seconds
from qconf.export.pbs.sharing import PLACE, place
from qconf.export.pbs.statements import TARGETS
from qconf.export.pbs.types import (
    BOOLEAN,
    bindings,
    gpus_of,
    of_queues,
    own_resources,
    resource_of,
    to_bind,
)
from qconf.export.priorities import Priorities
from qconf.export.rendering import checked_queue
from qconf.export.types import is_bound

if TYPE_CHECKING:
    from qconf.export.pbs import Binding, PbsExporter

#: Attributes of an Execution queue that follow from the configuration; others stay as they are.
MANAGED = (
    *("resources_min.ncpus", "resources_min.walltime", "resources_max.ncpus", "resources_max.walltime"),
    *("Priority", *throttles.KEYS.values(), "default_chunk.Qlist", "backfill_depth", "from_route_only"),
    *(f"resources_default.{name}" for name in qos.RESOURCES),
)
#: Limits of resources that every server has.
BUILT_IN = ("max_run_res.mem", "max_run_res.naccelerators")
ALL_TOP_JOBS = 100_000  #: stands for all waiting jobs
_ROUTE_MANAGED = (*MANAGED[:4], "route_destinations")
_OPEN = {"enabled": "True", "started": "True"}
_DURATION = re.compile(r"[0-9]+(:[0-9]+){0,2}")


@dataclass
class Desired:
    """The server as it is to be, and what to know before it is changed."""

    server: Server
    route: str
    pool_queues: dict[str, str]
    bound: dict[str, list[str]]  #: the nodes of each queue whose binding changes
    preemption: Preemption
    limits: dict[str, str]  #: attributes that are limits of the configuration, as `throttles.keys` has them
    closed: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def priorities(self) -> Priorities:
        """Whole priorities by queue."""
        return self.preemption.priorities


def desired(config: SiteConfig, before: Server, options: PbsExporter) -> Desired:
    """Work out what the server is to hold; `before`'s attributes that no configuration has a word for are kept."""
    binding = options.binding
    _refuse(config, binding)
    pool_queues = {q.name: q.name + POOL_SUFFIX for q in config.queues if config.pool_cores and not q.reservation}
    if config.nodes:
        pool_queues = {name: pool for name, pool in pool_queues.items() if pool in of_queues(config)}
    names = [checked_queue(queue.name, pooled=queue.name in pool_queues) for queue in config.queues]
    for name, pool_queue in pool_queues.items():
        if pool_queue in names:
            raise ExportError(f"queue {pool_queue} has the name of {name}'s queue for the pool: rename one of them")
    route = _route_name(config, before, options.route)
    preempting = preemption(config, before, options.scheduler)
    bound = to_bind(config, before, options)
    limits = throttles.keys(config, gpus_of(options.scheduler))
    result = Desired(deepcopy(before), checked_queue(route), pool_queues, bound, preempting, limits)
    result.notes += preempting.notes
    for key in (key for key in limits.values() if key not in (*throttles.KEYS.values(), *BUILT_IN)):
        result.server.resources.setdefault(key.partition(".")[2], {"type": "long", "flag": "nh"})
    for name in own_resources(config, bound):
        if before.resources.get(name, BOOLEAN).get("type") != "boolean":
            raise ExportError(f"the server has a resource {name} already that is no boolean")
        result.server.resources.setdefault(name, dict(BOOLEAN))
    kept.refuse(config, before)
    if config.keeps_cores:
        result.server.resources.setdefault(kept.RESOURCE, dict(kept.OF_NODES))
    if config.mode != "shared" and binding == "qlist" and not config.nodes:
        wanted = {"type": "string_array", "flag": "h"}
        if before.resources.get("Qlist", wanted) != wanted:
            raise ExportError("the server has a resource Qlist already that is no string_array with flag h")
        result.server.resources.setdefault("Qlist", wanted)
    for name in qos.RESOURCES if config.qos else ():
        if before.resources.get(name, {}).get("type", "float") != "float":
            raise ExportError(f"the server has a resource {name} already that is no float")
        result.server.resources.setdefault(name, {"type": "float"})
    for queue in config.queues:
        attributes = _execution(config, queue, result, binding) | _routed_only(before, route, queue.name)
        if queue.name in preempting.targets:
            attributes[TARGETS] = preempting.targets[queue.name]
        if default := place(config, queue, before):
            attributes[PLACE] = default
        _put(result, before, queue.name, attributes | _binding(config, queue.name, before, bound), config)
        if queue.name in pool_queues:
            pooled = {key: value for key, value in attributes.items() if key != "backfill_depth"}  # the server's goes
            pooled["Priority"] = str(-int(pooled["Priority"]))
            name = pool_queues[queue.name]
            of_nodes = _binding(config, name, before, bound) if config.nodes else {"default_chunk.Qlist": name}
            _put(result, before, name, pooled | of_nodes | {"from_route_only": "True"}, config)
    _check_access(config, before, route)
    _close(result, before, [*names, *pool_queues.values()], options.remove)
    _put_route(result, before, config)
    refuse_order(config, result.priorities, options.jobs, present_formula(before))
    _put_server(result, before, config, options)
    result.notes += shortpools.notes(config)
    result.notes += notes(config, binding, result.priorities, before, options.scheduler, options.nodes or ())
    return result


def _binding(config: SiteConfig, name: str, before: Server, bound: Collection[str]) -> Attributes:
    """Write what binds a queue of the server to its nodes: what does so now, if it has them already."""
    if not is_bound(config):
        return {}
    wanted = {} if of_queues(config)[name] is None else {resource_of(name): "True"}
    if name not in bound:
        wanted = bindings(before.queues.get(name, {}))
    return {f"default_chunk.{name}": value for name, value in wanted.items()}


def _refuse(config: SiteConfig, binding: Binding) -> None:
    pool = config.pool_cores
    if pool and binding == "limits":
        raise ExportError("--binding limits cannot make a common pool: it reserves no cores")
    if config.mode != "shared" and config.nodes and binding == "limits":
        raise ExportError("--binding limits counts cores: partitions of several types of nodes are made of nodes")
    if config.mode != "shared" and not config.backfill:
        raise ExportError(
            "backfill: false on a partitioned machine: PBS's strict order would let the head job of one "
            "partition hold up all the others"
        )
    fairshare.refuse(config)
    qos.refuse(config)
    throttles.refuse(config)
    refuse_idle(config, "PBS")
    refuse_preemption(config)
    if any(each.types for each in config.shortpools):
        raise ExportError("shortpools: nodes of several types have no form in an export: leave shortpools out")
    refuse_access(config, "PBS", [*ACCESS])


def _route_name(config: SiteConfig, before: Server, given: str | None) -> str:
    if given is not None:
        if given in config.names or not is_type(before.queues.get(given, {"queue_type": "Route"}), "route"):
            raise ExportError(f"{given!r} cannot be the Route queue: it is a queue of jobs")
        return given
    routes = before.of_type("route")
    default = before.attributes.get("default_queue", "")
    if default in routes:
        return default
    if len(routes) > 1:
        raise ExportError(f"several Route queues ({', '.join(routes)}): name one with --route")
    taken = {*config.names, *before.of_type("execution")}
    return next((name for name in (*routes, "route", "qroute", "routing") if name not in taken), "qconf_route")


def _execution(config: SiteConfig, queue: QueueConfig, result: Desired, binding: Binding) -> Attributes:
    priority = str(result.priorities.values[queue.name])
    attributes = {"queue_type": "Execution", "Priority": priority, **_ranges([queue])}
    parted = config.mode != "shared"
    cores = queue.max_run_cores
    if parted and binding == "qlist" and not config.nodes:
        attributes["default_chunk.Qlist"] = queue.name
    elif parted and not queue.reservation and not config.nodes:
        cores = min(queue.partition, cores or MAX_CORES)
    attributes |= qos.defaults(config, queue.name)
    limits = throttles.limits(config, result.limits, queue, cores)
    attributes |= {key: throttles.written(key, scopes) for key, scopes in limits.items()}
    if parted:
        attributes["backfill_depth"] = _depth(config)
    return attributes | _lists(queue) | _OPEN


def _depth(config: SiteConfig) -> str:
    """Write how many jobs of a list have reservations."""
    return str(ALL_TOP_JOBS if config.reservation_depth is None else config.reservation_depth)


def _routed_only(before: Server, route: str, name: str) -> Attributes:
    """Write that jobs enter a queue by routing alone, where they do so now; a new one, where all others are so."""
    reached = destinations(before.queues.get(route, {}))
    present = [name] if name in before.queues and not before.is_pool_queue(name) else reached
    queues = [queue for each in present if is_type(queue := before.queues.get(each, {}), "execution")]
    only = bool(queues) and all(is_true(queue.get("from_route_only")) for queue in queues)
    return {"from_route_only": "True"} if only else {}


def _lists(queue: QueueConfig) -> Attributes:
    """Write who may use a queue."""
    listed = {} if queue.access is None else dict(queue.access)
    return {
        key: value
        for kind, (names, switch) in ACCESS.items()
        if listed.get(kind) is not None
        for key, value in ((names, ",".join(listed[kind])), (switch, "True"))
        if value
    }


def _ranges(queues: Sequence[QueueConfig]) -> Attributes:
    """Write the least range of cores and walltimes that holds those of all `queues`."""
    (least, most), (above, upto) = envelope(queues)
    wanted = {
        "resources_max.ncpus": str(most) if most < MAX_CORES else "",
        "resources_max.walltime": format_clock(upto) if upto < MAX_DURATION else "",
        "resources_min.ncpus": str(least) if least > 1 else "",
        "resources_min.walltime": format_clock(above + 1) if above > 0 else "",  # ours is exclusive, PBS's inclusive
    }
    return {key: value for key, value in wanted.items() if value}


def _put(result: Desired, before: Server, name: str, attributes: Attributes, config: SiteConfig) -> None:
    """Set the attributes of an Execution queue, keeping those of the server that no configuration has a word for.

    With throttles all limits of users and groups are the configuration's own, with QOS those of projects.
    """
    old = before.queues.get(name)
    if old is None:
        result.new.append(name)
        result.server.queues[name] = attributes
        return
    if not is_type(old, "execution"):
        raise ExportError(f"queue {name} is there already and is no Execution queue")
    bound = (f"default_chunk.{name}" for name in bindings(old) if is_bound(config))
    managed = {*MANAGED, *result.limits.values(), PLACE, *bound}
    kept = {key: value for key, value in old.items() if key not in managed and key.partition(".")[0] not in OLD_LIMITS}
    result.server.queues[name] = merged = {**kept}
    own = {key: throttles.others(config, key, old.get(key, "")) for key in result.limits.values()}
    for key, value in attributes.items():
        merged[key] = ",".join([value, *own[key]]) if key in own else _same(old.get(key), value)
    for names, switch in ACCESS.values():
        if switch in attributes and names not in attributes:
            merged.pop(names, None)  # the list is empty
    for key, parts in own.items():
        if parts:
            merged.setdefault(key, ",".join(parts))
            result.notes.append(f"Queue {name}: the limits {', '.join(parts)} of {key} are kept; none was simulated.")
    if limits := throttles.of_resources(kept):
        result.notes.append(f"Queue {name} keeps {', '.join(limits)}; none was simulated.")
    foreign = [
        f"{key} = {value}"
        for key, value in kept.items()
        if key.startswith(("resources_min.", "resources_max."))
        or (key.startswith("acl_") and key.endswith("_enable") and is_true(value))
    ]
    if foreign:
        result.notes.append(
            f"Queue {name} keeps {', '.join(foreign)}: the configuration has no word for it, and it may refuse jobs "
            "that the simulation let in."
        )


def _same(old: str | None, new: str) -> str:
    """Keep the server's own spelling of the same value, so that no statement is written for it."""
    if old is None:
        return new
    durations = _DURATION.fullmatch(old) and _DURATION.fullmatch(new)
    return old if old.lower() == new.lower() or (durations and seconds(old) == seconds(new)) else new


def _check_access(config: SiteConfig, before: Server, route: str) -> None:
    """Raise ExportError where a job could go to queues that other users may use than those it can go to now."""
    reached = destinations(before.queues.get(route, {})) or before.of_type("execution")
    present = [name for name in reached if is_type(before.queues.get(name, {}), "execution")]
    if all(access(before.queues[name]) is None for name in present):
        return
    now = [queue for name in present if (queue := _present(name, before.queues[name]))]
    kept = {queue.name: queue.access for queue in now}
    later = [
        queue if queue.access or queue.name not in kept else queue.model_copy(update={"access": kept[queue.name]})
        for queue in config.queues
    ]
    if changed := access_changes(now, later):
        raise ExportError(
            f"who may use the queues of {', '.join(changed)}'s jobs would change (acl_users, acl_groups, acl_hosts): "
            "write `access` of each queue in the configuration, as qconf init does, or change the lists on the server "
            "first"
        )


def _present(name: str, attributes: Attributes) -> QueueConfig | None:
    """Return a queue of the server as far as it lets jobs in; None where it lets none in."""

    def number(key: str, otherwise: int) -> int:
        return seconds(attributes.get(key, str(otherwise)))

    try:
        return QueueConfig(
            name=name,
            cores=(max(1, number("resources_min.ncpus", 1)), number("resources_max.ncpus", MAX_CORES)),
            walltime=(
                max(0, number("resources_min.walltime", 1) - 1),
                min(number("resources_max.walltime", MAX_DURATION), MAX_DURATION),
            ),
            access=access(attributes),
        )
    except ValueError:
        return None


def _close(result: Desired, before: Server, names: Sequence[str], remove: Sequence[str]) -> None:
    reached = destinations(before.queues.get(result.route, {}))
    for name in remove:
        if name in names or name not in before.queues:
            raise ExportError(f"--remove {name}: " + ("the configuration has it" if name in names else "no such queue"))
    pooled = [name for name in before.queues if before.is_pool_queue(name)]
    for name in dict.fromkeys([*reached, *pooled, *remove]):
        if name in before.queues and name not in names:
            result.closed.append(name)
            result.server.queues[name]["enabled"] = "False"
    others = [name for name in before.of_type("execution") if name not in names and name not in result.closed]
    if others:
        result.notes.append(
            f"Left as they are, though the configuration lacks them: {', '.join(others)}. Their jobs were not "
            "simulated and run beside the others on any node. Close one with --remove NAME."
        )


def _put_route(result: Desired, before: Server, config: SiteConfig) -> None:
    route, queues = result.route, result.server.queues
    attributes = {"queue_type": "Route", **_ranges(config.queues), "route_destinations": ",".join(config.names)}
    old = before.queues.get(route)
    if old is None:
        result.new.append(route)
        queues[route] = attributes | _OPEN
        return
    del queues[route]  # it comes last
    kept = {key: value for key, value in old.items() if key not in _ROUTE_MANAGED}
    queues[route] = kept | {key: _same(old.get(key), value) for key, value in attributes.items()} | _OPEN
    if old.get("route_lifetime") == "0":
        result.notes.append(f"Queue {route} has route_lifetime = 0: jobs that fit no queue never leave it. Unset it.")
    lost = [name for name in destinations(old) if name not in config.names and name not in result.closed]
    if lost:
        result.notes.append(f"No longer a destination of {route}: {', '.join(lost)}.")


def _put_server(result: Desired, before: Server, config: SiteConfig, options: PbsExporter) -> None:
    queues = result.server.queues
    old_style = [key for key in before.attributes if key.partition(".")[0] in OLD_LIMITS]
    old_style += [f"{name}: {key}" for name in queues for key in queues[name] if key.partition(".")[0] in OLD_LIMITS]
    limits = _server_limits(result, before, config)
    if old_style and any("max_run" in a or "max_run_res.ncpus" in a for a in (*queues.values(), limits)):
        raise ExportError(
            f"the server has limits of the older kind ({', '.join(old_style)}), which PBS does not mix with max_run; "
            "write them as max_run first"
        )
    wanted = {"default_queue": result.route, "backfill_depth": _depth(config) if config.backfill else "0"}
    text, _ = formula(config, result.priorities, options.jobs, present_formula(before))
    result.server.scheduler.pop("job_sort_formula", None)  # PBS holds one formula, and this one is the server's
    result.server.scheduler |= result.preemption.scheduler
    if text is not None and text != present_formula(before):
        result.server.scheduler.pop("job_sort_formula_threshold", None)
    if text is None:
        result.server.attributes.pop("job_sort_formula", None)
    else:
        wanted |= {"job_sort_formula": text, "eligible_time_enable": "True"}
        if "eligible_time" in text and before.attributes and not is_true(before.attributes.get("eligible_time_enable")):
            result.notes.append(
                "eligible_time is switched on by this change and counts from then on: jobs that wait already start at "
                "0, however long they have waited."
            )
    given = before.attributes.get("resources_default.walltime")
    if given is not None:
        result.notes += [f"Without a walltime: {text}." for text in unroutable(config, seconds(given))]
    elif (default := _default_walltime(config)) is not None:
        wanted["resources_default.walltime"] = format_clock(default)
        result.notes.append(
            f"A job that names no walltime is given {format_duration(default)}, with which jobs of every size find "
            "their queue; the simulator gave it its queue's longest."
        )
    else:
        result.notes.append(
            "**No walltime suits jobs of every width, so none is set as default.** PBS plans a job that names none "
            "as if it ran for years, and no formula has its walltime; the simulator gave it "
            "its queue's longest. Set resources_default.walltime on each queue, or have a hook refuse such jobs."
        )
    result.server.attributes |= {key: _same(before.attributes.get(key), value) for key, value in wanted.items()}
    for key in result.limits.values():
        result.server.attributes.pop(key, None)
    result.server.attributes |= limits


def _server_limits(result: Desired, before: Server, config: SiteConfig) -> Attributes:
    """Write the limits of the server: those of throttles, and what it has that no configuration has a word for."""
    found: Attributes = {}
    wanted = throttles.limits(config, result.limits)
    if kept := throttles.of_resources(before.attributes, result.limits.values()):
        result.notes.append(f"The server keeps {', '.join(kept)}; none was simulated.")
    for key in result.limits.values():
        held = before.attributes.get(key, "")
        kept = throttles.others(config, key, held) if config.throttles else re.findall(r"\[[^\]]*\]", held)
        parts = [*([throttles.written(key, wanted[key])] if key in wanted else []), *kept]
        if parts:
            found[key] = ",".join(parts)
        if kept:
            result.notes.append(f"The server's limits {', '.join(kept)} of {key} are kept; none was simulated.")
    return found


def _default_walltime(config: SiteConfig) -> int | None:
    """Find the longest walltime with which a job of any width that has a queue is let in somewhere."""
    edges = {edge for queue in config.queues for edge in (queue.cores[0], queue.cores[1] + 1)}
    widths = [edge for edge in edges if any(queue.admits(edge, None) for queue in config.queues)]
    for limit in sorted({queue.walltime[1] for queue in config.queues}, reverse=True):
        if limit < MAX_DURATION and all(any(q.admits(width, limit) for q in config.queues) for width in widths):
            return limit
    return None
