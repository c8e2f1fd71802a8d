"""The parts of a configuration that an export can change alone (`--only`)."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from qconf.errors import ExportError

if TYPE_CHECKING:
    from qconf.config import SiteConfig

#: Limits of a queue, each with the name of the counted amount and the scope ("" for all its jobs).
LIMITS = {
    "max_run": ("max_run", ""),
    "max_run_cores": ("max_run_cores", ""),
    "max_user_run": ("max_run", "user"),
    "max_user_cores": ("max_run_cores", "user"),
}
#: Part -> (fields of the configuration, fields of each queue).
PARTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "order": (("order", "fairshare", "shares", "priority_calc_period"), ("starvation",)),
    "priorities": ((), ("priority",)),
    "limits": (("throttles", "hours", "qos"), (*LIMITS, "billing")),
    "queues": (("routing",), ("cores", "walltime", "access")),
    "partitions": (("mode", "pool", "nodes"), ("partition", "partition_nodes", "reservation", "nodes", "exclusive")),
    "reservations": (
        ("backfill", "reserve", "reserve_after", "reservation_depth", "held_jobs", "shortpools", "downtime"),
        (),
    ),
    "preemption": ((), ("tier", "preempted")),
}


def only(config: SiteConfig, base: SiteConfig | None, parts: Collection[str]) -> SiteConfig:
    """Return `base` with these parts of `config`, or `config` if there are none. Raises ExportError without `base`."""
    if not parts:
        return config
    if base is None:
        raise ExportError("--only changes a part of what a server runs: give that with --current")
    fields = [name for part in parts for name in PARTS[part][0]]
    of_queues = [name for part in parts for name in PARTS[part][1]]
    there = {queue.name: queue for queue in base.queues}
    wanted = {queue.name: queue for queue in config.queues}
    names = wanted if "queues" in parts else there
    queues = tuple(
        there[name].model_copy(update={each: getattr(wanted[name], each) for each in of_queues})
        if name in there and name in wanted
        else wanted.get(name, there.get(name))
        for name in names
    )
    changes: dict[str, object] = {name: getattr(config, name) for name in fields}
    return base.replace(queues=queues, machine=config.machine, **changes)
