"""Simulates planning disciplines at growing load, and dynP on a grid of its bounds.

References
----------
Streit, HiPC 2001: Table 2 and Figures 3 to 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from parsim import Workload
from parsim.planning.plan import Policy, bounds, named, self_tuning
from qconf.evaluation.planning import DisciplineResult, compare, shrink
from qconf.parallel import parallel_map

#: The disciplines of a sweep.
SWEPT = (
    named("planned-fcfs"),
    named("planned-sjf"),
    named("planned-ljf"),
    named("dynp-bounds"),
    self_tuning(),
)
#: Shrinking factors of a sweep: 0.75, 0.70 .. 0.25.
FACTORS = tuple(Decimal(percent) / 100 for percent in range(75, 20, -5))
#: Bounds of dynP in the paper's grid, seconds.
GRID_LOWER = (600, 1200, 1800, 3600, 6600, 7200, 7800)
GRID_UPPER = (3600, 7200, 8400, 9000, 9600, 14400, 21600, 43200)

Sweep = Sequence[tuple[Decimal, Sequence[DisciplineResult]]]
Grid = dict[tuple[int, int], DisciplineResult]


def sweep(
    workload: Workload,
    cores: int,
    policies: Sequence[Policy] = SWEPT,
    factors: Sequence[Decimal] = FACTORS,
    *,
    workers: int = 1,
) -> Sweep:
    """Simulate disciplines at growing load; return (shrinking factor, a result per discipline) pairs."""

    def run(factor: Decimal) -> list[DisciplineResult]:
        return compare(shrink(workload, factor), cores, policies, reference=False)

    return list(zip(factors, parallel_map(workers, run, [(factor,) for factor in factors]), strict=True))


def bounds_grid(
    workload: Workload,
    cores: int,
    lower: Sequence[int] = GRID_LOWER,
    upper: Sequence[int] = GRID_UPPER,
    *,
    workers: int = 1,
) -> Grid:
    """Simulate dynP with each pair of bounds, lower <= upper; return the results by (lower, upper), seconds."""
    pairs = [(low, high) for low in lower for high in upper if low <= high]
    results = compare(workload, cores, [bounds(*pair) for pair in pairs], workers=workers, reference=False)
    return dict(zip(pairs, results, strict=True))
