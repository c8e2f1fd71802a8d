"""`auto-fitted`: `auto` without the general order: what fits the months that are known, whatever is good elsewhere.

Where a site is unlike others this is better than `auto`, and a training seldom tells: it is recommended where it was the
better one on jobs that it had not seen.
"""

from __future__ import annotations

from qconf.evaluation.period import TrainingSet
from qconf.strategies import Options, Proposal
from qconf.strategies.auto.search import search


def propose(training: TrainingSet, options: Options) -> Proposal:
    """Search as `auto` does, among the orders of the family alone."""
    return search(training, options, fit=True)
