"""`exact`: the best partition sizes for the training set, without a surrogate; the standard for the others."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from qconf.evaluation.period import TrainingSet
from qconf.strategies.base import Proposal, Step, Strategy, step
from qconf.strategies.partitioning import dp_nlp
from qconf.strategies.partitioning.options import DpNlpOptions, as_read
from qconf.strategies.partitioning.regret import optimum
from qconf.strategies.partitioning.sizes import data_warnings


@step
class Table(Step):
    """The best division by the table of waits, free and, once appraised, under dp-nlp's constraints."""

    queues: list[str]
    nodes: list[int]
    weighted_wait: float
    constrained_nodes: list[int] | None = None
    constrained_weighted_wait: float | None = None
    proven: bool
    doubts: str


@step
class LocalSearch(Step):
    """The best division by a search on the simulator, if the table is only an estimate."""

    nodes: list[int]
    weighted_wait: float
    simulations: int
    constrained_nodes: list[int] | None = None
    constrained_weighted_wait: float | None = None


@step
class BesideDpNlp(Step):
    """Whether dp-nlp's division, from another start, is better."""

    title: ClassVar[str] = "beside dp-nlp"
    dp_nlp_weighted_wait: float
    taken: bool
    why: str


class Exact(Strategy):
    """The optimal division for one training set."""

    name = "exact"
    cost = 3.0
    position = 21
    Options = DpNlpOptions

    def propose(self, training: TrainingSet, options: DpNlpOptions) -> Proposal:
        """Find the sizes with the least weighted mean wait, without dp-nlp's constraints."""
        training = as_read(training, options)
        space, _ = dp_nlp.constraints(training, options)
        free = optimum(training, space, None, options.workers)
        table = Table(
            queues=[training.base.queues[i].name for i in space.queues],
            nodes=free.tabulated_nodes.tolist(),
            weighted_wait=round(free.tabulated, 1),
            proven=not free.doubts,
            doubts=free.doubts,
            notes=tuple(data_warnings(training, space)),
        )
        steps: list[Step] = [table]
        config = space.configured(training.base, free.nodes)
        if free.simulations:
            nodes, wait = free.nodes.tolist(), round(free.wait, 1)
            steps.append(LocalSearch(nodes=nodes, weighted_wait=wait, simulations=free.simulations))
        if free.doubts:
            other = dp_nlp.solved(training, options).config
            its = training.weighted_wait(other)
            better = its < free.wait
            why = "a search from another start ends lower" if better else "no less"
            steps.append(BesideDpNlp(dp_nlp_weighted_wait=round(its, 1), taken=better, why=why))
            config = other if better else config
        return Proposal(config, tuple(steps))

    def appraised(self, training: TrainingSet, options: DpNlpOptions, proposal: Proposal) -> Proposal:
        """Add the least wait under dp-nlp's constraints to the log."""
        training = as_read(training, options)
        tight = optimum(training, *dp_nlp.constraints(training, options), options.workers)

        def beside(step: Step) -> Step:
            if isinstance(step, Table):
                doubts = tight.doubts or step.doubts
                nodes, wait = tight.tabulated_nodes.tolist(), round(tight.tabulated, 1)
                step = replace(step, proven=not doubts, doubts=doubts)
            elif isinstance(step, LocalSearch):
                nodes, wait = tight.nodes.tolist(), round(tight.wait, 1)
            else:
                return step
            return replace(step, constrained_nodes=nodes, constrained_weighted_wait=wait)

        return replace(proposal, steps=tuple(map(beside, proposal.steps)))


STRATEGIES = (Exact(),)
