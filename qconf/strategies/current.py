"""`current`: the base configuration as it stands."""

from __future__ import annotations

from qconf.strategies import Options, Proposal
from qconf.tuning.month import Month


def propose(month: Month, options: Options) -> Proposal:
    """Change nothing."""
    del options
    return Proposal(month.base)
