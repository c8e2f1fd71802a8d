"""`auto-fitted`: `auto` without the general order: what fits the months that are known, whatever is good elsewhere.

Where a site is unlike others this is better than `auto`, and a month seldom tells: it is recommended where it was the
better one on jobs that it had not seen.
"""

from __future__ import annotations

from qconf.strategies import Options, Proposal
from qconf.strategies.auto import search
from qconf.tuning.month import Month


def propose(month: Month, options: Options) -> Proposal:
    """Search as `auto` does, among the orders of the family alone."""
    return search(month, options, fit=True)
