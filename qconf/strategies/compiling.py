"""The kernel of the strategies, compiled ahead with the simulator's by `parsim.compiling`."""

from __future__ import annotations

import numpy as np

from qconf.strategies.partitioning.divide import best_division


def load() -> None:
    """Call the kernel that divides machines, which loads it from disk or compiles it."""
    whole = np.ones(2, dtype=np.int64)
    best_division([np.ones(2)] * 2, whole, whole, 2)
