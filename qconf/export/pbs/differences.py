"""List the differences between the simulator and PBS for a configuration; every plan shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from qconf.config import QueueConfig, SiteConfig, format_clock, lost_job
from qconf.export import rendering
from qconf.export.nodes import Node
from qconf.export.pbs import qos
from qconf.export.pbs.order import formula, present_formula
from qconf.export.pbs.server import Scheduler, Server
from qconf.export.pbs.types import of_sharing
from qconf.export.priorities import Priorities
from qconf.hosts import expand

if TYPE_CHECKING:
    from qconf.export.pbs import Binding

#: Setting of the scheduler, its default prefix of queue names, and when jobs of such queues start.
_PREFIXES = (
    ("primetime_prefix", "p_", "prime time"),
    ("nonprimetime_prefix", "np_", "non-prime time"),
    ("dedicated_prefix", "ded", "dedicated time"),
)


def notes(
    config: SiteConfig,
    binding: Binding,
    priorities: Priorities,
    server: Server | None = None,
    scheduler: Scheduler | None = None,
    nodes: Sequence[Node] = (),
) -> tuple[str, ...]:
    """Return the differences that follow from the configuration, and the state of server, scheduler and nodes."""
    cores, walltime = envelope(config.queues)
    values = {
        "binding": binding,
        "resources": (server or Server()).resources,
        "qos_hook": qos.HOOK if qos.needs_hook(config) else "",
        "gap": lost_job([QueueConfig(name="envelope", cores=cores, walltime=walltime)], config.queues),
    }
    return (
        *formula(config, priorities)[1],
        *prime_time(config, scheduler or Scheduler()),
        *_nodes_alone(config, nodes),
        *rendering.notes("pbs", "differences", config=config, **values),
        *rendering.notes("", "common", system="PBS", config=config),
    )


def _nodes_alone(config: SiteConfig, nodes: Sequence[Node]) -> list[str]:
    """Return notes on types whose nodes have, or may have, another `sharing` than `exclusive` requires."""
    sharing = {node.name: node.exclusive for node in nodes if node.resources}
    known = {
        each.name: {sharing[name] for name in expand(each.hosts or "") if name in sharing} for each in config.nodes
    }
    shared = [each.name for each in config.nodes if not (each.exclusive or known[each.name])]
    otherwise = [
        (each.name, "default_excl" if each.exclusive else "default_shared")
        for each in config.nodes
        if known[each.name] != {each.exclusive} and (known[each.name] or each.exclusive)
    ]
    found = rendering.notes("pbs", "nodes_alone", config=config, shared=shared, otherwise=otherwise)
    return [*found, *(of_sharing(nodes) if config.nodes else ())]


def prime_time(config: SiteConfig, scheduler: Scheduler) -> list[str]:
    """Return notes on queues whose name makes PBS start their jobs only at some times, and on prime time."""
    prefixes = []
    for setting, shipped, when in _PREFIXES:
        prefix = scheduler.value(setting) or shipped
        if names := [name for name in config.names if name.startswith(prefix)]:
            prefixes.append((names, when, prefix, setting))
    return rendering.notes("pbs", "prime_time", prefixes=prefixes, border=scheduler.on("backfill_prime"))


def sorting(text: str | None, server: Server | None, scheduler: Scheduler | None, *, changed: bool) -> list[str]:
    """Return notes on other settings that sort or hold waiting jobs now, and on what becomes of them.

    `text` is the new formula; `changed` is whether the order changes.
    """
    server = server or Server()
    values = {
        "text": text,
        "threshold": server.scheduler.get("job_sort_formula_threshold"),
        "kept": not changed or text == present_formula(server),
        "keys": (scheduler or Scheduler()).value("job_sort_key") if changed else None,
    }
    return rendering.notes("pbs", "sorting", **values)


def unroutable(config: SiteConfig, default: int | None) -> Iterator[str]:
    """Yield notes on jobs without a walltime that no queue admits with the server's `default` (seconds)."""
    for width in sorted({edge for queue in config.queues for edge in (queue.cores[0], queue.cores[1] + 1)}):
        takers = [queue.name for queue in config.queues if queue.admits(width, None)]
        if default and takers and not any(queue.admits(width, default) for queue in config.queues):
            yield (
                f"a job of {width} cores that names no walltime is given {format_clock(default)} "
                f"(resources_default.walltime), with which no queue takes it ({', '.join(takers)} would by its cores)"
            )


def envelope(queues: Sequence[QueueConfig]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the smallest ranges of cores and walltimes that contain those of all `queues`."""
    least, most = zip(*(queue.cores for queue in queues), strict=True)
    above, upto = zip(*(queue.walltime for queue in queues), strict=True)
    return (min(least), max(most)), (min(above), max(upto))
