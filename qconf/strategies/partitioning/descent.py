"""From a good division to a better one beside it: cores move between two queues as long as that helps."""

from __future__ import annotations

from collections.abc import Callable

from qconf.strategies.partitioning.sizes import Sizes


def descend(
    wait: Callable[[Sizes], float], nodes: Sizes, may: Callable[[Sizes], bool], *, step: int, most: int
) -> tuple[Sizes, float, int]:
    """Move `step` nodes between pairs of queues while it helps, then half as many, down to one.

    Parameters
    ----------
    wait : callable
        What a division costs, by the simulator; asked once for each.
    nodes : ndarray(int64), shape (k,)
        Where the search begins.
    may : callable
        Tells which divisions may be tried.
    step, most : int
        First step, in nodes; divisions that may be simulated in all.

    Returns
    -------
    nodes : ndarray(int64), shape (k,)
    wait : float
    tried : int
    """
    seen: dict[tuple[int, ...], float] = {}

    def asked(division: Sizes) -> float:
        key = tuple(division.tolist())
        if key not in seen:
            seen[key] = wait(division)
        return seen[key]

    best = asked(nodes)
    while len(seen) < most:
        moved = False
        for i in range(nodes.size):
            for j in range(nodes.size):
                other = nodes.copy()
                other[i] -= step
                other[j] += step
                if i == j or len(seen) >= most or not may(other):
                    continue
                if asked(other) < best:
                    best, nodes, moved = asked(other), other, True
        if not moved:
            if step == 1:
                break
            step //= 2
    return nodes, best, len(seen)
