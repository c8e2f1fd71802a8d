"""Every strategy is trained and evaluated on the same splits of a history."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from parsim.metrics import Summary
from qconf.config import SiteConfig
from qconf.evaluation.bootstrap import Bootstrap, BootstrapResult, NoDaysError
from qconf.evaluation.feasibility import fixed_text, fixed_violations, never_start
from qconf.evaluation.guard_rails import GuardRails, GuardValues
from qconf.evaluation.holdout import Holdout, Split
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import NotApplicableError, TrainingSet, UnroutableError
from qconf.evaluation.score import reduction
from qconf.evaluation.targets import target_results
from qconf.recommend.checkpoint import Checkpoint, Proposals, cached_numbers, cached_proposals
from qconf.recommend.ladder import LOW, best_of, rung_of
from qconf.recommend.recommendation import Row, kind_of
from qconf.strategies import Options, Proposal, variants

Check = Callable[[SiteConfig], list[str]]  #: why a configuration is not exportable; empty if it is


@dataclass
class Evaluator:
    """Trains and evaluates strategies, one after the other; `splits` are those with enough jobs, ``last`` among them.

    The `check` says why a configuration is not exportable, `needs` what must be installed for it; both may be None.
    """

    training: TrainingSet
    splits: dict[str, Split]
    settings: Mapping[str, Any]
    guards: GuardRails
    check: Check | None
    needs: Check | None
    checkpoint: Checkpoint | None

    def __post_init__(self) -> None:
        self.options = Options.of(self.settings)
        first, last = (int(self.training.workload.submit[i]) for i in (0, -1))
        self.whole = Holdout.of(self.training.period, first, last + 1)
        self.base = Proposal(self.training.base)
        if self.check is not None and self.check(self.training.base):
            self.check = None  # the current configuration is not exportable either: this makes no strategy ineligible
        #: What the present needs is there already.
        self.there = () if self.needs is None or self.check is None else tuple(self.needs(self.training.base))
        self.test = self.splits["last"].test
        self.current = self.test.evaluate(self.base)
        self.evaluated: dict[tuple[str, str], Proposal] = {}  # the proposal behind each row, trained for the test

    @cached_property
    def bootstrap(self) -> Bootstrap:
        """Resample the test days of all splits."""
        tests = [split.test for split in self.splits.values()]
        options, checkpoint = self.options, self.checkpoint
        return Bootstrap(
            tests,
            self.base,
            options.objective,
            options.seed,
            options.workers,
            lambda name, make: cached_numbers(checkpoint, f"{name}-resamples", make),
        )

    def outcome(self, row: Row) -> Outcome:
        """Return the outcome of a row on the test period."""
        return self.test.outcome(self.evaluated[row.name, row.variant])

    def compare(self, row: Row, with_: Row | None) -> BootstrapResult:
        """Compare a row with another, or with the current configuration, over the resamples; both have some."""
        found, other = row.bootstrap, None if with_ is None else with_.bootstrap
        if found is None:
            raise ValueError(f"{row.name} was not resampled")
        return found if other is None else self.bootstrap.between(other.numbers, found.numbers)

    def propose(self, name: str, part: str, training: TrainingSet) -> Proposals:
        """Run a strategy, or take the proposals that an interrupted run kept."""
        return cached_proposals(self.checkpoint, f"{name}-{part}", lambda: variants(name, training, self.settings))

    def rows(self, name: str, advance: Callable[[float], None] = lambda _: None) -> list[Row]:
        """Train a strategy on the whole history, and on its earlier part to evaluate it on the later one.

        Returns a row for each of its variants that differs from those before it, one at least. Of a strategy of several
        kinds the one that does best with an order, or a reservation delay, is evaluated on the higher rungs too.
        `advance` is called with the share of all that is done.
        """
        advance(0.0)
        began = time.perf_counter()
        try:
            finals = self.propose(name, "whole", self.training)
            trained = self.propose(name, "last", self.splits["last"].training)
        except (NotApplicableError, UnroutableError) as error:
            rows = [Row(name, None, None, None, None, ineligible=str(error))]
        else:
            low = [variant for variant, final in finals.items() if rung_of(self.training.base, final.config) <= LOW]
            advance(0.4)
            rows = self._variants(name, low, finals, trained)
            advance(0.7)
            lead = best_of([row for row in rows if row.eligible]) or best_of(rows)
            high = [each for each in finals if each not in low and (lead is None or lead.kind == kind_of(each))]
            rows += self._variants(name, high, finals, trained)
        seconds = time.perf_counter() - began
        return [replace(row, seconds=seconds) for row in rows]

    def _variants(self, name: str, variants: Sequence[str], finals: Proposals, trained: Proposals) -> list[Row]:
        """Evaluate these variants, each that is not the same as one before it."""
        rows, known = [], set()
        for variant in variants:
            row = Row(name, None, None, None, None, variant=variant)
            final, proposal = finals[variant], trained.get(variant)
            if proposal is None:
                text = "trained on the part before the test period, it has no such proposal"
                rows.append(self._of(replace(row, ineligible=text), final, self.whole.evaluate(final)))
            elif (final.config, proposal.config) not in known:
                known.add((final.config, proposal.config))
                rows.append(self.row(row, final, proposal))
        return rows

    def row(self, row: Row, final: Proposal, proposal: Proposal) -> Row:
        """Evaluate one variant: `final` was trained on the whole history, `proposal` for the test period."""
        try:
            row = self._of(row, final, self.whole.evaluate(final))
            return self._on_test(row, proposal, final)
        except UnroutableError as error:
            return replace(row, ineligible=str(error))

    def _on_test(self, row: Row, proposal: Proposal, final: Proposal) -> Row:
        """Evaluate on the test period and, where there is a gain, on resampled days of all splits."""
        outcome = self.test.outcome(proposal)
        summary = outcome.summary
        row = replace(row, unmet=tuple(each.what for each in target_results(outcome) if not each.met))
        self.evaluated[row.name, row.variant] = proposal
        gained = reduction(summary, self.current, self.options.objective)
        reasons = self.reasons(final) if row.name != "current" else []
        promising = gained > 0 and not reasons and row.name != "current"
        if promising and final.config == self.training.base:
            reasons.append("trained on the whole history, it proposes what you have")
        worse = self.guards.broken(GuardValues.of(self.current), GuardValues.of(summary), self.test.days)
        result, tolerated = None, ""
        if (promising and not reasons) or row.variant:
            try:
                result = self.bootstrap.compare([*self._earlier(row), proposal], f"{row.name}-{row.variant}")
                usual = self.guards.broken(result.before, result.after, self.test.days)
                tolerated = "; ".join(text for what, text in worse.items() if what not in usual)  # by chance
                worse = {what: text for what, text in worse.items() if what in usual}
            except NoDaysError as error:
                reasons.append(f"whether that is chance is unknown: {error}")
            except (NotApplicableError, UnroutableError) as error:
                reasons.append(f"what is trained on an earlier part cannot be evaluated on the next: {error}")
        ineligible = "; ".join([*reasons, *worse.values()])
        row = replace(row, test=summary, gain=gained, bootstrap=result, tolerated=tolerated, ineligible=ineligible)
        return row if result is None or ineligible else self.fallback(row, proposal, final)

    def _earlier(self, row: Row) -> list[Proposal]:
        """Return what the row's variant proposes on the splits before the last."""
        found = []
        for part, split in self.splits.items():
            if part != "last":
                proposals = self.propose(row.name, part, split.training)
                if row.variant not in proposals:
                    raise NotApplicableError("it has no such proposal there")
                found.append(proposals[row.variant])
        return found

    def reasons(self, proposal: Proposal) -> list[str]:
        """Return why a proposal is ineligible at this site, whatever it gains."""
        if proposal.not_exportable:
            return [proposal.not_exportable]
        base, config = self.training.base, proposal.config
        changed = fixed_violations(base, config, self.training.period.binding)
        found = [*([fixed_text(changed, base.names)] if changed else []), *never_start(base, config)]
        found += [proposal.not_yet] if proposal.not_yet else []
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
        return replace(self._of(row, proposal, self.whole.evaluate(proposal)), fallback="; ".join(worse))

    def _of(self, row: Row, proposal: Proposal, in_sample: Summary) -> Row:
        """Put a proposal into a row."""
        config = proposal.config
        return replace(
            row,
            config=config,
            in_sample=in_sample,
            decisions=proposal.decisions,
            not_exportable=proposal.not_exportable,
            title=proposal.title,
            rung=rung_of(self.training.base, config),
            needs=()
            if self.needs is None or proposal.not_exportable
            else tuple(each for each in self.needs(config) if each not in self.there),
        )
