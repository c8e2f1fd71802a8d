"""`pp` and `static`: partitions in proportion to each queue's core-seconds (the paper's equation 7, section IV.A).

`static` keeps the partitions of the first known period; with a single period it equals `pp`.
"""

from __future__ import annotations

from dataclasses import replace

from qconf.evaluation.period import TrainingSet
from qconf.strategies.base import Proposal, Step, Strategy, step
from qconf.strategies.partitioning.options import PartitionOptions, as_read
from qconf.strategies.partitioning.sizes import data_warnings, partition_space, proportional


@step
class Proportional(Step):
    """Partition sizes in nodes, in proportion to core-hours."""

    queues: list[str]
    core_hours: list[float]
    widest: list[int]
    nodes: list[int]


class Pp(Strategy):
    """Proportional partitions."""

    name = "pp"
    position = 10
    Options = PartitionOptions

    def propose(self, training: TrainingSet, options: PartitionOptions) -> Proposal:
        """Divide the machine in proportion to the core-seconds of the queues that own a partition."""
        training = as_read(training, options)
        space = partition_space(training, options.least_size, options.rounding)
        nodes = proportional(space)
        step = Proportional(
            queues=[training.base.queues[i].name for i in space.queues],
            core_hours=[round(float(work) / 3600, 1) for work in training.period.core_seconds[space.queues]],
            widest=space.widest.tolist(),
            nodes=nodes.tolist(),
            notes=tuple(data_warnings(training, space)),
        )
        return Proposal(space.configured(training.base, nodes), (step,))


class Static(Pp):
    """Divide the machine as `pp` does; a backtest trains it on the first period only."""

    name = "static"
    position = 11

    def propose(self, training: TrainingSet, options: PartitionOptions) -> Proposal:
        """Divide the machine as `pp` does for the first known period."""
        first = replace(training, period=training.earlier[0], earlier=()) if training.earlier else training
        return super().propose(first, options)


STRATEGIES = (Pp(), Static())
