"""`shared`: the base queues on the shared machine, the paper's "static non-partitioned"."""

from __future__ import annotations

from qconf.strategies import Options, Proposal
from qconf.tuning.month import Month


def propose(month: Month, options: Options) -> Proposal:
    """Take the partitions away, keep everything else."""
    del options
    queues = tuple(queue.model_copy(update={"partition": 0}) for queue in month.base.queues)
    reserve_after = month.base.unless_fixed(month.base.patience)  # what plays no part among partitions begins to here
    return Proposal(month.base.replace(queues=queues, mode="shared", reserve_after=reserve_after, pool=None))
