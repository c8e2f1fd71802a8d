"""`static`: the proportional partitions of the first known period, never changed; of one period, `pp`."""

from __future__ import annotations

from dataclasses import replace

from qconf.evaluation.period import TrainingSet
from qconf.strategies.base import Proposal
from qconf.strategies.partitioning.pp import Pp
from qconf.strategies.partitioning.readings import PartitionOptions


class Static(Pp):
    """Divide the machine as `pp` does; a backtest trains it on the first period only."""

    name = "static"
    position = 11

    def propose(self, training: TrainingSet, options: PartitionOptions) -> Proposal:
        """Divide the machine by the first of the known periods."""
        first = replace(training, period=training.earlier[0], earlier=()) if training.earlier else training
        return super().propose(first, options)


STRATEGIES = (Static(),)
