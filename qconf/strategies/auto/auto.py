"""`auto`: what an administrator would want, and its two variants.

`auto-fitted` leaves the general order out: it fits the periods that are known, whatever is good elsewhere. Where a site
is unlike others it is better than `auto`, and a month seldom shows that: it is recommended where it was the better one
on the test period. `auto-guarded` is `auto-fitted` with priorities for queues whose longest waits would grow: `auto`
weighs tails against means, and the guard rails may make its result ineligible.
"""

from __future__ import annotations

from qconf.evaluation.period import TrainingSet
from qconf.strategies.auto.search import search
from qconf.strategies.base import Options, Proposal, Strategy


class Auto(Strategy):
    """The best order of the waiting list that travels, or the base as it stands."""

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
