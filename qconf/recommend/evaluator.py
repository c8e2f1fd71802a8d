"""Every strategy learns from the earlier part of a history, and is judged on the later one.

What does better there must do so beyond chance: it also learns from the first third alone and is judged on the second,
in a long history from the first sixth too, judged on the next; and all judged days are drawn anew, many times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from parsim.metrics import Summary
from qconf.config import SiteConfig
from qconf.evaluation.bootstrap import FEWEST_DAYS, Bootstrap, NoDaysError
from qconf.evaluation.feasibility import fixed_violations, never_start
from qconf.evaluation.guard_rails import GuardRails, GuardValues
from qconf.evaluation.holdout import Holdout
from qconf.evaluation.period import NotApplicableError, Period, TrainingSet, UnroutableError
from qconf.evaluation.score import gain
from qconf.recommend.checkpoint import Checkpoint, cached_proposal
from qconf.recommend.recommendation import Row
from qconf.strategies import Options, Proposal

#: Parts of the history's time: learned from, judged on up to the second. The last is what the tables show.
SPLITS = {"first": (1 / 6, 1 / 3), "early": (1 / 3, 2 / 3), "learned": (2 / 3, 1.0)}
LONG = 60 * 86400  # seconds from first to last submission, from which a sixth of them is enough to learn from
WARMUP = 3 * 86400
FEWEST = 20  # jobs in either part, below which nothing can be said


@dataclass(frozen=True)
class Split:
    """Jobs to learn from, and later ones to be judged on."""

    learned: TrainingSet
    test: Holdout

    @property
    def enough(self) -> bool:
        """Whether anything can be said."""
        return min(len(self.learned), len(self.test.judged)) >= FEWEST and self.test.days >= FEWEST_DAYS


def splits_of(training: TrainingSet, first: int, last: int) -> dict[str, Split]:
    """Divide a history from its first to its last submission into what is learned from and what is judged."""
    found = {}
    for name, (learned_to, judged_to) in SPLITS.items():
        if name != "first" or last - first >= LONG:
            cut, end = (first + round((last + 1 - first) * share) for share in (learned_to, judged_to))
            found[name] = Split(training.between(first, cut), Holdout.of(training.period, cut, end, WARMUP))
    return found


def spans_of(period: Period, splits: Mapping[str, Split], epoch: int) -> dict[str, tuple[int, int, int]]:
    """Count the jobs of each training and test period that has some, with its first and last submit, Unix seconds."""
    spans: dict[str, Period | TrainingSet] = {"history": period}
    for name, when in (("learned", ""), ("early", "earlier "), ("first", "earliest ")):
        if name in splits:
            spans |= {f"{when}training": splits[name].learned, f"{when}test": splits[name].test.judged}
    return {
        name: (len(span), epoch + int(span.workload.submit[0]), epoch + int(span.workload.submit[-1]))
        for name, span in spans.items()
        if len(span)
    }


@dataclass
class Evaluator:
    """Runs strategies, one after the other, on the same parts of a history; `splits` are those with enough jobs."""

    training: TrainingSet
    splits: dict[str, Split]
    settings: Mapping[str, Any]
    guards: GuardRails
    refused: Callable[[SiteConfig], str] | None
    checkpoint: Checkpoint | None

    def __post_init__(self) -> None:
        self.options = Options.of(self.settings)
        first, last = (int(self.training.workload.submit[i]) for i in (0, -1))
        self.whole = Holdout.of(self.training.period, first, last + 1)
        self.base = Proposal(self.training.base)
        if self.refused is not None and self.refused(self.training.base):
            self.refused = None  # what the site has cannot be told either: nothing is ineligible for it
        if "learned" in self.splits:
            self.current = self.splits["learned"].test.run(self.base)

    @cached_property
    def draws(self) -> Bootstrap:
        """Draw the judged days of all splits anew."""
        tests = [split.test for split in self.splits.values()]
        return Bootstrap(tests, self.base, self.options.objective, self.options.seed, self.options.workers)

    def propose(self, name: str, part: str, training: TrainingSet) -> Proposal:
        """Ask a strategy, or the checkpoint of an interrupted run."""
        return cached_proposal(self.checkpoint, f"{name}-{part}", name, training, self.settings)

    def row(self, name: str) -> Row:
        """Learn, judge, and learn again from everything."""
        began = time.perf_counter()
        try:
            final = self.propose(name, "whole", self.training)
            row = Row(name, final.config, None, self.whole.run(final), None, decisions=final.decisions)
            if "learned" in self.splits:
                row = self.judge(row, final)
        except (NotApplicableError, UnroutableError) as error:
            row = Row(name, None, None, None, None, ineligible=str(error))
        return replace(row, seconds=time.perf_counter() - began)

    def judge(self, row: Row, final: Proposal) -> Row:
        """Judge on the last part and, where that promises a gain, on all the parts and their days drawn anew."""
        last = self.splits["learned"]
        learned = self.propose(row.name, "learned", last.learned)
        judged = last.test.run(learned)
        before, after = (
            np.array([each["mean_wait"], each["mean_bounded_slowdown"]]) for each in (self.current, judged)
        )
        gained = float(gain(after, before, self.options.objective))
        broken = (
            [final.not_exportable]
            if final.not_exportable
            else self.impossible(final.config)
            if row.name != "current"
            else []
        )
        evidence, tolerated = None, ""
        if gained > 0 and not broken and final.config == self.training.base and row.name != "current":
            broken.append("learned from the whole history, it proposes what you have")
        worse = self.guards.broken(GuardValues.of(self.current), GuardValues.of(judged), last.test.days)
        if gained > 0 and not broken and row.name != "current":
            try:
                earlier = [
                    self.propose(row.name, part, split.learned)
                    for part, split in self.splits.items()
                    if split is not last
                ]
                evidence = self.draws.weigh([*earlier, learned])
                usual = self.guards.broken(evidence.before, evidence.after, last.test.days)
                tolerated = "; ".join(text for what, text in worse.items() if what not in usual)  # an unlucky job
                worse = {what: text for what, text in worse.items() if what in usual}
            except NoDaysError as error:
                broken.append(f"whether that is chance cannot be told: {error}")
            except (NotApplicableError, UnroutableError) as error:
                broken.append(f"what it learned from an earlier part alone cannot be judged on the next: {error}")
        broken += worse.values()
        row = replace(
            row, test=judged, gain=gained, bootstrap=evidence, tolerated=tolerated, ineligible="; ".join(broken)
        )
        return row if evidence is None or row.ineligible else self.handed_out(row, judged, learned, final)

    def impossible(self, config: SiteConfig) -> list[str]:
        """Say why a configuration cannot be had at this site, however good it is."""
        base = self.training.base
        found = [
            f"changes {path}, which is fixed" for path in fixed_violations(base, config, self.training.period.binding)
        ] + never_start(base, config)
        if self.refused is not None and (why := self.refused(config)):
            found.append(f"PBS cannot be told: {why}")
        return found

    def handed_out(self, row: Row, judged: Summary, learned: Proposal, final: Proposal) -> Row:
        """Hand out what was judged, where what the whole history taught breaks a guard rail that it kept."""
        test = self.splits["learned"].test
        if final.config == learned.config or learned.not_exportable or self.impossible(learned.config):
            return row
        before, days = GuardValues.of(self.current), test.days
        kept = self.guards.broken(before, GuardValues.of(judged), days)
        then = self.guards.broken(before, GuardValues.of(test.run(final)), days)
        worse = [text for what, text in then.items() if what not in kept]
        if not worse:
            return row
        in_sample, why = self.whole.run(learned), "; ".join(worse)
        return replace(row, config=learned.config, in_sample=in_sample, decisions=learned.decisions, fallback=why)
