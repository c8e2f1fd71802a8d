"""`hybrid`: dqr's queues, and a common pool carved out of their partitions for jobs that have waited long enough.

References
----------
Kondameedi and Vadhiyar, CCGrid 2017, section VI.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qconf.config import PoolConfig, SiteConfig
from qconf.errors import InputError
from qconf.evaluation.evaluator import CachedEvaluator
from qconf.evaluation.period import TrainingSet
from qconf.strategies.base import Proposal, Step, Strategy, option, step
from qconf.strategies.partitioning import dp_nlp, dqr
from qconf.strategies.partitioning.carving import (
    AHEAD,
    POINTS,
    Carving,
    CarvingSequence,
    best_of_sequence,
    carve,
    measurement,
)
from qconf.strategies.partitioning.sizes import Sizes, fixed_partition

FEW_CORES = 5  # the paper's chunk
MOST_CHUNKS = 2048  # in the machine, where no chunk is given
MOST_WORK = 2e7  # jobs times chunks, as long as the chunks are not fewer than `POINTS`
BOTH_WAYS = "a job waits for its partition and for the pool at once, but a batch system holds it in one queue"


@dataclass(frozen=True, kw_only=True)
class HybridOptions(dqr.DqrOptions):
    """Options of hybrid."""

    chunk: int | None = option(
        None, "Cores that hybrid moves to the pool at once.", least=1, shown="5, or a node; more on large machines"
    )
    degradation: float = option(0.3, "Part by which waits may grow while hybrid carves the pool: 0.3 is 30 %.", least=0)
    carve: str = option(
        "live",
        "Whether hybrid simulates a chunk with the pool in use, or the partitions alone.",
        choices=("live", "partitions"),
    )
    pool_entry: str = option(
        "move",
        "Whether jobs that may enter hybrid's pool leave their partition's list, or (for studies only: PBS cannot do "
        "it) start wherever they can first.",
        choices=("move", "either"),
    )
    pool_placement: str | None = option(
        None,
        "Where jobs in hybrid's pool start: wholly in it, or on their partition's cores too.",
        choices=(None, "pool", "combined"),
        shown="as configured, else pool",
    )
    reference: str | None = option(
        None,
        "Queue half of whose priority is tau, where the configuration names none.",
        shown="that with most core-seconds",
    )

    def check(self, base: SiteConfig) -> None:
        """Raise InputError if an option makes no sense at this site."""
        super().check(base)
        if self.reference is not None and self.reference not in base.names:
            fix = f"choose among {', '.join(base.names)}"
            raise InputError("no such reference", field="reference", value=self.reference, fix=fix)


@step
class Threshold(Step):
    """Priority factor from which a job may enter the pool."""

    tau: float
    reference: str


@step
class Carve(Step):
    """State of the carving after so many chunks."""

    chunks: int
    pool: int
    weighted_wait: float


@step
class Stopped(Step):
    """A queue, or all, that gives no more chunks."""

    title: ClassVar[str] = "stop"
    chunks: int
    queue: str
    weighted_wait: float
    original: float
    why: str


@step
class Pool(Step):
    """The carved pool, weighted mean waits in seconds."""

    cores: int
    partitions: list[str]
    weighted_wait: float
    dqr_weighted_wait: float
    current_weighted_wait: float


@step
class TrueObjective(Step):
    """The best pool along the whole sequence, by the simulator with the pool in use."""

    title: ClassVar[str] = "true objective instead"
    chunk: int
    cores: int
    partitions: list[str]
    weighted_wait: float


@step
class NoPool(Step):
    """The pool is left out."""

    why: str = "with it jobs wait longer than now, with dqr's partitions they do not"


class Hybrid(Strategy):
    """Partitions and a common pool."""

    name = "hybrid"
    position = 14
    Options = HybridOptions

    def propose(self, training: TrainingSet, options: HybridOptions) -> Proposal:
        """Carve a pool as the paper does; the log also has the pool that is best by the true objective.

        Where jobs wait longer with the pool than now, and with dqr's partitions they do not, the proposal is dqr's.
        """
        first = dqr.reconfigured(training, options)
        config, grid = first.config, training.base.grid
        tau, reference = threshold(training, options.reference)
        chunk = -(-(options.chunk or default_chunk(training)) // grid) * grid

        evaluator = CachedEvaluator(training, options.workers)
        workloads = evaluator.workloads(config, first.runtimes)
        system = config.system()
        sizes = np.array([queue.partition for queue in config.queues], dtype=np.int64)
        widest = np.zeros_like(sizes)
        for jobs in workloads:
            np.maximum.at(widest, jobs.queue, jobs.cores)
        original = evaluator.simulate(workloads, system)
        rules = _rules(training, options, tau)
        pooled = options.carve == "live"
        in_use = measurement(evaluator, workloads, system, pooled_config(config, sizes, rules).system().pool)
        measured = in_use if pooled else measurement(evaluator, workloads, system, None)
        fixed = [name for i, name in enumerate(training.base.names) if fixed_partition(training.base, i)]
        movable = np.array([name not in fixed for name in config.names])
        sequence = CarvingSequence(sizes, widest, chunk, movable, pooled=pooled)
        done = carve(sequence, original, options.degradation, measured, AHEAD * options.workers)

        waits, current = in_use([done.sizes])[0], dp_nlp.current_wait(training)
        coarse = max(chunk, -(-config.machine.cores // (POINTS * chunk)) * chunk)
        other, best = best_of_sequence(CarvingSequence(sizes, widest, coarse, movable, pooled=True), in_use)
        steps: list[Step] = [
            *first.steps,
            Threshold(tau=tau, reference=reference),
            *_carving_steps(done, config, options),
            Pool(
                cores=config.machine.cores - int(done.sizes.sum()),
                partitions=_named(config, done.sizes),
                weighted_wait=round(waits.overall, 1),
                dqr_weighted_wait=round(original.overall, 1),
                current_weighted_wait=round(current, 1),
            ),
            TrueObjective(
                chunk=coarse,
                cores=config.machine.cores - int(other.sum()),
                partitions=_named(config, other),
                weighted_wait=round(best.overall, 1),
            ),
        ]
        proposed = pooled_config(config, done.sizes, rules) if done.steps else config
        if original.overall <= current < waits.overall:
            proposed = config
            steps.append(NoPool())
        # Whether there is a pool here or not: the proposal for another training set may have one.
        not_exportable = first.not_exportable or (BOTH_WAYS if rules.entry == "either" else "")
        return Proposal(proposed, tuple(steps), not_exportable=not_exportable, runtimes=first.runtimes)


def default_chunk(training: TrainingSet) -> int:
    """Return the paper's chunk or a node; more cores where a carving could move too many chunks to simulate each."""
    machine = training.base.machine
    most = int(np.clip(MOST_WORK // len(training), POINTS, MOST_CHUNKS))
    return max(training.base.grid if machine.whole_nodes else FEW_CORES, -(-machine.cores // most))


def threshold(training: TrainingSet, reference: str | None = None) -> tuple[float, str]:
    """Return tau and the queue half of whose priority it is (empty: the configuration has the number)."""
    base = training.base
    if reference is None and base.pool is not None:
        if base.pool.threshold is not None:
            return base.pool.threshold, ""
        reference = base.pool.reference
    if reference is None:
        reference = base.queues[int(np.argmax(training.period.core_seconds))].name
    return 0.5 * base.queue(reference).priority, reference


def _rules(training: TrainingSet, options: HybridOptions, tau: float) -> PoolConfig:
    """Return how jobs enter the pool and where they start; what no option sets is as in the present pool."""
    present = training.base.pool or PoolConfig()
    return PoolConfig(
        threshold=tau,
        entry=options.pool_entry,  # type: ignore[arg-type]
        placement=options.pool_placement or present.placement,  # type: ignore[arg-type]
        starving_first=present.starving_first,
    )


def pooled_config(config: SiteConfig, sizes: Sizes, rules: PoolConfig) -> SiteConfig:
    """Return `config` with these partitions, and the remaining cores as a pool."""
    pool = rules.model_copy(update={"cores": config.machine.cores - int(sizes.sum())})
    return config.with_partitions(sizes.tolist(), mode="hybrid", reserve_after=config.reserve_after, pool=pool)


def _carving_steps(done: Carving, config: SiteConfig, options: HybridOptions) -> list[Step]:
    """Return a few steps of the carving, and where each queue stopped."""
    entries: list[tuple[int, Step]] = [
        (step, Carve(chunks=step, pool=cores, weighted_wait=round(wait, 1))) for step, cores, wait in done.trace
    ]
    percent = f"{100 * options.degradation:g} %"
    for stop in done.stops:
        which = "all" if stop.queue is None else "its"
        entry = Stopped(
            chunks=stop.step - 1,
            queue="all" if stop.queue is None else config.queues[stop.queue].name,
            weighted_wait=round(stop.wait, 1),
            original=round(stop.original, 1),
            why=f"the next chunk would make {which} jobs wait more than {percent} longer",
        )
        entries.append((stop.step, entry))
    return [entry for _, entry in sorted(entries, key=lambda each: each[0])]


def _named(config: SiteConfig, sizes: Sizes) -> list[str]:
    return [f"{queue.name} {size}" for queue, size in zip(config.queues, sizes, strict=True)]


STRATEGIES = (Hybrid(),)
