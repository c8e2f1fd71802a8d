"""`auto`: the order of the waiting list that is expected to be best, and what lies above it; of two kinds.

`auto-guarded` has factors for queues whose longest waits would grow: the general kind weighs tails against means, and
the guard rails may make its proposals ineligible. Where proposals are evaluated, `auto` stands for both and hands out
the best.
"""

from __future__ import annotations

from collections.abc import Mapping

from qconf.evaluation.period import TrainingSet
from qconf.strategies.auto.families import AutoOptions
from qconf.strategies.auto.search import climb, orders_wanted
from qconf.strategies.base import Proposal, Question, Strategy


class Auto(Strategy):
    """The order of the waiting list that is best beyond its training set, or the unchanged base."""

    any_nodes = True
    cost = 20.0
    Options = AutoOptions

    def __init__(self, name: str, position: int, *kinds: str, tune_default: bool = True) -> None:
        self.name, self.position, self.kinds, self.tune_default = name, position, kinds, tune_default

    def propose(self, training: TrainingSet, options: AutoOptions) -> Proposal:
        """Search as `qconf.strategies.auto.search.climb` does, by the first kind."""
        return climb(training, options, guard=self.kinds[0] == "guarded")[""]

    def variants(self, training: TrainingSet, options: AutoOptions) -> Mapping[str, Proposal]:
        """Return the best of every kind, by what it changes: ``fitted order``; the base where nothing may change."""
        found = {
            f"{kind} {what}": proposal
            for kind in self.kinds
            for what, proposal in climb(training, options, guard=kind == "guarded").items()
            if what
        }
        return found or {"": self.propose(training, options)}

    def wanted_ahead(self, training: TrainingSet, options: AutoOptions) -> list[Question]:
        """Return the orders that every kind tries, in each period."""
        return orders_wanted(training, options)


STRATEGIES = (
    Auto("auto", 30, "general", "guarded"),
    Auto("auto-guarded", 32, "guarded", tune_default=False),
)
