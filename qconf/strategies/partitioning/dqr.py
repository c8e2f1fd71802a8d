"""`dqr`: dp-nlp's sizes, then splits of queues, then merges, while simulation shows a gain.

References
----------
Kondameedi and Vadhiyar, CCGrid 2017, section II.B.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qconf.config import SiteConfig
from qconf.evaluation.evaluator import CachedEvaluator, MeanWaits
from qconf.evaluation.period import TrainingSet, cached
from qconf.strategies.base import Proposal, Step, Strategy, option, step
from qconf.strategies.partitioning import dp_nlp
from qconf.strategies.partitioning.options import DpNlpOptions, as_read
from qconf.strategies.partitioning.program import current_wait
from qconf.strategies.partitioning.split_merge import Candidate, Layout, mergeable, merged, splits

RUNTIMES = "queues are separated by actual run times, which no scheduler knows"


@dataclass(frozen=True, kw_only=True)
class DqrOptions(DpNlpOptions):
    """Options of dqr."""

    split_on: str = option(
        "walltime",
        "What dqr splits queues by; actual run times are for studies only, no scheduler knows them.",
        choices=("walltime", "runtime"),
    )
    visit_order: str = option("size", "Order in which dqr visits the queues.", choices=("size", "random"))
    split_parts: str = option(
        "first",
        "Which of a kept split's two queues dqr splits on: the first (paper, Figure 3), or both (its text).",
        choices=("first", "both"),
    )
    half_walltime: str = option(
        "first",
        "Which part of a split by walltime has the jobs of exactly half the limit; the paper: the second.",
        choices=("first", "second"),
    )
    merge_cores: str = option(
        "adjacent",
        "Which ranges of cores dqr merges: those that meet or are neighbours (up to 1032, from 1033), or only those "
        "with a size in common (the paper's condition as printed).",
        choices=("adjacent", "common"),
    )
    measured_on: str = option(
        "epochs",
        "What splits, merges and chunks are simulated on: the weighted epochs, as the program is, or the undivided "
        "period (the paper: weights are in the program only).",
        choices=("epochs", "period"),
    )


@step
class Change(Step):
    """A split or a merge that was tried."""

    at: str | None = None
    into: list[str] | None = None
    weighted_wait: float | None = None
    before: float | None = None
    kept: bool = False
    why: str


@step
class Split(Change):
    """One queue split into two."""

    queue: str
    by: str


@step
class Merge(Change):
    """Two queues merged into one."""

    queues: str


@step
class Queues(Step):
    """The resulting queues; weighted mean waits in seconds."""

    queues: int
    before: int
    weighted_wait: float
    dp_nlp_weighted_wait: float
    current_weighted_wait: float


class Dqr(Strategy):
    """Dynamic queue reconfiguration; never worse than dp-nlp on the training set."""

    name = "dqr"
    cost = 2.0
    position = 13
    Options = DqrOptions

    def propose(self, training: TrainingSet, options: DqrOptions) -> Proposal:
        """Propose new sizes, then new queues."""
        return reconfigured(as_read(training, options), options)


def reconfigured(training: TrainingSet, options: DqrOptions) -> Proposal:
    """Return dqr's proposal, with which hybrid begins."""
    return _reconfigured(training, DqrOptions.of(options))


@cached
def _reconfigured(training: TrainingSet, options: DqrOptions) -> Proposal:
    first = dp_nlp.solved(training, options)
    search = _Search(measured_set(training, options), options, Layout.of(first.config))
    for name in _visits(first.config, options):
        search.split_on(name)
    while search.merge():
        pass
    layout = search.layout
    result = Queues(
        queues=len(layout.config.queues),
        before=len(training.base.queues),
        weighted_wait=round(search.waits.overall, 1),
        dp_nlp_weighted_wait=round(search.start.overall, 1),
        current_weighted_wait=round(current_wait(measured_set(training, options)), 1),
    )
    return Proposal(
        layout.config,
        (*first.steps, *search.log, result),
        not_exportable="" if layout.runtimes is None else RUNTIMES,
        runtimes=layout.runtimes,
    )


def measured_set(training: TrainingSet, options: DqrOptions) -> TrainingSet:
    """Return the training set on which splits, merges and chunks are simulated: epochs or the whole period."""
    return _undivided(training) if options.measured_on == "period" else training


@cached
def _undivided(training: TrainingSet) -> TrainingSet:
    return replace(training, weights=(1.0,), epoch_days=None)


def _visits(config: SiteConfig, options: DqrOptions) -> list[str]:
    """Return the names of the queues in the order in which they are split."""
    queues = sorted((q for q in config.queues if not q.reservation), key=lambda q: (q.cores, q.walltime, q.name))
    if options.visit_order == "random":
        chosen = np.random.default_rng(options.seed).permutation(len(queues))
        queues = [queues[i] for i in chosen]
    return [queue.name for queue in queues]


class _Search:
    """The current layout, its mean waits, and the steps to it."""

    def __init__(self, training: TrainingSet, options: DqrOptions, layout: Layout) -> None:
        self.training = training
        self.options = options
        self.evaluator = CachedEvaluator(training, options.workers)
        self.layout = layout
        self.waits: MeanWaits = self.evaluator.measure(layout.config)
        self.start = self.waits
        self.log: list[Step] = []
        self.made = 0

    def split_on(self, name: str) -> None:
        """Split a queue, then its first part, or both parts, again, while that helps."""
        left = [name]
        while left:
            name, before = left.pop(), set(self.layout.config.names)
            if self.split(name):
                second = [] if self.options.split_parts == "first" else sorted(set(self.layout.config.names) - before)
                left += [*second, name]

    def split(self, name: str) -> bool:
        """Try the three splits of a queue; keep the best if it helps."""
        options = self.options
        found = splits(
            self.training,
            self.layout,
            self.layout.config.names.index(name),
            options.split_on,
            self.made + 1,
            half_first=options.half_walltime == "first",
            rounding=options.rounding,
        )
        return self._best(list(found), queue=name)

    def merge(self) -> bool:
        """Try to merge each mergeable pair; keep the best if it helps."""
        pairs = mergeable(self.layout, gap=1 if self.options.merge_cores == "adjacent" else 0)
        return self._best([merged(self.training, self.layout, pair) for pair in pairs])

    def _best(self, candidates: list[Candidate], queue: str | None = None) -> bool:
        layouts = [each.layout for each in candidates if each.layout is not None]
        measured = self.evaluator.measure_all([(layout.config, layout.runtimes) for layout in layouts])
        found = list(zip(layouts, measured, strict=True))
        best, least = min(found, key=lambda each: each[1].overall, default=(self.layout, self.waits))
        helps = least.overall < self.waits.overall
        remaining = iter(found)
        for each in candidates:
            if each.layout is None:
                values: dict[str, Any] = {"why": each.rule}
            else:
                values = {"at": each.rule} | self._values(*next(remaining), best=each.layout is best, helps=helps)
            self.log.append(
                Merge(queues=each.what, **values) if queue is None else Split(queue=queue, by=each.what, **values)
            )
        if helps:
            self.layout, self.waits, self.made = best, least, self.made + 1
        return helps

    def _values(self, layout: Layout, waits: MeanWaits, *, best: bool, helps: bool) -> dict[str, Any]:
        """Return the log's values for a layout that was tried."""
        before = self.waits.overall
        if best:
            why = "the best, and less than before" if helps else "the best, but no less than before"
        else:
            why = "another gives less" if waits.overall < before else "no less than before"
        queues = [queue for queue in layout.config.queues if queue not in self.layout.config.queues]
        return {
            "into": [f"{queue.name} {queue.partition}" for queue in queues],
            "weighted_wait": round(waits.overall, 1),
            "before": round(before, 1),
            "kept": helps and best,
            "why": why,
        }


STRATEGIES = (Dqr(),)
