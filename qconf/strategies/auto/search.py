"""`auto`: what an administrator would want; the best order of the waiting list that travels, or the base as it stands.

A general order and a small family of others are simulated on the shared machine, and rated by the logarithms of mean
wait, bounded slowdown and longest wait: the family smoothed and regularised, since a training is noisy, and asked to be
clearly better than the general order. Where months before it are known, and all together have forecast_skill better than the
last one alone, they decide. Whether a job should have waited for a day before anything is reserved for it, all the
months that are known decide together: in that sites differ, not months. Anything more complicated (running limits,
other boundaries, partitions, a common pool) must beat the best order by a margin in both halves of the history, and the
base stays unless it is beaten. Asked to guard, it gives priority to queues whose longest waits would grow too much,
until they do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from qconf.config import SiteConfig
from qconf.config.durations import format_duration
from qconf.evaluation.feasibility import fixed_violations, never_start
from qconf.evaluation.period import Period, TrainingSet
from qconf.evaluation.score import GRACE, log_ratios, weights
from qconf.parallel import parallel_map
from qconf.strategies import Options, Proposal
from qconf.strategies.auto.candidates import divided, limited, ordered, weighed
from qconf.strategies.auto.measures import Measure, logarithms, measure, of_base, of_orders, of_system
from qconf.strategies.auto.orders import JOBS, LEAST_SKILL, candidates, costs, forecast_skill, general, smoothed
from qconf.strategies.partitioning.sizes import NotApplicableError

ALLOWED = 1.4  # growth of the longest wait, and of a queue's 95 % wait, from which a queue is guarded by priority
TOLERATED = 1.5  # times the longest wait of first come, first served, beyond which the longest wait costs more
STEEP = 1.0  # what the logarithm of what is beyond costs, in log score
MARGIN = 0.25  # by which what is more complicated must be better, in log score: the best of twenty in a noisy training
TRIED = 8  # best orders that are tried with priorities
ROUNDS = 8  # of raising priorities
SPARE = 0.1  # what tails shorter than need be may cost, in log score
RAISE = 1.8  # what a queue's priority is multiplied by when its tails are too long
RESERVE_AFTER = 86400  # seconds of waiting from which a job gets a reservation, instead of at once
MONTHS = 3  # from which on it is asked at all whether that is better: it asks more of a site than another order
DELAY = 0.1  # log score by which that must be better on `JOBS` jobs; on twice as many by half


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A configuration and its scores: 0 is as good as the base, -0.1 a tenth less wait.

    Attributes
    ----------
    score : float
        Of the training under search.
    halves : ndarray(float64), shape (2,)
        By the aims alone, of the earlier and of the later half.
    broken : ndarray(bool), shape (Q,)
        Queues with longer tails than the guard rails allow.
    smoothed : float
        What decides in the end whether the base stays: for the best order its score on the surface of the family, of
        all months that decided; else `score`.
    """

    what: str
    config: SiteConfig
    score: float
    halves: NDArray[np.float64]
    broken: NDArray[np.bool_]
    smoothed: float


def propose(training: TrainingSet, options: Options) -> Proposal:
    """Search orders, limits, boundaries, partitions and pools; keep the simplest that is best, or the base."""
    return search(training, options)


def search(training: TrainingSet, options: Options, *, guard: bool = False, fit: bool = False) -> Proposal:
    """Do what `propose` says; with `guard`, by priorities that keep queues' tails within what is allowed.

    With `fit` the general order is left out: the family fits the months that are known, and nothing else is trusted.
    """
    if not len(training):
        raise NotApplicableError("there are no jobs to learn from")
    return _Search(training, options, guard, fit).run()


class _Search:
    """One history under search."""

    def __init__(self, training: TrainingSet, options: Options, guard: bool = False, fit: bool = False) -> None:
        self.training, self.base, self.workers, self.guard = training, training.base, options.workers, guard
        self.weights = weights(options.objective)
        self.log: list[dict[str, object]] = []
        self.pinned = any(self.base.is_fixed(f"queues.{name}.priority") for name in self.base.names)
        self.priorities = np.array([queue.priority for queue in self.base.queues]) if self.pinned else None
        self.periods = [*training.earlier, training.period]
        self.reserve_after = 0
        self.tried = (
            slice(1, None) if fit else slice(None)
        )  # of the candidates, of which the general order is the first
        self.before = of_base(training.period)
        self.present = logarithms(training.period, self.before)
        self.current = self.judge("current", training.base, self.before)

    def run(self) -> Proposal:
        """Go through the steps; `log` tells what each gave."""
        chosen = self.orders()
        for candidate in self.simulate(chain(limited(self.training, chosen.config), divided(self.training))):
            if candidate is None:
                continue
            kept, why = _outdoes(candidate, chosen)
            self.note(candidate, why)
            if kept:
                chosen = candidate
        simpler = chosen.smoothed >= 0
        self.note(self.current, "simpler and no worse" if simpler else "")
        return Proposal(self.base if simpler else chosen.config, self.log)

    def orders(self) -> _Candidate:
        """Return the best order of the waiting list, with the priorities that keep the tails in bounds."""
        orders = candidates(self.base.machine.cores)[self.tried]
        plain = self.ordered(general(self.base.machine.cores))
        if stuck := ["order"] if self.base.is_fixed("order") else self.violations(plain):
            self.log.append({"step": "orders", "note": f"none can be tried: {', '.join(stuck)} is fixed"})
            return self.current
        months = self.periods
        measured = [self.measured(each, plain) for each in months]
        surfaces = [_surface(*each)[self.tried] for each in zip(months, measured, strict=True)]
        skill = forecast_skill([surface[:, :3] @ self.weights for surface in surfaces], self.paid(months))
        used = len(months) if skill > LEAST_SKILL else 1
        present = np.mean([logarithms(each, of_base(each)) for each in months[-used:]], axis=0)
        rated = self.rated(np.mean(surfaces[-used:], axis=0), present)
        scores = rated + self.paid(months[-used:]) / used
        ranking = np.argsort(scores, kind="stable")[:TRIED]
        at_once = [found[self.tried][ranking[0]] for found in measured]
        config = self.ordered(orders[ranking[0]])
        found = at_once[-1].aims[0] / np.maximum(self.before.aims[0], 1.0)
        self.log.append(
            {
                "step": "orders",
                "tried": len(orders),
                **({"months": used, "forecast_skill": round(skill, 4)} if self.training.earlier else {}),
                "best": config.order,
                "score": round(float(scores[ranking[0]]), 4),
                **({"general_score": round(float(scores[0]), 4)} if self.tried.start is None else {}),
                "wait_ratio": round(float(found[0]), 4),
                "slowdown_ratio": round(float(found[1]), 4),
            }
        )
        best = replace(self.judge("best order", config, at_once[-1]), smoothed=float(rated[ranking[0]]))
        later = self.reserving(best, at_once)
        if not self.guard or self.pinned or not later.broken.any():
            return later
        answer = self.guarded([orders[i] for i in ranking], later)
        if answer.broken.any() and self.reserve_after:
            self.reserve_after = 0
            answer = self.guarded([orders[i] for i in ranking], best)
        return answer

    def ordered(self, order: str, priorities: NDArray[np.float64] | None = None) -> SiteConfig:
        """Return the base on the shared machine, ordered by a formula, with reservations when they are best made."""
        weights = self.priorities if priorities is None else priorities
        return ordered(self.training.period, order, weights, self.reserve_after)

    def paid(self, months: list[Period]) -> NDArray[np.float64]:
        """Return what the orders pay in each of these months, in log score, shape (orders,)."""
        paid = costs(float(np.mean([len(each) for each in months])))[self.tried]
        return np.asarray(paid - paid.min())

    def reserving(self, best: _Candidate, at_once: list[Measure]) -> _Candidate:
        """Return the best order where nothing is reserved for who has hardly waited, if all months say that is better.

        `at_once` is what the best order gave in each training.
        """
        if len(self.periods) < MONTHS or self.base.is_fixed("reserve_after"):
            return best
        later = best.config.replace(reserve_after=RESERVE_AFTER)
        system = later.system()
        measured = [of_system(period, system) for period in self.periods]
        pairs = zip(self.periods, at_once, measured, strict=True)
        rows = np.array([[logarithms(period, each) for each in pair] for period, *pair in pairs])
        score = float(np.diff(self.rated(rows.mean(axis=0), np.zeros(4)))[0])
        found = replace(self.judge("best order", later, measured[-1]), smoothed=best.smoothed + score)
        kept = score + DELAY * JOBS / sum(map(len, self.periods)) < 0
        note = "better than at once" if kept else "at once, as before"
        if kept and self.guard and (found.broken & ~best.broken).any():
            kept, note = False, "better than at once, but the longest waits of a queue grow too much"
        self.log.append(
            {
                "step": "reservations",
                "after": format_duration(RESERVE_AFTER),
                "months": len(self.periods),
                "score": round(score, 4),
                "note": note,
            }
        )
        if not kept:
            return best
        self.reserve_after = RESERVE_AFTER
        return found

    def violations(self, config: SiteConfig) -> list[str]:
        """List what a configuration changes that is fixed."""
        return fixed_violations(self.base, config, self.training.period.binding)

    def measured(self, period: Period, plain: SiteConfig) -> list[Measure]:
        """Simulate all orders on a period, where `plain` has one of them."""
        orders = tuple(weighed(order, self.priorities) for order in candidates(plain.machine.cores))
        return of_orders(period, plain.system(), orders, self.workers)

    def guarded(self, orders: list[str], best: _Candidate) -> _Candidate:
        """Raise the priorities of queues whose tails are too long; return `best` if that never helps."""
        raised = [np.ones(len(self.base.queues)) for _ in orders]
        kept: list[tuple[_Candidate, str, NDArray[np.float64]]] = []
        for _ in range(ROUNDS):
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
            going = [each for each in tried if each[0].broken.any() and not each[0].broken.all()]
            raised = [_raised(w, candidate.broken) for candidate, _, w in going]
            orders = [order for _, order, _ in going]
            if not orders:
                break
        entry: dict[str, object] = {
            "step": "guard rails",
            "queues": [name for name, broken in zip(self.base.names, best.broken, strict=True) if broken],
            "kept_by": len(kept),
        }
        self.log.append(entry)
        answer, order, least = min(kept, key=lambda each: each[0].score, default=(best, None, None))
        if order is None or least is None or answer.score >= self.current.score:
            entry["note"] = "no priorities keep the tails of these queues short and gain anything: the best order stays"
            return best
        # Few jobs stand behind a tail: what just holds on these will not on others, so there is some to spare.
        more = _raised(least, best.broken | (least > 1))
        for firm in self.simulate([("to spare", self.ordered(order, more))]):
            if firm is not None and not firm.broken.any() and firm.score < answer.score + SPARE:
                answer = firm
        entry |= {
            "best": answer.config.order,
            "score": round(answer.score, 4),
        }
        if "queue_priority" in answer.config.order:
            entry["priorities"] = {queue.name: queue.priority for queue in answer.config.queues}
        return answer

    def simulate(self, configs: Iterable[tuple[str, SiteConfig]]) -> list[_Candidate | None]:
        """Judge configurations, side by side; None for those that touch what is fixed or never start a job."""
        able: list[tuple[str, SiteConfig] | None] = []
        for what, config in configs:
            why = [f"changes {path}, which is fixed" for path in self.violations(config)]
            if why := [*why, *never_start(self.base, config)]:
                self.log.append({"step": "not tried", "with": what, "why": "; ".join(why)})
                able.append(None)
            else:
                able.append((what, config))
        arguments = [
            (self.training.period, self.training.period.routed(each[1]), each[1].system())
            for each in able
            if each is not None
        ]
        measured = iter(parallel_map(self.workers, measure, arguments))
        return [None if each is None else self.judge(*each, next(measured)) for each in able]

    def judge(self, what: str, config: SiteConfig, found: Measure) -> _Candidate:
        """Compare with the base."""
        halves = log_ratios(found.aims[1:], self.before.aims[1:]) @ self.weights[:2]
        late = _beyond(found.late, self.before.late)
        longest = _beyond(found.longest, self.before.longest.max())
        score = float(self.rated(logarithms(self.training.period, found), self.present))
        return _Candidate(what, config, score, halves, late | longest, smoothed=score)

    def rated(self, logarithms: NDArray[np.float64], base: NDArray[np.float64]) -> NDArray[np.float64]:
        """Score `logarithms` beside those of the base, less is better; shape (..., 4) in, (...) out."""
        score, present = (
            each[..., :3] @ self.weights + STEEP * np.maximum(each[..., 3] - np.log(TOLERATED), 0)
            for each in (logarithms, base)
        )
        return np.asarray(score - present)

    def note(self, candidate: _Candidate, text: str) -> None:
        """Log a comparison."""
        self.log.append({"step": "compare", "with": candidate.what, "score": round(candidate.score, 4)})
        if text:
            self.log[-1]["note"] = text


def _surface(period: Period, measured: list[Measure]) -> NDArray[np.float64]:
    """Return `logarithms` of what all orders gave in a training, smoothed; shape (orders, 4)."""
    return smoothed(np.array([logarithms(period, each) for each in measured]))


def _raised(priorities: NDArray[np.float64], queues: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Raise the priorities of these queues by one step; six decimals, as a person reads them."""
    return np.asarray(np.where(queues, priorities * RAISE, priorities).round(6), dtype=np.float64)


def _outdoes(candidate: _Candidate, chosen: _Candidate) -> tuple[bool, str]:
    """Whether what is more complicated is to be kept: by the margin, in both halves, without a longer tail; and why."""
    if candidate.score >= chosen.score - MARGIN:
        return False, ""
    if not (candidate.halves < chosen.halves - MARGIN).all():
        return False, "better by more than the margin, but not in both halves of the history"
    if (candidate.broken & ~chosen.broken).any():
        return False, "better by more than the margin, but the longest waits of a queue grow too much"
    return True, "better by more than the margin, in both halves of the history"


def _beyond(after: NDArray[np.float64], before: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell which tails are longer than the guard rails allow."""
    return np.asarray(after > np.maximum(ALLOWED * before, before + GRACE))
