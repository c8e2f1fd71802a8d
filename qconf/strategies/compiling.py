"""What strategies compute is compiled ahead, beside the simulator: ``python -m qconf.strategies.compiling``."""

from __future__ import annotations

import numpy as np

from parsim.compiling import collect_seldom
from qconf.evaluation.polynomial import ridge, terms
from qconf.strategies.partitioning.divide import best_division


def load() -> None:
    """Call what fits surrogates and divides machines: what is on disk is loaded, the rest compiled."""
    points, whole = np.ones((3, 2)), np.ones(2, dtype=np.int64)
    ridge(terms(points, np.ones((2, 2), dtype=np.int64)), points, 1.0)
    best_division([np.ones(2)] * 2, whole, whole, 2)


if __name__ == "__main__":
    collect_seldom()
    load()
