"""`exact`: the best partition sizes for the history, without a surrogate: what the other strategies are measured by."""

from __future__ import annotations

from qconf.strategies import Options, Proposal, dp_nlp
from qconf.tuning.bounds import lower_bounds
from qconf.tuning.month import Month
from qconf.tuning.regret import optimum
from qconf.tuning.sizes import poverty, room


def propose(month: Month, options: Options) -> Proposal:
    """Find the sizes of least weighted mean wait, free of dp-nlp's constraints; say what these would cost."""
    space = room(month)
    free = optimum(month, space, None, options.workers)
    bounds = lower_bounds(month, space, options.slack, options.tau_util)
    tight = optimum(month, space, bounds, options.workers)
    log = [
        {
            "step": "table",
            "queues": [month.base.queues[i].name for i in space.queues],
            "units": free.tabulated_units.tolist(),
            "weighted_wait": round(free.tabulated, 1),
            "constrained_units": tight.tabulated_units.tolist(),
            "constrained_weighted_wait": round(tight.tabulated, 1),
            "proven": not tight.doubts,
            "why_not": tight.doubts,
            "notes": poverty(month, space),
        }
    ]
    answer = month.base.with_partitions(space.cores(free.units, len(month.base.queues)))
    if free.doubts:
        log.append(
            {
                "step": "local search",
                "units": free.units.tolist(),
                "weighted_wait": round(free.wait, 1),
                "simulations": free.simulations,
                "constrained_units": tight.units.tolist(),
                "constrained_weighted_wait": round(tight.wait, 1),
            }
        )
        other = dp_nlp.propose(month, options).config
        wait = month.weighted_wait(other)
        if wait < free.wait:
            answer = other
        log.append({"step": "beside dp-nlp", "dp-nlp_weighted_wait": round(wait, 1), "taken": wait < free.wait,
                    "why": "a search from another begin ended lower" if wait < free.wait else "no less"})  # fmt: skip
    return Proposal(answer, log)
