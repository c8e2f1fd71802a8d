"""`static`: the proportional partitions of the first period of a backtest, never changed; of one period, `pp`."""

from __future__ import annotations

from qconf.strategies.partitioning.pp import Pp


class Static(Pp):
    """Divide the machine as `pp` does; a backtest trains it on the first period only."""

    name = "static"
    position = 11
    tune_default = False


STRATEGIES = (Static(),)
