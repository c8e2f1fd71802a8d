"""What strategies compute is compiled ahead, beside the simulator: ``python -m qconf.strategies.compiling``."""

from __future__ import annotations

import numpy as np

from parsim.compiling import collect_seldom
from qconf.strategies.partitioning.divide import best_division


def load() -> None:
    """Call what divides machines: what is on disk is loaded, the rest compiled."""
    whole = np.ones(2, dtype=np.int64)
    best_division([np.ones(2)] * 2, whole, whole, 2)


if __name__ == "__main__":
    collect_seldom()
    load()
