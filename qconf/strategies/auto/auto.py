"""`auto`: the best order of the waiting list, and two variants.

`auto-fitted` leaves the general order out: it fits the known periods alone. It is better than `auto` where a site
differs from others. One period seldom shows that, so it is recommended where it does better on the test period.
`auto-guarded` is `auto-fitted` with priorities for queues whose longest waits would grow: `auto` weighs tails against
means, and the guard rails may make its proposal ineligible.
"""

from __future__ import annotations

from qconf.evaluation.period import TrainingSet
from qconf.strategies.auto.search import search
from qconf.strategies.base import Options, Proposal, Strategy


class Auto(Strategy):
    """The order of the waiting list that is best beyond its training set, or the unchanged base."""

    def __init__(self, name: str, position: int, *, fit: bool = False, guard: bool = False) -> None:
        self.name, self.position = name, position
        self.fit, self.guard = fit, guard

    def propose(self, training: TrainingSet, options: Options) -> Proposal:
        """Search as `qconf.strategies.auto.search` does."""
        return search(training, options, fit=self.fit, guard=self.guard)


STRATEGIES = (
    Auto("auto", 30),
    Auto("auto-fitted", 31, fit=True),
    Auto("auto-guarded", 32, fit=True, guard=True),
)
