"""The configurations that `auto` tries: an order, running limits, queue boundaries, partitions and pools."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from qconf.config import PoolConfig, QueueConfig, SiteConfig
from qconf.evaluation.period import NotApplicableError, Period, TrainingSet
from qconf.strategies.partitioning.sizes import partition_space, proportional
from qconf.strategies.partitioning.split_merge import free_name

POOLS = (0.0, 0.25, 0.5, 0.75, 0.9)  # shares of the machine in the common pool; 0 is partitions alone
CAPS = (0.6, 0.8)  # shares of the machine that one queue's running jobs may have
DEMANDING = 0.1  # share of all core-seconds from which a queue is worth a limit or a split


def ordered(
    period: Period, order: str, priorities: NDArray[np.float64] | None = None, reserve_after: int = 0
) -> SiteConfig:
    """Return the base queues on the shared machine, ordered by a formula; given `priorities` are factors of it.

    Everything fixed stays unchanged.
    """
    base, queues = period.base, []
    for i, queue in enumerate(base.queues):
        update: dict[str, float | None] = {"starvation": None, "max_run": None, "max_run_cores": None, "partition": 0}
        if priorities is not None:
            update["priority"] = float(priorities[i])
        free = {field: value for field, value in update.items() if not period.is_fixed(f"queues.{queue.name}.{field}")}
        queues.append(queue.model_copy(update=free))
    return base.replace(
        queues=tuple(queues),
        mode="shared",
        order=with_priorities(order, priorities),
        backfill=True,
        reserve_after=base.unless_fixed(reserve_after),
        pool=None,
    )


def with_priorities(order: str, priorities: NDArray[np.float64] | None) -> str:
    """Multiply a formula by the queues' priorities, if there are any."""
    return order if priorities is None else f"queue_priority * {order}"


def limited(training: TrainingSet, chosen: SiteConfig) -> Iterator[tuple[str, SiteConfig]]:
    """Yield candidates that are more complicated than an order of the waiting list, each with a name."""
    if chosen.mode != "shared":
        return
    base = training.base
    kept = tuple(
        queue.model_copy(update={name: getattr(old, name) for name in ("starvation", "max_run", "max_run_cores")})
        for queue, old in zip(chosen.queues, base.queues, strict=True)
    )
    if kept != chosen.queues:
        yield "the present running limits and starvation", chosen.replace(queues=kept)
    if base.reservation_delay and base.reservation_delay != chosen.reservation_delay:
        yield "the present reservation delay", chosen.replace(reserve_after=base.reservation_delay)
    demanding = np.flatnonzero(training.period.core_seconds > DEMANDING * training.period.core_seconds.sum())
    for q in demanding:
        for cap in CAPS:
            yield from _capped(training, chosen, int(q), cap)
        yield from _split(training, chosen, int(q))


def _with(chosen: SiteConfig, q: int, *queues: QueueConfig) -> SiteConfig:
    return chosen.with_queues((*chosen.queues[:q], *queues, *chosen.queues[q + 1 :]))


def _capped(training: TrainingSet, chosen: SiteConfig, q: int, cap: float) -> Iterator[tuple[str, SiteConfig]]:
    """Limit the cores that the running jobs of one queue may have."""
    queue, cores = chosen.queues[q], int(cap * chosen.machine.cores) // chosen.grid * chosen.grid
    if training.period.widest[q] <= cores < (queue.max_run_cores or chosen.machine.cores):
        yield (
            f"{queue.name} on at most {100 * cap:.0f} % of the cores",
            _with(chosen, q, queue.model_copy(update={"max_run_cores": cores})),
        )


def _split(training: TrainingSet, chosen: SiteConfig, q: int) -> Iterator[tuple[str, SiteConfig]]:
    """Split one queue at half its longest walltime, and limit the cores of the longer jobs.

    A queue with limits of its own is not split: each part would count its own.
    """
    queue, w = chosen.queues[q], training.workload
    if queue.limited:
        return
    low, high = queue.walltime[0], min(queue.walltime[1], int(w.walltime[w.queue == q].max()))
    middle = (low + high) // 2
    long = (w.queue == q) & (w.walltime > middle)
    if not low < middle < high or long.all() or not long.any():
        return
    shorter = queue.model_copy(
        update={"name": free_name(queue.name, chosen.names), "walltime": (low, middle), "partition": 0}
    )
    for cap in CAPS:
        cores = int(cap * chosen.machine.cores) // chosen.grid * chosen.grid
        if cores >= w.cores[long].max():
            longer = queue.model_copy(update={"walltime": (middle, queue.walltime[1]), "max_run_cores": cores})
            above = f"jobs of {queue.name} above {middle / 3600:g} h in a queue of their own"
            yield f"{above} on at most {100 * cap:.0f} % of the cores", _with(chosen, q, shorter, longer)


def divided(training: TrainingSet) -> Iterator[tuple[str, SiteConfig]]:
    """Yield partitions in proportion to work, with pools of several sizes that jobs enter late or at once."""
    try:
        space = partition_space(training)
    except NotApplicableError:
        return
    base, shares = training.base, proportional(training, space)
    for share in POOLS:
        sizes = space.cores(np.floor(shares * (1 - share)).astype(np.int64), len(base.queues))
        if not share:
            yield "partitions in proportion to work", base.with_partitions(sizes, backfill=True)
            continue
        cores = base.machine.cores - sum(sizes)
        for threshold, when in ((None, ""), (0.0, ", entered at once")):
            pool = PoolConfig(cores=cores, entry="move", placement="pool", threshold=threshold)
            yield (
                f"a pool of {100 * share:.0f} %{when}",
                base.with_partitions(sizes, mode="hybrid", order="fcfs", backfill=True, pool=pool),
            )
