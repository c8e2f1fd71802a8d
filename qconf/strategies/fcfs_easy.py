"""`fcfs-easy`: one machine, one list in the order of submission, under EASY."""

from __future__ import annotations

from qconf.config import UNDIVIDED, SiteConfig
from qconf.evaluation.period import TrainingSet
from qconf.strategies.base import Options, Proposal, Strategy


class FcfsEasy(Strategy):
    """All queues alike."""

    name = "fcfs-easy"
    any_nodes = True
    position = 1
    baseline = True

    def propose(self, training: TrainingSet, options: Options) -> Proposal:
        """Make all queues alike."""
        del options
        return Proposal(undistinguished(training.base, "fcfs"))


def undistinguished(base: SiteConfig, order: str) -> SiteConfig:
    """Return the base queues on a shared machine, without anything that prefers one to another.

    The queues keep their names, the ranges of jobs that they admit, and their limits per user. Cores are kept for short
    jobs only where that is fixed.
    """
    alike: dict[str, object] = {"priority": 1.0, "starvation": None, "max_run": None, "max_run_cores": None}
    alike |= {**UNDIVIDED, "tier": 0, "preempted": "off"}
    shortpools = base.shortpools if base.is_fixed("shortpools") else ()
    plain = {"mode": "shared", "order": order, "backfill": True, "reserve_after": 0, "pool": None}
    return base.reserving().with_each(lambda _: alike, shortpools=shortpools, **plain)


STRATEGIES = (FcfsEasy(),)
