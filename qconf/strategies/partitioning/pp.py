"""`pp`: partitions in proportion to what each queue used (paper, equation 7)."""

from __future__ import annotations

from qconf.evaluation.period import TrainingSet
from qconf.strategies import Options, Proposal
from qconf.strategies.partitioning.sizes import data_warnings, partition_space, proportional


def propose(training: TrainingSet, options: Options) -> Proposal:
    """Divide the machine in proportion to the core-seconds of the queues that own a partition."""
    del options
    space = partition_space(training)
    units = proportional(training, space)
    return Proposal(
        training.base.with_partitions(space.cores(units, len(training.base.queues))),
        [
            {
                "step": "proportional",
                "queues": [training.base.queues[i].name for i in space.queues],
                "core_hours": [round(float(work) / 3600, 1) for work in training.period.core_seconds[space.queues]],
                "widest": space.widest.tolist(),
                "units": units.tolist(),
                "notes": data_warnings(training, space),
            }
        ],
    )
