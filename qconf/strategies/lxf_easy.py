"""`lxf-easy`: one machine, one list by largest expansion factor, under EASY."""

from __future__ import annotations

from qconf.evaluation.period import TrainingSet
from qconf.strategies.base import Options, Proposal, Strategy
from qconf.strategies.fcfs_easy import undistinguished


class LxfEasy(Strategy):
    """All queues alike, sorted by expansion factor."""

    name = "lxf-easy"
    any_nodes = True
    position = 2
    baseline = True

    def propose(self, training: TrainingSet, options: Options) -> Proposal:
        """Make all queues alike and sort by expansion factor."""
        del options
        return Proposal(undistinguished(training.base, "lxf"))


STRATEGIES = (LxfEasy(),)
