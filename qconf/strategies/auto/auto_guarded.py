"""`auto-guarded`: `auto-fitted`, with priorities for queues whose longest waits would grow, whatever that costs.

`auto` weighs tails against means; what it finds may be ineligible by the guard rails. This looks for what they let through,
and priorities fit the queues of one site and no other's.
"""

from __future__ import annotations

from qconf.evaluation.period import TrainingSet
from qconf.strategies import Options, Proposal
from qconf.strategies.auto.search import search


def propose(training: TrainingSet, options: Options) -> Proposal:
    """Search as `auto-fitted` does, among what keeps every queue's 95 % wait, and the longest wait, in bounds.

    Where no priorities do that and gain anything, or these may not be changed, the best order stays as it is.
    """
    return search(training, options, guard=True, fit=True)
