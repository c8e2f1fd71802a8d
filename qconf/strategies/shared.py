"""`shared`: the base queues on the shared machine, the paper's static system without partitions (section IV.B)."""

from __future__ import annotations

from qconf.config import UNDIVIDED, SiteConfig
from qconf.evaluation.period import TrainingSet
from qconf.strategies.base import Options, Proposal, Strategy


class Shared(Strategy):
    """The base without its partitions."""

    name = "shared"
    any_nodes = True
    position = 3
    baseline = True

    def propose(self, training: TrainingSet, options: Options) -> Proposal:
        """Remove the partitions, keep everything else."""
        del options
        return Proposal(whole(training.base))


def whole(base: SiteConfig) -> SiteConfig:
    """Return a site without its partitions."""
    delay = base.unless_fixed(base.reservation_delay)  # without effect in partitions, in effect here
    return base.with_each(lambda _: UNDIVIDED, mode="shared", reserve_after=delay, pool=None)


STRATEGIES = (Shared(),)
