"""The strategies that tune nothing: `current`, `shared`, and one list under EASY, `fcfs-easy` and `lxf-easy`."""

from __future__ import annotations

from qconf.config import SiteConfig
from qconf.evaluation.period import TrainingSet
from qconf.strategies.base import Options, Proposal, Strategy


class Current(Strategy):
    """The base configuration, unchanged."""

    name = "current"
    position = 0

    def propose(self, training: TrainingSet, options: Options) -> Proposal:
        """Return the base configuration."""
        del options
        return Proposal(training.base)


class Easy(Strategy):
    """One machine, all queues alike, one list in this order, under EASY."""

    baseline = True

    def __init__(self, name: str, position: int, order: str) -> None:
        self.name, self.position, self.order = name, position, order

    def propose(self, training: TrainingSet, options: Options) -> Proposal:
        """Make all queues alike."""
        del options
        return Proposal(undistinguished(training.base, self.order))


class Shared(Strategy):
    """The base queues on the shared machine, the paper's "static non-partitioned"."""

    name = "shared"
    position = 3
    baseline = True

    def propose(self, training: TrainingSet, options: Options) -> Proposal:
        """Remove the partitions, keep everything else."""
        del options
        base = training.base
        queues = tuple(queue.model_copy(update={"partition": 0}) for queue in base.queues)
        delay = base.unless_fixed(base.reservation_delay)  # without effect in partitions, in effect here
        return Proposal(base.replace(queues=queues, mode="shared", reserve_after=delay, pool=None))


def undistinguished(base: SiteConfig, order: str) -> SiteConfig:
    """Return the base queues on a shared machine, without anything that prefers one to another.

    The queues keep their names, the ranges of jobs that they admit, and their limits per user.
    """
    alike = {"priority": 1.0, "starvation": None, "max_run": None, "max_run_cores": None, "partition": 0}
    queues = tuple(queue.model_copy(update=alike) for queue in base.queues)
    return base.replace(queues=queues, mode="shared", order=order, backfill=True, reserve_after=0, pool=None)


STRATEGIES = (Current(), Easy("fcfs-easy", 1, "fcfs"), Easy("lxf-easy", 2, "lxf"), Shared())
