"""`dqr`: dp-nlp's sizes, then queues split, then queues merged, as long as the simulator says that it helps.

References
----------
Kondameedi and Vadhiyar, CCGrid 2017, section V.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from qconf.config import SiteConfig
from qconf.evaluation.evaluator import CachedEvaluator, MeanWaits
from qconf.evaluation.period import TrainingSet, cached
from qconf.strategies import Options, Proposal
from qconf.strategies.partitioning import dp_nlp
from qconf.strategies.partitioning.split_merge import Candidate, Layout, mergeable, merged, splits

#: What only the pool is carved by: whatever it is, the queues are the same.
_OF_HYBRID: dict[str, Any] = {
    name: getattr(Options, name)
    for name in ("chunk", "degradation", "carve", "pool_entry", "pool_placement", "reference")
}


def propose(training: TrainingSet, options: Options) -> Proposal:
    """Change sizes, then queues. Never worse than dp-nlp on the history."""
    return _reconfigured(training, replace(options, **_OF_HYBRID))


@cached
def _reconfigured(training: TrainingSet, options: Options) -> Proposal:
    first = dp_nlp.propose(training, options)
    search = _Search(training, options, Layout.of(first.config))
    search.log += first.decisions
    for name in _visits(first.config, options):
        while search.split(name):
            pass
    while search.merge():
        pass
    layout = search.layout
    search.log.append(
        {
            "step": "queues",
            "queues": len(layout.config.queues),
            "before": len(training.base.queues),
            "weighted_wait": round(search.waits.overall, 1),
            "dp-nlp_weighted_wait": round(search.start.overall, 1),
            "current_weighted_wait": round(dp_nlp.current_wait(training), 1),
        }
    )
    not_exportable = (
        "" if layout.runtimes is None else "queues are told apart by what jobs really ran, which no scheduler knows"
    )
    return Proposal(layout.config, search.log, not_exportable=not_exportable, runtimes=layout.runtimes)


def _visits(config: SiteConfig, options: Options) -> list[str]:
    """Names of the queues in the order in which they are to be split."""
    queues = sorted((q for q in config.queues if not q.reservation), key=lambda q: (q.cores, q.walltime, q.name))
    if options.order == "random":
        chosen = np.random.default_rng(options.seed).permutation(len(queues))
        queues = [queues[i] for i in chosen]
    return [queue.name for queue in queues]


class _Search:
    """The layout reached so far, what it is worth, and how it came to it."""

    def __init__(self, training: TrainingSet, options: Options, layout: Layout) -> None:
        self.training = training
        self.options = options
        self.meter = CachedEvaluator(training, options.workers)
        self.layout = layout
        self.waits: MeanWaits = self.meter.measure(layout.config)
        self.start = self.waits
        self.log: list[dict[str, Any]] = []
        self.made = 0

    def split(self, name: str) -> bool:
        """Try the three splits of a queue and keep the best if it helps."""
        index = self.layout.config.names.index(name)
        return self._best(
            "split", list(splits(self.training, self.layout, index, self.options.split_on, self.made + 1)), name
        )

    def merge(self) -> bool:
        """Try to merge every pair that may be and keep the best if it helps."""
        return self._best("merge", [merged(self.training, self.layout, pair) for pair in mergeable(self.layout)])

    def _best(self, step: str, candidates: list[Candidate], queue: str | None = None) -> bool:
        able = [each for each in candidates if each.layout is not None]
        judged = self.meter.measure_all([(each.layout.config, each.layout.runtimes) for each in able if each.layout])
        worth = {id(each): waits for each, waits in zip(able, judged, strict=True)}
        best = min(able, key=lambda each: worth[id(each)].overall, default=None)
        before = self.waits.overall
        helps = best is not None and worth[id(best)].overall < before
        for each in candidates:
            entry: dict[str, Any] = {"step": step} | (
                {"queue": queue, "by": each.what} if queue else {"queues": each.what}
            )
            if each.layout is None:
                self.log.append({**entry, "kept": False, "why": each.rule})
                continue
            waits = worth[id(each)].overall
            sizes = [f"{q.name} {q.partition}" for q in each.layout.config.queues if q not in self.layout.config.queues]
            if each is best:
                why = "the best, and less than before" if helps else "the best, but no less than before"
            else:
                why = "another gives less" if waits < before else "no less than before"
            self.log.append(
                {
                    **entry,
                    "at": each.rule,
                    "into": sizes,
                    "weighted_wait": round(waits, 1),
                    "before": round(before, 1),
                    "kept": helps and each is best,
                    "why": why,
                }
            )
        if not helps or best is None or best.layout is None:
            return False
        self.layout, self.waits = best.layout, worth[id(best)]
        self.made += 1
        return True
