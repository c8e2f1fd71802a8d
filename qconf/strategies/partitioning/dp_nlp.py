"""`dp-nlp`: the paper's weighted program, repeated: fit, minimise, simulate the minimum, add it to the samples.

The proposal is the best of all simulated divisions; the log says whether it is the surrogate's, a sample or a move.

References
----------
Kondameedi and Vadhiyar, CCGrid 2017, section II.A; epochs and weights: Table III.
"""

from __future__ import annotations

from dataclasses import replace

from qconf.evaluation.period import TrainingSet, cached
from qconf.strategies.base import Proposal, Strategy
from qconf.strategies.partitioning.feasible import Feasible
from qconf.strategies.partitioning.options import DpNlpOptions, as_read
from qconf.strategies.partitioning.program import Keep, Program
from qconf.strategies.partitioning.regret import regret
from qconf.strategies.partitioning.sizes import PartitionSpace, partition_space


class DpNlp(Strategy):
    """Partition sizes by the weighted program; never worse than pp or the current sizes on the training set."""

    name = "dp-nlp"
    cost = 20.0
    position = 12
    Options = DpNlpOptions

    def propose(self, training: TrainingSet, options: DpNlpOptions) -> Proposal:
        """Find partition sizes; the queues stay the same."""
        return solved(as_read(training, options), options)

    def appraised(self, training: TrainingSet, options: DpNlpOptions, proposal: Proposal) -> Proposal:
        """Add the distance of the division from the best ones to the log, unless it is the present one."""
        if isinstance(proposal.steps[-1], Keep):
            return proposal
        training = as_read(training, options)
        space, bounds = constraints(training, options)
        distance = regret(training, space, bounds, space.nodes(proposal.config), options.workers)
        return replace(proposal, steps=(*proposal.steps, distance.step()))


def solved(training: TrainingSet, options: DpNlpOptions) -> Proposal:
    """Return dp-nlp's proposal, with which other strategies begin."""
    return _solved(training, DpNlpOptions.of(options))


@cached
def _solved(training: TrainingSet, options: DpNlpOptions) -> Proposal:
    space = partition_space(training, options.least_size, options.rounding)
    program = Program(training, options, space)
    return program.kept(*program.run())


def constraints(training: TrainingSet, options: DpNlpOptions) -> tuple[PartitionSpace, Feasible]:
    """Return the partition space and the bounds of dp-nlp."""
    space = partition_space(training, options.least_size, options.rounding)
    return space, options.bounds(training, space)


STRATEGIES = (DpNlp(),)
