"""Every strategy learns from the earlier part of a history, and is judged on the later one.

What does better there must do so beyond chance: it also learns from the first third alone and is judged on the second,
in a long history from the first sixth too, judged on the next; and all judged days are drawn anew, many times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from parsim.metrics import Summary
from qconf.config import SiteConfig
from qconf.recommend.answer import Row
from qconf.strategies import Options, Proposal, Store, asked
from qconf.tuning.evidence import FEWEST_DAYS, Draws, NoDaysError
from qconf.tuning.judging import Guarded, Guards, Trial, stranded, touched
from qconf.tuning.month import Month, UnroutableError
from qconf.tuning.rating import gain
from qconf.tuning.sizes import NotApplicableError

#: Parts of the history's time: learned from, judged on up to the second. The last is what the tables show.
STAGES = {"first": (1 / 6, 1 / 3), "early": (1 / 3, 2 / 3), "learned": (2 / 3, 1.0)}
LONG = 60 * 86400  # seconds from first to last submission, from which a sixth of them is enough to learn from
WARMUP = 3 * 86400
FEWEST = 20  # jobs in either part, below which nothing can be said


@dataclass(frozen=True)
class Stage:
    """Jobs to learn from, and later ones to be judged on."""

    learned: Month
    trial: Trial

    @property
    def enough(self) -> bool:
        """Whether anything can be said."""
        return min(len(self.learned), len(self.trial.judged)) >= FEWEST and self.trial.days >= FEWEST_DAYS


def stages_of(month: Month, first: int, last: int) -> dict[str, Stage]:
    """Divide a history from its first to its last submission into what is learned from and what is judged."""
    found = {}
    for name, (learned_to, judged_to) in STAGES.items():
        if name != "first" or last - first >= LONG:
            cut, end = (first + round((last + 1 - first) * share) for share in (learned_to, judged_to))
            found[name] = Stage(month.between(first, cut), Trial.of(month, cut, end, WARMUP))
    return found


def parts_of(month: Month, stages: Mapping[str, Stage], epoch: int) -> dict[str, tuple[int, int, int]]:
    """Count the jobs of each part that has some, with its first and last submit, Unix seconds."""
    parts = {"history": month}
    for name, when in (("learned", ""), ("early", " before"), ("first", " before that")):
        if name in stages:
            parts |= {f"learned{when}": stages[name].learned, f"judged{when}": stages[name].trial.judged}
    return {
        name: (len(part), epoch + int(part.workload.submit[0]), epoch + int(part.workload.submit[-1]))
        for name, part in parts.items()
        if len(part)
    }


@dataclass
class Bench:
    """Runs strategies, one after the other, on the same parts of a history; `stages` are those with enough jobs."""

    month: Month
    stages: dict[str, Stage]
    options: Options
    guards: Guards
    refused: Callable[[SiteConfig], str] | None
    store: Store | None

    def __post_init__(self) -> None:
        first, last = (int(self.month.workload.submit[i]) for i in (0, -1))
        self.whole = Trial.of(self.month, first, last + 1)
        self.base = Proposal(self.month.base)
        if self.refused is not None and self.refused(self.month.base):
            self.refused = None  # what the site has cannot be told either: nothing is barred for it
        if "learned" in self.stages:
            self.current = self.stages["learned"].trial.run(self.base)

    @cached_property
    def draws(self) -> Draws:
        """Draw the judged days of all stages anew."""
        trials = [stage.trial for stage in self.stages.values()]
        return Draws(trials, self.base, self.options.objective, self.options.seed, self.options.workers)

    def propose(self, name: str, part: str, month: Month) -> Proposal:
        """Ask a strategy, or the store of an interrupted run."""
        return asked(self.store, f"{name}-{part}", name, month, self.options)

    def row(self, name: str) -> Row:
        """Learn, judge, and learn again from everything."""
        began = time.perf_counter()
        try:
            final = self.propose(name, "whole", self.month)
            row = Row(name, final.config, None, self.whole.run(final), None, decisions=final.decisions)
            if "learned" in self.stages:
                row = self.judge(row, final)
        except (NotApplicableError, UnroutableError) as error:
            row = Row(name, None, None, None, None, barred=str(error))
        return replace(row, seconds=time.perf_counter() - began)

    def judge(self, row: Row, final: Proposal) -> Row:
        """Judge on the last part and, where that promises a gain, on all the parts and their days drawn anew."""
        last = self.stages["learned"]
        learned = self.propose(row.name, "learned", last.learned)
        judged = last.trial.run(learned)
        before, after = (
            np.array([each["mean_wait"], each["mean_bounded_slowdown"]]) for each in (self.current, judged)
        )
        gained = float(gain(after, before, self.options.objective))
        broken = [final.why_not] if final.why_not else self.impossible(final.config) if row.name != "current" else []
        evidence, excused = None, ""
        if gained > 0 and not broken and final.config == self.month.base and row.name != "current":
            broken.append("learned from the whole history, it proposes what you have")
        worse = self.guards.broken(Guarded.of(self.current), Guarded.of(judged), last.trial.days)
        if gained > 0 and not broken and row.name != "current":
            try:
                earlier = [
                    self.propose(row.name, part, stage.learned)
                    for part, stage in self.stages.items()
                    if stage is not last
                ]
                evidence = self.draws.weigh([*earlier, learned])
                usual = self.guards.broken(evidence.before, evidence.after, last.trial.days)
                excused = "; ".join(text for what, text in worse.items() if what not in usual)  # an unlucky job
                worse = {what: text for what, text in worse.items() if what in usual}
            except NoDaysError as error:
                broken.append(f"whether that is chance cannot be told: {error}")
            except (NotApplicableError, UnroutableError) as error:
                broken.append(f"what it learned from an earlier part alone cannot be judged on the next: {error}")
        broken += worse.values()
        row = replace(row, judged=judged, gain=gained, evidence=evidence, excused=excused, barred="; ".join(broken))
        return row if evidence is None or row.barred else self.handed_out(row, judged, learned, final)

    def impossible(self, config: SiteConfig) -> list[str]:
        """Say why a configuration cannot be had at this site, however good it is."""
        base = self.month.base
        found = [f"changes {path}, which is fixed" for path in touched(base, config)] + stranded(base, config)
        if self.refused is not None and (why := self.refused(config)):
            found.append(f"PBS cannot be told: {why}")
        return found

    def handed_out(self, row: Row, judged: Summary, learned: Proposal, final: Proposal) -> Row:
        """Hand out what was judged, where what the whole history taught breaks a guard rail that it kept."""
        trial = self.stages["learned"].trial
        if final.config == learned.config or learned.why_not or self.impossible(learned.config):
            return row
        before, days = Guarded.of(self.current), trial.days
        kept = self.guards.broken(before, Guarded.of(judged), days)
        then = self.guards.broken(before, Guarded.of(trial.run(final)), days)
        worse = [text for what, text in then.items() if what not in kept]
        if not worse:
            return row
        whole, why = self.whole.run(learned), "; ".join(worse)
        return replace(row, config=learned.config, whole=whole, decisions=learned.decisions, relearned=why)
