"""The recommendation of ``qconf tune`` from a history: CHANGE to a strategy's proposal, KEEP the base, or CHECK it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache, partial, reduce
from typing import Any

import numpy as np

from qconf.config import SiteConfig
from qconf.evaluation.guard_rails import GuardRails
from qconf.evaluation.holdout import FEWEST_DAYS, FEWEST_JOBS, WARMUP, spans_of, splits_of
from qconf.evaluation.impact import impact
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import Period, TrainingSet
from qconf.evaluation.plausibility import implausible
from qconf.evaluation.robustness import robustness
from qconf.evaluation.score import FLOORS
from qconf.evaluation.targets import target_results
from qconf.fidelity.grade import carried
from qconf.history import History, binding_limits
from qconf.recommend.checkpoint import Checkpoint
from qconf.recommend.decide import decide
from qconf.recommend.doubts import doubts
from qconf.recommend.evaluator import Evaluator
from qconf.recommend.fidelity import Fidelity
from qconf.recommend.ladder import best_queues, choose, ladder, shown_rows
from qconf.recommend.recommendation import Curve, Evaluated, Recommendation, Row, in_scope
from qconf.recommend.training import Check
from qconf.strategies import baselines, registry
from qconf.strategies import check as check_strategies
from qconf.strategies import settings as all_settings
from qconf.strategies.auto.measures import of_base
from qconf.strategies.partitioning.bounds import utilization
from qconf.strategies.partitioning.sizes import PartitionSpace


def default_strategies() -> tuple[str, ...]:
    """Return the strategies that ``qconf tune`` compares by default."""
    return tuple(name for name, strategy in registry().items() if strategy.tune_default)


def recommend(
    history: History,
    base: SiteConfig,
    *,
    earlier: Sequence[History] = (),  # earlier periods, the oldest first: `auto` compares orders on them too
    strategies: Sequence[str] | None = None,  # None: the defaults; ``current`` and the baselines are added
    settings: Mapping[str, Any] | None = None,  # options of the strategies by name, the objective among them
    guards: GuardRails | None = None,
    scope: str = "any",  # ``any`` change may be recommended, or only ``queues``
    least_gain: float = 0.02,  # least expected gain that is worth a change
    check: Check | None = None,
    needs: Check | None = None,
    may_change: Collection[str] = (),  # parts of the policy, in addition to the configuration's
    checkpoint: Checkpoint | None = None,  # finished proposals of an interrupted run
    progress: Callable[[str, float], None] | None = None,  # called with the name of the step, and the finished fraction
    nearness: Callable[[], Fidelity | None] | None = None,  # fidelity to the log; called while workers work
) -> Recommendation:
    """Train every strategy on the first two thirds of the history, evaluate it on the rest, recommend the best.

    A strategy must gain there beyond chance. So it is also trained and evaluated on earlier splits
    (`qconf.evaluation.holdout`), and all test days are resampled. The current configuration `base` cleaned the history
    and the periods `earlier`; its limits that keep jobs out of them count as fixed. A strategy that breaks a guard rail
    is ineligible; so is one that is not exportable, unless the base is not exportable either.
    """
    guards, chosen = guards or GuardRails(), all_settings(settings)
    wanted = default_strategies() if strategies is None else strategies
    names = tuple(dict.fromkeys(("current", *baselines(base), *wanted)))
    check_strategies(names, chosen, base)
    graded, given = carried(base), base
    # The grade belongs to the given configuration only, not to proposals derived from it.
    plain = base.replace(fidelity=None)
    base = plain.replace(policy=(*base.policy, *may_change))
    binding = tuple(dict.fromkeys(path for each in (history, *earlier) for path in binding_limits(each)))
    period, *before = (Period.of(each, base, binding) for each in (history, *earlier))
    known = None
    if earlier and chosen["epoch_days"] is not None:
        known = Period.of(reduce(History.joined, (*earlier, history)), base, binding)
    training = TrainingSet(period, tuple(before), known=known)
    splits = splits_of(training, *history.span)
    near = cache(nearness or (lambda: None))
    last = splits["last"]
    recorded = {"guards": asdict(guards), "least_gain": least_gain, "warmup_seconds": WARMUP, "strategies": list(names)}
    found = Recommendation(
        verdict="KEEP",
        lead="",
        reason="",
        winner="current",
        config=given,
        base=plain,
        graded=graded,
        objective=chosen["objective"],
        rows=[],
        curves=[],
        spans=spans_of(period, splits, history.epoch) | _before(earlier),
        settings=chosen | recorded | {"may_change": list(base.policy), "answer": scope},
    )
    if not last.enough:
        lead = "the history is too short to train on one part and evaluate on another"
        reason = (
            f"It has {len(last.training)} and {len(last.test.jobs)} jobs, and {last.test.days} whole days in the test "
            f"period. At least {FEWEST_JOBS} jobs are needed in each, and {FEWEST_DAYS} days."
        )
        whole = Outcome(period, period.simulate(base)).summary if len(period) else None
        found = replace(found, lead=lead, reason=reason, rows=[Row("current", plain, None, whole, None)])
        return _checked(found, history, near(), [])
    enough = {name: split for name, split in splits.items() if split.enough}
    evaluator = Evaluator(training, enough, chosen, guards, check, needs, checkpoint)
    drawn = cache(partial(curves, training))
    odd = cache(lambda: implausible(evaluator.whole.outcome(evaluator.base)))

    def beside() -> None:
        """Compute what does not depend on proposals, while workers train."""
        for each in (near, drawn, odd, lambda: evaluator.current):
            each()

    rows = evaluator.rows(names, progress or (lambda *_: None), beside)
    candidates = in_scope(rows, scope)
    nobody_waits = low_waits(training, [each.date(each.span[0])[:7] for each in earlier])
    best = None if nobody_waits else choose(candidates, evaluator.compare, least_gain)
    needless = [row for row in candidates if not row.needs]
    found = replace(
        found,
        rows=shown_rows(rows, best),
        curves=drawn(),
        ladder=ladder(rows, best, evaluator.compare),
        queues=best_queues(rows, best, evaluator.compare, least_gain),
        without_scripts=None if best is None or not best.needs else choose(needless, evaluator.compare, least_gain),
    )
    found = decide(found, best, least_gain, nobody_waits)
    present = evaluator.present
    found = replace(
        found,
        targets=target_results(present),
        present=Evaluated(evaluator.base.config, present),
    )
    if best is not None:
        proposal, after = evaluator.evaluated[best.name, best.variant], evaluator.outcome(best)
        found = replace(
            found,
            impact=impact(present, after),
            targets_met=target_results(after),
            changed=Evaluated(proposal.config, after),
            robustness=robustness(last.test, evaluator.base, proposal, found.objective),
        )
    return _checked(_given_back(found, given), history, near(), odd())


def _checked(
    found: Recommendation, history: History, near: Fidelity | None, implausible: Sequence[str]
) -> Recommendation:
    """Add the fidelity and the doubts; with any doubt the verdict is CHECK."""
    odd = tuple(doubts(history, found.base, near, found.graded, implausible))
    return replace(found, near=near, doubts=odd, verdict="CHECK" if odd else found.verdict)


def low_waits(training: TrainingSet, months: Sequence[str]) -> str:
    """Return a sentence if jobs hardly wait, with the earlier months that an order would have helped; else no text."""
    wait, *before = (float(of_base(each).means[0, 0]) for each in (training.period, *training.earlier))
    if wait >= FLOORS[0]:
        return ""
    waited = [month for month, each in zip(months, before, strict=True) if each >= FLOORS[0]]
    text = f"there is nothing to gain this month: jobs wait {wait:.0f} s on average"
    if not waited:
        return text
    return f"{text}; the general order of auto costs nothing and would have helped in {', '.join(waited)}"


def _given_back(found: Recommendation, given: SiteConfig) -> Recommendation:
    """Reset `policy` in all configurations to the given one's: `may_change` is an option of the run only."""
    policy = given.policy

    def row(each: Row) -> Row:
        return each if each.config is None else replace(each, config=each.config.replace(policy=policy))

    return replace(
        found,
        config=found.config.replace(policy=policy) if found.proposes else given,
        rows=[row(each) for each in found.rows],
        ladder=tuple(replace(each, row=row(each.row)) for each in found.ladder),
        without_scripts=None if found.without_scripts is None else row(found.without_scripts),
        queues=None if found.queues is None else replace(found.queues, row=row(found.queues.row)),
    )


def _before(earlier: Sequence[History]) -> dict[str, tuple[int, int, int]]:
    """Return the span of the earlier periods in the form of `spans_of`."""
    if not earlier:
        return {}
    oldest, latest = earlier[0], earlier[-1]
    return {"earlier periods": (sum(map(len, earlier)), oldest.epoch + oldest.span[0], latest.epoch + latest.span[1])}


def curves(training: TrainingSet) -> list[Curve]:
    """Simulate every queue that owns a partition alone, over partition sizes from its widest job to the machine."""
    base, period = training.base, training.period
    node = base.grid
    queues = np.array([i for i, q in enumerate(base.queues) if not q.reservation and period.widest[i]], dtype=np.int64)
    widest = -(-period.widest[queues] // node)
    space = PartitionSpace(queues, base.machine.cores // node, widest, node, period.core_seconds[queues])
    found = [utilization(training, space, k) for k in range(queues.size)]
    return [
        Curve(base.queues[i].name, (each.sizes * node).tolist(), each.waits.tolist(), each.shares.tolist())
        for i, each in zip(queues, found, strict=True)
    ]


__all__ = ["Curve", "Evaluated", "GuardRails", "Recommendation", "Row", "curves", "recommend"]
