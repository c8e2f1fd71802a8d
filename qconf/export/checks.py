"""What every batch system has in common: jobs that it would never start, and sizes that play no part."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from qconf.config import QueueConfig, SiteConfig
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


def common_notes(config: SiteConfig, system: str) -> Iterator[str]:
    """Name the jobs that a batch system lets in and never starts, and sizes that are not exported."""
    for queue in config.queues:
        if config.widest(queue) > config.reach(queue):
            yield _never_starts(config, queue, system)
    if config.nodes:
        simulated = {
            "nodes": "It places chunks on the first of them that have room.",
            "queue_nodes": "It places chunks as Slurm does, on nodes that they fill best.",
        }.get(
            config.reserve,
            f"{system} places each chunk on a node, the simulator counts the cores, GPUs and memory of each type "
            f"together; with `reserve: {'queue_nodes' if system == 'Slurm' else 'nodes'}` it places chunks, too.",
        )
        yield (
            "Types of nodes: what they have stays as it is, and which of them a job takes first; the simulator goes by "
            f"the order of the types. {simulated} Routing goes by size alone: where queues of one size are for "
            "different nodes, jobs name theirs."
        )
    if config.mode == "shared" and any(queue.partition for queue in config.queues):
        yield "Partition sizes are not exported: the mode is shared."


def _never_starts(config: SiteConfig, queue: QueueConfig, system: str) -> str:
    """Name the jobs that a queue lets in and that never start, and the reason."""
    reach = config.reach(queue)
    if reach in (queue.max_run_cores, queue.max_user_cores):
        reason = "the queue lets them in, and its limit of running cores is below them."
    elif queue.nodes is not None:
        reason = "the queue lets them in, and its nodes have no more."
    else:
        reason = (
            "neither partition nor pool holds them, and the simulator's reservation over all partitions is for queues "
            "with `reservation: true`."
        )
    return f"Jobs of {queue.name} wider than {reach} cores never start in {system}: {reason}"
