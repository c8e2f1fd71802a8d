"""Every strategy is trained and evaluated on the same splits of a history."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from parsim.metrics import Summary
from qconf.config import SiteConfig
from qconf.evaluation.bootstrap import Bootstrap, NoDaysError
from qconf.evaluation.feasibility import fixed_violations, never_start
from qconf.evaluation.guard_rails import GuardRails, GuardValues
from qconf.evaluation.holdout import Holdout, Split
from qconf.evaluation.period import NotApplicableError, TrainingSet, UnroutableError
from qconf.evaluation.score import reduction
from qconf.recommend.checkpoint import Checkpoint, cached_proposal
from qconf.recommend.recommendation import Row
from qconf.strategies import Options, Proposal

Check = Callable[[SiteConfig], list[str]]  #: why a configuration is not exportable; empty if it is


@dataclass
class Evaluator:
    """Trains and evaluates strategies, one after the other; `splits` are those with enough jobs."""

    training: TrainingSet
    splits: dict[str, Split]
    settings: Mapping[str, Any]
    guards: GuardRails
    check: Check | None
    checkpoint: Checkpoint | None

    def __post_init__(self) -> None:
        self.options = Options.of(self.settings)
        first, last = (int(self.training.workload.submit[i]) for i in (0, -1))
        self.whole = Holdout.of(self.training.period, first, last + 1)
        self.base = Proposal(self.training.base)
        if self.check is not None and self.check(self.training.base):
            self.check = None  # the current configuration is not exportable either: this makes no strategy ineligible
        if "last" in self.splits:
            self.test = self.splits["last"].test
            self.current = self.test.evaluate(self.base)

    @cached_property
    def bootstrap(self) -> Bootstrap:
        """Resample the test days of all splits."""
        tests = [split.test for split in self.splits.values()]
        return Bootstrap(tests, self.base, self.options.objective, self.options.seed, self.options.workers)

    def propose(self, name: str, part: str, training: TrainingSet) -> Proposal:
        """Run a strategy, or take the proposal that an interrupted run kept."""
        return cached_proposal(self.checkpoint, f"{name}-{part}", name, training, self.settings)

    def row(self, name: str) -> Row:
        """Train on the whole history; train on its earlier part and evaluate on the later one."""
        began = time.perf_counter()
        try:
            final = self.propose(name, "whole", self.training)
            row = _of(Row(name, None, None, None, None), final, self.whole.evaluate(final))
            if "last" in self.splits:
                row = self.evaluated(row, final)
        except (NotApplicableError, UnroutableError) as error:
            row = Row(name, None, None, None, None, ineligible=str(error))
        return replace(row, seconds=time.perf_counter() - began)

    def evaluated(self, row: Row, final: Proposal) -> Row:
        """Evaluate on the test period and, where there is a gain, on resampled days of all splits."""
        last = self.splits["last"]
        proposal = self.propose(row.name, "last", last.training)
        summary = last.test.evaluate(proposal)
        gained = reduction(summary, self.current, self.options.objective)
        reasons = self.reasons(final) if row.name != "current" else []
        promising = gained > 0 and not reasons and row.name != "current"
        if promising and final.config == self.training.base:
            reasons.append("trained on the whole history, it proposes what you have")
        worse = self.guards.broken(GuardValues.of(self.current), GuardValues.of(summary), last.test.days)
        result, tolerated = None, ""
        if promising and not reasons:
            try:
                earlier = {part: split for part, split in self.splits.items() if split is not last}
                proposals = [self.propose(row.name, part, split.training) for part, split in earlier.items()]
                result = self.bootstrap.compare([*proposals, proposal])
                usual = self.guards.broken(result.before, result.after, last.test.days)
                tolerated = "; ".join(text for what, text in worse.items() if what not in usual)  # by chance
                worse = {what: text for what, text in worse.items() if what in usual}
            except NoDaysError as error:
                reasons.append(f"whether that is chance is unknown: {error}")
            except (NotApplicableError, UnroutableError) as error:
                reasons.append(f"what is trained on an earlier part cannot be evaluated on the next: {error}")
        ineligible = "; ".join([*reasons, *worse.values()])
        row = replace(row, test=summary, gain=gained, bootstrap=result, tolerated=tolerated, ineligible=ineligible)
        return row if result is None or ineligible else self.fallback(row, proposal, final)

    def reasons(self, proposal: Proposal) -> list[str]:
        """Return why a proposal is ineligible at this site, whatever it gains."""
        if proposal.not_exportable:
            return [proposal.not_exportable]
        base, config = self.training.base, proposal.config
        changed = fixed_violations(base, config, self.training.period.binding)
        found = [f"changes {path}, which is fixed" for path in changed] + never_start(base, config)
        return found if self.check is None else found + [f"not exportable: {why}" for why in self.check(config)]

    def fallback(self, row: Row, proposal: Proposal, final: Proposal) -> Row:
        """Recommend the evaluated proposal where that of the whole history breaks a guard rail that this one keeps."""
        if final.config == proposal.config or self.reasons(proposal) or row.test is None:
            return row
        before, days = GuardValues.of(self.current), self.test.days
        kept = self.guards.broken(before, GuardValues.of(row.test), days)
        then = self.guards.broken(before, GuardValues.of(self.test.evaluate(final)), days)
        worse = [text for what, text in then.items() if what not in kept]
        if not worse:
            return row
        return replace(_of(row, proposal, self.whole.evaluate(proposal)), fallback="; ".join(worse))


def _of(row: Row, proposal: Proposal, in_sample: Summary) -> Row:
    """Put a proposal into a row."""
    config, decisions, summary = proposal.config, proposal.decisions, proposal.summary
    return replace(row, config=config, in_sample=in_sample, decisions=decisions, summary=summary)
