"""`dp-nlp`: the paper's weighted program, again and again: fit, minimise, simulate the minimum, add it to the samples.

The best of all that is simulated is the answer: the log says whether the surrogate proposed it, a sample, or a move.

References
----------
Kondameedi and Vadhiyar, CCGrid 2017, section II.A; epochs and weights: Table III.
"""

from __future__ import annotations

from dataclasses import replace

from qconf.config import SiteConfig
from qconf.evaluation.evaluator import CachedEvaluator
from qconf.evaluation.period import TrainingSet, cached
from qconf.strategies.base import Proposal, Strategy
from qconf.strategies.partitioning.best_by_type import OneType, regret_by_type
from qconf.strategies.partitioning.feasible import Feasible
from qconf.strategies.partitioning.options import DpNlpOptions
from qconf.strategies.partitioning.owned import by_type, configured
from qconf.strategies.partitioning.program import Keep, Program, current_wait
from qconf.strategies.partitioning.readings import PartitionOptions, as_read
from qconf.strategies.partitioning.regret import regret
from qconf.strategies.partitioning.sizes import PartitionSpace, partition_space


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
    program = Program(training, options, space)
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
            program = Program(training, options, space, evaluator)
            nodes, _ = program.run()
            owned = space.divided(nodes)
            log += program.log
    config = configured(training, owned)
    if options.decide_by == "simulation" and base.mode == "partitioned" and _is_worse(training, config):
        return Proposal(base, (*log, Keep()))
    return Proposal(config, tuple(log))


def _is_worse(training: TrainingSet, config: SiteConfig) -> bool:
    return current_wait(training) < training.weighted_wait(config) * (1 - 1e-9)


def bounds_of(training: TrainingSet, options: DpNlpOptions, space: PartitionSpace) -> Feasible:
    """Return within which bounds dp-nlp divides."""
    return options.constraints.bounds(training, space)


def constraints(training: TrainingSet, options: DpNlpOptions) -> tuple[PartitionSpace, Feasible]:
    """Return what dp-nlp divides where all nodes are alike, and within which bounds."""
    space = partition_space(training, options.least_size, options.rounding)
    return space, bounds_of(training, options, space)


STRATEGIES = (DpNlp(),)
