"""`static`: the proportional partitions of the first period of a backtest, never changed; of one period, `pp`."""

from __future__ import annotations

from qconf.evaluation.period import TrainingSet
from qconf.strategies import Options, Proposal
from qconf.strategies.partitioning import pp


def propose(training: TrainingSet, options: Options) -> Proposal:
    """Divide the machine as `pp` does; a backtest hands the first period to it, whichever it judges."""
    return pp.propose(training, options)
