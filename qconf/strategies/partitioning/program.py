"""The weighted program on one training set: fit, minimise, simulate the minimum, fit again; and its log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from qconf.evaluation.evaluator import CachedEvaluator
from qconf.evaluation.period import TrainingSet, cached
from qconf.parallel import parallel_map
from qconf.strategies.base import Proposal, Step, step
from qconf.strategies.partitioning.feasible import Floats, feasible_samples
from qconf.strategies.partitioning.nlp import Minima, minimise
from qconf.strategies.partitioning.options import DpNlpOptions
from qconf.strategies.partitioning.queue_waits import QueueWaits
from qconf.strategies.partitioning.sizes import PartitionSpace, Sizes, data_warnings, proportional
from qconf.strategies.partitioning.surrogate import DEGREES, PENALTIES, Surrogate, UnfittedError, fit, near

Key = tuple[int, ...]  # a division
STARTS = 3  # best samples from which searches start
SAMPLES = 5  # default samples per queue
FEWEST = 20  # least number of samples by default
BUDGET = 3  # default simulations, in multiples of the samples
FIRST_PART = 0.4  # fraction of the simulations after the samples that go to minima of the surrogates; then moves
NEAREST = 10  # best divisions from which moves start


@step
class BoundsStep(Step):
    """Lower bounds in nodes, and the least slack with a solution."""

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
    expected: list[int] | None = None  # predicted by a polynomial fitted without the sample
    note: str = ""


@step
class Minimum(Step):
    """The searches for minima of the surrogates."""

    samples: int
    starts: int
    converged: int
    expected: float | None
    note: str


@step
class Optimum(Step):
    """The program's optimum, or without surrogates the best sample: not the best of all simulations."""

    nodes: list[int]
    weighted_wait: float
    by_program: bool


@step
class Proposals(Step):
    """Divisions that the surrogates proposed in turn, each simulated and added to the samples."""

    nodes: list[list[int]]
    of: list[str]  # the fit behind each
    expected: list[float]  # predicted weighted mean waits, seconds
    weighted_waits: list[float]
    note: str = ""


@step
class Decide(Step):
    """The best of all simulated divisions and its origin; weighted mean waits in seconds."""

    tried: int
    nodes: list[int]
    proposed_by: str
    weighted_wait: float
    pp_weighted_wait: float
    current_weighted_wait: float


@step
class Neighbours(Step):
    """Moves around the best division that keeps the constraints."""

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


class Program:
    """The weighted program on one training set; `log` records the result of each step."""

    def __init__(self, training: TrainingSet, options: DpNlpOptions, space: PartitionSpace) -> None:
        self.training, self.options, self.space = training, options, space
        self.evaluator = CachedEvaluator(training)
        self.feasible = options.bounds(training, space)
        self.weights = np.array([weight for weight, _ in training.epochs])
        self.samples = options.samples or max(FEWEST, SAMPLES * space.queues.size)
        self.budget = max(options.simulations or BUDGET * self.samples, self.samples)
        self.simulated: dict[Key, Floats] = {}  # mean wait of each epoch, seconds
        self.of_queues: dict[Key, Floats] = {}  # each queue's contribution to the weighted mean wait, seconds
        self.proposed_by: dict[Key, str] = {}
        self.chosen: dict[tuple[int, bool], tuple[int, Surrogate]] = {}  # by (epoch, local), with samples
        self.known = {"pp": proportional(space)}  # the result is no worse than these divisions
        if (present := space.present(training.base)) is not None:
            self.known["current"] = present
        self.log: list[Step] = [
            BoundsStep(
                queues=[training.base.queues[i].name for i in self.space.queues],
                low=self.feasible.low.tolist(),
                wanted=self.feasible.low.tolist() if self.feasible.wanted is None else self.feasible.wanted.tolist(),
                slack=round(self.feasible.slack, 4),
                notes=(*self.feasible.notes, *data_warnings(training, self.space)),
            )
        ]

    def run(self) -> tuple[Sizes, float]:
        """Run all steps; return the division and its weighted mean wait, seconds."""
        for name, nodes in self.known.items():
            self.simulate([nodes], name)
        sampled = feasible_samples(self.samples, self.feasible, self.options.seed, self.space.rounding)
        self.simulate([each for each in sampled if _key(each) not in self.simulated][: self.samples - len(self.known)])
        first = self.fitted(reported=True)
        found = self.minimised(first, reported=True)
        if first and self.budget > len(self.simulated):
            self.propose()
            if self.options.decide_by == "program":
                found = self.minimised(self.fitted(), reported=True)
        return self.optimum(found) if self.options.decide_by == "program" else self.improved(*self.decided())

    def simulate(self, divisions: Sequence[Sizes], proposed_by: str = "sample") -> None:
        """Simulate the divisions that are not known yet."""
        new = {_key(each): each for each in divisions if _key(each) not in self.simulated}
        configs = [(self.space.configured(self.training.base, nodes),) for nodes in new.values()]
        for key, waits in zip(new, parallel_map(self.options.workers, self.evaluator.by_epoch, configs), strict=True):
            self.simulated[key] = waits.sum(axis=1)
            self.of_queues[key] = (waits * self.weights[:, None]).sum(axis=0)[self.space.queues]
            self.proposed_by[key] = proposed_by

    def ranked(self) -> list[Sizes]:
        """Return the simulated divisions that keep the constraints, best first."""
        divisions = [np.array(key, dtype=np.int64) for key in sorted(self.simulated, key=self.wait)]
        return [each for each in divisions if self.feasible.keeps(each)]

    def wait(self, nodes: Sizes | Key) -> float:
        """Return the weighted mean wait of a simulated division, seconds."""
        return float((self.simulated[_key(nodes)] * self.weights).sum())

    def fitted(self, *, reported: bool = False, local: bool = False) -> list[tuple[float, Surrogate]]:
        """Fit a surrogate to each epoch's simulations, if `local` weighted near the best; none if one cannot be fitted.

        Degree and penalty are chosen again when the samples have grown by half.
        """
        fractions = np.array([*self.simulated]) / self.space.total
        waits = np.array([*self.simulated.values()])
        best = int(np.argmin((waits * self.weights).sum(axis=1)))
        plain = self.options.surrogate == "plain"
        degrees = DEGREES if self.options.degree is None else (self.options.degree,)
        penalties = (0.0,) if plain else PENALTIES
        found: list[tuple[float, Surrogate]] = []
        log: list[Step] = []
        for e, (weight, (_, epoch)) in enumerate(zip(self.weights, self.training.epochs, strict=True)):
            since, before = self.chosen.get((e, local), (0, None))
            again = reported or before is None or len(waits) >= 1.5 * since
            try:
                s = fit(
                    fractions,
                    waits[:, e],
                    degrees if again or before is None else (before.degree,),
                    penalties if again or before is None else (before.penalty,),
                    logs=not plain,
                    weights=near(fractions, best) if local else None,
                    most=len(epoch),
                )
            except UnfittedError as error:
                note = f"no surrogate of epoch {e + 1}: {error}. Samples and moves between queues decide"
                self.log += [SurrogateStep(note=note, notes=(note,))] if reported else []
                return []
            if again:
                self.chosen[e, local] = len(waits), s
            found.append((weight, s))
            log.append(
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
            )
        self.log += log if reported else []
        return found

    def minimised(self, surrogates: list[tuple[float, Surrogate]], *, reported: bool = False) -> Minima:
        """Minimise the surrogates from the best samples."""
        found = minimise(surrogates, self.feasible, self.ranked()[:STARTS], self.space.rounding)
        if reported:
            note = "no search ended well" if found.starts and not found.divisions else ""
            if found.expected and found.expected[0] < 0:
                note = "a wait below 0 cannot be: the polynomial is wrong there"
            self.log.append(
                Minimum(
                    samples=len(self.simulated),
                    starts=found.starts,
                    converged=found.converged,
                    expected=round(found.expected[0], 1) if found.expected else None,
                    note=note,
                )
            )
        return found

    def propose(self) -> None:
        """Simulate minima of the surrogates, refitted after each: to all samples and near the best in turn."""
        step = Proposals(nodes=[], of=[], expected=[], weighted_waits=[])
        most = self.samples + round((self.budget - self.samples) * FIRST_PART)
        while len(self.simulated) < most:
            proposal = self.next()
            if proposal is None:
                step = replace(step, note="nothing is left to propose")
                break
            nodes, of, by_surrogate = proposal
            self.simulate([nodes], "surrogate")
            step.nodes.append(nodes.tolist())
            step.of.append(of)
            step.expected.append(round(by_surrogate, 1))
            step.weighted_waits.append(round(self.wait(nodes), 1))
        self.log.append(step)

    def next(self) -> tuple[Sizes, str, float] | None:
        """Return the next minimum that is not simulated, the fit that it is of, and its predicted wait; None if none.

        If one fit has no new minimum, the other is asked.
        """
        turns = [("all samples", False), ("those near the best", True)]
        for what, local in turns if len(self.simulated) % 2 else reversed(turns):
            surrogates = self.fitted(local=local)
            found = self.minimised(surrogates)
            for nodes, wait in zip(found.divisions, found.expected, strict=True):
                if _key(nodes) not in self.simulated:
                    return nodes, what, wait
        return None

    def optimum(self, found: Minima) -> tuple[Sizes, float]:
        """Return the program's optimum and its simulated wait; without surrogates the best sample."""
        nodes = next(iter((*found.divisions, *self.ranked())), self.known["pp"])
        self.simulate([nodes], "surrogate")
        wait = self.wait(nodes)
        self.log.append(
            Optimum(nodes=nodes.tolist(), weighted_wait=round(wait, 1), by_program=len(found.divisions) > 0)
        )
        return nodes, wait

    def decided(self) -> tuple[Sizes, float]:
        """Return the best simulated division and its wait; of equal ones the first."""
        best = min(self.simulated, key=self.wait)
        self.log.append(
            Decide(
                tried=len(self.simulated),
                nodes=list(best),
                proposed_by=self.proposed_by[best],
                weighted_wait=round(self.wait(best), 1),
                pp_weighted_wait=round(self.wait(self.known["pp"]), 1),
                current_weighted_wait=round(current_wait(self.training), 1),
            )
        )
        return np.array(best, dtype=np.int64), self.wait(best)

    def improved(self, nodes: Sizes, wait: float) -> tuple[Sizes, float]:
        """Continue with moves around the best divisions within the constraints, since the simulator is not smooth."""
        inside, before = self.ranked(), len(self.simulated)
        if not inside or before >= self.budget:
            return nodes, wait
        while len(self.simulated) < self.budget:
            division = QueueWaits(self.of_queues, self.feasible).next(self.ranked()[:NEAREST])
            if division is None:
                break
            self.simulate([division], "move")
        move = min(self.simulated, key=self.wait)
        better = self.wait(move) < wait
        self.log.append(
            Neighbours(
                of=inside[0].tolist(),
                tried=len(self.simulated) - before,
                nodes=list(move),
                weighted_wait=round(self.wait(move), 1),
                kept=better,
                why="less than before" if better else "no less than before",
            )
        )
        return np.array(move, dtype=np.int64), self.wait(move)

    def kept(self, nodes: Sizes, wait: float) -> Proposal:
        """Propose a division, or the present partitions if they are better although too narrow for their jobs."""
        base = self.training.base
        simulated = self.options.decide_by == "simulation"
        if simulated and base.mode == "partitioned" and current_wait(self.training) < wait * (1 - 1e-9):
            self.log.append(Keep())
            return Proposal(base, tuple(self.log))
        return Proposal(self.space.configured(base, nodes), tuple(self.log))


@cached
def current_wait(training: TrainingSet) -> float:
    """Return the weighted mean wait under the base configuration, seconds."""
    return training.weighted_wait(training.base)


def _key(nodes: Sizes | Key) -> Key:
    return tuple(int(each) for each in nodes)
