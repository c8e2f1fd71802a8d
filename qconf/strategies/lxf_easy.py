"""`lxf-easy`: one machine, one list by largest expansion factor, under EASY."""

from __future__ import annotations

from qconf.evaluation.period import TrainingSet
from qconf.strategies import Options, Proposal
from qconf.strategies.fcfs_easy import undistinguished


def propose(training: TrainingSet, options: Options) -> Proposal:
    """Make all queues alike and sort by expansion factor."""
    del options
    return Proposal(undistinguished(training.base, "lxf"))
