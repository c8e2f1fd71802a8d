"""`hybrid`: dqr's queues, and a common pool carved out of their partitions for those that have waited long enough.

References
----------
Kondameedi and Vadhiyar, CCGrid 2017, section VI.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from qconf.config import PoolConfig, SiteConfig
from qconf.evaluation.evaluator import CachedEvaluator
from qconf.evaluation.period import TrainingSet
from qconf.strategies import Options, Proposal
from qconf.strategies.partitioning import dp_nlp, dqr
from qconf.strategies.partitioning.carving import AHEAD, PATH, Carving, CarvingSequence, best_of_sequence, carve, judge
from qconf.strategies.partitioning.sizes import Sizes, fixed_partition

FEW_CORES = 5  # the paper's chunk
BOTH_WAYS = "a job waits for its partition and for the pool at once, but PBS holds it in one queue"


def propose(training: TrainingSet, options: Options) -> Proposal:
    """Carve a pool as the paper does; the log shows next to it what the true objective would have carved.

    Where the pool would make jobs wait longer than they do now, and dqr does not, the answer is dqr's.
    """
    first = dqr.propose(training, options)
    config, grid = first.config, training.base.grid
    tau, reference = threshold(training, options.reference)
    chunk = -(-(options.chunk or (grid if training.base.machine.whole_nodes else FEW_CORES)) // grid) * grid

    meter = CachedEvaluator(training, options.workers)
    workloads = meter.workloads(config, first.runtimes)
    system = config.system()
    sizes = np.array([queue.partition for queue in config.queues], dtype=np.int64)
    widest = np.zeros_like(sizes)
    for jobs in workloads:
        np.maximum.at(widest, jobs.queue, jobs.cores)
    original = meter.simulate(workloads, system)
    rules = _rules(training, options, tau)
    pooled = options.carve == "live"
    real = judge(meter, workloads, system, pooled_config(config, sizes, rules).system().pool)
    judged = real if pooled else judge(meter, workloads, system, None)
    ahead = AHEAD * options.workers
    fixed = [name for i, name in enumerate(training.base.names) if fixed_partition(training.base, i)]
    movable = np.array([name not in fixed for name in config.names])
    done = carve(
        CarvingSequence(sizes, widest, chunk, movable, pooled=pooled), original, options.degradation, judged, ahead
    )

    waits, current = real([done.sizes])[0], dp_nlp.current_wait(training)
    coarse = max(chunk, -(-config.machine.cores // (PATH * chunk)) * chunk)
    other, best = best_of_sequence(CarvingSequence(sizes, widest, coarse, movable, pooled=True), real)
    log = [
        *first.decisions,
        {"step": "threshold", "tau": tau, "reference": reference},
        *_story(done, config, options),
        {
            "step": "pool",
            "cores": config.machine.cores - int(done.sizes.sum()),
            "partitions": _named(config, done.sizes),
            "weighted_wait": round(waits.overall, 1),
            "dqr_weighted_wait": round(original.overall, 1),
            "current_weighted_wait": round(current, 1),
        },
        {
            "step": "true objective instead",
            "chunk": coarse,
            "cores": config.machine.cores - int(other.sum()),
            "partitions": _named(config, other),
            "weighted_wait": round(best.overall, 1),
        },
    ]
    answer = pooled_config(config, done.sizes, rules) if done.steps else config
    if original.overall <= current < waits.overall:
        answer = config
        log.append({"step": "no pool", "why": "with it jobs wait longer than now, with dqr's partitions they do not"})
    not_exportable = first.not_exportable or (
        BOTH_WAYS if rules.entry == "either" else ""
    )  # on any part of a history, pool or not
    return Proposal(answer, log, not_exportable=not_exportable, runtimes=first.runtimes)


def threshold(training: TrainingSet, reference: str | None = None) -> tuple[float, str]:
    """Tau, from the base configuration, and the queue half of whose priority it is (empty: the site's own number)."""
    base = training.base
    if reference is None and base.pool is not None:
        if base.pool.threshold is not None:
            return base.pool.threshold, ""
        reference = base.pool.reference
    if reference is None:
        reference = base.queues[int(np.argmax(training.period.core_seconds))].name
    return 0.5 * base.queue(reference).priority, reference


def _rules(training: TrainingSet, options: Options, tau: float) -> PoolConfig:
    """Say who may enter the pool and how, and where jobs start then; what no option tells is as in the present pool."""
    present = training.base.pool or PoolConfig()
    return PoolConfig(
        threshold=tau,
        entry=options.pool_entry,  # type: ignore[arg-type]
        placement=options.pool_placement or present.placement,  # type: ignore[arg-type]
        starving_first=present.starving_first,
    )


def pooled_config(config: SiteConfig, sizes: Sizes, rules: PoolConfig) -> SiteConfig:
    """Return `config` with these partitions, and what they leave as a pool."""
    queues = tuple(
        queue.model_copy(update={"partition": int(size)}) for queue, size in zip(config.queues, sizes, strict=True)
    )
    cores = config.machine.cores - int(sizes.sum())
    return config.replace(mode="hybrid", queues=queues, pool=rules.model_copy(update={"cores": cores}))


def _story(done: Carving, config: SiteConfig, options: Options) -> list[dict[str, Any]]:
    """Tell how the carving went: a few of its steps, and where each queue stopped."""
    entries: list[tuple[int, dict[str, Any]]] = [
        (step, {"step": "carve", "chunks": step, "pool": cores, "weighted_wait": round(wait, 1)})
        for step, cores, wait in done.trace
    ]
    percent = f"{100 * options.degradation:g} %"
    for stop in done.stops:
        whole = stop.queue is None
        name = "all" if stop.queue is None else config.queues[stop.queue].name
        entry = {
            "step": "stop",
            "chunks": stop.step - 1,
            "queue": name,
            "weighted_wait": round(stop.wait, 1),
            "original": round(stop.original, 1),
            "why": f"the next chunk would make {'all' if whole else 'its'} jobs wait more than {percent} longer",
        }
        entries.append((stop.step, entry))
    return [entry for _, entry in sorted(entries, key=lambda each: each[0])]


def _named(config: SiteConfig, sizes: Sizes) -> list[str]:
    return [f"{queue.name} {size}" for queue, size in zip(config.queues, sizes, strict=True)]
