"""From a history to a recommendation: every strategy learns on the earlier part and is judged on the later one.

What does better there must do so beyond chance: it also learns from the first third alone and is judged on the second,
in a long history from the first sixth too, judged on the next; and all judged days are drawn anew, many times.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from parsim.metrics import Summary
from qconf.config import SiteConfig
from qconf.history import History
from qconf.strategies import BASELINES, Options, Proposal, Store, asked, check
from qconf.tuning.bounds import utilization
from qconf.tuning.evidence import FEWEST_DAYS, Draws, Evidence, NoDaysError
from qconf.tuning.judging import Guarded, Guards, Trial, stranded, touched
from qconf.tuning.month import Month, UnroutableError
from qconf.tuning.rating import SAID, gain
from qconf.tuning.sizes import NotApplicableError, Room

#: Parts of the history's time: learned from, judged on up to the second. The last is what the tables show.
STAGES = {"first": (1 / 6, 1 / 3), "early": (1 / 3, 2 / 3), "learned": (2 / 3, 1.0)}
LONG = 60 * 86400  # seconds from first to last submission, from which a sixth of them is enough to learn from
WARMUP = 3 * 86400
#: What ``qconf tune`` judges when no strategy is named.
DEFAULT = ("current", "fcfs-easy", "lxf-easy", "shared", "pp", "dp-nlp", "exact", "auto", "auto-guarded")
EQUAL = 0.01  # of the objective: what is expected to gain less than that more than something simpler is no better
FEWEST = 20  # jobs in either part, below which nothing can be said


@dataclass(frozen=True)
class Interval:
    """A gain over the current configuration: 0.2 is a fifth less; `low` to `high` is its 90 % interval, else NaN."""

    gain: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class Row:
    """What became of one strategy.

    Attributes
    ----------
    name : str
        As on the command line.
    config : SiteConfig or None
        What is handed out if it wins: what it answers when it learns from the whole history, or (`relearned`) what was
        judged; None if it does not apply.
    judged : Summary or None
        Metrics on the later part of the history, learned from the earlier one.
    whole : Summary or None
        Metrics of `config` on the whole history: learned and judged on the same jobs, so flattering.
    gain : Interval or None
        Of the objective, on the later part, against the current configuration. The interval is that of `evidence`, not
        of this one number.
    evidence : Evidence or None
        Whether that is more than chance; None where there is no gain to doubt, or it may not be recommended anyway.
    barred : str
        Why it may not be recommended; empty if it may.
    relearned : str
        Guard rails that what it learned from the whole history breaks on the judged part, where what was judged kept
        them: then `config` is what was judged. Empty if nothing is broken.
    decisions : list of dict
        What it tried and why it kept what it kept, for a person to follow: {"step": ..., ...}.
    seconds : float
        Wall time that it took.
    """

    name: str
    config: SiteConfig | None
    judged: Summary | None
    whole: Summary | None
    gain: Interval | None
    evidence: Evidence | None = None
    barred: str = ""
    relearned: str = ""
    decisions: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True)
class Curve:
    """Mean wait of one queue alone on a partition, against the partition's size (the paper's Figures 1 and 2)."""

    queue: str
    sizes: list[int]
    waits: list[float]
    utilizations: list[float]


@dataclass(frozen=True)
class Recommendation:
    """The answer of ``qconf tune``.

    Attributes
    ----------
    verdict : {"CHANGE", "KEEP"}
    reason : str
        One plain paragraph.
    winner : str
        Name of the best row that may be recommended; ``current`` for KEEP.
    config : SiteConfig
        What to load: the winner's, or the base as it stands.
    base : SiteConfig
    objective : str
    rows : list of Row
        ``current`` first, then the baselines, then the others.
    curves : list of Curve
    parts : dict of str to (int, int, int)
        Jobs, first and last submit (Unix seconds) of ``history``, ``learned`` and ``judged``, of what else was learned
        from and judged, and of the ``earlier months``.
    settings : dict
        What was asked: seed, guard rails, ...
    """

    verdict: Literal["CHANGE", "KEEP"]
    reason: str
    winner: str
    config: SiteConfig
    base: SiteConfig
    objective: str
    rows: list[Row]
    curves: list[Curve]
    parts: dict[str, tuple[int, int, int]]
    settings: dict[str, Any]


def recommend(
    history: History,
    base: SiteConfig,
    *,
    earlier: Sequence[History] = (),
    strategies: Sequence[str] = DEFAULT,
    objective: str | None = None,
    options: Options | None = None,
    guards: Guards | None = None,
    least_gain: float = 0.02,
    refused: Callable[[SiteConfig], str] | None = None,
    store: Store | None = None,
    progress: Callable[[str], None] | None = None,
) -> Recommendation:
    """Let every strategy learn on the first two thirds of the history, judge it on the rest, answer with the best.

    Where it does better, it also learns on the first third and is judged on the second, in a history of `LONG` on the
    first sixth and the next too, and all judged days are drawn anew: it must do better beyond chance.

    Parameters
    ----------
    history : History
        Cleaned with `base`.
    base : SiteConfig
        The current configuration.
    earlier : sequence of History
        Months before it, the oldest first, cleaned with `base`: what `auto` finds that they have in common.
    strategies : sequence of str
        ``current`` and the baselines are always among those judged.
    objective : {"mean-wait", "bounded-slowdown", "mixed"}
        Default that of `options`.
    options : Options
    guards : Guards
        What may not get worse; a strategy that breaks one is shown, not recommended.
    least_gain : float
        Gain below which a change is not worth its trouble.
    refused : callable, optional
        Says why the batch system cannot be told a configuration, empty if it can: what it refuses may not be
        recommended, unless the base is refused too.
    store : Store, optional
        Finished proposals of an interrupted run.
    progress : callable, optional
        Told what is being done.
    """
    options, guards = options or Options(), guards or Guards()
    objective = objective or options.objective
    options = replace(options, objective=objective)
    names = tuple(dict.fromkeys(("current", *BASELINES, *strategies)))
    check(names, options, base)
    before = tuple(Month(each.workload(base), base) for each in earlier)
    month = Month(history.workload(base), base, earlier=before)
    stages = _stages(month, *history.span)
    later = stages["learned"]
    settings = {
        "objective": objective,
        "seed": options.seed,
        "samples": options.samples,
        "slack": options.slack,
        "tau_util": options.utilization,
        "guards": asdict(guards),
        "least_gain": least_gain,
        "warmup_seconds": WARMUP,
        "strategies": list(names),
    }
    bench = _Bench(
        month, {name: stage for name, stage in stages.items() if stage.enough}, options, guards, refused, store
    )
    rows = []
    for name in names:
        if progress is not None:
            progress(name)
        rows.append(bench.row(name))
    answer = Recommendation(
        verdict="KEEP",
        reason="",
        winner="current",
        config=base,
        base=base,
        objective=objective,
        rows=rows,
        curves=curves(month),
        parts=_parts(month, stages, history.epoch) | _before(earlier),
        settings=settings,
    )
    if not later.enough:
        reason = (
            f"The history is too short to learn from one part and judge on another: {len(later.learned)} and "
            f"{len(later.trial.judged)} jobs, judged on {later.trial.days} whole days. At least {FEWEST} are needed in "
            f"each, and {FEWEST_DAYS} days. Keep what you have."
        )
        return replace(answer, reason=reason)
    return _decide(answer, least_gain)


def _stages(month: Month, first: int, last: int) -> dict[str, Stage]:
    """Divide a history from its first to its last submission into what is learned from and what is judged."""
    found = {}
    for name, (learned_to, judged_to) in STAGES.items():
        if name != "first" or last - first >= LONG:
            cut, end = (first + round((last + 1 - first) * share) for share in (learned_to, judged_to))
            found[name] = Stage(month.between(first, cut), Trial.of(month, cut, end, WARMUP))
    return found


def _parts(month: Month, stages: Mapping[str, Stage], epoch: int) -> dict[str, tuple[int, int, int]]:
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


def _before(earlier: Sequence[History]) -> dict[str, tuple[int, int, int]]:
    """Count the jobs of the months before, as `_parts` does."""
    if not earlier:
        return {}
    oldest, latest = earlier[0], earlier[-1]
    return {"earlier months": (sum(map(len, earlier)), oldest.epoch + oldest.span[0], latest.epoch + latest.span[1])}


@dataclass(frozen=True)
class Stage:
    """Jobs to learn from, and later ones to be judged on."""

    learned: Month
    trial: Trial

    @property
    def enough(self) -> bool:
        """Whether anything can be said."""
        return min(len(self.learned), len(self.trial.judged)) >= FEWEST and self.trial.days >= FEWEST_DAYS


@dataclass
class _Bench:
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
        gained = Interval(float(gain(after, before, self.options.objective)))
        broken = [final.why_not] if final.why_not else self.impossible(final.config)
        evidence = None
        if gained.gain > 0 and not broken and final.config == self.month.base and row.name != "current":
            broken.append("learned from the whole history, it proposes what you have")
        worse = self.guards.broken(Guarded.of(self.current), Guarded.of(judged), last.trial.days)
        if gained.gain > 0 and not broken and row.name != "current":
            try:
                earlier = [
                    self.propose(row.name, part, stage.learned)
                    for part, stage in self.stages.items()
                    if stage is not last
                ]
                evidence = self.draws.weigh([*earlier, learned])
                gained = replace(gained, low=evidence.low, high=evidence.high)
                usual = self.guards.broken(evidence.before, evidence.after, last.trial.days)
                worse = {what: text for what, text in worse.items() if what in usual}  # else it was an unlucky job
            except NoDaysError as error:
                broken.append(f"whether that is chance cannot be told: {error}")
            except (NotApplicableError, UnroutableError) as error:
                broken.append(f"what it learned from an earlier part alone cannot be judged on the next: {error}")
        broken += worse.values()
        row = replace(row, judged=judged, gain=gained, evidence=evidence, barred="; ".join(broken))
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


def _decide(answer: Recommendation, least_gain: float) -> Recommendation:
    """Choose the best row that may be recommended, and say why in one paragraph."""
    best, evidence = _best(answer, least_gain)
    beaten = _beaten(answer, best)
    if best is None or evidence is None or best.judged is None or best.config is None:
        reason = (
            "On jobs that they had not learned from, no strategy that may be recommended does better than the "
            f"current configuration. {beaten} Keep what you have."
        )
        return replace(answer, reason=" ".join(reason.split()))
    what = SAID[answer.objective]
    gained = f"{100 * _gain(best):.1f} %"
    span = (
        f"On days like those judged, drawn anew, {100 * evidence.expected:.1f} % are to be expected (90 % interval "
        f"{100 * evidence.low:.1f} to {100 * evidence.high:.1f} %)"
    )
    if evidence.expected < least_gain or not evidence.certain:
        why = "may be chance: the interval reaches zero"
        if evidence.low > 0:
            why = "slowdowns and longest waits may outweigh"
        if evidence.expected < least_gain:
            why = "is not worth a change"
        reason = (
            f"On the last third of the history, which it had not learned from, the best candidate, {best.name}, lowers "
            f"{what} by {gained}. {span}, which {why}. {beaten} Keep what you have."
        )
        return replace(answer, reason=" ".join(reason.split()))
    plain = "What is to be loaded it learned from the whole history, these days included."
    if best.relearned:
        plain = f"That is what is to be loaded: with what it learned from the whole history, {best.relearned}."
    if best.name in BASELINES:
        plain = "It is a plain baseline: from nothing tuned a percent more is to be expected."
    current = answer.rows[0].judged
    before = f"{current['mean_wait']:.0f} s" if current is not None else "unknown"
    reason = (
        f"On the last third of the history, which it had not learned from, {best.name} lowers {what} by "
        f"{gained}; mean wait goes from {before} to {best.judged['mean_wait']:.0f} s. "
        f"{span}. {plain} {beaten}"
    )
    return replace(answer, verdict="CHANGE", winner=best.name, config=best.config, reason=" ".join(reason.split()))


def _best(answer: Recommendation, least_gain: float) -> tuple[Row | None, Evidence | None]:
    """Find the row that may be recommended from which most is to be expected, the certain ones first.

    Of equals that are worth a change the first is taken: baselines stand before what was tuned.
    """
    able = [(row, row.evidence) for row in answer.rows if row.evidence is not None and not row.barred]
    best = max(able, key=lambda each: (each[1].certain, each[1].expected), default=(None, None))
    if best[1] is None:
        return best
    least = max(best[1].expected - EQUAL, min(least_gain, best[1].expected))
    return next(each for each in able if each[1].certain == best[1].certain and each[1].expected >= least)


def _gain(row: Row) -> float:
    return row.gain.gain if row.gain is not None else 0.0


def _beaten(answer: Recommendation, best: Row | None) -> str:
    """Name the strategies that gained more than the best one but may not be recommended, or promise less."""
    least = max(_gain(best), 0.0) if best is not None else 0.0
    return " ".join(
        f"{row.name} would gain {100 * _gain(row):.1f} %, but {row.barred or _outdone(row, best)}."
        for row in answer.rows
        if _gain(row) > least
    )


def _outdone(row: Row, best: Row | None) -> str:
    """Say by what a row that gained more than the best on the last third is not the best."""
    mine, its = row.evidence, None if best is None else best.evidence
    if mine is not None and its is not None and mine.certain and mine.expected >= its.expected:
        return "no percent more is to be expected of it than of what is simpler"
    return "on days drawn anew less is to be expected of it, or for less certain"


def curves(month: Month) -> list[Curve]:
    """Simulate every queue that owns a partition alone, over sizes from its widest job to the machine."""
    base, unit = month.base, month.base.grid
    queues = np.array([i for i, q in enumerate(base.queues) if not q.reservation and month.widest[i]], dtype=np.int64)
    space = Room(queues, base.machine.cores // unit, -(-month.widest[queues] // unit), unit)
    out = []
    for k, i in enumerate(queues):
        curve = utilization(month, space, k)
        out.append(
            Curve(
                queue=base.queues[i].name,
                sizes=(curve.sizes * unit).tolist(),
                waits=curve.waits.tolist(),
                utilizations=curve.shares.tolist(),
            )
        )
    return out


__all__ = ["Curve", "Guards", "Interval", "Recommendation", "Row", "curves", "recommend"]
