"""Local search for a better division: nodes move between two queues while the wait falls."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qconf.strategies.partitioning.sizes import Sizes


def descend(
    wait: Callable[[Sizes], float],
    nodes: Sizes,
    allowed: Callable[[Sizes], bool],
    *,
    step: int,
    most: int,
    known: Mapping[tuple[int, ...], float] | None = None,
) -> tuple[Sizes, float, int]:
    """Move `step` nodes between pairs of queues while the wait falls, then half as many, down to one.

    At most `most` divisions are simulated, each once, and none whose wait is `known`. Returns the best division, its
    wait, and the number of simulated ones.
    """
    seen = dict(known or {})
    most += len(seen)
    before = len(seen)

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
    return nodes, best, len(seen) - before
