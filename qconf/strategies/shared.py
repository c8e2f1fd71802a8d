"""`shared`: the base queues on the shared machine, the paper's "static non-partitioned"."""

from __future__ import annotations

from qconf.evaluation.period import TrainingSet
from qconf.strategies import Options, Proposal


def propose(training: TrainingSet, options: Options) -> Proposal:
    """Take the partitions away, keep everything else."""
    del options
    queues = tuple(queue.model_copy(update={"partition": 0}) for queue in training.base.queues)
    reserve_after = training.base.unless_fixed(
        training.base.reservation_delay
    )  # what plays no part among partitions begins to here
    return Proposal(training.base.replace(queues=queues, mode="shared", reserve_after=reserve_after, pool=None))
