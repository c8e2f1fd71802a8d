"""The search of `auto`: the order of the waiting list that is best beyond its training set, and what lies above it.

It climbs from small changes to large ones. First a general order and a small family of others are simulated, with the
site's limits, starvation periods and priorities kept, and scored by the logarithms of mean wait, bounded slowdown and
longest wait. One period is noisy, so the family is smoothed and penalised: it must be clearly better than the general
order. Where earlier periods are known, and all of them together forecast better than the last one alone, all decide. A
reservation delay of a day is chosen on all known periods together, since it depends on the site more than on the
period. Where the machine has GPUs or counts memory, jobs that ask for them go earlier or later by a factor. Then parts
of the policy are dropped, one by one and together, and anything more complicated is tried: running limits, other nodes,
other boundaries, partitions, a common pool. The best of every kind is a proposal; the search's own choice leaves the
lower one only for what is better by a margin in both halves of the training set, and the base only for what is better.
With guarding, queues whose longest waits would grow too much, or whose 95 % wait is above the site's target, go before
others by a factor until they do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from parsim import System
from qconf.config import SiteConfig, kept_off
from qconf.config.durations import format_duration
from qconf.evaluation.feasibility import fixed_violations, never_start
from qconf.evaluation.period import NotApplicableError, Period, TrainingSet, cached
from qconf.evaluation.score import GRACE, log_ratios, weights
from qconf.evaluation.targets import wanted_waits
from qconf.strategies.auto.candidates import (
    by_requests,
    divided,
    keeping_cores,
    kept_for_short,
    limited,
    on_gpu_nodes,
    split,
)
from qconf.strategies.auto.families import FAMILIES, AutoOptions
from qconf.strategies.auto.frame import Frame, policy_of
from qconf.strategies.auto.measures import Measure, logarithms, of_base, of_configs, of_first_come, of_orders, of_system
from qconf.strategies.auto.orders import JOBS, PRIOR_PENALTY, forecast_skill, usual_longest
from qconf.strategies.base import Proposal, Question, Step, step


@dataclass(frozen=True)
class Constants:
    """What the search weighs; chosen on several logs together, for no site in particular. Scores are log scores."""

    allowed: float = 1.4  # growth of the longest wait, and of a queue's 95 % wait, from which a factor guards a queue
    tolerated: float = 1.5  # times fcfs-easy's longest wait, beyond which the longest wait costs more
    steep: float = 1.0  # cost of the logarithm of what is beyond
    margin: float = 0.25  # by which what is more complicated must be better: the best of twenty in a noisy period
    tried: int = 8  # best orders that are tried with factors
    rounds: int = 8  # of raising factors
    surplus: float = 0.1  # what tails shorter than need be may cost
    increase: float = 1.8  # by which a queue's factor is raised when its tails are too long
    delay: int = 86400  # reservation delay that is tried, seconds
    periods: int = 3  # from which on a reservation delay is tried: it demands more of a site than another order
    delay_margin: float = 0.1  # by which a delay must be better on `orders.JOBS` jobs; on twice as many by half
    least_skill: float = 0.2  # by which all periods together must have forecast better than the last alone, summed
    prior_penalty: float = PRIOR_PENALTY  # by which the family must beat the general order, on `orders.JOBS` jobs


@step
class Orders(Step):
    """The best order of the waiting list, or why none was tried."""

    tried: int | None = None
    months: int | None = None
    forecast_skill: float | None = None
    best: str | None = None
    score: float | None = None
    general_score: float | None = None
    wait_ratio: float | None = None
    slowdown_ratio: float | None = None
    note: str | None = None


@step
class Reservations(Step):
    """Whether reservations are better made after a delay."""

    after: str
    months: int
    score: float
    note: str


@step
class Guarding(Step):
    """Factors for queues whose waits would grow too much."""

    title: ClassVar[str] = "guard rails"
    queues: list[str]
    kept_by: int
    best: str | None = None
    score: float | None = None
    factors: dict[str, float] | None = None
    note: str | None = None


@step
class NotTried(Step):
    """A candidate that is ineligible at the site."""

    with_: str
    why: str


@step
class Compare(Step):
    """The score of a candidate, 0 is the base."""

    with_: str
    score: float
    note: str | None = None


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A configuration and its scores: 0 is as good as the base, -0.1 about a tenth less wait."""

    what: str
    config: SiteConfig
    score: float  # on the whole training set
    halves: NDArray[np.float64]  # scores by the means alone, of the earlier and of the later half, shape (2,)
    broken: NDArray[np.bool_]  # queues with longer tails than the guard rails allow, shape (Q,)
    #: Queues that priorities would help: these or, where there are none, those above the site's targets; shape (Q,).
    behind: NDArray[np.bool_]
    #: Decides whether the base stays: for the best order its score on the smoothed surface, over all periods that
    #: decide; else `score`.
    smoothed: float
    order: str = ""  # that `frame` made a configuration of; empty for what is not made of an order
    frame: Frame = field(default_factory=Frame)


PIECE = 64  # orders that a worker simulates at a time

#: What a proposal changes, from the smallest to the largest; parts of the policy come after the delay.
ORDER, DELAY, ALL, CAP, BOUNDARIES, PARTITIONS = "order", "delay", "policy", "cap", "boundaries", "partitions"
REQUESTS = "requests"  #: after the delay: the order by what jobs ask for beside cores, too
NODES, KEPT = "nodes", "kept"  #: before boundaries: which nodes queues may use, and which of their cores
SHORTPOOLS = "shortpools"  #: after parts of the policy, where they are searched

WITHOUT = {
    "limits": "without running limits",
    "user-limits": "without limits per user",
    "starvation": "without starvation periods",
    "priorities": "without queue priorities",
    "fairshare": "without fairshare",
    "qos": "without quality of service",
    "shortpools": "without shortpools",
    "sharing": "with nodes that jobs share",
    ALL: "without any of the site's policy",
}


def search(
    training: TrainingSet,
    options: AutoOptions,
    *,
    guard: bool = False,
    fit: bool = False,
    constants: Constants | None = None,
) -> Proposal:
    """Search orders, limits, boundaries, partitions and pools; propose the simplest that is best, or the base.

    With `guard` factors keep the tails of queues within `Constants.allowed`. With `fit` the general order is left out:
    the family fits the known periods. Raises NotApplicableError if there are no jobs.
    """
    return climb(training, options, guard=guard, fit=fit, constants=constants)[""]


@cached
def climb(
    training: TrainingSet,
    options: AutoOptions,
    *,
    guard: bool = False,
    fit: bool = False,
    constants: Constants | None = None,
) -> dict[str, Proposal]:
    """Return the best of every kind by what it changes, and under the empty name what `search` proposes."""
    if not len(training):
        raise NotApplicableError("there are no jobs to train on")
    return _Search(training, options, guard=guard, fit=fit, constants=constants or Constants()).run()


def orders_wanted(training: TrainingSet, options: AutoOptions) -> list[Question]:
    """Return what the search asks of each period alone: all orders of its family."""
    if not len(training) or training.base.mode == "hybrid":
        return []
    search = _Search(training, options, constants=Constants())
    if search.stuck():
        return []
    return [(of_orders, period, piece) for period in search.periods for piece in search.pieces]


class _Search:
    """The search on one training set."""

    def __init__(
        self,
        training: TrainingSet,
        options: AutoOptions,
        *,
        guard: bool = False,
        fit: bool = False,
        constants: Constants,
    ) -> None:
        self.training, self.base, self.workers, self.guard = training, training.base, options.workers, guard
        self.weights = weights(options.objective)
        self.wanted = wanted_waits(self.base)
        self.constants = constants
        self.log: list[Step] = []
        self.policy = policy_of(training.period)
        dropped = frozenset(part for part in self.policy if part in self.base.policy)
        self.family, sums = FAMILIES[options.orders], options.orders != "formula"
        self.frame = Frame(dropped, shared=self.base.mode == "shared", sums=sums)
        #: A site's own may change only where it says so.
        free = not self.base.shortpools or SHORTPOOLS in self.base.policy
        dedicates = not self.base.is_fixed(SHORTPOOLS) and not self.base.reserves_for_queues
        dedicates &= self.base.reservation_depth == 1 and not (self.base.nodes or self.base.has_tiers)
        self.searches_shortpools = options.shortpools == "search" and free and dedicates
        self.periods = [*training.earlier, training.period]
        cores, longest = (
            self.base.machine.cores,
            usual_longest([of_first_come(each).longest.max() for each in self.periods]),
        )
        ageing = self.family.candidates(cores, longest)
        self.candidates = self.family.candidates(cores) if self.frame.bounds_waits(self.base) else ageing
        #: The same order without starvation periods, where it needs a bound of its own.
        self.unbounded = dict(reversed(list(zip(self.candidates, ageing, strict=True))))
        self.tried = slice(1 if fit else 0, None)  # of the candidates: the first is the general order
        self.before = of_base(training.period)
        self.present = logarithms(training.period, self.before)
        self.current = self.scored("current", training.base, self.before)

    def run(self) -> dict[str, Proposal]:
        """Go through the kinds; `log` records the result of each."""
        found: dict[str, _Candidate] = {}
        chosen = self.current
        if self.base.mode == "hybrid":
            self.log.append(Orders(note="none is tried within a hybrid machine: its pool goes by priority factor"))
        else:
            chosen = self.orders(found)
        for kind, tried in self.kinds(chosen):
            for candidate in self.simulate(tried):
                if candidate is None:
                    continue
                kept, why = self.outdoes(candidate, chosen)
                self.note(candidate, why)
                if kind not in found or candidate.score < found[kind].score:
                    found[kind] = candidate
                if kept:
                    chosen = candidate
        simpler = chosen.smoothed >= 0
        self.note(self.current, "simpler and no worse" if simpler else "")
        found[""] = self.current if simpler else chosen
        return {kind: self.proposal(kind, each) for kind, each in found.items()}

    def proposal(self, kind: str, candidate: _Candidate) -> Proposal:
        """Propose a candidate."""
        not_yet = ""
        if kind == DELAY and len(self.periods) < self.constants.periods:
            not_yet = (
                f"a reservation delay is recommended from {self.constants.periods} known months on, and "
                f"{len(self.periods)} {'is' if len(self.periods) == 1 else 'are'} known"
            )
        return Proposal(candidate.config, tuple(self.log), title=candidate.what, not_yet=not_yet)

    def kinds(self, chosen: _Candidate) -> Iterator[tuple[str, list[tuple[str, SiteConfig]]]]:
        """Yield the candidates above an order, by what they change."""
        if chosen.order and not self.frame.sums:
            orders = [(what, f"{factor} * {chosen.order}") for what, factor in by_requests(self.training)]
            yield REQUESTS, [(self.named(what), self.ordered(order, chosen.frame)) for what, order in orders]
        parts = [part for part in self.policy if part not in self.frame.dropped]
        for part, dropped in [(each, {each}) for each in parts] + ([(ALL, set(parts))] if len(parts) > 1 else []):
            frame = replace(chosen.frame if chosen.order else self.frame, dropped=self.frame.dropped | dropped)
            order = chosen.order or (self.base.order if part not in ("priorities", ALL) else "")
            if not frame.bounds_waits(self.base):
                order = self.unbounded.get(order, order)
            if order:
                yield part, [(WITHOUT[part], frame.config(self.training.period, order))]
        if self.frame.dropped and chosen.order:
            kept = replace(chosen.frame, dropped=frozenset())
            yield ORDER, [("the policy that may change, kept", kept.config(self.training.period, chosen.order))]
        if self.searches_shortpools:
            yield SHORTPOOLS, list(kept_for_short(self.training, chosen.config))
        yield CAP, list(limited(self.training, chosen.config))
        yield NODES, list(on_gpu_nodes(self.training, chosen.config))
        yield KEPT, list(keeping_cores(self.training, chosen.config))
        yield BOUNDARIES, list(split(self.training, chosen.config))
        yield PARTITIONS, list(self.shared(chosen)) + list(divided(self.training))

    def shared(self, chosen: _Candidate) -> Iterator[tuple[str, SiteConfig]]:
        """Yield the machine without its partitions, under the best order."""
        if self.base.mode != "shared":
            order = chosen.order or self.candidates[0]
            yield "one shared machine", replace(self.frame, shared=True).config(self.training.period, order)

    def orders(self, found: dict[str, _Candidate]) -> _Candidate:
        """Return the best order of the waiting list; with guarding, with factors that keep the tails short."""
        orders = self.candidates[self.tried]
        if stuck := self.stuck():
            self.log.append(Orders(note=f"none can be tried: {', '.join(stuck)} is fixed"))
            return self.current
        measured = [self.measured(each) for each in self.periods]
        surfaces = [self.surface(*each)[self.tried] for each in zip(self.periods, measured, strict=True)]
        skill = forecast_skill(
            [(surface[:, :3] * self.weights).sum(axis=1) for surface in surfaces], self.penalties(self.periods)
        )
        used = len(self.periods) if skill > self.constants.least_skill else 1
        present = np.mean([logarithms(each, of_base(each)) for each in self.periods[-used:]], axis=0)
        rated = self.rated(np.mean(surfaces[-used:], axis=0), present)
        scores = rated + self.penalties(self.periods[-used:]) / used
        ranking = np.argsort(scores, kind="stable")
        at_once = [each[self.tried][ranking[0]] for each in measured]
        ranked = list(dict.fromkeys(orders[i] for i in ranking))[: self.constants.tried]
        order = ranked[0]
        config = self.ordered(order, self.frame)
        ratios = at_once[-1].means[0] / np.maximum(self.before.means[0], 1.0)
        self.log.append(
            Orders(
                tried=len(orders),
                months=used if self.training.earlier else None,
                forecast_skill=round(skill, 4) if self.training.earlier else None,
                best=config.order,
                score=round(float(scores[ranking[0]]), 4),
                general_score=None if self.tried.start else round(float(scores[0]), 4),
                wait_ratio=round(float(ratios[0]), 4),
                slowdown_ratio=round(float(ratios[1]), 4),
                notes=tuple(self.frame.differences(self.base)),
            )
        )
        best = self.scored(self.named("the order alone"), config, at_once[-1], order, self.frame)
        best = replace(best, smoothed=float(rated[ranking[0]]))
        found[ORDER] = self.guarded(ranked, best)
        if (later := self.delayed(best, at_once)) is None:
            return found[ORDER]
        candidate, kept = later
        found[DELAY] = self.guarded(ranked, candidate)
        longer = self.guard and (found[DELAY].broken & ~found[ORDER].broken).any()
        return found[DELAY] if kept and not longer else found[ORDER]

    def named(self, what: str) -> str:
        """Add what the site says may change, and the order drops."""
        dropped = [part for part in self.policy if part in self.frame.dropped]
        if not dropped:
            return what
        without = WITHOUT[ALL] if len(dropped) == len(self.policy) > 1 else " and ".join(WITHOUT[p] for p in dropped)
        return f"{what.removesuffix(' alone')}, {without}"

    def ordered(self, order: str, frame: Frame) -> SiteConfig:
        """Return the base ordered by a formula."""
        return frame.config(self.training.period, order)

    def penalties(self, periods: list[Period]) -> NDArray[np.float64]:
        """Return the prior penalties of the orders in each of these periods, in log score, shape (orders,)."""
        jobs = float(np.mean([len(each) for each in periods]))
        penalties = self.family.penalties(jobs, self.constants.prior_penalty)[self.tried]
        return np.asarray(penalties - penalties.min())

    def delayed(self, best: _Candidate, at_once: list[Measure]) -> tuple[_Candidate, bool] | None:
        """Return the best order with a reservation delay, and whether that is better; None where it has no effect.

        All periods decide together; `at_once` has the measures of the best order in each. With few it is never better.
        """
        if self.base.mode != "shared" or self.base.is_fixed("reserve_after"):
            return None
        never = self.base.reserves_nothing
        if never and self.base.is_fixed("reserve"):
            return None
        frame = replace(best.frame, reserving=True) if never else replace(best.frame, delay=self.constants.delay)
        config = self.ordered(best.order, frame)
        measured = [of_system(period, config.system()) for period in self.periods]
        pairs = zip(self.periods, at_once, measured, strict=True)
        rows = np.array([[logarithms(period, each) for each in pair] for period, *pair in pairs])
        score = float(np.diff(self.rated(rows.mean(axis=0), np.zeros(rows.shape[-1])))[0])
        after = "0" if never else format_duration(self.constants.delay)
        text = "the order, and reservations" + ("" if never else f" after {after}")
        found = self.scored(self.named(text), config, measured[-1], best.order, frame)
        kept = score + self.constants.delay_margin * JOBS / sum(map(len, self.periods)) < 0
        if len(self.periods) < self.constants.periods:
            kept, note = False, f"not chosen from fewer than {self.constants.periods} months"
        else:
            now = "never" if never else "at once"
            note = f"better than {now}" if kept else f"{now}, as before"
        self.log.append(Reservations(after=after, months=len(self.periods), score=round(score, 4), note=note))
        return replace(found, smoothed=best.smoothed + score), kept

    def violations(self, config: SiteConfig) -> list[str]:
        """List the violations of `fixed` of a configuration."""
        return fixed_violations(self.base, config, self.training.period.binding)

    def surface(self, period: Period, measured: list[Measure]) -> NDArray[np.float64]:
        """Return the smoothed `logarithms` of all orders in a period; shape (orders, 4 or 5)."""
        return self.family.smoothed(np.array([logarithms(period, each) for each in measured]))

    def measured(self, period: Period) -> list[Measure]:
        """Simulate all orders on a period, equal ones once."""
        found: dict[str, Measure] = {}
        for system, orders, workers in self.pieces:
            found.update(zip(orders, of_orders(period, system, orders, workers), strict=True))
        return [found[order] for order in self.formulas]

    @cached_property
    def pieces(self) -> list[tuple[System, tuple[str, ...], int]]:
        """What `of_orders` is to simulate on a period, in pieces for several workers."""
        system, orders = self.plain.system(), tuple(dict.fromkeys(self.formulas))
        return [(system, orders[i : i + PIECE], self.workers) for i in range(0, len(orders), PIECE)]

    @cached_property
    def formulas(self) -> list[str]:
        """The orders as the frame has them."""
        return [self.frame.formula(self.base, order) for order in self.candidates]

    @cached_property
    def plain(self) -> SiteConfig:
        """The base under the first of the orders."""
        return self.ordered(self.candidates[0], self.frame)

    def stuck(self) -> list[str]:
        """List what is fixed and keeps the order from being tried."""
        return ["order"] if self.base.is_fixed("order") else self.violations(self.plain)

    def guarded(self, orders: Sequence[str], best: _Candidate) -> _Candidate:
        """With guarding, raise the factors of queues whose tails are too long; return `best` if that does not help."""
        pinned = any(self.base.is_fixed(f"queues.{name}.priority") for name in self.base.names)
        if not self.guard or self.frame.sums or pinned or not best.behind.any():
            return best
        raised = [np.ones(len(self.base.queues)) for _ in orders]
        kept: list[tuple[_Candidate, NDArray[np.float64]]] = []
        for _ in range(self.constants.rounds):
            frames = [replace(best.frame, factors=tuple(w.tolist()) if (w > 1).any() else None) for w in raised]
            tried = [
                (each, w)
                for each, w in zip(self.framed(best.what, orders, frames), raised, strict=True)
                if each is not None
            ]
            kept += [each for each in tried if not each[0].broken.any()]
            going = [each for each in tried if each[0].behind.any() and not each[0].behind.all()]
            raised = [self.raised(w, candidate.behind) for candidate, w in going]
            orders = [candidate.order for candidate, _ in going]
            if not orders:
                break
        step = Guarding(
            queues=[name for name, behind in zip(self.base.names, best.behind, strict=True) if behind],
            kept_by=len(kept),
        )
        chosen, least = min(kept, key=lambda each: each[0].score, default=(best, None))
        if least is None or chosen.score >= self.current.score:
            note = "no factors keep the tails of these queues short and gain anything: the best order stays"
            self.log.append(replace(step, note=note))
            return best
        # A tail consists of few jobs: what just holds on these may not hold on others, so the factors get a surplus.
        more = self.raised(least, best.broken | (least > 1))
        firm_frame = replace(best.frame, factors=tuple(more.tolist()))
        for firm in self.framed(best.what, [chosen.order], [firm_frame]) if (more > 1).any() else []:
            if firm is not None and not firm.broken.any() and firm.score < chosen.score + self.constants.surplus:
                chosen = firm
        factors = chosen.frame.factors
        step = replace(
            step,
            best=chosen.config.order,
            score=round(chosen.score, 4),
            factors=None if factors is None else dict(zip(self.base.names, factors, strict=True)),
        )
        self.log.append(step)
        return chosen

    def framed(self, what: str, orders: Sequence[str], frames: Sequence[Frame]) -> list[_Candidate | None]:
        """Score orders in their frames."""
        pairs = list(zip(orders, frames, strict=True))
        scored = self.simulate([(what, self.ordered(order, frame)) for order, frame in pairs])
        return [
            None if each is None else replace(each, order=order, frame=frame)
            for each, (order, frame) in zip(scored, pairs, strict=True)
        ]

    def simulate(self, configs: Iterable[tuple[str, SiteConfig]]) -> list[_Candidate | None]:
        """Score configurations in parallel; None for those that violate `fixed` or never start a job."""
        allowed: list[tuple[str, SiteConfig] | None] = []
        for what, config in configs:
            why = [f"changes {path}, which is fixed" for path in self.violations(config)]
            why += never_start(self.base, config, self.training.workload)
            if never := int(kept_off(config, self.training.workload.cores, self.training.workload.walltime).sum()):
                why.append(f"{never} jobs would find no time between those of a shortpool")
            if why:
                self.log.append(NotTried(with_=what, why="; ".join(why)))
            allowed.append(None if why else (what, config))
        period = self.training.period
        measured = iter(of_configs(period, tuple(each[1] for each in allowed if each is not None), self.workers))
        return [None if each is None else self.scored(*each, next(measured)) for each in allowed]

    def scored(
        self, what: str, config: SiteConfig, found: Measure, order: str = "", frame: Frame | None = None
    ) -> _Candidate:
        """Compare with the base."""
        halves = (log_ratios(found.means[1:], self.before.means[1:]) * self.weights[:2]).sum(axis=-1)
        late = self.beyond(found.late, self.before.late)
        longest = self.beyond(found.longest, self.before.longest.max())
        score = float(self.rated(logarithms(self.training.period, found), self.present))
        broken = late | longest
        behind = broken if broken.any() else found.late > self.wanted
        return _Candidate(what, config, score, halves, broken, behind, score, order, frame or self.frame)

    def rated(self, logarithms: NDArray[np.float64], base: NDArray[np.float64]) -> NDArray[np.float64]:
        """Score `logarithms` against those of the base, less is better; shape (..., 4 or 5) in, (...) out."""
        steep, tolerated = self.constants.steep, np.log(self.constants.tolerated)
        score, present = (
            (each[..., :3] * self.weights).sum(axis=-1)
            + steep * np.maximum(each[..., 3] - tolerated, 0)
            + each[..., 4:].sum(axis=-1)
            for each in (logarithms, base)
        )
        return np.asarray(score - present)

    def raised(self, factors: NDArray[np.float64], queues: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Raise the factors of these queues by one step, rounded to six decimals."""
        more = np.where(queues, factors * self.constants.increase, factors)
        return np.asarray(more.round(6), dtype=np.float64)

    def outdoes(self, candidate: _Candidate, chosen: _Candidate) -> tuple[bool, str]:
        """Return whether a more complicated candidate is kept, and why.

        It must be better by the margin, as a whole and in both halves, without a longer tail.
        """
        least = self.constants.margin
        if candidate.score >= chosen.score - least:
            return False, ""
        if not (candidate.halves < chosen.halves - least).all():
            return False, "better by more than the margin, but not in both halves of the history"
        if (candidate.broken & ~chosen.broken).any():
            return False, "better by more than the margin, but the longest waits of a queue grow too much"
        return True, "better by more than the margin, in both halves of the history"

    def beyond(self, after: NDArray[np.float64], before: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Mark tails that are longer than the guard rails allow."""
        return np.asarray(after > np.maximum(self.constants.allowed * before, before + GRACE))

    def note(self, candidate: _Candidate, text: str) -> None:
        """Log a comparison."""
        self.log.append(Compare(with_=candidate.what, score=round(candidate.score, 4), note=text or None))
