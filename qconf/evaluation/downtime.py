"""Downtimes of a configuration as windows of a period: in seconds of its log, on partitions of what is simulated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from parsim import Window
from qconf.config import SiteConfig
from qconf.config.models import Downtime
from qconf.history.times import instant, zone


@dataclass(frozen=True)
class Outage:
    """A downtime in the seconds of a log."""

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
        for each in config.downtime
    )


def windows(found: Sequence[Outage], config: SiteConfig, begin: int, users: Sequence[str] = ()) -> Iterator[Window]:
    """Yield what has not ended by `begin`, under a configuration; a partition that it lacks is of the machine.

    `users` are the names of the users of jobs by number. Where users cannot be told apart, all are kept off; and where
    queues cannot, on partitions of several types of nodes.
    """
    system = config.system()
    apart = not (system.reserves_for_queues or system.reserves_for_many)
    names = system.partition_names
    nodes = sum(-(-cores // config.machine.cores_per_node) for cores in system.partition_cores)
    for_queues = system.is_whole or not system.node_types
    if system.node_types:
        nodes = sum(each.nodes for each in system.node_types)
    for each in found:
        if each.end > begin:
            of = each.of
            yield Window(
                each.begin,
                each.end,
                of.cores,
                names.index(of.partition) if of.partition in names else None,
                [node for node in of.nodes if node < nodes],
                each.known_from,
                of.known_end,
                config.names.index(of.queue) if of.queue in config.names and for_queues else None,
                [number for number, name in enumerate(users) if name in of.users] if apart else [],
                node_types=of.types,
            )
