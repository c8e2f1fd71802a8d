"""`static`: the proportional partitions of the first period of a backtest, never changed; of one period, `pp`."""

from __future__ import annotations

from qconf.strategies import Options, Proposal, pp
from qconf.tuning.month import Month


def propose(month: Month, options: Options) -> Proposal:
    """Divide the machine as `pp` does; a backtest hands the first period to it, whichever it judges."""
    return pp.propose(month, options)
