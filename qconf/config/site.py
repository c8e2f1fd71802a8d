"""`SiteConfig`, a checked, frozen configuration with the parsim system that it describes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Self

from pydantic import ValidationError, model_validator

from parsim.model.fairshare import FAIRSHARE, Fairshare, Share
from parsim.model.formula import parse as parse_formula
from parsim.model.node_types import CORES, NodeType
from parsim.model.qos import QOS
from parsim.model.system import MOST_NODE_CORES, ORDERS, Pool, Queue, System
from parsim.model.throttles import RESOURCES, THROTTLES, Throttle
from parsim.model.workload import MAX_DURATION
from qconf.config.billing import weights
from qconf.config.checks import fixable_paths, matches, mistakes, warnings
from qconf.config.models import KEPT, SCALARS, Downtime, QueueConfig, Settings, SiteFields
from qconf.config.problems import ConfigError, Problem, dotted
from qconf.config.routing import CORE_LIMITS


class SiteConfig(SiteFields):
    """A configuration whose parts fit together. `load` and `parse` read one, `replace` makes variants."""

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        found = [f"{mistake.path}: {mistake.message}" for mistake in mistakes(self)]
        if found:
            raise ValueError("; ".join(found))
        return self

    @property
    def is_formula(self) -> bool:
        """Whether the order is a formula, not one of the named orders."""
        return self.order not in ORDERS

    @property
    def keeps_cores(self) -> bool:
        """Whether jobs without GPUs leave cores of GPU nodes to others."""
        return any(each.kept_per_gpu for each in self.nodes)

    @property
    def uses_priority(self) -> bool:
        """Whether queue priorities have an effect: under any order but a formula without them."""
        return self.mode == "hybrid" or not self.is_formula or "queue_priority" in self.order

    def reach(self, queue: QueueConfig) -> int:
        """Return the cores of the widest job of a queue that can ever start in a batch system.

        In the simulator a job too wide for a partition may span several; in a batch system only with a reservation.
        """
        cores = self.machine.cores
        if queue.nodes is not None:
            cores = sum(each.count * each.cores for each in self.nodes if each.name in queue.nodes)
        if self.mode != "shared" and not queue.reservation:
            combined = self.pool is not None and self.pool.placement == "combined"
            cores = queue.partition + self.pool_cores if combined else max(queue.partition, self.pool_cores)
        return min(cores, *(getattr(queue, limit) or cores for limit in CORE_LIMITS))

    def queue(self, name: str) -> QueueConfig:
        """Return the queue of this name; KeyError if there is none."""
        return {queue.name: queue for queue in self.queues}[name]

    @property
    def threshold(self) -> float:
        """Tau: ``pool.threshold``, or half the priority of the reference queue.

        The reference is ``pool.reference``, else the queue named ``medium``, else the middle queue by priority (the
        lower of two).
        """
        if self.pool is not None and self.pool.threshold is not None:
            return self.pool.threshold
        named = self.pool.reference if self.pool is not None and self.pool.reference else "medium"
        by_priority = sorted(self.queues, key=lambda queue: queue.priority)
        middle = by_priority[(len(by_priority) - 1) // 2]
        return 0.5 * next((queue for queue in self.queues if queue.name == named), middle).priority

    @property
    def tree(self) -> Fairshare:
        """The tree of shares as parsim's `Fairshare`."""
        shares = [Share(each.name, each.shares, each.group or "", each.target, each.bound) for each in self.shares]
        return Fairshare(shares, **({} if self.fairshare is None else dict(self.fairshare)))

    @property
    def is_fair(self) -> bool:
        """Whether the order reads shares or their use."""
        return self.order == FAIRSHARE or (self.is_formula and parse_formula(self.order).uses_shares)

    @property
    def charged_for(self) -> set[str]:
        """The resources that running jobs of some queue are charged for: ``cores`` or others, by name."""
        default = dict(self.tree.charges) or {CORES: 1.0}
        return {name for queue in self.queues for name in weights(queue.billing) or default}

    @property
    def reads_qos(self) -> bool:
        """Whether the order reads the QOS of jobs."""
        return self.is_formula and parse_formula(self.order).uses_qos

    @property
    def reads_estimate(self) -> bool:
        """Whether the order reads the expected run times of jobs."""
        return self.is_formula and parse_formula(self.order).uses_estimate

    def system(self) -> System:
        """Return the parsim system of this configuration."""
        return self._system

    @cached_property
    def _system(self) -> System:
        pool = None
        if self.mode == "hybrid" and self.pool is not None:
            pool = Pool(**self.pool.model_dump(exclude={"reference"}) | {"threshold": self.threshold})
        return System(
            cores=self.machine.cores,
            queues=[
                Queue(
                    **queue.model_dump(exclude={"access", "billing", "nodes"}),
                    node_types=queue.nodes,
                    charges=weights(queue.billing),
                )
                for queue in self.queues
            ],
            node_types=[
                NodeType(
                    each.name,
                    each.count,
                    each.cores,
                    each.amounts | ({KEPT: each.cores - each.kept_per_gpu * each.gpus} if self.keeps_cores else {}),
                    frozenset({each.name, *each.features}),
                    each.exclusive,
                    each.weight,
                )
                for each in self.nodes
            ],
            pool=pool,
            cores_per_node=self.machine.cores_per_node,
            fairshare=self.tree,
            throttles=[
                Throttle(
                    each.kind,
                    each.name,
                    None if each.queue is None else self.names.index(each.queue),
                    qos=each.of_qos,
                    **{name: getattr(each, name) for name in (*THROTTLES, RESOURCES)},
                )
                for each in self.throttles
            ],
            qos=[QOS(each.name, each.priority, each.target, each.exempt, each.usage_factor) for each in self.qos],
            **{name: getattr(self, name) for name in SCALARS} | self._never_reserving,
        )

    @property
    def _never_reserving(self) -> dict[str, object]:
        """The setting of parsim for no reservations at all: a delay that no job reaches."""
        placed = bool(self.nodes) and self.machine.cores <= MOST_NODE_CORES
        never: dict[str, object] = {"reserve": "nodes" if placed else "cores", "reserve_after": MAX_DURATION}
        return never if self.reserves_nothing else {}

    def reserving(self) -> SiteConfig:
        """Return the site with a reservation for the first job, unless `reserve: nothing` is fixed."""
        if not self.reserves_nothing or self.is_fixed("reserve"):
            return self
        placed = bool(self.nodes) or self.machine.cores_per_node > 1
        return self.replace(reserve="nodes" if placed and self.machine.cores <= MOST_NODE_CORES else "cores")

    @classmethod
    def build(cls, **fields: object) -> SiteConfig:
        """Return the checked configuration with these fields; raises `ConfigError` with every mistake."""
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            problems = [
                Problem(None, dotted(detail["loc"]), None, detail["msg"].removeprefix("Value error, "))
                for detail in error.errors(include_url=False, include_context=False)
            ]
            raise ConfigError(None, problems) from error

    def replace(self, **changes: object) -> SiteConfig:
        """Return a checked copy with these fields changed; `ConfigError` if they do not fit together."""
        return self.build(**{**dict(self), **changes})

    def with_each(self, change: Callable[[QueueConfig], Mapping[str, object]], **changes: object) -> SiteConfig:
        """Return a checked copy with the fields of each queue that `change` returns, and other changes."""
        return self.replace(queues=tuple(queue.model_copy(update=change(queue)) for queue in self.queues), **changes)

    def with_queues(self, queues: Sequence[QueueConfig], **changes: object) -> SiteConfig:
        """Return a checked copy with these queues; entries of other parts that name missing queues are removed."""
        paths = fixable_paths(queue.name for queue in queues)
        kept = tuple(pattern for pattern in self.fixed if any(matches(pattern, path) for path in paths))
        names = {None, *(queue.name for queue in queues)}
        targets = tuple(target for target in self.targets if target.queue in names)
        hours = tuple(each for each in self.hours if each.queue in names)
        throttles = tuple(throttle for throttle in self.throttles if throttle.queue in names)
        qos = tuple(
            each.model_copy(update={"queues": tuple(name for name in each.queues if name in names)})
            for each in self.qos
        )
        downtime = tuple(each for each in self.downtime if each.queue in names)
        found = {"queues": tuple(queues), "fixed": kept, "targets": targets, "hours": hours, "throttles": throttles}
        found |= {"qos": qos, "downtime": downtime}
        return self._divided(**{**found, **changes})

    def _divided(self, **changes: object) -> SiteConfig:
        """Return a checked copy; a downtime of a partition that lacks its nodes becomes one of the machine."""
        fields = {**dict(self), **changes}
        held = {queue.name: queue.partition_nodes for queue in fields["queues"]}
        if fields["pool"] is not None:
            held.setdefault("pool", Settings())
        owns = fields["mode"] != "shared"

        def lacks(each: Downtime) -> bool:
            part = held.get(each.partition)
            return part is None or (owns and any(count > part.get(name, 0) for name, count in each.types.items()))

        fields["downtime"] = tuple(
            self.sized(each).model_copy(update={"partition": None}) if each.partition and lacks(each) else each
            for each in fields["downtime"]
        )
        return self.build(**fields)

    def sized(self, downtime: Downtime) -> Downtime:
        """Return a downtime with the cores or nodes that it takes of its partition here."""
        part = downtime.partition
        if self.mode == "shared" or part is None or downtime.nodes or downtime.types:
            return downtime
        if self.nodes:
            types = {name: count for name, count in self.owned_by(part).items() if count}
            return downtime.model_copy(update={"types": Settings(types)})
        cores = next((queue.partition for queue in self.queues if queue.name == part), self.pool_cores)
        return downtime.model_copy(update={"cores": min(downtime.cores or cores, cores) or downtime.cores})

    def with_all_alike(self) -> SiteConfig:
        """Return a checked copy without types of nodes, and without limits on their resources."""
        alike = {"nodes": None, "exclusive": False, "partition_nodes": Settings()}
        queues = tuple(queue.model_copy(update=alike) for queue in self.queues)
        others = (each.model_copy(update={RESOURCES: Settings()}) for each in self.throttles)
        throttles = tuple(each for each in others if each.limits)
        reserve = "queues" if self.reserve == "queue_nodes" else self.reserve
        sizes = {each.name: each.cores for each in self.nodes}
        of_node = [each.cores for each in self.nodes for _ in range(each.count)]

        def in_cores(each: Downtime) -> Downtime:
            if not (each.nodes or each.types):
                return each
            cores = sum(of_node[node] for node in set(each.nodes))
            cores += sum(sizes[name] * count for name, count in each.types.items())
            return each.model_copy(update={"types": Settings(), "nodes": (), "cores": cores})

        shortpools = tuple(each.model_copy(update={"types": Settings()}) for each in self.shortpools)
        kept = {"downtime": tuple(map(in_cores, self.downtime)), "shortpools": shortpools}
        return self.replace(nodes=(), queues=queues, throttles=throttles, reserve=reserve, **kept)

    def with_one_tier(self) -> SiteConfig:
        """Return a checked copy in which no job preempts another; priorities follow tiers first.

        A formula keeps the priorities that it reads.
        """
        ranks = sorted({(queue.tier, queue.priority) for queue in self.queues})
        named = self.order in ORDERS

        def alike(queue: QueueConfig) -> dict[str, object]:
            priority = 1.0 + ranks.index((queue.tier, queue.priority)) if named else queue.priority
            return {"tier": 0, "preempted": "off", "priority": priority}

        return self.with_each(alike)

    def with_partitions(self, sizes: Sequence[int], **changes: object) -> SiteConfig:
        """Return the site partitioned by these sizes in cores, in queue order, with other changes."""
        queues = tuple(
            queue.model_copy(update={"partition": int(size), "partition_nodes": Settings()})
            for queue, size in zip(self.queues, sizes, strict=True)
        )
        partitioned = {"queues": queues, "mode": "partitioned", "reserve_after": self.unless_fixed(0), "pool": None}
        return self.reserving().replace(**{**partitioned, **changes})

    def with_owned(self, owned: Sequence[Mapping[str, int]], **changes: object) -> SiteConfig:
        """Return the site partitioned by these numbers of nodes of each type, in queue order, with other changes."""
        cores = {each.name: each.cores for each in self.nodes}
        sizes = [sum(cores[name] * count for name, count in nodes.items()) for nodes in owned]
        queues = tuple(
            queue.model_copy(update={"partition": size, "partition_nodes": Settings(nodes)})
            for queue, size, nodes in zip(self.queues, sizes, owned, strict=True)
        )
        partitioned = {"queues": queues, "mode": "partitioned", "reserve_after": self.unless_fixed(0), "pool": None}
        reserve = self.reserving().reserve
        partitioned["reserve"] = {"queues": "cores", "queue_nodes": "nodes"}.get(reserve, reserve)
        return self._divided(**{**partitioned, **changes})

    def is_fixed(self, path: str) -> bool:
        """Return whether `fixed` forbids a search to change `path`, such as ``queues.large.priority``.

        A pattern covers the paths beneath: ``queues.large`` all of that queue. ``queues[2].priority`` names the queue
        by position.
        """
        if position := re.match(r"queues\[([0-9]+)\]", path):
            path = f"queues.{self.queues[int(position[1])].name}{path[position.end() :]}"
        return any(matches(pattern, path) for pattern in self.fixed)

    def unless_fixed(self, reserve_after: int) -> int:
        """Return this `reserve_after`, or the fixed one."""
        return self.reserve_after if self.is_fixed("reserve_after") else reserve_after

    def warnings(self) -> list[str]:
        """List valid but probably unintended settings, each with its path."""
        return [f"{warning.path}: {warning.message}" for warning in warnings(self)]
