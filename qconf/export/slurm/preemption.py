"""Queues whose jobs preempt those of others, as partitions: ``PreemptType=preempt/partition_prio``.

A partition of a higher PriorityTier goes before the others and preempts their jobs, as the PreemptMode of theirs says.
"""

from __future__ import annotations

from qconf.config import SiteConfig

TYPE = "preempt/partition_prio"
MODES = {"off": "OFF", "suspend": "SUSPEND", "requeue": "REQUEUE"}  #: PreemptMode of a partition, by `preempted`


def tiers(config: SiteConfig) -> dict[str, int]:
    """Return the PriorityTier of each queue: the rank of its tier, from 1."""
    ranks = {tier: rank for rank, tier in enumerate(sorted({queue.tier for queue in config.queues}), start=1)}
    return {queue.name: ranks[queue.tier] for queue in config.queues}


def modes(config: SiteConfig) -> dict[str, str]:
    """Return the PreemptMode of each queue; empty where all have one tier."""
    found = becomes(config)
    return {queue.name: MODES[found.get(queue.name, "off")] for queue in config.queues} if config.has_tiers else {}


def settings(config: SiteConfig) -> dict[str, str]:
    """Write the words of slurm.conf; suspended jobs go on by the gang scheduler."""
    if not config.has_tiers:
        return {}
    return {"PreemptType": TYPE, "PreemptMode": "SUSPEND,GANG" if preempted(config, "suspend") else "REQUEUE"}


def preempted(config: SiteConfig, mode: str) -> list[str]:
    """Name the queues whose jobs are suspended, say."""
    return [name for name, each in becomes(config).items() if each == mode]


def becomes(config: SiteConfig) -> dict[str, str]:
    """Return what becomes of the jobs of each queue that jobs of another one may preempt."""
    highest = max(queue.tier for queue in config.queues)
    return {queue.name: queue.preempted for queue in config.queues if queue.tier < highest}
