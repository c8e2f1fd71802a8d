"""From a history to a recommendation: CHANGE to a proposal of one of the strategies, or KEEP what is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from qconf.config import SiteConfig
from qconf.evaluation.guard_rails import GuardRails
from qconf.evaluation.holdout import FEWEST_DAYS, FEWEST_JOBS, WARMUP, spans_of, splits_of
from qconf.evaluation.period import Period, TrainingSet
from qconf.history import History, binding_limits
from qconf.recommend.checkpoint import Checkpoint
from qconf.recommend.decide import decide
from qconf.recommend.evaluator import Check, Evaluator
from qconf.recommend.recommendation import Curve, Recommendation, Row
from qconf.strategies import baselines, registry
from qconf.strategies import check as check_strategies
from qconf.strategies import settings as all_settings
from qconf.strategies.partitioning.bounds import utilization
from qconf.strategies.partitioning.sizes import PartitionSpace


def default_strategies() -> tuple[str, ...]:
    """Return the strategies that ``qconf tune`` compares when none is named."""
    return tuple(name for name, strategy in registry().items() if strategy.tune_default)


def recommend(
    history: History,
    base: SiteConfig,
    *,
    earlier: Sequence[History] = (),  # periods before it, the oldest first: `auto` compares orders on them too
    strategies: Sequence[str] | None = None,  # unless given, the defaults; ``current`` and the baselines are added
    settings: Mapping[str, Any] | None = None,  # options of the strategies by name, the objective among them
    guards: GuardRails | None = None,
    least_gain: float = 0.02,  # below, a change is not worth the effort
    check: Check | None = None,
    checkpoint: Checkpoint | None = None,  # finished proposals of an interrupted run
    progress: Callable[[str], None] | None = None,  # called with the name of each strategy before it runs
) -> Recommendation:
    """Train every strategy on the first two thirds of the history, evaluate it on the rest, recommend the best.

    A strategy that does better there must do so beyond chance. So it is also trained and evaluated on the earlier
    splits (`qconf.evaluation.holdout`), and all test days are resampled. The current configuration `base` cleaned the
    history and the periods `earlier`; its limits that keep jobs out of them count as fixed. A strategy that breaks one
    of the guard rails is shown, and ineligible; so is what is not exportable, unless the base is not exportable either.
    """
    guards, chosen = guards or GuardRails(), all_settings(settings)
    wanted = default_strategies() if strategies is None else strategies
    names = tuple(dict.fromkeys(("current", *baselines(), *wanted)))
    check_strategies(names, chosen, base)
    binding = tuple(dict.fromkeys(path for each in (history, *earlier) for path in binding_limits(each)))
    period, *before = (Period.of(each, base, binding) for each in (history, *earlier))
    training = TrainingSet(period, tuple(before))
    splits = splits_of(training, *history.span)
    last = splits["last"]
    recorded = {"guards": asdict(guards), "least_gain": least_gain, "warmup_seconds": WARMUP, "strategies": list(names)}
    enough = {name: split for name, split in splits.items() if split.enough}
    evaluator = Evaluator(training, enough, chosen, guards, check, checkpoint)
    rows = []
    for name in names:
        if progress is not None:
            progress(name)
        rows.append(evaluator.row(name))
    found = Recommendation(
        verdict="KEEP",
        reason="",
        winner="current",
        config=base,
        base=base,
        objective=chosen["objective"],
        rows=rows,
        curves=curves(training),
        spans=spans_of(period, splits, history.epoch) | _before(earlier),
        settings=chosen | recorded,
    )
    if not last.enough:
        reason = (
            "The history is too short to train on one part and evaluate on another: "
            f"{len(last.training)} and {len(last.test.jobs)} jobs, {last.test.days} whole days in the test period. At "
            f"least {FEWEST_JOBS} jobs are needed in each, and {FEWEST_DAYS} days. Keep what you have."
        )
        return replace(found, reason=reason)
    return decide(found, least_gain)


def _before(earlier: Sequence[History]) -> dict[str, tuple[int, int, int]]:
    """Count the jobs of the earlier periods, as `spans_of` does."""
    if not earlier:
        return {}
    oldest, latest = earlier[0], earlier[-1]
    return {"earlier periods": (sum(map(len, earlier)), oldest.epoch + oldest.span[0], latest.epoch + latest.span[1])}


def curves(training: TrainingSet) -> list[Curve]:
    """Simulate every queue that owns a partition alone, over sizes from its widest job to the machine."""
    base, period = training.base, training.period
    node = base.grid
    queues = np.array([i for i, q in enumerate(base.queues) if not q.reservation and period.widest[i]], dtype=np.int64)
    space = PartitionSpace(queues, base.machine.cores // node, -(-period.widest[queues] // node), node)
    found = [utilization(training, space, k) for k in range(queues.size)]
    return [
        Curve(base.queues[i].name, (each.sizes * node).tolist(), each.waits.tolist(), each.shares.tolist())
        for i, each in zip(queues, found, strict=True)
    ]


__all__ = ["Curve", "GuardRails", "Recommendation", "Row", "curves", "recommend"]
