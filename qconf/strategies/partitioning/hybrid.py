"""`hybrid`: dqr's queues, and a common pool carved out of their partitions.

References
----------
Kondameedi and Vadhiyar, CCGrid 2017, section III; chunk, degradation and threshold: Table III.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from parsim.model.system import Pool as CommonPool
from qconf.config import PoolConfig, SiteConfig
from qconf.errors import InputError
from qconf.evaluation.evaluator import CachedEvaluator
from qconf.evaluation.period import TrainingSet
from qconf.strategies.base import Proposal, Step, Strategy, option, step
from qconf.strategies.partitioning import dqr
from qconf.strategies.partitioning.carving import AHEAD, Carving, CarvingSequence, carve, measurement
from qconf.strategies.partitioning.options import as_read
from qconf.strategies.partitioning.pool_search import DIVISIONS, divisions, search
from qconf.strategies.partitioning.program import current_wait
from qconf.strategies.partitioning.sizes import Sizes, fixed_partition

FEW_CORES = 5  # the paper's chunk
FEWEST_CHUNKS, MOST_CHUNKS = 64, 2048  # chunks in the machine, by default
MOST_WORK = 2e7  # most jobs times chunks, with at least `FEWEST_CHUNKS`
BOTH_WAYS = "a job waits for its partition and for the pool at once, but a batch system holds it in one queue"


@dataclass(frozen=True, kw_only=True)
class HybridOptions(dqr.DqrOptions):
    """Options of hybrid."""

    chunk: int | None = option(
        None, "Cores that hybrid moves to the pool at once.", least=1, shown="5, or a node; more on large machines"
    )
    degradation: float = option(
        0.3, "Part by which the mean wait of a queue may grow for hybrid's pool: 0.3 is 30 %.", least=0
    )
    carve: str = option(
        "search",
        "How hybrid finds its pool: the best score of pool and threshold, or as many chunks as the degradation allows, "
        "each simulated with the pool in use (live) or with the partitions alone (the paper's way).",
        choices=("search", "live", "partitions"),
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
        shown="as configured, else combined",
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
    """The priority factor above which a job may enter the pool."""

    tau: float
    reference: str


@step
class Carve(Step):
    """The state of the carving after some chunks."""

    chunks: int
    pool: int
    weighted_wait: float


@step
class Stopped(Step):
    """A queue that gives no more chunks, or all."""

    title: ClassVar[str] = "stop"
    chunks: int
    queue: str
    weighted_wait: float
    original: float
    why: str


@step
class PoolSearch(Step):
    """The best pool for one threshold, by the log score against no pool; waits in seconds."""

    tau: float
    divisions: int
    left_out: int
    pool: int | None = None
    weighted_wait: float | None = None
    longest_wait: int | None = None
    score: float | None = None
    kept: bool


@step
class Pool(Step):
    """The pool of the result; weighted mean waits in seconds."""

    cores: int
    partitions: list[str]
    weighted_wait: float
    dqr_weighted_wait: float
    current_weighted_wait: float


@step
class NoPool(Step):
    """The pool is left out."""

    why: str = "with it jobs wait longer than now, with dqr's partitions they do not"


class Hybrid(Strategy):
    """Partitions and a common pool."""

    name = "hybrid"
    cost = 4.0
    position = 14
    Options = HybridOptions

    def propose(self, training: TrainingSet, options: HybridOptions) -> Proposal:
        """Take a pool out of dqr's partitions: the one with the best score, or the one that the paper carves.

        If jobs wait longer with the pool than now, but not with dqr's partitions alone, the proposal is dqr's.
        """
        training = as_read(training, options)
        first = dqr.reconfigured(training, options)
        training = dqr.measured_set(training, options)
        tau, reference = threshold(training, options.reference)
        present = training.base.pool or PoolConfig(placement="combined")
        rules = PoolConfig(
            threshold=tau,
            entry=options.pool_entry,  # type: ignore[arg-type]
            placement=options.pool_placement or present.placement,  # type: ignore[arg-type]
            starving_first=present.starving_first,
        )
        start = _Start(training, options, first, rules)
        found = _searched(start) if options.carve == "search" else _carved(start)
        config, current = first.config, current_wait(training)
        cores = start.in_pool(found.sizes)
        steps: list[Step] = [
            *first.steps,
            Threshold(tau=tau, reference=reference),
            *found.steps,
            Pool(
                cores=cores,
                partitions=[f"{q.name} {size}" for q, size in zip(config.queues, found.sizes, strict=True)],
                weighted_wait=round(found.weighted_wait, 1),
                dqr_weighted_wait=round(start.original.overall, 1),
                current_weighted_wait=round(current, 1),
            ),
        ]
        if options.decide_by == "simulation" and start.original.overall <= current < found.weighted_wait:
            steps.append(NoPool())
        elif cores:
            pool = rules.model_copy(update={"cores": cores, "threshold": found.tau})
            sizes, delay = found.sizes.tolist(), config.reserve_after
            config = config.with_partitions(sizes, mode="hybrid", reserve_after=delay, pool=pool)
        # Also without a pool: the proposal for another training set may have one.
        not_exportable = first.not_exportable or (BOTH_WAYS if rules.entry == "either" else "")
        return Proposal(config, tuple(steps), not_exportable=not_exportable, runtimes=first.runtimes)


def default_chunk(training: TrainingSet) -> int:
    """Return the cores of a chunk: the paper's, or a node; more if that gives too many chunks to simulate."""
    machine = training.base.machine
    most = int(np.clip(MOST_WORK // len(training), FEWEST_CHUNKS, MOST_CHUNKS))
    return max(training.base.grid if machine.whole_nodes else FEW_CORES, -(-machine.cores // most))


class _Start:
    """dqr's partitions on the training set, before carving."""

    def __init__(self, training: TrainingSet, options: HybridOptions, first: Proposal, rules: PoolConfig) -> None:
        config, base = first.config, training.base
        self.training, self.options, self.config = training, options, config
        self.evaluator = CachedEvaluator(training, options.workers)
        self.workloads = self.evaluator.workloads(config, first.runtimes)
        self.system = config.system()
        self.original = self.evaluator.simulate(self.workloads, self.system)
        self.sizes = np.array([each.partition for each in config.queues])
        fixed = [name for i, name in enumerate(base.names) if fixed_partition(base, i)]
        self.movable = np.array([name not in fixed for name in config.names])
        self.chunk = options.chunk or default_chunk(training)
        self.pool = CommonPool(**rules.model_dump(exclude={"reference"}))  # without cores: each division sets its own

    def sequence(self, divisions: int | None = None, *, pooled: bool) -> CarvingSequence:
        """Return the paper's sequence of chunks, or one of larger chunks, about `divisions` of them."""
        config, chunk = self.config, self.chunk
        chunk = -(-chunk // config.grid) * config.grid
        if divisions is not None:
            chunk *= max(1, -(-config.machine.cores // (divisions * chunk)))
        widest = np.zeros_like(self.sizes)
        for jobs in self.workloads:
            np.maximum.at(widest, jobs.queue, jobs.cores)
        return CarvingSequence(self.sizes, widest, chunk, self.movable, pooled=pooled)

    def in_pool(self, sizes: Sizes) -> int:
        """Return the cores that these partitions leave for a pool."""
        return self.config.machine.cores - int(sizes.sum())


@dataclass(frozen=True, eq=False)
class _Found:
    """Partitions with a pool of the rest, or without one."""

    sizes: Sizes
    tau: float
    weighted_wait: float
    steps: list[Step]


def _searched(start: _Start) -> _Found:
    """Find the pool with the best score, with the paper's threshold and with entry at once."""
    options, tau = start.options, start.pool.threshold
    thresholds = (tau,) if start.training.base.is_fixed("pool.threshold") else dict.fromkeys((tau, 0.0))
    tried = search(
        start.training,
        start.workloads,
        start.system,
        [replace(start.pool, threshold=each) for each in thresholds],
        divisions(start.sequence(DIVISIONS, pooled=True)),
        degradation=options.degradation,
        objective=options.objective,
        workers=options.workers,
    )
    best = min(tried, key=lambda each: each.score)
    steps: list[Step] = []
    for each in tried:
        kept = each is best and each.score < 0
        step = PoolSearch(tau=each.tau, divisions=each.divisions, left_out=each.left_out, kept=kept)
        if each.found is not None:
            step = replace(
                step,
                pool=start.in_pool(each.found.sizes),
                weighted_wait=round(each.found.waits.overall, 1),
                longest_wait=int(each.found.scored[2]),
                score=round(each.score, 3),
            )
        steps.append(step)
    if best.found is None or best.score >= 0:
        return _Found(start.sizes, tau, start.original.overall, steps)
    return _Found(best.found.sizes, best.tau, best.found.waits.overall, steps)


def _carved(start: _Start) -> _Found:
    """Carve the pool chunk by chunk, as in the paper."""
    options, pooled = start.options, start.options.carve == "live"
    in_use = measurement(start.evaluator, start.workloads, start.system, start.pool)
    measured = in_use if pooled else measurement(start.evaluator, start.workloads, start.system, None)
    sequence = start.sequence(pooled=pooled)
    done = carve(sequence, start.original, options.degradation, measured, AHEAD * options.workers)
    waits = in_use([done.sizes])[0]
    return _Found(done.sizes, start.pool.threshold, waits.overall, _carving_steps(done, start.config, options))


def threshold(training: TrainingSet, reference: str | None = None) -> tuple[float, str]:
    """Return tau, and the queue half of whose priority it is (empty if the site's configuration has the number).

    A threshold that hybrid wrote in the month before is ignored: queues and priorities may have changed since.
    """
    base, given = training.base, (training.site or training.base).pool
    if reference is None and given is not None:
        if given.threshold is not None:
            return given.threshold, ""
        reference = given.reference
    if reference not in base.names:
        reference = base.queues[int(np.argmax(training.period.core_seconds))].name
    return 0.5 * base.queue(reference).priority, reference


def _carving_steps(done: Carving, config: SiteConfig, options: HybridOptions) -> list[Step]:
    """Return some steps of the carving, and where each queue stopped."""
    entries: list[tuple[int, Step]] = [
        (step, Carve(chunks=step, pool=cores, weighted_wait=round(wait, 1))) for step, cores, wait in done.trace
    ]
    for stop in done.stops:
        name, which = ("all", "all") if stop.part is None else (config.queues[stop.part].name, "its")
        entry = Stopped(
            chunks=stop.step - 1,
            queue=name,
            weighted_wait=round(stop.wait, 1),
            original=round(stop.original, 1),
            why=f"the next chunk would make {which} jobs wait more than {100 * options.degradation:g} % longer",
        )
        entries.append((stop.step, entry))
    return [entry for _, entry in sorted(entries, key=lambda each: each[0])]


STRATEGIES = (Hybrid(),)
