"""Compute the Slurm settings of a configuration, part by part, the reasons why it cannot be exported, and differences.

An export changes the parts in which two configurations differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from qconf.config import QueueConfig, SiteConfig
from qconf.config.billing import left_out
from qconf.config.multifactor import MOST, Multifactor
from qconf.errors import ExportError
from qconf.export import hours, rendering
from qconf.export.nodes import Node
from qconf.export.rendering import check_queue
from qconf.export.slurm import fairshare, qos, queues, settings, shortpools, throttles
from qconf.export.slurm.throttles import OF_QUEUES as LIMITS
from qconf.export.types import with_own_types

LONGEST_NAME = 64  #: characters of a queue's name that Slurm's tools show
OF_QUEUES = "qos.sacctmgr"  #: file of queue limits
SHARES = "shares.sacctmgr"
CHECK = "check "
HEAD = ("PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C")  #: head of the cron file


@dataclass(frozen=True)
class Desired:
    """The parts of a configuration's Slurm settings; a part that Slurm cannot express is a `Refused`."""

    config: SiteConfig  #: with separate types of nodes for each partition
    parts: Mapping[str, Any]

    @classmethod
    def of(cls, given: SiteConfig, nodes: Sequence[Node] | None) -> Desired:
        """Compute all parts of a configuration."""
        own = _tried(lambda: with_own_types(given, nodes))
        config = given if isinstance(own, Refused) else own
        checks = {f"{CHECK}{n}": Refused(reason) for n, reason in enumerate(reasons(config, nodes))}
        checks |= {f"{CHECK}types": own} if isinstance(own, Refused) else {}
        refused = next(iter(checks.values()), None)
        parts: dict[str, Callable[[], Any]] = {
            "partitions": lambda: queues.partitions(config, nodes),
            "order": lambda: settings.order_settings(config),
            "points": lambda: points(config),
            "scheduler": lambda: {"SchedulerType": "sched/backfill" if config.backfill else "sched/builtin"},
            "preemption": lambda: queues.preemption(config),
            "added": lambda: settings.added(config),
            "parameters": lambda: settings.backfilling(config),
            "routes": lambda: routes(config, nodes),
            "bounds": lambda: {queue.name: (queue.cores, queues.whole_minutes(queue)) for queue in config.queues},
            hours.FILE: lambda: hours.cron(config, set_limits, HEAD) if config.hours else "",
            shortpools.FILE: lambda: shortpools.script(config, queues.POOL) if config.shortpools else "",
        }
        parts |= {name: partial(lines, config) for name, lines in STATEMENTS.items()}
        return cls(config, {**checks, **{name: _tried(part, refused) for name, part in parts.items()}})

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - of each part its own
        """Return a part. Raises ExportError."""
        found = self.parts[name]
        if isinstance(found, Refused):
            raise ExportError(found.reason)
        return found

    def reasons(self) -> list[str]:
        """Return the reasons why it cannot be exported, those of checks first; empty if it can."""
        checks_first = sorted(self.parts, key=lambda name: not name.startswith(CHECK))
        return [part.reason for name in checks_first if isinstance(part := self.parts[name], Refused)]


@dataclass(frozen=True)
class Refused:
    """The reason why Slurm cannot express a part."""

    reason: str


def _tried(part: Callable[[], Any], refused: Refused | None = None) -> Any:  # noqa: ANN401 - of each part its own
    """Return a part, or a `Refused`; if `refused` is known, other failures to compute the part are replaced by it."""
    try:
        return part()
    except ExportError as error:
        return Refused(str(error))
    except (LookupError, StopIteration):
        if refused is None:
            raise
        return refused


def points(config: SiteConfig) -> object:
    """Return the data by which job_submit.lua changes priorities, None if it does not."""
    order = Multifactor.of(config.order)
    if order is None:
        return None
    found = settings.places(config, order)
    some = order.most or order.expected or any(found.values())
    return (order.classes, order.sizes, found, order.expected) if some else None


def routes(config: SiteConfig, nodes: Sequence[Node] | None) -> object:
    """Return the routing data of job_submit.lua: bounds that partitions cannot express, pool, parts, reservations."""
    lines = queues.partitions(config, nodes)
    bounds = {
        queue.name: (None if "MinNodes" in lines[queue.name] else queue.cores, queues.whole_minutes(queue)[0])
        for queue in config.queues
    }
    return bounds, config.pool_cores, queues.rooms(config), shortpools.kept(config, queues.POOL)


def reasons(config: SiteConfig, nodes: Sequence[Node] | None) -> list[str]:
    """Return the reasons why Slurm cannot express a configuration."""
    order, weight = Multifactor.of(config.order), qos.weight(config)
    others = order or Multifactor()
    values = {
        "order": order,
        "own": [queues.qos_of(name) for name in config.names],
        "name": throttles.NAME.pattern,
        "taken": [queues.qos_of(queue.name) for queue in config.queues if queues.is_limited(config, queue)],
        "both": qos.both(config),
        "qos_weight": weight,
        "points": 0 if weight is None else weight + others.max_age + others.most + others.bonus + others.fair_share,
        "most": MOST,
        "nodes": nodes,
        "preempted": queues.becomes(config),
        "modes": queues.MODES,
    }
    found = rendering.notes("slurm", "refused", config=config, **values)
    found += rendering.notes("", "refused", config=placed(config), system="Slurm", kinds=[*queues.ACCESS])
    for check in (hours.refuse, _refuse_names, queues.refuse):
        refused = _tried(partial(check, config))
        found += [refused.reason] if isinstance(refused, Refused) else []
    return found


def differences(config: SiteConfig) -> list[str]:
    """Return the differences between Slurm and the simulator."""
    values = {
        "order": Multifactor.of(config.order),
        "longest_window": settings.LONGEST_WINDOW * 60,
        "longest_age": settings.LONGEST_AGE,
        "calc_minutes": settings.calc_minutes(config),
        "uncharged": list(dict.fromkeys(tres for queue in config.queues for tres in left_out(queue.billing))),
        "requeued": queues.preempted(config, "requeue"),
        "suspended": queues.preempted(config, "suspend"),
        "throttled": any(f"qos {throttles.QOS}" in line for line in throttles.statements(config)),
        "tres": [throttles.tres(name) for name in throttles.limited(config)],
        "core_seconds": any((throttle.max_run_core_seconds or 0) % 60 for throttle in config.throttles),
        "qos_weight": qos.weight(config),
    }
    common = rendering.notes("", "common", system="Slurm", config=placed(config))
    of_kept = rendering.notes("slurm", "kept", rooms=queues.rooms(config))
    return [*rendering.notes("slurm", "differences", config=config, **values), *common, *of_kept]


def placed(config: SiteConfig) -> SiteConfig:
    """Return the configuration with pool placement "pool", since a job runs in one partition in Slurm."""
    if config.pool is None or config.pool.placement == "pool":
        return config
    return config.replace(pool=config.pool.model_copy(update={"placement": "pool"}))


def _refuse_names(config: SiteConfig) -> None:
    for name in config.names:
        check_queue(name, system="Slurm", most=LONGEST_NAME)


def _of_queues(config: SiteConfig) -> Iterator[str]:
    """Yield the sacctmgr lines for limits of queues; -1 removes an earlier limit."""
    for queue in config.queues:
        if queues.is_limited(config, queue):
            limits = {word: getattr(queue, name) for name, word in LIMITS.items()}
            yield f"add qos {queues.qos_of(queue.name)}"
            for word, limit in limits.items():
                yield f"modify qos {queues.qos_of(queue.name)} set {word}={-1 if limit is None else limit}"
            for word, limit in throttles.of_queue(config, queue.name):
                yield f"modify qos {queues.qos_of(queue.name)} set {word}={limit}"


#: File of sacctmgr lines -> function that returns its lines.
STATEMENTS: dict[str, Callable[[SiteConfig], list[str]]] = {
    OF_QUEUES: lambda config: [*_of_queues(config)],
    throttles.FILE: throttles.statements,
    qos.FILE: qos.statements,
    SHARES: fairshare.statements,
}


def set_limits(queue: QueueConfig, limits: Mapping[str, int | None]) -> list[str]:
    """Return the commands that set limits of a queue; None removes a limit."""
    words = " ".join(f"{LIMITS[name]}={-1 if most is None else most}" for name, most in limits.items())
    return [f"sacctmgr --immediate modify qos {queues.qos_of(queue.name)} set {words} > /dev/null"]
