"""`gpu-nodes-open`, `gpu-nodes-closed`: the base, with GPU nodes for all jobs or for those alone that take GPUs.

They answer the first question of a site with GPU nodes without any search, so `qconf tune` compares them there.
"""

from __future__ import annotations

from parsim.prepare.chunks import has_place
from qconf.config import QueueConfig, SiteConfig
from qconf.evaluation.period import NotApplicableError, TrainingSet
from qconf.strategies.base import Options, Proposal, Strategy
from qconf.strategies.nodes import both_ways, without_gpus


class GpuNodes(Strategy):
    """The base with other nodes for the queues in which no job takes GPUs."""

    any_nodes = True
    default = False
    tune_default = False

    def __init__(self, name: str, position: int, *, is_open: bool) -> None:
        self.name, self.position, self.is_open = name, position, is_open

    def is_baseline_of(self, base: SiteConfig) -> bool:
        """Whether the site has GPU nodes and others, which a queue may use."""
        return any(both_ways(base, queue) is not None for queue in base.queues)

    def propose(self, training: TrainingSet, options: Options) -> Proposal:
        """Let these queues use GPU nodes, or not."""
        del options
        base, plain = training.base, without_gpus(training)

        def changed(q: int, queue: QueueConfig) -> QueueConfig:
            both = both_ways(base, queue) if plain[q] else None
            return queue if both is None else both[self.is_open]

        if base.mode != "shared" or not self.is_baseline_of(base):
            raise NotApplicableError("no queue may use GPU nodes and others")
        config = base.replace(queues=tuple(changed(q, queue) for q, queue in enumerate(base.queues)))
        outside = ~has_place(config.system(), training.workload)
        if outside.any():
            raise NotApplicableError(f"{int(outside.sum())} jobs fit on no other nodes")
        return Proposal(config)


STRATEGIES = (
    GpuNodes("gpu-nodes-open", 4, is_open=True),
    GpuNodes("gpu-nodes-closed", 5, is_open=False),
)
