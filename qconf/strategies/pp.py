"""`pp`: partitions in proportion to what each queue used (paper, equation 7)."""

from __future__ import annotations

from qconf.strategies import Options, Proposal
from qconf.tuning.month import Month
from qconf.tuning.sizes import poverty, proportional, room


def propose(month: Month, options: Options) -> Proposal:
    """Divide the machine in proportion to the core-seconds of the queues that own a partition."""
    del options
    space = room(month)
    units = proportional(month, space)
    return Proposal(
        month.base.with_partitions(space.cores(units, len(month.base.queues))),
        [
            {
                "step": "proportional",
                "queues": [month.base.queues[i].name for i in space.queues],
                "core_hours": [round(float(work) / 3600, 1) for work in month.core_seconds[space.queues]],
                "widest": space.widest.tolist(),
                "units": units.tolist(),
                "notes": poverty(month, space),
            }
        ],
    )
