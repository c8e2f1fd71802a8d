"""Local search for a better division: cores move between two queues as long as that helps."""

from __future__ import annotations

from collections.abc import Callable

from qconf.strategies.partitioning.sizes import Sizes


def descend(
    wait: Callable[[Sizes], float], nodes: Sizes, allowed: Callable[[Sizes], bool], *, step: int, most: int
) -> tuple[Sizes, float, int]:
    """Move `step` nodes between pairs of queues while it helps, then half as many, down to one.

    Parameters
    ----------
    wait : callable
        Mean wait of a division by the simulator; called once for each.
    nodes : ndarray(int64), shape (k,)
        Where the search starts.
    allowed : callable
        Which divisions may be tried.
    step, most : int
        First step, in nodes; most divisions that are simulated in all.

    Returns
    -------
    nodes : ndarray(int64), shape (k,)
    wait : float
    tried : int
    """
    seen: dict[tuple[int, ...], float] = {}

    def simulated(division: Sizes) -> float:
        key = tuple(division.tolist())
        if key not in seen:
            seen[key] = wait(division)
        return seen[key]

    best = simulated(nodes)
    while len(seen) < most:
        moved = False
        for i in range(nodes.size):
            for j in range(nodes.size):
                other = nodes.copy()
                other[i] -= step
                other[j] += step
                if i == j or len(seen) >= most or not allowed(other):
                    continue
                if simulated(other) < best:
                    best, nodes, moved = simulated(other), other, True
        if not moved:
            if step == 1:
                break
            step //= 2
    return nodes, best, len(seen)
