"""The options of strategies that divide the machine: readings of the paper, and dp-nlp's search.

References
----------
Kondameedi and Vadhiyar, CCGrid 2017, sections II.A and IV.A.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from parsim.model.system import LIMITS
from qconf.config import QueueConfig, SiteConfig
from qconf.errors import InputError
from qconf.evaluation.period import WEIGHTS, Period, TrainingSet, cached
from qconf.strategies.base import Options, option
from qconf.strategies.partitioning.bounds import lower_bounds
from qconf.strategies.partitioning.feasible import Feasible
from qconf.strategies.partitioning.sizes import PartitionSpace
from qconf.strategies.partitioning.surrogate import DEGREES

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
    """Return the training set with the limits and starvation periods that the options give queues on partitions."""
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


@dataclass(frozen=True, kw_only=True)
class DpNlpOptions(PartitionOptions):
    """Options of dp-nlp."""

    samples: int | None = option(
        None, "Divisions that dp-nlp simulates before it fits surrogates.", least=20, shown="5 a queue, at least 20"
    )
    simulations: int | None = option(
        None,
        "Divisions that dp-nlp simulates at most: its samples, then minima of the surrogates, each added to the "
        "samples, at last moves around the best. As many as samples: a single pass (the paper's way).",
        least=20,
        shown="three times the samples",
    )
    slack: float = option(0.3, "Slack of dp-nlp's proportional constraint.", least=0, most=1)
    tau_util: float = option(
        0.9, "Share of a queue's best utilization down to which dp-nlp's lower bound goes.", least=0, most=1
    )
    degree: int | None = option(
        None, "Degree of dp-nlp's surrogates.", choices=(None, *DEGREES), shown="by cross-validation"
    )
    weights: tuple[float, ...] = option(
        WEIGHTS, "Weights of the epochs that the log is cut into, the oldest first.", shown="1/3, 2/3, 1"
    )
    epoch_days: int | None = option(
        None,
        "Days of an epoch: the last ends with the jobs trained on, the first may begin before them, where jobs are "
        "known (the paper: 10).",
        least=1,
        most=3650,
        shown="equal parts of the jobs trained on",
    )
    decide_by: str = option(
        "simulation",
        "What dp-nlp answers with: the best of what it simulates, no worse than pp and the present, or the optimum of "
        "the program as it stands (the paper's way; hybrid then keeps what it carves, too).",
        choices=("simulation", "program"),
    )
    surrogate: str = option(
        "ridge",
        "How dp-nlp's polynomials are fitted: to logarithms of waits with a ridge penalty by cross-validation, or "
        "plain (the paper's way).",
        choices=("ridge", "plain"),
    )
    proportions: str = option(
        "both",
        "Of which queue of a pair dp-nlp's proportional constraint is: of each, or only of the first in the "
        "configuration (one-sided, as the paper prints it).",
        choices=("both", "one-sided"),
    )
    excess: str = option(
        "toward-widest",
        "What becomes of lower bounds that exceed the machine: moved toward the widest jobs, dividing it in "
        "proportion, or dropped.",
        choices=("toward-widest", "proportional", "dropped"),
    )

    def bounds(self, training: TrainingSet, space: PartitionSpace) -> Feasible:
        """Return the bounds of the sizes in a partition space."""
        one_sided = self.proportions == "one-sided"
        return lower_bounds(training, space, self.slack, self.tau_util, one_sided=one_sided, excess=self.excess)

    def check(self, base: SiteConfig) -> None:
        """Raise InputError if an option makes no sense."""
        super().check(base)
        if self.samples is not None and self.simulations is not None and self.simulations < self.samples:
            fix = f"give at least the {self.samples} of samples"
            raise InputError("fewer simulations than samples", field="simulations", value=self.simulations, fix=fix)
        if not self.weights or not all(math.isfinite(weight) and weight > 0 for weight in self.weights):
            fix = "give a positive number for each epoch, the oldest first"
            raise InputError("no weights of epochs", field="weights", value=list(self.weights), fix=fix)
