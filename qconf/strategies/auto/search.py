"""The search of `auto`: the order of the waiting jobs with the best expected score, and larger changes.

It climbs from small changes to large ones. First all members of a family of orders are simulated on all known periods,
with the site's limits, starvation periods and priorities kept, and the estimator scores them: without and with a
reservation delay. If the machine has GPUs or memory, factors order the jobs that request them earlier or later. Then
parts of the policy are dropped, one by one and together, and larger changes are tried: running limits, other nodes,
boundaries, partitions, a common pool. The best of each kind is a proposal. The search's own choice takes a larger
change only if it is better by a margin in both halves of the training set, and leaves the base only for a better score.
With guarding, queues whose longest waits would grow too much, or whose 95 % wait is above the site's target, get
growing factors until they no longer do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
from qconf.strategies.auto.estimator import STRENGTH, WISHED, Floats, Prior, posterior, prices, prior_of, ranked
from qconf.strategies.auto.families import FAMILIES, AutoOptions, Member, Named, usual_longest
from qconf.strategies.auto.frame import Frame, policy_of
from qconf.strategies.auto.measures import Measure, logarithms, of_base, of_configs, of_first_come, of_orders
from qconf.strategies.base import Proposal, Question, Step, step

# Parameters of the search, chosen on several logs together. Scores are log scores.
ALLOWED = 1.4  # growth of the longest wait, and of a queue's 95 % wait, from which a factor guards a queue
MARGIN = 0.25  # required advantage of a larger change: the luck of the best of twenty in a noisy period
TRIED = 8  # best orders that are tried with factors
ROUNDS = 8  # most times that factors are raised
INCREASE = 1.8  # multiplies a queue's factor while its tails are too long
MONTHS = 3  # least known months for a reservation delay, which demands more of a site than another order
PIECE = 64  # orders that a worker simulates at a time
PRICES = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # weights of the tails that the log compares

#: Kinds of proposals by the change that they make; `_Search.kinds` yields the others.
POINTS, ORDER, DELAY = "points", "order", "delay"
ALL = "policy"  #: all of the policy; each part of it is a kind too
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


@step
class Orders(Step):
    """The order with the best expected score, or why none was tried; ratios are to first come, first served."""

    tried: int | None = None
    months: int | None = None
    best: str | None = None
    score: float | None = None
    prior_score: float | None = None
    wait_ratio: float | None = None
    slowdown_ratio: float | None = None
    longest_ratio: float | None = None
    note: str | None = None


@step
class Tails(Step):
    """The orders that other weights of the tails would choose: expected ratios to first come, first served."""

    title: ClassVar[str] = "tails"
    weights: list[float]
    wait_ratios: list[float]
    slowdown_ratios: list[float]
    longest_ratios: list[float]
    chosen: float


@step
class Reservations(Step):
    """Whether a reservation delay is better."""

    after: str
    months: int
    score: float
    note: str


@step
class Guarding(Step):
    """Factors for queues whose waits would grow too much."""

    title: ClassVar[str] = "guard rails"
    queues: list[str]
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
    """The score of a candidate relative to the base's."""

    with_: str
    score: float
    note: str | None = None


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A configuration and its scores: 0 is as good as first come, first served, -0.1 about a tenth less wait."""

    what: str
    config: SiteConfig
    score: float  # on the whole training set
    halves: NDArray[np.float64]  # scores without tails, of the first and of the second half, shape (2,)
    broken: NDArray[np.bool_]  # queues with longer tails than the guard rails allow, shape (Q,)
    behind: NDArray[np.bool_]  # queues above the site's targets, or if there are none, the broken ones
    trouble: int  # number of queues above targets, then of broken ones, as one number
    expected: float  # decides whether the base stays: the estimator's score for an order, else `score`
    member: Member | None = None  # the order in `config`
    frame: Frame = field(default_factory=Frame)


@cached
def climb(
    training: TrainingSet,
    options: AutoOptions,
    *,
    guard: bool = False,
    prior: Prior | None = None,
) -> dict[str, Proposal]:
    """Search orders, limits, boundaries, partitions and pools; return the best proposal of each kind of change.

    The empty key has the search's choice, or the base. With `guard` factors keep the tails of queues within `ALLOWED`.
    Raises NotApplicableError if there are no jobs.
    """
    if not len(training):
        raise NotApplicableError("there are no jobs to train on")
    return _Search(training, options, guard=guard, prior=prior).run()


def orders_wanted(training: TrainingSet, options: AutoOptions) -> list[Question]:
    """Return the computations of the search on single periods: simulations of all orders of its family."""
    if not len(training) or training.base.mode == "hybrid":
        return []
    search = _Search(training, options)
    if search.fixed_order_paths():
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
        prior: Prior | None = None,
    ) -> None:
        self.training, self.base, self.workers = training, training.base, options.workers
        self.weights = weights(options.objective, options.tails)
        self.wanted = wanted_waits(self.base)
        self.guard = guard or bool(np.isfinite(self.wanted).any())
        self.log: list[Step] = []
        self.policy = policy_of(training.period)
        dropped = frozenset(part for part in self.policy if part in self.base.policy)
        self.frame = Frame(dropped, shared=self.base.mode == "shared", sums=options.orders != "formula")
        #: The site's own shortpools may change only if its policy allows it.
        free = not self.base.shortpools or "shortpools" in self.base.policy
        dedicates = not self.base.is_fixed("shortpools") and not self.base.reserves_for_queues
        dedicates &= self.base.reservation_depth == 1 and not (self.base.nodes or self.base.has_tiers)
        self.searches_shortpools = options.shortpools == "search" and free and dedicates
        self.periods = [*training.earlier, training.period]
        #: Whether a reservation delay may change, or reservations be added.
        may_wait = self.base.mode == "shared" and not self.base.is_fixed("reserve_after")
        may_wait &= not (self.base.reserves_nothing and self.base.is_fixed("reserve"))
        self.members = [each for each in FAMILIES[options.orders] if may_wait or not each.delay]
        #: Longest wait of each queue under first come, first served. The reference must not depend on the base, else
        #: each run would gain a little over the last, only by longer waits.
        self.seen = np.max([of_first_come(each).longest for each in self.periods], axis=0)
        self.usual = usual_longest(float(self.seen.max()), sum(each.days for each in self.periods))
        present = [of_base(each) for each in self.periods]
        self.late = np.max([np.nan_to_num(each.late) for each in present], axis=0)
        self.longest = max(each.longest.max() for each in present)
        self.before = present[-1]
        rows = [logarithms(*each, self.seen) for each in zip(self.periods, present, strict=True)]
        self.jobs = [len(each) for each in self.periods]
        self.strength = STRENGTH if training.period.weight is None else WISHED
        self.prior = (prior or prior_of)(tuple(self.members))
        own = posterior(self.prior_of_base()[None], np.array(rows)[:, None], self.jobs, self.strength)
        self.current = self.scored("current", training.base, self.before, expected=float(prices(own, self.weights)[0]))

    def prior_of_base(self) -> NDArray[np.float64]:
        """Return the prior of the base's order; the site chose a formula, so it counts as the best member."""
        named = {each.order.name: place for place, each in enumerate(self.members) if isinstance(each.order, Named)}
        if self.base.is_formula:
            place = int(np.argmin(prices(self.prior, self.weights)))
        elif (place := named.get(self.base.order, -1)) < 0:
            return np.zeros(self.prior.shape[1])
        return np.asarray(self.prior[place])

    def run(self) -> dict[str, Proposal]:
        """Go through the kinds of change; return the best proposal of each, and the choice."""
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
                    expected = min(chosen.expected, self.current.expected) + candidate.score - chosen.score
                    chosen = replace(candidate, expected=expected)
        simpler = chosen.expected >= self.current.expected
        self.note(self.current, "simpler and no worse" if simpler else "")
        found[""] = self.current if simpler else chosen
        return {kind: self.proposal(kind, each) for kind, each in found.items()}

    def proposal(self, kind: str, candidate: _Candidate) -> Proposal:
        """Propose a candidate."""
        not_yet = ""
        if kind == DELAY and len(self.periods) < MONTHS:
            not_yet = (
                f"a reservation delay is recommended from {MONTHS} known months on, and "
                f"{len(self.periods)} {'is' if len(self.periods) == 1 else 'are'} known"
            )
        return Proposal(candidate.config, tuple(self.log), title=candidate.what, not_yet=not_yet)

    def kinds(self, chosen: _Candidate) -> Iterator[tuple[str, list[tuple[str, SiteConfig]]]]:
        """Yield the candidates beyond an order, by kind of change, from the smallest to the largest."""
        member, training = chosen.member, self.training
        if member is not None and not self.frame.sums:
            order = self.order(member, chosen.frame)
            orders = [(what, f"{factor} * {order}") for what, factor in by_requests(training)]
            yield "requests", [(self.named(what), self.ordered(each, chosen.frame)) for what, each in orders]
        parts = [part for part in self.policy if part not in self.frame.dropped]
        for part, dropped in [(each, {each}) for each in parts] + ([(ALL, set(parts))] if len(parts) > 1 else []):
            frame = replace(chosen.frame, dropped=self.frame.dropped | dropped)
            own = self.base.order if part not in ("priorities", ALL) else ""
            if order := own if member is None else self.order(member, frame):
                yield part, [(WITHOUT[part], self.ordered(order, frame))]
        if self.frame.dropped and member is not None:
            kept = replace(chosen.frame, dropped=frozenset())
            yield ORDER, [("the policy that may change, kept", self.config(member, kept))]
        if self.searches_shortpools:
            yield "shortpools", list(kept_for_short(training, chosen.config))
        yield "cap", list(limited(training, chosen.config))
        yield "nodes", list(on_gpu_nodes(training, chosen.config))
        yield "kept", list(keeping_cores(training, chosen.config))
        yield "boundaries", list(split(training, chosen.config))
        shared: list[tuple[str, SiteConfig]] = []
        if self.base.mode != "shared":
            frame = replace(self.frame, shared=True)
            shared = [("one shared machine", self.config(member or self.members[0], frame))]
        yield "partitions", shared + list(divided(training))

    def orders(self, found: dict[str, _Candidate]) -> _Candidate:
        """Return the best order of the waiting jobs; with guarding, with factors that keep the tails short."""
        if fixed := self.fixed_order_paths():
            self.log.append(Orders(note=f"none can be tried: {', '.join(fixed)} is fixed"))
            return self.current
        measured = [self.measured(each) for each in self.periods]
        rows = np.array(
            [[logarithms(each, one, self.seen) for one in of] for each, of in zip(self.periods, measured, strict=True)]
        )
        expected = posterior(self.prior, rows, self.jobs, self.strength)
        score = ranked(self.members, expected, self.weights)
        later = np.array([each.delay > 0 for each in self.members])
        sums = np.array([each.sums for each in self.members])
        plain = ~(later | sums)
        best = int(np.argmin(np.where(plain, score, np.inf)))
        config = self.config(self.members[best], self.frame)
        wait, slowdown, longest = np.exp(expected[best, :3]).round(4).tolist()
        self.log.append(
            Orders(
                tried=len(self.members),
                months=len(self.periods) if self.training.earlier else None,
                best=config.order,
                score=round(float(score[best]), 4),
                prior_score=round(float(prices(self.prior[best], self.weights)), 4),
                wait_ratio=wait,
                slowdown_ratio=slowdown,
                longest_ratio=longest,
                notes=tuple(self.frame.differences(self.base)),
            )
        )
        self.log.append(self.tails(expected))

        def best_of(what: str, members: NDArray[np.bool_]) -> _Candidate:
            return self.found(self.named(what), np.flatnonzero(members), measured[-1], score)

        if sums.any():
            found[POINTS] = best_of("the order in points alone", sums)
        found[ORDER] = best_of("the order alone", plain)
        if not later.any():
            return found[ORDER]
        last, never = int(np.argmin(np.where(later, score, np.inf))), self.base.reserves_nothing
        after = "0" if never else format_duration(self.members[last].delay)
        found[DELAY] = best_of("the order, and reservations" + ("" if never else f" after {after}"), later)
        enough, better = len(self.periods) >= MONTHS, bool(score[last] < score[best])
        now = "never" if never else "at once"
        note = f"better than {now}" if better else f"{now}, as before"
        if not enough:
            note = f"not chosen from fewer than {MONTHS} months"
        difference = round(float(score[last] - score[best]), 4)
        self.log.append(Reservations(after=after, months=len(self.periods), score=difference, note=note))
        longer = self.guard and (found[DELAY].broken & ~found[ORDER].broken).any()
        return found[DELAY] if enough and better and not longer else found[ORDER]

    def found(self, what: str, places: NDArray[np.int64], measured: list[Measure], score: Floats) -> _Candidate:
        """Return the best of these members; with guarding, the best whose tails factors can keep short."""

        def candidate(place: int) -> _Candidate:
            member = self.members[place]
            frame = self.framed(member)
            config = self.config(member, frame)
            return self.scored(what, config, measured[place], member, frame, expected=float(score[place]))

        places = places[np.argsort(score[places], kind="stable")]
        best = candidate(places[0])
        pinned = any(self.base.is_fixed(f"queues.{name}.priority") for name in self.base.names)
        sums = self.frame.sums or self.members[places[0]].sums
        if not self.guard or sums or pinned or not best.behind.any():
            return best
        queues = [name for name, behind in zip(self.base.names, best.behind, strict=True) if behind]
        kept = [each for place in places[:TRIED] if (each := self.guarded(candidate(place))) is not None]
        found = min(kept, key=lambda each: (each.trouble, each.expected), default=best)
        if found is best or found.trouble >= best.trouble:
            note = "no factors keep the tails of these queues short and gain anything: the best order stays"
            self.log.append(Guarding(queues=queues, note=note))
            return best
        factors = found.frame.factors
        by_queue = None if factors is None else dict(zip(self.base.names, factors, strict=True))
        gained = round(found.score - self.current.score, 4)
        self.log.append(Guarding(queues=queues, best=found.config.order, score=gained, factors=by_queue))
        return found

    def tails(self, expected: NDArray[np.float64]) -> Tails:
        """Return the step with the orders that other weights of the tails would choose."""
        wait, slowdown, own = self.weights
        tried = sorted({*PRICES, float(own)})
        priced = [ranked(self.members, expected, np.array([wait, slowdown, each])) for each in tried]
        chosen = [expected[int(np.argmin(each))] for each in priced]
        waits, slowdowns, longest = np.exp(np.array(chosen)[:, :3].T).round(3).tolist()
        return Tails(
            weights=tried,
            wait_ratios=waits,
            slowdown_ratios=slowdowns,
            longest_ratios=longest,
            chosen=float(own),
        )

    def named(self, what: str) -> str:
        """Add to a title the parts of the policy that the site lets change and the order drops."""
        dropped = [part for part in self.policy if part in self.frame.dropped]
        if not dropped:
            return what
        without = WITHOUT[ALL] if len(dropped) == len(self.policy) > 1 else " and ".join(WITHOUT[p] for p in dropped)
        return f"{what.removesuffix(' alone')}, {without}"

    def order(self, member: Member, frame: Frame) -> str:
        """Return the formula of a member, with ageing unless starvation periods bound the waits."""
        bounded = frame.bounds_waits(self.base)
        return member.order.formula(self.base.machine.cores, None if bounded else self.usual)

    def ordered(self, order: str, frame: Frame) -> SiteConfig:
        """Return the base with a formula as its order."""
        return frame.config(self.training.period, order)

    def config(self, member: Member, frame: Frame) -> SiteConfig:
        """Return the base with a member's formula as its order."""
        return self.ordered(self.order(member, frame), frame)

    def framed(self, member: Member) -> Frame:
        """Return the frame with a member's delay; if the base reserves nothing, with reservations at once."""
        if not member.delay:
            return self.frame
        never = self.base.reserves_nothing
        return replace(self.frame, reserving=True) if never else replace(self.frame, delay=member.delay)

    def violations(self, config: SiteConfig) -> list[str]:
        """Return the violations of `fixed` of a configuration."""
        return fixed_violations(self.base, config, self.training.period.binding)

    def measured(self, period: Period) -> list[Measure]:
        """Simulate all members on a period, equal ones once; one measure for each member."""
        found: dict[tuple[System, str], Measure] = {}
        for system, orders, workers in self.pieces:
            measures = of_orders(period, system, orders, workers)
            found |= {(system, order): each for order, each in zip(orders, measures, strict=True)}
        return [found[each] for each in self.systems]

    @cached_property
    def pieces(self) -> list[tuple[System, tuple[str, ...], int]]:
        """Arguments of `of_orders`, in pieces for several workers."""
        orders: dict[System, dict[str, None]] = {}
        for system, order in self.systems:
            orders.setdefault(system, {})[order] = None
        return [
            (system, tuple(each)[i : i + PIECE], self.workers)
            for system, each in orders.items()
            for i in range(0, len(each), PIECE)
        ]

    @cached_property
    def systems(self) -> list[tuple[System, str]]:
        """The system of each member, with a placeholder order, and its formula in the frame."""
        order = self.order(self.members[0], self.frame)
        first = {each.delay: each for each in self.members}
        plain = {delay: self.ordered(order, self.framed(each)).system() for delay, each in first.items()}
        return [(plain[m.delay], self.frame.formula(self.base, self.order(m, self.frame))) for m in self.members]

    def fixed_order_paths(self) -> list[str]:
        """Return the fixed paths that keep the order from being changed."""
        plain = self.config(self.members[0], self.frame)
        return ["order"] if self.base.is_fixed("order") else self.violations(plain)

    def guarded(self, found: _Candidate) -> _Candidate | None:
        """Raise the factors of queues that are behind until as few as possible are; None if nothing gains."""
        best, member, factors = found, found.member, np.ones(len(self.base.queues))
        for _ in range(ROUNDS):
            if member is None or not found.behind.any() or found.behind.all():
                break
            factors = np.where(found.behind, factors * INCREASE, factors).round(6)
            frame = replace(found.frame, factors=tuple(factors.tolist()))
            (tried,) = self.simulate([(found.what, self.config(member, frame))])
            if tried is None:
                break
            expected = found.expected + tried.score - found.score
            found = replace(tried, member=member, frame=frame, expected=expected)
            best = found if found.trouble < best.trouble else best
        return None if best.score >= self.current.score else best

    def simulate(self, configs: Iterable[tuple[str, SiteConfig]]) -> list[_Candidate | None]:
        """Score configurations in parallel; None for one that violates `fixed` or never starts a job."""
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
        self,
        what: str,
        config: SiteConfig,
        found: Measure,
        member: Member | None = None,
        frame: Frame | None = None,
        *,
        expected: float | None = None,
    ) -> _Candidate:
        """Score a measure against first come, first served, and its tails against the base in all known periods."""
        halves = (log_ratios(found.means[1:], self.before.means[1:]) * self.weights[:2]).sum(axis=-1)
        broken = _beyond(found.late, self.late) | _beyond(found.longest, np.asarray(self.longest))
        missed = found.late > self.wanted
        behind, trouble = missed if missed.any() else broken, int((1 + missed.size) * missed.sum() + broken.sum())
        score = float(prices(logarithms(self.training.period, found, self.seen), self.weights))
        expected = score if expected is None else expected
        return _Candidate(what, config, score, halves, broken, behind, trouble, expected, member, frame or self.frame)

    def outdoes(self, candidate: _Candidate, chosen: _Candidate) -> tuple[bool, str]:
        """Return whether a larger change replaces the chosen one, and why.

        It must be better by the margin, as a whole and in both halves, without a longer tail.
        """
        if candidate.score >= chosen.score - MARGIN:
            return False, ""
        if not (candidate.halves < chosen.halves - MARGIN).all():
            return False, "better by more than the margin, but not in both halves of the history"
        if (candidate.broken & ~chosen.broken).any():
            return False, "better by more than the margin, but the longest waits of a queue grow too much"
        return True, "better by more than the margin, in both halves of the history"

    def note(self, candidate: _Candidate, text: str) -> None:
        """Log a comparison with the base."""
        self.log.append(
            Compare(with_=candidate.what, score=round(candidate.score - self.current.score, 4), note=text or None)
        )


def _beyond(after: Floats, before: Floats) -> NDArray[np.bool_]:
    """Mark tails that are longer than `ALLOWED`."""
    return np.asarray(after > np.maximum(ALLOWED * before, before + GRACE))
