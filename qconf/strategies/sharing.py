"""`nodes-shared`, `nodes-exclusive`: the base, with nodes that jobs share, or that each job has alone.

They show what nodes of their own cost the jobs of a site, so `qconf tune` compares them there; run times stay as the
log has them, though jobs that share a node may slow each other down.
"""

from __future__ import annotations

from qconf.config import SiteConfig
from qconf.evaluation.period import NotApplicableError, TrainingSet
from qconf.strategies.base import Options, Proposal, Strategy
from qconf.strategies.nodes import given_whole, some_alone


class Sharing(Strategy):
    """The base with all nodes given whole, or none."""

    any_nodes = True
    default = False
    tune_default = False

    def __init__(self, name: str, position: int, *, exclusive: bool) -> None:
        self.name, self.position, self.exclusive = name, position, exclusive

    def is_baseline_of(self, base: SiteConfig) -> bool:
        """Whether the site has types of nodes, some of which jobs have alone."""
        return some_alone(base)

    def propose(self, training: TrainingSet, options: Options) -> Proposal:
        """Give nodes whole, or let jobs share them."""
        del options
        if not training.base.nodes:
            raise NotApplicableError("the site has no types of nodes")
        return Proposal(given_whole(training.base, exclusive=self.exclusive))


STRATEGIES = (
    Sharing("nodes-shared", 6, exclusive=False),
    Sharing("nodes-exclusive", 7, exclusive=True),
)
