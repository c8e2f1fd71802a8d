"""`exact`: the best partition sizes for the history, without a surrogate: what the other strategies are measured by."""

from __future__ import annotations

from qconf.evaluation.period import TrainingSet
from qconf.strategies import Options, Proposal
from qconf.strategies.partitioning import dp_nlp
from qconf.strategies.partitioning.bounds import lower_bounds
from qconf.strategies.partitioning.regret import optimum
from qconf.strategies.partitioning.sizes import data_warnings, partition_space


def propose(training: TrainingSet, options: Options) -> Proposal:
    """Find the sizes of least weighted mean wait, free of dp-nlp's constraints; say what these would cost."""
    space = partition_space(training)
    free = optimum(training, space, None, options.workers)
    bounds = lower_bounds(training, space, options.slack, options.tau_util)
    tight = optimum(training, space, bounds, options.workers)
    log = [
        {
            "step": "table",
            "queues": [training.base.queues[i].name for i in space.queues],
            "units": free.tabulated_units.tolist(),
            "weighted_wait": round(free.tabulated, 1),
            "constrained_units": tight.tabulated_units.tolist(),
            "constrained_weighted_wait": round(tight.tabulated, 1),
            "proven": not tight.doubts,
            "not_exportable": tight.doubts,
            "notes": data_warnings(training, space),
        }
    ]
    answer = training.base.with_partitions(space.cores(free.units, len(training.base.queues)))
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
        other = dp_nlp.propose(training, options).config
        wait = training.weighted_wait(other)
        if wait < free.wait:
            answer = other
        log.append({"step": "beside dp-nlp", "dp-nlp_weighted_wait": round(wait, 1), "taken": wait < free.wait,
                    "why": "a search from another begin ended lower" if wait < free.wait else "no less"})  # fmt: skip
    return Proposal(answer, log)
