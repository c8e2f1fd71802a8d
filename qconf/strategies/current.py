"""`current`: the base configuration, unchanged."""

from __future__ import annotations

from qconf.evaluation.period import TrainingSet
from qconf.strategies.base import Options, Proposal, Strategy


class Current(Strategy):
    """Change nothing."""

    name = "current"
    any_nodes = True
    position = 0

    def propose(self, training: TrainingSet, options: Options) -> Proposal:
        """Return the base configuration."""
        del options
        return Proposal(training.base)


STRATEGIES = (Current(),)
