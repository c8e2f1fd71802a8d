"""What every batch system has in common: jobs that it would never start."""

from __future__ import annotations

from collections.abc import Collection

from qconf.config import SiteConfig
from qconf.errors import ExportError


def refuse_idle(config: SiteConfig, system: str) -> None:
    """Raise ExportError where a batch system would never start any job of a queue, or would start others."""
    for queue in config.queues:
        narrowest = -(-queue.cores[0] // config.grid) * config.grid
        if narrowest > config.reach(queue):
            parts = f"its partition of {queue.partition} cores" + (
                f" and the pool of {config.pool_cores} are each" if config.pool_cores else " is"
            )
            if queue.nodes is not None and not config.pool_cores:
                parts = f"its nodes ({', '.join(queue.nodes)}) of {config.reach(queue)} cores together are"
            raise ExportError(
                f"queue {queue.name}: {parts} narrower than its narrowest job ({narrowest}), and in {system} such a "
                "job would never start"
            )


def refuse_access(config: SiteConfig, system: str, kinds: Collection[str]) -> None:
    """Raise ExportError where the access of a queue has a list of a kind that a batch system has not."""
    for queue in config.queues:
        given = [] if queue.access is None else [kind for kind, names in queue.access if names is not None]
        if other := [kind for kind in given if kind not in kinds]:
            raise ExportError(
                f"queue {queue.name}: {system} has no list of {' or '.join(other)} for a queue, which its access has; "
                f"it has {', '.join(kinds)}"
            )
