"""Whether a site may have a configuration: what it fixes, and jobs that could never run."""

from __future__ import annotations

from collections.abc import Collection

from parsim.system import LIMITS
from qconf.config import PoolConfig, QueueConfig, SiteConfig


def never_start(base: SiteConfig, other: SiteConfig) -> list[str]:
    """Say which jobs that the base runs would wait for ever in a batch system that holds `other`.

    A job stays in its queue while that admits it, else it goes to any that does.
    """
    kept = {queue.name: queue for queue in other.queues}

    def stays(old: QueueConfig) -> bool:
        return old.name in kept and _within(old, kept[old.name])

    found = []
    for queue in other.queues:
        taken = [
            min(base.widest(old), base.reach(old))
            for old in base.queues
            if old.name == queue.name or (not stays(old) and _meet(old, queue))
        ]
        if min(other.widest(queue), max(taken, default=0)) > other.reach(queue):
            found.append(f"jobs of {queue.name} wider than {other.reach(queue)} cores would never start")
    return found


def fixed_violations(base: SiteConfig, other: SiteConfig, binding: Collection[str] = ()) -> list[str]:
    """List the paths that `other` changes although the base marks them ``fixed``, or they are among `binding` limits.

    Of a queue that is gone, a field counts as kept where every queue that takes its jobs has the same; a limit is
    changed by a second queue that takes its jobs, since each counts its own. What no longer counts is changed too: a
    partition where the machine becomes shared, a priority that a formula does not ask for.
    """
    found = [name for name in ("mode", "order", "backfill") if getattr(base, name) != getattr(other, name)]
    if base.reserve_after != other.reserve_after or (base.reservation_delay and not other.reservation_delay):
        found.append("reserve_after")
    found += [
        f"pool.{name}"
        for name in PoolConfig.model_fields
        if getattr(base.pool, name, None) != getattr(other.pool, name, None)
        or (base.mode == "hybrid") != (other.mode == "hybrid")
    ]
    if base.mode == other.mode == "hybrid" and base.threshold == other.threshold:  # said or not
        found = [path for path in found if path != "pool.threshold"]
    later = {queue.name: queue for queue in other.queues}
    for queue in base.queues:
        if queue.name not in later:
            heirs = [heir for heir in other.queues if _meet(queue, heir)]
            found += [
                f"queues.{queue.name}.{name}"
                for name in type(queue).model_fields
                if not heirs
                or any(
                    getattr(heir, name) != getattr(queue, name) or _silenced(name, queue, base, heir, other)
                    for heir in heirs
                )
            ]
            continue
        beside = any(_comes(base, heir, queue) for heir in other.queues)
        found += [
            f"queues.{queue.name}.{name}"
            for name in type(queue).model_fields
            if getattr(queue, name) != getattr(later[queue.name], name)
            or (beside and name in LIMITS and getattr(queue, name) is not None)
            or _silenced(name, queue, base, later[queue.name], other)
        ]
    return [path for path in found if path in binding or base.is_fixed(path)]


#: Fields of a queue that count under some configurations only.
SOMETIMES = ("partition", "priority")


def _counts(name: str, queue: QueueConfig, config: SiteConfig) -> bool:
    """Tell whether one of `SOMETIMES` makes a difference."""
    if name == "partition":
        return config.mode != "shared"
    return config.uses_priority or (
        queue.reservation and config.mode != "shared"
    )  # these go by submission in any order


def _silenced(name: str, queue: QueueConfig, base: SiteConfig, new: QueueConfig, other: SiteConfig) -> bool:
    """Tell whether what a field says counts in the base and no more."""
    given = name in SOMETIMES and bool(getattr(queue, name))
    return given and _counts(name, queue, base) and not _counts(name, new, other)


def _comes(base: SiteConfig, heir: QueueConfig, queue: QueueConfig) -> bool:
    """Tell whether a new queue takes jobs of one of the base that no other of the base was there to take."""
    if heir.name in base.names or not _meet(queue, heir):
        return False
    return not any(old.name != queue.name and _within(heir, old) for old in base.queues)


def _within(inner: QueueConfig, outer: QueueConfig) -> bool:
    """Tell whether all jobs that could enter the one could enter the other."""
    cores = outer.cores[0] <= inner.cores[0] and inner.cores[1] <= outer.cores[1]
    return cores and outer.walltime[0] <= inner.walltime[0] and inner.walltime[1] <= outer.walltime[1]


def _meet(a: QueueConfig, b: QueueConfig) -> bool:
    """Tell whether a job could enter both."""
    cores = max(a.cores[0], b.cores[0]) <= min(a.cores[1], b.cores[1])
    return cores and max(a.walltime[0], b.walltime[0]) < min(a.walltime[1], b.walltime[1])
