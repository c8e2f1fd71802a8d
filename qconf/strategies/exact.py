"""`exact`: the best partition sizes for the history, without a surrogate.

Queues on partitions of their own do not interact, so the weighted mean wait is a sum over queues of what each waits on
its size: tabulate every size, then divide the machine by dynamic programming. Where jobs are reserved, or limits or
another order than fcfs play a part, the table is an estimate and a local search on the simulator goes on from it.
"""

from __future__ import annotations

import numpy as np

from qconf.strategies import Options, Proposal
from qconf.tuning.bounds import Bounds, lower_bounds
from qconf.tuning.divide import best_division, best_proportional_division
from qconf.tuning.month import Month
from qconf.tuning.sizes import Room, Sizes, room
from qconf.tuning.tables import WaitTable, tabulate

LONGEST_SEARCH = 60  # simulations that the local search may take


def propose(month: Month, options: Options) -> Proposal:
    """Find the sizes of least weighted mean wait, free of dp-nlp's constraints; say what these would cost."""
    space = room(month)
    table = tabulate(month, space, options.workers)
    bounds = lower_bounds(month, space, options.slack, options.utilization)
    units, least = solve(table, space)
    tight, constrained = solve(table, space, bounds)
    doubts = estimated(month)
    log = [
        {
            "step": "table",
            "units": units.tolist(),
            "weighted_wait": round(least, 1),
            "constrained_units": tight.tolist(),
            "constrained_weighted_wait": round(constrained, 1),
            "proven": not doubts,
            "why_not": doubts,
        }
    ]
    if doubts:
        units, wait, tried = _descend(month, space, units)
        log.append(
            {
                "step": "local search",
                "units": units.tolist(),
                "weighted_wait": round(wait, 1),
                "simulations": tried,
            }
        )
    return Proposal(month.base.with_partitions(space.cores(units, len(month.base.queues))), log)


def solve(table: WaitTable, space: Room, bounds: Bounds | None = None) -> tuple[Sizes, float]:
    """Return the best division by the table, free or under dp-nlp's bounds, and its weighted mean wait."""
    if bounds is None:
        units, least = best_division(table.cost, space.widest, np.full_like(space.widest, space.total), space.total)
    else:
        units, least = best_proportional_division(table.cost, bounds.low, space.total, bounds.share, bounds.slack)
        if units is None:  # no whole sizes keep what fractions can: let each be a unit off
            slack = min(1.0, bounds.slack + 0.01)
            units, least = best_proportional_division(table.cost, bounds.low, space.total, bounds.share, slack)
    if units is None:
        return solve(table, space)
    return units, least


def estimated(month: Month) -> str:
    """Say why the table is not the simulator's own sum; empty if it is."""
    reasons = []
    if any(month.base.queues[q].reservation for q in np.unique(month.workload.queue)):
        reasons.append("jobs start by advance reservation")
    if month.base.system().has_limits:
        reasons.append("limits hold jobs")
    if month.base.order != "fcfs":
        reasons.append(f"the order is {month.base.order}")
    return ", ".join(reasons)


def _descend(month: Month, space: Room, units: Sizes) -> tuple[Sizes, float, int]:
    """Move cores between two queues as long as the simulator says that it helps, by ever smaller steps."""
    seen: dict[tuple[int, ...], float] = {}

    def wait(division: Sizes) -> float:
        key = tuple(division.tolist())
        if key not in seen:
            seen[key] = month.weighted_wait(month.base.with_partitions(space.cores(division, len(month.base.queues))))
        return seen[key]

    best, step = wait(units), max(1, space.total // 16)
    while len(seen) < LONGEST_SEARCH:
        moved = False
        for i in range(units.size):
            for j in range(units.size):
                if i == j or units[i] - step < space.widest[i] or len(seen) >= LONGEST_SEARCH:
                    continue
                other = units.copy()
                other[i] -= step
                other[j] += step
                if wait(other) < best:
                    best, units, moved = wait(other), other, True
        if not moved:
            if step == 1:
                break
            step //= 2
    return units, best, len(seen)
