"""Training and evaluation of all strategies on the same splits of a history, step by step together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from parsim.metrics import Summary
from qconf.evaluation.bootstrap import Bootstrap, BootstrapResult, Failed, NoDaysError
from qconf.evaluation.guard_rails import GuardRails, GuardValues, Seen
from qconf.evaluation.holdout import Holdout, Split
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import NotApplicableError, TrainingSet
from qconf.evaluation.score import reduction
from qconf.recommend.checkpoint import Checkpoint, Proposals
from qconf.recommend.ladder import LOW, best_of, rung_of
from qconf.recommend.recommendation import Row, kind_of
from qconf.recommend.training import WHOLE, Check, Measured, Parts, Trainer, bare
from qconf.strategies import Options, Proposal, registry
from qconf.strategies.auto.measures import of_base

AHEAD = 2  #: workers from which on all strategies train on the early splits at once

Progress = Callable[[str, float], None]


@dataclass
class Evaluator:
    """Trains and evaluates strategies; `splits` are those with enough jobs, ``last`` among them.

    `check` returns why a configuration is not exportable, `needs` what must be installed for it; both may be None.
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
        self.test = self.splits["last"].test
        self.early = [part for part in self.splits if part != "last"]
        self.evaluated: dict[tuple[str, str], Proposal] = {}  # by row, trained before the test period
        self.measured: dict[tuple[str, str], Measured] = {}
        training = {WHOLE: self.training} | {name: split.training for name, split in self.splits.items()}
        parts = Parts(training, self.whole, self.test, self.settings)
        self.trainer = Trainer(parts, self.options.workers, self.checkpoint)

    @cached_property
    def present(self) -> Outcome:
        """The outcome of the current configuration on the test period."""
        return self.test.outcome(self.base)

    @cached_property
    def current(self) -> Summary:
        """All metrics of `present`."""
        return self.present.summary

    @cached_property
    def seen(self) -> Seen:
        """The longest waits of the current configuration in all known months."""
        known = [of_base(each) for each in (*self.training.earlier, self.training.period)]
        late = np.max([np.nan_to_num(each.late) for each in known], axis=0)
        names = self.training.base.names
        return Seen(dict(zip(names, late.tolist(), strict=True)), max(float(each.longest.max()) for each in known))

    @cached_property
    def checked(self) -> Check | None:
        """`check`; None if the current configuration is not exportable either, so that it rules out nothing."""
        return None if self.check is None or self.check(self.training.base) else self.check

    @cached_property
    def installed(self) -> tuple[str, ...]:
        """The needs of the current configuration, which are installed already."""
        return () if self.needs is None or self.checked is None else tuple(self.needs(self.training.base))

    @cached_property
    def bootstrap(self) -> Bootstrap | NoDaysError:
        """The resamples of the test days of all splits, or the reason why there are none."""
        tests, options = [split.test for split in self.splits.values()], self.options
        common = options.objective, options.seed, options.workers, self.checkpoint
        try:
            return Bootstrap(tests, self.base, *common, tails=options.tails, seen=self.seen.longest)
        except NoDaysError as error:
            return error

    def outcome(self, row: Row) -> Outcome:
        """Return the outcome of a row on the test period."""
        return self.test.outcome(self.evaluated[row.name, row.variant])

    def compare(self, row: Row, with_: Row | None) -> BootstrapResult:
        """Compare a row with another, or with the current configuration, over the resamples; both were resampled."""
        found, other = row.bootstrap, None if with_ is None else with_.bootstrap
        if found is None or isinstance(self.bootstrap, NoDaysError):
            raise ValueError(f"{row.name} was not resampled")
        return found if other is None else self.bootstrap.between(other.numbers, found.numbers)

    def rows(self, names: Sequence[str], progress: Progress, meanwhile: Callable[[], object]) -> list[Row]:
        """Train strategies on the whole history, and on its earlier part to evaluate them on the later one.

        Returns at least one row for each strategy, and one for each variant that differs from those before. Of a
        strategy with several kinds of search only the best kind on the rungs up to `LOW` is evaluated on higher rungs.
        All strategies go through each step together, to keep workers busy. `progress` gets the step and the finished
        fraction; `meanwhile` is called while workers train.
        """
        ahead = names if self.options.workers >= AHEAD else [name for name in names if registry()[name].has_variants]
        wanted = [(name, part) for name in names for part in (WHOLE, "last")]
        wanted += [(name, part) for name in ahead for part in self.early]
        self.trainer.train(wanted, lambda share: progress("training", 0.6 * share), meanwhile)
        failed, finals, trained = {}, {}, {}
        for name in names:
            whole, last = (self.trainer.found[name, part] for part in (WHOLE, "last"))
            if isinstance(whole, Failed) or isinstance(last, Failed):
                failed[name] = str(whole if isinstance(whole, Failed) else last)
            else:
                finals[name], trained[name] = whole, last
        low = {
            name: [v for v, final in each.items() if rung_of(self.training.base, final.config) <= LOW]
            for name, each in finals.items()
        }
        rows = self._variants(low, finals, trained, lambda share: progress("resampling", 0.6 + 0.2 * share))
        high = {}
        for name, each in finals.items():
            own = [row for row in rows if row.name == name]
            lead = best_of([row for row in own if row.eligible]) or best_of(own)
            high[name] = [v for v in each if v not in low[name] and (lead is None or lead.kind == kind_of(v))]
        rows += self._variants(high, finals, trained, lambda share: progress("resampling", 0.8 + 0.2 * share))
        rows += [Row(name, None, None, None, None, ineligible=why) for name, why in failed.items()]
        place = {name: i for i, name in enumerate(names)}
        seconds = self.trainer.seconds
        rows = [replace(row, seconds=seconds.get(row.name, 0.0)) for row in rows]
        return sorted(rows, key=lambda row: place[row.name])

    def _variants(
        self,
        wanted: Mapping[str, Sequence[str]],
        finals: Mapping[str, Proposals],
        trained: Mapping[str, Proposals],
        advance: Callable[[float], None],
    ) -> list[Row]:
        """Evaluate these variants of each strategy, without repeats of the same proposal."""
        rows: list[Row] = []
        new: list[tuple[int, Proposal, Proposal]] = []
        for name, variants in wanted.items():
            known = set()
            for variant in variants:
                row = Row(name, None, None, None, None, variant=variant)
                final, proposal = finals[name][variant], trained[name].get(variant)
                if proposal is None:
                    text = "trained on the part before the test period, it has no such proposal"
                    rows.append(self._of(replace(row, ineligible=text), final, self.whole.evaluate(final)))
                elif (final.config, proposal.config) not in known:
                    known.add((final.config, proposal.config))
                    new.append((len(rows), final, proposal))
                    rows.append(row)
        promising = []
        for (place, final, proposal), found in zip(
            new, self.trainer.measure([each[1:] for each in new], self.checked), strict=True
        ):
            if isinstance(found, str):
                rows[place] = replace(rows[place], ineligible=found)
            else:
                rows[place], reasons = self._on_test(rows[place], final, proposal, found)
                gains = (rows[place].gain or 0) > 0 and rows[place].name != "current"
                if (gains and not reasons) or rows[place].variant:
                    promising.append((place, final, proposal, reasons))
        return self._resampled(rows, promising, advance)

    def _on_test(self, row: Row, final: Proposal, proposal: Proposal, found: Measured) -> tuple[Row, list[str]]:
        """Compare with the current configuration on the test period; also return why the row is ineligible."""
        row = replace(self._of(row, final, found.in_sample), unmet=found.unmet)
        self.evaluated[row.name, row.variant], self.measured[row.name, row.variant] = proposal, found
        gained = reduction(found.test, self.current, self.options.objective)
        reasons = list(found.reasons) if row.name != "current" else []
        if gained > 0 and not reasons and row.name != "current" and final.config == self.training.base:
            reasons.append("trained on the whole history, it proposes what you have")
        refused = proposal.refused(self.test.period, self.test.counted)
        row = replace(row, test=found.test, gain=gained, decisions=[*row.decisions, *refused])
        return replace(row, ineligible="; ".join([*reasons, *self._broken(found.test).values()])), reasons

    def _broken(self, test: Summary) -> dict[str, str]:
        """Return the guard rails that are broken on the test period."""
        return self.guards.broken(GuardValues.of(self.current), GuardValues.of(test), self.test.days, self.seen)

    def _resampled(
        self,
        rows: list[Row],
        promising: Sequence[tuple[int, Proposal, Proposal, list[str]]],
        advance: Callable[[float], None],
    ) -> list[Row]:
        """Compare promising rows with the current configuration over resamples of the test days of all splits."""
        self.trainer.train([(rows[place].name, part) for place, *_ in promising for part in self.early])
        subjects: dict[int, list[Proposal]] = {}
        results: dict[int, BootstrapResult | Failed] = {}
        for place, _, proposal, _ in promising:
            try:
                subjects[place] = [*map(bare, self._earlier(rows[place])), bare(proposal)]
            except NotApplicableError as error:
                results[place] = error
        if subjects:
            bootstrap = self.bootstrap
            if isinstance(bootstrap, NoDaysError):
                results |= dict.fromkeys(subjects, bootstrap)
            else:
                by_name = {f"{rows[i].name}-{rows[i].variant}": each for i, each in subjects.items()}
                results |= zip(subjects, bootstrap.compare_all(by_name, advance), strict=True)
        for place, final, proposal, reasons in promising:
            rows[place] = self._tested(rows[place], final, proposal, reasons, results[place])
        return rows

    def _tested(
        self,
        row: Row,
        final: Proposal,
        proposal: Proposal,
        reasons: list[str],
        result: BootstrapResult | Failed,
    ) -> Row:
        """Add the resamples to a row: a guard rail broken on the test period but not over them is tolerated."""
        if row.test is None:
            raise ValueError(f"{row.name} was not evaluated")
        worse = self._broken(row.test)
        if isinstance(result, NoDaysError):
            why = f"whether that is chance is unknown: {result}"
        elif isinstance(result, Failed):
            why = f"what is trained on an earlier part cannot be evaluated on the next: {result}"
        else:
            usual = self.guards.broken(result.before, result.after, self.test.days, self.seen)
            tolerated = "; ".join(text for what, text in worse.items() if what not in usual)  # broken by chance
            kept = [text for what, text in worse.items() if what in usual]
            ineligible = "; ".join([*reasons, *kept])
            row = replace(row, bootstrap=result, tolerated=tolerated, ineligible=ineligible)
            return row if ineligible else self.fallback(row, proposal, final)
        return replace(row, ineligible="; ".join([*reasons, why, *worse.values()]))

    def _earlier(self, row: Row) -> list[Proposal]:
        """Return the proposals of the row's variant on the splits before the last."""
        found = []
        for part in self.early:
            proposals = self.trainer.found[row.name, part]
            if isinstance(proposals, Failed):
                raise NotApplicableError(str(proposals))
            if row.variant not in proposals:
                raise NotApplicableError("it has no such proposal there")
            found.append(proposals[row.variant])
        return found

    def fallback(self, row: Row, proposal: Proposal, final: Proposal) -> Row:
        """Recommend the evaluated proposal if the one of the whole history breaks a guard rail that it keeps."""
        if final.config == proposal.config or self.measured[row.name, row.variant].test_reasons or row.test is None:
            return row
        kept = self._broken(row.test)
        worse = [text for what, text in self._broken(self.test.evaluate(final)).items() if what not in kept]
        if not worse:
            return row
        return replace(self._of(row, proposal, self.whole.evaluate(proposal)), fallback="; ".join(worse))

    def _of(self, row: Row, proposal: Proposal, in_sample: Summary) -> Row:
        """Fill a row with a proposal and its metrics on the whole history."""
        config = proposal.config
        needs: tuple[str, ...] = ()
        if self.needs is not None and not proposal.not_exportable:
            needs = tuple(each for each in self.needs(config) if each not in self.installed)
        return replace(
            row,
            config=config,
            in_sample=in_sample,
            decisions=proposal.decisions,
            not_exportable=proposal.not_exportable,
            title=proposal.title,
            rung=rung_of(self.training.base, config),
            needs=needs,
        )
