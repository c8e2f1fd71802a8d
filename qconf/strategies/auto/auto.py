"""`auto`: the order of the waiting jobs with the best expected score, and larger changes; in two kinds.

`auto-guarded` raises queues whose longest waits would grow by factors. The general kind only weighs tails against
means, so guard rails may make its proposals ineligible. In an evaluation `auto` has the proposals of both kinds.
"""

from __future__ import annotations

from collections.abc import Mapping

from qconf.evaluation.period import TrainingSet
from qconf.strategies.auto.families import AutoOptions
from qconf.strategies.auto.search import climb, orders_wanted
from qconf.strategies.base import Proposal, Question, Strategy


class Auto(Strategy):
    """The order of the waiting jobs that is best beyond its training set, or the unchanged base."""

    any_nodes = True
    cost = 20.0
    Options = AutoOptions

    def __init__(self, name: str, position: int, *kinds: str, tune_default: bool = True) -> None:
        self.name, self.position, self.kinds, self.tune_default = name, position, kinds, tune_default

    def propose(self, training: TrainingSet, options: AutoOptions) -> Proposal:
        """Return the choice of `qconf.strategies.auto.search.climb` for the first kind."""
        return climb(training, options, guard=self.kinds[0] == "guarded")[""]

    def variants(self, training: TrainingSet, options: AutoOptions) -> Mapping[str, Proposal]:
        """Return the best proposal of each kind and change, like ``general order``; the base if nothing may change."""
        found = {
            f"{kind} {what}": proposal
            for kind in self.kinds
            for what, proposal in climb(training, options, guard=kind == "guarded").items()
            if what
        }
        return found or {"": self.propose(training, options)}

    def wanted_ahead(self, training: TrainingSet, options: AutoOptions) -> list[Question]:
        """Return the simulations of all orders, for each period; both kinds use them."""
        return orders_wanted(training, options)


STRATEGIES = (
    Auto("auto", 30, "general", "guarded"),
    Auto("auto-guarded", 32, "guarded", tune_default=False),
)
