"""Candidates of `auto` other than orders: factors of requests, running limits, shortpools, boundaries, partitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsim.model.formula import of_requests
from qconf.config import PoolConfig, QueueConfig, ShortpoolConfig, SiteConfig, ThrottleConfig, format_duration
from qconf.config.models import DAYS, Settings
from qconf.evaluation.period import NotApplicableError, TrainingSet, UnroutableError
from qconf.strategies.nodes import off_and_on_gpu_nodes, without_gpus
from qconf.strategies.partitioning.sizes import partition_space, proportional
from qconf.strategies.partitioning.split_merge import free_name

POOLS = (0.0, 0.25, 0.5, 0.75, 0.9)  # fractions of the machine in the common pool; 0: partitions only
CAPS = (0.6, 0.8)  # limits on one queue's running jobs, fractions of the machine
SHORTPOOLS = (0.0625, 0.125, 0.25)  # fractions of the machine reserved for short jobs
SHORT = (3600, 7200, 14400)  # longest walltimes of short jobs, seconds
FEW = 0.05  # least fraction of jobs on each side of a distinction that is tried
REQUEST_EXPONENTS = (-1.0, -0.5, 0.5, 1.0)  # exponents of the factors for GPUs and memory; above 0: jobs go earlier
GPU_LIMITS = tuple(3600 * hours for hours in (1, 2, 4, 8, 16))  # walltimes up to which jobs may use GPU nodes, seconds
KEPT_PARTS = (0.25, 0.5, 0.75)  # fractions of GPU nodes' cores that jobs without GPUs leave to others
DEMANDING = 0.1  # fraction of all core-seconds from which a queue is worth a limit or a split


def by_requests(training: TrainingSet) -> Iterator[tuple[str, str]]:
    """Yield (name, factor) for an order by GPUs and by memory, if the machine has them and jobs differ in them."""
    nodes, workload = training.base.nodes, training.workload
    gpus, memory = of_requests(workload.requests)[:, workload.request]
    node = max((each.memory for each in nodes), default=0) * 1024  # KiB, as formulas have it
    for what, has, amount, term in (
        ("GPUs", any(each.gpus for each in nodes), gpus, "1 + ngpus"),
        ("memory", bool(node), memory, f"1 + mem / {node}"),
    ):
        if has and (amount > 0).mean() >= FEW and np.ptp(amount):
            for exponent in REQUEST_EXPONENTS:
                when = "earlier" if exponent > 0 else "later"
                yield f"jobs with {what} {when}, by power {abs(exponent):g}", f"({term}) ** {exponent:g}"


def on_gpu_nodes(training: TrainingSet, chosen: SiteConfig) -> Iterator[tuple[str, SiteConfig]]:
    """Yield (name, configuration) with GPU nodes opened or closed to one queue in which no job uses GPUs.

    Or opened to its jobs up to a walltime, in a queue of their own, unless it has limits. Shared machines only.
    """
    if chosen.mode != "shared":
        return
    workload = training.workload
    for q in np.flatnonzero(without_gpus(training)).tolist():
        queue, members = chosen.queues[q], workload.queue == q
        both = off_and_on_gpu_nodes(chosen, queue)
        if both is None:
            continue
        plain, every = both
        is_open = queue.nodes == every.nodes
        found: list[tuple[str, tuple[QueueConfig, ...]]] = [
            (f"{queue.name} on no GPU nodes" if is_open else f"{queue.name} on GPU nodes too", (both[not is_open],))
        ]
        shares = {float((workload.walltime[members] <= limit).mean()): limit for limit in reversed(GPU_LIMITS)}
        for share, limit in reversed(shares.items()):
            low, high = queue.walltime
            if low < limit < high and FEW <= share <= 1 - FEW and not queue.limited:
                what = f"{queue.name} on GPU nodes up to {format_duration(limit)}"
                shorter = {"name": free_name(queue.name, chosen.names), "walltime": (low, limit)}
                parts = every.model_copy(update=shorter), plain.model_copy(update={"walltime": (limit, high)})
                found.append((what, parts))
        for what, replaced in found:
            config = _with(chosen, q, *replaced)
            if _keeps_together(training, config, members, [part.name for part in replaced]):
                yield what, config


def keeping_cores(training: TrainingSet, chosen: SiteConfig) -> Iterator[tuple[str, SiteConfig]]:
    """Yield (name, configuration) in which jobs without GPUs leave some cores of GPU nodes to others."""
    both = [off_and_on_gpu_nodes(chosen, queue) for queue in chosen.queues]
    are_open = [
        each is not None and queue.nodes == each[1].nodes for queue, each in zip(chosen.queues, both, strict=True)
    ]
    for part in KEPT_PARTS if chosen.mode == "shared" and (without_gpus(training) & are_open).any() else ():
        kept = [int(part * each.cores / each.gpus) if each.gpus and not each.exclusive else 0 for each in chosen.nodes]
        nodes = tuple(
            each.model_copy(update={"kept_per_gpu": cores}) for each, cores in zip(chosen.nodes, kept, strict=True)
        )
        if nodes != chosen.nodes and any(kept):
            config = chosen.replace(nodes=nodes)
            counts = " or ".join(map(str, sorted({cores for cores in kept if cores})))
            if _keeps_together(training, config, np.ones(len(training), dtype=np.bool_), chosen.names):
                yield f"jobs without GPUs leave {counts} cores for each GPU", config


def _keeps_together(
    training: TrainingSet, config: SiteConfig, members: NDArray[np.bool_], names: Sequence[str]
) -> bool:
    """Whether all jobs still have a queue, and the masked ones are in queues of these names."""
    try:
        queue = training.period.routed(config).queue
    except UnroutableError:
        return False
    return bool(np.isin(queue[members], [config.names.index(name) for name in names]).all())


def limited(training: TrainingSet, chosen: SiteConfig) -> Iterator[tuple[str, SiteConfig]]:
    """Yield (name, configuration) with fewer running cores, or GPUs, for one queue of a shared machine.

    GPUs are limited if two or more queues use them.
    """
    workload = training.workload
    for q in _demanding(chosen, training.period.core_seconds):
        queue = chosen.queues[q]
        for cap in CAPS:
            cores = _capped(chosen, cap)
            if training.period.widest[q] <= cores < (queue.max_run_cores or chosen.machine.cores):
                config = _with(chosen, q, queue.model_copy(update={"max_run_cores": cores}))
                yield f"{queue.name} on at most {100 * cap:.0f} % of the cores", config
    taken, gpus = workload.amount("gpus"), sum(each.count * each.gpus for each in chosen.nodes)
    work = np.bincount(workload.queue, taken * workload.effective_runtime, minlength=len(chosen.queues))
    for q in _demanding(chosen, work) if np.count_nonzero(work) > 1 else ():
        name = chosen.queues[q].name
        own = next((each for each in chosen.throttles if each.is_of_queue(name)), ThrottleConfig(queue=name))
        others = tuple(each for each in chosen.throttles if each != own)
        for cap in CAPS:
            most = int(cap * gpus)
            if taken[workload.queue == q].max() <= most < own.max_run_resources.get("gpus", gpus):
                limits = Settings({**own.max_run_resources, "gpus": most})
                throttle = own.model_copy(update={"max_run_resources": limits})
                what = f"{name} on at most {100 * cap:.0f} % of the GPUs"
                yield what, chosen.replace(throttles=(*others, throttle))


def kept_for_short(training: TrainingSet, chosen: SiteConfig) -> Iterator[tuple[str, SiteConfig]]:
    """Yield (name, configuration) with a shortpool in working hours or always, or the site's own changed."""
    walltime, machine = training.workload.walltime, chosen.machine.cores
    if chosen.shortpools:
        yield "no shortpool", chosen.replace(shortpools=())
    for factor in (0.5, 2):
        sizes = [max(1, int(factor * each.cores) // chosen.grid) * chosen.grid for each in training.base.shortpools]
        if sizes and max(sizes) <= machine:
            pools = zip(training.base.shortpools, sizes, strict=True)
            found = tuple(each.model_copy(update={"cores": size}) for each, size in pools)
            yield f"shortpools of {' and '.join(map(str, sizes))} cores", chosen.replace(shortpools=found)
    for most in SHORT:
        if not FEW <= (walltime <= most).mean() <= 1 - FEW:
            continue
        for share in SHORTPOOLS:
            if cores := _capped(chosen, share):
                always = ShortpoolConfig(cores=cores, walltime=most)
                working = ShortpoolConfig(cores=cores, walltime=most, days=DAYS[:5], begin="08:00", end="18:00")
                for pool, when in ((working, "in working hours"), (always, "always")):
                    what = f"{cores} cores kept {when} for jobs of up to {format_duration(most)}"
                    yield what, chosen.replace(shortpools=(pool,))


def split(training: TrainingSet, chosen: SiteConfig) -> Iterator[tuple[str, SiteConfig]]:
    """Yield (name, configuration) with one queue split at half its longest walltime, and its longer jobs limited.

    Shared machines only. A queue with limits is not split, since each part would count its own jobs.
    """
    w = training.workload
    for q in _demanding(chosen, training.period.core_seconds):
        queue = chosen.queues[q]
        low, high = queue.walltime[0], min(queue.walltime[1], int(w.walltime[w.queue == q].max()))
        middle = (low + high) // 2
        long = (w.queue == q) & (w.walltime > middle)
        if queue.limited or not low < middle < high or long.all() or not long.any():
            continue
        name = free_name(queue.name, chosen.names)
        shorter = queue.model_copy(update={"name": name, "walltime": (low, middle), "partition": 0})
        for cap in CAPS:
            cores = _capped(chosen, cap)
            if cores >= w.cores[long].max():
                longer = queue.model_copy(update={"walltime": (middle, queue.walltime[1]), "max_run_cores": cores})
                above = f"jobs of {queue.name} above {middle / 3600:g} h in a queue of their own"
                yield f"{above} on at most {100 * cap:.0f} % of the cores", _with(chosen, q, shorter, longer)


def _demanding(chosen: SiteConfig, work: NDArray[Any]) -> list[int]:
    """Return the queues of a shared machine that have enough work to be worth a limit or a split."""
    return np.flatnonzero(work > DEMANDING * work.sum()).tolist() if chosen.mode == "shared" else []


def _capped(chosen: SiteConfig, cap: float) -> int:
    """Return a fraction of the machine in whole units of cores."""
    return int(cap * chosen.machine.cores) // chosen.grid * chosen.grid


def _with(chosen: SiteConfig, q: int, *queues: QueueConfig) -> SiteConfig:
    return chosen.with_queues((*chosen.queues[:q], *queues, *chosen.queues[q + 1 :]))


def divided(training: TrainingSet) -> Iterator[tuple[str, SiteConfig]]:
    """Yield (name, configuration) with partitions in proportion to work, and pools of several sizes and thresholds."""
    try:
        space = partition_space(training)
    except NotApplicableError:
        return
    base, shares = training.base, proportional(space)
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
