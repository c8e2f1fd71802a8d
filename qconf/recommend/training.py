"""The work of a recommendation's workers: training on parts of a history, and evaluation of the proposals."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from parsim.metrics import Summary
from qconf.config import SiteConfig
from qconf.evaluation.feasibility import fixed_text, fixed_violations, never_start
from qconf.evaluation.holdout import Holdout
from qconf.evaluation.period import NotApplicableError, TrainingSet, UnroutableError
from qconf.evaluation.targets import target_results
from qconf.parallel import Shared, parallel_map
from qconf.recommend.checkpoint import Checkpoint, Failure, Proposals
from qconf.strategies import Proposal, grouped_by_package, registry, variants
from qconf.strategies.ahead import Computed, compute_ahead, learn

WHOLE = "whole"  # the whole history as a part; its proposals are the ones to load
Check = Callable[[SiteConfig], list[str]]  #: why a configuration is not exportable; empty if it is
Result = Proposals | Failure  #: the proposals of a strategy by variant, or why it has none


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of a history that strategies are trained and evaluated on."""

    training: Mapping[str, TrainingSet]  #: by part: `WHOLE`, and the splits' names
    whole: Holdout
    test: Holdout  #: test period of the last split
    settings: Mapping[str, Any]


class Measured(NamedTuple):
    """A variant's metrics: on the whole history, trained on it, and on the test period, trained before it."""

    in_sample: Summary
    test: Summary
    unmet: tuple[str, ...]  #: targets of the site that are not met on the test period
    reasons: tuple[str, ...]  #: why the proposal for the whole history is ineligible, whatever it gains
    test_reasons: tuple[str, ...]  #: why the proposal for the test period is ineligible


class Trainer:
    """Runs strategies on parts of a history, each once, and keeps their proposals."""

    def __init__(self, parts: Parts, workers: int, checkpoint: Checkpoint | None) -> None:
        self.workers, self.checkpoint = workers, checkpoint
        self.shared = Shared(replace(parts, settings={**parts.settings, "workers": 1}) if workers > 1 else parts)
        self.found: dict[tuple[str, str], Result] = {}
        self.seconds: dict[str, float] = {}

    def train(
        self,
        wanted: Sequence[tuple[str, str]],
        advance: Callable[[float], None] = lambda _: None,
        meanwhile: Callable[[], object] | None = None,
    ) -> None:
        """Train (strategy, part) pairs that are not known yet; `advance` gets the finished fraction.

        `meanwhile` may be called once or twice while workers work.
        """
        new = [each for each in wanted if each not in self.found and not self._resumed(*each)]
        parts = self.shared.value
        tasks = _tasks(new, self.workers, parts)
        names = [name for name, _ in new]
        ahead = compute_ahead(list(parts.training.values()), names, parts.settings, self.workers, meanwhile)
        costs = [_cost(task, parts) for task in tasks]
        spent, total = [0.0], sum(costs) or 1.0

        def keep(i: int, results: list[tuple[Result, float]]) -> None:
            part, names = tasks[i]
            for name, (result, seconds) in zip(names, results, strict=True):
                self.found[name, part] = result
                self.seconds[name] = self.seconds.get(name, 0.0) + seconds
                if self.checkpoint is not None:
                    self.checkpoint.put(f"{name}-{part}", result)
            spent[0] += costs[i]
            advance(spent[0] / total)

        calls = [(self.shared, ahead, self.checkpoint, *task) for task in tasks]
        parallel_map(self.workers, _propose, calls, processes=True, done=keep, meanwhile=meanwhile)

    def _resumed(self, name: str, part: str) -> bool:
        kept = None if self.checkpoint is None else self.checkpoint.get(f"{name}-{part}")
        if isinstance(kept, Mapping | Failure):
            self.found[name, part] = kept
        return (name, part) in self.found

    def measure(self, pairs: Sequence[tuple[Proposal, Proposal]], check: Check | None) -> list[Measured | str]:
        """Evaluate pairs of proposals, of the whole history and from before the test period; a text is why not."""
        tasks = [(self.shared, check, bare(final), bare(proposal)) for final, proposal in pairs]
        return parallel_map(self.workers, _measure, tasks, processes=True)


def why_ineligible(parts: Parts, check: Check | None, proposal: Proposal) -> tuple[str, ...]:
    """Return why a proposal is ineligible at this site, whatever its gain."""
    if proposal.not_exportable:
        return (proposal.not_exportable,)
    training, config = parts.training[WHOLE], proposal.config
    changed = fixed_violations(training.base, config, training.period.binding)
    unexportable = [] if check is None else check(config)
    return (
        *([fixed_text(changed, training.base.names)] if changed else []),
        *never_start(training.base, config, training.workload),
        *([proposal.not_yet] if proposal.not_yet else []),
        *(f"not exportable: {why}" for why in unexportable),
    )


def bare(proposal: Proposal) -> Proposal:
    """Return a proposal without its log, which no simulation reads."""
    return replace(proposal, steps=())


_Task = tuple[str, tuple[str, ...]]  # a part, and the strategies to train on it


def _tasks(wanted: Sequence[tuple[str, str]], workers: int, parts: Parts) -> list[_Task]:
    """Group strategies by part and package, the longest task first; with one worker each strategy is a task."""
    if workers <= 1:
        return [(part, (name,)) for name, part in wanted]
    names: dict[str, list[str]] = {}
    for name, part in wanted:
        names.setdefault(part, []).append(name)
    tasks = [(part, own) for part in names for own in grouped_by_package(names[part])]
    return sorted(tasks, key=lambda task: _cost(task, parts), reverse=True)


def _cost(task: _Task, parts: Parts) -> float:
    part, names = task
    return sum(registry()[name].cost for name in names) * len(parts.training[part])


def _propose(
    shared: Shared[Parts],
    ahead: Shared[list[Computed]],
    checkpoint: Checkpoint | None,
    part: str,
    names: Sequence[str],
) -> list[tuple[Result, float]]:
    """Train these strategies on a part and store each proposal; return each with its seconds."""
    learn(ahead, tuple(shared.value.training.values()))

    def trained(name: str) -> Result:
        try:
            return variants(name, shared.value.training[part], shared.value.settings, appraise=part == WHOLE)
        except (NotApplicableError, UnroutableError) as error:
            return error

    found: list[tuple[Result, float]] = []
    for name in names:
        began = time.perf_counter()
        work = partial(trained, name)
        result = work() if checkpoint is None else checkpoint.kept(f"{name}-{part}", work)
        found.append((result, time.perf_counter() - began))
    return found


def _measure(shared: Shared[Parts], check: Check | None, final: Proposal, proposal: Proposal) -> Measured | str:
    try:
        in_sample = shared.value.whole.evaluate(final)
        outcome = shared.value.test.outcome(proposal)
        unmet = tuple(each.what for each in target_results(outcome) if not each.met)
        found = why_ineligible(shared.value, check, final)
        on_test = found if proposal.config == final.config else why_ineligible(shared.value, check, proposal)
        return Measured(in_sample, outcome.summary, unmet, found, on_test)
    except UnroutableError as error:
        return str(error)
