"""Downtimes of a configuration as windows of the simulator: in seconds of a log, on the partitions of a system."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from parsim import System, Window
from qconf.config import SiteConfig
from qconf.config.models import Downtime
from qconf.history.times import instant, zone


@dataclass(frozen=True)
class Outage:
    """A downtime in seconds after a log's epoch."""

    begin: int
    end: int
    known_from: int | None
    of: Downtime


def outages(config: SiteConfig, epoch: int, timezone: str) -> tuple[Outage, ...]:
    """Return the downtimes of a configuration; times without an offset are local to the log."""
    where = zone(timezone)

    def second(text: str) -> int:
        return instant(text, where) - epoch

    return tuple(
        Outage(second(each.begin), second(each.end), None if each.known_from is None else second(each.known_from), each)
        for each in map(config.sized, config.downtime)
    )


def windows(found: Sequence[Outage], system: System, begin: int, users: Sequence[str] = ()) -> Iterator[Window]:
    """Yield the outages that end after `begin` as windows; machine-wide if the system has no such partition.

    `users` names the jobs' users by number. If the simulator cannot tell users apart, an outage of some applies to all.
    """
    apart = system.mode != "multiqueue"
    names, queues = system.partition_names, [queue.name for queue in system.queues]
    nodes = sum(-(-cores // system.cores_per_node) for cores in system.partition_cores)
    size = dict(zip(names, system.partition_cores, strict=True))
    owned = dict(zip(names, system.owned_nodes, strict=True)) if system.node_types else {}
    if system.node_types:
        nodes = sum(each.nodes for each in system.node_types)
    for each in found:
        if each.end > begin:
            of = each.of
            held = owned.get(of.partition or "", {})
            has = (of.cores or 0) <= size.get(of.partition or "", -1)
            has = has and all(held.get(name, 0) >= count for name, count in of.types.items())
            yield Window(
                each.begin,
                each.end,
                of.cores,
                names.index(of.partition) if of.partition and has else None,
                [node for node in of.nodes if node < nodes],
                each.known_from,
                of.known_end,
                queues.index(of.queue) if of.queue in queues else None,
                [number for number, name in enumerate(users) if name in of.users] if apart else [],
                node_types=of.types,
            )
