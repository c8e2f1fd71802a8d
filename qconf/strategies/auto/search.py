"""The search of `auto`: the order of the waiting list that is best beyond its training set, or the unchanged base.

A general order and a small family of others are simulated on the shared machine, and scored by the logarithms of mean
wait, bounded slowdown and longest wait. One period is noisy, so the family is smoothed and penalised: it must be
clearly better than the general order. Where earlier periods are known, and all of them together forecast better than
the last one alone, all decide. A reservation delay of a day is chosen on all known periods together, since it depends
on the site more than on the period. Anything more complicated (running limits, other boundaries, partitions, a common
pool) must be better than the best order by a margin in both halves of the training set. The base stays unless the
result is better. With guarding, queues whose longest waits would grow too much, or whose 95 % wait is above the site's
target, get priority until they do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from qconf.config import SiteConfig
from qconf.config.durations import format_duration
from qconf.evaluation.feasibility import fixed_violations, never_start
from qconf.evaluation.period import NotApplicableError, Period, TrainingSet
from qconf.evaluation.score import GRACE, log_ratios, weights
from qconf.evaluation.targets import wanted_waits
from qconf.parallel import parallel_map
from qconf.strategies.auto.candidates import divided, limited, ordered, with_priorities
from qconf.strategies.auto.measures import Measure, logarithms, measure, of_base, of_orders, of_system
from qconf.strategies.auto.orders import (
    GENERAL_ORDER,
    JOBS,
    PRIOR_PENALTY,
    candidates,
    forecast_skill,
    general,
    prior_penalties,
    smoothed,
)
from qconf.strategies.base import Options, Proposal, Step, step


@dataclass(frozen=True)
class Constants:
    """What the search weighs; chosen on several logs together, for no site in particular. Scores are log scores."""

    allowed: float = 1.4  # growth of the longest wait, and of a queue's 95 % wait, from which priority guards a queue
    tolerated: float = 1.5  # times fcfs-easy's longest wait, beyond which the longest wait costs more
    steep: float = 1.0  # cost of the logarithm of what is beyond
    margin: float = 0.25  # by which what is more complicated must be better: the best of twenty in a noisy period
    tried: int = 8  # best orders that are tried with priorities
    rounds: int = 8  # of raising priorities
    surplus: float = 0.1  # what tails shorter than need be may cost
    increase: float = 1.8  # factor on a queue's priority when its tails are too long
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
    """Priorities for queues whose waits would grow too much."""

    title: ClassVar[str] = "guard rails"
    queues: list[str]
    kept_by: int
    best: str | None = None
    score: float | None = None
    priorities: dict[str, float] | None = None
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


def search(
    training: TrainingSet,
    options: Options,
    *,
    guard: bool = False,
    fit: bool = False,
    constants: Constants | None = None,
) -> Proposal:
    """Search orders, limits, boundaries, partitions and pools; propose the simplest that is best, or the base.

    With `guard` priorities keep the tails of queues within `Constants.allowed`. With `fit` the general order is left
    out: the family fits the known periods. Raises NotApplicableError if there are no jobs.
    """
    if not len(training):
        raise NotApplicableError("there are no jobs to train on")
    return _Search(training, options, guard=guard, fit=fit, constants=constants or Constants()).run()


class _Search:
    """The search on one training set."""

    def __init__(
        self, training: TrainingSet, options: Options, *, guard: bool = False, fit: bool = False, constants: Constants
    ) -> None:
        self.training, self.base, self.workers, self.guard = training, training.base, options.workers, guard
        self.weights = weights(options.objective)
        self.wanted = wanted_waits(self.base)
        self.constants = constants
        self.log: list[Step] = []
        self.pinned = any(self.base.is_fixed(f"queues.{name}.priority") for name in self.base.names)
        self.priorities = np.array([queue.priority for queue in self.base.queues]) if self.pinned else None
        self.periods = [*training.earlier, training.period]
        self.reserve_after = 0
        self.tried = slice(1 if fit else 0, None)  # of the candidates: the first is the general order
        self.general = ""  # the general order, where it is the best
        self.before = of_base(training.period)
        self.present = logarithms(training.period, self.before)
        self.current = self.scored("current", training.base, self.before)

    def run(self) -> Proposal:
        """Go through the steps; `log` records the result of each."""
        chosen = self.orders()
        for candidate in self.simulate(chain(limited(self.training, chosen.config), divided(self.training))):
            if candidate is None:
                continue
            kept, why = self.outdoes(candidate, chosen)
            self.note(candidate, why)
            if kept:
                chosen = candidate
        simpler = chosen.smoothed >= 0
        self.note(self.current, "simpler and no worse" if simpler else "")
        config = self.base if simpler else chosen.config
        summary = GENERAL_ORDER if config.order == self.general != self.base.order else ""
        return Proposal(config, tuple(self.log), summary=summary)

    def orders(self) -> _Candidate:
        """Return the best order of the waiting list; with guarding, with priorities that keep the tails short."""
        orders = candidates(self.base.machine.cores)[self.tried]
        plain = self.ordered(general(self.base.machine.cores))
        if stuck := ["order"] if self.base.is_fixed("order") else self.violations(plain):
            self.log.append(Orders(note=f"none can be tried: {', '.join(stuck)} is fixed"))
            return self.current
        measured = [self.measured(each, plain) for each in self.periods]
        surfaces = [_surface(*each)[self.tried] for each in zip(self.periods, measured, strict=True)]
        skill = forecast_skill([surface[:, :3] @ self.weights for surface in surfaces], self.penalties(self.periods))
        used = len(self.periods) if skill > self.constants.least_skill else 1
        present = np.mean([logarithms(each, of_base(each)) for each in self.periods[-used:]], axis=0)
        rated = self.rated(np.mean(surfaces[-used:], axis=0), present)
        scores = rated + self.penalties(self.periods[-used:]) / used
        ranking = np.argsort(scores, kind="stable")[: self.constants.tried]
        at_once = [found[self.tried][ranking[0]] for found in measured]
        config = self.ordered(orders[ranking[0]])
        found = at_once[-1].means[0] / np.maximum(self.before.means[0], 1.0)
        self.log.append(
            Orders(
                tried=len(orders),
                months=used if self.training.earlier else None,
                forecast_skill=round(skill, 4) if self.training.earlier else None,
                best=config.order,
                score=round(float(scores[ranking[0]]), 4),
                general_score=None if self.tried.start else round(float(scores[0]), 4),
                wait_ratio=round(float(found[0]), 4),
                slowdown_ratio=round(float(found[1]), 4),
            )
        )
        self.general = config.order if not self.tried.start and ranking[0] == 0 else ""
        best = replace(self.scored("best order", config, at_once[-1]), smoothed=float(rated[ranking[0]]))
        later = self.reserving(best, at_once)
        if not self.guard or self.pinned or not later.behind.any():
            return later
        guarded = self.guarded([orders[i] for i in ranking], later)
        if guarded.broken.any() and self.reserve_after:
            self.reserve_after = 0
            guarded = self.guarded([orders[i] for i in ranking], best)
        return guarded

    def ordered(self, order: str, priorities: NDArray[np.float64] | None = None) -> SiteConfig:
        """Return the base on the shared machine, ordered by a formula, with the best reservation delay so far."""
        weights = self.priorities if priorities is None else priorities
        return ordered(self.training.period, order, weights, self.reserve_after)

    def penalties(self, periods: list[Period]) -> NDArray[np.float64]:
        """Return the prior penalties of the orders in each of these periods, in log score, shape (orders,)."""
        jobs = float(np.mean([len(each) for each in periods]))
        penalties = prior_penalties(jobs, self.constants.prior_penalty)[self.tried]
        return np.asarray(penalties - penalties.min())

    def reserving(self, best: _Candidate, at_once: list[Measure]) -> _Candidate:
        """Return the best order with a reservation delay if that is better, else without.

        All periods decide together; `at_once` has the measures of the best order in each.
        """
        if len(self.periods) < self.constants.periods or self.base.is_fixed("reserve_after"):
            return best
        later = best.config.replace(reserve_after=self.constants.delay)
        system = later.system()
        measured = [of_system(period, system) for period in self.periods]
        pairs = zip(self.periods, at_once, measured, strict=True)
        rows = np.array([[logarithms(period, each) for each in pair] for period, *pair in pairs])
        score = float(np.diff(self.rated(rows.mean(axis=0), np.zeros(rows.shape[-1])))[0])
        found = replace(self.scored("best order", later, measured[-1]), smoothed=best.smoothed + score)
        kept = score + self.constants.delay_margin * JOBS / sum(map(len, self.periods)) < 0
        note = "better than at once" if kept else "at once, as before"
        if kept and self.guard and (found.broken & ~best.broken).any():
            kept, note = False, "better than at once, but the longest waits of a queue grow too much"
        after = format_duration(self.constants.delay)
        self.log.append(Reservations(after=after, months=len(self.periods), score=round(score, 4), note=note))
        if not kept:
            return best
        self.reserve_after = self.constants.delay
        return found

    def violations(self, config: SiteConfig) -> list[str]:
        """List the violations of `fixed` of a configuration."""
        return fixed_violations(self.base, config, self.training.period.binding)

    def measured(self, period: Period, plain: SiteConfig) -> list[Measure]:
        """Simulate all orders on a period, where `plain` has one of them."""
        orders = tuple(with_priorities(order, self.priorities) for order in candidates(plain.machine.cores))
        return of_orders(period, plain.system(), orders, self.workers)

    def guarded(self, orders: list[str], best: _Candidate) -> _Candidate:
        """Raise the priorities of queues whose tails are too long; return `best` if that does not help."""
        raised = [np.ones(len(self.base.queues)) for _ in orders]
        kept: list[tuple[_Candidate, str, NDArray[np.float64]]] = []
        for _ in range(self.constants.rounds):
            configs = [
                (order, self.ordered(order, w if (w > 1).any() else None))
                for order, w in zip(orders, raised, strict=True)
            ]
            found = self.simulate(configs)
            tried = [
                (candidate, order, w)
                for candidate, order, w in zip(found, orders, raised, strict=True)
                if candidate is not None
            ]
            kept += [each for each in tried if not each[0].broken.any()]
            going = [each for each in tried if each[0].behind.any() and not each[0].behind.all()]
            raised = [self.raised(w, candidate.behind) for candidate, _, w in going]
            orders = [order for _, order, _ in going]
            if not orders:
                break
        step = Guarding(
            queues=[name for name, behind in zip(self.base.names, best.behind, strict=True) if behind],
            kept_by=len(kept),
        )
        at = len(self.log)
        chosen, order, least = min(kept, key=lambda each: each[0].score, default=(best, None, None))
        if order is None or least is None or chosen.score >= self.current.score:
            note = "no priorities keep the tails of these queues short and gain anything: the best order stays"
            self.log.append(replace(step, note=note))
            return best
        # A tail consists of few jobs: what just holds on these may not hold on others, so the priorities get a surplus.
        more = self.raised(least, best.broken | (least > 1))
        for firm in self.simulate([("with a surplus", self.ordered(order, more))] if (more > 1).any() else []):
            if firm is not None and not firm.broken.any() and firm.score < chosen.score + self.constants.surplus:
                chosen = firm
        queues = chosen.config.queues if "queue_priority" in chosen.config.order else None
        step = replace(
            step,
            best=chosen.config.order,
            score=round(chosen.score, 4),
            priorities=None if queues is None else {queue.name: queue.priority for queue in queues},
        )
        self.log.insert(at, step)
        return chosen

    def simulate(self, configs: Iterable[tuple[str, SiteConfig]]) -> list[_Candidate | None]:
        """Score configurations in parallel; None for those that violate `fixed` or never start a job."""
        allowed: list[tuple[str, SiteConfig] | None] = []
        for what, config in configs:
            why = [f"changes {path}, which is fixed" for path in self.violations(config)]
            why += never_start(self.base, config)
            if why:
                self.log.append(NotTried(with_=what, why="; ".join(why)))
            allowed.append(None if why else (what, config))
        period = self.training.period
        tasks = [(period, period.routed(each[1]), each[1].system()) for each in allowed if each is not None]
        measured = iter(parallel_map(self.workers, measure, tasks))
        return [None if each is None else self.scored(*each, next(measured)) for each in allowed]

    def scored(self, what: str, config: SiteConfig, found: Measure) -> _Candidate:
        """Compare with the base."""
        halves = log_ratios(found.means[1:], self.before.means[1:]) @ self.weights[:2]
        late = self.beyond(found.late, self.before.late)
        longest = self.beyond(found.longest, self.before.longest.max())
        score = float(self.rated(logarithms(self.training.period, found), self.present))
        broken = late | longest
        behind = broken if broken.any() else found.late > self.wanted
        return _Candidate(what, config, score, halves, broken, behind, smoothed=score)

    def rated(self, logarithms: NDArray[np.float64], base: NDArray[np.float64]) -> NDArray[np.float64]:
        """Score `logarithms` against those of the base, less is better; shape (..., 4 or 5) in, (...) out."""
        steep, tolerated = self.constants.steep, np.log(self.constants.tolerated)
        score, present = (
            each[..., :3] @ self.weights + steep * np.maximum(each[..., 3] - tolerated, 0) + each[..., 4:].sum(axis=-1)
            for each in (logarithms, base)
        )
        return np.asarray(score - present)

    def raised(self, priorities: NDArray[np.float64], queues: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Raise the priorities of these queues by one step, rounded to six decimals."""
        more = np.where(queues, priorities * self.constants.increase, priorities)
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


def _surface(period: Period, measured: list[Measure]) -> NDArray[np.float64]:
    """Return the smoothed `logarithms` of all orders in a period; shape (orders, 4 or 5)."""
    return smoothed(np.array([logarithms(period, each) for each in measured]))
