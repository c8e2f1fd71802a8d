"""Compute the PBS server state that implements a configuration."""

from __future__ import annotations

from collections.abc import Collection
from copy import deepcopy
from typing import TYPE_CHECKING

from parsim.model.fairshare import FAIRSHARE
from parsim.model.workload import MAX_DURATION
from qconf.config import KEPT, POOL_SUFFIX, QueueConfig, SiteConfig, access_changes
from qconf.errors import ExportError
from qconf.export import rendering
from qconf.export.pbs import beside, fairshare, merging, order, qos, throttles, types
from qconf.export.pbs.differences import notes, sorting, unroutable
from qconf.export.pbs.merging import TARGETS, merged, older
from qconf.export.pbs.preemption import Preemption, preempted_queues, preemption
from qconf.export.pbs.queues import MANAGED, OPEN, depth, execution, ranges
from qconf.export.pbs.server import ACCESS, Attributes, Server, Settings, destinations, is_true, is_type, seconds
from qconf.export.priorities import are_several
from qconf.export.rendering import check_queue
from qconf.export.types import is_bound

if TYPE_CHECKING:
    from qconf.export.pbs import Binding, PbsExporter

#: Limits on resources that are built into PBS.
BUILT_IN = ("max_run_res.mem", "max_run_res.naccelerators")


class Desired:
    """The desired state, `server`, and notes to read before changing it.

    It is the present state `before` with the differences between `config` and `base`, the server's present
    configuration (None if that cannot be read). Raises ExportError.
    """

    def __init__(self, config: SiteConfig, before: Server, options: PbsExporter, base: SiteConfig | None) -> None:
        self.config, self.before, self.options, self.base = config, before, options, base
        self.server = deepcopy(before)
        self.pool_queues = _pool_queues(config)
        self._refuse()
        #: Attributes of the configuration's limits, by limit, from `throttles.keys`.
        self.limits = throttles.keys(config, types.gpus_of(options.scheduler))
        self.preemption = preemption(config, before, options.scheduler, base)
        self.priorities = self.preemption.priorities
        same_nodes = base is not None and of_nodes(base) == of_nodes(config)
        #: Queue whose binding changes -> its nodes.
        self.bound = {} if same_nodes else types.to_bind(config, before, options)
        self.closed: list[str] = []
        self.new: list[str] = []
        self.notes = [*self.preemption.notes]
        self.settings: dict[str, str | None] = {}  #: lines of sched_config to set, None to remove
        self.target = _targeted(config, before, options, self.preemption, self.bound)
        #: Priorities, preemption and state that `base` requires.
        self.present = None if base is None else preemption(base, before, options.scheduler, base)
        self.had = Server()
        if base is not None and self.present is not None:
            self.had = _targeted(base, before, options, self.present, {})
        self.names = [*config.names, *self.pool_queues.values()]
        self.held = older(before)
        self._put_resources()
        self._close()
        entry = merging.entry(before, options.route or config.routing, self.names)
        #: The routing queue for jobs, "" without one.
        self.route = entry or merging.new_entry(config, before, self.closed, base)
        check_queue(self.route or "route")
        for name, attributes in self.target.queues.items():
            self._put_queue(name, attributes, self.had.queues.get(name))
        self._check_access()
        self._put_routes()
        self._put_server()
        self._put_scheduling()
        self.notes += notes(config, options.binding, self.priorities, before, options.scheduler, options.nodes or ())

    def note(self, feature: str, **values: object) -> None:
        """Add the notes on a feature."""
        self.notes += rendering.notes("pbs", feature, **values)

    def _set(self, lines: Settings) -> None:
        """Set the lines of sched_config that the scheduler lacks; all of them if its settings are unknown."""
        scheduler = self.options.scheduler
        self.settings |= {
            name: value for name, value in lines.items() if scheduler is None or scheduler.lacks(name, value)
        }

    def _refuse(self) -> None:
        """Raise ExportError if PBS cannot express the configuration, unless `base` has the same problem."""
        binding = self.options.binding
        new, known = ([] if each is None else _reasons(each, binding)[:1] for each in (self.config, self.base))
        if new and new != known:
            raise ExportError(new[0])
        for name in self.config.names:
            if name not in self.before.queues:
                check_queue(name, pooled=name in self.pool_queues)
        for name, pool_queue in self.pool_queues.items():
            if pool_queue in self.config.names:
                raise ExportError(f"queue {pool_queue} has the name of {name}'s queue for the pool: rename one of them")

    def _put_resources(self) -> None:
        """Create the resources that the server lacks, unless `base` already needs them or the server uses them."""
        before, had, resources = self.before, self.had, self.server.resources
        used = {key.partition(".")[2] for held in (before.attributes, *before.queues.values()) for key in held}
        for name, wanted in self.target.resources.items():
            there = before.resources.get(name)
            if there is None and (name in had.resources or name in used):
                continue
            if name in had.resources and there is not None and there.get("type") == wanted["type"]:
                continue
            if (there is not None and there.get("type") != wanted["type"]) or (
                name == "Qlist" and there not in (None, wanted)
            ):
                kind = "whole number (long)" if wanted["type"] == "long" else wanted["type"]
                kind += f" with flag {wanted['flag']}" if name == "Qlist" else ""
                raise ExportError(f"the server has a resource {name} already that is no {kind}")
            resources.setdefault(name, wanted)

    def _close(self) -> None:
        """Close the queues that routing reaches but the configuration lacks, and those of `--remove`."""
        before, base, names = self.before, self.base, self.names
        remove = self.options.remove
        routed = [name for route in before.of_type("route") for name in before.reached(route)]
        for name in remove:
            if name in names or name not in before.queues:
                why = "the configuration has it" if name in names else "no such queue"
                raise ExportError(f"--remove {name}: {why}")
        pooled = [name for name in before.queues if before.is_pool_queue(name)]
        present = routed if base is None else [name for name in routed if name in base.names]
        for name in dict.fromkeys([*present, *pooled, *remove]):
            if name not in names and is_type(before.queues[name], "execution"):
                self.closed.append(name)
                self.server.queues[name]["enabled"] = "False"
        others = [name for name in before.of_type("execution") if name not in names and name not in self.closed]
        if others:
            self.note("left", names=others)

    def _put_queue(self, name: str, target: Attributes, had: Attributes | None) -> None:
        """Set the attributes of an execution queue; `had` are those that `base` requires."""
        old = self.before.queues.get(name)
        if old is None:
            self.new.append(name)
            self.server.queues[name] = merged({}, {}, target, self.held) if self.held else target
            return
        if not is_type(old, "execution"):
            raise ExportError(f"queue {name} is there already and is no Execution queue")
        managed = {*MANAGED, *self.limits.values(), *(f"default_chunk.{each}" for each in types.bindings(old))}
        if had is None:
            had = {key: value for key, value in old.items() if key in managed and key not in target}
        self.server.queues[name] = now = merged(old, had, target, self.held)
        for names, switch in ACCESS.values():
            if is_true(target.get(switch)) and names not in target and is_true(now.get(switch)):
                now.pop(names, None)  # an empty list
        if limits := throttles.of_resources(now, self.limits.values()):
            self.notes.append(f"Queue {name} keeps {', '.join(limits)}; none was simulated.")
        foreign = [
            f"{key} = {value}"
            for key, value in now.items()
            if key.startswith(("resources_min.", "resources_max.")) and key not in target and key not in MANAGED
        ]
        if foreign:
            self.note("foreign", name=name, kept=foreign)

    def _check_access(self) -> None:
        """Raise ExportError if routing would let other users' jobs into a queue than now."""
        if (base := self.base) is None:
            return
        kept = {queue.name: queue.access for queue in base.queues}
        later = [
            queue if queue.access or queue.name not in kept else queue.model_copy(update={"access": kept[queue.name]})
            for queue in self.config.queues
        ]
        entered = {*self.before.entered}
        if changed := access_changes([queue for queue in base.queues if queue.name in entered], later):
            raise ExportError(
                f"who may use the queues of {', '.join(changed)}'s jobs would change (acl_users, acl_groups, "
                "acl_hosts): write `access` of each queue in the configuration, as qconf init does, or change the "
                "lists on the server first"
            )

    def _put_routes(self) -> None:
        before, config, base = self.before, self.config, self.base
        queues, present = self.server.queues, base.names if base else ()
        for route, listed in merging.led_to(before, present, config.names, self.closed, self.route).items():
            queues[route]["route_destinations"] = ",".join(listed)
            if lost := [name for name in destinations(before.queues[route]) if name not in (*listed, *self.closed)]:
                self.notes.append(f"No longer a destination of {route}: {', '.join(lost)}.")
        for route in before.of_type("route"):
            if queues[route].get("route_lifetime") == "0":
                self.notes.append(
                    f"Queue {route} has route_lifetime = 0: jobs that fit no queue never leave it. Unset it."
                )
            reached = {*before.reached(route)}
            now = [queue for queue in base.queues if queue.name in reached] if base else []
            later = [queue for queue in config.queues if queue.name in {*self.server.reached(route)}]
            if later:
                own = queues[route]
                had, wanted = (
                    {key: value for key, value in ranges(of).items() if key in own} if of else {} for of in (now, later)
                )
                queues[route] = merged(own, had, wanted, ())
        if not self.route or self.route in before.queues:
            for route in before.of_type("route"):
                for name in [name for name in self.new if name in destinations(queues[route])]:
                    listed = destinations(before.queues[route])
                    others = [before.queues[each] for each in listed if each in before.queues]
                    if others and all(is_true(each.get("from_route_only")) for each in others):
                        queues[name]["from_route_only"] = "True"
            return
        self.new.append(self.route)
        leads = {"route_destinations": ",".join(config.names)}
        queues[self.route] = {"queue_type": "Route"} | ranges(config.queues) | leads | OPEN

    def _put_server(self) -> None:
        before, config, had = self.before, self.config, self.had
        server = self.server
        if not had.queues and config.throttles:  # the server's configuration is unknown
            had.attributes = {key: value for key, value in before.attributes.items() if key in self.limits.values()}
        server.attributes = merged(before.attributes, had.attributes, self.target.attributes, self.held)
        there = {key: value for key, value in had.scheduler.items() if key in self.target.scheduler}
        server.scheduler = merged(before.scheduler, there, self.target.scheduler, ())
        if self.route in self.new:
            server.attributes["default_queue"] = self.route
        if limits := throttles.of_resources(before.attributes, self.limits.values()):
            self.notes.append(f"The server keeps {', '.join(limits)}; none was simulated.")
        given = before.attributes.get("resources_default.walltime")
        if given is not None:
            self.notes += [f"Without a walltime: {text}." for text in unroutable(config, seconds(given))]
        elif endless := [queue.name for queue in config.queues if queue.walltime[1] == MAX_DURATION]:
            self.note("endless", names=endless)

    def _put_scheduling(self) -> None:
        """Set formula, backfill depth and lines of sched_config, if their features differ from `base`."""
        config, base, scheduler = self.config, self.base, self.options.scheduler
        self._put_order()
        wanted: dict[str, str | None] = {}
        if base is None or _reserves(config) != _reserves(base):
            wanted["strict_ordering"] = f"{not config.reserves_nothing}"
            wanted_depth = depth(config) if config.backfill else "0"
            there = self.before.attributes.get("backfill_depth", "1")
            if not config.reserves_nothing and there != wanted_depth:
                self.server.attributes["backfill_depth"] = wanted_depth
        on = self.preemption.on
        if on is not None and (self.present is None or self.present.on != on):
            wanted["preemptive_sched"] = f"{on}".lower()
        self._set(wanted)
        if base is not None and scheduler is None and config.backfill and not wanted:
            self.note("unknown_scheduler")

    def _put_order(self) -> None:
        """Set the formula and the settings that it needs, if the order differs from `base`."""
        before, config, base = self.before, self.config, self.base
        scheduler, jobs, present = self.options.scheduler, self.options.jobs, self.present
        now = order.present_formula(before)
        lines, same = _lines_of_order(config), base is not None and _sorts(base) == _sorts(config)
        if base is not None and same and (read := fairshare.settings(base)) != (use := fairshare.settings(config)):
            known = scheduler is not None  # an equal value may be spelled differently
            self._set({name: value for name, value in use.items() if not known or read.get(name) != value})
        text, _ = order.formula(config, self.priorities, jobs, now)
        if base is not None and present is not None and not same and lines == _lines_of_order(base):
            same = text == order.formula(base, present.priorities, jobs, now)[0]
        self.notes += sorting(text, before, scheduler, changed=not same)
        if same:
            return
        order.refuse(config, self.priorities, jobs, now)
        server = self.server
        if text != now:
            server.scheduler.pop("job_sort_formula", None)  # PBS has one formula; ours is the server's
            server.attributes.pop("job_sort_formula", None)
            if text is not None:
                server.scheduler.pop("job_sort_formula_threshold", None)
                server.attributes["job_sort_formula"] = text
        if "eligible_time" in (text or "") and not is_true(before.attributes.get("eligible_time_enable")):
            server.attributes["eligible_time_enable"] = "True"
            if before.attributes:
                self.note("eligible_time")
        if scheduler and scheduler.on("help_starving_jobs"):
            lines["help_starving_jobs"] = "false"  # the formula handles starving jobs
        self._set(lines)


def _pool_queues(config: SiteConfig) -> dict[str, str]:
    return {q.name: q.name + POOL_SUFFIX for q in config.queues if config.pool_cores and not q.reservation}


def of_nodes(config: SiteConfig) -> tuple[object, ...]:
    """Return the fields that decide the nodes of each queue."""
    parts = [(q.name, q.partition, q.partition_nodes, q.nodes, q.reservation) for q in config.queues]
    return config.nodes, config.mode, config.pool, parts


def _targeted(
    config: SiteConfig, before: Server, options: PbsExporter, preempting: Preemption, bound: Collection[str]
) -> Server:
    """Return the server state that a configuration requires, in the spelling of `before`."""
    result, values = Server(), preempting.priorities.values
    limits = throttles.keys(config, types.gpus_of(options.scheduler))
    pool_queues = _pool_queues(config)
    for queue in config.queues:
        attributes = execution(config, queue, before, limits, options.binding) | {"Priority": str(values[queue.name])}
        if queue.name in preempting.targets:
            attributes[TARGETS] = preempting.targets[queue.name]
        if default := types.place(config, queue, before):
            attributes[types.PLACE] = default
        result.queues[queue.name] = attributes | _binding(config, queue, before, bound)
        if (name := pool_queues.get(queue.name)) is not None:
            pooled = {key: value for key, value in attributes.items() if key != "backfill_depth"}  # the server's counts
            own = {"Priority": str(-values[queue.name]), "from_route_only": "True"}
            result.queues[name] = pooled | {"default_chunk.Qlist": name} | own
    result.attributes = {"backfill_depth": depth(config) if config.backfill else "0"}
    found = throttles.limits(config, limits)
    result.attributes |= {key: throttles.written(key, scopes) for key, scopes in found.items()}
    result.scheduler = dict(preempting.scheduler)
    for key in (key for key in limits.values() if key not in (*throttles.KEYS.values(), *BUILT_IN)):
        result.resources[key.partition(".")[2]] = {"type": "long", "flag": "nh"}
    result.resources |= {name: dict(types.BOOLEAN) for name in types.own_resources(config, bound)}
    if config.keeps_cores:
        result.resources[KEPT] = {"type": "long", "flag": "nh"}
    if types.by_qlist(config, options.binding):
        result.resources["Qlist"] = {"type": "string_array", "flag": "h"}
    if config.reads_estimate:
        result.resources[beside.ESTIMATE] = {"type": "long", "flag": "r"}  # users may read it
    result.resources |= {name: {"type": "float"} for name in (qos.RESOURCES if qos.needs_hook(config) else ())}
    return result


def _binding(config: SiteConfig, queue: QueueConfig, before: Server, bound: Collection[str]) -> Attributes:
    """Return the attributes that bind a queue to its nodes; the present ones, if its binding does not change."""
    if not is_bound(config):
        return {}
    wanted = {} if queue.nodes is None else {types.resource_of(queue.name): "True"}
    if queue.name not in bound:
        wanted = types.bindings(before.queues.get(queue.name, {}))
    return {f"default_chunk.{name}": value for name, value in wanted.items()}


def _reasons(config: SiteConfig, binding: Binding) -> list[str]:
    values = {
        "binding": binding,
        "limits": qos.limits(config),
        "keys": throttles.keys(config),
        "preempted": preempted_queues(config),
    }
    own = rendering.notes("pbs", "refused", config=config, **values)
    return [*own, *rendering.notes("", "refused", config=config, system="PBS", kinds=[*ACCESS])]


def _lines_of_order(config: SiteConfig) -> dict[str, str | None]:
    fair = config.order == FAIRSHARE
    return {
        "job_sort_key": None,
        "by_queue": f"{fair and are_several(config.queues)}",
        "round_robin": "False",
        "fair_share": f"{fair}".lower(),
        **fairshare.settings(config),
    }


def _reserves(config: SiteConfig) -> tuple[object, ...]:
    """Return the fields that decide which jobs get reservations."""
    return config.backfill, config.reserves_nothing, config.mode != "shared", config.reservation_delay


def _sorts(config: SiteConfig) -> tuple[object, ...]:
    """Return the fields that decide the order of waiting jobs, except the counting of usage."""
    queues = [(q.name, q.priority, q.starvation, q.reservation, q.tier) for q in config.queues]
    return config.order, config.mode, config.pool, queues
