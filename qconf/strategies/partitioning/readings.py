"""How the paper is read where partitions are made: what its text fixes and this project does otherwise, or leaves open.

References
----------
Kondameedi and Vadhiyar, CCGrid 2017, sections II.A and IV.A.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from parsim.model.system import LIMITS
from qconf.config import QueueConfig
from qconf.evaluation.period import Period, TrainingSet, cached
from qconf.strategies.base import Options, option

PAPERS_STARVATION = 24 * 3600


@dataclass(frozen=True, kw_only=True)
class PartitionOptions(Options):
    """Options of every strategy that divides the machine."""

    least_size: str = option(
        "queue",
        "Least size of a partition: the widest job that its queue admits (paper, IV.A), where these fit the machine at "
        "once, or its widest job. Limits above a partition are lowered to it.",
        choices=("queue", "job"),
    )
    rounding: str = option(
        "remainders",
        "How sizes become whole: by largest remainders, or all down and the rest to the largest partition.",
        choices=("remainders", "down"),
    )
    partition_limits: str = option(
        "kept",
        "Whether queues on partitions keep their limits on what runs, which the site has for the shared machine.",
        choices=("kept", "dropped"),
    )
    partition_starvation: str = option(
        "configured",
        "After how long a job on partitions starves: as configured, or a day in every queue (paper, IV.A).",
        choices=("configured", "24h"),
    )


def as_read(training: TrainingSet, options: PartitionOptions) -> TrainingSet:
    """Return the training set with the queues that are put on partitions; the same one where nothing differs."""
    if options.partition_limits == "kept" and options.partition_starvation == "configured":
        return training
    return _as_read(training, options.partition_limits, options.partition_starvation)


@cached
def _as_read(training: TrainingSet, limits: str, starvation: str) -> TrainingSet:
    changes: dict[str, Any] = {}
    if limits == "dropped":
        changes |= dict.fromkeys(LIMITS)
    if starvation == "24h":
        changes["starvation"] = PAPERS_STARVATION

    def changed(period: Period) -> Period:
        queues: list[QueueConfig] = [queue.model_copy(update=changes) for queue in period.base.queues]
        return replace(period, base=period.base.with_queues(queues))

    return training.of_each(changed)
