"""What strategies compute is compiled ahead, beside the simulator, by `parsim.compiling`."""

from __future__ import annotations

import numpy as np

from qconf.strategies.partitioning.divide import best_division


def load() -> None:
    """Call what divides machines: what is on disk is loaded, the rest compiled."""
    whole = np.ones(2, dtype=np.int64)
    best_division([np.ones(2)] * 2, whole, whole, 2)
