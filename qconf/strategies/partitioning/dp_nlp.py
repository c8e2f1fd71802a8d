"""`dp-nlp`: the paper's weighted program. The surrogate proposes, the simulator decides.

References
----------
Kondameedi and Vadhiyar, CCGrid 2017, section II.A; epochs and weights: Table III.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from parsim import System, simulate
from qconf.config import SiteConfig
from qconf.errors import InputError
from qconf.evaluation.evaluator import CachedEvaluator
from qconf.evaluation.period import WEIGHTS, Period, TrainingSet, cached
from qconf.parallel import parallel_map
from qconf.strategies.base import Proposal, Step, Strategy, option, step
from qconf.strategies.partitioning.best_by_type import Constraints, OneType, regret_by_type
from qconf.strategies.partitioning.bounds import Bounds
from qconf.strategies.partitioning.descent import descend
from qconf.strategies.partitioning.nlp import minimise
from qconf.strategies.partitioning.owned import by_type, configured
from qconf.strategies.partitioning.readings import PartitionOptions, as_read
from qconf.strategies.partitioning.regret import allowed, regret
from qconf.strategies.partitioning.samples import feasible_samples
from qconf.strategies.partitioning.sizes import PartitionSpace, Sizes, data_warnings, partition_space, proportional
from qconf.strategies.partitioning.surrogate import DEGREES, PENALTIES, Surrogate, fit

STARTS = 10  # best samples from which searches start
FEWEST = 20  # fewest samples to which a surrogate is fitted
CANDIDATES = 10  # divisions of each kind that are simulated before one is chosen
NEIGHBOURS = 60  # divisions around the best of them that are simulated at most
FIRST_STEP = 32  # part of the machine that moves first: one in so many


@dataclass(frozen=True, kw_only=True)
class DpNlpOptions(PartitionOptions):
    """Options of dp-nlp."""

    samples: int = option(100, "Samples of dp-nlp.", least=20)
    slack: float = option(0.3, "Slack of dp-nlp's proportional constraint.", least=0, most=1)
    tau_util: float = option(
        0.9, "Share of a queue's best utilization down to which dp-nlp's lower bound goes.", least=0, most=1
    )
    degree: int | None = option(
        None, "Degree of dp-nlp's surrogates.", choices=(None, *DEGREES), shown="by cross-validation"
    )
    weights: tuple[float, ...] = option(
        WEIGHTS, "Weights of the epochs that the log is cut into, the oldest first.", shown="1/3, 2/3, 1"
    )
    epoch_days: int | None = option(
        None,
        "Days of an epoch: the last ends with the jobs trained on, the first may begin before them, where jobs are "
        "known (the paper: 10).",
        least=1,
        most=3650,
        shown="equal parts of the jobs trained on",
    )
    decide_by: str = option(
        "simulation",
        "What dp-nlp answers with: the best of what it simulates, no worse than pp and the present, or the optimum of "
        "the program as it stands (the paper's way; hybrid then keeps what it carves, too).",
        choices=("simulation", "program"),
    )
    surrogate: str = option(
        "ridge",
        "How dp-nlp's polynomials are fitted: with a ridge penalty by cross-validation, or plain (the paper's way).",
        choices=("ridge", "plain"),
    )
    proportions: str = option(
        "both",
        "Of which queue of a pair dp-nlp's proportional constraint is: of each, or only of the first in the "
        "configuration (one-sided, as the paper prints it).",
        choices=("both", "one-sided"),
    )
    excess: str = option(
        "toward-widest",
        "What becomes of lower bounds that exceed the machine: moved toward the widest jobs, dividing it in "
        "proportion, or dropped.",
        choices=("toward-widest", "proportional", "dropped"),
    )

    @property
    def constraints(self) -> Constraints:
        """How sizes are bounded."""
        return Constraints(self.slack, self.tau_util, self.proportions == "one-sided", self.excess)

    def check(self, base: SiteConfig) -> None:
        """Raise InputError if an option makes no sense."""
        super().check(base)
        if not self.weights or not all(math.isfinite(weight) and weight > 0 for weight in self.weights):
            fix = "give a positive number for each epoch, the oldest first"
            raise InputError("no weights of epochs", field="weights", value=list(self.weights), fix=fix)


@step
class BoundsStep(Step):
    """Lower bounds in nodes, and the slack that leaves a solution."""

    title: ClassVar[str] = "bounds"
    queues: list[str]
    low: list[int]
    wanted: list[int]
    slack: float


@step
class SurrogateStep(Step):
    """The polynomial of one epoch, or why there is none."""

    title: ClassVar[str] = "surrogate"
    epoch: int | None = None
    weight: float | None = None
    degree: int | None = None
    penalty: float | None = None
    r2: float | None = None
    rmse: float | None = None
    simulated: list[int] | None = None  # mean waits of the samples, seconds
    expected: list[int] | None = None  # the same by a polynomial that was fitted without the sample
    note: str = ""


@step
class Minimum(Step):
    """The searches on the surrogates."""

    samples: int
    starts: int
    converged: int
    expected: float | None
    note: str


@step
class Optimum(Step):
    """The answer without a choice by simulation: the program's, or without surrogates the best sample's."""

    nodes: list[int]
    weighted_wait: float
    by_program: bool


@step
class Decide(Step):
    """Simulated candidates, weighted mean waits in seconds."""

    tried: int
    nodes: list[int]
    weighted_wait: float
    pp_weighted_wait: float
    current_weighted_wait: float


@step
class Neighbours(Step):
    """Search around the best division that keeps the constraints."""

    of: list[int]
    tried: int
    nodes: list[int]
    weighted_wait: float
    kept: bool
    why: str


@step
class Keep(Step):
    """The present partitions stay."""

    why: str = "the present partitions, narrower than their widest jobs, do better"


class DpNlp(Strategy):
    """Partition sizes by the weighted program; never worse than pp or the current sizes on the training set."""

    name = "dp-nlp"
    cost = 20.0
    position = 12
    any_nodes = True
    Options = DpNlpOptions

    def propose(self, training: TrainingSet, options: DpNlpOptions) -> Proposal:
        """Find partition sizes; queues stay the same."""
        return solved(as_read(training, options), options)

    def appraised(self, training: TrainingSet, options: DpNlpOptions, proposal: Proposal) -> Proposal:
        """Add how far its division is from the best ones, where it is not the present one."""
        if isinstance(proposal.steps[-1], Keep):
            return proposal
        training = as_read(training, options)
        if training.base.nodes:
            distance = regret_by_type(
                training, PartitionOptions.of(options), options.constraints, proposal.config, options.workers
            )
        else:
            space, bounds = constraints(training, options)
            distance = regret(training, space, bounds, space.nodes(proposal.config), options.workers)
        return replace(proposal, steps=(*proposal.steps, distance.step()))


def solved(training: TrainingSet, options: DpNlpOptions) -> Proposal:
    """Return dp-nlp's proposal: other strategies begin with it."""
    return _solved(training, DpNlpOptions.of(options))


@cached
def _solved(training: TrainingSet, options: DpNlpOptions) -> Proposal:
    if training.base.nodes:
        return _solved_by_type(training, options)
    space = partition_space(training, options.least_size, options.rounding)
    program = _Program(training, options, space)
    return program.kept(*program.run())


def _solved_by_type(training: TrainingSet, options: DpNlpOptions) -> Proposal:
    """Divide one type of nodes after the other, beginning with pp's division."""
    spaces, log = by_type(training, options)
    owned, base = spaces[0].owned, training.base
    configured(training, owned)
    evaluator = CachedEvaluator(training)
    for each in spaces:
        space = replace(each, owned=owned)
        step = OneType(
            type_=space.type_,
            queues=[base.queues[i].name for i in space.queues],
            nodes=space.present(base).tolist(),
            note="one queue has all" if space.queues.size == 1 else "",
        )
        log.append(step)
        if space.queues.size > 1 and space.total:
            program = _Program(training, options, space, evaluator)
            nodes, _ = program.run()
            owned = space.divided(nodes)
            log += program.log
    config = configured(training, owned)
    if options.decide_by == "simulation" and base.mode == "partitioned" and _is_worse(training, config):
        return Proposal(base, (*log, Keep()))
    return Proposal(config, tuple(log))


def _is_worse(training: TrainingSet, config: SiteConfig) -> bool:
    return current_wait(training) < training.weighted_wait(config) * (1 - 1e-9)


def bounds_of(training: TrainingSet, options: DpNlpOptions, space: PartitionSpace) -> Bounds:
    """Return within which bounds dp-nlp divides."""
    return options.constraints.bounds(training, space)


def constraints(training: TrainingSet, options: DpNlpOptions) -> tuple[PartitionSpace, Bounds]:
    """Return what dp-nlp divides where all nodes are alike, and within which bounds."""
    space = partition_space(training, options.least_size, options.rounding)
    return space, bounds_of(training, options, space)


class _Program:
    """The weighted program on one training set; `log` records the result of each step."""

    def __init__(
        self,
        training: TrainingSet,
        options: DpNlpOptions,
        space: PartitionSpace,
        evaluator: CachedEvaluator | None = None,
    ) -> None:
        self.training, self.options, self.space, self.evaluator = training, options, space, evaluator
        self.bounds = bounds_of(training, options, space)
        self.weights = np.array([weight for weight, _ in training.epochs])
        self.known: dict[str, Sizes] = {}  # the result is no worse than these divisions
        if (present := space.present(training.base)) is not None:
            self.known["present"] = present
        self.known["pp"] = proportional(self.space)
        self.log: list[Step] = [
            BoundsStep(
                queues=[training.base.queues[i].name for i in self.space.queues],
                low=self.bounds.low.tolist(),
                wanted=self.bounds.wanted.tolist(),
                slack=round(self.bounds.slack, 4),
                notes=(*self.bounds.notes, *data_warnings(training, self.space)),
            )
        ]

    def run(self) -> tuple[Sizes, float]:
        """Go through the steps; return the division and its weighted mean wait, seconds."""
        samples = self.samples()
        waits = self.waits(samples)
        ranked = [samples[i] for i in np.argsort(self.weighted(waits), kind="stable")]
        found = self.minimised(self.surrogates(samples, waits), ranked, len(samples))
        if self.options.decide_by == "program":
            return self.optimum(found, ranked)
        proposed = [each for each in found if self.allowed(each)][:CANDIDATES]
        within = [each for each in ranked if self.allowed(each)][:CANDIDATES]
        return self.improved(*self.decided(_distinct([*self.known.values(), *proposed, *within])))

    def samples(self) -> list[Sizes]:
        """Sample divisions; the known ones are among them."""
        most = max(self.options.samples - len(self.known), 1)
        sampled = feasible_samples(most, self.space.total, self.bounds, self.options.seed)
        return list(np.unique(np.vstack([sampled, *self.known.values()]), axis=0))

    def surrogates(self, samples: list[Sizes], waits: NDArray[np.float64]) -> list[tuple[float, Surrogate]]:
        """Fit one to the waits of each epoch, shape (samples, epochs); none where there are too few samples."""
        if len(samples) < FEWEST:
            self.log.append(SurrogateStep(note=f"only {len(samples)} divisions differ: each is simulated instead"))
            return []
        fractions = np.array(samples) / self.space.total
        degrees = DEGREES if self.options.degree is None else (self.options.degree,)
        penalties = PENALTIES if self.options.surrogate == "ridge" else (0.0,)
        fitted = [
            (weight, fit(fractions, each, degrees, penalties))
            for weight, each in zip(self.weights, waits.T, strict=True)
        ]
        self.log += [
            SurrogateStep(
                epoch=e + 1,
                weight=round(weight, 4),
                degree=s.degree,
                penalty=s.penalty,
                r2=round(s.r2, 4),
                rmse=round(s.rmse, 1),
                simulated=np.rint(waits[:, e]).astype(int).tolist(),
                expected=np.rint(s.crossed).astype(int).tolist(),
                note="a bad fit" if s.r2 < 0.5 else "",
            )
            for e, (weight, s) in enumerate(fitted)
        ]
        return fitted

    def minimised(
        self, surrogates: list[tuple[float, Surrogate]], ranked: list[Sizes], samples: int
    ) -> Sequence[Sizes]:
        """Search the surrogates from the best samples."""
        found = minimise(surrogates, self.bounds, self.space.total, ranked[:STARTS], self.space.rounding)
        self.log.append(
            Minimum(
                samples=samples,
                starts=found.starts,
                converged=found.converged,
                expected=round(found.expected[0], 1) if found.expected else None,
                note="no search ended well" if found.starts and not found.divisions else "",
            )
        )
        return found.divisions

    def optimum(self, found: Sequence[Sizes], ranked: list[Sizes]) -> tuple[Sizes, float]:
        """Return the program's optimum and its wait, simulated to be told; without surrogates the best sample."""
        nodes = next((each for each in (*found, *ranked) if self.allowed(each)), self.known["pp"])
        wait = float(self.weighted(self.waits([nodes]))[0])
        self.log.append(Optimum(nodes=nodes.tolist(), weighted_wait=round(wait, 1), by_program=len(found) > 0))
        return nodes, wait

    def decided(self, candidates: list[Sizes]) -> tuple[list[Sizes], NDArray[np.float64]]:
        """Simulate candidates and return their weighted waits, shape (candidates,); of equals the first is the best."""
        waits = self.weighted(self.waits(candidates))
        best = int(np.argmin(waits))
        pp = next(i for i, each in enumerate(candidates) if (each == self.known["pp"]).all())
        self.log.append(
            Decide(
                tried=len(candidates),
                nodes=candidates[best].tolist(),
                weighted_wait=round(float(waits[best]), 1),
                pp_weighted_wait=round(float(waits[pp]), 1),
                current_weighted_wait=round(current_wait(self.training), 1),
            )
        )
        return candidates, waits

    def improved(self, candidates: list[Sizes], waits: NDArray[np.float64]) -> tuple[Sizes, float]:
        """Search around the best that keeps the constraints: surrogates are smooth and the simulator is not."""
        best = int(np.argmin(waits))
        nodes, wait = candidates[best], float(waits[best])
        inside = [i for i, each in enumerate(candidates) if self.allowed(each)]
        if not inside:
            return nodes, wait
        start = candidates[min(inside, key=lambda i: waits[i])]
        near, least, tried = descend(
            lambda each: float(self.weighted(self.waits([each]))[0]),
            start,
            self.allowed,
            step=max(1, self.space.total // FIRST_STEP),
            most=NEIGHBOURS,
        )
        better = least < wait
        self.log.append(
            Neighbours(
                of=start.tolist(),
                tried=tried,
                nodes=near.tolist(),
                weighted_wait=round(least, 1),
                kept=better,
                why="less than before" if better else "no less than before",
            )
        )
        return (near, least) if better else (nodes, wait)

    def kept(self, nodes: Sizes, wait: float) -> Proposal:
        """Propose a division; the present partitions if they are better, though too narrow for their widest jobs."""
        base = self.training.base
        simulated = self.options.decide_by == "simulation"
        if simulated and base.mode == "partitioned" and current_wait(self.training) < wait * (1 - 1e-9):
            self.log.append(Keep())
            return Proposal(base, tuple(self.log))
        return Proposal(self.space.configured(base, nodes), tuple(self.log))

    def weighted(self, waits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up the waits of each division, row by row alike: equal rows have equal sums; shape (divisions,)."""
        return np.asarray((waits * self.weights).sum(axis=1))

    def allowed(self, nodes: Sizes) -> bool:
        """Return whether a division keeps the constraints."""
        return allowed(nodes, self.bounds)

    def waits(self, divisions: list[Sizes]) -> NDArray[np.float64]:
        """Return the mean wait of each division on each epoch, shape (divisions, epochs), seconds."""
        base, epochs = self.training.base, [epoch for _, epoch in self.training.epochs]
        if self.evaluator is not None:
            configs = [(self.space.configured(base, nodes),) for nodes in divisions]
            return np.array(parallel_map(self.options.workers, self.evaluator.by_epoch, configs))
        systems = [self.space.configured(base, nodes).system() for nodes in divisions]
        tasks = [(epoch, system) for system in systems for epoch in epochs]
        return np.array(parallel_map(self.options.workers, _mean_wait, tasks)).reshape(len(divisions), len(epochs))


@cached
def current_wait(training: TrainingSet) -> float:
    """Return the weighted mean wait under the base configuration, seconds."""
    return training.weighted_wait(training.base)


def _mean_wait(epoch: Period, system: System) -> float:
    return epoch.mean(simulate(epoch.workload, epoch.dedicated(system), epoch.begun(system)).wait)


def _distinct(divisions: list[Sizes]) -> list[Sizes]:
    return [np.array(key, dtype=np.int64) for key in dict.fromkeys(tuple(each.tolist()) for each in divisions)]


STRATEGIES = (DpNlp(),)
